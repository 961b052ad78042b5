// SPDX-License-Identifier: MIT
// Servers: requests that they cannot answer, users that may call, what a child has of its parent's
// objects in C++.
#include "fixture.hpp"

#include <lite/lite.hpp>
#include <lite/rpc.hpp>

#include <atomic>
#include <optional>
#include <stdexcept>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include <sys/ioctl.h>

using namespace lite_test;

namespace {

Bytes said(char what) { return Bytes(1, static_cast<std::byte>(what)); }

// Pages that may be registered, and that a child shares.
struct Pages {
    ~Pages() { unmap_shared(at, size); }
    std::span<std::byte> bytes() const { return {static_cast<std::byte*>(at), size}; }

    std::size_t size = 4096;
    void* at = map_shared(size);
};

}  // namespace

TEST_CASE_METHOD(RpcFixture, "serve: calls that cannot be answered fail, others are served",
                 "[rpc]") {
    INFO(where.label);
    lite::context mine(static_cast<int>(where.server));
    lite::function served(mine, {.max_request = 10, .max_reply = 10});
    std::atomic<bool> end = false;
    std::atomic<int> too_long = 0;
    std::atomic<int> thrown = 0;
    const auto handler = [](const lite::call_info&, std::span<const std::byte> request,
                            std::vector<std::byte>& reply) {
        const auto what = static_cast<char>(request[0]);
        if (what == 't')
            throw std::length_error("mine");
        reply.resize(what == 'l' ? 11 : 10);
        return 5U;
    };
    Threads servers;
    servers.start([&] {
        while (!end) {
            try {
                served.serve(handler, [&] { return !end; });
            } catch (const lite::error& e) {
                expect_equal(e.code().value(), E2BIG, "what serve() throws");
                too_long++;
            } catch (const std::length_error&) {
                thrown++;
            }
        }
    });
    for (int i = 0; i < 3; i++) {
        // Long before the calls time out.
        CHECK(call(served.number(), said('l'), nullptr, 100, patience_ms()) == failed(ECONNRESET));
        CHECK(call(served.number(), said('t'), nullptr, 100, patience_ms()) == failed(ECONNRESET));
        Bytes reply;
        std::uint32_t status = 0;
        CHECK(call(served.number(), said('e'), &reply, 100, patience_ms(), &status) == success);
        CHECK(reply.size() == 10);
        CHECK(status == 5);
    }
    // A program in C gives a request up without an answer; and only a request that it has.
    const auto function = enroll(server, params_of());
    Threads callers;
    for (int i = 0; i < 2; i++) {
        callers.start([&] {
            expect_equal(call(function, said('x'), nullptr, 0, patience_ms()).value, -ECONNRESET,
                         "a call");
        });
    }
    std::byte byte{};
    lite_rpc_request request{};
    REQUIRE(lite_rpc_recv(server, function, &byte, 1, patience_ms(), &request) == 0);
    CHECK(lite_rpc_done(server, request.token + 1) == -ENOENT);
    CHECK(lite_rpc_done(server, request.token) == 0);
    CHECK(lite_rpc_done(server, request.token) == -ENOENT);
    CHECK(lite_rpc_reply(server, request.token, 0, nullptr, 0) == -ENOENT);
    // A RECV that gives the request up, and looks for the next one.
    REQUIRE(lite_rpc_recv(server, function, &byte, 1, patience_ms(), &request) == 0);
    lite_ioc_rpc_recv args{};
    args.size = sizeof(args);
    args.flags = LITE_RPC_DROP | LITE_RPC_NOWAIT;
    args.token = request.token;
    const auto recv = [&] {
        return ::ioctl(lite_fd(server), LITE_IOC_RPC_RECV, &args) ? errno : 0;
    };
    CHECK(recv() == EINVAL);
    args.flags |= LITE_RPC_REPLY;
    args.reply_len = 1;
    CHECK(recv() == EINVAL);
    args.reply_len = 0;
    CHECK(recv() == EAGAIN);
    CHECK(args.answered == 1);
    callers.join();

    end = true;
    servers.join();
    CHECK(too_long == 3);
    CHECK(thrown == 3);
}

