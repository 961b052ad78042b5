// SPDX-License-Identifier: MIT
//
// Several callers at once: threads of one process, and processes, each with its own connection and
// one call in flight.
#include <algorithm>
#include <barrier>
#include <exception>
#include <numeric>
#include <thread>

#include "workload.hpp"

namespace perf {

namespace {

// Larger requests measure bandwidth, and with many callers overload Soft-RoCE's native connections.
constexpr std::uint32_t rate_max = 16 << 10;

double rate_of_threads(std::span<Transport* const> callers, const Request& request,
                       const Slice& slice) {
    const std::size_t n = callers.size();
    Slice share = slice;
    if (slice.calls != UINT64_MAX)
        share.calls = (slice.calls + n - 1) / n;
    for (Transport* caller : callers)
        caller->set_crowded(n > std::thread::hardware_concurrency());
    std::vector<std::exception_ptr> failures(n);
    std::vector<std::uint64_t> calls(n);
    std::vector<double> seconds(n);
    std::barrier ready(static_cast<std::ptrdiff_t>(n));
    auto work = [&](std::size_t i) {
        try {
            for (std::uint64_t k = 0; k < warm_up_calls; k++)
                callers[i]->call(request);
        } catch (...) {
            failures[i] = std::current_exception();
            ready.arrive_and_drop();
            return;
        }
        ready.arrive_and_wait();
        try {
            Stopwatch watch(share);
            do {
                callers[i]->call(request);
                watch.lap();
            } while (!watch.over());
            calls[i] = watch.calls();
            seconds[i] = watch.seconds();
        } catch (...) {
            failures[i] = std::current_exception();
        }
    };
    {
        std::vector<std::jthread> others;
        for (std::size_t i = 1; i < n; i++)
            others.emplace_back(work, i);
        work(0);
    }
    // Other workloads use the first caller alone.
    callers.front()->set_crowded(false);
    for (const auto& failure : failures) {
        if (failure)
            std::rethrow_exception(failure);
    }
    // All callers start together, and the slice ends with the last of them.
    return static_cast<double>(std::accumulate(calls.begin(), calls.end(), std::uint64_t{0})) /
           *std::ranges::max_element(seconds);
}

class Crowd : public Workload {
  public:
    constexpr Crowd(std::string_view name, std::string_view title, Op op)
        : name_(name), title_(title), op_(op) {}

    std::string_view name() const override { return name_; }
    std::string_view title() const override { return title_; }
    std::string_view unit() const override { return "calls/s"; }
    bool lower_is_better() const override { return false; }
    std::vector<std::uint64_t> sizes(const Choice& choice) const override {
        return sizes_within(choice, 1, rate_max);
    }
    std::uint64_t bytes(const Choice&) const override { return rate_max; }

  protected:
    Op op() const { return op_; }

  private:
    std::string_view name_;
    std::string_view title_;
    Op op_;
};

class Threads final : public Crowd {
  public:
    using Crowd::Crowd;

    std::vector<Contestant> contestants(Field& field, std::uint64_t size) const override {
        std::vector<Contestant> result;
        const auto arms = field.able(op());
        for (const unsigned count : field.choice().threads) {
            for (const std::string& arm : arms) {
                if (arm_of(arm).in_kernel)
                    continue;
                std::vector<Transport*> callers;
                for (unsigned i = 0; i < count; i++)
                    callers.push_back(&field.caller(arm, i));
                const Request request{op(), static_cast<std::uint32_t>(size)};
                result.push_back(
                    {arm, label_of(arm, count), count, [=](const Slice& s) -> std::vector<double> {
                         return {rate_of_threads(callers, request, s)};
                     }});
            }
        }
        return result;
    }
};

class Processes final : public Crowd {
  public:
    using Crowd::Crowd;

    bool processes() const override { return true; }

    std::vector<Contestant> contestants(Field& field, std::uint64_t size) const override {
        std::vector<Contestant> result;
        for (const unsigned count : field.choice().processes) {
            for (const std::string& arm : field.arms()) {
                const Arm& kind = arm_of(arm);
                if (kind.in_kernel || !(op() == Op::echo ? kind.echoes : kind.one_sided))
                    continue;
                Crew& crew = field.crew(arm);
                crew.hire(count);
                Contestant contestant{
                    arm, label_of(arm, count), count,
                    [=, &crew, this](const Slice& s) -> std::vector<double> {
                        return {crew.rate(count, op(), static_cast<std::uint32_t>(size), s)};
                    }};
                const auto made = static_cast<double>(crew.queue_pairs_made());
                contestant.facts = [=] {
                    return std::map<std::string, double>{{"queue_pairs_made", made}};
                };
                result.push_back(std::move(contestant));
            }
        }
        return result;
    }
};

const Threads read_threads("read-threads", "READs of several threads", Op::read);
const Threads rpc_rate("rpc-rate", "Echoes of several threads", Op::echo);
const Processes read_processes("read-processes", "READs of several processes", Op::read);

}  // namespace

std::vector<const Workload*> crowd_workloads() {
    return {&read_threads, &rpc_rate, &read_processes};
}

}  // namespace perf
