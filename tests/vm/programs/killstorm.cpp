// SPDX-License-Identifier: MIT
// Processes that are killed in the middle of their work, one after the other and several at a time.
//
// Each repeats one kind of work and gets SIGKILL at a random moment, usually after it has announced
// that it is running. It must be gone soon, whatever it was waiting for. Meanwhile a witness takes
// fresh memory from the kernel, again and again: a transfer that outlived the pages of its process
// would show up there sooner or later. In the end the LMRs that all of them used must still work;
// the calling test checks for leaks.
#include "common/arguments.hpp"
#include "common/data/pattern.hpp"
#include "common/env.hpp"
#include "common/memory.hpp"
#include "common/process.hpp"
#include "common/raw.hpp"
#include "common/run_main.hpp"

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

using namespace lite_test;

namespace {

using Clock = std::chrono::steady_clock;

constexpr std::uint64_t kLmrLength = 4 << 20;

struct Options {
    std::size_t count = 1000;
    std::size_t parallel = 6;
    std::string kind = "mixed";
    unsigned max_delay_us = 20000;
    std::uint64_t large = 1 << 20;  // bytes of a large transfer
};

// The work of a victim until it is killed; @rounds shows that it is running.
using Rounds = std::atomic<std::uint64_t>;
using Work = void (*)(const Options&, const std::vector<std::string>& names, std::mt19937_64&,
                      Rounds&);

Device random_device(std::mt19937_64& random) {
    const auto& indexes = env().indexes;
    return Device(indexes[random() % indexes.size()]);
}

const std::string& random_name(const std::vector<std::string>& names, std::mt19937_64& random) {
    return names[random() % names.size()];
}

void transfer(std::size_t length, const std::vector<std::string>& names, std::mt19937_64& random,
              Rounds& rounds) {
    const Device dev = random_device(random);
    const auto lh = dev.map(random_name(names, random));
    std::vector<std::byte> buffer(length);
    for (;; ++rounds) {
        const auto offset = random() % (kLmrLength - length + 1);
        if (random() % 2)
            dev.read(lh, offset, buffer);
        else
            dev.write(lh, offset, buffer);
    }
}

void do_small(const Options&, const std::vector<std::string>& names, std::mt19937_64& random,
              Rounds& rounds) {
    transfer(1 + random() % 500, names, random, rounds);
}

void do_large(const Options& options, const std::vector<std::string>& names,
              std::mt19937_64& random, Rounds& rounds) {
    transfer(options.large, names, random, rounds);
}

void do_atomics(const Options&, const std::vector<std::string>& names, std::mt19937_64& random,
                Rounds& rounds) {
    const Device dev = random_device(random);
    const auto lh = dev.map(random_name(names, random));
    for (;; ++rounds)
        (void)dev.fetch_add(lh, random() % (kLmrLength / 8) * 8, 1);
}

// Makes and frees anonymous LMRs: the dangerous moments are in the middle of either.
void do_allocations(const Options& options, const std::vector<std::string>&,
                    std::mt19937_64& random, Rounds& rounds) {
    const Device dev = random_device(random);
    const auto places = env().placements();
    for (;; ++rounds) {
        const auto lh =
            dev.alloc(1 + random() % options.large, places[random() % places.size()].nodes);
        dev.free(lh);
    }
}

void do_mappings(const Options&, const std::vector<std::string>& names, std::mt19937_64& random,
                 Rounds& rounds) {
    const Device dev = random_device(random);
    for (;; ++rounds)
        dev.unmap(dev.map(random_name(names, random)));
}

void do_listings(const Options&, const std::vector<std::string>& names, std::mt19937_64& random,
                 Rounds& rounds) {
    const Device dev = random_device(random);
    for (;; ++rounds) {
        (void)dev.list(4);
        (void)dev.stat(random_name(names, random));
    }
}

const std::map<std::string, Work>& works() {
    static const std::map<std::string, Work> all{
        {"small", do_small},       {"large", do_large},  {"atomics", do_atomics},
        {"alloc", do_allocations}, {"map", do_mappings}, {"list", do_listings},
    };
    return all;
}

class Victim {
  public:
    Victim(const Options& options, const std::vector<std::string>& names, Work work,
           std::uint64_t seed)
        : child_([&, this] {
              std::mt19937_64 random(seed);
              work(options, names, random, *rounds_);
          }) {
        std::mt19937_64 random(mix(seed));
        // One victim in eight is killed at any moment, maybe before it has opened the device.
        rounds_wanted_ = random() % 8 ? 1 + random() % 3 : 0;
        after_ = std::chrono::microseconds(random() % (options.max_delay_us + 1));
    }

