// SPDX-License-Identifier: MIT
//
// liblite for C++20: the base of <lite/async.hpp>. An io_uring, the coroutines that wait for its
// completions, and the root tasks, which are not awaited.
//
// An SQE in flight is a detail::submission in the frame of the coroutine that awaits it; its
// address is the user data. So a frame must stay until the kernel is done with it: abandon(),
// called before tasks are destroyed, cancels everything and waits for the completions. Operations
// that succeed for a coroutine that will not be resumed are undone there: locks and requests are
// released, handles closed.
//
// Everything runs in one thread, so nothing here is locked. Only step() resumes waiters, never the
// call that made them wait.
#pragma once

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <coroutine>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <list>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <liburing.h>

#include <lite/uring.h>
#include <lite/async/task.hpp>
#include <lite/types.hpp>

namespace lite {

struct executor_options {
    unsigned entries = 256;  // of the ring: commands passed to the kernel at once
    // Most kernel threads that may sleep in receive(), call(), lock(), barriers and the like.
    // Further such operations do not begin before a thread is free.
    unsigned workers = 512;
};

namespace detail {

class pending {
  public:
    // The coroutine will not be resumed: reverts what the operation did.
    virtual void undo() noexcept = 0;

    std::coroutine_handle<> waiting;
    pending* next = nullptr;  // next in a batch of completions
    int result = 0;

  protected:
    ~pending() = default;
};

struct leave_it {
    void operator()(int) const noexcept {}
};

inline void check(int err, const char* doing) {
    if (err)
        throw error(err, doing);
}

// What is left of a time-out in ms, across retries.
class time_left {
  public:
    // @limit: ms; 0 or negative: as in <lite/lite.h>
    explicit time_left(int limit) noexcept : m_limit(limit) {}

    // The first call returns @limit and starts the clock; later ones at least 1 ms, as 0 would mean
    // not to wait.
    int next() {
        using std::chrono::milliseconds;
        const auto now = std::chrono::steady_clock::now();
        if (m_limit <= 0)
            return m_limit;
        if (!m_end)
            m_end = now + milliseconds(m_limit);
        return static_cast<int>(
            std::max<std::int64_t>(1, std::chrono::ceil<milliseconds>(*m_end - now).count()));
    }

  private:
    int m_limit;
    std::optional<std::chrono::steady_clock::time_point> m_end;
};

class engine {
  public:
    // The context must outlive it. @throws error, as io_uring_queue_init(3)
    engine(lite_ctx* ctx, const executor_options& options) : m_ctx(ctx) {
        constexpr unsigned flags = IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN;
        check(::io_uring_queue_init(options.entries, &m_ring, flags), "make a ring");
        unsigned workers[] = {options.workers, options.workers};
        const int err = ::io_uring_register_iowq_max_workers(&m_ring, workers);
        if (err < 0) {
            ::io_uring_queue_exit(&m_ring);
            throw error(err, "set the number of a ring's threads");
        }
    }

    engine(const engine&) = delete;
    engine& operator=(const engine&) = delete;

    ~engine() {
        abandon();
        ::io_uring_queue_exit(&m_ring);
    }

    // Runs a task, and everything spawned meanwhile, until the task ends; returns or throws its
    // result. An exception of a spawned task ends everything: it is thrown here, and all tasks are
    // destroyed with what they hold.
    //
    // Signals do not interrupt it: their handlers run, and it continues. To await a signal, poll()
    // a signalfd(2).
    //
    // @throws error: ECHILD, if the task does not wait for this executor, so that nothing in flight
    // could resume it; EDEADLK, if a coroutine of this executor calls it; EEXIST, in another thread
    // than that which made the executor, or in a child of fork(2)
    template <typename T>
    T run(task<T> main) {
        check_owner("run");
        // If this ended by an exception, it would destroy the frame of the caller.
        if (m_resuming)
            throw error(EDEADLK, "run: called by a coroutine of the executor");
        m_resuming = true;
        // The frames must stay until the kernel no longer writes to them.
        struct guard {
            ~guard() {
                if (!ended && !self.abandon())
                    of.release();
                self.m_resuming = false;
            }
            engine& self;
            task<T>& of;
            bool ended = false;
        } all{*this, main};
        const auto frame = main.frame();
        frame.resume();
        while (!frame.done())
            step();
        rethrow();
        all.ended = !frame.promise().failure;
        return frame.promise().take();
    }

