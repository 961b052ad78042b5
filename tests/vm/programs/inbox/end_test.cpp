// SPDX-License-Identifier: MIT
// Requests in place stay as they are until they are given back; and how inboxes end.
#include "fixture.hpp"

#include <thread>

#include <sys/wait.h>
#include <unistd.h>

using namespace lite_test;

namespace {

constexpr Result success{};
constexpr Result failed(int err) { return {-err}; }

}  // namespace

TEST_CASE_METHOD(RpcFixture, "inbox: a request stays as it is when its caller has gone",
                 "[inbox]") {
    INFO(where.label);
    auto params = params_of(4000);
    // Room for few: what is free is used again at once.
    params.ring_size = 32768;
    const auto function = enroll(server, params);
    const Inbox inbox(server, function);
    const auto wanted = request_of(Wish::echo, 4000, 99);
    std::vector<Taken> held;
    for (int i = 0; i < 3; i++) {
        CHECK(call(function, wanted, nullptr, 4000, 50) == failed(ETIMEDOUT));
        held.push_back(take(inbox, patience_ms()));
    }
    Child killed([&] { (void)call(function, wanted, nullptr, 4000, patience_ms()); });
    held.push_back(take(inbox, patience_ms()));
    killed.kill(SIGKILL);
    (void)killed.wait();
    {
        const Echoing echoing(inbox);
        for (std::uint64_t i = 0; i < env().scaled(100, 20); i++) {
            const auto request = request_of(Wish::echo, 4000, i);
            Bytes reply;
            REQUIRE(call(function, request, &reply) == success);
            REQUIRE(reply == answer_to(request));
            for (const auto& taken : held)
                REQUIRE(taken.copy() == wanted);
        }
    }
    // Half of them are answered, which nobody sees; all the room is there again then.
    for (std::size_t i = 0; i < held.size(); i++) {
        if (i % 2)
            CHECK(lite_inbox_done(inbox, held[i].request.token) == 0);
        else
            CHECK(lite_inbox_reply(inbox, held[i].request.token, 0, held[i].data, 4000) == 0);
    }
    const Echoing echoing(inbox);
    Threads callers;
    for (int i = 0; i < 7; i++)
        callers.start(
            [&] { expect_equal(call(function, wanted, nullptr, 4000).value, 0, "call"); });
    callers.join();
}

TEST_CASE_METHOD(RpcFixture, "inbox: who gives nothing back is in nobody else's way", "[inbox]") {
    INFO(where.label);
    // More than one node may have under way to another, 64 at a time.
    std::vector<std::uint32_t> functions;
    std::vector<std::unique_ptr<Inbox>> inboxes;
    for (int i = 0; i < 5; i++) {
        functions.push_back(enroll(server, params_of(100)));
        inboxes.push_back(std::make_unique<Inbox>(server, functions.back(), LITE_RPC_DEPTH));
        for (int k = 0; k < LITE_RPC_DEPTH; k++)
            REQUIRE(lite_rpc_start(client, node, functions.back(), "x", 1, 0, 400, 0) == 0);
        for (int k = 0; k < LITE_RPC_DEPTH; k++) {
            lite_rpc_result result{};
            REQUIRE(lite_rpc_collect(client, nullptr, 0, patience_ms(), &result) == 0);
            REQUIRE(result.error == -ETIMEDOUT);
        }
    }
    CHECK(call(functions[0], Bytes(1), nullptr, 0, 0) == failed(EAGAIN));
    const auto other = enroll(server, params_of());
    const Inbox inbox(server, other);
    const Echoing echoing(inbox);
    for (std::uint64_t i = 0; i < 50; i++) {
        const auto request = request_of(Wish::echo, 1 + i * 50, i);
        Bytes reply;
        REQUIRE(call(other, request, &reply) == success);
        REQUIRE(reply == answer_to(request));
    }
    for (const auto& held : inboxes) {
        for (int k = 0; k < LITE_RPC_DEPTH; k++) {
            const auto taken = take(*held, patience_ms());
            if (k % 2)
                REQUIRE(lite_inbox_done(*held, taken.request.token) == 0);
            else
                REQUIRE(lite_inbox_reply(*held, taken.request.token, 0, taken.data, 1) == 0);
        }
    }
    const Echoing first(*inboxes[0]);
    const Echoing second(*inboxes[1]);
    for (int i = 0; i < 200; i++)
        REQUIRE(call(functions[static_cast<std::size_t>(i % 2)], Bytes(9), nullptr) == success);
}

