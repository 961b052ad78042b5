// SPDX-License-Identifier: MIT
// Are the words of an LMR linearizable? Threads on several nodes of this machine carry out random
// atomics of all kinds on them. Each operation is recorded, with its times, and in the end the
// checker of tests/lin judges the history.
//
//   histories NAME --indexes 0,1 --threads T --count N --words W --seed S [--until-told] [--spoil]
//
// W words at the beginning of NAME, which are 0; the next word is used, too. Operations that fail
// because a node cannot be reached may have taken effect, or may still do so. Prints "running", and
// in the end the number of operations and of those with an unknown result. --until-told: runs until
// a line comes on standard input, however long that takes; each thread records at most N of its
// operations. --spoil changes one answer before the check: then the check must fail.
#include "common/arguments.hpp"
#include "lin/checker.hpp"
#include "lin/recorder.hpp"

#include <lite/lite.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <exception>
#include <random>
#include <string>
#include <thread>
#include <vector>

namespace {

using u64 = std::uint64_t;

struct Options {
    std::string name;
    std::vector<int> indexes = {0};
    std::size_t threads = 4;
    std::size_t count = 200;
    u64 words = 2;
    u64 seed = 1;
    bool until_told = false;
    bool spoil = false;
};

// Errors that an operation may have while a connection is broken.
bool unreachable(const lite::error& e) {
    constexpr std::array errors{EHOSTDOWN, ETIMEDOUT, EIO};
    return std::ranges::count(errors, e.code().value()) > 0;
}

class Worker {
  public:
    Worker(int index, const Options& options, lin::Recorder::Part& part, std::uint32_t number)
        : options_(options),
          node_(index),
          region_(node_.map(options.name, lite::rights::atomic)),
          part_(part),
          number_(number),
          random_(options.seed * 1000 + number),
          seen_(options.words) {}

    void run(const std::atomic<bool>& told) {
        for (std::size_t i = 0; i < options_.count && !told; ++i)
            once();
        while (options_.until_told && !told)
            wait_for_the_node();
    }

  private:
    void once() {
        const u64 word = random_() % options_.words;
        lin::Operation op;
        op.key = word * sizeof(u64);
        op.process = number_;
        op.kind = kinds[random_() % kinds.size()];
        op.a = random_();
        if (op.kind == lin::Kind::cmp_swap) {
            op.a = seen_[word];
            op.b = random_();
        }
        part_.begin(op);
        try {
            const u64 old = carry_out(op);
            part_.end(lin::Answer::done, old);
            seen_[word] = old;
        } catch (const lite::error& e) {
            if (!unreachable(e))
                throw;
            part_.end(lin::Answer::unknown);
            wait_for_the_node();
        }
    }

    u64 carry_out(const lin::Operation& op) {
        switch (op.kind) {
            case lin::Kind::fetch_add:
                return region_.fetch_add(op.key, op.a);
            case lin::Kind::cmp_swap:
                return region_.compare_swap(op.key, op.a, op.b);
            case lin::Kind::swap:
                return region_.exchange(op.key, op.a);
            case lin::Kind::fetch_and:
                return region_.fetch_and(op.key, op.a);
            default:
                return region_.fetch_or(op.key, op.a);
        }
    }

    // Tries an operation that is not recorded until one succeeds. Otherwise, after a failure, all
    // remaining operations would fail at once, and show nothing.
    void wait_for_the_node() {
        constexpr auto pause = std::chrono::milliseconds(20);
        const auto deadline = std::chrono::steady_clock::now() + std::chrono::minutes(5);
        for (;;) {
            try {
                region_.fetch_add(options_.words * sizeof(u64), 1);
                return;
            } catch (const lite::error& e) {
                if (!unreachable(e) || std::chrono::steady_clock::now() > deadline)
                    throw;
            }
            std::this_thread::sleep_for(pause);
        }
    }

    static constexpr std::array kinds{lin::Kind::fetch_add, lin::Kind::cmp_swap, lin::Kind::swap,
                                      lin::Kind::fetch_and, lin::Kind::fetch_or};

    const Options& options_;
    lite::context node_;
    lite::region region_;
    lin::Recorder::Part& part_;
    std::uint32_t number_;
    std::mt19937_64 random_;
    std::vector<u64> seen_;  // the last value of each word that this thread knows
};

void spoil(std::vector<lin::Operation>& history) {
    auto victim = history.begin() + static_cast<std::ptrdiff_t>(history.size() / 2);
    while (victim->answer == lin::Answer::unknown)
        ++victim;
    victim->result ^= 1;
}

std::vector<lin::Operation> record(const Options& options) {
    lin::Recorder recorder(options.indexes.size() * options.threads, options.count);
    std::vector<Worker> workers;
    for (const int index : options.indexes) {
        for (std::size_t i = 0; i < options.threads; ++i) {
            const auto number = static_cast<std::uint32_t>(workers.size());
            workers.emplace_back(index, options, recorder.part(number), number);
        }
    }
    std::vector<std::exception_ptr> failures(workers.size());
    std::atomic<bool> told = false;
    {
        std::vector<std::jthread> threads;
        for (std::size_t i = 0; i < workers.size(); ++i) {
            threads.emplace_back([&worker = workers[i], &failure = failures[i], &told] {
                try {
                    worker.run(told);
                } catch (...) {
                    failure = std::current_exception();
                }
            });
        }
        std::puts("running");
        std::fflush(stdout);
        if (options.until_told) {
            std::getchar();
            told = true;
        }
    }
    for (const auto& failure : failures) {
        if (failure)
            std::rethrow_exception(failure);
    }
    return recorder.history();
}

int check(const Options& options) {
    auto history = record(options);
    const auto unknown = std::ranges::count_if(history, &lin::Operation::optional);
    if (options.spoil)
        spoil(history);
    const lin::Result result = lin::check_all(history);
    std::printf("%zu %td\n", history.size(), unknown);
    if (result.verdict == lin::Verdict::linearizable)
        return 0;
    std::fprintf(stderr, "histories: %s: %s\n",
                 result.verdict == lin::Verdict::undecided ? "undecided" : "not linearizable",
                 result.explanation.c_str());
    return 1;
}

}  // namespace

int main(int argc, char** argv) {
    lite_test::Arguments line("Atomics on the words of an LMR: checks that they are linearizable.");
    Options options;
    line.required("name", &options.name);
    line.option("--indexes", &options.indexes, "the N of /dev/liteN");
    line.option("--threads", &options.threads, "on each of them");
    line.option("--count", &options.count, "operations of each thread");
    line.option("--words", &options.words);
    line.option("--seed", &options.seed);
    line.flag("--until-told", options.until_told, "not until the count is reached");
    line.flag("--spoil", options.spoil, "change an answer");
    line.parse(argc, argv);
    try {
        return check(options);
    } catch (const std::exception& e) {
        std::fprintf(stderr, "histories: %s\n", e.what());
        return 2;
    }
}