    // Starts a task beside the others; runs it up to its first wait before returning.
    // @throws error: EEXIST as run()
    void spawn(task<> work) {
        check_owner("spawn");
        m_roots.push_back(start(*this, std::move(work)));
        const bool was_resuming = std::exchange(m_resuming, true);
        m_roots.back().frame.resume();
        m_resuming = was_resuming;
        sweep();
    }

    // Runs tasks concurrently until all have ended; then throws the exception of the first, in the
    // order of @tasks, that failed.
    task<> all(std::vector<task<>> tasks) {
        struct end {
            bool await_ready() const noexcept { return of.done(); }
            void await_suspend(std::coroutine_handle<> waiter) const noexcept {
                of.promise().next = waiter;
            }
            void await_resume() const { of.promise().take(); }
            task<>::handle of;
        };
        std::exception_ptr failure;
        for (const auto& t : tasks)
            t.frame().resume();
        for (const auto& t : tasks) {
            try {
                co_await end{t.frame()};
            } catch (...) {
                if (!failure)
                    failure = std::current_exception();
            }
        }
        if (failure)
            std::rethrow_exception(failure);
    }

    // Any ioctl of /dev/liteN: returns 0 or a negative errno. @args is its structure, with @size
    // set here; it belongs to the caller, and must stay until this has ended.
    template <typename Args>
    task<int> command(unsigned number, Args& args, std::stop_token stop = {});

    // Waits until any of @events of poll(2), POLLIN and so on, is true for any descriptor. Returns
    // those that are true, including POLLERR and POLLHUP, which need not be asked for.
    task<unsigned> poll(int fd, unsigned events, std::stop_token stop = {});

    // Sleeps on CLOCK_MONOTONIC; hardly at all if @time is not positive.
    template <typename Rep, typename Period>
    task<> sleep(std::chrono::duration<Rep, Period> time, std::stop_token stop = {}) {
        return sleep_for(std::chrono::ceil<std::chrono::nanoseconds>(
                             std::clamp<std::chrono::duration<double>>(time, no_time, a_century)),
                         std::move(stop));
    }

    // The rest is for the classes of operations.

    lite_ctx* ctx() const noexcept { return m_ctx; }

    // Submits the SQE that @prepare fills in, again after EINTR, and returns its result. For
    // operations that did nothing if they were interrupted, as they are when the process is stopped
    // for a while.
    template <typename Prepare, typename Undo = leave_it>
    task<int> persist(const Prepare& prepare, std::stop_token stop, Undo undo = {});

    // Submits the SQE that @prepare fills in; @by is told of its completion.
    template <typename Prepare>
    void submit(const Prepare& prepare, pending* by) {
        io_uring_sqe* sqe = next_sqe();
        prepare(sqe);
        ::io_uring_sqe_set_data(sqe, by);
        m_under_way++;
    }

    void cancel(pending* which) noexcept {
        if (!is_owner())
            return;
        io_uring_sqe* sqe = ::io_uring_get_sqe(&m_ring);
        if (!sqe) {
            ::io_uring_submit(&m_ring);
            sqe = ::io_uring_get_sqe(&m_ring);
        }
        if (!sqe)
            return;
        ::io_uring_prep_cancel(sqe, which, 0);
        ::io_uring_sqe_set_data(sqe, nullptr);
    }

  private:
    static constexpr std::chrono::duration<double> no_time{0};
    static constexpr std::chrono::duration<double> a_century = std::chrono::years(100);

    // A spawned task, wrapped in a frame of its own.
    struct root {
        struct promise_type {
            root get_return_object() noexcept {
                return root(std::coroutine_handle<promise_type>::from_promise(*this));
            }
            std::suspend_always initial_suspend() const noexcept { return {}; }
            std::suspend_always final_suspend() const noexcept { return {}; }
            void return_void() const noexcept {}
            void unhandled_exception() const noexcept { std::terminate(); }
        };

        explicit root(std::coroutine_handle<promise_type> of) noexcept : frame(of) {}
        root(root&& other) noexcept : frame(std::exchange(other.frame, {})) {}
        root& operator=(root&&) = delete;
        ~root() {
            if (frame)
                frame.destroy();
        }

