// SPDX-License-Identifier: MIT
// Calls that are collected later, messages, poll(2).
#include "fixture.hpp"

#include "common/missing_page.hpp"

#include <atomic>
#include <map>
#include <set>
#include <thread>

#include <poll.h>
#include <sys/resource.h>

using namespace lite_test;

namespace {

short ready(lite_ctx* ctx, int timeout_ms) {
    pollfd fds{lite_fd(ctx), POLLIN, 0};
    return ::poll(&fds, 1, timeout_ms) > 0 ? fds.revents : short{0};
}

}  // namespace

TEST_CASE_METHOD(RpcFixture, "async: many at once, answered in any order", "[rpc]") {
    INFO(where.label);
    const auto function = enroll(server, params_of(16384));
    constexpr std::uint64_t count = 40;
    std::map<std::uint64_t, Bytes> wanted;
    lite_rpc_result result{};
    CHECK(lite_rpc_collect(client, nullptr, 0, -1, &result) == -ENOENT);
    std::thread served([&] {
        // Answered from the last to the first, in groups of four.
        Bytes buffer(16384);
        std::vector<std::pair<std::uint64_t, Bytes>> held;
        for (std::uint64_t i = 0; i < count; i++) {
            lite_rpc_request request{};
            expect_equal(
                lite_rpc_recv(server, 0, buffer.data(), buffer.size(), patience_ms(), &request), 0,
                "recv");
            held.emplace_back(request.token,
                              Bytes(buffer.begin(), buffer.begin() + request.length));
            if (held.size() < 4)
                continue;
            for (; !held.empty(); held.pop_back()) {
                const auto answer = answer_to(held.back().second);
                expect_equal(
                    lite_rpc_reply(server, held.back().first, 7, answer.data(), answer.size()), 0,
                    "reply");
            }
        }
    });
    for (std::uint64_t i = 0; i < count; i++) {
        const auto request = request_of(Wish::echo, 1 + i * 397, i);
        REQUIRE(lite_rpc_start(client, node, function, request.data(), request.size(), 16384,
                               patience_ms(), i) == 0);
        wanted[i] = answer_to(request);
    }
    Bytes buffer(16384);
    while (!wanted.empty()) {
        const int err = lite_rpc_collect(client, buffer.data(), 0, patience_ms(), &result);
        REQUIRE(err == -EMSGSIZE);
        REQUIRE(wanted.count(result.cookie));
        CHECK(result.length == wanted[result.cookie].size());
        CHECK(lite_rpc_collect(client, nullptr, buffer.size(), 0, &result) == -EFAULT);
        REQUIRE(ready(client, 0) & POLLIN);
        REQUIRE(lite_rpc_collect(client, buffer.data(), buffer.size(), 0, &result) == 0);
        CHECK(result.error == 0);
        CHECK(result.status == 7);
        CHECK(result.node == node);
        CHECK(result.function == function);
        CHECK(Bytes(buffer.begin(), buffer.begin() + result.length) == wanted[result.cookie]);
        wanted.erase(result.cookie);
    }
    CHECK(lite_rpc_collect(client, nullptr, 0, -1, &result) == -ENOENT);
    served.join();
}

TEST_CASE_METHOD(RpcFixture, "async: time-outs, servers that go, files that are closed", "[rpc]") {
    INFO(where.label);
    Context other(where.server);
    const auto function = enroll(other, params_of());
    lite_rpc_result result{};
    // A call that goes on, and ten that time out meanwhile, mostly after the last one has begun.
    REQUIRE(lite_rpc_start(client, node, function, "x", 1, 100, patience_ms(), 10) == 0);
    CHECK(lite_rpc_collect(client, nullptr, 0, 0, &result) == -EAGAIN);
    const int unit = 60 * env().slowness;
    for (std::uint64_t i = 0; i < 10; i++)
        REQUIRE(lite_rpc_start(client, node, function, "x", 1, 100,
                               unit * (15 + static_cast<int>(i)), i) == 0);
    std::set<std::uint64_t> seen;
    for (int i = 0; i < 10; i++) {
        REQUIRE(lite_rpc_collect(client, nullptr, 0, patience_ms(), &result) == 0);
        CHECK(result.error == -ETIMEDOUT);
        seen.insert(result.cookie);
    }
    CHECK(seen.size() == 10);
    CHECK(seen.count(10) == 0);

    for (std::uint64_t i = 0; i < 5; i++)
        REQUIRE(lite_rpc_start(client, node, function, "y", 1, 100, patience_ms(), i) == 0);
    // Takes the request of the first call, and one of the last five. Those that timed out may still
    // be in the queue.
    std::byte byte{};
    lite_rpc_request request{};
    do {
        REQUIRE(lite_rpc_recv(other, 0, &byte, 1, patience_ms(), &request) == 0);
    } while (byte != std::byte{'y'});
    other.close();
    int reset = 0;
    int refused = 0;
    for (int i = 0; i < 6; i++) {
        REQUIRE(lite_rpc_collect(client, nullptr, 0, patience_ms(), &result) == 0);
        reset += result.error == -ECONNRESET;
        refused += result.error == -ECONNREFUSED;
    }
    CHECK(reset == 2);
    CHECK(refused == 4);

    const auto again = enroll(server, params_of());
    for (int i = 0; i < 5; i++) {
        Context caller(where.client);
        for (std::uint64_t k = 0; k < 20; k++)
            REQUIRE(lite_rpc_start(caller, node, again, "x", 1, 4096, patience_ms(), k) == 0);
        REQUIRE(lite_rpc_recv(server, 0, &byte, 1, patience_ms(), &request) == 0);
    }
}

