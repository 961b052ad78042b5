// SPDX-License-Identifier: MIT
// Calls that succeed, and each way in which a call can fail.
#include "fixture.hpp"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <set>
#include <thread>
#include <vector>

#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

using namespace lite_test;

namespace {

// Fresh memory without any pages so far.
struct Mapped {
    explicit Mapped(std::size_t n)
        : size(n),
          at(static_cast<std::byte*>(
              ::mmap(nullptr, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0))) {
        REQUIRE(at != MAP_FAILED);
    }
    ~Mapped() { ::munmap(at, size); }
    Mapped(const Mapped&) = delete;
    Mapped& operator=(const Mapped&) = delete;
    // The memory from there on becomes inaccessible.
    void close(std::size_t from) const { REQUIRE(!::mprotect(at + from, size - from, PROT_NONE)); }

    std::size_t size;
    std::byte* at;
};

}  // namespace

TEST_CASE_METHOD(RpcFixture, "calls: requests and replies of all sizes", "[rpc]") {
    INFO(where.label);
    const auto function = enroll(server, params_of(LITE_RPC_BYTES_MAX));
    const Serving serving(server, LITE_RPC_BYTES_MAX);
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
    CHECK(reply.empty());
}

TEST_CASE_METHOD(RpcFixture, "calls: what does not fit", "[rpc]") {
    INFO(where.label);
    const auto function = enroll(server, params_of(1000));
    const Serving serving(server, 1000);
    CHECK(call(function, request_of(Wish::echo, 1000), nullptr) == success);
    CHECK(call(function, request_of(Wish::echo, 1001), nullptr) == failed(E2BIG));
    CHECK(call(function, request_of(Wish::echo, 100000), nullptr) == failed(E2BIG));

    std::size_t length = 0;
    CHECK(call(function, request_of(Wish::echo, 500), nullptr, 499, -1, nullptr, &length) ==
          failed(EMSGSIZE));
    CHECK(length == 500);
    CHECK(call(function, request_of(Wish::echo, 500), nullptr, 0, -1, nullptr, &length) ==
          failed(EMSGSIZE));
    CHECK(length == 500);
    CHECK(call(function, request_of(Wish::echo, 500), nullptr, 500) == success);
}

TEST_CASE_METHOD(RpcFixture, "calls: a reply longer than the function allows", "[rpc]") {
    INFO(where.label);
    const auto function = enroll(server, params_of(1000));
    std::thread caller([&] { expect_equal(call(function, Bytes(10), nullptr).value, 0, "call"); });
    Bytes buffer(1001);
    lite_rpc_request request{};
    REQUIRE(lite_rpc_recv(server, function, buffer.data(), buffer.size(), patience_ms(),
                          &request) == 0);
    CHECK(lite_rpc_reply(server, request.token, 0, buffer.data(), 1001) == -E2BIG);
    CHECK(lite_rpc_reply(server, request.token, 0, nullptr, 10) == -EFAULT);
    CHECK(lite_rpc_reply(server, request.token + 1, 0, buffer.data(), 1) == -ENOENT);
    CHECK(lite_rpc_reply(server, request.token, 0, buffer.data(), 1000) == 0);
    CHECK(lite_rpc_reply(server, request.token, 0, buffer.data(), 1000) == -ENOENT);
    caller.join();
}

TEST_CASE_METHOD(RpcFixture, "calls: a buffer too small for a request, or invalid", "[rpc]") {
    INFO(where.label);
    const auto function = enroll(server, params_of(1000));
    std::thread caller([&] { expect_equal(call(function, Bytes(700), nullptr).value, 0, "call"); });
    Bytes buffer(1000);
    lite_rpc_request request{};
    CHECK(lite_rpc_recv(server, function, buffer.data(), 699, patience_ms(), &request) ==
          -EMSGSIZE);
    CHECK(request.length == 700);
    CHECK(request.token == 0);
    CHECK(lite_rpc_recv(server, 0, nullptr, 1000, patience_ms(), &request) == -EFAULT);
    REQUIRE(lite_rpc_recv(server, 0, buffer.data(), 700, patience_ms(), &request) == 0);
    CHECK(request.function == function);
    CHECK(request.node == client.node_id());
    CHECK(request.uid == ::getuid());
    CHECK(request.gid == ::getgid());
    CHECK(request.reply_room == 1000);
    CHECK(lite_rpc_reply(server, request.token, 0, nullptr, 0) == 0);
    caller.join();
    CHECK(lite_rpc_recv(server, 0, buffer.data(), 700, 0, &request) == -EAGAIN);
    CHECK(lite_rpc_recv(server, 0, buffer.data(), 700, 20, &request) == -ETIMEDOUT);
}

