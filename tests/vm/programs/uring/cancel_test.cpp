// SPDX-License-Identifier: MIT
// Commands that wait are ended: they are cancelled, their ring is closed, or their process is
// killed.
#include "fixture.hpp"

#include <array>
#include <chrono>
#include <csignal>
#include <optional>
#include <vector>

#include <unistd.h>

using namespace lite_test;
using std::chrono::steady_clock;

namespace {

// One waiting command of each kind.
struct Waiting {
    explicit Waiting(Uring& uring)
        : other(static_cast<int>(env().indexes.back())),
          function(mute_function(uring.ctx)),
          lmr(uring.node.alloc(
              {.length = 4096, .nodes = {env().remote.empty() ? env().self : env().peer()}})) {
        expect_equal(lite_lock(uring.ctx, lmr.handle(), 8, 99, 0, LITE_FOREVER), 0, "lock");
    }

    // @data + 0 to 3: a receive, a call, a lock, a barrier.
    void submit(Ring& ring, lite_ctx* ctx, std::uint64_t data) {
        lite_uring_recv(ring.sqe(data), ctx, &recv, function, buffer.data(), buffer.size(), -1);
        // A call to the same node: that receive takes its request and does not answer, or no
        // receive takes it.
        lite_uring_call(ring.sqe(data + 1), ctx, &call, 0, function, buffer.data(), 8, reply.data(),
                        reply.size(), LITE_TIMEOUT_MAX);
        lite_uring_lock(ring.sqe(data + 2), ctx, &lock, lmr.handle(), 8, 100, 0, LITE_FOREVER);
        lite_uring_barrier(ring.sqe(data + 3), ctx, &barrier, lmr.handle(), 64, 5, LITE_FOREVER);
        ring.submit();
    }

    lite::context other;
    std::uint32_t function;
    lite::region lmr;
    std::array<std::byte, 64> buffer{};
    std::array<std::byte, 64> reply{};
    lite_ioc_rpc_recv recv{};
    lite_ioc_rpc_call call{};
    lite_ioc_lock lock{};
    lite_ioc_barrier barrier{};
};

bool is_cancelled(int result) { return result == -ECANCELED || result == -EINTR; }

// Commands that wait occupy worker threads, so later ones need more of them.
void more_workers(Ring& ring) {
    unsigned limits[] = {64, 64};
    expect_equal(::io_uring_register_iowq_max_workers(ring.get(), limits), 0, "workers");
}

void wait_taken(Ring& ring, std::uint64_t recv) { REQUIRE(ring.wait(recv) == 0); }

std::int64_t milliseconds_of(steady_clock::time_point begun) {
    return std::chrono::duration_cast<std::chrono::milliseconds>(steady_clock::now() - begun)
        .count();
}

}  // namespace

