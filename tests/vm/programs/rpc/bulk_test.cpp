// SPDX-License-Identifier: MIT
// Requests and replies that are too long for a ring.
#include "fixture.hpp"

#include <lite/rpc.hpp>

#include <atomic>
#include <optional>
#include <set>
#include <thread>

#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

using namespace lite_test;

namespace {

constexpr std::size_t inline_max = LITE_RPC_BYTES_MAX;
constexpr std::uint32_t max = 4 << 20;

Bytes longer(std::uint32_t size) {
    Bytes request(5);
    request[0] = static_cast<std::byte>(Wish::longer);
    std::memcpy(&request[1], &size, sizeof(size));
    return request;
}

// Memory without pages so far.
class Fresh {
  public:
    explicit Fresh(std::size_t size)
        : size_(size),
          data_(::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)) {
        expect(data_ != MAP_FAILED, "mmap");
    }
    ~Fresh() { ::munmap(data_, size_); }
    std::byte* data() const { return static_cast<std::byte*>(data_); }
    bool holds(const Bytes& bytes) const {
        return std::memcmp(data_, bytes.data(), bytes.size()) == 0;
    }

  private:
    std::size_t size_;
    void* data_;
};

}  // namespace

TEST_CASE_METHOD(RpcFixture, "bulk: requests and replies of all sizes", "[bulk]") {
    INFO(where.label);
    const auto function = enroll(server, params_of(max));
    const Serving serving(server, max);
    for (const std::size_t size :
         std::vector<std::size_t>{1, 4096, 4097, inline_max, inline_max + 1, inline_max + 4096,
                                  131072, 131073, 1 << 20, (1 << 20) + 1, 3000000, max}) {
        CAPTURE(size);
        const auto request = request_of(Wish::echo, size, size);
        Bytes reply;
        std::uint32_t status = 0;
        REQUIRE(call(function, request, &reply, size, -1, &status) == success);
        CHECK(reply == answer_to(request));
        CHECK(status == size);
        // With more room than the reply uses.
        REQUIRE(call(function, request, &reply, max) == success);
        CHECK(reply == answer_to(request));
    }
}

TEST_CASE_METHOD(RpcFixture, "bulk: only one of the two is long", "[bulk]") {
    INFO(where.label);
    auto params = params_of(1000);
    params.max_reply = max;
    const auto asks_little = enroll(server, params);
    params = params_of(100);
    params.max_request = max;
    const auto says_little = enroll(server, params);
    // The longest request that fits into the record, and a reply by reference.
    params = params_of(inline_max);
    params.max_reply = max;
    const auto both = enroll(server, params);
    const Serving serving(server, max);
    Bytes reply;
    for (const std::uint32_t size : {0U, 1U, 4096U, 4097U, 65536U, 65537U, 1000001U, max}) {
        CAPTURE(size);
        REQUIRE(call(asks_little, longer(size), &reply, max) == success);
        CHECK(reply == Bytes(size, std::byte{0x77}));
        REQUIRE(call(both, longer(size), &reply, size) == success);
        CHECK(reply == Bytes(size, std::byte{0x77}));
    }
    CHECK(call(asks_little, request_of(Wish::echo, 1001), nullptr, max) == failed(E2BIG));
    std::size_t length = 0;
    auto request = longer(70);
    request.resize(max);
    REQUIRE(call(says_little, request, &reply, max) == success);
    CHECK(reply == Bytes(70, std::byte{0x77}));
    CHECK(call(says_little, request, &reply, 69, -1, nullptr, &length) == failed(EMSGSIZE));
    CHECK(length == 70);
    CHECK(call(both, longer(max), nullptr, 100000, -1, nullptr, &length) == failed(EMSGSIZE));
    CHECK(length == max);
    CHECK(call(both, longer(5000), nullptr, 4999, -1, nullptr, &length) == failed(EMSGSIZE));
    request = request_of(Wish::echo, inline_max);
    REQUIRE(call(both, request, &reply, max) == success);
    CHECK(reply == answer_to(request));
    CHECK(call(says_little, Bytes(max + 1), nullptr) == failed(E2BIG));
}

