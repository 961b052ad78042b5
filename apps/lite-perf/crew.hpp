// SPDX-License-Identifier: MIT
//
// Processes that all use one arm, each with a connection of its own.
#pragma once

#include <string>
#include <vector>

#include "child.hpp"

namespace perf {

class Crew {
  public:
    /// Fork so many. They connect when they are hired.
    Crew(std::string_view arm, const Target& target, unsigned count);

    /// Have the first @count of them connected, and shown to work.
    void hire(unsigned count);

    /// All of the first @count make such calls, one at a time each; returns their calls per second,
    /// of all together.
    double rate(unsigned count, Op op, std::uint32_t length, const Slice& slice) const;

    /// Queue pairs that this machine has more because of them.
    std::int64_t queue_pairs_made() const { return queue_pairs_made_; }

  private:
    std::string arm_;
    std::vector<Child> children_;
    unsigned hired_ = 0;
    std::int64_t queue_pairs_made_ = 0;
};

/// Queue pairs of this machine's RDMA devices, those of the kernel included.
std::int64_t count_queue_pairs();

}  // namespace perf
