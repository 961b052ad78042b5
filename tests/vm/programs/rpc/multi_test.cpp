// SPDX-License-Identifier: MIT
// One call to several nodes: all nodes of this machine, the first of which is also the caller's.
#include "fixture.hpp"

#include "../common/raw.hpp"

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <deque>
#include <thread>

#include <signal.h>
#include <sys/mman.h>

using namespace lite_test;

namespace {

// The function that the servers of this test case serve: each test case has one of its own. A
// client may still send to the ring of a function that has just ended, and what it sends there
// counts beside what is in a new ring.
std::uint32_t number = 2900;
constexpr std::byte canary{0xcc};

// A server on one node, which can also hold requests and answer them later.
class Server {
  public:
    Server(unsigned index, std::size_t max = 4096) : ctx_(index), max_(max) {
        auto params = params_of(static_cast<std::uint32_t>(max));
        params.function = number;
        expect_equal(lite_rpc_register(ctx_, &params, nullptr), 0, "register");
    }
    ~Server() { stop(); }

    // Answers with answer_to(), and the node's id as the status.
    void start() {
        end_ = false;
        thread_ = std::thread([this] {
            Bytes buffer(max_);
            const auto id = ctx_.node_id();
            lite_rpc_request request{};
            while (!end_) {
                const int err =
                    lite_rpc_recv(ctx_, number, buffer.data(), buffer.size(), 50, &request);
                if (err == -ETIMEDOUT)
                    continue;
                expect_equal(err, 0, "recv");
                const auto answer =
                    answer_to(Bytes(buffer.begin(), buffer.begin() + request.length));
                (void)lite_rpc_reply(ctx_, request.token, id, answer.data(), answer.size());
            }
        });
    }
    void stop() {
        end_ = true;
        if (thread_.joinable())
            thread_.join();
    }
    // Takes one request, and leaves it to the test.
    std::uint64_t take() {
        Bytes buffer(max_);
        lite_rpc_request request{};
        expect_equal(lite_rpc_recv(ctx_, number, buffer.data(), buffer.size(),
                                   static_cast<int>(patience().count()), &request),
                     0, "recv");
        return request.token;
    }
    int answer(std::uint64_t token) {
        const Bytes answer(max_, std::byte{0x99});
        return lite_rpc_reply(ctx_, token, 0, answer.data(), answer.size());
    }
    void unregister() { expect_equal(lite_rpc_unregister(ctx_, number), 0, "unregister"); }
    std::uint32_t id() const { return ctx_.node_id(); }
    lite_ctx* ctx() const { return ctx_; }

  private:
    Context ctx_;
    std::size_t max_;
    std::atomic<bool> end_ = false;
    std::thread thread_;
};

class MultiFixture {
  public:
    MultiFixture() : client(env().indexes[0]) {
        number++;
        for (const auto index : env().indexes)
            nodes.push_back(Context(index).node_id());
        REQUIRE(nodes.size() >= 3);
    }

    // Legs to all of @to, with a buffer full of canaries for each.
    std::vector<lite_rpc_leg> legs(const std::vector<std::uint32_t>& to, std::size_t room = 4096) {
        buffers.assign(to.size(), Bytes(room + 16, canary));
        std::vector<lite_rpc_leg> made(to.size());
        for (std::size_t i = 0; i < to.size(); i++) {
            made[i].node = to[i];
            made[i].reply = buffers[i].data();
            made[i].room = room;
        }
        return made;
    }

    int call(const Bytes& request, std::vector<lite_rpc_leg>& legs, std::size_t quorum,
             int timeout_ms = patience_ms()) {
        const int n = lite_rpc_multicall(client, number, request.data(), request.size(),
                                         legs.data(), legs.size(), quorum, timeout_ms);
        int ok = 0;
        for (std::size_t i = 0; n >= 0 && i < legs.size(); i++) {
            ok += !legs[i].error;
            check_untouched(i, legs[i].error ? 0 : legs[i].length);
        }
        if (n >= 0)
            CHECK(n == ok);
        return n;
    }

    void check_untouched(std::size_t i, std::size_t from = 0) {
        for (std::size_t k = from; k < buffers[i].size(); k++)
            expect(buffers[i][k] == canary, "a byte that was not to be written");
    }

    Bytes reply_of(const std::vector<lite_rpc_leg>& legs, std::size_t i) const {
        return {buffers[i].begin(),
                buffers[i].begin() + static_cast<std::ptrdiff_t>(legs[i].length)};
    }

    static int patience_ms() { return static_cast<int>(patience().count()); }

    void start_all(std::size_t max = 4096) {
        for (const auto index : env().indexes) {
            servers.emplace_back(index, max);
            servers.back().start();
        }
    }

