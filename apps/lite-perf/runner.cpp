// SPDX-License-Identifier: MIT
#include "runner.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>
#include <random>
#include <utility>

namespace perf {

namespace {

constexpr std::uint64_t region_min = 64 << 10;

void compare(Result& result, const std::vector<Contestant>& contestants,
             const std::string& baseline) {
    // If the baseline's arm has no outcome, use the first one. An arm's first has the least width.
    auto base = std::ranges::find(result.outcomes, baseline, &Outcome::arm);
    if (base == result.outcomes.end())
        base = result.outcomes.begin();
    result.baseline = base->label;
    for (std::size_t i = 0; i < result.outcomes.size(); i++) {
        Outcome& outcome = result.outcomes[i];
        auto other = base;
        if (!contestants[i].against.empty())
            other = std::ranges::find(result.outcomes, contestants[i].against, &Outcome::label);
        outcome.against = other->label;
        outcome.ratio = ratio_of_medians(outcome.rounds, other->rounds);
    }
}

}  // namespace

std::uint64_t region_bytes(const Plan& plan) {
    std::uint64_t bytes = region_min;
    for (const Workload* workload : plan.workloads)
        bytes = std::max(bytes, workload->bytes(plan.choice));
    return bytes;
}

Result run_turns(const Workload& workload, std::uint64_t size,
                 const std::vector<Contestant>& contestants, const Plan& plan,
                 const Progress& progress) {
    Result result{&workload, size, {}, {}};
    for (const Contestant& contestant : contestants) {
        Outcome& outcome = result.outcomes.emplace_back();
        outcome.label = contestant.label;
        outcome.arm = contestant.arm;
        outcome.width = contestant.width;
    }
    std::vector<std::size_t> order(contestants.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::mt19937_64 random(1);
    for (unsigned round = 0; round < plan.rounds; round++) {
        progress(workload, size, round);
        // Random, because a turn may influence the next one.
        for (std::size_t i = order.size(); i > 1; i--)
            std::swap(order[i - 1], order[random() % i]);
        for (const std::size_t i : order)
            result.outcomes[i].rounds.push_back(contestants[i].run(plan.slice));
    }
    for (std::size_t i = 0; i < contestants.size(); i++) {
        Outcome& outcome = result.outcomes[i];
        outcome.summary = summarize(outcome.rounds);
        if (contestants[i].facts)
            outcome.facts = contestants[i].facts();
    }
    compare(result, contestants, plan.baseline);
    return result;
}

std::vector<Result> run(const Plan& plan, Field& field, const Progress& progress) {
    std::vector<Result> results;
    for (const Workload* workload : plan.workloads) {
        for (const std::uint64_t size : workload->sizes(plan.choice)) {
            const auto contestants = workload->contestants(field, size);
            if (!contestants.empty())
                results.push_back(run_turns(*workload, size, contestants, plan, progress));
        }
    }
    return results;
}

std::vector<std::string> left_out(const Plan& plan, std::span<const std::string> arms,
                                  const std::vector<Result>& results) {
    std::vector<std::string> lines;
    for (const Workload* workload : plan.workloads) {
        std::vector<std::string> missing(arms.begin(), arms.end());
        for (const Result& result : results) {
            if (result.workload != workload)
                continue;
            for (const Outcome& outcome : result.outcomes)
                std::erase(missing, outcome.arm);
        }
        if (!missing.empty())
            lines.push_back(fmt::format(
                "{} has no results for {}: it is not served there, or this arm cannot do it",
                workload->name(), fmt::join(missing, ", ")));
    }
    return lines;
}

std::vector<std::string> not_measured(std::span<const std::string> arms,
                                      const std::vector<Result>& results) {
    std::vector<std::string> missing(arms.begin(), arms.end());
    for (const Result& result : results) {
        for (const Outcome& outcome : result.outcomes)
            std::erase(missing, outcome.arm);
    }
    return missing;
}

}  // namespace perf
