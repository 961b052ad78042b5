// SPDX-License-Identifier: MIT
// Parts of a test that several machines carry out: one carries out a plan of random transfers,
// another computes the resulting contents from the same numbers, and checks them.
//
//   run NAME --seed S --count N     carry out the plan; compare each read with the model
//   check NAME --seed S --count N   compare all of the LMR with what the plan leaves behind
//   fill NAME --seed S              write the pattern S over all of the LMR
//   verify NAME --seed S            read all of the LMR and compare it with the pattern S
//   tally NAME --count N            fetch-add 1, N times; print the old values
//   loop NAME                       write and read until an operation fails; print its errno
//   keep NAME                       as "loop"; then do nothing until there is a line to read
//   interrupted NAME --seed S       read what was filled until that fails; bytes that are reported
//                                   as read must have been read; print the errno
//   hold NAME                       open it; after a line on standard input try the handle: read,
//                                   write, fetch-add, stat, free; print each errno
#include "common/data/transfers.hpp"
#include "common/arguments.hpp"
#include "common/data/pattern.hpp"
#include "common/env.hpp"
#include "common/memory.hpp"
#include "common/process.hpp"
#include "common/raw.hpp"
#include "common/run_main.hpp"

#include <lite/lite.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <functional>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

namespace {

constexpr auto kAccess = lite::rights::read | lite::rights::write | lite::rights::atomic;

struct Options {
    int index = 0;
    lite::rights rights = kAccess;
    std::string name;
    std::uint64_t seed = 1;
    std::size_t count = 100;
    std::uint64_t max_length = 16 << 20;
    std::uint64_t offset = 0;
    std::size_t length = 4096;
};

class Session {
  public:
    explicit Session(const Options& options)
        : options_(options),
          node_(options.index),
          region_(node_.map(options.name, options.rights)) {}

    void run() { lite_test::carry_out(region_, plan()); }
    void check() { lite_test::check_outcome(region_, plan()); }
    void fill() { lite_test::write_pattern(region_, options_.seed); }
    void verify() { lite_test::check_pattern(region_, options_.seed); }

    void tally() {
        for (std::size_t i = 0; i < options_.count; ++i)
            std::printf("%llu\n",
                        static_cast<unsigned long long>(region_.fetch_add(options_.offset, 1)));
    }

    // Ends with success whatever the error is: the calling test checks it.
    void loop() {
        std::vector<std::byte> back(options_.length);
        try {
            for (std::uint64_t round = 0;; ++round) {
                region_.write(options_.offset, lite_test::make_pattern(options_.length, round));
                region_.read(options_.offset, std::span(back));
                lite_test::expect(!lite_test::find_mismatch(back, round), "own data");
                if (round == 0)
                    announce("running");
            }
        } catch (const lite::error& e) {
            announce(strerrorname_np(e.code().value()));
        }
    }

    void keep() {
        loop();
        (void)std::getchar();
    }

    // Reads what "fill" has written until an event ends the read in the middle. Bytes that the
    // kernel reports as read must have been read, and that must be most of what has arrived.
    void interrupted() {
        constexpr std::size_t in_flight = 1U << 20;
        const lite_test::Device device(static_cast<unsigned>(options_.index));
        const std::uint64_t lh = device.map(options_.name, LITE_RIGHT_READ);
        const lite_test::Mapping memory(options_.length);
        const std::size_t part = memory.size() / 4;
        const std::byte wanted = lite_test::make_pattern(1, options_.seed, part).front();
        std::ranges::fill(memory.bytes(), ~wanted);
        const volatile std::byte* arrived = memory.data() + part;
        std::jthread watcher([&](const std::stop_token& stop) {
            while (*arrived != wanted && !stop.stop_requested())
                std::this_thread::yield();
            announce("in the middle");
        });
        lite_op args = lite_test::read_args(lh, 0, memory.data(), memory.size());
        const lite_test::Errno said = device(args);
        watcher.request_stop();
        watcher.join();
        lite_test::expect(
            !lite_test::find_mismatch(memory.bytes().first(args.result), options_.seed),
            "what was read");
        lite_test::expect(said == lite_test::ok || args.result + in_flight > part, "how much");
        announce(said == lite_test::ok ? "success" : strerrorname_np(said.value));
    }

    // Tries the handle after something has happened to its LMR.
    void hold() {
        announce("running");
        (void)std::getchar();
        const auto lh = region_.handle();
        std::uint64_t word = 0;
        lite_lmr_info info{};
        report(lite_read(node_.get(), lh, 0, &word, sizeof(word)));
        report(lite_write(node_.get(), lh, 0, &word, sizeof(word)));
        report(lite_fetch_add(node_.get(), lh, 0, 1, &word));
        report(lite_stat(node_.get(), lh, &info, nullptr, nullptr));
        report(lite_free(node_.get(), lh));
    }

  private:
    static void report(int result) { announce(result ? strerrorname_np(-result) : "success"); }

    static void announce(const char* text) {
        std::puts(text);
        std::fflush(stdout);
    }

    lite_test::Plan plan() {
        lite_test::Plan plan;
        plan.seed = options_.seed;
        plan.lmr_length = region_.length();
        plan.max_length = options_.max_length;
        plan.n_nodes = region_.stat().info.n_nodes;
        plan.count = options_.count;
        return plan;
    }

    const Options& options_;
    lite::context node_;
    lite::region region_;
};

void add_commands(lite_test::Arguments& line, Options& options,
                  std::function<void(Session&)>& chosen) {
    const auto add = [&](const char* verb, const char* text, void (Session::*method)()) {
        auto command = line.command(verb, text, [&, method] {
            chosen = [method](Session& session) { (session.*method)(); };
            if (method == &Session::hold)
                options.rights = lite::rights::all;
        });
        command.required("name", &options.name);
        command.option("--seed", &options.seed);
        command.option("--count", &options.count);
        command.option("--max-length", &options.max_length);
        command.option("--offset", &options.offset);
        command.option("--length", &options.length);
    };
    add("run", "carry out a plan", &Session::run);
    add("check", "compare with the outcome of a plan", &Session::check);
    add("fill", "write a pattern", &Session::fill);
    add("verify", "compare with a pattern", &Session::verify);
    add("tally", "fetch-add and print the old values", &Session::tally);
    add("loop", "write and read until that fails", &Session::loop);
    add("keep", "as loop, and keep the handle", &Session::keep);
    add("interrupted", "read until that fails", &Session::interrupted);
    add("hold", "try later what a handle is good for", &Session::hold);
}

}  // namespace

int main(int argc, char** argv) {
    lite_test::Arguments line("Transfers that several machines have a share in.");
    Options options;
    std::function<void(Session&)> chosen;
    line.option("--index", &options.index, "the N of /dev/liteN");
    add_commands(line, options, chosen);
    line.parse(argc, argv);
    return lite_test::run_main("transfers", [&] {
        Session session(options);
        chosen(session);
    });
}
