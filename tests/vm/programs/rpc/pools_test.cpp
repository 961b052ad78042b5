// SPDX-License-Identifier: MIT
// Whatever one user takes of functions, rings, calls in flight and long replies, enough is left for
// another user and for root.
#include "fixture.hpp"

#include <csignal>
#include <utility>

using namespace lite_test;

namespace {

const Identity alice{1000, 1000};
const Identity bob{1001, 1001};

constexpr std::uint32_t kLong = 4U << 20;

// Alice's process, which takes all it can get of something, and keeps it until the end.
class Greedy {
  public:
    // @take: takes until there is no more, and returns how much it has.
    explicit Greedy(const std::function<std::uint64_t()>& take)
        : child_([&] {
              become(alice);
              // The objects must outlive this function: a Context that goes out of scope would
              // release them.
              shared_->taken = take();
              shared_->full.post();
              shared_->end.wait("the end of the test");
          }) {
        shared_->full.wait("a user has all it gets");
    }
    ~Greedy() { child_.kill(SIGKILL); }
    std::uint64_t taken() { return shared_->taken; }

  private:
    struct State {
        std::uint64_t taken = 0;
        Signal full;
        Signal end;
    };
    Shared<State> shared_;
    Child child_;
};

// For a process that only ends: an object that is never destroyed.
template <typename T, typename... Args>
T& forever(Args&&... args) {
    return *new T(std::forward<Args>(args)...);
}

std::uint64_t register_all(unsigned index, std::uint32_t most) {
    const auto params = params_of(64, 0666);
    std::uint64_t n = 0;
    for (;;) {
        auto& ctx = forever<Context>(index);
        for (int i = 0; i < LITE_RPC_FUNCTIONS_MAX; i++) {
            const int err = lite_rpc_register(ctx, &params, nullptr);
            if (err == -EMFILE)
                return n;
            expect_equal(err, 0, "register");
            expect(++n <= most, "no end of functions");
        }
    }
}

}  // namespace

TEST_CASE_METHOD(RpcFixture, "pools: functions", "[pools]") {
    INFO(where.label);
    Greedy greedy([&] { return register_all(where.server, 4096); });
    // Half of what is not reserved; other users have some of it.
    CHECK(greedy.taken() <= 4096 * 7 / 16);
    CHECK(greedy.taken() > 1000);
    as_user(bob, [&] {
        const auto n = register_all(where.server, 4096);
        expect(n > 500, "another user got as many as were left for it");
    });
    for (int i = 0; i < LITE_RPC_FUNCTIONS_MAX; i++)
        enroll(server, params_of());
}

TEST_CASE_METHOD(RpcFixture, "pools: messages that no server takes", "[pools]") {
    INFO(where.label);
    const auto echo = enroll(server, params_of(4096, 0666));
    const Serving serving(server, 4096);

    Greedy greedy([&] {
        std::uint64_t n = 0;
        auto& sender = forever<Context>(where.client);
        for (int i = 0; i < 2; i++) {
            auto& silent = forever<Context>(where.server);
            for (int k = 0; k < LITE_RPC_FUNCTIONS_MAX; k++) {
                const auto function = enroll(silent, params_of(16, 0666));
                int err = 0;
                while ((err = lite_rpc_send(sender, node, function, nullptr, 0, 0)) == 0)
                    n++;
                expect_equal(err, -EAGAIN, "no more room");
            }
        }
        return n;
    });
    // At most half of what other users leave of 256.
    CHECK(greedy.taken() <= 128);
    CHECK(greedy.taken() > 64);
    as_user(bob, [&] {
        // As many calls at once as a user needs.
        Context caller(where.client);
        for (std::uint64_t i = 0; i < 20; i++)
            expect_equal(lite_rpc_start(caller, node, echo, &i, sizeof(i), 4096, patience_ms(), i),
                         0, "begin a call");
        for (int i = 0; i < 20; i++) {
            lite_rpc_result result{};
            Bytes reply(4096);
            expect_equal(
                lite_rpc_collect(caller, reply.data(), reply.size(), patience_ms(), &result), 0,
                "collect a call");
            expect_equal(result.error, 0, "a call");
        }
    });
    CHECK(call(echo, request_of(Wish::echo, 100), nullptr) == success);
}