        std::coroutine_handle<promise_type> frame;
    };

    static root start(engine& on, task<> work) {
        try {
            co_await work;
        } catch (...) {
            if (!on.m_failure)
                on.m_failure = std::current_exception();
        }
        on.m_some_ended = true;
    }

    task<> sleep_for(std::chrono::nanoseconds time, std::stop_token stop);

    // Only the thread that made the ring may submit to it, and a child of fork(2) has the memory of
    // its parent's ring.
    bool is_owner() const noexcept {
        return forked.count == m_forks && std::this_thread::get_id() == m_thread;
    }

    void check_owner(const char* doing) const {
        if (!is_owner())
            throw error(EEXIST, std::string(doing) + ": the executor is another thread's");
    }

    io_uring_sqe* next_sqe() {
        // A coroutine may have called fork(2).
        check_owner("submit");
        io_uring_sqe* sqe = ::io_uring_get_sqe(&m_ring);
        while (!sqe) {
            const int n = ::io_uring_submit(&m_ring);
            if (n < 0 && !is_passing(n))
                throw error(n, "submit");
            sqe = ::io_uring_get_sqe(&m_ring);
        }
        ::io_uring_prep_nop(sqe);
        return sqe;
    }

    // EBUSY: completions must be taken first; the SQEs are accepted later.
    static bool is_passing(int err) noexcept {
        return err == -EINTR || err == -EAGAIN || err == -EBUSY;
    }

    // Takes the completions, in their order, linked by @next.
    pending* take() noexcept {
        pending* first = nullptr;
        pending** last = &first;
        io_uring_cqe* cqe = nullptr;
        while (!::io_uring_peek_cqe(&m_ring, &cqe)) {
            if (auto* of = static_cast<pending*>(::io_uring_cqe_get_data(cqe))) {
                of->result = cqe->res;
                of->next = nullptr;
                *last = of;
                last = &of->next;
                m_under_way--;
            }
            ::io_uring_cqe_seen(&m_ring, cqe);
        }
        return first;
    }

    void step() {
        // A task that was spawned may have failed before its first wait.
        rethrow();
        check_owner("run");
        if (!m_under_way)
            throw error(ECHILD, "run: the task waits for nothing that is under way");
        const int n = ::io_uring_submit_and_wait(&m_ring, 1);
        if (n < 0 && !is_passing(n))
            throw error(n, "wait for completions");
        for (pending* of = take(); of;) {
            // Resuming the coroutine may destroy @of.
            pending* next = of->next;
            of->waiting.resume();
            of = next;
        }
        sweep();
        rethrow();
    }

    void sweep() {
        if (std::exchange(m_some_ended, false))
            m_roots.remove_if([](const root& r) { return r.frame.done(); });
    }

    void rethrow() {
        if (m_failure)
            std::rethrow_exception(std::exchange(m_failure, nullptr));
    }

    void undo_completed() noexcept {
        for (pending* of = take(); of; of = of->next)
            of->undo();
    }

    // Cancels what is in flight and waits for it, because the kernel writes to the frames; for a
    // child of fork(2) it writes to those of the parent. No coroutine is resumed any more.
    //
    // False: it cannot wait for the kernel, as in a thread that did not make the ring. The frames
    // of the roots are then never freed; the caller must not free any other.
    bool abandon() noexcept {
        while (m_under_way && m_maker.is_self()) {
            if (io_uring_sqe* sqe = ::io_uring_get_sqe(&m_ring)) {
                ::io_uring_prep_cancel64(sqe, 0, IORING_ASYNC_CANCEL_ANY | IORING_ASYNC_CANCEL_ALL);
                ::io_uring_sqe_set_data(sqe, nullptr);
            }
            // Also submits what is still queued: it would never complete otherwise.
            const int n = ::io_uring_submit_and_get_events(&m_ring);
            if (n < 0 && !is_passing(n)) {
                for (root& left : m_roots)
                    left.frame = {};
                m_roots.clear();
                return false;
            }
            undo_completed();
            __kernel_timespec time{0, 50'000'000};
            io_uring_cqe* cqe = nullptr;
            if (m_under_way && !::io_uring_wait_cqe_timeout(&m_ring, &cqe, &time))
                undo_completed();
        }
        m_roots.clear();
        return true;
    }