TEST_CASE_METHOD(RpcFixture, "bulk: memory that is not mapped, or not yet present", "[bulk]") {
    INFO(where.label);
    const auto function = enroll(server, params_of(max));
    const auto data = request_of(Wish::echo, max, 3);
    const Fresh reply(max);
    std::size_t length = 0;
    std::thread caller([&] {
        expect_equal(lite_rpc_call(client, node, function, data.data(), max, reply.data(), max,
                                   &length, patience_ms(), nullptr),
                     0, "call");
    });
    lite_rpc_request request{};
    const Fresh taken(max);
    CHECK(lite_rpc_recv(server, 0, taken.data(), max - 1, patience_ms(), &request) == -EMSGSIZE);
    CHECK(request.length == max);
    CHECK(lite_rpc_recv(server, 0, nullptr, max, patience_ms(), &request) == -EFAULT);
    REQUIRE(lite_rpc_recv(server, 0, taken.data(), max, patience_ms(), &request) == 0);
    CHECK(taken.holds(data));
    CHECK(lite_rpc_reply(server, request.token, 0, nullptr, max) == -EFAULT);
    CHECK(lite_rpc_reply(server, request.token, 0, taken.data(), max + 1) == -E2BIG);
    CHECK(lite_rpc_reply(server, request.token + 1, 0, taken.data(), max) == -ENOENT);
    // From memory that no process has touched.
    const Fresh zeroes(max);
    CHECK(lite_rpc_reply(server, request.token, 0, zeroes.data(), max) == 0);
    CHECK(lite_rpc_reply(server, request.token, 0, zeroes.data(), max) == -ENOENT);
    caller.join();
    CHECK(length == max);
    CHECK(reply.holds(Bytes(max)));
    CHECK(lite_rpc_call(client, node, function, nullptr, max, reply.data(), max, nullptr,
                        patience_ms(), nullptr) == -EFAULT);
    CHECK(lite_rpc_recv(server, 0, taken.data(), max, 0, &request) == -EAGAIN);

    // A reply to an invalid address is lost.
    const Serving serving(server, max);
    CHECK(lite_rpc_call(client, node, function, data.data(), max, nullptr, max, nullptr,
                        patience_ms(), nullptr) == -EFAULT);
    CHECK(call(function, data, nullptr, max) == success);
}

TEST_CASE_METHOD(RpcFixture, "bulk: a failed reply changes nothing", "[bulk]") {
    INFO(where.label);
    const auto function = enroll(server, params_of(max));
    const Bytes wanted(inline_max, std::byte{0x5a});
    Bytes reply;
    Result result;
    std::thread caller(
        [&] { result = call(function, request_of(Wish::echo, 100), &reply, max, patience_ms()); });
    lite_rpc_request request{};
    Bytes buffer(100);
    REQUIRE(lite_rpc_recv(server, 0, buffer.data(), buffer.size(), patience_ms(), &request) == 0);
    // A short reply to a call with room for a long one, from a buffer with an invalid second half.
    const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
    const Fresh pages(2 * page);
    REQUIRE(::mprotect(pages.data() + page, page, PROT_NONE) == 0);
    std::memset(pages.data(), 0, page);
    CHECK(lite_rpc_reply(server, request.token, 0, pages.data() + page - 2000, 4000) == -EFAULT);
    CHECK(lite_rpc_reply(server, request.token, 0, wanted.data(), wanted.size()) == 0);
    caller.join();
    CHECK(result == success);
    CHECK((reply == wanted));
}

