// SPDX-License-Identifier: MIT
#include "node.hpp"

#include "../cancellation.hpp"
#include "../context.hpp"

#include <lite/arena.h>
#include <lite/lite.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>

#include <sys/mman.h>
#include <unistd.h>

namespace lite::large {

namespace {
constinit int node_number = 0;  // or an errno, which lite_open() refuses, too
constinit bool debug = false;
}  // namespace

void read_environment() noexcept {
    node_number = internal::node_index(-1);
    // NOLINTNEXTLINE(concurrency-mt-unsafe)
    const char* text = std::getenv("LITE_ARENA_DEBUG");
    debug = text && *text && *text != '0';
}

bool may_pass(int err) noexcept {
    return err == -ENOMEM || err == -ENOSPC || err == -EDQUOT || err == -EFBIG || err == -EINTR ||
           err == -EMFILE || err == -ENFILE;
}

int map_arena(std::size_t size, void*& at) noexcept {
    lite_ctx* ctx;
    int err = lite_open(node_number, &ctx);
    if (!err) {
        err = lite_arena_mmap(ctx, size, LITE_ARENA_EAGER, &at);
        lite_close(ctx);
        // Absent pages raise SIGBUS once the node stops: bring all in. EINVAL: Linux before 5.14.
        if (!err && ::madvise(at, size, MADV_POPULATE_READ) && errno != EINVAL) {
            err = errno == ENOMEM ? -ENOMEM : -ENODEV;
            ::munmap(at, size);
            at = nullptr;
        }
    }
    if (!err)
        say(event::used, "large mallocs come from the LITE node", nullptr);
    else if (may_pass(err))
        say(event::refused, "a large malloc is ordinary memory", lite_strerror(err));
    else
        say(event::no_node, "all mallocs are ordinary memory", lite_strerror(err));
    return err;
}

void say(event what, const char* text, const char* why) noexcept {
    static constinit std::atomic<unsigned> said = 0;
    const unsigned bit = 1U << static_cast<unsigned>(what);
    if (!debug || said.fetch_or(bit, std::memory_order_relaxed) & bit)
        return;
    char line[300];
    const int n =
        std::snprintf(line, sizeof(line), "liblite-arena[%d]: %s%s%s\n",
                      static_cast<int>(::getpid()), text, why ? ": " : "", why ? why : "");
    const auto length =
        static_cast<std::size_t>(n) < sizeof(line) ? static_cast<std::size_t>(n) : sizeof(line) - 1;
    const internal::no_cancellation guard;
    [[maybe_unused]] const auto written = ::write(STDERR_FILENO, line, length);
}

}  // namespace lite::large
