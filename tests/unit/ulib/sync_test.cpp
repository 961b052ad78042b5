// SPDX-License-Identifier: MIT
//
// Locks: the C and the C++ API, and the command, on a fake device.

#include "child.hpp"
#include "fake_node.hpp"
#include "recording.hpp"

#include <lite/lite.hpp>

#include "catch.hpp"

#include <cerrno>
#include <chrono>
#include <cstdint>
#include <mutex>
#include <optional>
#include <shared_mutex>
#include <system_error>
#include <thread>

using namespace std::chrono_literals;

namespace {

// A cluster with the results of locking that the test sets; it records the requests.
struct Locks {
    fake::cluster cluster;
    int result = 0;
    int unlock_result = 0;
    lite_ioc_lock lock{};
    lite_ioc_unlock unlock{};
    lite_ioc_unlock consistent{};
    int locked = 0, unlocked = 0, made_consistent = 0;

    Locks() {
        cluster.intercept = [this](unsigned long request, void* arg) -> std::optional<int> {
            switch (request) {
                case LITE_IOC_LOCK:
                    lock = *static_cast<lite_ioc_lock*>(arg);
                    ++locked;
                    return result;
                case LITE_IOC_UNLOCK:
                    unlock = *static_cast<lite_ioc_unlock*>(arg);
                    ++unlocked;
                    return unlock_result;
                case LITE_IOC_CONSISTENT:
                    consistent = *static_cast<lite_ioc_unlock*>(arg);
                    ++made_consistent;
                    return 0;
                default:
                    return std::nullopt;
            }
        };
    }
};

}  // namespace

TEST_CASE("lite_lock, lite_unlock and lite_lock_consistent", "[liblite][sync]") {
    const recording<lite_ioc_lock> node({}, -EOWNERDEAD);
    CHECK(lite_lock(node.ctx, 7, 24, 99, LITE_LOCK_SHARED, 1500) == -EOWNERDEAD);
    CHECK(node.request == LITE_IOC_LOCK);
    CHECK(node.last.size == sizeof(lite_ioc_lock));
    CHECK(node.last.flags == LITE_LOCK_SHARED);
    CHECK(node.last.lh == 7);
    CHECK(node.last.offset == 24);
    CHECK(node.last.owner == 99);
    CHECK(node.last.timeout_ms == 1500);

    const recording<lite_ioc_unlock> back({}, -ENOLCK);
    CHECK(lite_unlock(back.ctx, 7, 24, 99) == -ENOLCK);
    CHECK(back.request == LITE_IOC_UNLOCK);
    CHECK(back.last.size == sizeof(lite_ioc_unlock));
    CHECK(back.last.flags == 0);
    CHECK(back.last.lh == 7);
    CHECK(back.last.offset == 24);
    CHECK(back.last.owner == 99);

    const recording<lite_ioc_unlock> good;
    CHECK(lite_lock_consistent(good.ctx, 8, 16, 1) == 0);
    CHECK(good.request == LITE_IOC_CONSISTENT);
    CHECK(good.last.lh == 8);
    CHECK(good.last.offset == 16);
    CHECK(good.last.owner == 1);
}

TEST_CASE("lite::mutex works with the guards of the standard library", "[lite.hpp][sync]") {
    Locks locks;
    auto node = locks.cluster.context();
    auto region = node.alloc({.name = "x", .length = 64});
    lite::mutex mutex(node, region, 40);
    {
        const std::scoped_lock guard(mutex);
        CHECK(locks.lock.lh == region.handle());
        CHECK(locks.lock.offset == 40);
        CHECK(locks.lock.flags == 0);
        CHECK(locks.lock.timeout_ms == LITE_FOREVER);
        CHECK(locks.unlocked == 0);
        CHECK_FALSE(mutex.owner_died());
    }
    CHECK(locks.unlocked == 1);
    CHECK(locks.unlock.lh == region.handle());
    CHECK(locks.unlock.offset == 40);
    CHECK(locks.unlock.owner == locks.lock.owner);
    {
        const std::shared_lock guard(mutex);
        CHECK(locks.lock.flags == LITE_LOCK_SHARED);
    }
    CHECK(locks.unlocked == 2);

    // Each thread is a holder of its own.
    const auto mine = locks.lock.owner;
    std::thread([&] { mutex.lock(); }).join();
    CHECK(locks.lock.owner != mine);
}

