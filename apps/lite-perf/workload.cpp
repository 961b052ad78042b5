// SPDX-License-Identifier: MIT
#include "workload.hpp"

#include <algorithm>
#include <array>
#include <barrier>
#include <exception>
#include <numeric>
#include <thread>

namespace perf {

namespace {

using Clock = std::chrono::steady_clock;

// Calls at the start of a slice that do not count: another arm has run since, and what this one
// uses (caches, a poller that went to sleep, a congestion window) has to come back first.
constexpr std::uint64_t warm_up_calls = 3;

// Of no use to anybody, and memory is small on test machines.
constexpr std::size_t samples_max = 1'000'000;

class Stopwatch {
  public:
    explicit Stopwatch(const Slice& slice) : slice_(slice), start_(Clock::now()), last_(start_) {}

    /// Time since the last lap, in ns. One reading of the clock serves two neighbouring laps.
    double lap() {
        const Clock::time_point now = Clock::now();
        const std::chrono::duration<double, std::nano> lap = now - last_;
        last_ = now;
        calls_++;
        return lap.count();
    }

    /// Of the laps so far.
    bool over() const { return calls_ >= slice_.calls || last_ - start_ >= slice_.time; }
    double seconds() const { return std::chrono::duration<double>(last_ - start_).count(); }

  private:
    Slice slice_;
    Clock::time_point start_;
    Clock::time_point last_;
    std::uint64_t calls_ = 0;
};

// Of echoes whose rate is measured: longer ones say how fast bytes are moved, and many callers' at
// once are more than Soft-RoCE's native connections bear.
constexpr std::uint32_t rate_max = 16 << 10;

std::vector<std::uint32_t> echo_sizes(std::span<const std::uint32_t> chosen, std::uint32_t most) {
    std::vector<std::uint32_t> sizes;
    std::ranges::copy_if(chosen, std::back_inserter(sizes),
                         [most](std::uint32_t size) { return size <= most; });
    return sizes;
}

/// One call after another, each a sample: the time from the request until it is complete at the
/// far side and known to be, in microseconds.
class Latency final : public Workload {
  public:
    constexpr Latency(std::string_view name, std::string_view title, Op op)
        : name_(name), title_(title), op_(op) {}

    std::string_view name() const override { return name_; }
    std::string_view title() const override { return title_; }
    std::string_view unit() const override { return "us"; }
    bool lower_is_better() const override { return true; }
    Op op() const override { return op_; }

    std::vector<std::uint32_t> sizes(std::span<const std::uint32_t> chosen) const override {
        if (op_ == Op::fetch_add)
            return {atomic_bytes};
        return op_ == Op::echo ? echo_sizes(chosen, echo_max) : Workload::sizes(chosen);
    }

    std::vector<double> run(Transport& transport, std::uint32_t size, unsigned,
                            const Slice& slice) const override {
        const Request request{op_, size, 0};
        Stopwatch warm_up({slice.time / 4, warm_up_calls});
        do {
            transport.call(request);
            warm_up.lap();
        } while (!warm_up.over());
        std::vector<double> samples;
        samples.reserve(4096);
        Stopwatch watch(slice);
        do {
            transport.call(request);
            samples.push_back(watch.lap() / 1e3);
        } while (!watch.over() && samples.size() < samples_max);
        return samples;
    }

  private:
    std::string_view name_;
    std::string_view title_;
    Op op_;
};

/// Calls with up to `window` of them under way; a slice is one sample, in MB (10^6 bytes) per
/// second.
class Throughput final : public Workload {
  public:
    constexpr Throughput(std::string_view name, std::string_view title, Op op)
        : name_(name), title_(title), op_(op) {}

    std::string_view name() const override { return name_; }
    std::string_view title() const override { return title_; }
    std::string_view unit() const override { return "MB/s"; }
    bool lower_is_better() const override { return false; }
    Op op() const override { return op_; }

    /// The large ones: those that time on the wire dominates.
    std::vector<std::uint32_t> sizes(std::span<const std::uint32_t> chosen) const override {
        std::vector<std::uint32_t> large;
        std::ranges::copy_if(chosen, std::back_inserter(large),
                             [](std::uint32_t size) { return size >= 64 << 10; });
        return large;
    }

