// SPDX-License-Identifier: MIT
//
// liblite for C++20: coroutines. What waits for another node, or for another
// program, is awaited; one thread, and one io_uring, carry all of it.
//
//    lite::task<> serve(lite::executor& ex, const lite::function& f) {
//        std::array<std::byte, 64> buffer;
//        for (;;) {
//            const auto request = co_await ex.receive(f, buffer);
//            co_await ex.reply(request, 0, std::span(buffer).first(request.length));
//        }
//    }
//
//    lite::context node;
//    lite::function echo(node, {.name = "echo", .mode = 0666});
//    lite::executor ex(node);
//    ex.run(serve(ex, echo));
//
// Needs liburing (-luring) beside liblite. Everything throws lite::error, a
// std::system_error, as the function of the same name in <lite/lite.h>; what was
// cancelled is ECANCELED.
//
// An executor belongs to the thread that made it; everything awaited of it, and
// every std::stop_source that it is given tokens of, is used there and nowhere
// else. Buffers have to stay until what uses them has been awaited. With GCC 12,
// give a coroutine nothing to keep by reference that is not there longer than it.
#pragma once

#include <cerrno>
#include <concepts>
#include <coroutine>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <list>
#include <optional>
#include <span>
#include <stop_token>
#include <utility>
#include <vector>

#include <liburing.h>

#include <lite/uring.h>
#include <lite/lite.hpp>
#include <lite/rpc.hpp>

namespace lite {

template <typename T = void>
class task;

namespace detail {

struct task_promise_base {
    struct final_awaiter {
        bool await_ready() const noexcept { return false; }
        template <typename Promise>
        std::coroutine_handle<> await_suspend(std::coroutine_handle<Promise> self) const noexcept {
            return self.promise().next;
        }
        void await_resume() const noexcept {}
    };

    std::suspend_always initial_suspend() const noexcept { return {}; }
    final_awaiter final_suspend() const noexcept { return {}; }
    void unhandled_exception() noexcept { failure = std::current_exception(); }

    // Who awaits it goes on when it has ended.
    std::coroutine_handle<> next = std::noop_coroutine();
    std::exception_ptr failure;
};

template <typename T>
struct task_promise : task_promise_base {
    task<T> get_return_object() noexcept;
    template <typename U>
    requires std::convertible_to<U, T>
    void return_value(U&& from) { value.emplace(std::forward<U>(from)); }
    T take() {
        if (failure)
            std::rethrow_exception(failure);
        return std::move(*value);
    }
    std::optional<T> value;
};

template <>
struct task_promise<void> : task_promise_base {
    task<void> get_return_object() noexcept;
    void return_void() const noexcept {}
    void take() const {
        if (failure)
            std::rethrow_exception(failure);
    }
};

}  // namespace detail

// A coroutine that others await; it begins when it is awaited, or run. What it
// throws gets there.
template <typename T>
class [[nodiscard]] task {
  public:
    using promise_type = detail::task_promise<T>;
    using handle = std::coroutine_handle<promise_type>;

    explicit task(handle frame) noexcept : m_frame(frame) {}
    task(task&& other) noexcept : m_frame(std::exchange(other.m_frame, {})) {}
    task& operator=(task&&) = delete;
    ~task() {
        if (m_frame)
            m_frame.destroy();
    }

    auto operator co_await() const noexcept {
        struct awaiter {
            bool await_ready() const noexcept { return false; }
            std::coroutine_handle<> await_suspend(std::coroutine_handle<> next) const noexcept {
                frame.promise().next = next;
                return frame;
            }
            T await_resume() const { return frame.promise().take(); }
            handle frame;
        };
        return awaiter{m_frame};
    }

    // For who drives it by hand.
    handle frame() const noexcept { return m_frame; }

