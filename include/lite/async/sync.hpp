// SPDX-License-Identifier: MIT
//
// liblite for C++20: awaitable locks and barriers; a part of lite::executor (<lite/async.hpp>). The
// names are those of lite::mutex and lite::barrier (<lite/sync.hpp>).
//
//    {
//        auto held = co_await ex.lock(table, 64, owner);
//        if (held.owner_died()) {
//            co_await repair(table);
//            co_await ex.make_consistent(held);
//        }
//        co_await change(table);
//        co_await ex.unlock(held);  // or else its destructor does it, and waits
//    }
//
// @owner is any number: coroutines that exclude each other use different ones. The word is at
// @offset, a multiple of 8, of an LMR. Its handle has rights::write and rights::atomic, and must
// stay as long as the lock is held.
//
// Besides the errors of <lite/sync.h> these throw ECANCELED, if a stop was requested: the lock is
// not taken.
#pragma once

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <optional>
#include <stop_token>
#include <utility>

#include <lite/async/memory.hpp>
#include <lite/sync.hpp>

namespace lite {

// A lock that is held, exclusive or shared. The destructor releases it, and blocks as lite_unlock()
// does; executor::unlock() is awaited instead. It must not outlive the context or the handle. In a
// child of fork(2) it leaves the parent's lock alone.
class [[nodiscard]] held_lock {
  public:
    // Takes ownership of the lock that @owner has in a word.
    held_lock(lite_ctx* ctx, lite_lh_t lh, std::uint64_t offset, std::uint64_t owner,
              bool owner_died = false) noexcept
        : m_ctx(ctx),
          m_lh(lh),
          m_offset(offset),
          m_owner(owner),
          m_owner_died(owner_died),
          m_maker(detail::maker::self()) {}
    held_lock(held_lock&& other) noexcept
        : m_ctx(std::exchange(other.m_ctx, nullptr)),
          m_lh(other.m_lh),
          m_offset(other.m_offset),
          m_owner(other.m_owner),
          m_owner_died(other.m_owner_died),
          m_maker(other.m_maker) {}
    held_lock& operator=(held_lock&&) = delete;

    // After a failure the lock is released as soon as possible, at the latest when the context is
    // closed.
    ~held_lock() {
        if (m_ctx && m_maker.is_self())
            lite_unlock(m_ctx, m_lh, m_offset, m_owner);
    }

    // Did an exclusive holder die before and leave the data as it was? True until
    // executor::make_consistent(). An exclusive lock that is released before that cannot be taken
    // any more: ENOTRECOVERABLE.
    bool owner_died() const noexcept { return m_owner_died; }

    // False: it was unlocked, or released.
    bool is_held() const noexcept { return m_ctx; }

    // Leaves unlocking to the caller.
    void release() noexcept { m_ctx = nullptr; }

  private:
    friend class sync_calls;

    lite_ctx* m_ctx;
    lite_lh_t m_lh;
    std::uint64_t m_offset;
    std::uint64_t m_owner;
    bool m_owner_died;
    detail::maker m_maker;
};

class sync_calls {
  public:
    explicit sync_calls(detail::engine& on) noexcept : m_engine(on) {}
    sync_calls(const sync_calls&) = delete;
    sync_calls& operator=(const sync_calls&) = delete;

    // Takes the lock in a word, exclusively; waits without limit.
    // @throws error as lite_lock(); ECANCELED
    task<held_lock> lock(lmr in, std::uint64_t offset, std::uint64_t owner,
                         std::stop_token stop = {}) {
        return take_surely(place{in.lh, offset, owner}, 0, std::move(stop));
    }

    // The same without waiting; empty if another holder has the lock.
    // @throws error as lite_lock(); ECANCELED
    task<std::optional<held_lock>> try_lock(lmr in, std::uint64_t offset, std::uint64_t owner,
                                            std::stop_token stop = {}) {
        return take({in.lh, offset, owner}, LITE_LOCK_TRY, detail::time_left(LITE_FOREVER),
                    std::move(stop));
    }

    // The same, waiting at most @time, rounded up to milliseconds; empty after that.
    // @throws error as lite_lock(); ECANCELED
    template <typename Rep, typename Period>
    task<std::optional<held_lock>> try_lock_for(lmr in, std::uint64_t offset, std::uint64_t owner,
                                                const std::chrono::duration<Rep, Period>& time,
                                                std::stop_token stop = {}) {
        return take_for({in.lh, offset, owner}, 0, time, std::move(stop));
    }

    // Shared with other readers. @throws error as lite_lock(); ECANCELED
    task<held_lock> lock_shared(lmr in, std::uint64_t offset, std::uint64_t owner,
                                std::stop_token stop = {}) {
        return take_surely(place{in.lh, offset, owner}, LITE_LOCK_SHARED, std::move(stop));
    }

    task<std::optional<held_lock>> try_lock_shared(lmr in, std::uint64_t offset,
                                                   std::uint64_t owner, std::stop_token stop = {}) {
        return take({in.lh, offset, owner}, LITE_LOCK_SHARED | LITE_LOCK_TRY,
                    detail::time_left(LITE_FOREVER), std::move(stop));
    }

    template <typename Rep, typename Period>
    task<std::optional<held_lock>> try_lock_shared_for(
        lmr in, std::uint64_t offset, std::uint64_t owner,
        const std::chrono::duration<Rep, Period>& time, std::stop_token stop = {}) {
        return take_for({in.lh, offset, owner}, LITE_LOCK_SHARED, time, std::move(stop));
    }

