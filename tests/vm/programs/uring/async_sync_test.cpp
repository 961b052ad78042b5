// SPDX-License-Identifier: MIT
// Coroutines that await locks and barriers; and locks with dead holders.
#include "async_fixture.hpp"

#include <optional>
#include <stdexcept>

using namespace lite_test;
using std::chrono::milliseconds;

namespace {

constexpr std::uint64_t at = 64;

// Whether the lock can be taken exclusively.
bool is_free(lite_ctx* ctx, const lite::region& lmr) {
    const int err = lite_lock(ctx, lmr.handle(), at, 1000, LITE_LOCK_TRY, LITE_FOREVER);
    if (!err)
        expect_equal(lite_unlock(ctx, lmr.handle(), at, 1000), 0, "unlock");
    else
        expect_equal(err, -EBUSY, "a lock that is held");
    return !err;
}

// Whether the lock becomes free within a while.
bool becomes_free(lite_ctx* ctx, const lite::region& lmr) {
    const int err =
        lite_lock(ctx, lmr.handle(), at, 1000, 0, static_cast<int>(patience().count() / 4));
    if (!err)
        expect_equal(lite_unlock(ctx, lmr.handle(), at, 1000), 0, "unlock");
    return !err;
}

lite::task<> hold_and_throw(lite::executor& ex, const lite::region& lmr) {
    const auto held = co_await ex.lock(lmr, at, 1);
    throw std::runtime_error("in between");
}

lite::task<> hold(lite::executor& ex, const lite::region& lmr, std::uint64_t owner, bool& is_held) {
    const auto held = co_await ex.lock(lmr, at, owner);
    is_held = true;
    co_await ex.sleep(std::chrono::hours(1));
}

lite::task<> arrive(lite::executor& ex, const lite::region& lmr, std::uint32_t n, int& arrived) {
    co_await ex.arrive_and_wait(lmr, at, n);
    arrived++;
}

// Takes the lock and dies.
void die_with_lock(const std::string& name) {
    lite::context dying(static_cast<int>(env().indexes.front()));
    auto lmr = dying.map(name, kAccess);
    expect_equal(lite_lock(dying.get(), lmr.handle(), at, 1, 0, LITE_FOREVER), 0, "lock");
    // The lock goes with the context.
    lmr.release();
}

}  // namespace

TEST_CASE_METHOD(Async, "async: locks, tried and shared", "[uring]") {
    auto held = ex.run(ex.lock(lmr, at, 1));
    CHECK(held.is_held());
    CHECK_FALSE(held.owner_died());
    CHECK_FALSE(ex.run(ex.try_lock(lmr, at, 2)));
    CHECK_FALSE(ex.run(ex.try_lock_shared(lmr, at, 2)));
    const auto begun = std::chrono::steady_clock::now();
    CHECK_FALSE(ex.run(ex.try_lock_for(lmr, at, 2, soon)));
    CHECK(std::chrono::steady_clock::now() - begun >= soon);
    CHECK_FALSE(ex.run(ex.try_lock_shared_for(lmr, at, 2, soon)));
    CHECK_FALSE(ex.run(ex.try_lock_for(lmr, at, 2, milliseconds(0))));
    CHECK(ex.run(errno_of(ex.lock(lmr, at, 1))) == EDEADLK);
    CHECK_FALSE(is_free(ctx, lmr));
    ex.run(ex.unlock(held));
    CHECK_FALSE(held.is_held());
    CHECK(is_free(ctx, lmr));
    CHECK(ex.run(errno_of(ex.unlock(held))) == EPERM);
    {
        const auto one = ex.run(ex.lock_shared(lmr, at, 1));
        const auto two = ex.run(ex.try_lock_shared(lmr, at, 2));
        const auto three = ex.run(ex.try_lock_shared_for(lmr, at, 3, patience()));
        CHECK(two);
        CHECK(three);
        CHECK_FALSE(ex.run(ex.try_lock(lmr, at, 4)));
    }
    CHECK(is_free(ctx, lmr));
    CHECK(ex.run(ex.try_lock(lmr, at, 2)));
    CHECK(ex.run(ex.try_lock_for(lmr, at, 2, patience())));
    CHECK(is_free(ctx, lmr));
    // Locked and unlocked without the lock's object.
    ex.run(ex.lock(lmr, at, 5)).release();
    CHECK_FALSE(is_free(ctx, lmr));
    CHECK(ex.run(errno_of(ex.unlock(lmr, at, 6))) == EPERM);
    ex.run(ex.unlock(lmr, at, 5));
    CHECK(is_free(ctx, lmr));
}