TEST_CASE_METHOD(RpcFixture, "fork: what a child destroys stays its parent's", "[rpc]") {
    INFO(where.label);
    const Pages pages;
    std::optional<lite::context> mine(std::in_place, static_cast<int>(where.server));
    std::optional<lite::region> region(mine->alloc({.length = 4096}));
    const auto name = unique_name("registered");
    std::optional<lite::registration> registered(mine->register_memory(pages.bytes(), name));
    std::optional<lite::function> served(
        std::in_place, *mine, lite::function_options{.max_request = 100, .max_reply = 100});
    region->store(0, std::uint64_t{77});

    in_child([&] {
        served.reset();
        registered.reset();
        region.reset();
        // A handle of its own in the same file: it goes with the object.
        lite_lh_t own = 0;
        {
            const auto mapped = mine->map(name);
            own = mapped.handle();
            expect(!mapped.inherited(), "a region that the child has made is its own");
        }
        std::byte byte{};
        expect_equal(lite_read(mine->get(), own, 0, &byte, 1), -EBADF, "a read by its handle");
        mine.reset();
    });

    CHECK(region->load<std::uint64_t>(0) == 77);
    (*registered)->store(8, std::uint64_t{78});
    CHECK(mine->map(name).load<std::uint64_t>(8) == 78);
    CHECK(static_cast<const std::uint64_t*>(pages.at)[1] == 78);
    Threads callers;
    std::atomic<bool> answered = false;
    callers.start([&] {
        Bytes reply;
        expect_equal(call(served->number(), said('e'), &reply, 100, patience_ms()).value, 0,
                     "a call");
        expect(reply == said('e'), "the reply");
        answered = true;
    });
    bool taken = false;
    served->serve(
        [&](const lite::call_info&, std::span<const std::byte> request,
            std::vector<std::byte>& reply) {
            taken = true;
            reply.assign(request.begin(), request.end());
            return 0U;
        },
        [&] { return !taken; });
    callers.join();
    CHECK(answered);

    // Calls that a child makes explicitly take effect for both.
    in_child([&] {
        region->unmap();
        (*registered)->free();
    });
    CHECK_THROWS_AS(region->load<std::uint64_t>(0), lite::error);
    CHECK_THROWS_AS(mine->map(name), lite::error);
}

TEST_CASE_METHOD(RpcFixture, "serve: a request ends with the process that answers it", "[rpc]") {
    INFO(where.label);
    const auto function = enroll(server, params_of());
    Threads callers;
    callers.start([&] {
        expect_equal(call(function, said('x'), nullptr, 100, patience_ms()).value, -ECONNRESET,
                     "a call");
    });
    std::byte byte{};
    lite_rpc_request request{};
    REQUIRE(lite_rpc_recv(server, function, &byte, 1, patience_ms(), &request) == 0);
    in_child([&] {
        expect_equal(lite_rpc_reply(server, request.token, 0, nullptr, 1), -EFAULT,
                     "a reply that is not there");
    });
    callers.join();
    CHECK(lite_rpc_reply(server, request.token, 0, nullptr, 0) == -ENOENT);
}

TEST_CASE_METHOD(RpcFixture, "serve: RECV without a request leaves its input", "[rpc]") {
    INFO(where.label);
    const auto function = enroll(server, params_of());
    Threads callers;
    callers.start([&] {
        expect_equal(call(function, said('x'), nullptr, 0, patience_ms()).value, 0, "a call");
    });
    lite_ioc_rpc_recv args{};
    args.size = sizeof(args);
    args.timeout_ms = patience_ms();
    args.buf_len = 1;
    // Taken, and given back as it can't be copied to address 0.
    CHECK(::ioctl(lite_fd(server), LITE_IOC_RPC_RECV, &args) == -1);
    CHECK(errno == EFAULT);
    CHECK(args.function == 0);
    CHECK(args.token == 0);
    std::byte byte{};
    args.buf = reinterpret_cast<std::uintptr_t>(&byte);
    CHECK(::ioctl(lite_fd(server), LITE_IOC_RPC_RECV, &args) == 0);
    CHECK(args.function == function);
    CHECK(lite_rpc_reply(server, args.token, 0, nullptr, 0) == 0);
    callers.join();
}

