// SPDX-License-Identifier: MIT
//
// liblite for C++20: the coroutines of <lite/async.hpp>.
#pragma once

#include <concepts>
#include <coroutine>
#include <exception>
#include <optional>
#include <utility>

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

    // Resumed when this coroutine has ended.
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

// A coroutine that others await. It starts when awaited or run; its exceptions are thrown there. It
// may be awaited, run or spawned once only, by one coroutine.
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

    // For the engine, which resumes it directly.
    handle frame() const noexcept { return m_frame; }
    // The same: gives up the frame without destroying it.
    handle release() noexcept { return std::exchange(m_frame, {}); }

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

}  // namespace lite
