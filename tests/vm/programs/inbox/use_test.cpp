// SPDX-License-Identifier: MIT
// Requests taken in place: what comes, and in what way it is given back.
#include "fixture.hpp"

#include <set>
#include <thread>

#include <poll.h>
#include <unistd.h>

using namespace lite_test;

namespace {

constexpr Result success{};
constexpr Result failed(int err) { return {-err}; }

bool is_ready(lite_ctx* ctx, int timeout_ms) {
    pollfd fds{lite_fd(ctx), POLLIN, 0};
    return ::poll(&fds, 1, timeout_ms) > 0 && fds.revents & POLLIN;
}

}  // namespace

TEST_CASE_METHOD(RpcFixture, "inbox: requests and replies of all sizes", "[inbox]") {
    INFO(where.label);
    const auto function = enroll(server, params_of(LITE_RPC_BYTES_MAX));
    const Inbox inbox(server, function);
    const Echoing echoing(inbox);
    for (const std::size_t size : std::vector<std::size_t>{1, 2, 63, 64, 65, 127, 128, 4032, 4095,
                                                           4096, 4097, 32768, 65535, 65536}) {
        CAPTURE(size);
        const auto request = request_of(Wish::echo, size, size);
        Bytes reply;
        std::uint32_t status = 0;
        REQUIRE(call(function, request, &reply, size, -1, &status) == success);
        CHECK(reply == answer_to(request));
        CHECK(status == size);
    }
    Bytes reply;
    CHECK(call(function, {}, &reply, 0) == success);
}

TEST_CASE_METHOD(RpcFixture, "inbox: who calls, and an answer that is the request", "[inbox]") {
    INFO(where.label);
    const auto function = enroll(server, params_of(1000));
    const Inbox inbox(server, function);
    const auto wanted = request_of(Wish::echo, 700);
    std::thread caller([&] {
        Bytes reply;
        expect_equal(call(function, wanted, &reply, 900).value, 0, "call");
        expect(reply == wanted, "the reply");
    });
    const auto taken = take(inbox, patience_ms());
    CHECK(taken.request.function == function);
    CHECK(taken.request.node == client.node_id());
    CHECK(taken.request.uid == ::getuid());
    CHECK(taken.request.gid == ::getgid());
    CHECK(taken.request.reply_room == 900);
    CHECK(taken.request.flags == 0);
    CHECK(taken.copy() == wanted);
    CHECK(lite_inbox_reply(inbox, taken.request.token, 0, taken.data, 1001) == -E2BIG);
    CHECK(lite_inbox_reply(inbox, taken.request.token, 0, nullptr, 10) == -EFAULT);
    CHECK(lite_inbox_reply(inbox, taken.request.token + (1ULL << 32), 0, taken.data, 1) == -ENOENT);
    CHECK(lite_inbox_reply(inbox, taken.request.token, 0, taken.data, 700) == 0);
    CHECK(lite_inbox_reply(inbox, taken.request.token, 0, taken.data, 700) == -ENOENT);
    CHECK(lite_inbox_done(inbox, taken.request.token) == -ENOENT);
    caller.join();

    lite_rpc_request request{};
    const void* data = nullptr;
    CHECK(lite_inbox_next(inbox, 0, &request, &data) == -EAGAIN);
    CHECK(lite_inbox_next(inbox, 20, &request, &data) == -ETIMEDOUT);
    CHECK(call(function, Bytes(10), nullptr, 100, 30) == failed(ETIMEDOUT));

    // It is there although its caller is not; and giving it back is no error.
    const auto late = take(inbox, patience_ms());
    CHECK(lite_inbox_reply(inbox, late.request.token, 0, late.data, 5) == 0);

    std::thread reset(
        [&] { expect_equal(call(function, Bytes(3), nullptr).value, -ECONNRESET, "call"); });
    const auto dropped = take(inbox, patience_ms());
    CHECK(lite_inbox_done(inbox, dropped.request.token) == 0);
    reset.join();

    // One that is given back twice does not take the answer of another one with it.
    std::thread answered([&] { expect_equal(call(function, Bytes(3), nullptr).value, 0, "call"); });
    const auto last = take(inbox, patience_ms());
    lite_ioc_rpc_next next{};
    next.size = sizeof(next);
    next.flags = LITE_RPC_NOWAIT | LITE_RPC_REPLY;
    next.function = function;
    next.token = last.request.token;
    next.n_done = 1;
    next.done[0] = dropped.request.token;
    CHECK(::ioctl(lite_fd(server), LITE_IOC_RPC_NEXT, &next) == -1);
    CHECK(errno == ENOENT);
    CHECK(next.answered == 1);
    answered.join();
}