TEST_CASE_METHOD(Uring, "cancel: a receive, a call, a lock, a barrier", "[uring]") {
    const unsigned flags =
        GENERATE(0U, unsigned{IORING_SETUP_SINGLE_ISSUER} | unsigned{IORING_SETUP_DEFER_TASKRUN});
    Ring ring(64, flags);
    more_workers(ring);
    Waiting w(*this);
    w.submit(ring, ctx, 10);
    wait_taken(ring, 10);  // the call's request
    lite_ioc_rpc_recv again{};
    lite_uring_recv(ring.sqe(14), ctx, &again, w.function, w.buffer.data(), w.buffer.size(), -1);
    ring.submit();
    CHECK_FALSE(ring.over(11, 300));
    for (const std::uint64_t data : {14U, 11U, 12U, 13U}) {
        INFO("command " << data);
        CHECK_FALSE(ring.over(data, 1));
        const auto begun = steady_clock::now();
        ring.cancel(data, 1);
        CHECK(is_cancelled(ring.wait(data)));
        CHECK(milliseconds_of(begun) < patience().count() / 4);
        const int asked = ring.wait(1);
        CHECK((asked == 0 || asked == -EALREADY));
    }
    // The cancelled commands have left nothing: the lock can be taken, the barrier counts no
    // arrival, the call's request cannot be answered.
    REQUIRE(lite_unlock(ctx, w.lmr.handle(), 8, 99) == 0);
    REQUIRE(lite_lock(ctx, w.lmr.handle(), 8, 101, 0, static_cast<int>(patience().count())) == 0);
    REQUIRE(lite_unlock(ctx, w.lmr.handle(), 8, 101) == 0);
    CHECK(lite_barrier(ctx, w.lmr.handle(), 64, 1, static_cast<int>(patience().count())) == 0);
    // A cancelled receive does not take a new request.
    lite_ioc_rpc_call call{};
    lite_uring_call(ring.sqe(20), ctx, &call, 0, w.function, w.buffer.data(), 8, w.reply.data(),
                    w.reply.size(), static_cast<int>(patience().count()));
    ring.submit();
    lite_rpc_request request{};
    REQUIRE(lite_rpc_recv(ctx, w.function, w.buffer.data(), w.buffer.size(),
                          static_cast<int>(patience().count()), &request) == 0);
    REQUIRE(lite_rpc_reply(ctx, request.token, 5, nullptr, 0) == 0);
    CHECK(ring.wait(20) == 0);
    CHECK(call.status == 5);
}

TEST_CASE_METHOD(Uring, "cancel: a call is answered, a lock given, while others wait", "[uring]") {
    Ring ring(64);
    more_workers(ring);
    Waiting w(*this);
    w.submit(ring, ctx, 10);
    wait_taken(ring, 10);
    CHECK(w.recv.length == 8);
    lite_ioc_rpc_recv answer{};
    lite_uring_reply(ring.sqe(1), ctx, &answer, w.recv.token, 7, "pong", 4);
    CHECK(ring.run(1) == 0);
    CHECK(answer.answered == 1);
    CHECK(ring.wait(11) == 0);
    CHECK(w.call.status == 7);
    CHECK(w.call.reply_len == 4);
    CHECK(std::string_view(reinterpret_cast<const char*>(w.reply.data()), 4) == "pong");
    // No request: the result comes at once. LITE must not return -EAGAIN to io_uring itself, which
    // would try again.
    lite_ioc_rpc_recv none{};
    lite_uring_recv(ring.sqe(2), ctx, &none, w.function, w.buffer.data(), w.buffer.size(), 0);
    CHECK(ring.run(2) == -EAGAIN);
    lite_ioc_unlock unlock{};
    lite_uring_unlock(ring.sqe(3), ctx, &unlock, w.lmr.handle(), 8, 99);
    CHECK(ring.run(3) == 0);
    CHECK(ring.wait(12) == 0);
    lite_uring_unlock(ring.sqe(3), ctx, &unlock, w.lmr.handle(), 8, 100);
    CHECK(ring.run(3) == 0);
    lite_uring_unlock(ring.sqe(3), ctx, &unlock, w.lmr.handle(), 8, 100);
    CHECK(ring.run(3) == -EPERM);
    ring.cancel(13, 4);
    CHECK(is_cancelled(ring.wait(13)));
}

TEST_CASE_METHOD(Uring, "cancel: a ring is closed, and its process goes on", "[uring]") {
    std::optional<Ring> ring(64U);
    more_workers(*ring);
    Waiting w(*this);
    w.submit(*ring, ctx, 10);
    wait_taken(*ring, 10);
    CHECK_FALSE(ring->over(12, 200));
    ring.reset();
    // The kernel ends the commands in the background.
    REQUIRE(lite_unlock(ctx, w.lmr.handle(), 8, 99) == 0);
    REQUIRE(lite_lock(ctx, w.lmr.handle(), 8, 101, 0, static_cast<int>(patience().count())) == 0);
    REQUIRE(lite_unlock(ctx, w.lmr.handle(), 8, 101) == 0);
    wait_until("the barrier counts no arrival", [&] {
        const int err = lite_barrier(ctx, w.lmr.handle(), 64, 1, 1000);
        return err == 0;
    });
}