TEST_CASE_METHOD(RpcFixture, "inbox: unregistered, with requests in all states", "[inbox]") {
    INFO(where.label);
    auto params = params_of(1000);
    params.function = 3101;
    REQUIRE(enroll(server, params) == 3101);
    const Inbox inbox(server, 3101);
    std::atomic<int> answered = 0;
    std::atomic<int> refused = 0;
    Threads callers;
    const auto body = [&] {
        const auto result = call(3101, request_of(Wish::echo, 900), nullptr);
        answered += result == success;
        refused += result == failed(ECONNREFUSED);
    };
    callers.start(body);
    const auto taken = take(inbox, patience_ms());
    for (int i = 0; i < 3; i++)
        callers.start(body);
    // Those three are in the inbox, and nobody takes them.
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    REQUIRE(lite_rpc_unregister(server, 3101) == 0);
    lite_rpc_request request{};
    const void* data = nullptr;
    CHECK(lite_inbox_next(inbox, -1, &request, &data) == -ENOENT);
    wait_until("those that were not taken are refused", [&] { return refused == 3; });
    CHECK(taken.copy() == request_of(Wish::echo, 900));
    CHECK(lite_inbox_reply(inbox, taken.request.token, 0, taken.data, 900) == 0);
    callers.join();
    CHECK(answered == 1);
    wait_until("the ring is not to be seen any more",
               [&] { return load_signal(taken.data) == SIGBUS; });
}

TEST_CASE_METHOD(RpcFixture, "inbox: who waits comes out", "[inbox]") {
    INFO(where.label);
    const auto function = enroll(server, params_of());
    const Inbox inbox(server, function);
    Threads waiters;
    std::atomic<int> out = 0;
    for (int i = 0; i < 3; i++)
        waiters.start([&] {
            lite_rpc_request request{};
            const void* data = nullptr;
            expect_equal(lite_inbox_next(inbox, -1, &request, &data), -ENOENT, "next");
            out++;
        });
    std::this_thread::sleep_for(std::chrono::milliseconds(30));
    CHECK(out == 0);
    REQUIRE(lite_rpc_unregister(server, function) == 0);
    waiters.join();
}

TEST_CASE_METHOD(RpcFixture, "inbox: closed: what was not taken goes to another", "[inbox]") {
    INFO(where.label);
    auto params = params_of(1000);
    params.function = 3102;
    params.flags = LITE_RPC_SHARED;
    Context other(where.server);
    REQUIRE(enroll(server, params) == 3102);
    Inbox first(server, 3102);
    Threads callers;
    std::atomic<int> answered = 0;
    const auto body = [&] {
        expect_equal(call(3102, request_of(Wish::echo, 100), nullptr).value, 0, "call");
        answered++;
    };
    callers.start(body);
    const auto taken = take(first, patience_ms());
    for (int i = 0; i < 5; i++)
        callers.start(body);
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    REQUIRE(enroll(other, params) == 3102);
    const Inbox second(other, 3102);
    lite_rpc_request request{};
    const void* data = nullptr;
    CHECK(lite_inbox_next(second, 0, &request, &data) == -EAGAIN);
    first.close();
    const Echoing echoing(second);
    wait_until("the others to be answered", [&] { return answered == 5; });
    // What was taken can still be answered, not read.
    CHECK(lite_rpc_reply(server, taken.request.token, 0, nullptr, 0) == 0);
    callers.join();
}