    Context client;
    std::vector<std::uint32_t> nodes;
    std::vector<Bytes> buffers;
    std::deque<Server> servers;
};

}  // namespace

TEST_CASE_METHOD(MultiFixture, "multicall: all answer, requests and replies of all sizes",
                 "[multi]") {
    start_all(LITE_RPC_BYTES_MAX);
    for (const std::size_t size : {1UL, 64UL, 4096UL, 5000UL, 65536UL}) {
        CAPTURE(size);
        const auto request = request_of(Wish::echo, size, size);
        auto to = legs(nodes, size);
        REQUIRE(call(request, to, 0) == static_cast<int>(nodes.size()));
        for (std::size_t i = 0; i < to.size(); i++) {
            CHECK(to[i].error == 0);
            CHECK(to[i].status == nodes[i]);
            CHECK(to[i].length == size);
            CHECK(reply_of(to, i) == answer_to(request));
        }
    }
    // A call may have several legs to one node.
    auto to = legs({nodes[1], nodes[1], nodes[1], 0});
    CHECK(call(request_of(Wish::echo, 100), to, 0) == 4);
    CHECK(to[3].status == nodes[0]);
}

TEST_CASE_METHOD(MultiFixture, "multicall: the first reply is enough; late ones go nowhere",
                 "[multi]") {
    for (const auto index : env().indexes)
        servers.emplace_back(index);
    for (int round = 0; round < 10; round++) {
        auto to = legs(nodes);
        std::thread caller([&] {
            expect_equal(call(request_of(Wish::echo, 300), to, 1, patience_ms()), 1, "multicall");
        });
        const auto first = servers[0].take();
        const auto last = servers[2].take();
        const auto begun = std::chrono::steady_clock::now();
        CHECK(servers[1].answer(servers[1].take()) == 0);
        caller.join();
        CHECK(since(begun) < patience() / 2);
        CHECK(to[0].error == -ECANCELED);
        CHECK(to[1].error == 0);
        CHECK(to[1].length == 4096);
        CHECK(to[2].error == -ECANCELED);
        // Late replies may be accepted or refused, as their caller has gone. They must not be
        // written anywhere.
        wait_until("the call is over", [&] {
            return servers[0].answer(first) == -ENOENT && servers[2].answer(last) == -ENOENT;
        });
        check_untouched(0);
        check_untouched(2);
    }
}

TEST_CASE_METHOD(MultiFixture, "multicall: a quorum that cannot be reached ends it", "[multi]") {
    for (const auto index : env().indexes)
        servers.emplace_back(index);
    servers[0].start();
    servers[2].unregister();
    auto to = legs({nodes[0], nodes[2]});
    CHECK(call(request_of(Wish::echo, 30), to, 0) == 1);
    CHECK(to[0].error == 0);
    CHECK(to[1].error == -ECONNREFUSED);
    // The call does not wait for the second node, which takes nothing.
    to = legs(nodes);
    const auto begun = std::chrono::steady_clock::now();
    CHECK(call(request_of(Wish::echo, 30), to, 3, patience_ms()) <= 1);
    CHECK(since(begun) < patience() / 2);
    CHECK(to[1].error == -ECANCELED);
    CHECK(to[2].error == -ECONNREFUSED);
    // With a quorum of one less, it waits for that node, which may take the request of the earlier
    // call, too.
    to = legs(nodes);
    servers[1].start();
    CHECK(call(request_of(Wish::echo, 30), to, 2, patience_ms()) == 2);
    CHECK(to[1].error == 0);
}

TEST_CASE_METHOD(MultiFixture, "multicall: one time-out for all", "[multi]") {
    for (const auto index : env().indexes)
        servers.emplace_back(index);
    servers[0].start();
    std::chrono::steady_clock::time_point begun;
    std::vector<lite_rpc_leg> to;
    int limit = 1500 * env().slowness;
    // On a busy machine the one that answers may need longer.
    for (int answered = 0; answered != 1; limit *= 2) {
        REQUIRE(limit < patience_ms() / 2);
        begun = std::chrono::steady_clock::now();
        to = legs({nodes[0], nodes[1], nodes[2], 60000});
        answered = call(request_of(Wish::echo, 30), to, 0, limit);
        CHECK((answered == 1 || to[0].error == -ETIMEDOUT));
        CHECK(since(begun).count() >= limit);
    }
    CHECK(since(begun) < patience() / 2);
    CHECK(to[0].error == 0);
    CHECK(to[1].error == -ETIMEDOUT);
    CHECK(to[2].error == -ETIMEDOUT);
    CHECK(to[3].error == -EHOSTUNREACH);
}