TEST_CASE_METHOD(RpcFixture, "calls: no process serves it", "[rpc]") {
    INFO(where.label);
    CHECK(call(4711, Bytes(10), nullptr) == failed(ECONNREFUSED));
    const auto function = enroll(server, params_of());
    {
        const Serving serving(server, 4096);
        CHECK(call(function, request_of(Wish::echo, 10), nullptr) == success);
        REQUIRE(lite_rpc_unregister(server, function) == 0);
        CHECK(call(function, request_of(Wish::echo, 10), nullptr) == failed(ECONNREFUSED));
    }
    CHECK(lite_rpc_unregister(server, function) == -ENOENT);
    lite_rpc_request request{};
    std::byte buffer{};
    CHECK(lite_rpc_recv(server, function, &buffer, 1, 0, &request) == -ENOENT);
    CHECK(lite_rpc_recv(server, 0, &buffer, 1, 0, &request) == -ENOENT);
}

TEST_CASE_METHOD(RpcFixture, "calls: given up as they are taken, and their slots used by messages",
                 "[rpc]") {
    INFO(where.label);
    auto params = params_of(64);
    // Few records, so that a free record is used again at once.
    params.ring_size = 4096;
    const auto function = enroll(server, params);
    const auto until =
        std::chrono::steady_clock::now() + std::chrono::milliseconds(env().scaled(3000, 500));
    const auto over = [&] { return std::chrono::steady_clock::now() >= until; };
    std::atomic<bool> end = false;
    std::mutex lock;
    std::vector<std::uint64_t> came;
    // Calls are taken and not answered.
    Threads takers;
    for (int i = 0; i < 4; i++)
        takers.start([&] {
            Bytes buffer(64);
            lite_rpc_request request{};
            while (!end) {
                const int err =
                    lite_rpc_recv(server, function, buffer.data(), buffer.size(), 20, &request);
                if (err == -ETIMEDOUT)
                    continue;
                expect_equal(err, 0, "take");
                const bool message = request.flags & LITE_RPC_REQ_ONEWAY;
                expect_equal(message, !request.token, "a call has a token, a message none");
                if (!message)
                    continue;
                std::uint64_t number = 0;
                std::memcpy(&number, buffer.data(), sizeof(number));
                const std::scoped_lock locked(lock);
                came.push_back(number);
            }
        });
    Threads callers;
    for (int i = 0; i < 8; i++)
        callers.start([&] {
            while (!over())
                expect_equal(call(function, Bytes(64), nullptr, 0, 1).value, -ETIMEDOUT, "call");
        });
    std::atomic<std::uint64_t> sent = 0;
    for (int i = 0; i < 2; i++)
        callers.start([&] {
            while (!over()) {
                const std::uint64_t number = sent++;
                expect_equal(
                    lite_rpc_send(client, node, function, &number, sizeof(number), patience_ms()),
                    0, "send");
            }
        });
    callers.join();
    // Each message that was sent successfully comes exactly once, and no other.
    wait_until("all messages", [&] {
        const std::scoped_lock locked(lock);
        return came.size() >= sent;
    });
    end = true;
    takers.join();
    std::sort(came.begin(), came.end());
    REQUIRE(came.size() == sent);
    for (std::size_t i = 0; i < came.size(); i++)
        REQUIRE(came[i] == i);
    const Serving serving(server, 64);
    for (int i = 0; i < 2 * LITE_RPC_DEPTH; i++)
        REQUIRE(call(function, request_of(Wish::echo, 64), nullptr) == success);
}