    // Releases a lock. @held must stay until this has ended. After a failure it is released as soon
    // as possible.
    // @throws error as lite_unlock(); EINTR (a stop was requested, or the process was stopped for a
    // while, after it had begun); ECANCELED (a stop was requested before: it is still held)
    task<> unlock(held_lock& held, std::stop_token stop = {}) {
        if (!held.m_ctx)
            throw error(EPERM, "unlock");
        const int err = co_await give_back(LITE_IOC_UNLOCK, held, std::move(stop));
        if (err != -ECANCELED)
            held.release();
        detail::check(err, "unlock");
    }

    // The same for a lock after release().
    task<> unlock(lmr in, std::uint64_t offset, std::uint64_t owner, std::stop_token stop = {}) {
        held_lock held(m_engine.ctx(), in.lh, offset, owner);
        const int err = co_await give_back(LITE_IOC_UNLOCK, held, std::move(stop));
        held.release();
        detail::check(err, "unlock");
    }

    // Declares the protected data consistent; not allowed for a shared holder.
    // @throws error as lite_lock_consistent(); ECANCELED, EINTR
    task<> make_consistent(held_lock& held, std::stop_token stop = {}) {
        if (!held.m_ctx)
            throw error(EPERM, "make consistent");
        detail::check(co_await give_back(LITE_IOC_CONSISTENT, held, std::move(stop)),
                      "make consistent");
        held.m_owner_died = false;
    }

    // Waits for @n arrivals, 1..LITE_BARRIER_MAX, this one included.
    // @throws error as lite_barrier(); ECANCELED, EINTR (the process was stopped for a while): it
    // is unknown whether this arrival was counted
    task<> arrive_and_wait(lmr in, std::uint64_t offset, std::uint32_t n,
                           std::stop_token stop = {}) {
        detail::check(co_await arrive(in, offset, n, LITE_FOREVER, std::move(stop)), "barrier");
    }

    // False: timed out, and the caller has not been counted. @time is rounded up to milliseconds,
    // at least one.
    // @throws error as arrive_and_wait()
    template <typename Rep, typename Period>
    task<bool> arrive_and_wait_for(lmr in, std::uint64_t offset, std::uint32_t n,
                                   std::chrono::duration<Rep, Period> time,
                                   std::stop_token stop = {}) {
        const auto limit = time <= time.zero() ? 1 : detail::milliseconds_of(time);
        const int err = co_await arrive(in, offset, n, limit, std::move(stop));
        if (err != -ETIMEDOUT)
            detail::check(err, "barrier");
        co_return err == 0;
    }

  private:
    struct place {
        lite_lh_t lh;
        std::uint64_t offset;
        std::uint64_t owner;
    };

    task<std::optional<held_lock>> take(place at, std::uint32_t flags, detail::time_left left,
                                        std::stop_token stop) {
        lite_ctx* const ctx = m_engine.ctx();
        lite_ioc_lock args;
        bool endless = false;
        const auto prepare = [&](io_uring_sqe* sqe) {
            const int limit = left.next();
            endless = limit < 0;
            lite_uring_lock(sqe, ctx, &args, at.lh, at.offset, at.owner, flags, limit);
        };
        // The awaiting coroutine is gone: release the lock. If the previous holder died
        // (-EOWNERDEAD) keep an exclusive one until the context is closed, which passes EOWNERDEAD
        // on; unlocking without make_consistent() would make the lock unrecoverable.
        const bool shared = flags & LITE_LOCK_SHARED;
        const auto undo = [at, ctx, shared](int result) noexcept {
            if (!result || (shared && result == -EOWNERDEAD))
                lite_unlock(ctx, at.lh, at.offset, at.owner);
        };
        const int err = co_await m_engine.persist(prepare, std::move(stop), undo);
        if (err == -EBUSY || (err == -ETIMEDOUT && !endless))
            co_return std::nullopt;
        if (err != -EOWNERDEAD)
            detail::check(err, "lock");
        co_return held_lock(ctx, at.lh, at.offset, at.owner, err == -EOWNERDEAD);
    }

    task<held_lock> take_surely(place at, std::uint32_t flags, std::stop_token stop) {
        auto taken = co_await take(at, flags, detail::time_left(LITE_FOREVER), std::move(stop));
        if (!taken)
            throw error(EBUSY, "lock");
        co_return std::move(*taken);
    }

    template <typename Rep, typename Period>
    task<std::optional<held_lock>> take_for(place at, std::uint32_t flags,
                                            const std::chrono::duration<Rep, Period>& time,
                                            std::stop_token stop) {
        if (time <= time.zero())
            return take(at, flags | LITE_LOCK_TRY, detail::time_left(LITE_FOREVER),
                        std::move(stop));
        return take(at, flags, detail::time_left(detail::milliseconds_of(time)), std::move(stop));
    }

    task<int> give_back(unsigned number, const held_lock& held, std::stop_token stop) {
        lite_ioc_unlock args{};
        args.lh = held.m_lh;
        args.offset = held.m_offset;
        args.owner = held.m_owner;
        const detail::ioctl_of prepare(m_engine, number, args);
        detail::submission sent(m_engine, prepare, std::move(stop));
        co_await sent;
        co_return sent.outcome();
    }

    task<int> arrive(lmr in, std::uint64_t offset, std::uint32_t n, int limit,
                     std::stop_token stop) {
        lite_ioc_barrier args;
        const auto prepare = [&](io_uring_sqe* sqe) {
            lite_uring_barrier(sqe, m_engine.ctx(), &args, in.lh, offset, n, limit);
        };
        detail::submission arrived(m_engine, prepare, std::move(stop));
        co_return co_await arrived;
    }

    detail::engine& m_engine;
};

}  // namespace lite
