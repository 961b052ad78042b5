// SPDX-License-Identifier: MIT
// Processes on several nodes that want LMRs of the same names at the same time.
//
//   race    rounds with a barrier: all create one name; exactly one may succeed and the others must
//           get EEXIST; then every node must find it; then its owner frees it and no node may find
//           it any more
//   loose   all nodes of a cluster, on machines of their own, create the names PREFIX-0, PREFIX-1,
//           ... and keep them; prints "NUMBER ERRNO" for each. They collide by themselves: the
//           loser of a name is told so when the winner has it, and both go on to the next name.
//           With --board LMR, byte NUMBER of that becomes 1 (made) or 2 before the next name.
//   churn   all create and free one name as often as they can; never may two have it
//   look    every name PREFIX-0 ... is looked up; prints "NUMBER ERRNO HOME" for each
#include "common/arguments.hpp"
#include "common/env.hpp"
#include "common/process.hpp"
#include "common/raw.hpp"
#include "common/run_main.hpp"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <functional>
#include <memory>
#include <random>
#include <span>
#include <string>
#include <vector>

using namespace lite_test;

namespace {

constexpr std::size_t kMaxProcesses = 32;

struct Options {
    std::size_t rounds = 300;
    std::size_t processes = 4;  // per node
    std::size_t count = 100;
    std::string prefix = "name";
    std::string board;
};

// Shared by the processes. A process that fails tells the others before it ends.
struct Arena {
    std::atomic<bool> failed{};
    std::atomic<std::uint32_t> arrived{};
    std::atomic<std::uint32_t> generation{};
    std::array<int, kMaxProcesses> outcome{};          // of creating
    std::array<std::uint64_t, kMaxProcesses> found{};  // id; 0: not found
    std::array<std::uint32_t, kMaxProcesses> homes{};  // the home that was requested
    std::atomic<int> owners{};
    std::atomic<std::uint64_t> successes{};
};

class Runner {
  public:
    Runner(Arena& arena, std::size_t number, std::size_t count)
        : arena_(arena),
          number_(number),
          count_(count),
          dev_(env().indexes[number % env().indexes.size()]),
          random_(env().seed + number) {}

    void race(std::size_t rounds) {
        for (std::size_t round = 0; round < rounds; ++round) {
            if (number_ == 0 && round % 20 == 0) {
                std::printf("round %zu\n", round);
                std::fflush(stdout);
            }
            const auto name = "race-" + std::to_string(round % 8);
            meet();
            const auto lh = create(name, round % 2 != 0);
            meet();
            if (number_ == 0)
                check_outcomes(round);
            find(name);
            meet();
            if (number_ == 0)
                check_found(round, true);
            meet();
            if (lh)
                dev_.free(lh);
            meet();
            find(name);
            meet();
            if (number_ == 0)
                check_found(round, false);
        }
    }

    void churn(std::size_t rounds) {
        meet();
        // A refused process does not count a success. Another process has the name then, so the
        // loop ends.
        const auto deadline = std::chrono::steady_clock::now() + patience();
        while (arena_.successes < rounds) {
            expect(std::chrono::steady_clock::now() < deadline, "no process gets the name");
            auto args = alloc_args("churned", 4096);
            const auto result = dev_(args);
            expect(result == ok || result == err(EEXIST),
                   std::string("creating: ") + strerrorname_np(result.value));
            if (result != ok)
                continue;
            expect(++arena_.owners == 1, "two have the name");
            ++arena_.successes;
            ::usleep(200);  // time for another owner to show
            --arena_.owners;
            dev_.free(args.lh);
        }
    }

    // Waits for all the others.
    void meet() {
        const auto generation = arena_.generation.load();
        if (++arena_.arrived == count_) {
            arena_.arrived = 0;
            ++arena_.generation;
            futex(FUTEX_WAKE, kMaxProcesses, nullptr);
            return;
        }
        const auto deadline = std::chrono::steady_clock::now() + patience();
        const timespec second{.tv_sec = 1, .tv_nsec = 0};  // to see that another one has failed
        while (arena_.generation == generation) {
            expect(!arena_.failed, "another process has failed");
            expect(std::chrono::steady_clock::now() < deadline, "others did not come");
            futex(FUTEX_WAIT, generation, &second);
        }
    }

  private:
    // Waits for another generation, or wakes the waiters. (Those of std::atomic wake threads only.)
    void futex(int operation, std::uint32_t value, const timespec* timeout) {
        ::syscall(SYS_futex, &arena_.generation, operation, value, timeout, nullptr, 0);
    }

    std::uint64_t create(const std::string& name, bool anywhere) {
        auto args = alloc_args(name, 4096, 0666);
        arena_.homes[number_] = 0;
        if (anywhere) {
            const auto& others = env().remote;
            const auto pick = random_() % (others.size() + 1);
            arena_.homes[number_] = pick ? others[pick - 1] : env().self;
            set_nodes(args, std::span(&arena_.homes[number_], 1));
        }
        const auto result = dev_(args);
        arena_.outcome[number_] = result.value;
        return result == ok ? args.lh : 0;
    }

