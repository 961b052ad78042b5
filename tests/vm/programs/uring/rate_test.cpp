// SPDX-License-Identifier: MIT
// Operations of 64 bytes per second: one ioctl each, and commands, 64 at a time. Asserts only that
// they succeed; the rates are printed for people to read.
#include "fixture.hpp"

#include <array>
#include <chrono>
#include <cstdio>
#include <vector>

using namespace lite_test;

namespace {

using clock = std::chrono::steady_clock;

constexpr unsigned kAtATime = 64;
constexpr auto kTime = std::chrono::seconds(2);

struct Rate : Uring {
    lite::region lmr = region(4096, {env().peer()});
    std::vector<lite_op> ops = std::vector<lite_op>(kAtATime);
    std::vector<std::array<std::byte, 64>> buffers{kAtATime};

    void by_ioctl(bool write) {
        std::size_t done = 0;
        const auto begun = clock::now();
        for (; clock::now() - begun < kTime; done++) {
            auto& b = buffers[done % kAtATime];
            expect_equal(write ? lite_write(ctx, lmr.handle(), 0, b.data(), b.size())
                               : lite_read(ctx, lmr.handle(), 0, b.data(), b.size()),
                         0, "ioctl");
        }
        print(write, "ioctl", done, begun);
    }

    // As many in flight as the window has room for; completions are taken several at a time.
    void by_commands(bool write, const char* how, unsigned flags, unsigned at_a_time) {
        Ring ring(kAtATime, flags);
        std::vector<std::uint64_t> idle;
        for (unsigned i = 0; i < kAtATime; i++)
            idle.push_back(i);
        std::size_t done = 0;
        const auto begun = clock::now();
        bool more = true;
        while (more || idle.size() < kAtATime) {
            more = clock::now() - begun < kTime;
            for (; more && !idle.empty(); idle.pop_back()) {
                const auto i = idle.back();
                auto* sqe = ring.sqe(i);
                if (write)
                    lite_uring_write(sqe, ctx, &ops[i], lmr.handle(), i * 64, buffers[i].data(),
                                     64);
                else
                    lite_uring_read(sqe, ctx, &ops[i], lmr.handle(), i * 64, buffers[i].data(), 64);
            }
            const auto under_way = static_cast<unsigned>(kAtATime - idle.size());
            if (!under_way)
                break;
            expect(::io_uring_submit_and_wait(ring.get(), std::min(under_way, at_a_time)) >= 0,
                   "submit");
            io_uring_cqe* cqe = nullptr;
            while (!::io_uring_peek_cqe(ring.get(), &cqe)) {
                expect_equal(cqe->res, 0, "result");
                idle.push_back(cqe->user_data);
                ::io_uring_cqe_seen(ring.get(), cqe);
                done++;
            }
        }
        print(write, how, done, begun);
    }

    static void print(bool write, const char* how, std::size_t done, clock::time_point begun) {
        CHECK(done);
        const std::chrono::duration<double> took = clock::now() - begun;
        std::printf("%-5s %-32s %8.0f /s\n", write ? "write" : "read", how,
                    static_cast<double>(done) / took.count());
    }
};

}  // namespace

TEST_CASE_METHOD(Rate, "rate: 64 bytes", "[.rate]") {
    constexpr unsigned deferred = IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN;
    for (const bool write : {true, false}) {
        by_ioctl(write);
        by_commands(write, "io_uring, 16 at a time", 0, 16);
        by_commands(write, "io_uring, deferred, 16 at a time", deferred, 16);
        by_commands(write, "io_uring, deferred, all at once", deferred, kAtATime);
    }
}
