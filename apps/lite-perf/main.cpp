// SPDX-License-Identifier: MIT
//
// lite-perf: LITE, native verbs and TCP side by side, on the same machines in the same run.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <exception>
#include <stdexcept>

#include "common/io.hpp"
#include "options.hpp"
#include "report/report.hpp"
#include "report/text.hpp"

namespace perf {

namespace {

int execute(const ServeOptions& options) { return serve(options); }
int execute(const LoadOptions& options) { return load(options); }
int execute(const Exit& exit) { return exit.status; }

int execute(const RunOptions& options) {
    const std::vector<std::string> arms = arms_to_measure(options);
    const Plan plan = make_plan(options, arms);

    Target target = options.target;
    target.bytes = region_bytes(plan);
    target.window = *std::ranges::max_element(plan.choice.windows);
    Field field(arms, target, plan.choice, plan.workloads);

    const bool live = !options.quiet && isatty(STDERR_FILENO);
    const auto results =
        run(plan, field, [&](const Workload& workload, std::uint64_t size, unsigned round) {
            if (live)
                fmt::print(stderr, "\r{} {}, round {} of {} \033[K", workload.name(),
                           size_text(size), round + 1, plan.rounds);
        });
    if (live)
        fmt::print(stderr, "\r\033[K");
    // Arms that the user did not name are left out silently.
    if (!options.arms.empty()) {
        for (const std::string& line : left_out(plan, arms, results))
            fmt::print(stderr, "lite-perf: {}\n", line);
    }
    if (results.empty())
        throw std::runtime_error("none of the arms can do what is to be measured");

    const Setting setting{plan, arms, target.server, target.node};
    if (options.json != "-")
        print_tables(stdout, setting, results);
    if (!options.json.empty())
        write_json(options.json, setting, results);
    const auto missing =
        options.arms.empty() ? std::vector<std::string>() : not_measured(arms, results);
    for (const std::string& arm : missing)
        fmt::print(stderr, "lite-perf: {} was not measured\n", arm);
    return missing.empty() ? 0 : 1;
}

}  // namespace

}  // namespace perf

int main(int argc, char** argv) {
    try {
        tools::reserve_standard_streams();
        const int status = std::visit([](const auto& command) { return perf::execute(command); },
                                      perf::parse_command_line(argc, argv));
        // This covers std::cout, which writes through stdout.
        if (std::fflush(stdout) || std::ferror(stdout))
            throw std::runtime_error("write error on standard output");
        return status;
    } catch (const std::exception& error) {
        fmt::print(stderr, "lite-perf: {}\n", error.what());
        return 1;
    }
}
