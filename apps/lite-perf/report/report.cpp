// SPDX-License-Identifier: MIT
#include "report/report.hpp"

#include <fmt/format.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>
#include <system_error>

#include "net.hpp"
#include "report/text.hpp"

namespace perf {

namespace {

using nlohmann::json;

std::string kernel_release() {
    utsname names;
    return uname(&names) ? "unknown" : names.release;
}

std::string number(double value) { return number_text(value); }

std::string number(std::optional<double> value) { return value ? number(*value) : "-"; }

std::string ratio_text(const Ratio& ratio) {
    const int digits = ratio.value < 0.1 ? 4 : 2;
    return fmt::format("{1:.{0}f} x  ({2:.{0}f} .. {3:.{0}f})", digits, ratio.value, ratio.low,
                       ratio.high);
}

void print_rows(std::FILE* out, const Result& result) {
    std::string size = size_text(result.size);
    for (const Outcome& outcome : result.outcomes) {
        const Summary& summary = outcome.summary;
        fmt::print(out, "{:>8}  {:<17}{:>10}", size, outcome.label, number(summary.p50));
        if (result.workload->lower_is_better()) {
            fmt::print(out, "{:>10}{:>10}{:>10}{:>9}", number(summary.p99), number(summary.p999),
                       number(summary.max), summary.count);
        } else {
            fmt::print(out, "{:>10}{:>10}", number(summary.min), number(summary.max));
        }
        std::string ratio = outcome.label == outcome.against ? "" : ratio_text(outcome.ratio);
        // Name what a row is compared with, unless it is the baseline.
        if (outcome.against != result.baseline && !ratio.empty())
            ratio += fmt::format("  of {}", outcome.against);
        for (const auto& [name, value] : outcome.facts)
            ratio += fmt::format("  {}: {:g}", name, value);
        fmt::print(out, "   {}\n", ratio);
        size.clear();  // only in the first row of its group
    }
}

void print_head(std::FILE* out, const Result& result) {
    const Workload& workload = *result.workload;
    fmt::print(out, "\n{} ({}, {} is better)\n", workload.title(), workload.unit(),
               workload.lower_is_better() ? "lower" : "higher");
    fmt::print(out, "{:>8}  {:<17}{:>10}", "size", "arm", "median");
    if (workload.lower_is_better())
        fmt::print(out, "{:>10}{:>10}{:>10}{:>9}", "p99", "p99.9", "max", "calls");
    else
        fmt::print(out, "{:>10}{:>10}", "min", "max");
    fmt::print(out, "   against {}\n", result.baseline);
}

json slice_json(const Slice& slice) {
    json result = json::object();
    if (slice.time != std::chrono::nanoseconds::max())
        result["seconds"] = std::chrono::duration<double>(slice.time).count();
    if (slice.calls != UINT64_MAX)
        result["calls"] = slice.calls;
    return result;
}

json outcome_json(const Outcome& outcome) {
    const Summary& summary = outcome.summary;
    json medians = json::array();
    for (const auto& round : outcome.rounds)
        medians.push_back(summarize({round}).p50);
    json result{
        {"arm", outcome.arm},       {"label", outcome.label},   {"width", outcome.width},
        {"samples", summary.count}, {"median", summary.p50},    {"min", summary.min},
        {"max", summary.max},       {"round_medians", medians},
    };
    if (summary.p99)
        result["p99"] = *summary.p99;
    if (summary.p999)
        result["p999"] = *summary.p999;
    if (!outcome.facts.empty())
        result["facts"] = outcome.facts;
    if (outcome.label != outcome.against) {
        result["ratio"] = {{"against", outcome.against},
                           {"value", outcome.ratio.value},
                           {"low", outcome.ratio.low},
                           {"high", outcome.ratio.high}};
    }
    return result;
}

json result_json(const Result& result) {
    json outcomes = json::array();
    for (const Outcome& outcome : result.outcomes)
        outcomes.push_back(outcome_json(outcome));
    return {
        {"workload", result.workload->name()},
        {"title", result.workload->title()},
        {"size", result.size},
        {"unit", result.workload->unit()},
        {"better", result.workload->lower_is_better() ? "lower" : "higher"},
        {"baseline", result.baseline},
        {"outcomes", outcomes},
    };
}

}  // namespace

void print_tables(std::FILE* out, const Setting& setting, const std::vector<Result>& results) {
    fmt::print(out, "Linux {}, {} CPUs; {} in turns, {} rounds\n", kernel_release(),
               sysconf(_SC_NPROCESSORS_ONLN), fmt::join(setting.arms, ", "), setting.plan.rounds);
    const Workload* last = nullptr;
    for (const Result& result : results) {
        if (result.workload != last)
            print_head(out, result);
        last = result.workload;
        print_rows(out, result);
    }
    fmt::print(
        out,
        "\nEvery figure is of whole round trips. \"0.90 x\" is the ratio of the medians; in "
        "parentheses its\n95 % bootstrap interval over the rounds. \"x16\": so many under way, or "
        "at work, at once.\n");
}

std::string json_text(const Setting& setting, const std::vector<Result>& results) {
    json list = json::array();
    for (const Result& result : results)
        list.push_back(result_json(result));
    const json document{
        {"format", "lite-perf"},
        {"version", 2},
        {"kernel", kernel_release()},
        {"cpus", sysconf(_SC_NPROCESSORS_ONLN)},
        {"server", setting.server},
        {"node", setting.node},
        {"arms", setting.arms},
        {"rounds", setting.plan.rounds},
        {"slice", slice_json(setting.plan.slice)},
        {"interval", "95 % bootstrap over rounds"},
        {"results", list},
    };
    return document.dump(2) + '\n';
}

void write_json(const std::string& file, const Setting& setting,
                const std::vector<Result>& results) {
    const std::string text = json_text(setting, results);
    if (file == "-") {
        std::cout << text << std::flush;
        return;
    }
    std::ofstream out(file);
    out << text;
    out.close();
    if (!out)
        throw_errno(file);
}

}  // namespace perf