TEST_CASE_METHOD(RpcFixture, "inbox: what is wrong with the wish for one", "[inbox]") {
    INFO(where.label);
    auto params = params_of();
    const auto function = enroll(server, params);
    lite_inbox* inbox = nullptr;
    CHECK(lite_inbox_open(server, function + 1, 0, &inbox) == -ENOENT);
    CHECK(lite_inbox_open(client, function, 0, &inbox) == -ENOENT);
    CHECK(lite_inbox_open(server, function, LITE_INBOX_DEPTH_MAX + 1, &inbox) == -EINVAL);
    as_user({1000, 1000}, [&] {
        lite_inbox* mine = nullptr;
        expect_equal(lite_inbox_open(server, function, 0, &mine), -EACCES, "as somebody else");
    });
    // Its rings have addresses of clients' memory in them.
    for (const bool replies : {false, true}) {
        auto long_params = params_of();
        (replies ? long_params.max_reply : long_params.max_request) = LITE_RPC_BYTES_MAX + 1;
        const auto long_function = enroll(server, long_params);
        CHECK(lite_inbox_open(server, long_function, 0, &inbox) == -EOPNOTSUPP);
    }
    lite_ioc_rpc_inbox args{};
    args.size = sizeof(args);
    args.function = function;
    args.flags = 1;
    CHECK(::ioctl(lite_fd(server), LITE_IOC_RPC_INBOX, &args) == -1);
    CHECK(errno == EOPNOTSUPP);
    {
        const Inbox first(server, function, LITE_INBOX_DEPTH_MAX);
        CHECK(lite_inbox_open(server, function, 0, &inbox) == -EBUSY);
    }
    const Inbox second(server, function, 1);
    lite_ioc_rpc_next next{};
    next.size = sizeof(next);
    next.flags = 1U << 9;
    next.function = function;
    CHECK(::ioctl(lite_fd(server), LITE_IOC_RPC_NEXT, &next) == -1);
    CHECK(errno == EOPNOTSUPP);
    next.flags = LITE_RPC_NOWAIT;
    next.n_done = LITE_INBOX_DONE_MAX + 1;
    CHECK(::ioctl(lite_fd(server), LITE_IOC_RPC_NEXT, &next) == -1);
    CHECK(errno == EINVAL);
    next.n_done = 1;
    CHECK(::ioctl(lite_fd(server), LITE_IOC_RPC_NEXT, &next) == -1);
    CHECK(errno == ENOENT);
}

TEST_CASE_METHOD(RpcFixture, "inbox: messages: in their order, none lost, none twice", "[inbox]") {
    INFO(where.label);
    const auto function = enroll(server, params_of(1000));
    const std::uint32_t depth = GENERATE(1U, 5U, 32U);
    CAPTURE(depth);
    const Inbox inbox(server, function, depth);
    const std::uint32_t count = static_cast<std::uint32_t>(env().scaled(1000));
    std::thread sender([&] {
        Bytes message(1000);
        for (std::uint32_t i = 0; i < count; i++) {
            std::memcpy(message.data(), &i, sizeof(i));
            expect_equal(
                lite_rpc_send(client, node, function, message.data(), 4 + i % 900, patience_ms()),
                0, "send");
        }
    });
    Taken taken;
    for (std::uint32_t i = 0; i < count; i++) {
        REQUIRE(lite_inbox_reply_next(inbox, &taken.request, &taken.data, 0, nullptr, 0,
                                      patience_ms()) == 0);
        std::uint32_t number = 0;
        std::memcpy(&number, taken.data, sizeof(number));
        REQUIRE(number == i);
        REQUIRE(taken.request.length == 4 + i % 900);
        REQUIRE(taken.request.token != 0);
        REQUIRE(taken.request.flags == LITE_RPC_REQ_ONEWAY);
    }
    sender.join();
    // A message can be answered by nothing only.
    CHECK(lite_inbox_reply(inbox, taken.request.token, 0, "x", 1) == -EINVAL);
    CHECK(lite_inbox_reply(inbox, taken.request.token, 0, nullptr, 0) == 0);
    CHECK(lite_inbox_next(inbox, 0, &taken.request, &taken.data) == -EAGAIN);
    // Those given back have made room for as many.
    for (int i = 0; i < LITE_RPC_DEPTH; i++)
        REQUIRE(lite_rpc_send(client, node, function, "x", 1, patience_ms()) == 0);
}

