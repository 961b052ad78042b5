// SPDX-License-Identifier: MIT
#include "runner.hpp"

#include "catch.hpp"

using namespace perf;

namespace {

const Workload& workload_of(std::string_view name) {
    for (const Workload* workload : workloads()) {
        if (workload->name() == name)
            return *workload;
    }
    throw std::invalid_argument("no such workload");
}

Contestant always(const std::string& arm, double value, std::vector<std::string>& turns) {
    return {arm, arm, 1, [=, &turns](const Slice&) {
                turns.push_back(arm);
                return std::vector<double>{value, value};
            }};
}

const Progress silent = [](const Workload&, std::uint64_t, unsigned) {};

}  // namespace

TEST_CASE("contestants take turns in every round, in random order") {
    std::vector<std::string> turns;
    Plan plan;
    plan.rounds = 20;
    plan.baseline = "b";
    const Result result = run_turns(workload_of("read-latency"), 64,
                                    {always("a", 3, turns), always("b", 2, turns)}, plan, silent);
    REQUIRE(turns.size() == 40);
    unsigned first = 0;
    for (std::size_t i = 0; i < turns.size(); i += 2) {
        CHECK(turns[i] != turns[i + 1]);
        first += turns[i] == "a";
    }
    CHECK(first > 4);
    CHECK(first < 16);
    CHECK(result.size == 64);
    CHECK(result.baseline == "b");
    REQUIRE(result.outcomes.size() == 2);
    CHECK(result.outcomes[0].rounds.size() == 20);
    CHECK(result.outcomes[0].summary.count == 40);
    CHECK(result.outcomes[0].ratio.value == Approx(1.5));
    CHECK(result.outcomes[1].ratio.value == 1);
}

TEST_CASE("arms that a workload lacks are reported") {
    Plan plan;
    plan.workloads = {&workload_of("read-latency"), &workload_of("rpc-latency")};
    const std::vector<std::string> arms{"lite", "verbs", "send"};
    const auto result = [](const Workload* workload, const std::vector<std::string>& took_part) {
        Result r{workload, 64, {}, {}};
        for (const std::string& arm : took_part)
            r.outcomes.emplace_back().arm = arm;
        return r;
    };
    CHECK(left_out(plan, arms, {}).size() == 2);
    const auto lines =
        left_out(plan, arms,
                 {result(plan.workloads[0], {"lite"}), result(plan.workloads[0], {"verbs", "send"}),
                  result(plan.workloads[1], {"send"})});
    REQUIRE(lines.size() == 1);
    CHECK_THAT(lines[0], Catch::StartsWith("rpc-latency has no results for lite, verbs:"));
    // One workload is enough.
    CHECK(not_measured(arms, {result(plan.workloads[0], {"lite", "verbs"}),
                              result(plan.workloads[1], {"send"})})
              .empty());
    CHECK(not_measured(arms, {result(plan.workloads[0], {"verbs"})}) ==
          std::vector<std::string>{"lite", "send"});
}

TEST_CASE("without the chosen baseline, the first contestant is the baseline") {
    std::vector<std::string> turns;
    Plan plan;
    plan.baseline = "c";
    const Result result = run_turns(workload_of("read-latency"), 64,
                                    {always("a", 3, turns), always("b", 2, turns)}, plan, silent);
    CHECK(result.baseline == "a");
}

TEST_CASE("a contestant may be compared with another contestant than the baseline") {
    std::vector<std::string> turns;
    std::vector<Contestant> contestants{always("a", 10, turns), always("b", 2, turns),
                                        always("c", 5, turns)};
    contestants[2].against = "a";
    Plan plan;
    plan.baseline = "b";
    const Result result = run_turns(workload_of("lmrs"), 64, contestants, plan, silent);
    CHECK(result.outcomes[2].against == "a");
    CHECK(result.outcomes[2].ratio.value == Approx(0.5));
    CHECK(result.outcomes[0].against == "b");
}

TEST_CASE("facts are those after the last turn") {
    std::vector<std::string> turns;
    std::vector<Contestant> contestants{always("a", 1, turns)};
    contestants[0].facts = [&] {
        return std::map<std::string, double>{{"turns", static_cast<double>(turns.size())}};
    };
    Plan plan;
    plan.rounds = 3;
    plan.baseline = "a";
    const Result result = run_turns(workload_of("lmrs"), 64, contestants, plan, silent);
    CHECK(result.outcomes[0].facts.at("turns") == 3);
}

TEST_CASE("a workload uses the chosen sizes within its limits") {
    Choice choice;
    choice.sizes = {8, 64, 4096, 64 << 10, 4 << 20};
    using Sizes = std::vector<std::uint64_t>;
    CHECK(workload_of("read-latency").sizes(choice) == Sizes{8, 64, 4096, 64 << 10, 4 << 20});
    CHECK(workload_of("fetch-add").sizes(choice) == Sizes{8});
    CHECK(workload_of("rpc-latency").sizes(choice) == Sizes{8, 64, 4096, 64 << 10});
    CHECK(workload_of("read-rate").sizes(choice) == Sizes{8, 64, 4096});
    CHECK(workload_of("read-throughput").sizes(choice) == Sizes{64 << 10, 4 << 20});
    CHECK(workload_of("rpc-rate").sizes(choice) == Sizes{8, 64, 4096});
    CHECK(workload_of("qos-write").sizes(choice) == Sizes{8, 64, 4096});
    CHECK(workload_of("qos-rpc").sizes(choice) == Sizes{8, 64, 4096});
    choice.stream_bytes = 4 << 20;
    CHECK(workload_of("qos-share").sizes(choice) == Sizes{4 << 20});
}

TEST_CASE("the memory is that of a window of the largest transfers") {
    Plan plan;
    plan.choice.sizes = {64, 1 << 20};
    plan.choice.windows = {1, 16};
    plan.workloads = {&workload_of("read-latency")};
    CHECK(region_bytes(plan) == 1 << 20);
    plan.workloads.push_back(&workload_of("write-throughput"));
    CHECK(region_bytes(plan) == 16 << 20);
    plan.workloads = {&workload_of("connect")};
    CHECK(region_bytes(plan) > 0);
}