TEST_CASE_METHOD(RpcFixture, "calls: a wait for a request can end early", "[rpc]") {
    INFO(where.label);
    if (where.client != where.server)
        return;
    const auto function = enroll(server, params_of());
    std::byte buffer{};
    // A signal with a handler ends the wait. It is sent until the thread waits.
    struct sigaction before {};
    struct sigaction noted {};
    noted.sa_handler = [](int) {};
    REQUIRE(::sigaction(SIGUSR1, &noted, &before) == 0);
    std::atomic<int> ended = 0;
    std::thread waiting([&] {
        lite_rpc_request request{};
        ended = lite_rpc_recv(server, 0, &buffer, 1, -1, &request);
    });
    wait_until("it is interrupted", [&] {
        ::pthread_kill(waiting.native_handle(), SIGUSR1);
        return ended != 0;
    });
    waiting.join();
    CHECK(ended == -EINTR);
    REQUIRE(::sigaction(SIGUSR1, &before, nullptr) == 0);

    // The wait ends when no function is left.
    ended = 0;
    Threads waiters;
    for (int i = 0; i < 3; i++)
        waiters.start([&, i] {
            lite_rpc_request request{};
            std::byte byte{};
            expect_equal(lite_rpc_recv(server, i == 1 ? function : 0, &byte, 1, -1, &request),
                         -ENOENT, "recv");
            ended++;
        });
    REQUIRE(lite_rpc_unregister(server, function) == 0);
    waiters.join();
    CHECK(ended == 3);
}

TEST_CASE_METHOD(RpcFixture, "calls: a server that comes back, alike or changed", "[rpc]") {
    INFO(where.label);
    auto params = params_of();
    params.function = 3000;
    for (const std::uint32_t max : {4096U, 4096U, 100U, 65536U, 65536U}) {
        params.max_request = params.max_reply = max;
        Context next(where.server);
        REQUIRE(enroll(next, params) == 3000);
        const Serving serving(next, max);
        const auto request = request_of(Wish::echo, max, max);
        Bytes reply;
        CHECK(call(3000, request, &reply) == success);
        CHECK(reply == answer_to(request));
        CHECK(lite_rpc_unregister(next, 3000) == 0);
    }
}

TEST_CASE_METHOD(RpcFixture, "calls: memory that was never touched, or cannot be", "[rpc]") {
    INFO(where.label);
    constexpr std::size_t size = LITE_RPC_BYTES_MAX;
    const auto function = enroll(server, params_of(size));
    const Serving serving(server, size);
    const auto answer = answer_to(Bytes(size));
    const auto is_answer = [&](const Mapped& reply) {
        return std::equal(answer.begin(), answer.end(), reply.at);
    };
    for (int i = 0; i < 3; i++) {
        const Mapped request(size);
        const Mapped reply(size);
        std::size_t length = 0;
        REQUIRE(lite_rpc_call(client, node, function, request.at, size, reply.at, size, &length,
                              patience_ms(), nullptr) == 0);
        CHECK(length == size);
        CHECK(is_answer(reply));

        const Mapped later(size);
        const Mapped collected(size);
        REQUIRE(lite_rpc_start(client, node, function, later.at, size, size, patience_ms(), 1) ==
                0);
        lite_rpc_result result{};
        REQUIRE(lite_rpc_collect(client, collected.at, size, patience_ms(), &result) == 0);
        CHECK(result.error == 0);
        CHECK(result.length == size);
        CHECK(is_answer(collected));

        // Only half of it is accessible.
        const Mapped half(size);
        half.close(size / 2);
        CHECK(lite_rpc_call(client, node, function, half.at, size, reply.at, size, &length,
                            patience_ms(), nullptr) == -EFAULT);
        CHECK(lite_rpc_call(client, node, function, request.at, size, half.at, size, &length,
                            patience_ms(), nullptr) == -EFAULT);
        CHECK(lite_rpc_start(client, node, function, half.at, size, size, patience_ms(), 2) ==
              -EFAULT);
        CHECK(lite_rpc_collect(client, nullptr, 0, -1, &result) == -ENOENT);
        REQUIRE(lite_rpc_start(client, node, function, request.at, size, size, patience_ms(), 3) ==
                0);
        CHECK(lite_rpc_collect(client, half.at, size, patience_ms(), &result) == -EFAULT);
        CHECK(lite_rpc_collect(client, collected.at, size, 0, &result) == 0);
    }
}