TEST_CASE_METHOD(MultiFixture, "multicall: full rings do not block other nodes", "[multi]") {
    for (const auto index : env().indexes)
        servers.emplace_back(index);
    servers[2].start();
    // Two of the rings are full.
    int sent = 0;
    for (const auto node : {nodes[0], nodes[1]}) {
        while (!lite_rpc_send(client, node, number, "full", 4, 0))
            sent++;
    }
    CHECK(sent == 2 * LITE_RPC_DEPTH);
    // The call has 5 s for the reply, which may be too short on a busy machine.
    std::vector<lite_rpc_leg> to;
    int answered = 0;
    for (int i = 0; i < 10 && answered != 1; i++) {
        to = legs(nodes);
        answered = call(request_of(Wish::echo, 30), to, 0, 0);
        CHECK((answered == 1 || to[2].error == -ETIMEDOUT));
    }
    CHECK(answered == 1);
    CHECK(to[0].error == -EAGAIN);
    CHECK(to[1].error == -EAGAIN);
    const auto begun = std::chrono::steady_clock::now();
    for (int i = 0; i < 5; i++) {
        to = legs(nodes);
        CHECK(call(request_of(Wish::echo, 30), to, 1, patience_ms()) == 1);
        CHECK(to[0].error == -ECANCELED);
        CHECK(to[1].error == -ECANCELED);
        CHECK(to[2].error == 0);
    }
    CHECK(since(begun) < patience() / 2);
    // A caller is killed while it waits for room, and for a reply.
    Child caller([&] {
        auto mine = legs(nodes);
        (void)call(request_of(Wish::echo, 30), mine, 0, patience_ms());
    });
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    caller.kill(SIGKILL);
    (void)caller.wait();
    // When there is room, all calls go on.
    std::thread later([&] {
        std::this_thread::sleep_for(std::chrono::milliseconds(50));
        servers[0].start();
        servers[1].start();
    });
    to = legs(nodes);
    CHECK(call(request_of(Wish::echo, 30), to, 0, patience_ms()) == 3);
    later.join();
}

TEST_CASE_METHOD(MultiFixture, "multicall: a server that dies, and one that comes back",
                 "[multi]") {
    servers.emplace_back(env().indexes[0]);
    servers[0].start();
    Shared<Signal> ready;
    Child served([&] {
        Server mine(env().indexes[1]);
        ready->post();
        mine.take();
        ready->post();
        for (;;)
            ::pause();
    });
    ready->wait("a server");
    auto to = legs({nodes[0], nodes[1]});
    std::thread caller([&] {
        expect_equal(call(request_of(Wish::echo, 30), to, 0, patience_ms()), 1, "multicall");
    });
    ready->wait("a request taken");
    served.kill(SIGKILL);
    caller.join();
    CHECK(to[1].error == -ECONNRESET);
    (void)served.wait();
    // What callers know of the dead server is obsolete.
    for (int i = 0; i < 5; i++) {
        Server again(env().indexes[1]);
        again.start();
        to = legs({nodes[0], nodes[1]});
        CHECK(call(request_of(Wish::echo, 30), to, 0, patience_ms()) == 2);
    }
}

TEST_CASE_METHOD(MultiFixture, "multicall: memory that is not mapped, or not yet present",
                 "[multi]") {
    start_all(LITE_RPC_BYTES_MAX);
    constexpr std::size_t size = 40000;
    const auto request = request_of(Wish::echo, size, 5);
    const auto answer = answer_to(request);
    void* fresh = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    REQUIRE(fresh != MAP_FAILED);
    auto to = legs(nodes, size);
    to[0].reply = fresh;
    to[1].reply = nullptr;
    CHECK(lite_rpc_multicall(client, number, request.data(), size, to.data(), to.size(), 0,
                             patience_ms()) == 2);
    CHECK(to[0].error == 0);
    CHECK(std::memcmp(fresh, answer.data(), size) == 0);
    CHECK(to[1].error == -EFAULT);
    CHECK(to[2].error == 0);
    ::munmap(fresh, size);

    to = legs(nodes, 100);
    CHECK(call(request, to, 0) == 0);
    for (const auto& leg : to) {
        CHECK(leg.error == -EMSGSIZE);
        CHECK(leg.length == size);
    }
    CHECK(lite_rpc_multicall(client, number, nullptr, 10, to.data(), to.size(), 0, patience_ms()) ==
          -EFAULT);
    CHECK(lite_rpc_multicall(client, number, request.data(), LITE_RPC_BULK_MAX + 1, to.data(),
                             to.size(), 0, patience_ms()) == -E2BIG);
    to = legs(nodes);
    CHECK(call(Bytes(LITE_RPC_BYTES_MAX + 1), to, 0) == 0);
    for (const auto& leg : to)
        CHECK(leg.error == -E2BIG);
}

