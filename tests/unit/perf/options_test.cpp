// SPDX-License-Identifier: MIT
#include "options.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <stdexcept>
#include "catch.hpp"

using namespace perf;

namespace {

/// The result of a command line, and its error output.
struct Parsed {
    Command command;
    std::string error;
};

Parsed parse(std::vector<const char*> words) {
    words.insert(words.begin(), "lite-perf");
    std::FILE* said = std::tmpfile();
    std::fflush(stderr);
    const int old = dup(STDERR_FILENO);
    dup2(fileno(said), STDERR_FILENO);
    Command command = parse_command_line(static_cast<int>(words.size()), words.data());
    std::fflush(stderr);
    dup2(old, STDERR_FILENO);
    close(old);
    std::rewind(said);
    char text[1024];
    const std::size_t length = std::fread(text, 1, sizeof text, said);
    std::fclose(said);
    return {std::move(command), {text, length}};
}

void check_refused(std::vector<const char*> words, const std::string& why) {
    const Parsed parsed = parse(std::move(words));
    REQUIRE(std::holds_alternative<Exit>(parsed.command));
    CHECK(std::get<Exit>(parsed.command).status == 2);
    CHECK_THAT(parsed.error, Catch::StartsWith("lite-perf: "));
    CHECK_THAT(parsed.error, Catch::Contains(why));
}

RunOptions run_options(std::vector<const char*> words) {
    words.insert(words.begin(), "run");
    return std::get<RunOptions>(parse(std::move(words)).command);
}

Plan plan_of(std::vector<const char*> words) {
    const RunOptions options = run_options(std::move(words));
    return make_plan(options, arms_to_measure(options));
}

bool has(const Plan& plan, std::string_view workload) {
    return std::ranges::count(plan.workloads, workload, &Workload::name) > 0;
}

}  // namespace

TEST_CASE("mistakes on the command line are reported") {
    check_refused({}, "subcommand");
    check_refused({"walk"}, "walk");
    check_refused({"run", "--arms", "lite,pigeon"}, "pigeon");
    check_refused({"run", "--workload", "nap"}, "nap");
    check_refused({"run", "--window", "65"}, "not in range 1 to 64");
    check_refused({"run", "--window", "0"}, "--window");
    check_refused({"run", "--threads", "1,0"}, "--threads");
    check_refused({"run", "--processes", "1000"}, "--processes");
    check_refused({"run", "--lmrs", "1000000"}, "--lmrs");
    check_refused({"run", "--lmr-sizes", "1"}, "--lmr-sizes");
    check_refused({"run", "--sizes", "0"}, "--sizes");
    check_refused({"run", "--sizes", "64M"}, "--sizes");
    check_refused({"run", "--modes", "fair,quick"}, "quick");
    check_refused({"run", "--stream-size", "1G"}, "--stream-size");
    check_refused({"run", "--streams", "0"}, "--streams");
    check_refused({"run", "--file-sizes", "512M"}, "--file-sizes");
    check_refused({"run", "--pipes", "17"}, "--pipes");
    check_refused({"run", "--pages", "16,2000"}, "--pages");
    check_refused({"run", "--directory", "/no/such/directory"}, "/no/such/directory");
    check_refused({"run", "--rounds", "none"}, "--rounds");
    check_refused({"run", "--node", "65536"}, "--node");
    check_refused({"run", "--count", "5", "--seconds", "1"}, "--seconds");
    check_refused({"run", "--baseline", "pigeon"}, "--baseline");
    check_refused({"serve", "--arms", "kernel-verbs"}, "kernel-verbs");
    check_refused({"load", "--size", "1M", "--arm", "tcp"}, "--size");
    check_refused({"load"}, "--arm is required");
}

TEST_CASE("lists are sorted, without duplicates") {
    const Plan plan = plan_of({"--node", "2", "--sizes", "4K,8,4K,1M", "--window", "16,1,4"});
    CHECK(plan.choice.sizes == std::vector<std::uint32_t>{8, 4096, 1 << 20});
    CHECK(plan.choice.windows == std::vector<unsigned>{1, 4, 16});
}

TEST_CASE("without --arms, the default arms that can be reached are measured") {
    CHECK(arms_to_measure(run_options({"--node", "2"})) == std::vector<std::string>{"lite"});
    const auto native = arms_to_measure(run_options({"--server", "somewhere"}));
    CHECK(std::ranges::count(native, "verbs") == 1);
    CHECK(std::ranges::count(native, "lite") == 0);
    // These need a library or a module that may be missing.
    CHECK(std::ranges::count(native, "grpc") == 0);
    CHECK(std::ranges::count(native, "kernel-verbs") == 0);
    CHECK_THROWS_WITH(arms_to_measure(run_options({})), Catch::Contains("nothing to measure"));
    CHECK_THROWS_WITH(arms_to_measure(run_options({"--node", "2", "--arms", "lite,tcp"})),
                      Catch::Contains("the arm tcp needs --server"));
    CHECK_THROWS_WITH(arms_to_measure(run_options({"--server", "x", "--arms", "kernel-lite"})),
                      Catch::Contains("the arm kernel-lite needs --node"));
    CHECK(arms_to_measure(run_options({"--node", "2", "--arms", "lite,lite"})).size() == 1);
}