TEST_CASE_METHOD(Async, "async: locks and barriers that are asked to stop", "[uring]") {
    auto held = ex.run(ex.lock(lmr, at, 1));
    CHECK(errno_when_stopped(ex, [&](std::stop_token stop) { return ex.lock(lmr, at, 2, stop); }) ==
          ECANCELED);
    CHECK(errno_when_stopped(ex, [&](std::stop_token stop) {
              return ex.lock_shared(lmr, at, 2, stop);
          }) == ECANCELED);
    CHECK(errno_when_stopped(ex, [&](std::stop_token stop) {
              return ex.try_lock_for(lmr, at, 2, std::chrono::minutes(5), stop);
          }) == ECANCELED);
    CHECK(errno_when_stopped(ex, [&](std::stop_token stop) {
              return ex.arrive_and_wait(lmr, 128, 2, stop);
          }) == ECANCELED);
    CHECK(errno_when_stopped(ex, [&](std::stop_token stop) {
              return ex.arrive_and_wait_for(lmr, 128, 2, std::chrono::minutes(5), stop);
          }) == ECANCELED);
    std::stop_source stop;
    stop.request_stop();
    CHECK(ex.run(errno_of(ex.unlock(held, stop.get_token()))) == ECANCELED);
    CHECK(held.is_held());
    CHECK_FALSE(is_free(ctx, lmr));
    ex.run(ex.unlock(held));
    CHECK(is_free(ctx, lmr));
}

TEST_CASE_METHOD(Async, "async: an exception releases a lock", "[uring]") {
    CHECK_THROWS_WITH(ex.run(hold_and_throw(ex, lmr)), "in between");
    CHECK(is_free(ctx, lmr));
}

TEST_CASE_METHOD(Async, "async: an executor's end releases its lock", "[uring]") {
    std::optional<lite::executor> mine(std::in_place, node);
    bool is_held = false;
    mine->spawn(hold(*mine, lmr, 1, is_held));
    while (!is_held)
        mine->run(mine->sleep(milliseconds(10)));
    CHECK_FALSE(is_free(ctx, lmr));
    mine.reset();
    CHECK(is_free(ctx, lmr));
}

TEST_CASE_METHOD(Async, "async: a lock that no coroutine gets is released", "[uring]") {
    std::optional<lite::executor> mine(std::in_place, node);
    bool is_held = false;
    REQUIRE(lite_lock(ctx, lmr.handle(), at, 1, 0, LITE_FOREVER) == 0);
    mine->spawn(hold(*mine, lmr, 2, is_held));
    mine->run(mine->sleep(a_while()));
    // The lock waits in the kernel; the executor does not run when the lock is granted.
    REQUIRE(lite_unlock(ctx, lmr.handle(), at, 1) == 0);
    REQUIRE_NOTHROW(wait_until("the lock is granted", [&] { return !is_free(ctx, lmr); }));
    // Mostly the command is completed then.
    std::this_thread::sleep_for(a_while());
    mine.reset();
    CHECK_FALSE(is_held);
    CHECK(becomes_free(ctx, lmr));
}

TEST_CASE_METHOD(Async, "async: locks of the dead", "[uring]") {
    const std::array home{env().remote.empty() ? env().self : env().peer()};
    NamedLmr named(dev, 4096, home, 0600);
    auto table = node.map(named.name(), kAccess);
    die_with_lock(named.name());
    auto held = ex.run(ex.lock(table, at, 2));
    CHECK(held.owner_died());
    ex.run(ex.make_consistent(held));
    CHECK_FALSE(held.owner_died());
    CHECK(ex.run(errno_of(ex.make_consistent(held))) == EINVAL);
    ex.run(ex.unlock(held));
    CHECK(ex.run(errno_of(ex.make_consistent(held))) == EPERM);
    {
        const auto again = ex.run(ex.lock(table, at, 2));
        CHECK_FALSE(again.owner_died());
    }
    die_with_lock(named.name());
    {
        const auto broken = ex.run(ex.try_lock_for(table, at, 2, patience()));
        REQUIRE(broken);
        CHECK(broken->owner_died());
    }
    CHECK(ex.run(errno_of(ex.lock(table, at, 2))) == ENOTRECOVERABLE);
}

TEST_CASE_METHOD(Async, "async: barriers", "[uring]") {
    CHECK_FALSE(ex.run(ex.arrive_and_wait_for(lmr, at, 2, soon)));
    CHECK_FALSE(ex.run(ex.arrive_and_wait_for(lmr, at, 2, milliseconds(0))));
    // Arrivals that timed out were not counted.
    int arrived = 0;
    ex.spawn(arrive(ex, lmr, 3, arrived));
    ex.spawn(arrive(ex, lmr, 3, arrived));
    ex.run(ex.sleep(a_while()));
    CHECK(arrived == 0);
    CHECK(ex.run(ex.arrive_and_wait_for(lmr, at, 3, patience())));
    while (arrived < 2)
        ex.run(ex.sleep(milliseconds(10)));
    CHECK(arrived == 2);
    CHECK(ex.run(errno_of(ex.arrive_and_wait(lmr, at, 0))) == EINVAL);
    CHECK(ex.run(ex.arrive_and_wait_for(lmr, at, 1, patience())));
}
