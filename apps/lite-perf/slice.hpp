// SPDX-License-Identifier: MIT
//
// How long an arm has its turn, and the watch that times what it does meanwhile.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace perf {

using Clock = std::chrono::steady_clock;

/// How long a slice lasts: until either limit is reached, but at least one call.
struct Slice {
    std::chrono::nanoseconds time = std::chrono::nanoseconds::max();
    std::uint64_t calls = UINT64_MAX;
};

// Calls at the start of a slice that do not count: another arm has run since, and what this one
// uses (caches, a poller that went to sleep, a congestion window) has to come back first.
inline constexpr std::uint64_t warm_up_calls = 3;

// More than that is of no use to anybody, and memory is small on test machines.
inline constexpr std::size_t samples_max = 1'000'000;

class Stopwatch {
  public:
    explicit Stopwatch(const Slice& slice) : slice_(slice), start_(Clock::now()), last_(start_) {}

    /// Time since the last lap, in ns. One reading of the clock serves two neighbouring laps.
    double lap(std::uint64_t calls = 1) {
        const Clock::time_point now = Clock::now();
        const std::chrono::duration<double, std::nano> lap = now - last_;
        last_ = now;
        calls_ += calls;
        return lap.count();
    }

    /// Of the laps so far.
    bool over() const { return calls_ >= slice_.calls || last_ - start_ >= slice_.time; }
    double seconds() const { return std::chrono::duration<double>(last_ - start_).count(); }
    std::uint64_t calls() const { return calls_; }

  private:
    Slice slice_;
    Clock::time_point start_;
    Clock::time_point last_;
    std::uint64_t calls_ = 0;
};

/// The time of each of a slice's calls, in microseconds, after a few that do not count.
template <typename Call>
std::vector<double> time_calls(const Slice& slice, Call&& call) {
    Stopwatch warm_up({slice.time / 4, warm_up_calls});
    do {
        call();
        warm_up.lap();
    } while (!warm_up.over());
    std::vector<double> samples;
    samples.reserve(4096);
    Stopwatch watch(slice);
    do {
        call();
        samples.push_back(watch.lap() / 1e3);
    } while (!watch.over() && samples.size() < samples_max);
    return samples;
}

}  // namespace perf