    // Kills the victim when its time has come. Returns true once it is dead.
    bool advance() {
        if (*rounds_ < rounds_wanted_ && Clock::now() - born_ < patience())
            return false;
        if (due_ == Clock::time_point{}) {
            expect(*rounds_ >= rounds_wanted_, "a process did not get to work");
            due_ = Clock::now() + after_;
        }
        if (Clock::now() < due_)
            return false;
        child_.kill(SIGKILL);
        const auto killed = Clock::now();
        const auto ending = child_.wait();
        took_ = Clock::now() - killed;
        expect(ending == "killed by signal Killed", "a process ended by itself: " + ending);
        return true;
    }

    Clock::duration took() const { return took_; }

  private:
    Shared<Rounds> rounds_;
    std::uint64_t rounds_wanted_ = 0;
    std::chrono::microseconds after_{};
    Clock::time_point born_ = Clock::now();
    Clock::time_point due_{};
    Clock::duration took_{};
    Child child_;
};

// Checks that no transfer writes into memory that the kernel has just given to this process.
void witness(std::atomic<bool>& over) {
    while (!over) {
        const Mapping fresh(4 << 20);
        const auto zero = [](std::byte b) { return b == std::byte{}; };
        expect(std::all_of(fresh.data(), fresh.data() + fresh.size(), zero),
               "fresh memory was not zero");
        fill_pattern(fresh.bytes(), 1);
        expect(!find_mismatch(fresh.bytes(), 1), "memory changed under the hands of its owner");
    }
}

Work pick(const Options& options, std::mt19937_64& random) {
    if (options.kind != "mixed")
        return works().at(options.kind);
    return std::next(works().begin(), static_cast<std::ptrdiff_t>(random() % works().size()))
        ->second;
}

Clock::duration storm(const Options& options, const std::vector<std::string>& names) {
    std::mt19937_64 random(env().seed);
    std::vector<std::unique_ptr<Victim>> victims;
    std::size_t started = 0;
    Clock::duration slowest{};
    while (started < options.count || !victims.empty()) {
        while (victims.size() < options.parallel && started < options.count) {
            victims.push_back(
                std::make_unique<Victim>(options, names, pick(options, random), random()));
            ++started;
        }
        std::erase_if(victims, [&](const auto& victim) {
            const bool dead = victim->advance();
            if (dead)
                slowest = std::max(slowest, victim->took());
            return dead;
        });
        ::usleep(100);
    }
    return slowest;
}

void check_alive(const Device& dev, const NamedLmr& lmr) {
    const auto data = make_pattern(kLmrLength, env().seed);
    std::vector<std::byte> back(kLmrLength);
    dev.write(lmr.lh(), 0, data);
    dev.read(lmr.lh(), 0, back);
    expect(!find_mismatch(back, env().seed), "contents after the storm");
    (void)dev.fetch_add(lmr.lh(), 0, 1);
}

void run(const Options& options) {
    const Device dev(env().indexes.front());
    std::vector<std::unique_ptr<NamedLmr>> lmrs;
    std::vector<std::string> names;
    for (const auto& where : env().placements()) {
        lmrs.push_back(std::make_unique<NamedLmr>(dev, kLmrLength, where.nodes, 0666, "storm"));
        names.push_back(lmrs.back()->name());
    }
    Shared<std::atomic<bool>> over;
    Child observer([&] { witness(*over); });
    const auto slowest = storm(options, names);
    *over = true;
    observer.join();
    for (const auto& lmr : lmrs)
        check_alive(dev, *lmr);
    std::printf(
        "killed %zu processes, the slowest took %lld ms to end\n", options.count,
        static_cast<long long>(std::chrono::ceil<std::chrono::milliseconds>(slowest).count()));
}

}  // namespace

int main(int argc, char** argv) {
    lite_test::Arguments line(
        "Kills processes in the middle of LITE operations. See env.hpp for what it takes from the "
        "environment.");
    Options options;
    std::string kinds = "mixed";
    for (const auto& [name, work] : works())
        kinds += ", " + name;
    line.option("--count", &options.count, "processes to kill");
    line.option("--parallel", &options.parallel, "how many live at a time");
    line.option("--kind", &options.kind, "what they do: " + kinds);
    line.option("--max-delay-us", &options.max_delay_us,
                "longest time from being at it to the signal");
    line.option("--large", &options.large, "bytes of a large transfer");
    line.parse(argc, argv);
    return lite_test::run_main("killstorm", [&] {
        std::printf("seed %llu\n", static_cast<unsigned long long>(env().seed));
        std::fflush(stdout);
        run(options);
    });
}