TEST_CASE_METHOD(RpcFixture, "inbox: its process exits, or becomes another program", "[inbox]") {
    INFO(where.label);
    auto params = params_of();
    params.function = 3103;
    for (const std::string how : {"exit", "kill", "exec"}) {
        CAPTURE(how);
        Shared<Signal> ready;
        Shared<Signal> go;
        Child served([&] {
            Context mine(where.server);
            enroll(mine, params);
            lite_inbox* inbox = nullptr;
            expect_equal(lite_inbox_open(mine, 3103, 0, &inbox), 0, "open");
            ready->post();
            (void)take(inbox, patience_ms());
            ready->post();
            go->wait("that others have come");
            if (how == "exit")
                ::_exit(0);
            if (how == "exec")
                ::execl("/bin/true", "true", nullptr);
            for (;;)
                ::pause();
        });
        ready->wait("a server");
        std::atomic<int> reset = 0;
        std::atomic<int> refused = 0;
        Threads callers;
        const auto body = [&] {
            const auto result = call(3103, Bytes(10), nullptr, 100);
            reset += result == failed(ECONNRESET);
            refused += result == failed(ECONNREFUSED);
        };
        callers.start(body);
        ready->wait("a request taken");
        for (int i = 0; i < 3; i++)
            callers.start(body);
        std::this_thread::sleep_for(std::chrono::milliseconds(50));
        go->post();
        if (how == "kill")
            served.kill(SIGKILL);
        (void)served.wait();
        callers.join();
        CHECK(reset == 1);
        CHECK(refused == 3);
    }
}

TEST_CASE_METHOD(RpcFixture, "inbox: closed before its process ends, while another has the file",
                 "[inbox]") {
    INFO(where.label);
    for (const std::string how : {"exit", "exec", "unmap"}) {
        CAPTURE(how);
        Shared<std::atomic<std::uint32_t>> function;
        Shared<std::atomic<bool>> over;
        Shared<Signal> taken;
        Shared<Signal> go;
        Shared<Signal> serve_now;
        Shared<Signal> heir_gone;
        Child served([&] {
            Context mine(where.server);
            const auto number = enroll(mine, params_of());
            // It outlives its parent, who does not wait for it.
            const Child heir([&] {
                serve_now->wait("that it is alone");
                serve(mine, 4096, [&] { return !*over; });
                heir_gone->post();
            });
            RawInbox inbox(mine, number, LITE_RPC_DEPTH);
            *function = number;
            for (int i = 0; i < LITE_RPC_DEPTH; i++)
                (void)inbox.take();
            taken->post();
            go->wait("that it may end");
            if (how == "exec")
                ::execl("/bin/true", "true", nullptr);
            if (how == "unmap")
                inbox.unmap();
            ::close(lite_fd(mine));
            ::_exit(0);
        });
        wait_until("a server", [&] { return *function != 0; });
        for (int i = 0; i < LITE_RPC_DEPTH; i++)
            REQUIRE(lite_rpc_start(client, node, *function, "x", 1, 0,
                                   how == "unmap" ? 400 : patience_ms(), 0) == 0);
        taken->wait("that all are taken");
        if (how != "unmap") {
            go->post();
            (void)served.wait();
        }
        for (int i = 0; i < LITE_RPC_DEPTH; i++) {
            lite_rpc_result result{};
            REQUIRE(lite_rpc_collect(client, nullptr, 0, patience_ms(), &result) == 0);
            REQUIRE(result.error == (how == "unmap" ? -ETIMEDOUT : -ECONNRESET));
        }
        if (how == "unmap") {
            go->post();
            (void)served.wait();
        }
        // There is room for all of them again.
        serve_now->post();
        Threads callers;
        for (int i = 0; i < LITE_RPC_DEPTH; i++)
            callers.start([&] {
                const auto request = request_of(Wish::echo, 100);
                Bytes reply;
                expect_equal(call(*function, request, &reply, 4096, patience_ms()).value, 0,
                             "call");
                expect(reply == answer_to(request), "its answer");
            });
        callers.join();
        *over = true;
        heir_gone->wait("the other one to end");
    }
}

TEST_CASE_METHOD(RpcFixture, "inbox: the file is closed under it", "[inbox]") {
    INFO(where.label);
    Context mine(where.server);
    const auto function = enroll(mine, params_of());
    const RawInbox inbox(mine, function, 8);
    std::thread caller(
        [&] { expect_equal(call(function, Bytes(10), nullptr).value, -ECONNRESET, "call"); });
    const auto entry = inbox.take();
    CHECK(load_signal(inbox.rings() + entry.offset) == 0);
    mine.close();
    caller.join();
    wait_until("the ring is not to be seen any more",
               [&] { return load_signal(inbox.rings() + entry.offset) == SIGBUS; });
    CHECK(inbox.head() == LITE_INBOX_CLOSED);
    CHECK(load_signal(inbox.control()) == 0);
}
