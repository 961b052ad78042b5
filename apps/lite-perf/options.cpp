// SPDX-License-Identifier: MIT
#include "options.hpp"

#include <fmt/format.h>
#include <uapi/lite_file.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <stdexcept>

#include "report/text.hpp"

namespace perf {

namespace {

constexpr std::uint64_t size_limit = 16 << 20;
constexpr std::uint64_t stream_size_limit = 256 << 20;
constexpr unsigned streams_limit = 16;
constexpr std::uint64_t file_size_limit = 256 << 20;
constexpr unsigned threads_limit = 64;
constexpr unsigned processes_limit = 128;
// Each region of the workload lmrs is a page; a server grants region_max in all.
constexpr std::uint32_t counts_limit = region_max / 4096;

std::vector<std::string> workload_names() {
    std::vector<std::string> names;
    for (const Workload* workload : workloads())
        names.emplace_back(workload->name());
    return names;
}

std::vector<std::string> arm_names() {
    std::vector<std::string> names;
    for (const Arm& arm : arms())
        names.emplace_back(arm.name);
    return names;
}

void add_target(CLI::App& command, Target& target) {
    target.port = default_port;
    command.add_option("-s,--server", target.server,
                       "host where \"lite-perf serve\" runs, for all but LITE");
    command.add_option("-p,--port", target.port, "port of \"lite-perf serve\"")
        ->capture_default_str();
    command.add_option("-n,--node", target.node, "LITE node to measure to, for LITE")
        ->check(CLI::Range(1, 65535));
    command.add_option("-i,--index", target.lite_index, "use this machine's /dev/liteN")
        ->capture_default_str();
}

template <typename T>
CLI::Option* add_list(CLI::App& app, const std::string& names, std::vector<T>& values,
                      const std::string& text, T least, T most) {
    return app
        .add_option(names, values, fmt::format("{} (default: {})", text, fmt::join(values, ",")))
        ->delimiter(',')
        ->check(CLI::Range(least, most));
}

/// @values: a size, or a vector of them.
template <typename T>
CLI::Option* add_sizes(CLI::App& app, const std::string& names, T& values, const std::string& text,
                       std::uint64_t least, std::uint64_t most) {
    return app.add_option(names, values, text)
        ->delimiter(',')
        ->transform(CLI::AsSizeValue(false))
        ->check(CLI::Range(least, most));
}

void add_files(CLI::App& command, RunOptions& options) {
    add_sizes(command, "--file-sizes", options.file_sizes,
              "sizes of files, for the workloads file* (default: 4K,64K,1M,4M)", 1,
              file_size_limit);
    add_list(command, "--pipes", options.pipes, "parts of a file that are moved at a time", 1U,
             unsigned{LITE_FILE_SETS_MAX});
    add_list(command, "--pages", options.pages, "pages of 4 KB of such a part", 1U,
             unsigned{LITE_FILE_PAGES_MAX});
    command.add_option("--directory", options.directory, "where to make these files")
        ->check(CLI::ExistingDirectory)
        ->capture_default_str();
}

void add_run(CLI::App& app, RunOptions& options) {
    CLI::App* command = app.add_subcommand("run", "measure, and print tables");
    add_target(*command, options.target);
    command->add_option("-a,--arms", options.arms, "what to compare (default: whatever can be)")
        ->delimiter(',')
        ->check(CLI::IsMember(arm_names()));
    command
        ->add_option("-w,--workload", options.workloads,
                     "what to measure (default: all but lmrs, lmr-size, qos-*, file* and arena*)")
        ->delimiter(',')
        ->check(CLI::IsMember(workload_names()));
    add_sizes(*command, "-S,--sizes", options.sizes,
              "sizes of one transfer (default: 64,4K,64K,1M)", 1, size_limit);
    add_list(*command, "-W,--window", options.windows,
             "transfers under way at once, for rates and throughput, where an arm can", 1U, 64U);
    add_list(*command, "-T,--threads", options.threads, "threads that call at once", 1U,
             threads_limit);
    add_list(*command, "-P,--processes", options.processes,
             "processes that call, or stream (qos-*), at once", 1U, processes_limit);
    add_list(*command, "-N,--lmrs", options.counts, "numbers of LMRs, for the workload lmrs", 1U,
             counts_limit);
    add_sizes(*command, "-L,--lmr-sizes", options.lmr_sizes,
              "sizes of LMRs, for the workload lmr-size (default: 1M,16M,64M)", 4096, 1ULL << 40);
    command
        ->add_option("-M,--modes", options.modes,
                     "scheduling modes of LITE, for the workloads qos-* (default: all)")
        ->delimiter(',')
        ->check(CLI::IsMember(options.modes));
    add_sizes(*command, "--stream-size", options.stream_size,
              "size of the large operations of qos-* (default: 64M)", 64 << 10, stream_size_limit);
    command
        ->add_option("--streams", options.streams,
                     "large operations under way at once, in one process")
        ->check(CLI::Range(1U, streams_limit))
        ->capture_default_str();
    add_files(*command, options);
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

void add_load(CLI::App& app, LoadOptions& options) {
    CLI::App* command =
        app.add_subcommand("load", "make echoes at a fixed rate, for others to look at the server");
    add_target(*command, options.target);
    command->add_option("-a,--arm", options.arm, "the arm that makes them")
        ->required()
        ->check(CLI::IsMember(arm_names()));
    command->add_option("-S,--size", options.size, "bytes of a request, and of its reply")
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

std::vector<std::string> servable_arms() {
    std::vector<std::string> names;
    for (const Arm& arm : arms()) {
        if (arm.variant_of.empty())
            names.emplace_back(arm.name);
    }
    return names;
}

void add_serve(CLI::App& app, ServeOptions& options) {
    CLI::App* command = app.add_subcommand("serve", "be the other end of what is measured");
    options.port = default_port;
    // By default, arms that need neither LITE nor gRPC.
    for (const Arm& arm : arms()) {
        if (arm.by_default && !arm.needs_node)
            options.arms.emplace_back(arm.name);
    }
    command->add_option("-b,--bind", options.address, "listen on this address only");
    command->add_option("-p,--port", options.port, "port, of both TCP and RDMA CM")
        ->capture_default_str();
    command->add_option("-a,--arms", options.arms, "what to serve; verbs is also for kernel-verbs")
        ->delimiter(',')
        ->check(CLI::IsMember(servable_arms()))
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

/// Sorted and without duplicates: others are compared with the first.
template <typename T>
std::vector<T> in_order(std::vector<T> values) {
    std::ranges::sort(values);
    values.erase(std::unique(values.begin(), values.end()), values.end());
    return values;
}

bool is_wanted(const RunOptions& options, const Workload& workload) {
    if (!options.workloads.empty())
        return std::ranges::count(options.workloads, workload.name()) > 0;
    return !workload.on_request();
}

}  // namespace

Command parse_command_line(int argc, const char* const* argv) {
    CLI::App app("Measure LITE, native verbs and TCP side by side, the arms taking turns.",
                 "lite-perf");
    app.require_subcommand(1);
    app.footer(fmt::format(
        "Workloads: {}\nArms: {}\n\nExample, on node 1 of a cluster whose node 2 has the address "
        "10.0.0.2:\n"
        "  node2# lite-perf serve --background\n"
        "  node1# lite-perf run --server 10.0.0.2 --node 2\n",
        fmt::join(workload_names(), ", "), fmt::join(arm_names(), ", ")));
    RunOptions run;
    ServeOptions serve;
    LoadOptions load;
    add_run(app, run);
    add_load(app, load);
    add_serve(app, serve);
    // CLI11 would report an unknown command as a missing one.
    if (argc > 1 && argv[1][0] != '-' &&
        !std::ranges::count(std::array{"run", "load", "serve"}, std::string_view(argv[1]))) {
        fmt::print(stderr, "lite-perf: '{}' is not a command: run, load or serve\n", argv[1]);
        return Exit{2};
    }
    try {
        app.parse(argc, argv);
    } catch (const CLI::Success& help) {
        return Exit{app.exit(help)};
    } catch (const CLI::ParseError& error) {
        fmt::print(stderr, "lite-perf: {}\nTry 'lite-perf --help' for more information.\n",
                   error.what());
        return Exit{2};
    }
    if (app.got_subcommand("serve"))
        return serve;
    if (app.got_subcommand("load"))
        return load;
    return run;
}

std::vector<std::string> arms_to_measure(const RunOptions& options) {
    auto reachable = [&](const Arm& arm) {
        return arm.needs_node ? options.target.node != 0 : !options.target.server.empty();
    };
    std::vector<std::string> result;
    for (const std::string& name : options.arms) {
        if (!reachable(arm_of(name)))
            throw std::runtime_error(fmt::format("the arm {} needs {}", name,
                                                 arm_of(name).needs_node ? "--node" : "--server"));
        if (!std::ranges::count(result, name))
            result.push_back(name);
    }
    if (!options.arms.empty())
        return result;
    for (const Arm& arm : arms()) {
        if (arm.by_default && reachable(arm))
            result.emplace_back(arm.name);
    }
    if (result.empty())
        throw std::runtime_error("nothing to measure: give --server, --node or both");
    return result;
}

Plan make_plan(const RunOptions& options, const std::vector<std::string>& arms) {
    Plan plan;
    std::ranges::copy_if(workloads(), std::back_inserter(plan.workloads),
                         [&](const Workload* workload) { return is_wanted(options, *workload); });
    for (const std::uint64_t size : in_order(options.sizes))
        plan.choice.sizes.push_back(static_cast<std::uint32_t>(size));
    plan.choice.windows = in_order(options.windows);
    plan.choice.threads = in_order(options.threads);
    plan.choice.processes = in_order(options.processes);
    plan.choice.counts = in_order(options.counts);
    plan.choice.lmr_sizes = in_order(options.lmr_sizes);
    plan.choice.modes = options.modes;
    plan.choice.stream_bytes = options.stream_size;
    plan.choice.streams = options.streams;
    plan.choice.file_sizes = in_order(options.file_sizes);
    plan.choice.pipes = in_order(options.pipes);
    plan.choice.pages = in_order(options.pages);
    plan.choice.directory = options.directory;
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

}  // namespace perf
