// SPDX-License-Identifier: MIT
//
// liblite for C++20: locks in words of LMRs, for the guards of the standard library, and barriers.
// Included by <lite/lite.hpp>.
//
//	lite::mutex mutex(node, table, 64);
//	{
//	    std::unique_lock held(mutex, std::chrono::seconds(5));
//	    if (held && mutex.owner_died()) {
//	        repair(table);
//	        mutex.make_consistent();
//	    }
//	}
#pragma once

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdint>

#include <unistd.h>

#include <lite/lite.h>
#include <lite/types.hpp>

namespace lite {

namespace detail {

// A lite::context and a lite::region, without their header.
template <typename Context, typename Region>
concept place = requires(const Context& node, const Region& region) {
    node.get();
    region.handle();
};

// Rounded up; limited to the longest time-out, a day.
template <typename Rep, typename Period>
int milliseconds_of(const std::chrono::duration<Rep, Period>& time) {
    using std::chrono::milliseconds;
    constexpr milliseconds longest{LITE_TIMEOUT_MAX};
    // A common type of integers may not hold both.
    const bool fits = std::chrono::duration<double>(time) < longest;
    const auto left = fits ? std::chrono::ceil<milliseconds>(time) : longest;
    return static_cast<int>(left.count());
}

// Seconds until @end, as double: the difference may not fit in the type of the times.
template <typename Clock, typename Duration>
std::chrono::duration<double> time_until(const std::chrono::time_point<Clock, Duration>& end) {
    const std::chrono::duration<double> now = Clock::now().time_since_epoch();
    return end.time_since_epoch() - now;
}

}  // namespace detail

// The lock in a word of an LMR, like std::shared_timed_mutex: for std::scoped_lock,
// std::unique_lock and std::shared_lock. The holder is the thread; threads of all processes on all
// nodes exclude each other. Not copyable or movable, like other mutexes.
//
// When an exclusive holder died, with its process or its node, the next one gets the lock, and
// owner_died() is true until make_consistent(). An exclusive holder that releases the lock before
// that leaves one that cannot be taken any more: ENOTRECOVERABLE. A shared holder cannot make it
// consistent, and leaves that to an exclusive one.
//
// A child of fork(2) may take the lock with the object that it has inherited, but holds none that
// its parent held: unlock() does nothing there.
class mutex {
  public:
    // The word at @offset of the LMR behind @lh. The handle, with rights::write and rights::atomic,
    // and the context must outlive it.
    mutex(lite_ctx* ctx, lite_lh_t lh, std::uint64_t offset) noexcept
        : m_ctx(ctx), m_lh(lh), m_offset(offset) {}

    template <typename Context, typename Region>
    requires detail::place<Context, Region> mutex(const Context& node, const Region& region,
                                                  std::uint64_t offset)
    noexcept : mutex(node.get(), region.handle(), offset) {}

    mutex(const mutex&) = delete;
    mutex& operator=(const mutex&) = delete;

    // @throws error as lite_lock()
    void lock() { take(0, LITE_FOREVER); }
    bool try_lock() { return take(0, LITE_NOWAIT); }

    // Rounded up to milliseconds.
    template <typename Rep, typename Period>
    bool try_lock_for(const std::chrono::duration<Rep, Period>& time) {
        return take_for(0, time);
    }

    template <typename Clock, typename Duration>
    bool try_lock_until(const std::chrono::time_point<Clock, Duration>& end) {
        return take_for(0, detail::time_until(end));
    }

    // Does not throw, as destructors of guards call it: a caller that has lost the lock before
    // (ENOLCK and others of lite_unlock()) does not learn of it.
    void unlock() noexcept { (void)lite_unlock(m_ctx, m_lh, m_offset, self()); }

    // Unlocks, also for a shared holder, and says if the lock was lost before. A guard that has the
    // lock must release() it first. @throws error as lite_unlock()
    void unlock_or_throw() { check(lite_unlock(m_ctx, m_lh, m_offset, self()), "unlock"); }

