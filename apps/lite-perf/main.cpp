// SPDX-License-Identifier: MIT
//
// lite-perf: LITE, native verbs and TCP side by side, on the same machines in the same run.
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <exception>

#include "load.hpp"
#include "net.hpp"
#include "report.hpp"
#include "runner.hpp"
#include "serve.hpp"

namespace perf {

namespace {

struct RunOptions {
    std::string server;
    std::uint16_t port = default_port;
    std::uint32_t node = 0;
    unsigned index = 0;
    std::vector<std::string> arms;
    std::vector<std::string> workloads;
    std::vector<std::uint64_t> sizes{64, 4 << 10, 64 << 10, 1 << 20};
    unsigned window = 16;
    unsigned rounds = 9;
    double seconds = 1;
    std::uint64_t count = 0;
    std::string baseline;
    std::string json;
    bool quiet = false;
};

constexpr std::uint64_t size_limit = 16 << 20;

std::vector<std::string> workload_names() {
    std::vector<std::string> names;
    for (const Workload* workload : workloads())
        names.emplace_back(workload->name());
    return names;
}

std::vector<std::string> arm_names() {
    return {transport_names().begin(), transport_names().end()};
}

// Without --arms: those for which there is something to talk to.
std::vector<std::string> default_arms(const RunOptions& options) {
    std::vector<std::string> arms = arm_names();
    std::erase_if(arms, [&](const std::string& arm) {
        // gRPC takes long to load: it is measured on request.
        return arm == "lite" ? options.node == 0 : options.server.empty() || arm == "grpc";
    });
    if (arms.empty())
        throw std::runtime_error("nothing to measure: give --server, --node or both");
    return arms;
}

Plan make_plan(const RunOptions& options, const std::vector<std::string>& arms) {
    Plan plan;
    for (const Workload* workload : workloads()) {
        if (options.workloads.empty() || std::ranges::count(options.workloads, workload->name()))
            plan.workloads.push_back(workload);
    }
    plan.sizes.assign(options.sizes.begin(), options.sizes.end());
    plan.window = options.window;
    plan.rounds = options.rounds;
    if (options.count) {
        plan.slice.calls = (options.count + options.rounds - 1) / options.rounds;
    } else {
        plan.slice.time = std::chrono::duration_cast<std::chrono::nanoseconds>(
            std::chrono::duration<double>(options.seconds / options.rounds));
    }
    plan.baseline = options.baseline;
    if (plan.baseline.empty())
        plan.baseline = std::ranges::count(arms, "verbs") ? "verbs" : arms.front();
    if (!std::ranges::count(arms, plan.baseline))
        throw std::runtime_error(fmt::format("the baseline {} is not measured", plan.baseline));
    if (region_bytes(plan) > region_max)
        throw std::runtime_error(
            fmt::format("size times window is beyond {}", size_text(region_max)));
    return plan;
}

int run_client(RunOptions options) {
    if (options.arms.empty())
        options.arms = default_arms(options);
    const Plan plan = make_plan(options, options.arms);

    Target target;
    target.server = options.server;
    target.port = options.port;
    target.node = options.node;
    target.lite_index = options.index;
    target.bytes = region_bytes(plan);
    target.window = options.window;
    for (const Workload* workload : plan.workloads) {
        for (unsigned window : workload->windows(options.window))
            target.callers = std::max(target.callers, workload->threads() ? window : 1);
    }
    std::vector<std::unique_ptr<Transport>> transports;
    for (const std::string& arm : options.arms) {
        if (arm != "lite" && options.server.empty())
            throw std::runtime_error(fmt::format("the arm {} needs --server", arm));
        transports.push_back(make_transport(arm, target));
        verify(*transports.back());
    }

    const bool live = !options.quiet && isatty(STDERR_FILENO);
    const auto results =
        run(plan, transports, [&](const Workload& workload, std::uint32_t size, unsigned round) {
            if (live)
                fmt::print(stderr, "\r{} {}, round {} of {} \033[K", workload.name(),
                           size_text(size), round + 1, plan.rounds);
        });
    if (live)
        fmt::print(stderr, "\r\033[K");

    const Setting setting{plan, options.arms, options.server, options.node};
    if (options.json != "-")
        print_tables(stdout, setting, results);
    if (!options.json.empty())
        write_json(options.json, setting, results);
    return 0;
}

void add_run(CLI::App& app, RunOptions& options) {
    CLI::App* command = app.add_subcommand("run", "measure, and print tables");
    command->add_option("-s,--server", options.server,
                        "host where \"lite-perf serve\" runs, for verbs and TCP");
    command->add_option("-p,--port", options.port, "its port")->capture_default_str();
    command->add_option("-n,--node", options.node, "LITE node to measure to, for LITE")
        ->check(CLI::Range(1, 65535));
    command->add_option("-i,--index", options.index, "use this machine's /dev/liteN")
        ->capture_default_str();
    command->add_option("-a,--arms", options.arms, "what to compare (default: whatever can be)")
        ->delimiter(',')
        ->check(CLI::IsMember(arm_names()));
    command->add_option("-w,--workload", options.workloads, "what to measure (default: all)")
        ->delimiter(',')
        ->check(CLI::IsMember(workload_names()));
    command
        ->add_option("-S,--sizes", options.sizes, "sizes of one transfer (default: 64,4K,64K,1M)")
        ->delimiter(',')
        ->transform(CLI::AsSizeValue(false))
        ->check(CLI::Range(std::uint64_t{1}, size_limit));
    command
        ->add_option("-W,--window", options.window,
                     "transfers under way at once, for throughput, where an arm can")
        ->check(CLI::Range(1, 64))
        ->capture_default_str();
    command->add_option("-r,--rounds", options.rounds, "how often the arms take turns")
        ->check(CLI::Range(1, 1000))
        ->capture_default_str();
    auto* seconds =
        command->add_option("-t,--seconds", options.seconds, "time for an arm with one size")
            ->check(CLI::Range(0.001, 3600.0))
            ->capture_default_str();
    command->add_option("-c,--count", options.count, "calls for an arm with one size, instead")
        ->check(CLI::PositiveNumber)
        ->excludes(seconds);
    command
        ->add_option("-b,--baseline", options.baseline,
                     "arm to compare with (default: verbs if measured)")
        ->check(CLI::IsMember(arm_names()));
    command->add_option("-j,--json", options.json,
                        "write everything to a file too; \"-\": to standard output instead");
    command->add_flag("-q,--quiet", options.quiet, "no progress line");
}

// What has to be told to find the other end.
void add_target(CLI::App& command, Target& target) {
    target.port = default_port;
    command.add_option("-s,--server", target.server, "host where \"lite-perf serve\" runs");
    command.add_option("-p,--port", target.port, "its port")->capture_default_str();
    command.add_option("-n,--node", target.node, "LITE node, for LITE")
        ->check(CLI::Range(1, 65535));
    command.add_option("-i,--index", target.lite_index, "use this machine's /dev/liteN")
        ->capture_default_str();
}

void add_load(CLI::App& app, LoadOptions& options) {
    CLI::App* command =
        app.add_subcommand("load", "make echoes at a fixed rate, for others to look at the server");
    add_target(*command, options.target);
    command->add_option("-a,--arm", options.arm, "how")
        ->required()
        ->check(CLI::IsMember(arm_names()));
    command->add_option("-S,--size", options.size, "of request and reply")
        ->transform(CLI::AsSizeValue(false))
        ->check(CLI::Range(std::uint64_t{1}, std::uint64_t{echo_max}))
        ->capture_default_str();
    command->add_option("-r,--rate", options.rate, "calls per second")
        ->check(CLI::Range(1.0, 1e6))
        ->capture_default_str();
    command->add_option("-t,--seconds", options.seconds, "how long")
        ->check(CLI::Range(0.001, 3600.0))
        ->capture_default_str();
}

void add_serve(CLI::App& app, ServeOptions& options) {
    CLI::App* command = app.add_subcommand("serve", "be the other end of what is measured");
    options.port = default_port;
    // What needs neither LITE nor gRPC to be there.
    options.arms = arm_names();
    std::erase(options.arms, "lite");
    std::erase(options.arms, "grpc");
    command->add_option("-b,--bind", options.address, "listen on this address only");
    command->add_option("-p,--port", options.port, "port, of both TCP and RDMA CM")
        ->capture_default_str();
    command->add_option("-a,--arms", options.arms, "what to serve")
        ->delimiter(',')
        ->check(CLI::IsMember(arm_names()))
        ->capture_default_str();
    command->add_option("-i,--index", options.lite_index, "serve lite on this machine's /dev/liteN")
        ->capture_default_str();
    command->add_flag("--spin", options.spin,
                      "let the server of write-imm and send poll even if nothing comes");
    command->add_flag("--background", options.background,
                      "return as soon as it serves, and go on in the background");
    command
        ->add_option_function<unsigned>(
            "-t,--time",
            [&options](unsigned seconds) { options.limit = std::chrono::seconds(seconds); },
            "stop after so many seconds")
        ->check(CLI::PositiveNumber);
}

}  // namespace

}  // namespace perf