TEST_CASE("the baseline is verbs if measured, or the chosen arm") {
    CHECK(plan_of({"--node", "2"}).baseline == "lite");
    CHECK(plan_of({"--node", "2", "--server", "x"}).baseline == "verbs");
    CHECK(plan_of({"--node", "2", "--server", "x", "--baseline", "tcp"}).baseline == "tcp");
    CHECK_THROWS_WITH(plan_of({"--node", "2", "--baseline", "tcp"}),
                      Catch::Contains("tcp is not measured"));
}

TEST_CASE("the rounds share the time or the calls") {
    const Plan timed = plan_of({"--node", "2", "--seconds", "2", "--rounds", "4"});
    CHECK(timed.slice.time == std::chrono::milliseconds(500));
    CHECK(timed.slice.calls == UINT64_MAX);
    const Plan counted = plan_of({"--node", "2", "--count", "10", "--rounds", "4"});
    CHECK(counted.slice.calls == 3);
    CHECK(counted.slice.time == std::chrono::nanoseconds::max());
}

TEST_CASE("long workloads are measured only on request") {
    CHECK(has(plan_of({"--node", "2"}), "read-latency"));
    CHECK_FALSE(has(plan_of({"--node", "2"}), "lmrs"));
    CHECK_FALSE(has(plan_of({"--node", "2"}), "qos-write"));
    CHECK_FALSE(has(plan_of({"--node", "2"}), "file"));
    CHECK_FALSE(has(plan_of({"--node", "2"}), "qos-share"));
    const Plan plan = plan_of({"--node", "2", "--workload", "lmrs,connect"});
    CHECK(plan.workloads.size() == 2);
    CHECK(has(plan, "lmrs"));
}

TEST_CASE("streams and scheduling modes") {
    const Choice standard = plan_of({"--node", "2"}).choice;
    CHECK(standard.modes == std::vector<std::string>{"none", "fair", "hw-sep", "sw-pri"});
    CHECK(standard.stream_bytes == 64 << 20);
    CHECK(standard.streams == 2);
    const Choice choice =
        plan_of({"--node", "2", "--modes", "fair,none", "--stream-size", "16M", "--streams", "4"})
            .choice;
    CHECK(choice.modes == std::vector<std::string>{"fair", "none"});
    CHECK(choice.stream_bytes == 16 << 20);
    CHECK(choice.streams == 4);
}

TEST_CASE("files, and how they are divided") {
    const Choice standard = plan_of({"--node", "2"}).choice;
    CHECK(standard.file_sizes == std::vector<std::uint64_t>{4 << 10, 64 << 10, 1 << 20, 4 << 20});
    CHECK(standard.pipes == std::vector<unsigned>{1, 2, 6});
    CHECK(standard.pages == std::vector<unsigned>{16, 256});
    const Plan plan =
        plan_of({"--node", "2", "--workload", "file,file-cold,file-receive", "--file-sizes",
                 "256M,4K", "--pipes", "6,1", "--pages", "1024", "--directory", "/"});
    CHECK(plan.workloads.size() == 3);
    CHECK(plan.choice.file_sizes == std::vector<std::uint64_t>{4 << 10, 256 << 20});
    CHECK(plan.choice.pipes == std::vector<unsigned>{1, 6});
    CHECK(plan.choice.pages == std::vector<unsigned>{1024});
    CHECK(plan.choice.directory == "/");
    CHECK(plan.workloads.front()->sizes(plan.choice) == plan.choice.file_sizes);
}

TEST_CASE("more memory than a server grants is refused") {
    CHECK_THROWS_WITH(plan_of({"--node", "2", "--sizes", "16M", "--window", "64"}),
                      Catch::Contains("size times window"));
}

TEST_CASE("the other commands") {
    const auto serve = std::get<ServeOptions>(parse({"serve", "--time", "5", "--spin"}).command);
    CHECK(serve.limit == std::chrono::seconds(5));
    CHECK(serve.spin);
    CHECK(std::ranges::count(serve.arms, "verbs") == 1);
    CHECK(std::ranges::count(serve.arms, "kernel-verbs") == 0);
    const auto load = std::get<LoadOptions>(
        parse({"load", "--arm", "tcp", "--server", "x", "--size", "4K"}).command);
    CHECK(load.size == 4096);
    CHECK(load.target.server == "x");
}