    // Shared with other readers.
    void lock_shared() { take(LITE_LOCK_SHARED, LITE_FOREVER); }
    bool try_lock_shared() { return take(LITE_LOCK_SHARED, LITE_NOWAIT); }

    template <typename Rep, typename Period>
    bool try_lock_shared_for(const std::chrono::duration<Rep, Period>& time) {
        return take_for(LITE_LOCK_SHARED, time);
    }

    template <typename Clock, typename Duration>
    bool try_lock_shared_until(const std::chrono::time_point<Clock, Duration>& end) {
        return take_for(LITE_LOCK_SHARED, detail::time_until(end));
    }

    void unlock_shared() noexcept { unlock(); }

    // For the holder: did an exclusive one die and leave the data as it was? Of the last time that
    // any thread took the lock with this object.
    bool owner_died() const noexcept { return m_owner_died.load(std::memory_order_relaxed); }

    // Declares the data consistent again; not allowed for a shared holder.
    // @throws error as lite_lock_consistent()
    void make_consistent() {
        check(lite_lock_consistent(m_ctx, m_lh, m_offset, self()), "make consistent");
        m_owner_died.store(false, std::memory_order_relaxed);
    }

  private:
    // The thread id, unique among the live threads of a PID namespace, and the time of the last
    // fork(2), which tells threads of other namespaces apart.
    static std::uint64_t self() noexcept {
        return static_cast<std::uint64_t>(::gettid()) | std::uint64_t{detail::forked.time} << 32;
    }

    static void check(int err, const char* doing) {
        if (err)
            throw error(err, doing);
    }

    bool take(std::uint32_t flags, int timeout_ms) {
        const int err = lite_lock(m_ctx, m_lh, m_offset, self(), flags, timeout_ms);
        if (err == -EBUSY || (err == -ETIMEDOUT && timeout_ms != LITE_FOREVER))
            return false;
        if (err != -EOWNERDEAD)
            check(err, "lock");
        m_owner_died.store(err == -EOWNERDEAD, std::memory_order_relaxed);
        return true;
    }

    template <typename Rep, typename Period>
    bool take_for(std::uint32_t flags, const std::chrono::duration<Rep, Period>& time) {
        if (time <= time.zero())
            return take(flags, LITE_NOWAIT);
        return take(flags, detail::milliseconds_of(time));
    }

    lite_ctx* m_ctx;
    lite_lh_t m_lh;
    std::uint64_t m_offset;
    std::atomic<bool> m_owner_died = false;
};

// A barrier in a word of an LMR for @n threads of any processes and nodes: each waits until all
// have arrived.
class barrier {
  public:
    // The word as for lite::mutex. @n: 1..LITE_BARRIER_MAX
    barrier(lite_ctx* ctx, lite_lh_t lh, std::uint64_t offset, std::uint32_t n) noexcept
        : m_ctx(ctx), m_lh(lh), m_offset(offset), m_n(n) {}

    template <typename Context, typename Region>
    requires detail::place<Context, Region> barrier(const Context& node, const Region& region,
                                                    std::uint64_t offset, std::uint32_t n)
    noexcept : barrier(node.get(), region.handle(), offset, n) {}

    // @throws error as lite_barrier()
    void arrive_and_wait() const { arrive(LITE_FOREVER); }

    // False: timed out, and the caller has not been counted. A time of 0 or less is taken as a
    // millisecond.
    template <typename Rep, typename Period>
    bool arrive_and_wait_for(const std::chrono::duration<Rep, Period>& time) const {
        return arrive(time <= time.zero() ? 1 : detail::milliseconds_of(time));
    }

  private:
    bool arrive(int timeout_ms) const {
        const int err = lite_barrier(m_ctx, m_lh, m_offset, m_n, timeout_ms);
        if (err == -ETIMEDOUT && timeout_ms != LITE_FOREVER)
            return false;
        if (err)
            throw error(err, "barrier");
        return true;
    }

    lite_ctx* m_ctx;
    lite_lh_t m_lh;
    std::uint64_t m_offset;
    std::uint32_t m_n;
};

}  // namespace lite