TEST_CASE_METHOD(RpcFixture, "calls: no two requests have the same token", "[rpc]") {
    INFO(where.label);
    // Each function gets a new ring, in place of the ring of the function before.
    std::set<std::uint64_t> tokens;
    for (int i = 0; i < 20; i++) {
        const auto function = enroll(server, params_of());
        std::thread caller(
            [&] { expect_equal(call(function, Bytes(10), nullptr).value, 0, "call"); });
        Bytes buffer(4096);
        lite_rpc_request request{};
        REQUIRE(lite_rpc_recv(server, 0, buffer.data(), buffer.size(), patience_ms(), &request) ==
                0);
        CHECK(tokens.insert(request.token).second);
        CHECK(lite_rpc_reply(server, request.token, 0, nullptr, 0) == 0);
        caller.join();
        REQUIRE(lite_rpc_unregister(server, function) == 0);
    }
}

TEST_CASE_METHOD(RpcFixture, "calls: a time-out, and the late reply", "[rpc]") {
    INFO(where.label);
    const auto function = enroll(server, params_of());
    Bytes buffer(4096);
    for (int i = 0; i < 20; i++) {
        const auto begun = std::chrono::steady_clock::now();
        CHECK(call(function, Bytes(1000, std::byte{1}), nullptr, 4096, 30) == failed(ETIMEDOUT));
        CHECK(since(begun).count() >= 30);
        lite_rpc_request request{};
        // The request was either removed from the queue by then, or is still there for a moment.
        const int err = lite_rpc_recv(server, function, buffer.data(), buffer.size(), 0, &request);
        if (!err)
            (void)lite_rpc_reply(server, request.token, 0, buffer.data(), 4096);
        else
            CHECK(err == -EAGAIN);
    }
    // Taken, and answered after the caller has gone: the next call sees nothing of that.
    int brief = 50;
    for (int taken = 0; taken < 20;) {
        std::thread caller([&, brief] {
            expect_equal(call(function, Bytes(1000), nullptr, 4096, brief).value, -ETIMEDOUT,
                         "call");
        });
        lite_rpc_request request{};
        const int came =
            lite_rpc_recv(server, function, buffer.data(), buffer.size(), brief + 1000, &request);
        caller.join();
        // On a busy machine the call may time out before its request is here.
        if (came == -ETIMEDOUT) {
            brief *= 2;
            REQUIRE(brief < patience_ms());
            continue;
        }
        REQUIRE(came == 0);
        taken++;
        wait_until("the token is of no use any more", [&] {
            const int err = lite_rpc_reply(server, request.token, 0, buffer.data(), 4096);
            return err == -ENOENT;
        });
    }
    const Serving serving(server, 4096);
    for (std::size_t i = 0; i < 200; i++) {
        const auto request = request_of(Wish::echo, 1 + i * 20, i);
        Bytes reply;
        REQUIRE(call(function, request, &reply) == success);
        REQUIRE(reply == answer_to(request));
    }
}