    std::vector<unsigned> windows(unsigned chosen) const override {
        if (chosen > 1)
            return {1, chosen};
        return {1};
    }

    std::vector<double> run(Transport& transport, std::uint32_t size, unsigned window,
                            const Slice& slice) const override {
        // Requests under way have neighbouring pieces of the regions, in turn.
        unsigned piece = 0;
        auto issue = [&] {
            transport.issue({op_, size, std::uint64_t{piece} * size});
            piece = piece + 1 < window ? piece + 1 : 0;
        };
        // Filling the window is the warm-up; its completions are not counted.
        for (unsigned i = 0; i < window; i++)
            issue();
        transport.wait();
        Stopwatch watch(slice);
        std::uint64_t done = 0;
        do {
            issue();
            transport.wait();
            watch.lap();
            done++;
        } while (!watch.over());
        for (unsigned i = 1; i < window; i++)
            transport.wait();
        return {static_cast<double>(done) * size / watch.seconds() / 1e6};
    }

  private:
    std::string_view name_;
    std::string_view title_;
    Op op_;
};

/// Echoes of several threads, each of which waits for its own; a slice is one sample, in calls per
/// second.
class Rate final : public Workload {
  public:
    std::string_view name() const override { return "rpc-rate"; }
    std::string_view title() const override { return "Echoes of several callers"; }
    std::string_view unit() const override { return "calls/s"; }
    bool lower_is_better() const override { return false; }
    Op op() const override { return Op::echo; }
    bool threads() const override { return true; }

    std::vector<std::uint32_t> sizes(std::span<const std::uint32_t> chosen) const override {
        return echo_sizes(chosen, rate_max);
    }

    std::vector<unsigned> windows(unsigned) const override { return {1, 4, 16}; }

    std::vector<double> run(Transport& transport, std::uint32_t size, unsigned callers,
                            const Slice& slice) const override {
        const Request request{Op::echo, size, 0};
        Slice share = slice;
        if (slice.calls != UINT64_MAX)
            share.calls = (slice.calls + callers - 1) / callers;
        std::vector<std::exception_ptr> failures(callers);
        std::vector<std::uint64_t> calls(callers);
        std::vector<double> seconds(callers);
        std::barrier ready(callers);
        auto work = [&](unsigned i) {
            try {
                Transport& mine = transport.caller(i);
                for (std::uint64_t n = 0; n < warm_up_calls; n++)
                    mine.call(request);
                ready.arrive_and_wait();
                Stopwatch watch(share);
                std::uint64_t done = 0;
                do {
                    mine.call(request);
                    watch.lap();
                    done++;
                } while (!watch.over());
                calls[i] = done;
                seconds[i] = watch.seconds();
            } catch (...) {
                failures[i] = std::current_exception();
                ready.arrive_and_drop();
            }
        };
        // Connections are made by one thread.
        transport.caller(callers - 1);
        {
            std::vector<std::jthread> others;
            for (unsigned i = 1; i < callers; i++)
                others.emplace_back(work, i);
            work(0);
        }
        for (const auto& failure : failures) {
            if (failure)
                std::rethrow_exception(failure);
        }
        // They begin together, and it is over when the last one has ended.
        return {static_cast<double>(std::accumulate(calls.begin(), calls.end(), std::uint64_t{0})) /
                *std::ranges::max_element(seconds)};
    }
};

const Latency read_latency("read-latency", "READ latency: one call, complete when it returns",
                           Op::read);
const Latency write_latency("write-latency", "WRITE latency: one call, complete when it returns",
                            Op::write);
const Latency fetch_add("fetch-add", "FETCH-ADD latency: one call, old value known when it returns",
                        Op::fetch_add);
const Latency rpc_latency("rpc-latency", "Echo by a program: request and reply of this size",
                          Op::echo);
const Rate rpc_rate;
const Throughput read_throughput("read-throughput", "READ throughput", Op::read);
const Throughput write_throughput("write-throughput", "WRITE throughput", Op::write);

constexpr std::array<const Workload*, 7> all{&read_latency,    &write_latency,    &fetch_add,
                                             &read_throughput, &write_throughput, &rpc_latency,
                                             &rpc_rate};

}  // namespace

std::span<const Workload* const> workloads() { return all; }

}  // namespace perf