int main(int argc, char** argv) {
    CLI::App app("Measure LITE, native verbs and TCP side by side, the arms taking turns.",
                 "lite-perf");
    app.require_subcommand(1);
    app.footer("Workloads: " + fmt::format("{}", fmt::join(perf::workload_names(), ", ")) +
               "\n\nExample, on node 1 of a cluster whose node 2 has the address 10.0.0.2:\n"
               "  node2# lite-perf serve --background\n"
               "  node1# lite-perf run --server 10.0.0.2 --node 2\n");
    perf::RunOptions run;
    perf::ServeOptions serve;
    perf::LoadOptions load;
    perf::add_run(app, run);
    perf::add_load(app, load);
    perf::add_serve(app, serve);
    try {
        app.parse(argc, argv);
    } catch (const CLI::Success& help) {
        return app.exit(help);
    } catch (const CLI::ParseError& error) {
        fmt::print(stderr, "lite-perf: {}\nTry 'lite-perf --help' for more information.\n",
                   error.what());
        return 2;
    }
    try {
        if (app.got_subcommand("serve"))
            return perf::serve(serve);
        return app.got_subcommand("load") ? perf::load(load) : perf::run_client(run);
    } catch (const std::exception& error) {
        fmt::print(stderr, "lite-perf: {}\n", error.what());
        return 1;
    }
}
