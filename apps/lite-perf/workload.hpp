// SPDX-License-Identifier: MIT
//
// What is measured. A workload knows how to spend a slice of time on one arm; which arms take
// part, how slices alternate and what is made of the samples is the runner's business.
#pragma once

#include <chrono>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "transport.hpp"

namespace perf {

/// How long a slice lasts: until either limit is reached, but at least one call.
struct Slice {
    std::chrono::nanoseconds time = std::chrono::nanoseconds::max();
    std::uint64_t calls = UINT64_MAX;
};

class Workload {
  public:
    virtual ~Workload() = default;

    /// As on the command line.
    virtual std::string_view name() const = 0;
    /// What one sample is, for the head of a table.
    virtual std::string_view title() const = 0;
    virtual std::string_view unit() const = 0;
    virtual bool lower_is_better() const = 0;
    virtual Op op() const = 0;

    /// Sizes to measure, of those that the user chose.
    virtual std::vector<std::uint32_t> sizes(std::span<const std::uint32_t> chosen) const {
        return {chosen.begin(), chosen.end()};
    }
    /// Windows to measure, of 1 and the one that the user chose.
    virtual std::vector<unsigned> windows(unsigned) const { return {1}; }
    /// A window is so many threads, each with a connection of its own and one request under way.
    virtual bool threads() const { return false; }

    /// Run a slice, preceded by a short one that does not count, and return its samples.
    virtual std::vector<double> run(Transport& transport, std::uint32_t size, unsigned window,
                                    const Slice& slice) const = 0;
};

/// In the order in which they are run and printed.
std::span<const Workload* const> workloads();

}  // namespace perf