TEST_CASE_METHOD(RpcFixture, "bulk: a time-out, and the late reply", "[bulk]") {
    INFO(where.label);
    const auto function = enroll(server, params_of(max));
    Bytes buffer(max);
    const Bytes long_request(1 << 20);
    const int limit = 150 * env().slowness;
    for (int i = 0; i < 5; i++) {
        // The request is taken, and answered after its caller has gone: call() checks its buffer
        // afterwards.
        std::thread caller([&] {
            expect_equal(call(function, long_request, nullptr, max, limit).value, -ETIMEDOUT,
                         "call");
        });
        lite_rpc_request request{};
        const int err =
            lite_rpc_recv(server, function, buffer.data(), buffer.size(), limit / 2, &request);
        if (!err && i % 2)
            (void)lite_rpc_reply(server, request.token + 1, 0, buffer.data(), max);
        caller.join();
        if (!err)
            wait_until("the token is of no use any more", [&] {
                return lite_rpc_reply(server, request.token, 0, buffer.data(), max) == -ENOENT;
            });
    }
    // The time-out comes at any moment while data is being moved.
    const Serving serving(server, max);
    auto asks = longer(max);
    asks.resize(max);  // long, and answered without work
    for (int i = 0; i < 30; i++) {
        const auto result = call(function, asks, nullptr, max, 1 + i * 2);
        CHECK((result == failed(ETIMEDOUT) || result == success));
    }
    const auto request = request_of(Wish::echo, max, 77);
    Bytes reply;
    REQUIRE(call(function, request, &reply, max, patience_ms()) == success);
    CHECK(reply == answer_to(request));
}

TEST_CASE_METHOD(RpcFixture, "bulk: a server survives a shortage of memory", "[bulk]") {
    INFO(where.label);
    lite::context mine(static_cast<int>(where.server));
    lite::function served(mine, {.max_request = 100, .max_reply = 1 << 20});
    std::optional<Context> greedy(std::in_place, where.server);
    const auto unserved = enroll(*greedy, params_of(LITE_RPC_BULK_MAX));
    const Bytes wanted(1 << 20, std::byte{0x77});
    std::atomic<bool> taken = false;
    std::atomic<bool> full = false;
    std::atomic<bool> end = false;
    std::atomic<bool> answered = false;
    Threads threads;
    threads.start([&] {
        served.serve(
            [&](const lite::call_info&, std::span<const std::byte>, std::vector<std::byte>& out) {
                taken = true;
                wait_until("the memory to be gone", [&] { return full.load(); });
                out = wanted;
                return 0U;
            },
            [&] { return !end; });
    });
    threads.start([&] {
        Bytes reply;
        expect_equal(
            call(served.number(), Bytes(1), &reply, wanted.size(), 2 * patience_ms()).value, 0,
            "the call");
        expect(reply == wanted, "the reply");
        answered = true;
    });
    wait_until("the call to be taken", [&] { return taken.load(); });
    // Requests that no server takes, until there is no room for a long one.
    const Fresh zeroes(LITE_RPC_BULK_MAX);
    for (std::size_t size = LITE_RPC_BULK_MAX; size > 2 * inline_max;) {
        const int err =
            lite_rpc_start(*greedy, node, unserved, zeroes.data(), size, 0, 2 * patience_ms(), 0);
        CHECK((!err || err == -ENOMEM));
        if (err)
            size /= 2;
    }
    full = true;
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
    CHECK(!answered);
    greedy.reset();
    wait_until("the answer", [&] { return answered.load(); });
    end = true;
    threads.join();
}

TEST_CASE_METHOD(RpcFixture, "bulk: callers and servers that are killed", "[bulk]") {
    INFO(where.label);
    auto params = params_of(max);
    params.function = 3100;
    for (int i = 0; i < 6; i++) {
        Shared<Signal> ready;
        Child served([&] {
            Context mine(where.server);
            enroll(mine, params);
            ready->post();
            serve(mine, max);
        });
        ready->wait("a server");
        Child caller([&] {
            auto asks = longer(max);
            asks.resize(max);
            for (;;)
                (void)call(3100, asks, nullptr, max, patience_ms());
        });
        std::this_thread::sleep_for(std::chrono::milliseconds(20 + 30 * i));
        (i % 2 ? caller : served).kill(SIGKILL);
        (void)(i % 2 ? caller : served).wait();
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
        (i % 2 ? served : caller).kill(SIGKILL);
        (void)(i % 2 ? served : caller).wait();
    }
    enroll(server, params);
    const Serving serving(server, max);
    const auto request = request_of(Wish::echo, max, 5);
    Bytes reply;
    REQUIRE(call(3100, request, &reply, max, patience_ms()) == success);
    CHECK(reply == answer_to(request));
}