TEST_CASE_METHOD(RpcFixture, "messages: in their order, none lost, none twice", "[rpc]") {
    INFO(where.label);
    const auto function = enroll(server, params_of(1000));
    const std::uint32_t count = static_cast<std::uint32_t>(env().scaled(2000));
    std::thread sender([&] {
        Bytes message(1000);
        for (std::uint32_t i = 0; i < count; i++) {
            std::memcpy(message.data(), &i, sizeof(i));
            expect_equal(
                lite_rpc_send(client, node, function, message.data(), 4 + i % 900, patience_ms()),
                0, "send");
        }
    });
    Bytes buffer(1000);
    for (std::uint32_t i = 0; i < count; i++) {
        lite_rpc_request request{};
        REQUIRE(lite_rpc_recv(server, 0, buffer.data(), buffer.size(), patience_ms(), &request) ==
                0);
        std::uint32_t number = 0;
        std::memcpy(&number, buffer.data(), sizeof(number));
        REQUIRE(number == i);
        REQUIRE(request.length == 4 + i % 900);
        REQUIRE(request.token == 0);
        REQUIRE(request.flags == LITE_RPC_REQ_ONEWAY);
    }
    sender.join();
    lite_rpc_request request{};
    CHECK(lite_rpc_recv(server, 0, buffer.data(), buffer.size(), 0, &request) == -EAGAIN);
}

TEST_CASE_METHOD(RpcFixture, "messages: a server that does not take them slows the sender",
                 "[rpc]") {
    INFO(where.label);
    const auto function = enroll(server, params_of(100));
    int sent = 0;
    int err = 0;
    while (!err && sent < 1000) {
        err = lite_rpc_send(client, node, function, "hello", 5, 0);
        sent += !err;
    }
    CHECK(err == -EAGAIN);
    CHECK(sent == LITE_RPC_DEPTH);
    CHECK(lite_rpc_send(client, node, function, "hello", 5, 30) == -ETIMEDOUT);
    REQUIRE(ready(server, patience_ms()) & POLLIN);
    Bytes buffer(100);
    lite_rpc_request request{};
    for (int i = 0; i < sent; i++)
        REQUIRE(lite_rpc_recv(server, 0, buffer.data(), buffer.size(), patience_ms(), &request) ==
                0);
    CHECK(lite_rpc_recv(server, 0, buffer.data(), buffer.size(), 0, &request) == -EAGAIN);
    CHECK(ready(server, 0) == 0);
    CHECK(lite_rpc_send(client, node, function, "hello", 5, patience_ms()) == 0);
    CHECK(ready(server, patience_ms()) & POLLIN);
}

TEST_CASE_METHOD(RpcFixture, "messages: servers that do not take them slow no others", "[rpc]") {
    INFO(where.label);
    const auto quick = enroll(server, params_of(100));
    Threads servers;
    std::atomic<bool> over = false;
    servers.start([&] { serve(server, 100, [&] { return !over; }); });
    Context hung(where.server);
    int sent = 0;
    for (int i = 0; i < 10; i++) {
        const auto function = enroll(hung, params_of(100));
        const int before = sent;
        int err = 0;
        while (!(err = lite_rpc_send(client, node, function, "hello", 5, 0)))
            sent++;
        CHECK(err == -EAGAIN);
        CHECK(sent > before);
        for (std::uint64_t k = 0; k < 5; k++) {
            const auto request = request_of(Wish::echo, 50, k);
            Bytes reply;
            CHECK(call(quick, request, &reply) == Result{});
            CHECK(reply == answer_to(request));
        }
    }
    CHECK(sent > 3 * LITE_RPC_DEPTH);
    over = true;
    servers.join();
}

