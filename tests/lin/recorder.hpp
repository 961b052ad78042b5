// SPDX-License-Identifier: MIT
//
// Records the operations of a history.
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

/// Room for the operations of several processes, in a part for each thread. It is shared memory, so
/// records survive killed processes. Make it before the processes are forked.
class Recorder {
  public:
    Recorder(std::size_t parts, std::size_t room);
    ~Recorder();
    Recorder(const Recorder&) = delete;
    Recorder& operator=(const Recorder&) = delete;

    /// One part; used by one thread.
    class Part {
      public:
        /// Call it before the operation, the answer of which is unknown until end(). Throws
        /// std::length_error if there is no room left.
        void begin(Operation operation);

        /// Call it after the operation. Without it the operation has no known end.
        void end(Answer answer, std::uint64_t result = 0);

        /// Removes an operation that was refused, and will never take effect.
        void cancel();

        std::size_t left() const { return room_ - count_.load(std::memory_order_relaxed); }

      private:
        friend class Recorder;
        Operation* operations_ = nullptr;
        std::size_t room_ = 0;
        std::atomic<std::size_t> count_ = 0;
    };

    Part& part(std::size_t i) { return parts_[i]; }

    /// All operations. Call it when all processes have stopped writing.
    std::vector<Operation> history() const;

  private:
    void* memory_;
    std::size_t bytes_;
    std::span<Part> parts_;
};

}  // namespace lin
