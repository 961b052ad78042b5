// SPDX-License-Identifier: MIT
//
// Processes that use one arm, each with its own connection.
#pragma once

#include <string>
#include <vector>

#include "child.hpp"
#include "workloads/streams.hpp"

namespace perf {

class Crew {
  public:
    /// Forks @count processes; hire() connects them.
    Crew(std::string_view arm, const Target& target, unsigned count);

    /// Connects and verifies the first @count of them.
    void hire(unsigned count);

    /// Total calls per second of the first @count processes, with one call in flight in each.
    double rate(unsigned count, Op op, std::uint32_t length, const Slice& slice) const;

    /// Each of the first @count processes streams writes of @length bytes, one in flight in each.
    /// Returns when each has completed one.
    void start_streams(unsigned count, std::uint32_t length) const;
    /// Ends the streams. Returns their total, in writes per second.
    Rates stop_streams(unsigned count, const Interval& before, const Interval& after) const;

    /// Queue pairs that hire() has added on this machine so far.
    std::int64_t queue_pairs_made() const { return queue_pairs_made_; }

  private:
    std::string arm_;
    std::vector<Child> children_;
    unsigned hired_ = 0;
    std::int64_t queue_pairs_made_ = 0;
};

/// Queue pairs of this machine's RDMA devices, including the kernel's.
std::int64_t count_queue_pairs();

}  // namespace perf
