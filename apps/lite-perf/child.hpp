// SPDX-License-Identifier: MIT
//
// Child processes that execute orders. They are forked before anything is opened: verbs objects do
// not survive a fork, and a child that measures process start must not have opened anything.
#pragma once

#include <sys/types.h>

#include <array>
#include <cstdint>
#include <functional>

#include "net.hpp"
#include "slice.hpp"
#include "transport.hpp"
#include "workloads/streams.hpp"

namespace perf {

/// An order to a child; the child's function chooses the fields it uses.
struct Order {
    enum class Kind : std::uint32_t { connect, run, nothing, start, stop };
    Kind kind = Kind::connect;
    Op op = Op::read;
    std::uint32_t length = 0;
    bool crowded = false;
    std::int64_t start = 0;  ///< of a slice, by the steady clock, in ns
    std::int64_t time = 0;   ///< length of the slice, in ns
    std::uint64_t calls = 0;
    // For stop: the intervals in which the rate of the stream is wanted.
    Interval before{};
    Interval after{};
};

struct Answer {
    double value = 0;
    double begin = 0;  ///< by the steady clock, in s
    double end = 0;
    std::array<char, 256> error{};  ///< empty: none
    Rates rates{};
};

class Child {
  public:
    /// Forks a child. It answers every order with the result of @work, or with the text of its
    /// exception, until its parent ends.
    explicit Child(const std::function<Answer(const Order&)>& work);
    Child(Child&&) = default;
    Child& operator=(Child&&) = default;
    ~Child();

    void send(const Order& order) const;
    /// The answer to @order, the oldest without one. Throws the child's error.
    Answer receive(const Order& order) const;
    Answer ask(const Order& order) const {
        send(order);
        return receive(order);
    }

  private:
    Fd channel_;
    pid_t pid_ = 0;
};

/// Runs @work in a new process and waits until that has ended. Returns the time in ns from before
/// the fork to the time point that @work returns. Throws the error of @work. Call it in a Child.
double time_in_new_process(const std::function<Clock::time_point()>& work);

}  // namespace perf
