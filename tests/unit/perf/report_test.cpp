// SPDX-License-Identifier: MIT
#include "report/report.hpp"

#include <cstdlib>
#include <memory>
#include <nlohmann/json.hpp>
#include <system_error>
#include "catch.hpp"

#include "report/text.hpp"

using namespace perf;

namespace {

Setting a_setting() {
    Setting setting;
    setting.arms = {"lite", "verbs"};
    setting.server = "10.0.0.2";
    setting.node = 2;
    setting.plan.rounds = 2;
    setting.plan.slice.calls = 100;
    return setting;
}

Result a_result() {
    Result result{workloads().front(), 4096, "verbs", {}};
    for (const char* arm : {"lite", "verbs"}) {
        Outcome& outcome = result.outcomes.emplace_back();
        outcome.arm = outcome.label = arm;
        outcome.rounds = {{10, 20, 30}, {20, 20, 1500}};
        outcome.summary = summarize(outcome.rounds);
        outcome.against = "verbs";
    }
    result.outcomes[0].ratio = {0.9, 0.85, 0.95};
    result.outcomes[0].facts["queue_pairs_made"] = 0;
    return result;
}

std::string tables() {
    char* text = nullptr;
    std::size_t length = 0;
    std::FILE* file = open_memstream(&text, &length);
    print_tables(file, a_setting(), {a_result()});
    std::fclose(file);
    const std::unique_ptr<char, decltype(&std::free)> owner(text, std::free);
    return {text, length};
}

}  // namespace

TEST_CASE("sizes and numbers for users") {
    CHECK(size_text(8) == "8 B");
    CHECK(size_text(1000) == "1000 B");
    CHECK(size_text(64 << 10) == "64 KB");
    CHECK(size_text(1 << 20) == "1 MB");
    CHECK(size_text(8ULL << 30) == "8 GB");
    CHECK(size_text((1 << 20) + 1) == "1048577 B");
    CHECK(number_text(0.1234) == "0.123");
    CHECK(number_text(1.236) == "1.24");
    CHECK(number_text(123.46) == "123.5");
    CHECK(number_text(12345.6) == "12346");
}

TEST_CASE("a table names the measured arms and the baseline") {
    const std::string text = tables();
    CHECK_THAT(text, Catch::Contains("us, lower is better"));
    CHECK_THAT(text, Catch::Contains("against verbs"));
    CHECK_THAT(text, Catch::Contains("0.90 x  (0.85 .. 0.95)"));
    CHECK_THAT(text, Catch::Contains("queue_pairs_made: 0"));
    CHECK_THAT(text, Catch::Contains("round trips"));
    // Only the first row of a group has the size; with too few samples the tail is missing.
    CHECK_THAT(text, Catch::Contains("    4 KB  lite "));
    CHECK_THAT(text, Catch::Contains("          verbs "));
    CHECK_THAT(text, Catch::Contains("20.0         -         -      1500        6"));
}

TEST_CASE("JSON has all figures") {
    const auto document = nlohmann::json::parse(json_text(a_setting(), {a_result()}));
    CHECK(document["format"] == "lite-perf");
    CHECK(document["rounds"] == 2);
    CHECK(document["slice"]["calls"] == 100);
    const auto& result = document["results"].at(0);
    CHECK(result["workload"] == "read-latency");
    CHECK(result["better"] == "lower");
    const auto& lite = result["outcomes"].at(0);
    CHECK(lite["median"] == 20);
    CHECK(lite["round_medians"] == nlohmann::json({20, 20}));
    CHECK(lite["ratio"]["value"] == 0.9);
    CHECK(lite["ratio"]["against"] == "verbs");
    CHECK(lite["facts"]["queue_pairs_made"] == 0);
    CHECK_FALSE(lite.contains("p99"));
    CHECK_FALSE(result["outcomes"].at(1).contains("ratio"));
}

TEST_CASE("a file that cannot be written is an error") {
    CHECK_THROWS_AS(write_json("/nonexistent/result.json", a_setting(), {a_result()}),
                    std::system_error);
}