namespace {

// A process takes one of four calls of function 3001, and is killed. Returns the milliseconds until
// the last call has ended.
std::int64_t kill_a_server(RpcFixture& f) {
    auto params = params_of();
    params.function = 3001;
    Shared<Signal> ready;
    Child served([&] {
        Context mine(f.where.server);
        f.enroll(mine, params);
        ready->post();
        Bytes buffer(4096);
        lite_rpc_request request{};
        const auto limit = RpcFixture::patience_ms();
        expect_equal(lite_rpc_recv(mine, 0, buffer.data(), buffer.size(), limit, &request), 0,
                     "recv");
        ready->post();
        for (;;)
            ::pause();
    });
    ready->wait("a server");
    std::atomic<int> reset = 0;
    std::atomic<int> refused = 0;
    std::chrono::steady_clock::time_point killed;
    Threads callers;
    std::atomic<std::int64_t> slowest = 0;
    const auto body = [&] {
        const auto result = f.call(3001, Bytes(10), nullptr, 100, RpcFixture::patience_ms());
        const auto took = since(killed).count();
        if (took > slowest)
            slowest = took;
        reset += result == failed(ECONNRESET);
        refused += result == failed(ECONNREFUSED);
    };
    callers.start(body);
    ready->wait("a request taken");
    for (int i = 0; i < 3; i++)
        callers.start(body);
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    killed = std::chrono::steady_clock::now();
    served.kill(SIGKILL);
    callers.join();
    REQUIRE(reset == 1);
    REQUIRE(refused == 3);
    (void)served.wait();
    return slowest.load();
}

}  // namespace

TEST_CASE_METHOD(RpcFixture, "calls: a server that dies, and the calls in its queue", "[rpc]") {
    INFO(where.label);
    // The calls end at once. On a busy machine only the quickest of several rounds tells that.
    const std::int64_t soon = 5000 * env().slowness;
    std::int64_t quickest = soon;
    for (int i = 0; i < 3 && quickest >= soon; i++)
        quickest = std::min(quickest, kill_a_server(*this));
    CHECK(quickest < soon);
}

TEST_CASE_METHOD(RpcFixture, "calls: a child that dies does not take its parent's requests along",
                 "[rpc]") {
    INFO(where.label);
    const auto function = enroll(server, params_of());
    for (const bool becomes_another : {false, true}) {
        std::thread lost([&] {
            expect_equal(call(function, Bytes(1), nullptr, 10, patience_ms()).value, -ECONNRESET,
                         "call");
        });
        Child child([&] {
            std::byte byte{};
            lite_rpc_request request{};
            expect_equal(lite_rpc_recv(server, 0, &byte, 1, patience_ms(), &request), 0, "recv");
            if (becomes_another)
                ::execl("/bin/true", "true", nullptr);
        });
        child.join();
        lost.join();
    }

    std::thread kept([&] {
        expect_equal(call(function, Bytes(1), nullptr, 10, patience_ms()).value, 0, "call");
    });
    std::byte byte{};
    lite_rpc_request request{};
    REQUIRE(lite_rpc_recv(server, 0, &byte, 1, patience_ms(), &request) == 0);
    in_child([] {});
    CHECK(lite_rpc_reply(server, request.token, 0, nullptr, 0) == 0);
    kept.join();
}

TEST_CASE_METHOD(RpcFixture, "calls: several processes serve one function", "[rpc]") {
    INFO(where.label);
    auto params = params_of();
    params.function = 3002;
    params.flags = LITE_RPC_SHARED;
    Context other(where.server);
    REQUIRE(enroll(server, params) == 3002);
    auto differs = params;
    differs.max_reply = 17;
    CHECK(lite_rpc_register(other, &differs, nullptr) == -EEXIST);
    differs = params;
    differs.flags = 0;
    CHECK(lite_rpc_register(other, &differs, nullptr) == -EEXIST);
    CHECK(lite_rpc_register(server, &params, nullptr) == -EEXIST);
    as_user({1000, 1000}, [&] {
        Context foreign(where.server);
        expect_equal(lite_rpc_register(foreign, &params, nullptr), -EEXIST, "register");
    });
    REQUIRE(enroll(other, params) == 3002);
    {
        const Serving first(server, 4096, 2);
        const Serving second(other, 4096, 2);
        Threads callers;
        for (std::uint64_t i = 0; i < 8; i++)
            callers.start([&, i] {
                for (std::uint64_t k = 0; k < env().scaled(200); k++) {
                    const auto request = request_of(Wish::echo, 1 + (i * 977 + k * 31) % 4000, k);
                    Bytes reply;
                    expect_equal(call(3002, request, &reply).value, 0, "call");
                    expect(reply == answer_to(request), "the reply");
                }
            });
        callers.join();
        REQUIRE(lite_rpc_unregister(other, 3002) == 0);
        CHECK(call(3002, request_of(Wish::echo, 9), nullptr) == success);
    }
}

