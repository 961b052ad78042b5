// SPDX-License-Identifier: MIT
#include "report/stats.hpp"

#include <algorithm>
#include <cmath>
#include <random>
#include <stdexcept>

namespace perf {

namespace {

constexpr std::size_t resamples = 1000;
// A resample takes at most this many quantiles of each round: enough for a median, and cheap for a
// thousand resamples of a million samples.
constexpr std::size_t quantiles_per_round = 100;

std::vector<double> pooled(const Rounds& rounds) {
    std::vector<double> all;
    for (const auto& round : rounds)
        all.insert(all.end(), round.begin(), round.end());
    std::ranges::sort(all);
    return all;
}

std::vector<double> condensed(std::vector<double> round) {
    std::ranges::sort(round);
    if (round.size() <= quantiles_per_round)
        return round;
    std::vector<double> result(quantiles_per_round);
    for (std::size_t i = 0; i < result.size(); i++) {
        result[i] = quantile(round, (static_cast<double>(i) + 0.5) / quantiles_per_round);
    }
    return result;
}

double median_of(const Rounds& rounds, std::span<const std::size_t> chosen) {
    std::vector<double> all;
    for (std::size_t i : chosen)
        all.insert(all.end(), rounds[i].begin(), rounds[i].end());
    std::ranges::sort(all);
    return quantile(all, 0.5);
}

Rounds condensed(const Rounds& rounds) {
    Rounds result;
    for (const auto& round : rounds)
        result.push_back(condensed(round));
    return result;
}

}  // namespace

double quantile(std::span<const double> ascending, double q) {
    if (ascending.empty())
        throw std::invalid_argument("a quantile of nothing");
    const double position = std::clamp(q, 0.0, 1.0) * static_cast<double>(ascending.size() - 1);
    const auto below = static_cast<std::size_t>(position);
    const std::size_t above = std::min(below + 1, ascending.size() - 1);
    return std::lerp(ascending[below], ascending[above], position - static_cast<double>(below));
}

Summary summarize(const Rounds& rounds) {
    const std::vector<double> all = pooled(rounds);
    Summary summary;
    summary.count = all.size();
    summary.p50 = quantile(all, 0.5);
    summary.min = all.front();
    summary.max = all.back();
    // With fewer samples these are just the maximum.
    if (all.size() >= 100)
        summary.p99 = quantile(all, 0.99);
    if (all.size() >= 1000)
        summary.p999 = quantile(all, 0.999);
    return summary;
}

Ratio ratio_of_medians(const Rounds& arm, const Rounds& baseline) {
    if (arm.size() != baseline.size())
        throw std::invalid_argument("the arms have different numbers of rounds");
    const double value = quantile(pooled(arm), 0.5) / quantile(pooled(baseline), 0.5);

    const Rounds a = condensed(arm);
    const Rounds b = condensed(baseline);
    // The standard fixes the results of this engine, but not of std::uniform_int_distribution.
    std::mt19937_64 random(1);
    std::vector<std::size_t> chosen(a.size());
    std::vector<double> ratios(resamples);
    for (double& ratio : ratios) {
        for (std::size_t& index : chosen)
            index = random() % a.size();
        ratio = median_of(a, chosen) / median_of(b, chosen);
    }
    std::ranges::sort(ratios);
    return {value, quantile(ratios, 0.025), quantile(ratios, 0.975)};
}

}  // namespace perf
