// SPDX-License-Identifier: MIT
//
// Operations beside streams of large ones.
#pragma once

#include <vector>

#include "workloads/streams.hpp"

namespace perf {

/// What a turn shows: first the stream is alone, then both run.
struct Contest {
    std::vector<double> times;  ///< of the small calls, in microseconds
    double alone;               ///< operations of the stream per second
    double beside;              ///< the same beside small calls
};

/// The calling thread makes the small calls.
Contest contest_beside(Transport& urgent, const Request& small, Streams& streams,
                       const Slice& slice);

/// Both in one transport, which serves them first come, first served.
Contest contest_in_one(Transport& shared, const Request& small, const Bulk& bulk,
                       const Slice& slice);

/// Operations per second of two kinds of streams.
struct Division {
    double alone;  ///< of the first, before the second has begun
    double first;  ///< beside the second
    double second;
};

/// First @first alone, then both, for the same time each.
Division divide(Streams& first, Streams& second, const Slice& slice);

}  // namespace perf
