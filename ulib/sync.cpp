// SPDX-License-Identifier: MIT
//
// Locks and barriers.

#include "cancellation.hpp"
#include "context.hpp"

#include <lite/sync.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <thread>

using std::chrono::milliseconds;
using std::chrono::steady_clock;

namespace {

int holder_call(lite_ctx* ctx, unsigned long request, lite_lh_t lh, uint64_t offset,
                uint64_t owner) noexcept {
    struct lite_ioc_unlock arg = {};
    arg.lh = lh;
    arg.offset = offset;
    arg.owner = owner;
    return lite::internal::control(ctx, request, arg);
}

// While an LMR is being freed its name can neither be opened nor given to another. That lasts as
// long as a node that does not answer may keep a mapping of it: about 15 s.
constexpr std::chrono::seconds longest_free{20};
constexpr milliseconds shortest_pause{1};
constexpr milliseconds longest_pause{100};

}  // namespace

int lite_lock(struct lite_ctx* ctx, lite_lh_t lh, uint64_t offset, uint64_t owner, uint32_t flags,
              int timeout_ms) noexcept {
    struct lite_ioc_lock arg = {};
    arg.flags = flags;
    arg.lh = lh;
    arg.offset = offset;
    arg.owner = owner;
    arg.timeout_ms = timeout_ms;
    return lite::internal::control(ctx, LITE_IOC_LOCK, arg);
}

int lite_unlock(struct lite_ctx* ctx, lite_lh_t lh, uint64_t offset, uint64_t owner) noexcept {
    return holder_call(ctx, LITE_IOC_UNLOCK, lh, offset, owner);
}

int lite_lock_consistent(struct lite_ctx* ctx, lite_lh_t lh, uint64_t offset,
                         uint64_t owner) noexcept {
    return holder_call(ctx, LITE_IOC_CONSISTENT, lh, offset, owner);
}

int lite_barrier(struct lite_ctx* ctx, lite_lh_t lh, uint64_t offset, uint32_t n,
                 int timeout_ms) noexcept {
    struct lite_ioc_barrier arg = {};
    arg.lh = lh;
    arg.offset = offset;
    arg.n = n;
    arg.timeout_ms = timeout_ms;
    return lite::internal::control(ctx, LITE_IOC_BARRIER, arg);
}

int lite_barrier_open(struct lite_ctx* ctx, const char* name, uint32_t mode,
                      lite_lh_t* lh) noexcept {
    struct lite_alloc_params params = {};
    params.size = sizeof(params);
    params.name = name;
    params.length = sizeof(uint64_t);
    params.mode = mode;
    // An anonymous barrier could not be shared.
    if (!name || !*name)
        return -EINVAL;
    const lite::internal::no_cancellation guard;
    const auto end = steady_clock::now() + longest_free;
    for (auto pause = shortest_pause;; pause = std::min(2 * pause, longest_pause)) {
        int err = lite_map(ctx, name, LITE_RIGHT_WRITE | LITE_RIGHT_ATOMIC, lh, nullptr);
        if (err != -ENOENT)
            return err;
        err = lite_alloc(ctx, &params, lh);
        if (err != -EEXIST)
            return err;
        if (steady_clock::now() + pause > end)
            return -EAGAIN;
        // Nothing tells this node when the name is free.
        std::this_thread::sleep_for(pause);
    }
}
