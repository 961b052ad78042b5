// SPDX-License-Identifier: MIT
//
// Statistics for arms that alternate in rounds. A sample is the time of one call, or the rate of
// one round.
//
// Samples of a round are not independent (the machine was quiet or not), so the spread of a ratio
// comes from resampling whole rounds, the same ones for both arms, rather than single calls.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

namespace perf {

/// Samples of one arm, one vector per round.
using Rounds = std::vector<std::vector<double>>;

struct Summary {
    std::size_t count = 0;
    double min = 0;
    double p50 = 0;
    std::optional<double> p99;   ///< only with at least 100 samples
    std::optional<double> p999;  ///< only with at least 1000 samples
    double max = 0;
};

struct Ratio {
    double value;  ///< of the medians over all samples
    double low;    ///< 95 % bootstrap interval
    double high;
};

/// The q-quantile (0 <= q <= 1) of ascending samples, interpolated. Needs at least one sample.
double quantile(std::span<const double> ascending, double q);

/// Over all samples of all rounds. Needs at least one sample.
Summary summarize(const Rounds& rounds);

/// Median of @arm over that of @baseline. Same number of rounds, none empty. Deterministic.
Ratio ratio_of_medians(const Rounds& arm, const Rounds& baseline);

}  // namespace perf
