// SPDX-License-Identifier: MIT
//
// How operations get into a history.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "history.hpp"

namespace lin {

/// CLOCK_MONOTONIC, in ns: the same for all processes of a machine.
Time now();

/// Room for what some processes do, each in a part of its own: memory that they share, so that what
/// one has written down stays there when it is killed. Made before they are forked.
class Recorder {
  public:
    Recorder(std::size_t parts, std::size_t room);
    ~Recorder();
    Recorder(const Recorder&) = delete;
    Recorder& operator=(const Recorder&) = delete;

    /// One part; used by one thread.
    class Part {
      public:
        /// Call this before the operation. Its answer is unknown until end(). Throws
        /// std::length_error when there is no room left.
        void begin(Operation operation);

        /// After it. One that is never called is that of an operation that nobody saw the end of.
        void end(Answer answer, std::uint64_t result = 0);

        /// It has no effect and never will (it was refused): it need not be in the history.
        void cancel();

        std::size_t left() const { return room_ - count_.load(std::memory_order_relaxed); }

      private:
        friend class Recorder;
        Operation* operations_ = nullptr;
        std::size_t room_ = 0;
        std::atomic<std::size_t> count_ = 0;
    };

    Part& part(std::size_t i) { return parts_[i]; }

    /// All of it, when nobody writes any more.
    std::vector<Operation> history() const;

  private:
    void* memory_;
    std::size_t bytes_;
    std::span<Part> parts_;
};

}  // namespace lin