  private:
    handle m_frame;
};

template <typename T>
task<T> detail::task_promise<T>::get_return_object() noexcept {
    return task<T>(std::coroutine_handle<task_promise>::from_promise(*this));
}

inline task<void> detail::task_promise<void>::get_return_object() noexcept {
    return task<void>(std::coroutine_handle<task_promise>::from_promise(*this));
}

struct executor_options {
    unsigned entries = 256;  // of the ring: commands given to the kernel in one go
    // Threads that the kernel may have sleep for receive(), call(), lock(),
    // barrier() and the like. More of these at a time wait for one another.
    unsigned workers = 512;
};

// Runs coroutines. What it has under way is cancelled when it is destroyed.
class executor {
  public:
    // The context must outlive it. @throws error, as io_uring_queue_init(3)
    explicit executor(context& ctx, const executor_options& options = {}) : m_ctx(ctx.get()) {
        constexpr unsigned flags = IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN;
        check(::io_uring_queue_init(options.entries, &m_ring, flags), "make a ring");
        unsigned workers[] = {options.workers, options.workers};
        const int err = ::io_uring_register_iowq_max_workers(&m_ring, workers);
        if (err < 0) {
            ::io_uring_queue_exit(&m_ring);
            throw error(err, "set the number of a ring's threads");
        }
    }

    executor(const executor&) = delete;
    executor& operator=(const executor&) = delete;

    ~executor() {
        abandon();
        ::io_uring_queue_exit(&m_ring);
    }

