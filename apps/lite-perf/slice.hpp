// SPDX-License-Identifier: MIT
//
// Length of a turn, and the stopwatch for the calls in it.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace perf {

using Clock = std::chrono::steady_clock;

struct Interval {
    Clock::time_point begin;
    Clock::time_point end;
};

/// Limits of a turn. It ends at the first that is reached, but has at least one call.
struct Slice {
    std::chrono::nanoseconds time = std::chrono::nanoseconds::max();
    std::uint64_t calls = UINT64_MAX;
};

// Uncounted calls at the start of a turn: after another arm's turn, caches, a sleeping poller and
// the congestion window must recover first.
inline constexpr std::uint64_t warm_up_calls = 3;

// More samples are of no use, and test machines have little memory.
inline constexpr std::size_t samples_max = 1'000'000;

class Stopwatch {
  public:
    explicit Stopwatch(const Slice& slice) : slice_(slice), start_(Clock::now()), last_(start_) {}

    /// Time since the last lap, in ns. One reading of the clock serves both adjacent laps.
    double lap(std::uint64_t calls = 1) {
        const Clock::time_point now = Clock::now();
        const std::chrono::duration<double, std::nano> lap = now - last_;
        last_ = now;
        calls_ += calls;
        return lap.count();
    }

    /// Whether a limit had been reached at the last lap.
    bool over() const { return calls_ >= slice_.calls || last_ - start_ >= slice_.time; }
    double seconds() const { return std::chrono::duration<double>(last_ - start_).count(); }
    std::uint64_t calls() const { return calls_; }

  private:
    Slice slice_;
    Clock::time_point start_;
    Clock::time_point last_;
    std::uint64_t calls_ = 0;
};

/// The times of a turn's calls, in microseconds, after a few uncounted ones.
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