TEST_CASE_METHOD(RpcFixture, "inbox: no more than its depth, and the others in time", "[inbox]") {
    INFO(where.label);
    const auto function = enroll(server, params_of(100));
    const Inbox inbox(server, function, 3);
    for (char c = 'a'; c < 'k'; c++)
        REQUIRE(lite_rpc_send(client, node, function, &c, 1, patience_ms()) == 0);
    std::vector<Taken> held;
    for (int i = 0; i < 3; i++)
        held.push_back(take(inbox, patience_ms()));
    lite_rpc_request request{};
    const void* data = nullptr;
    CHECK(lite_inbox_next(inbox, 20, &request, &data) == -ETIMEDOUT);
    CHECK(!is_ready(server, 0));
    // From the last to the first: places come free in any order.
    CHECK(lite_inbox_done(inbox, held[2].request.token) == 0);
    CHECK(is_ready(server, patience_ms()));
    held[2] = take(inbox, patience_ms());
    CHECK(lite_inbox_next(inbox, 0, &request, &data) == -EAGAIN);
    CHECK(!is_ready(server, 0));
    std::string seen;
    for (const auto& taken : held)
        seen += *static_cast<const char*>(taken.data);
    CHECK(seen == "abd");
    // A thread in RECV gets what is not in the inbox.
    char byte = 0;
    REQUIRE(lite_rpc_recv(server, function, &byte, 1, patience_ms(), &request) == 0);
    CHECK(byte == 'e');
    CHECK(request.token == 0);
    for (const auto& taken : held)
        CHECK(lite_inbox_done(inbox, taken.request.token) == 0);
    for (const char c : {'f', 'g', 'h', 'i', 'j'}) {
        const auto taken = take(inbox, patience_ms());
        CHECK(*static_cast<const char*>(taken.data) == c);
        CHECK(lite_inbox_done(inbox, taken.request.token) == 0);
    }
}

TEST_CASE_METHOD(RpcFixture, "inbox: many callers, several threads", "[inbox]") {
    INFO(where.label);
    const auto function = enroll(server, params_of());
    const Inbox inbox(server, function);
    const Echoing echoing(inbox, 3);
    Threads callers;
    for (std::uint64_t i = 0; i < 8; i++)
        callers.start([&, i] {
            for (std::uint64_t k = 0; k < env().scaled(200); k++) {
                const auto request = request_of(Wish::echo, 1 + (i * 977 + k * 31) % 4000, k);
                Bytes reply;
                expect_equal(call(function, request, &reply).value, 0, "call");
                expect(reply == answer_to(request), "the reply");
            }
        });
    callers.join();
}

TEST_CASE_METHOD(RpcFixture, "inbox: several processes serve one function", "[inbox]") {
    INFO(where.label);
    auto params = params_of();
    params.function = 3100;
    params.flags = LITE_RPC_SHARED;
    const auto serving = [&](Signal& ready) {
        Context mine(where.server);
        enroll(mine, params);
        const Inbox inbox(mine, 3100);
        const Echoing echoing(inbox);
        ready.post();
        for (;;)
            ::pause();
    };
    Shared<Signal> ready;
    REQUIRE(enroll(server, params) == 3100);
    const Inbox inbox(server, 3100);
    const Echoing echoing(inbox);
    Threads callers;
    std::atomic<bool> end = false;
    std::atomic<std::uint64_t> calls = 0;
    for (std::uint64_t i = 0; i < 4; i++)
        callers.start([&, i] {
            for (std::uint64_t k = 0; !end; k++) {
                const auto request = request_of(Wish::echo, 1 + (i * 977 + k * 31) % 4000, k);
                Bytes reply;
                const auto result = call(3100, request, &reply);
                // That of a process that was killed.
                if (result == failed(ECONNRESET))
                    continue;
                expect_equal(result.value, 0, "call");
                expect(reply == answer_to(request), "the reply");
                calls++;
            }
        });
    for (std::size_t i = 0; i < env().scaled(5, 2); i++) {
        Child other([&] { serving(*ready); });
        ready->wait("another server");
        const auto before = calls.load();
        wait_until("calls", [&] { return calls > before + 50; });
        other.kill(SIGKILL);
        (void)other.wait();
    }
    end = true;
    callers.join();
}