TEST_CASE_METHOD(RpcFixture, "calls: a shared function is joined by its name", "[rpc]") {
    INFO(where.label);
    Context other(where.server);
    auto params = params_of();
    params.name = "joined";
    const auto alone = enroll(server, params);
    params.flags = LITE_RPC_SHARED;
    CHECK(lite_rpc_register(other, &params, nullptr) == -EEXIST);
    REQUIRE(lite_rpc_unregister(server, alone) == 0);

    const auto first = enroll(server, params);
    CHECK(enroll(other, params) == first);
    CHECK(lite_rpc_register(other, &params, nullptr) == -EEXIST);
    params.max_reply++;
    Context third(where.server);
    CHECK(lite_rpc_register(third, &params, nullptr) == -EEXIST);
    // The function goes on when its first server unregisters it.
    REQUIRE(lite_rpc_unregister(server, first) == 0);
    lite_ioc_rpc_find found{};
    CHECK(lite_rpc_find(client, node, "joined", &found) == 0);
    CHECK(found.function == first);
}

TEST_CASE_METHOD(RpcFixture, "calls: no room in the ring", "[rpc]") {
    INFO(where.label);
    auto params = params_of(LITE_RPC_BYTES_MAX);
    params.ring_size = LITE_RPC_RING_DEFAULT;
    const auto function = enroll(server, params);
    Threads callers;
    // Two of the largest requests fill the smallest number of chunks; the other calls wait in line.
    std::atomic<int> ended = 0;
    for (int i = 0; i < 12; i++)
        callers.start([&] {
            expect_equal(call(function, Bytes(65536), nullptr, 65536, patience_ms()).value, 0,
                         "call");
            ended++;
        });
    Bytes buffer(65536);
    lite_rpc_request request{};
    REQUIRE(lite_rpc_recv(server, 0, buffer.data(), buffer.size(), patience_ms(), &request) == 0);
    wait_until("no more room",
               [&] { return call(function, Bytes(65536), nullptr, 65536, 0) == failed(EAGAIN); });
    CHECK(lite_rpc_reply(server, request.token, 0, nullptr, 0) == 0);
    {
        const Serving serving(server, 65536);
        callers.join();
    }
    CHECK(ended == 12);
}

TEST_CASE_METHOD(RpcFixture, "calls: a caller that is killed", "[rpc]") {
    INFO(where.label);
    const auto function = enroll(server, params_of());
    for (int i = 0; i < 10; i++) {
        Child caller([&] { (void)call(function, Bytes(3000), nullptr, 4096, patience_ms()); });
        Bytes buffer(4096);
        lite_rpc_request request{};
        REQUIRE(lite_rpc_recv(server, 0, buffer.data(), buffer.size(), patience_ms(), &request) ==
                0);
        caller.kill(SIGKILL);
        (void)caller.wait();
        wait_until("the call is over", [&] {
            return lite_rpc_reply(server, request.token, 0, buffer.data(), 4096) == -ENOENT;
        });
    }
    const Serving serving(server, 4096);
    CHECK(call(function, request_of(Wish::echo, 4000), nullptr) == success);
}