TEST_CASE_METHOD(MultiFixture, "multicall: requests and replies by reference", "[multi]") {
    constexpr std::size_t max = 2 << 20;
    start_all(max);
    for (const std::size_t size : {65537UL, 300000UL, max}) {
        CAPTURE(size);
        const auto request = request_of(Wish::echo, size, size);
        const auto answer = answer_to(request);
        for (const std::size_t quorum : {0UL, 1UL}) {
            auto to = legs(nodes, max);
            REQUIRE(call(request, to, quorum, patience_ms()) >= 1);
            for (std::size_t i = 0; i < to.size(); i++) {
                CAPTURE(to[i].error);
                CHECK((quorum || to[i].error == 0));
                if (!to[i].error)
                    CHECK(reply_of(to, i) == answer);
            }
        }
    }
    // To memory that has no pages yet.
    const auto request = request_of(Wish::echo, max, 9);
    void* fresh = ::mmap(nullptr, max, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    REQUIRE(fresh != MAP_FAILED);
    auto to = legs({nodes[0], nodes[1]}, max);
    to[1].reply = fresh;
    CHECK(lite_rpc_multicall(client, number, request.data(), max, to.data(), 2, 0, patience_ms()) ==
          2);
    CHECK(std::memcmp(fresh, answer_to(request).data(), max) == 0);
    ::munmap(fresh, max);
}

TEST_CASE_METHOD(MultiFixture, "multicall: groups of calls", "[multi]") {
    start_all();
    const Device dev(env().indexes[0]);
    Bytes buffer(3000, canary);
    const auto request = request_of(Wish::echo, 1000, 7);
    const auto begin = [&](std::uint32_t group, std::size_t to, std::uint32_t flags = 0) {
        lite_ioc_rpc_call call{};
        call.size = sizeof(call);
        call.flags = LITE_RPC_ASYNC | LITE_RPC_QUEUE | flags;
        call.node = nodes[to];
        call.function = number;
        call.request = reinterpret_cast<std::uintptr_t>(request.data());
        call.request_len = 1000;
        call.reply = reinterpret_cast<std::uintptr_t>(&buffer[to * 1000]);
        call.reply_room = 1000;
        call.timeout_ms = patience_ms();
        call.group = group;
        call.cookie = to;
        return dev.call(LITE_IOC_RPC_CALL, &call);
    };
    lite_ioc_rpc_collect collect{};
    const auto ended = [&](std::uint32_t group, std::uint32_t flags = LITE_RPC_INTO,
                           int timeout_ms = LITE_FOREVER) {
        collect = {};
        collect.size = sizeof(collect);
        collect.flags = flags;
        collect.timeout_ms = timeout_ms;
        collect.group = group;
        return dev.call(LITE_IOC_RPC_COLLECT, &collect);
    };
    for (std::size_t i = 0; i < 3; i++)
        REQUIRE(begin(i ? 8 : 9, i) == ok);
    CHECK(ended(0) == err(ENOENT));
    CHECK(ended(0, LITE_RPC_CANCEL) == ok);
    REQUIRE(ended(9) == ok);
    CHECK((collect.cookie == 0 && collect.error == 0 && collect.reply_len == 1000));
    CHECK(ended(9) == err(ENOENT));
    for (int i = 0; i < 2; i++) {
        REQUIRE(ended(8) == ok);
        CHECK((collect.cookie != 0 && collect.error == 0));
    }
    for (std::size_t i = 0; i < 3; i++)
        CHECK(Bytes(&buffer[i * 1000], &buffer[i * 1000] + 1000) == answer_to(request));
    // A call of another process that has the file: its address is not one of this process.
    Shared<Signal> begun;
    Child stranger([&] {
        expect(begin(7, 2) == ok, "begin");
        begun->post();
        ::pause();
    });
    begun->wait("a call");
    std::fill(buffer.begin(), buffer.end(), canary);
    REQUIRE(ended(7) == ok);
    CHECK((collect.cookie == 2 && collect.error == -EFAULT && collect.reply_len == 0));
    CHECK(std::all_of(buffer.begin(), buffer.end(), [](std::byte b) { return b == canary; }));
    stranger.kill(SIGKILL);
    (void)stranger.wait();
    // Calls without an answer; and calls that are cancelled instead of collected.
    servers[1].stop();
    REQUIRE(begin(8, 1) == ok);
    REQUIRE(begin(8, 2) == ok);
    REQUIRE(ended(8) == ok);
    CHECK(collect.cookie == 2);
    CHECK(ended(8, LITE_RPC_INTO, 20) == err(ETIMEDOUT));
    REQUIRE(begin(8, 2) == ok);
    CHECK(ended(8, LITE_RPC_CANCEL) == ok);
    CHECK(ended(8) == err(ENOENT));
    // A process takes its own calls with it.
    Shared<Signal> ready;
    Child caller([&] {
        expect(begin(8, 1) == ok, "begin");
        ready->post();
        ::pause();
    });
    ready->wait("a call");
    CHECK(ended(8, LITE_RPC_INTO, LITE_NOWAIT) == err(EAGAIN));
    caller.kill(SIGKILL);
    (void)caller.wait();
    CHECK(ended(8) == err(ENOENT));
    CHECK(begin(8, 1, LITE_RPC_ONEWAY) == err(EINVAL));
    CHECK(ended(8, LITE_RPC_ONEWAY << 8) == err(EOPNOTSUPP));
}

TEST_CASE_METHOD(MultiFixture, "multicall: many at the same time", "[multi]") {
    start_all(8192);
    Threads callers;
    for (std::uint64_t i = 0; i < 6; i++)
        callers.start([this, i] {
            for (std::uint64_t k = 0; k < env().scaled(200); k++) {
                const std::size_t size = 1 + (i * 1777 + k * 131) % 8000;
                const std::size_t quorum = k % (nodes.size() + 1);
                const auto request = request_of(Wish::echo, size, i * 1000 + k);
                const auto answer = answer_to(request);
                std::vector<Bytes> replies(nodes.size(), Bytes(8192, canary));
                std::vector<lite_rpc_leg> to(nodes.size());
                for (std::size_t n = 0; n < nodes.size(); n++) {
                    to[n].node = nodes[n];
                    to[n].reply = replies[n].data();
                    to[n].room = replies[n].size();
                }
                const int n = lite_rpc_multicall(client, number, request.data(), size, to.data(),
                                                 to.size(), quorum, patience_ms());
                expect(n >= static_cast<int>(quorum ? quorum : nodes.size()), "a quorum");
                for (std::size_t l = 0; l < nodes.size(); l++) {
                    auto wanted = to[l].error ? Bytes() : answer;
                    wanted.resize(8192, canary);
                    expect(to[l].error == 0 || to[l].error == -ECANCELED, "an end");
                    expect(replies[l] == wanted, "a reply");
                }
            }
        });
    callers.join();
}

// Prints the cost of calls to several nodes, beside single calls: medians, taken in turns.
TEST_CASE_METHOD(MultiFixture, "multicall: what it costs", "[.cost]") {
    start_all();
    const auto request = request_of(Wish::echo, 64);
    const std::vector<std::vector<std::uint32_t>> wanted = {
        {nodes[1]},
        {nodes[1], nodes[2]},
        {nodes[1], nodes[2], nodes[0]},
        {nodes[1], nodes[2], nodes[1], nodes[2], nodes[1], nodes[2], nodes[1], nodes[2]}};
    std::vector<std::vector<std::int64_t>> took(wanted.size() + 1);
    const auto time = [&](std::size_t what, auto&& work) {
        const auto begun = std::chrono::steady_clock::now();
        work();
        took[what].push_back((std::chrono::steady_clock::now() - begun).count());
    };
    Bytes reply(4096);
    for (std::uint64_t i = 0; i < env().scaled(2000); i++) {
        time(0, [&] {
            expect_equal(lite_rpc_call(client, nodes[1], number, request.data(), request.size(),
                                       reply.data(), reply.size(), nullptr, patience_ms(), nullptr),
                         0, "call");
        });
        for (std::size_t k = 0; k < wanted.size(); k++) {
            auto to = legs(wanted[k]);
            const auto all = static_cast<int>(to.size());
            time(k + 1, [&] {
                expect_equal(lite_rpc_multicall(client, number, request.data(), request.size(),
                                                to.data(), to.size(), 0, patience_ms()),
                             all, "multicall");
            });
        }
    }
    for (auto& times : took)
        std::nth_element(times.begin(),
                         times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2),
                         times.end());
    const auto median = [&](std::size_t what) {
        return static_cast<double>(took[what][took[what].size() / 2]);
    };
    std::printf("call %.1f us\n", median(0) / 1000);
    for (std::size_t k = 0; k < wanted.size(); k++)
        std::printf("%zu legs %.1f us, %.2f of a call\n", wanted[k].size(), median(k + 1) / 1000,
                    median(k + 1) / median(0));
}
