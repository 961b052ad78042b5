// SPDX-License-Identifier: MIT
//
// Gives the contestants of each workload short turns in alternation, so that other activity on the
// machine affects all of them alike.
#pragma once

#include <functional>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "report/stats.hpp"
#include "workload.hpp"

namespace perf {

struct Plan {
    std::vector<const Workload*> workloads;
    Choice choice;
    unsigned rounds = 1;
    Slice slice;           ///< of one contestant in one round
    std::string baseline;  ///< the arm to compare with
};

struct Outcome {
    std::string label;
    std::string arm;
    unsigned width = 1;
    Rounds rounds{};
    Summary summary{};
    std::string against{};  ///< label that the ratio refers to; its own: no ratio
    Ratio ratio{1, 1, 1};
    std::map<std::string, double> facts{};
};

/// The outcomes of a workload with one size.
struct Result {
    const Workload* workload;
    std::uint64_t size;
    std::string baseline;  ///< label that ratios refer to by default
    std::vector<Outcome> outcomes;
};

/// Called before every round; for a progress line.
using Progress = std::function<void(const Workload&, std::uint64_t size, unsigned round)>;

/// Bytes that a plan needs in the arms' buffers and regions.
std::uint64_t region_bytes(const Plan& plan);

std::vector<Result> run(const Plan& plan, Field& field, const Progress& progress);

/// A line for each workload without some arms: they cannot do it, or are not served there.
std::vector<std::string> left_out(const Plan& plan, std::span<const std::string> arms,
                                  const std::vector<Result>& results);

/// Those of the arms that took part in no workload.
std::vector<std::string> not_measured(std::span<const std::string> arms,
                                      const std::vector<Result>& results);

Result run_turns(const Workload& workload, std::uint64_t size,
                 const std::vector<Contestant>& contestants, const Plan& plan,
                 const Progress& progress);

}  // namespace perf