TEST_CASE_METHOD(RpcFixture, "calls: a function found by name is no other one of its number",
                 "[rpc]") {
    INFO(where.label);
    auto params = params_of(4096, 0666);
    const auto name = unique_name("function");
    params.name = name.c_str();
    const auto function = enroll(server, params);
    Context by_name(where.client);
    lite_ioc_rpc_find found{};
    const auto send = [&](Context& from) {
        return lite_rpc_send(from, node, function, nullptr, 0, patience_ms());
    };
    // By a call: a message does not report its outcome.
    const auto refused = [&](Context& from) {
        return lite_rpc_call(from, node, function, nullptr, 0, nullptr, 0, nullptr, patience_ms(),
                             nullptr) == -ECONNREFUSED;
    };
    REQUIRE(lite_rpc_find(by_name, node, name.c_str(), &found) == 0);
    CHECK(send(by_name) == 0);

    // Another user registers the number; callers with and without a ring from before.
    server.close();
    Shared<Signal> served;
    Shared<Signal> done;
    Child other([&] {
        become({1000, 1000});
        Context foreign(where.server);
        auto own = params_of(4096, 0666);
        own.function = function;
        expect_equal(lite_rpc_register(foreign, &own, nullptr), 0, "register");
        served->post();
        done->wait("the end of the test");
    });
    served->wait("another serves the number");
    CHECK(refused(by_name));
    CHECK(send(client) == 0);
    CHECK(refused(by_name));
    lite_rpc_leg leg{};
    leg.node = node;
    CHECK(lite_rpc_multicall(by_name, function, nullptr, 0, &leg, 1, 0, patience_ms()) == 0);
    CHECK(leg.error == -ECONNREFUSED);
    done->post();
    other.join();

    // A caller that looks the name up again reaches the function that it has found.
    Context again(where.server);
    params.function = function;
    CHECK(lite_rpc_register(again, &params, nullptr) == 0);
    CHECK(refused(by_name));
    REQUIRE(lite_rpc_find(by_name, node, name.c_str(), &found) == 0);
    CHECK(send(by_name) == 0);

    // Also at its own node, which is 0 as well.
    if (where.client != where.server)
        return;
    again.close();
    Context third(where.server);
    CHECK(lite_rpc_register(third, &params, nullptr) == 0);
    CHECK(refused(by_name));
    REQUIRE(lite_rpc_find(by_name, 0, name.c_str(), &found) == 0);
    const Serving serving(third, 4096);
    const auto request = request_of(Wish::echo, 9);
    Bytes reply(4096);
    CHECK(lite_rpc_call(by_name, node, function, request.data(), request.size(), reply.data(),
                        reply.size(), nullptr, patience_ms(), nullptr) == 0);
}

TEST_CASE_METHOD(RpcFixture, "calls: names and numbers", "[rpc]") {
    INFO(where.label);
    auto params = params_of(123, 0640);
    const auto name = unique_name("function");
    params.name = name.c_str();
    const auto function = enroll(server, params);
    CHECK(function >= 32768);
    lite_ioc_rpc_find found{};
    REQUIRE(lite_rpc_find(client, node, name.c_str(), &found) == 0);
    CHECK(found.function == function);
    CHECK(found.mode == 0640);
    CHECK(found.max_request == 123);
    CHECK(lite_rpc_find(client, node, "no such name", &found) == -ECONNREFUSED);
    CHECK(lite_rpc_find(client, 60000, name.c_str(), &found) == -EHOSTUNREACH);
    params.function = 0;
    CHECK(lite_rpc_register(server, &params, nullptr) == -EEXIST);
    params = params_of();
    params.function = function;
    CHECK(lite_rpc_register(server, &params, nullptr) == -EEXIST);
    params.function = 5;
    as_user({1000, 1000}, [&] {
        Context foreign(where.server);
        expect_equal(lite_rpc_register(foreign, &params, nullptr), -EPERM, "register");
    });
    const std::string longest(LITE_FUNCTION_NAME_MAX + 1, 'x');
    params = params_of();
    params.name = longest.c_str();
    CHECK(lite_rpc_register(server, &params, nullptr) == -ENAMETOOLONG);
    params.name = "a\nb";
    CHECK(lite_rpc_register(server, &params, nullptr) == -EINVAL);
    params = params_of(LITE_RPC_BULK_MAX + 1);
    CHECK(lite_rpc_register(server, &params, nullptr) == -EINVAL);
    params = params_of();
    params.ring_size = 100;
    CHECK(lite_rpc_register(server, &params, nullptr) == -EINVAL);
    params = params_of();
    params.flags = 0x80;
    CHECK(lite_rpc_register(server, &params, nullptr) == -EOPNOTSUPP);
    params = params_of();
    for (int i = 1; i < LITE_RPC_FUNCTIONS_MAX; i++)
        CHECK(lite_rpc_register(server, &params, nullptr) == 0);
    CHECK(lite_rpc_register(server, &params, nullptr) == -EMFILE);
}