TEST_CASE_METHOD(RpcFixture, "bulk: calls that are collected later, and messages", "[bulk]") {
    INFO(where.label);
    const auto function = enroll(server, params_of(max));
    constexpr std::uint64_t count = 8;
    {
        const Serving serving(server, max, 2);
        for (std::uint64_t i = 0; i < count; i++) {
            const auto request = request_of(Wish::echo, 60000 + i * 3000, i);
            REQUIRE(lite_rpc_start(client, node, function, request.data(), request.size(), 1 << 20,
                                   patience_ms(), i) == 0);
        }
        std::set<std::uint64_t> seen;
        for (std::uint64_t i = 0; i < count; i++) {
            lite_rpc_result result{};
            const Fresh reply(1 << 20);
            CHECK(lite_rpc_collect(client, nullptr, 100, patience_ms(), &result) == -EMSGSIZE);
            CHECK(lite_rpc_collect(client, nullptr, 1 << 20, patience_ms(), &result) == -EFAULT);
            REQUIRE(lite_rpc_collect(client, reply.data(), 1 << 20, patience_ms(), &result) == 0);
            CHECK(result.error == 0);
            seen.insert(result.cookie);
            CHECK(reply.holds(
                answer_to(request_of(Wish::echo, 60000 + result.cookie * 3000, result.cookie))));
        }
        CHECK(seen.size() == count);
    }
    // Neither collected nor answered: the calls go with their file.
    {
        Context other(where.client);
        const Bytes request(1 << 20);
        for (std::uint64_t i = 0; i < 3; i++)
            REQUIRE(lite_rpc_start(other, node, function, request.data(), request.size(), max,
                                   patience_ms(), i) == 0);
    }
    Bytes buffer(max);
    lite_rpc_request taken{};
    while (!lite_rpc_recv(server, 0, buffer.data(), buffer.size(), 100, &taken))
        (void)lite_rpc_reply(server, taken.token, 0, buffer.data(), max);

    std::thread sender([&] {
        for (std::uint32_t i = 0; i < 10; i++) {
            Bytes message(100000 * (1 + i % 4));
            std::memcpy(message.data(), &i, sizeof(i));
            expect_equal(lite_rpc_send(client, node, function, message.data(), message.size(),
                                       patience_ms()),
                         0, "send");
        }
    });
    for (std::uint32_t i = 0; i < 10; i++) {
        // On a busy machine a call of the closed file may come only now.
        do {
            REQUIRE(lite_rpc_recv(server, 0, buffer.data(), buffer.size(), patience_ms(), &taken) ==
                    0);
        } while (!(taken.flags & LITE_RPC_REQ_ONEWAY));
        std::uint32_t said = 0;
        std::memcpy(&said, buffer.data(), sizeof(said));
        CHECK(said == i);
        CHECK(taken.length == 100000 * (1 + i % 4));
        CHECK(taken.token == 0);
    }
    sender.join();
}

TEST_CASE_METHOD(RpcFixture, "bulk: many at the same time, short and long", "[bulk]") {
    INFO(where.label);
    const auto function = enroll(server, params_of(1 << 20));
    const Serving serving(server, 1 << 20, 3);
    Threads callers;
    for (std::uint64_t i = 0; i < 5; i++)
        callers.start([&, i] {
            for (std::uint64_t k = 0; k < env().scaled(60); k++) {
                const std::size_t size = 1 + (i * 97777 + k * 31013) % (k % 3 ? 5000 : 300000);
                const auto request = request_of(Wish::echo, size, i * 1000 + k);
                Bytes reply;
                expect_equal(
                    call(function, request, &reply, k % 2 ? size : 1 << 20, patience_ms()).value, 0,
                    "call");
                expect(reply == answer_to(request), "the reply");
            }
        });
    callers.join();
}