    void find(const std::string& name) {
        auto args = stat_args(name);
        const auto result = dev_(args);
        expect(result == ok || result == err(ENOENT),
               "looking " + name + " up: " + strerrorname_np(result.value));
        arena_.found[number_] = result == ok ? args.info.id : 0;
    }

    void check_outcomes(std::size_t round) const {
        std::size_t winners = 0;
        bool others_ok = true;
        std::string all;
        for (std::size_t i = 0; i < count_; ++i) {
            winners += arena_.outcome[i] == 0;
            others_ok = others_ok && (arena_.outcome[i] == 0 || arena_.outcome[i] == EEXIST);
            all +=
                std::string(" ") + (arena_.outcome[i] ? strerrorname_np(arena_.outcome[i]) : "0");
        }
        expect(winners == 1 && others_ok, "round " + std::to_string(round) + ":" + all);
    }

    void check_found(std::size_t round, bool wanted) const {
        for (std::size_t i = 0; i < count_; ++i) {
            const auto what = "round " + std::to_string(round) + ": process " + std::to_string(i);
            expect((arena_.found[i] != 0) == wanted,
                   what + (wanted ? " does not find the LMR" : " finds an LMR that was freed"));
            expect(arena_.found[i] == arena_.found[0], what + " finds another LMR");
        }
    }

    Arena& arena_;
    std::size_t number_;
    std::size_t count_;
    Device dev_;
    std::mt19937_64 random_;
};

void run_all(const Options& options, const std::function<void(Runner&)>& body) {
    const auto count = options.processes * env().indexes.size();
    expect(count <= kMaxProcesses, "too many processes");
    (void)env().self;
    Shared<Arena> arena;
    std::vector<Child> children;
    children.reserve(count);
    for (std::size_t i = 0; i < count; ++i)
        children.emplace_back([&, i] {
            try {
                Runner runner(*arena, i, count);
                body(runner);
            } catch (...) {
                arena->failed = true;
                throw;
            }
        });
    std::string failures;
    for (auto& child : children) {
        const auto ending = child.wait();
        if (!ending.empty())
            failures += "\n" + ending;
    }
    expect(failures.empty(), "processes failed:" + failures);
    if (arena->successes)
        std::printf("%llu times\n", static_cast<unsigned long long>(arena->successes));
}

void loose(const Options& options) {
    const Device dev(env().indexes.front());
    const std::uint64_t board =
        options.board.empty() ? 0 : dev.map(options.board, LITE_RIGHT_WRITE);
    for (std::size_t i = 0; i < options.count; ++i) {
        // No handle: a free does not have to wait for its release.
        auto args =
            alloc_args(options.prefix + "-" + std::to_string(i), 4096, 0666, LITE_ALLOC_NO_HANDLE);
        const auto result = dev(args);
        if (board) {
            const auto mark = result == ok ? std::byte{1} : std::byte{2};
            dev.write(board, i, std::span(&mark, 1));
        }
        std::printf("%zu %s\n", i, result == ok ? "0" : strerrorname_np(result.value));
        std::fflush(stdout);
    }
}

void look(const Options& options) {
    const Device dev(env().indexes.front());
    for (std::size_t i = 0; i < options.count; ++i) {
        auto args = stat_args(options.prefix + "-" + std::to_string(i));
        const auto result = dev(args);
        std::printf("%zu %s %u\n", i, result == ok ? "0" : strerrorname_np(result.value),
                    result == ok ? args.info.home : 0);
    }
}

}  // namespace

int main(int argc, char** argv) {
    lite_test::Arguments line(
        "Many want LMRs of the same names. See env.hpp for what it takes from the environment.");
    Options options;
    std::function<void()> chosen;
    const auto add = [&](const char* verb, const char* text, const std::function<void()>& what) {
        auto command = line.command(verb, text, [&chosen, what] { chosen = what; });
        command.option("--rounds", &options.rounds);
        command.option("--processes", &options.processes, "per node");
        command.option("--count", &options.count, "names");
        command.option("--prefix", &options.prefix, "of names");
        command.option("--board", &options.board, "an LMR for the outcomes");
    };
    add("race", "create one name at once, round by round",
        [&] { run_all(options, [&](Runner& r) { r.race(options.rounds); }); });
    add("churn", "create and free one name",
        [&] { run_all(options, [&](Runner& r) { r.churn(options.rounds); }); });
    add("loose", "create names and keep them", [&] { loose(options); });
    add("look", "look names up", [&] { look(options); });
    line.parse(argc, argv);
    return lite_test::run_main("namerace", [&] { chosen(); });
}