    // Runs a task to its end, and meanwhile everything that was spawned; what it
    // returns. What a spawned task throws ends the whole: it gets out of here, and
    // all tasks are destroyed. @throws error: EDEADLK, if nothing is under way
    template <typename T>
    T run(task<T> main) {
        // Nothing that the kernel writes to may go before it is done.
        struct guard {
            ~guard() {
                if (!ended)
                    self.abandon();
            }
            executor& self;
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

    // Has a task run beside the others, from now on.
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

    // --- LMRs: a handle, or a region ---

    struct lmr {
        lmr(lite_lh_t handle) noexcept : lh(handle) {}
        lmr(const region& of) noexcept : lh(of.handle()) {}
        lite_lh_t lh;
    };

    // Reads or writes all of it. If the connection breaks it is done again.
    task<> read(lmr from, std::uint64_t offset, std::span<std::byte> to,
                std::stop_token stop = {}) {
        lite_op op;
        const auto prepare = [&](io_uring_sqe* sqe) {
            lite_uring_read(sqe, m_ctx, &op, from.lh, offset, to.data(), to.size());
        };
        const int err = co_await transfer(prepare, stop);
        if (err)
            throw error(err, "read", op.result);
    }

    task<> write(lmr to, std::uint64_t offset, std::span<const std::byte> from,
                 std::stop_token stop = {}) {
        lite_op op;
        const auto prepare = [&](io_uring_sqe* sqe) {
            lite_uring_write(sqe, m_ctx, &op, to.lh, offset, from.data(), from.size());
        };
        const int err = co_await transfer(prepare, stop);
        if (err)
            throw error(err, "write", op.result);
    }

    // The value before.
    task<std::uint64_t> fetch_add(lmr on, std::uint64_t offset, std::uint64_t addend) {
        lite_op op;
        const auto prepare = [&](io_uring_sqe* sqe) {
            lite_uring_fetch_add(sqe, m_ctx, &op, on.lh, offset, addend);
        };
        submission added(*this, prepare);
        check(co_await added, "fetch and add");
        co_return op.result;
    }

    // The value before; it is @desired now if that was @expected.
    task<std::uint64_t> compare_swap(lmr on, std::uint64_t offset, std::uint64_t expected,
                                     std::uint64_t desired) {
        lite_op op;
        const auto prepare = [&](io_uring_sqe* sqe) {
            lite_uring_cmp_swap(sqe, m_ctx, &op, on.lh, offset, expected, desired);
        };
        submission swapped(*this, prepare);
        check(co_await swapped, "compare and swap");
        co_return op.result;
    }

    // --- Functions ---

    // A reply of more than @room bytes is error EMSGSIZE. A call that was
    // cancelled may have been served.
    task<call_reply> call(std::uint32_t node, std::uint32_t function,
                          std::span<const std::byte> request, std::size_t room = 4096,
                          timeout limit = no_timeout, std::stop_token stop = {}) {
        call_reply reply{std::vector<std::byte>(room), 0};
        lite_ioc_rpc_call args;
        const auto prepare = [&](io_uring_sqe* sqe) {
            lite_uring_call(sqe, m_ctx, &args, node, function, request.data(), request.size(),
                            reply.bytes.data(), room, detail::milliseconds(limit));
        };
        submission called(*this, prepare, stop);
        check(co_await called, "call a function");
        reply.bytes.resize(args.reply_len);
        reply.status = args.status;
        co_return reply;
    }

    // Takes a request for a function of this context, into @buffer.
    task<call_info> receive(std::uint32_t function, std::span<std::byte> buffer,
                            std::stop_token stop = {}) {
        lite_ioc_rpc_recv args;
        const auto prepare = [&](io_uring_sqe* sqe) {
            lite_uring_recv(sqe, m_ctx, &args, function, buffer.data(), buffer.size(), -1);
        };
        const int err = co_await persist(prepare, stop);
        check(err, "take a request");
        call_info info{};
        info.token = args.token;
        info.function = args.function;
        info.length = args.length;
        info.node = args.node;
        info.uid = args.uid;
        info.gid = args.gid;
        info.flags = args.req_flags;
        info.reply_room = args.reply_room;
        co_return info;
    }

    task<call_info> receive(const function& served, std::span<std::byte> buffer,
                            std::stop_token stop = {}) {
        return receive(served.number(), buffer, std::move(stop));
    }

    // That the caller has given up is no error.
    task<> reply(call_info to, std::uint32_t status, std::span<const std::byte> bytes) {
        if (!to.token)
            co_return;
        lite_ioc_rpc_recv args;
        const auto prepare = [&](io_uring_sqe* sqe) {
            lite_uring_reply(sqe, m_ctx, &args, to.token, status, bytes.data(), bytes.size());
        };
        submission replied(*this, prepare);
        const int err = co_await replied;
        if (err != -ENOENT)
            check(err, "answer a request");
    }

    // --- Locks and barriers ---

    // Takes the lock in a word for @owner, any number: coroutines that shall
    // exclude each other use different ones. True: who had it before died with it,
    // see lite_lock().
    task<bool> lock(lmr in, std::uint64_t offset, std::uint64_t owner, std::stop_token stop = {}) {
        lite_ioc_lock args;
        const auto prepare = [&](io_uring_sqe* sqe) {
            lite_uring_lock(sqe, m_ctx, &args, in.lh, offset, owner, 0, LITE_FOREVER);
        };
        const int err = co_await persist(prepare, stop);
        if (err != -EOWNERDEAD)
            check(err, "lock");
        co_return err == -EOWNERDEAD;
    }

    task<> unlock(lmr in, std::uint64_t offset, std::uint64_t owner) {
        lite_ioc_unlock args;
        const auto prepare = [&](io_uring_sqe* sqe) {
            lite_uring_unlock(sqe, m_ctx, &args, in.lh, offset, owner);
        };
        submission unlocked(*this, prepare);
        check(co_await unlocked, "unlock");
    }

    // Waits for @n arrivals, this one included. Of one that was cancelled it is
    // not known whether it was counted.
    task<> arrive_and_wait(lmr in, std::uint64_t offset, std::uint32_t n,
                           std::stop_token stop = {}) {
        lite_ioc_barrier args;
        const auto prepare = [&](io_uring_sqe* sqe) {
            lite_uring_barrier(sqe, m_ctx, &args, in.lh, offset, n, LITE_FOREVER);
        };
        submission arrived(*this, prepare, stop);
        check(co_await arrived, "barrier");
    }

    // --- All else ---

    // Any ioctl of /dev/liteN, @args being its structure but for @size; 0 or a
    // negative errno.
    template <typename Args>
    task<int> command(unsigned number, Args& args, std::stop_token stop = {}) {
        args.size = sizeof(args);
        const auto prepare = [&](io_uring_sqe* sqe) {
            lite_uring_command(sqe, m_ctx, number, &args);
        };
        submission done(*this, prepare, stop);
        co_return co_await done;
    }

  private:
    // What the user data of an SQE points to, but for those that cancel others.
    struct pending {
        std::coroutine_handle<> waiting;
        int result = 0;
    };

    // Awaited: an SQE, as @Prepare fills it in, and how it ended.
    template <typename Prepare>
    class submission : pending {
      public:
        submission(executor& ex, const Prepare& prepare, std::stop_token stop = {})
            : m_ex(ex), m_prepare(prepare), m_stop(std::move(stop)) {}
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
            io_uring_sqe* sqe = m_ex.next_sqe();
            m_prepare(sqe);
            ::io_uring_sqe_set_data(sqe, static_cast<pending*>(this));
            m_ex.m_under_way++;
            if (m_stop.stop_possible())
                m_on_stop.emplace(m_stop, canceller{m_ex, this});
        }

        int await_resume() {
            m_on_stop.reset();
            // Whoever has cancelled it need not know of two ways.
            return result == -EINTR && m_stop.stop_requested() ? -ECANCELED : result;
        }

      private:
        struct canceller {
            void operator()() const noexcept { ex.cancel(which); }
            executor& ex;
            pending* which;
        };

        executor& m_ex;
        const Prepare& m_prepare;
        std::stop_token m_stop;
        std::optional<std::stop_callback<canceller>> m_on_stop;
    };

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

    static root start(executor& ex, task<> work) {
        try {
            co_await work;
        } catch (...) {
            if (!ex.m_failure)
                ex.m_failure = std::current_exception();
        }
        ex.m_some_ended = true;
    }

    static void check(int err, const char* doing) {
        if (err)
            throw error(err, doing);
    }

    // To do it twice is to do it once. The first time it may be done without a
    // thread, and then not be tried again by the kernel.
    template <typename Prepare>
    task<int> transfer(const Prepare& prepare, std::stop_token stop) {
        std::uint8_t flags = 0;
        const auto with_flags = [&](io_uring_sqe* sqe) {
            prepare(sqe);
            sqe->flags |= flags;
        };
        for (;;) {
            submission moved(*this, with_flags, stop);
            const int err = co_await moved;
            const bool broke = err == -EHOSTDOWN || err == -ETIMEDOUT;
            if (err != -EINTR && (!broke || flags))
                co_return err;
            if (broke)
                flags = IOSQE_ASYNC;
        }
    }

    // For what has done nothing when it is interrupted, as it is if the process
    // is stopped for a while.
    template <typename Prepare>
    task<int> persist(const Prepare& prepare, std::stop_token stop) {
        int err = -EINTR;
        while (err == -EINTR) {
            submission tried(*this, prepare, stop);
            err = co_await tried;
        }
        co_return err;
    }

    io_uring_sqe* next_sqe() {
        io_uring_sqe* sqe = ::io_uring_get_sqe(&m_ring);
        while (!sqe) {
            submit();
            sqe = ::io_uring_get_sqe(&m_ring);
        }
        ::io_uring_prep_nop(sqe);
        return sqe;
    }

    void submit() {
        const int n = ::io_uring_submit(&m_ring);
        // EBUSY: there are completions to be taken first, and it takes the SQEs later.
        if (n < 0 && n != -EINTR && n != -EAGAIN && n != -EBUSY)
            throw error(n, "submit");
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

    // Take what has completed: those who wait for it.
    std::vector<pending*> take() {
        std::vector<pending*> ended;
        io_uring_cqe* cqe = nullptr;
        while (!::io_uring_peek_cqe(&m_ring, &cqe)) {
            if (auto* of = static_cast<pending*>(::io_uring_cqe_get_data(cqe))) {
                of->result = cqe->res;
                ended.push_back(of);
                m_under_way--;
            }
            ::io_uring_cqe_seen(&m_ring, cqe);
        }
        return ended;
    }

    void step() {
        if (!m_under_way)
            throw error(EDEADLK, "run");
        const int n = ::io_uring_submit_and_wait(&m_ring, 1);
        if (n < 0 && n != -EINTR && n != -EAGAIN && n != -EBUSY)
            throw error(n, "wait for completions");
        for (pending* of : take())
            of->waiting.resume();
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
            take();
            __kernel_timespec time{0, 50'000'000};
            io_uring_cqe* cqe = nullptr;
            if (m_under_way && !::io_uring_wait_cqe_timeout(&m_ring, &cqe, &time))
                take();
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

}  // namespace lite