TEST_CASE("lite::mutex: a child with the parent's process id is another holder",
          "[lite.hpp][sync]") {
    Locks locks;
    auto node = locks.cluster.context();
    auto region = node.alloc({.name = "x", .length = 64});
    lite::mutex mutex(node, region, 0);
    const int result = in_child_of_same_pid(
        [&] {
            mutex.lock();
            return locks.lock.owner;
        },
        [&](std::uint64_t of_parent) {
            mutex.lock();
            const auto mine = locks.lock.owner;
            mutex.unlock();
            return mine != of_parent && locks.unlock.owner == mine ? 0 : 1;
        });
    if (result == no_namespaces)
        WARN("skipped: namespaces cannot be made here");
    else
        CHECK(result == 0);
}

TEST_CASE("lite::mutex: trying, and waiting for a time", "[lite.hpp][sync]") {
    Locks locks;
    auto node = locks.cluster.context();
    auto region = node.alloc({.name = "x", .length = 64});
    lite::mutex mutex(node, region, 0);

    locks.result = -EBUSY;
    CHECK_FALSE(mutex.try_lock());
    CHECK((locks.lock.flags == 0 && locks.lock.timeout_ms == LITE_NOWAIT));
    CHECK_FALSE(mutex.try_lock_shared());
    CHECK((locks.lock.flags == LITE_LOCK_SHARED && locks.lock.timeout_ms == LITE_NOWAIT));
    CHECK_FALSE(mutex.try_lock_for(0s));
    CHECK((locks.lock.flags == 0 && locks.lock.timeout_ms == LITE_NOWAIT));

    locks.result = -ETIMEDOUT;
    CHECK_FALSE(mutex.try_lock_for(1500us));
    CHECK(locks.lock.timeout_ms == 2);
    CHECK(locks.lock.flags == 0);
    CHECK_FALSE(mutex.try_lock_shared_for(3s));
    CHECK(locks.lock.timeout_ms == 3000);
    CHECK(locks.lock.flags == LITE_LOCK_SHARED);
    // A long time-out does not become "for ever".
    CHECK_FALSE(mutex.try_lock_for(std::chrono::hours(24 * 365)));
    CHECK(locks.lock.timeout_ms == LITE_TIMEOUT_MAX);
    // Nor does one that is too long for milliseconds become a negative one.
    const auto longest = [&](auto time) {
        locks.lock.timeout_ms = 0;
        CHECK_FALSE(mutex.try_lock_for(time));
        CHECK(locks.lock.timeout_ms == LITE_TIMEOUT_MAX);
    };
    longest(std::chrono::seconds::max());
    longest(std::chrono::hours::max());
    longest(std::chrono::nanoseconds::max());
    longest(std::chrono::duration<double>(1e30));
    CHECK_FALSE(mutex.try_lock_for(std::chrono::hours::min()));
    CHECK(locks.lock.timeout_ms == LITE_NOWAIT);
    const auto due = std::chrono::steady_clock::now() + 1000s;
    CHECK_FALSE(std::unique_lock(mutex, due).owns_lock());
    CHECK(locks.lock.timeout_ms * 1ms >= due - std::chrono::steady_clock::now());
    CHECK(locks.lock.timeout_ms <= 1000000);
    using seconds_clock = std::chrono::time_point<std::chrono::steady_clock, std::chrono::seconds>;
    CHECK_FALSE(mutex.try_lock_until(seconds_clock::max()));
    CHECK(locks.lock.timeout_ms == LITE_TIMEOUT_MAX);
    CHECK_FALSE(mutex.try_lock_until(std::chrono::steady_clock::time_point::min()));
    CHECK(locks.lock.timeout_ms == LITE_NOWAIT);
    CHECK(locks.unlocked == 0);

    // In a call without a time-out, ETIMEDOUT means that the node did not answer.
    CHECK_THROWS_AS(mutex.lock(), lite::error);
    locks.result = -EDEADLK;
    CHECK_THROWS_AS(mutex.try_lock(), lite::error);
    locks.result = -ENOTRECOVERABLE;
    CHECK_THROWS_AS(mutex.lock_shared(), lite::error);
}

