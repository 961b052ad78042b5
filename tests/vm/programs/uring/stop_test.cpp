// SPDX-License-Identifier: MIT
// The node is stopped, or its peer's machine, with commands in flight. The test that starts this
// with "[stop]", "[peer]" or "[full]" does that.
#include "fixture.hpp"

#include <array>
#include <cstdio>
#include <vector>

using namespace lite_test;

TEST_CASE_METHOD(Uring, "stop: commands end when the node does", "[.stop]") {
    Ring ring(256);
    unsigned limits[] = {64, 64};
    REQUIRE(::io_uring_register_iowq_max_workers(ring.get(), limits) == 0);
    const auto function = mute_function(ctx);
    auto lmr = region(4096, {env().peer()});
    REQUIRE(lite_lock(ctx, lmr.handle(), 8, 1, 0, LITE_FOREVER) == 0);
    std::array<std::byte, 64> buffer{};
    std::array<std::byte, 64> reply{};
    lite_ioc_rpc_call call{};
    lite_ioc_lock lock{};
    lite_ioc_barrier barrier{};
    std::vector<lite_ioc_rpc_recv> recvs(8);
    for (std::size_t i = 0; i < recvs.size(); i++)
        lite_uring_recv(ring.sqe(10 + i), ctx, &recvs[i], function, buffer.data(), buffer.size(),
                        -1);
    lite_uring_call(ring.sqe(1), ctx, &call, 0, function, buffer.data(), 8, reply.data(),
                    reply.size(), LITE_TIMEOUT_MAX);
    lite_uring_lock(ring.sqe(2), ctx, &lock, lmr.handle(), 8, 2, 0, LITE_FOREVER);
    lite_uring_barrier(ring.sqe(3), ctx, &barrier, lmr.handle(), 64, 5, LITE_FOREVER);
    ring.submit();
    CHECK_FALSE(ring.over(2, 300));
    std::printf("ready\n");
    std::fflush(stdout);

    // Writes all the time, until a write fails; then all else ends.
    std::vector<lite_op> ops(32);
    int err = 0;
    while (!err) {
        for (std::size_t i = 0; i < ops.size(); i++)
            lite_uring_write(ring.sqe(100 + i), ctx, &ops[i], lmr.handle(), 512, buffer.data(), 64);
        ring.submit();
        for (std::size_t i = 0; i < ops.size(); i++) {
            const int result = ring.wait(100 + i);
            err = result ? result : err;
        }
    }
    CHECK((err == -ENODEV || err == -EHOSTDOWN || err == -ENOTCONN || err == -EIDRM ||
           err == -ESTALE || err == -EBADF));
    // Except for the receive that had taken the call's request before.
    for (std::size_t i = 0; i < recvs.size(); i++) {
        const int result = ring.wait(10 + i);
        CHECK((result == -ENODEV || result == 0));
    }
    for (const std::uint64_t data : {1U, 2U, 3U}) {
        INFO("command " << data);
        CHECK(ring.wait(data) < 0);
    }
    lite_op op{};
    lite_uring_write(ring.sqe(5), ctx, &op, lmr.handle(), 512, buffer.data(), 64);
    CHECK(ring.run(5) == -ENODEV);
}

TEST_CASE_METHOD(Uring, "stop: commands end when the peer dies", "[.peer]") {
    Ring ring(256);
    auto lmr = region(8192, {env().peer()});
    std::array<std::byte, 4096> buffer{};
    std::vector<lite_op> ops(48);
    lite_ioc_lock lock{};
    REQUIRE(lite_lock(ctx, lmr.handle(), 8, 1, 0, LITE_FOREVER) == 0);
    lite_uring_lock(ring.sqe(1), ctx, &lock, lmr.handle(), 8, 2, 0, LITE_FOREVER);
    ring.submit();
    CHECK_FALSE(ring.over(1, 300));
    std::printf("ready\n");
    std::fflush(stdout);

    // Operations of all kinds, all the time, until one fails.
    std::map<int, int> seen;
    while (seen.empty()) {
        for (std::size_t i = 0; i < ops.size(); i++) {
            auto* sqe = ring.sqe(100 + i);
            const std::size_t n = i % 8 ? 64 : buffer.size();
            if (i % 3 == 0)
                lite_uring_write(sqe, ctx, &ops[i], lmr.handle(), 512, buffer.data(), n);
            else if (i % 3 == 1)
                lite_uring_read(sqe, ctx, &ops[i], lmr.handle(), 512, buffer.data(), n);
            else
                lite_uring_fetch_add(sqe, ctx, &ops[i], lmr.handle(), 16, 1);
        }
        ring.submit();
        for (std::size_t i = 0; i < ops.size(); i++) {
            const int result = ring.wait(100 + i);
            if (result)
                seen[result]++;
        }
    }
    for (const auto& [result, count] : seen) {
        INFO(count << " times");
        CHECK((result == -EHOSTDOWN || result == -ETIMEDOUT));
    }
    CHECK(ring.wait(1) == -EHOSTDOWN);
    lite_uring_write(ring.sqe(2), ctx, ops.data(), lmr.handle(), 512, buffer.data(), 64);
    CHECK(ring.run(2) == -EHOSTDOWN);
}

// The test that starts this with "[full]" stops the peer's machine when this is ready, and lets it
// go on when all is submitted.
TEST_CASE_METHOD(Uring, "full: a submission waits for no send queue", "[.full]") {
    constexpr std::size_t kWrites = 400;
    constexpr std::uint64_t kReply = 1000;
    const auto function = mute_function(ctx);
    const auto lmr = region(4096, {env().peer()});
    std::printf("function %u\n", function);
    std::fflush(stdout);
    std::array<std::byte, 64> buffer{};
    Ring ring(512);
    unsigned limits[] = {8, 8};
    REQUIRE(::io_uring_register_iowq_max_workers(ring.get(), limits) == 0);
    lite_ioc_rpc_recv taken{};
    lite_uring_recv(ring.sqe(1), ctx, &taken, function, buffer.data(), buffer.size(), -1);
    REQUIRE(ring.run(1) == 0);
    std::printf("ready\n");
    std::fflush(stdout);
    REQUIRE(std::getchar() == '\n');

    // More writes than all queue pairs have slots.
    std::vector<lite_op> ops(kWrites);
    for (std::size_t i = 0; i < kWrites; i++)
        lite_uring_write(ring.sqe(2 + i), ctx, &ops[i], lmr.handle(), 0, buffer.data(), 8);
    ring.submit();
    lite_ioc_rpc_recv answer{};
    lite_uring_reply(ring.sqe(kReply), ctx, &answer, taken.token, 0, "pong", 4);
    ring.submit();
    std::printf("submitted\n");
    std::fflush(stdout);
    for (std::size_t i = 0; i < kWrites; i++)
        REQUIRE(ring.wait(2 + i) == 0);
    CHECK(ring.wait(kReply) == 0);
}
