// SPDX-License-Identifier: MIT
//
// liblite for C++20: what is below <lite/async.hpp>. An io_uring, the coroutines
// that wait for its completions, and the root tasks, which nobody awaits.
//
// An SQE under way is a detail::submission in the frame of the coroutine that
// awaits it, and its address is the user data. So no frame may go before the
// kernel is done with what is in there: who destroys tasks calls abandon() first,
// which cancels everything and waits for that. What has succeeded meanwhile, for a
// coroutine that will never hear of it, is undone there: a lock is given back, a
// request too, a handle is closed.
//
// All of it runs in one thread, so nothing here is locked. Who waits is resumed by
// step() alone, never from within the call that made it wait.
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
#include <utility>
#include <vector>

#include <liburing.h>

#include <lite/uring.h>
#include <lite/async/task.hpp>
#include <lite/types.hpp>

namespace lite {

// What an executor is made with.
struct executor_options {
    unsigned entries = 256;  // of the ring: commands given to the kernel in one go
    // Threads that the kernel may have sleep for receive(), call(), lock(),
    // barriers and the like. More of these at a time wait for one another.
    unsigned workers = 512;
};

namespace detail {

// An SQE under way.
class pending {
  public:
    // Its waiter is no more: what it has done is to be as not done.
    virtual void undo() noexcept = 0;

    std::coroutine_handle<> waiting;
    pending* next = nullptr;  // of those that have completed together
    int result = 0;

  protected:
    ~pending() = default;
};

// There is nothing to be undone.
struct leave_it {
    void operator()(int) const noexcept {}
};

inline void check(int err, const char* doing) {
    if (err)
        throw error(err, doing);
}

// Of a time-out in milliseconds, what is left when something is tried again.
class time_left {
  public:
    // @limit: ms; negative: as <lite/lite.h> says
    explicit time_left(int limit) noexcept : m_limit(limit) {}

    // At first what was given, and from then on it counts; later 1 ms at least, for 0
    // would be not to wait.
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

    // Runs a task to its end, and meanwhile everything that was spawned; what it
    // returns, or throws. What a spawned task throws ends the whole: it gets out of
    // here, and all tasks are destroyed, with what they hold.
    //
    // Signals do not end it: their handlers run, and it goes on. Who wants to hear
    // of one awaits a signalfd(2) by poll().
    //
    // @throws error: ECHILD, if the task waits for something else than this
    // executor, so that nothing is under way that could wake it
    template <typename T>
    T run(task<T> main) {
        // Nothing that the kernel writes to may go before it is done.
        struct guard {
            ~guard() {
                if (!ended)
                    self.abandon();
            }
            engine& self;
            bool ended = false;
        } all{*this};
        const auto frame = main.frame();
        frame.resume();
        while (!frame.done())
            step();
        rethrow();
        all.ended = true;
        return frame.promise().take();
    }

    // Has a task run beside the others, from now on: up to where it first waits
    // before this returns.
    void spawn(task<> work) {
        m_roots.push_back(start(*this, std::move(work)));
        m_roots.back().frame.resume();
        sweep();
    }

    // Runs tasks beside one another until all have ended; then throws what the
    // first of those that failed has thrown.
    task<> all(std::vector<task<>> tasks) {
        struct end {
            bool await_ready() const noexcept { return of.done(); }
            void await_suspend(std::coroutine_handle<> who) const noexcept {
                of.promise().next = who;
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

    // Any ioctl of /dev/liteN, @args being its structure but for @size; 0 or a
    // negative errno. It belongs to the caller, and stays until this has ended.
    template <typename Args>
    task<int> command(unsigned number, Args& args, std::stop_token stop = {});

    // Waits until something can be done with a descriptor, any: @events are those
    // of poll(2), POLLIN and so on. Those that are true, POLLERR and POLLHUP among
    // them even if they were not asked for.
    //
    // @throws error: EBADF (no such descriptor), ECANCELED
    task<unsigned> poll(int fd, unsigned events, std::stop_token stop = {});

    // Waits for some time, by CLOCK_MONOTONIC; if it is not positive, as good as not.
    //
    // @throws error: ECANCELED
    template <typename Rep, typename Period>
    task<> sleep(std::chrono::duration<Rep, Period> time, std::stop_token stop = {}) {
        return sleep_for(std::chrono::ceil<std::chrono::nanoseconds>(
                             std::clamp<std::chrono::duration<double>>(time, no_time, a_century)),
                         std::move(stop));
    }

    // --- For those that carry things out ---

    lite_ctx* ctx() const noexcept { return m_ctx; }

    // For what has done nothing when it is interrupted, as it is if the process
    // is stopped for a while: an SQE, as @prepare fills it in, and how it ended.
    template <typename Prepare, typename Undo = leave_it>
    task<int> persist(const Prepare& prepare, std::stop_token stop, Undo undo = {});

    // An SQE to be filled in, for @by to be told of its completion.
    template <typename Prepare>
    void submit(const Prepare& prepare, pending* by) {
        io_uring_sqe* sqe = next_sqe();
        prepare(sqe);
        ::io_uring_sqe_set_data(sqe, by);
        m_under_way++;
    }

    void cancel(pending* which) noexcept {
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

    // A spawned task, with a frame of its own around it.
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

    io_uring_sqe* next_sqe() {
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

    // EBUSY: there are completions to be taken first, and it takes the SQEs later.
    static bool is_passing(int err) noexcept {
        return err == -EINTR || err == -EAGAIN || err == -EBUSY;
    }

    // Takes what has completed: in that order, linked by @next.
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
        if (!m_under_way)
            throw error(ECHILD, "run: the task waits for nothing that is under way");
        const int n = ::io_uring_submit_and_wait(&m_ring, 1);
        if (n < 0 && !is_passing(n))
            throw error(n, "wait for completions");
        for (pending* of = take(); of;) {
            // It is gone when its coroutine has gone on.
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

    // Nobody goes on: end what is under way, and wait for that, for the kernel
    // writes to what belongs to it.
    void abandon() noexcept {
        while (m_under_way) {
            if (io_uring_sqe* sqe = ::io_uring_get_sqe(&m_ring)) {
                ::io_uring_prep_cancel64(sqe, 0, IORING_ASYNC_CANCEL_ANY | IORING_ASYNC_CANCEL_ALL);
                ::io_uring_sqe_set_data(sqe, nullptr);
            }
            // First what this says itself, or nobody would wait for the others.
            ::io_uring_submit_and_get_events(&m_ring);
            undo_completed();
            __kernel_timespec time{0, 50'000'000};
            io_uring_cqe* cqe = nullptr;
            if (m_under_way && !::io_uring_wait_cqe_timeout(&m_ring, &cqe, &time))
                undo_completed();
        }
        m_roots.clear();
    }

    lite_ctx* m_ctx;
    io_uring m_ring{};
    std::size_t m_under_way = 0;
    std::list<root> m_roots;
    bool m_some_ended = false;
    std::exception_ptr m_failure;
};

// Awaited: an SQE, as @Prepare fills it in, and its result. @Undo(result) is called
// in place of that if the coroutine never goes on.
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

    void await_suspend(std::coroutine_handle<> who) {
        waiting = who;
        m_engine.submit(m_prepare, this);
        if (m_stop.stop_possible())
            m_on_stop.emplace(m_stop, canceller{m_engine, this});
    }

    int await_resume() {
        m_on_stop.reset();
        // Whoever has cancelled it need not know of two ways.
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