TEST_CASE("lite::mutex: after a holder that died", "[lite.hpp][sync]") {
    Locks locks;
    auto node = locks.cluster.context();
    auto region = node.alloc({.name = "x", .length = 64});
    lite::mutex mutex(node, region, 8);

    locks.result = -EOWNERDEAD;
    {
        const std::unique_lock guard(mutex, 5s);
        CHECK(guard.owns_lock());
        CHECK(mutex.owner_died());
        CHECK(locks.made_consistent == 0);
        mutex.make_consistent();
        CHECK_FALSE(mutex.owner_died());
        CHECK(locks.consistent.offset == 8);
        CHECK(locks.consistent.owner == locks.lock.owner);
    }
    CHECK(locks.unlocked == 1);

    // Unlocking does not make the lock consistent by itself.
    mutex.lock();
    mutex.unlock();
    CHECK(locks.made_consistent == 1);
    locks.result = 0;
    mutex.lock();
    CHECK_FALSE(mutex.owner_died());

    locks.unlock_result = -ENOLCK;
    CHECK_THROWS_AS(mutex.unlock_or_throw(), lite::error);
    // Standard guards survive the loss of the lock.
    locks.unlocked = 0;
    {
        std::unique_lock guard(mutex);
        guard.unlock();
        guard.lock();
    }
    { const std::shared_lock guard(mutex); }
    CHECK(locks.unlocked == 3);
    STATIC_REQUIRE(noexcept(mutex.unlock())&& noexcept(mutex.unlock_shared()));
}

TEST_CASE("lite_barrier and lite::barrier", "[lite.hpp][sync]") {
    const recording<lite_ioc_barrier> node({}, -EINVAL);
    CHECK(lite_barrier(node.ctx, 7, 24, 5, 1500) == -EINVAL);
    CHECK(node.request == LITE_IOC_BARRIER);
    CHECK(node.last.size == sizeof(lite_ioc_barrier));
    CHECK(node.last.flags == 0);
    CHECK(node.last.lh == 7);
    CHECK(node.last.offset == 24);
    CHECK(node.last.n == 5);
    CHECK(node.last.timeout_ms == 1500);

    const recording<lite_ioc_barrier> good;
    const lite::barrier barrier(good.ctx, 9, 8, 3);
    barrier.arrive_and_wait();
    CHECK(good.last.lh == 9);
    CHECK(good.last.offset == 8);
    CHECK(good.last.n == 3);
    CHECK(good.last.timeout_ms == LITE_FOREVER);
    CHECK(barrier.arrive_and_wait_for(2s));
    CHECK(good.last.timeout_ms == 2000);
    CHECK(barrier.arrive_and_wait_for(0s));
    CHECK(good.last.timeout_ms == 1);

    const recording<lite_ioc_barrier> late({}, -ETIMEDOUT);
    const lite::barrier in_vain(late.ctx, 9, 8, 3);
    CHECK_FALSE(in_vain.arrive_and_wait_for(1ms));
    CHECK_THROWS_AS(in_vain.arrive_and_wait(), lite::error);
}

TEST_CASE("lite_barrier_open makes a missing barrier", "[liblite][sync]") {
    fake::cluster cluster;
    auto node = cluster.context();
    lite_lh_t first = 0;
    REQUIRE(lite_barrier_open(node.get(), "meeting", 0660, &first) == 0);
    const auto made = cluster.find("meeting");
    REQUIRE(made);
    CHECK(made->info.length == 8);
    CHECK(made->info.mode == 0660);
    lite_lh_t second = 0;
    REQUIRE(lite_barrier_open(node.get(), "meeting", 0600, &second) == 0);
    CHECK(second != first);
    CHECK(cluster.find("meeting") == made);
    CHECK(lite_unmap(node.get(), first) == 0);
    CHECK(lite_unmap(node.get(), second) == 0);

    CHECK(lite_barrier_open(node.get(), "", 0600, &first) == -EINVAL);
    CHECK(lite_barrier_open(node.get(), nullptr, 0600, &first) == -EINVAL);
    CHECK(lite_barrier_open(node.get(), "x", 0777, &first) == -EINVAL);

    // Another process makes the barrier between the two look-ups, or an earlier one of that name is
    // being freed: then the library pauses, each time longer.
    int misses = 1;
    cluster.intercept = [&misses](unsigned long request, void*) -> std::optional<int> {
        return request == LITE_IOC_MAP && misses-- > 0 ? std::optional(-ENOENT) : std::nullopt;
    };
    CHECK(lite_barrier_open(node.get(), "meeting", 0600, &first) == 0);
    CHECK(misses == -1);
    misses = 6;
    const auto begun = std::chrono::steady_clock::now();
    CHECK(lite_barrier_open(node.get(), "meeting", 0600, &second) == 0);
    CHECK(misses == -1);
    CHECK(std::chrono::steady_clock::now() - begun >= 63ms);
}
