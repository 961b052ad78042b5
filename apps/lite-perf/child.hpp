// SPDX-License-Identifier: MIT
//
// Processes that do as they are told. They are forked before anything is opened: verbs objects do
// not survive a fork, and what measures how a new process starts must have opened nothing.
#pragma once

#include <sys/types.h>

#include <array>
#include <cstdint>
#include <functional>

#include "net.hpp"
#include "slice.hpp"
#include "transport.hpp"

namespace perf {

/// What a child is told to do; which of it is of use is the child's business.
struct Order {
    enum class Kind : std::uint32_t { connect, run, nothing };
    Kind kind = Kind::connect;
    Op op = Op::read;
    std::uint32_t length = 0;
    bool crowded = false;
    std::int64_t start = 0;  ///< of a slice, by the steady clock, in ns
    std::int64_t time = 0;   ///< its length, in ns
    std::uint64_t calls = 0;
};

struct Answer {
    double value = 0;
    double begin = 0;  ///< by the steady clock, in s
    double end = 0;
    std::array<char, 256> error{};  ///< empty: none
};

class Child {
  public:
    /// Fork one that answers every order by what @work returns, or with the text of what it throws,
    /// until its parent ends.
    explicit Child(const std::function<Answer(const Order&)>& work);
    Child(Child&&) = default;
    Child& operator=(Child&&) = default;
    ~Child();

    void send(const Order& order) const;
    /// The answer to the oldest order. Throws what the child says went wrong.
    Answer receive() const;
    Answer ask(const Order& order) const {
        send(order);
        return receive();
    }

  private:
    Fd channel_;
    pid_t pid_ = 0;
};

/// Have a new process do this. Returns the time in ns from before it is made until that which @work
/// returns. Throws what it throws. To be called in a Child.
double time_in_new_process(const std::function<Clock::time_point()>& work);

}  // namespace perf