// A caller that waits because its user has its full share is passed by other users' calls, even in
// the same line.
TEST_CASE_METHOD(RpcFixture, "pools: a line for a function in which another user waits",
                 "[pools]") {
    INFO(where.label);
    const auto echo = enroll(server, params_of(4096, 0666));
    const Serving serving(server, 4096);

    Greedy greedy([&] {
        auto& sender = forever<Context>(where.client);
        for (int i = 0; i < 2; i++) {
            auto& silent = forever<Context>(where.server);
            for (int k = 0; k < LITE_RPC_FUNCTIONS_MAX; k++) {
                const auto function = enroll(silent, params_of(16, 0666));
                while (lite_rpc_send(sender, node, function, nullptr, 0, 0) == 0) {
                }
            }
        }
        // Alice also waits in line for the function that is served.
        auto& threads = forever<Threads>();
        for (int i = 0; i < 4; i++)
            threads.start([&] {
                std::byte byte{};
                (void)lite_rpc_call(sender, node, echo, &byte, 1, nullptr, 0, nullptr,
                                    patience_ms(), nullptr);
            });
        return 1;
    });
    for (int i = 0; i < 50; i++)
        CHECK(call(echo, request_of(Wish::echo, 100), nullptr) == success);
    as_user(bob, [&] {
        Context caller(where.client);
        std::byte byte{};
        Bytes reply(4096);
        for (int i = 0; i < 50; i++)
            expect_equal(lite_rpc_call(caller, node, echo, &byte, 1, reply.data(), reply.size(),
                                       nullptr, patience_ms(), nullptr),
                         0, "call");
    });
}

TEST_CASE_METHOD(RpcFixture, "pools: memory of rings", "[pools]") {
    INFO(where.label);
    auto params = params_of(64, 0666);
    const auto echo = enroll(server, params);
    const Serving serving(server, 64);

    Greedy greedy([&] {
        params.ring_size = LITE_RPC_RING_MAX;
        auto& caller = forever<Context>(where.client);
        for (std::uint64_t n = 0; n < 64;) {
            auto& silent = forever<Context>(where.server);
            for (int k = 0; k < LITE_RPC_FUNCTIONS_MAX; k++) {
                const auto function = enroll(silent, params);
                const int err = lite_rpc_send(caller, node, function, nullptr, 0, patience_ms());
                if (err == -ENOBUFS)
                    return n;
                expect_equal(err, 0, "send");
                n++;
            }
        }
        expect(false, "no end of rings");
        return std::uint64_t{0};
    });
    CHECK(greedy.taken() > 4);
    as_user(bob, [&] {
        Context other_server(where.server);
        auto own = params_of(64, 0666);
        own.ring_size = LITE_RPC_RING_MAX;
        const auto function = enroll(other_server, own);
        Context caller(where.client);
        expect_equal(lite_rpc_send(caller, node, function, nullptr, 0, patience_ms()), 0, "send");
    });
    CHECK(call(echo, request_of(Wish::echo, 60), nullptr, 64) == success);
}

TEST_CASE_METHOD(RpcFixture, "pools: memory for long replies", "[pools]") {
    INFO(where.label);
    const auto silent = enroll(server, params_of(kLong, 0666));
    Context other(where.server);
    const auto echo = enroll(other, params_of(kLong, 0666));
    const Serving serving(other, kLong);

    Greedy greedy([&] {
        auto& caller = forever<Context>(where.client);
        std::uint64_t n = 0;
        int err = 0;
        while ((err = lite_rpc_start(caller, node, silent, nullptr, 0, kLong, patience_ms(), n)) ==
               0)
            expect(++n < 64, "no end of memory");
        expect_equal(err, -ENOMEM, "no more memory");
        return n;
    });
    CHECK(greedy.taken() > 2);
    as_user(bob, [&] {
        Context caller(where.client);
        const auto request = request_of(Wish::echo, 1U << 20);
        Bytes reply(kLong);
        std::size_t length = 0;
        expect_equal(lite_rpc_call(caller, node, echo, request.data(), request.size(), reply.data(),
                                   reply.size(), &length, patience_ms(), nullptr),
                     0, "a long call");
        expect_equal(length, request.size(), "bytes of the reply");
    });
}