TEST_CASE_METHOD(Uring, "cancel: a process with a full ring is killed, or exits", "[uring]") {
    const bool kill = GENERATE(true, false);
    INFO((kill ? "killed" : "exits"));
    auto lmr =
        node.alloc({.length = 4096, .nodes = {env().remote.empty() ? env().self : env().peer()}});
    NamedLmr named(dev, 4096, {}, 0600);
    const Shared<Signal> full;
    Child child([&] {
        Uring mine;
        Ring ring(256);
        more_workers(ring);
        Waiting w(mine);
        auto place = mine.node.map(named.name(), kAccess);
        w.submit(ring, mine.ctx, 10);
        std::vector<lite_op> ops(200);
        std::vector<lite_ioc_rpc_recv> recvs(40);
        std::array<std::byte, 64> buffer{};
        for (std::size_t i = 0; i < recvs.size(); i++)
            lite_uring_recv(ring.sqe(100 + i), mine.ctx, &recvs[i], w.function, buffer.data(),
                            buffer.size(), -1);
        ring.submit();
        for (std::size_t i = 0; i < ops.size(); i++)
            lite_uring_write(ring.sqe(1000 + i), mine.ctx, &ops[i], w.lmr.handle(), 512,
                             buffer.data(), buffer.size());
        ring.submit();
        const_cast<Shared<Signal>&>(full)->post();
        if (!kill)
            ::_exit(0);
        for (;;)
            ::pause();
    });
    const_cast<Shared<Signal>&>(full)->wait("a full ring");
    const auto begun = steady_clock::now();
    if (kill)
        child.kill(SIGKILL);
    child.wait();
    CHECK(milliseconds_of(begun) < patience().count() / 4);
}

TEST_CASE_METHOD(Uring, "cancel: an LMR is freed while commands use it", "[uring]") {
    const std::vector<std::uint32_t> nodes{env().remote.empty() ? env().self : env().peer()};
    const std::size_t rounds = env().scaled(20, 3);
    Ring ring(64);
    std::vector<lite_op> ops(32);
    std::array<std::byte, 64> buffer{};
    for (std::size_t round = 0; round < rounds; round++) {
        NamedLmr named(dev, 4096, nodes);
        auto lmr = node.map(named.name(), kAccess);
        for (std::size_t i = 0; i < ops.size(); i++)
            lite_uring_write(ring.sqe(i), ctx, &ops[i], lmr.handle(), i * 64, buffer.data(), 64);
        ring.submit();
        dev.free(named.name());
        for (std::size_t i = 0; i < ops.size(); i++) {
            const int result = ring.wait(i);
            CHECK((result == 0 || result == -EIDRM));
        }
        lite_uring_write(ring.sqe(1), ctx, ops.data(), lmr.handle(), 0, buffer.data(), 64);
        CHECK(ring.run(1) == -EIDRM);
    }
}

TEST_CASE_METHOD(Uring, "cancel: a handle is closed while commands use it", "[uring]") {
    const std::vector<std::uint32_t> nodes{env().remote.empty() ? env().self : env().peer()};
    Ring ring(64);
    NamedLmr named(dev, 4096, nodes);
    std::vector<lite_op> ops(32);
    std::array<std::byte, 64> buffer{};
    for (std::size_t round = 0; round < env().scaled(20, 3); round++) {
        auto lmr = node.map(named.name(), kAccess);
        for (std::size_t i = 0; i < ops.size(); i++)
            lite_uring_read(ring.sqe(i), ctx, &ops[i], lmr.handle(), i * 64, buffer.data(), 64);
        ring.submit();
        lmr.unmap();
        for (std::size_t i = 0; i < ops.size(); i++) {
            const int result = ring.wait(i);
            CHECK((result == 0 || result == -EBADF));
        }
    }
}
