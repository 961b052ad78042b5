// SPDX-License-Identifier: MIT
// What LITE, or the allocator, refuses the library. While it changes registrations, no LMR may stay
// behind that the program does not know of; for that library: its LMRs are counted here.
#include "loopback.hpp"

#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <new>
#include <vector>

#include <uapi/lite.h>

namespace verbs_check {

thread_local constinit std::size_t refused = nothing;

namespace {

constexpr unsigned never = ~0U;
constexpr std::size_t kPage = 4096;
constexpr unsigned kReadWrite =
    IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE;

// So many allocations of this thread are good, and the next one fails; the same of LMRs.
thread_local constinit unsigned good_allocations = never;
thread_local constinit unsigned good_lmrs = never;
thread_local constinit bool may_free = true;
std::atomic<long> lmrs = 0;
// No thread gets memory, nor do the library's.
std::atomic<bool> refuses_all = false;

// False: this one fails, and no other.
bool is_good(unsigned& left) { return left == never || left-- > 0; }

template <typename F>
auto limited(unsigned good, bool& has_failed, const F& body) {
    good_allocations = good;
    const auto result = body();
    has_failed = good_allocations == never;
    good_allocations = never;
    return result;
}

class Failures {
  public:
    explicit Failures(const Options& options)
        : context_(open_device(options.device)), pd_(ibv_alloc_pd(context_)) {
        check(pd_ && !(reinterpret_cast<std::uintptr_t>(pages_) % kPage), "pd, pages");
        // In the middle of what others register.
        middle_ = std::make_unique<Memory>(pd_, page(1), kPage, kReadWrite);
        before_ = lmrs;
    }
    Failures(const Failures&) = delete;
    Failures& operator=(const Failures&) = delete;
    ~Failures() {
        middle_.reset();
        if (ibv_dealloc_pd(pd_) || ibv_close_device(context_))
            std::printf("something is left\n");
    }

    void allocations() {
        unsigned n = 0;
        const auto sweep = [&](const auto& body) {
            bool has_failed = true;
            for (n = 0; has_failed; n++) {
                ibv_mr* mr = body(n, has_failed);
                if (mr && ibv_dereg_mr(mr))
                    check(has_failed && !ibv_dereg_mr(mr), "deregister");
                check(lmrs == before_, "LMRs are left, after " + std::to_string(n) +
                                           " good allocations, as many as " +
                                           std::to_string(lmrs - before_));
            }
        };
        sweep([&](unsigned good, bool& has_failed) {
            ibv_mr* mr = limited(good, has_failed, [&] { return reg(0); });
            check(mr || has_failed, "register");
            return mr;
        });
        std::printf("registering: %u allocations\n", n);
        sweep([&](unsigned good, bool& has_failed) {
            ibv_mr* mr = reg(0);
            check(mr != nullptr, "register");
            const int err = limited(good, has_failed, [&] { return change(mr); });
            check(!err || has_failed, "change");
            return mr;
        });
        std::printf("changing: %u allocations\n", n);
        sweep([&](unsigned good, bool& has_failed) {
            ibv_mr* mr = reg(0);
            check(mr != nullptr, "register");
            const int err = limited(good, has_failed, [&] { return ibv_dereg_mr(mr); });
            check(!err || has_failed, "deregister");
            return err ? mr : nullptr;
        });
        std::printf("deregistering: %u allocations\n", n);
    }

    // Memory that peers still reach is the program's to keep.
    void kept_lmrs() {
        ibv_mr* mr = reg(0);
        check(mr != nullptr, "register");
        may_free = false;
        check(change(mr) == IBV_REREG_MR_ERR_CMD, "changed, although peers reach what it was");
        check(ibv_dereg_mr(mr) == EIO, "deregistered, although peers reach it");
        may_free = true;
        check(!ibv_dereg_mr(mr) && lmrs == before_, "deregister");

        // What cannot be undone is, when something is registered later.
        may_free = false;
        good_lmrs = 1;
        mr = reg(0);
        check(mr && lmrs == before_ + 1, "pinned, and one LMR left");
        may_free = true;
        ibv_mr* later = reg(3, 1);
        check(later && lmrs == before_ + 1, "what was left is not freed");
        check(!ibv_dereg_mr(mr) && !ibv_dereg_mr(later) && lmrs == before_, "deregister both");
        std::printf("kept LMRs\n");
    }

    // If other memory cannot be registered, the registration is what it was.
    void unchanged() {
        ibv_mr* mr = reg(0);
        check(mr != nullptr, "register");
        const std::uint32_t key = mr->lkey;
        const long count = lmrs;
        good_lmrs = 0;
        check(change(mr) == IBV_REREG_MR_ERR_INPUT && mr->lkey == key && mr->addr == page(0) &&
                  lmrs == count,
              "unchanged");
        check(!change(mr) && mr->lkey != key && mr->addr == page(3), "changed");
        check(!ibv_dereg_mr(mr) && lmrs == before_, "deregister");
        std::printf("unchanged\n");
    }

  private:
    std::uint8_t* page(std::size_t n) { return pages_ + n * kPage; }
    // Three pages: of the first, new LMRs are needed before and behind that of the middle.
    ibv_mr* reg(std::size_t first, std::size_t n = 3) {
        return ibv_reg_mr(pd_, page(first), n * kPage, kReadWrite);
    }
    int change(ibv_mr* mr) {
        return ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_TRANSLATION, nullptr, page(3), 3 * kPage, 0);
    }

    ibv_context* const context_;
    ibv_pd* const pd_;
    std::unique_ptr<Memory> middle_;
    long before_ = 0;
    alignas(kPage) static inline std::uint8_t pages_[6 * kPage] = {};
};

// No completion and no event is lost when there is no memory, and no thread of the library fails.
void completions(const Options& options) {
    constexpr int count = 400;
    constexpr int rounds = 5;
    Loopback loop(options, 512);
    for (int round = 1; round <= rounds; round++) {
        loop.receive(count, 0);
        loop.arm();
        // All places of the queues have been used, so that nothing has to be allocated to post.
        refuses_all = round == rounds;
        loop.send(count, 0);
        loop.take_event();
        for (int i = 0; i < count; i++)
            loop.take_receive();
        refuses_all = false;
    }
    std::printf("completions: %d\n", count);
}

}  // namespace

int failures(const Options& options) {
    completions(options);
    Failures failures(options);
    failures.kept_lmrs();
    failures.unchanged();
    failures.allocations();
    std::printf("good\n");
    return 0;
}

}  // namespace verbs_check

// The library's, too. Inlined, they would seem not to belong together.
[[gnu::noinline]] void* operator new(std::size_t size) {
    using namespace verbs_check;
    const bool is_refused = refuses_all || size == refused || !is_good(good_allocations);
    void* memory = is_refused ? nullptr : std::malloc(size);
    if (!memory)
        throw std::bad_alloc();
    return memory;
}

[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }

extern "C" int ioctl(int fd, unsigned long request, ...) noexcept {
    using namespace verbs_check;
    va_list args;
    va_start(args, request);
    void* const arg = va_arg(args, void*);
    va_end(args);
    const bool registers = request == LITE_IOC_REGISTER;
    const bool frees = request == LITE_IOC_FREE;
    if ((registers && !is_good(good_lmrs)) || (frees && !may_free)) {
        errno = EIO;
        return -1;
    }
    const long ret = ::syscall(SYS_ioctl, fd, request, arg);
    if (ret >= 0)
        lmrs += registers - frees;
    return static_cast<int>(ret);
}