TEST_CASE_METHOD(RpcFixture, "poll: waiters are woken, by requests and by results", "[rpc]") {
    INFO(where.label);
    const auto function = enroll(server, params_of(100));
    std::byte buffer{};
    lite_rpc_request request{};
    lite_rpc_result result{};
    for (std::uint64_t i = 0; i < env().scaled(50); i++) {
        Threads watchers;
        watchers.start([&] { expect(ready(server, patience_ms()) & POLLIN, "a request"); });
        REQUIRE(lite_rpc_start(client, node, function, "x", 1, 100, patience_ms(), i) == 0);
        watchers.join();
        watchers.start([&] { expect(ready(client, patience_ms()) & POLLIN, "a result"); });
        REQUIRE(lite_rpc_recv(server, 0, &buffer, 1, 0, &request) == 0);
        REQUIRE(lite_rpc_reply(server, request.token, 0, nullptr, 0) == 0);
        watchers.join();
        REQUIRE(lite_rpc_collect(client, nullptr, 0, 0, &result) == 0);
        REQUIRE(result.cookie == i);
        REQUIRE(result.error == 0);
    }
    CHECK(ready(server, 0) == 0);
    CHECK(ready(client, 0) == 0);
}

namespace {

// How often the threads of this process have gone to sleep.
long sleeps() {
    rusage usage{};
    ::getrusage(RUSAGE_SELF, &usage);
    return usage.ru_nvcsw;
}

}  // namespace

TEST_CASE_METHOD(RpcFixture, "async: a reply wakes one of the collectors", "[rpc]") {
    INFO(where.label);
    const auto function = enroll(server, params_of(100));
    const std::uint64_t count = env().scaled(200);
    constexpr int crowd = 100;
    std::atomic<std::uint64_t> collected = 0;
    std::atomic<int> waiting = 0;
    Threads collectors;
    const auto begin = [&] {
        REQUIRE(lite_rpc_start(client, node, function, "x", 1, 0, patience_ms(), 0) == 0);
    };
    // One call more than the answers, so that collectors always have something to wait for.
    begin();
    for (int i = 0; i < crowd; i++) {
        collectors.start([&] {
            lite_rpc_result result{};
            waiting++;
            while (lite_rpc_collect(client, nullptr, 0, patience_ms(), &result) == 0)
                collected++;
        });
    }
    while (waiting < crowd)
        std::this_thread::yield();
    std::byte buffer{};
    lite_rpc_request request{};
    const auto answer = [&] {
        REQUIRE(lite_rpc_recv(server, 0, &buffer, 1, patience_ms(), &request) == 0);
        REQUIRE(lite_rpc_reply(server, request.token, 0, nullptr, 0) == 0);
    };
    const long before = sleeps();
    for (std::uint64_t i = 0; i < count; i++) {
        begin();
        answer();
        while (collected <= i)
            std::this_thread::yield();
    }
    const long slept = sleeps() - before;
    INFO(slept << " sleeps for " << count << " replies and " << crowd << " collectors");
    CHECK(slept < static_cast<long>(count) * crowd / 5);
    // All collectors end with the last call.
    answer();
    collectors.join();
    CHECK(collected == count + 1);
}

TEST_CASE_METHOD(RpcFixture, "async: the last place is taken while a request is paged in",
                 "[rpc]") {
    INFO(where.label);
    const auto function = enroll(server, params_of(100));
    const auto begin = [&](const void* request, std::uint64_t cookie) {
        return lite_rpc_start(client, node, function, request, 1, 0, patience_ms(), cookie);
    };
    std::thread served([&] {
        std::byte buffer{};
        lite_rpc_request request{};
        for (int i = 0; i < LITE_RPC_ASYNC_MAX; i++) {
            expect_equal(lite_rpc_recv(server, 0, &buffer, 1, patience_ms(), &request), 0, "recv");
            expect_equal(lite_rpc_reply(server, request.token, 0, nullptr, 0), 0, "reply");
        }
    });
    for (std::uint64_t i = 1; i < LITE_RPC_ASYNC_MAX; i++)
        REQUIRE(begin("x", i) == 0);
    Mapping memory(kPage);
    const MissingPage absent(memory.data());
    int late = 0;
    std::thread caller([&] { late = begin(memory.data(), 0); });
    absent.await();
    CHECK(begin("x", LITE_RPC_ASYNC_MAX) == 0);
    absent.come();
    caller.join();
    CHECK(late == -EMFILE);
    lite_rpc_result result{};
    for (int i = 0; i < LITE_RPC_ASYNC_MAX; i++)
        REQUIRE(lite_rpc_collect(client, nullptr, 0, patience_ms(), &result) == 0);
    CHECK(lite_rpc_collect(client, nullptr, 0, 0, &result) == -ENOENT);
    served.join();
}
