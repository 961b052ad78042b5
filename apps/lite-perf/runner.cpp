// SPDX-License-Identifier: MIT
#include "runner.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <random>
#include <stdexcept>

namespace perf {

namespace {

constexpr std::uint64_t region_min = 64 << 10;

std::vector<Contestant> contestants_of(const Workload& workload, const Plan& plan,
                                       const std::vector<std::unique_ptr<Transport>>& transports) {
    std::vector<Contestant> result;
    for (unsigned window : workload.windows(plan.window)) {
        for (const auto& transport : transports) {
            if (transport->supports(workload.op()) &&
                (workload.threads() || window <= transport->max_window()))
                result.push_back({transport.get(), window});
        }
    }
    return result;
}

void compare(Result& result, const std::string& baseline) {
    // The arm chosen as baseline may be unable to run this workload; then the first one is it.
    auto base = std::ranges::find_if(result.outcomes, [&](const Outcome& outcome) {
        return outcome.arm == baseline && outcome.window == 1;
    });
    if (base == result.outcomes.end())
        base = result.outcomes.begin();
    result.baseline = base->label;
    for (Outcome& outcome : result.outcomes)
        outcome.ratio = ratio_of_medians(outcome.rounds, base->rounds);
}

}  // namespace

std::string Contestant::label() const {
    if (window == 1)
        return std::string(transport->name());
    return fmt::format("{} x{}", transport->name(), window);
}

std::uint64_t region_bytes(const Plan& plan) {
    std::uint64_t bytes = region_min;
    for (const Workload* workload : plan.workloads) {
        for (std::uint32_t size : workload->sizes(plan.sizes)) {
            if (workload->threads())
                continue;
            for (unsigned window : workload->windows(plan.window))
                bytes = std::max(bytes, std::uint64_t{size} * window);
        }
    }
    return bytes;
}

void verify(Transport& transport) {
    const std::span<std::byte> buffer = transport.buffer();
    const auto bytes = static_cast<std::uint32_t>(std::min<std::size_t>(buffer.size(), 1 << 20));
    std::mt19937 random(std::random_device{}());
    std::vector<std::byte> pattern(bytes);
    for (std::byte& byte : pattern)
        byte = static_cast<std::byte>(random());

    auto fail = [&](std::string_view what) {
        throw std::runtime_error(fmt::format("{}: {}", transport.name(), what));
    };
    if (transport.supports(Op::echo)) {
        const std::uint32_t length = std::min(bytes, echo_max);
        std::ranges::copy(pattern, buffer.begin());
        std::ranges::fill(transport.echoed(), std::byte{0});
        transport.call({Op::echo, length, 0});
        if (!std::equal(pattern.begin(), pattern.begin() + length, transport.echoed().begin()))
            fail("what came back is not what was sent");
    }
    if (!transport.supports(Op::write))
        return;
    std::ranges::copy(pattern, buffer.begin());
    transport.call({Op::write, bytes, 0});
    std::ranges::fill(buffer, std::byte{0});
    transport.call({Op::read, bytes, 0});
    if (!std::equal(pattern.begin(), pattern.end(), buffer.begin()))
        fail("what was read is not what was written");

    if (!transport.supports(Op::fetch_add))
        return;
    std::uint64_t expected;
    std::memcpy(&expected, pattern.data(), sizeof expected);
    for (int i = 0; i < 2; i++, expected++) {
        if (transport.call({Op::fetch_add, atomic_bytes, 0}) != expected)
            fail("fetch-add returned a wrong value");
    }
}

std::vector<Result> run(const Plan& plan, const std::vector<std::unique_ptr<Transport>>& transports,
                        const Progress& progress) {
    std::vector<Result> results;
    for (const Workload* workload : plan.workloads) {
        const auto contestants = contestants_of(*workload, plan, transports);
        if (contestants.empty())
            continue;
        for (std::uint32_t size : workload->sizes(plan.sizes)) {
            Result& result = results.emplace_back(Result{workload, size, {}, {}});
            for (const Contestant& contestant : contestants)
                result.outcomes.push_back({contestant.label(),
                                           std::string(contestant.transport->name()),
                                           contestant.window,
                                           {},
                                           {},
                                           {}});
            for (unsigned round = 0; round < plan.rounds; round++) {
                progress(*workload, size, round);
                for (std::size_t i = 0; i < contestants.size(); i++) {
                    result.outcomes[i].rounds.push_back(workload->run(
                        *contestants[i].transport, size, contestants[i].window, plan.slice));
                }
            }
            for (Outcome& outcome : result.outcomes)
                outcome.summary = summarize(outcome.rounds);
            compare(result, plan.baseline);
        }
    }
    return results;
}

}  // namespace perf