    lite_ctx* m_ctx;
    const detail::maker m_maker = detail::maker::self();
    const std::uint32_t m_forks = forked.count;
    const std::thread::id m_thread = std::this_thread::get_id();
    io_uring m_ring{};
    std::size_t m_under_way = 0;
    std::list<root> m_roots;
    bool m_some_ended = false;
    bool m_resuming = false;  // in run(), or in a coroutine that spawn() has started
    std::exception_ptr m_failure;
};

// Awaitable: submits the SQE that @Prepare fills in and returns its result. If the coroutine is
// never resumed, @Undo(result) is called instead.
template <typename Prepare, typename Undo = leave_it>
class submission final : pending {
  public:
    submission(engine& on, const Prepare& prepare, std::stop_token stop = {}, Undo undo = {})
        : m_engine(on), m_prepare(prepare), m_stop(std::move(stop)), m_undo(std::move(undo)) {}
    submission(const submission&) = delete;
    submission& operator=(const submission&) = delete;

    bool await_ready() {
        if (!m_stop.stop_requested())
            return false;
        result = -ECANCELED;
        return true;
    }

    void await_suspend(std::coroutine_handle<> waiter) {
        waiting = waiter;
        m_engine.submit(m_prepare, this);
        if (m_stop.stop_possible())
            m_on_stop.emplace(m_stop, canceller{m_engine, this});
    }

    // After it was awaited: the kernel's result. A stop gives ECANCELED only if nothing had begun,
    // else EINTR.
    int outcome() const noexcept { return result; }

    int await_resume() {
        m_on_stop.reset();
        // Report a cancellation in one way only.
        return result == -EINTR && m_stop.stop_requested() ? -ECANCELED : result;
    }

  private:
    struct canceller {
        void operator()() const noexcept { on.cancel(which); }
        engine& on;
        pending* which;
    };

    void undo() noexcept override { m_undo(result); }

    engine& m_engine;
    const Prepare& m_prepare;
    std::stop_token m_stop;
    std::optional<std::stop_callback<canceller>> m_on_stop;
    Undo m_undo;
};

// Fills in an SQE with an ioctl.
struct ioctl_of {
    template <typename Args>
    ioctl_of(const engine& on, unsigned command, Args& args) noexcept
        : ctx(on.ctx()), number(command), arg(&args) {
        args.size = sizeof(args);
    }

    void operator()(io_uring_sqe* sqe) const noexcept { lite_uring_command(sqe, ctx, number, arg); }

    lite_ctx* ctx;
    unsigned number;
    void* arg;
};

template <typename Args>
task<int> engine::command(unsigned number, Args& args, std::stop_token stop) {
    const ioctl_of prepare(*this, number, args);
    submission done(*this, prepare, stop);
    co_return co_await done;
}

template <typename Prepare, typename Undo>
task<int> engine::persist(const Prepare& prepare, std::stop_token stop, Undo undo) {
    int err = -EINTR;
    while (err == -EINTR) {
        submission tried(*this, prepare, stop, undo);
        err = co_await tried;
    }
    co_return err;
}

inline task<unsigned> engine::poll(int fd, unsigned events, std::stop_token stop) {
    const auto prepare = [&](io_uring_sqe* sqe) { ::io_uring_prep_poll_add(sqe, fd, events); };
    submission looked(*this, prepare, stop);
    const int seen = co_await looked;
    if (seen < 0)
        throw error(seen, "poll");
    co_return static_cast<unsigned>(seen);
}

inline task<> engine::sleep_for(std::chrono::nanoseconds time, std::stop_token stop) {
    const auto seconds = std::chrono::floor<std::chrono::seconds>(time);
    __kernel_timespec spec{seconds.count(), (time - seconds).count()};
    const auto prepare = [&](io_uring_sqe* sqe) { ::io_uring_prep_timeout(sqe, &spec, 0, 0); };
    submission slept(*this, prepare, stop);
    const int err = co_await slept;
    if (err != -ETIME)
        check(err, "sleep");
}

}  // namespace detail
}  // namespace lite
