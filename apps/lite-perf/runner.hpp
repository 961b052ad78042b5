// SPDX-License-Identifier: MIT
//
// Takes every arm through every workload in short alternating slices, so that whatever else the
// machine does meanwhile hits all arms alike.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "stats.hpp"
#include "transport.hpp"
#include "workload.hpp"

namespace perf {

struct Plan {
    std::vector<const Workload*> workloads;
    std::vector<std::uint32_t> sizes;
    unsigned window = 1;
    unsigned rounds = 1;
    Slice slice;           ///< of one arm in one round
    std::string baseline;  ///< the arm to compare with
};

/// One arm in one table: a transport with a window.
struct Contestant {
    Transport* transport;
    unsigned window;

    std::string label() const;
};

struct Outcome {
    std::string label;
    std::string arm;
    unsigned window;
    Rounds rounds;
    Summary summary;
    Ratio ratio{1, 1, 1};  ///< to the baseline
};

/// A workload with one size.
struct Result {
    const Workload* workload;
    std::uint32_t size;
    std::string baseline;  ///< label of the outcome that ratios refer to
    std::vector<Outcome> outcomes;
};

/// Told before every round; for a progress line.
using Progress = std::function<void(const Workload&, std::uint32_t size, unsigned round)>;

/// Bytes that the regions must have for a plan.
std::uint64_t region_bytes(const Plan& plan);

/// Show that an arm really moves data, both ways. Throws if it does not.
void verify(Transport& transport);

std::vector<Result> run(const Plan& plan, const std::vector<std::unique_ptr<Transport>>& transports,
                        const Progress& progress);

}  // namespace perf