TEST_CASE_METHOD(RpcFixture, "serve: many calls at once although their replies may be long",
                 "[rpc]") {
    INFO(where.label);
    const auto function = enroll(server, params_of(LITE_RPC_BYTES_MAX));
    constexpr int count = 15;
    Threads callers;
    for (int i = 0; i < count; i++)
        callers.start([&] {
            expect_equal(call(function, Bytes(64), nullptr, 65536, patience_ms()).value, 0, "call");
        });
    // All are taken before one is answered.
    std::vector<std::uint64_t> tokens;
    Bytes buffer(65536);
    for (int i = 0; i < count; i++) {
        lite_rpc_request request{};
        REQUIRE(lite_rpc_recv(server, 0, buffer.data(), buffer.size(), patience_ms(), &request) ==
                0);
        tokens.push_back(request.token);
    }
    for (const auto token : tokens)
        CHECK(lite_rpc_reply(server, token, 0, nullptr, 0) == 0);
    callers.join();
}

// Large rings for all would take more than rings may.
TEST_CASE_METHOD(RpcFixture, "serve: rings are smaller when there are many", "[rpc]") {
    INFO(where.label);
    Context second(where.server);
    Context third(where.server);
    const auto enroll_all = [&](lite_ctx* ctx, std::vector<std::uint32_t>& functions) {
        for (int i = 0; i < LITE_RPC_FUNCTIONS_MAX; i++)
            functions.push_back(enroll(ctx, params_of(LITE_RPC_BYTES_MAX)));
    };
    std::vector<std::uint32_t> functions;
    for (lite_ctx* ctx : {static_cast<lite_ctx*>(server), static_cast<lite_ctx*>(second),
                          static_cast<lite_ctx*>(third)})
        enroll_all(ctx, functions);
    const Serving first_serves(server, LITE_RPC_BYTES_MAX);
    const Serving second_serves(second, LITE_RPC_BYTES_MAX);
    const Serving third_serves(third, LITE_RPC_BYTES_MAX);
    for (const auto function : functions) {
        const auto request = request_of(Wish::echo, 65536, function);
        Bytes reply;
        REQUIRE(call(function, request, &reply) == success);
        REQUIRE(reply == answer_to(request));
    }
}

TEST_CASE_METHOD(RpcFixture, "serve: users that may call", "[rpc]") {
    INFO(where.label);
    auto params = params_of();
    const Identity alice{1000, 1000};
    const Identity bob{1001, 1001};
    const Identity member{1002, 1002, {1000}};
    for (const auto& [mode, owner, group, others] :
         {std::tuple{0600U, true, false, false}, std::tuple{0060U, false, true, false},
          std::tuple{0006U, false, false, true}, std::tuple{0666U, true, true, true},
          std::tuple{0444U, false, false, false}}) {
        CAPTURE(mode);
        Shared<std::uint32_t> function;
        Shared<Signal> ready;
        Shared<Signal> done;
        params.mode = mode;
        Child served([&] {
            become(alice);
            Context mine(where.server);
            *function = enroll(mine, params);
            ready->post();
            std::thread end([&] {
                done->wait("the end");
                ::_exit(0);
            });
            serve(mine, 4096);
            end.join();
        });
        ready->wait("a server");
        const auto may = [&](const Identity& who, bool allowed) {
            // Several that ask for the same ring: only one of them binds it.
            as_user(who, [&] {
                std::vector<std::jthread> threads;
                for (int i = 0; i < 8; i++)
                    threads.emplace_back([&] {
                        expect_equal(call(*function, request_of(Wish::echo, 9), nullptr).value,
                                     allowed ? 0 : -EACCES, "call");
                    });
            });
        };
        may(alice, owner);
        may(bob, others);
        may(member, group);
        // Root may always call.
        CHECK(call(*function, request_of(Wish::echo, 9), nullptr) == success);
        done->post();
        served.join();
    }
}
