// SPDX-License-Identifier: MIT
//
// Single operations by one thread per arm: latency, and rate or throughput with a window.
#include <algorithm>

#include "workload.hpp"

namespace perf {

namespace {

std::uint64_t largest(const std::vector<std::uint64_t>& sizes) {
    return sizes.empty() ? 0 : *std::ranges::max_element(sizes);
}

/// A sample: the microseconds until a call is complete at the other side and known to be.
class Latency final : public Workload {
  public:
    constexpr Latency(std::string_view name, std::string_view title, Op op)
        : name_(name), title_(title), op_(op) {}

    std::string_view name() const override { return name_; }
    std::string_view title() const override { return title_; }
    std::string_view unit() const override { return "us"; }
    bool lower_is_better() const override { return true; }

    std::vector<std::uint64_t> sizes(const Choice& choice) const override {
        if (op_ == Op::fetch_add)
            return {atomic_bytes};
        return sizes_within(choice, 1, op_ == Op::echo ? echo_max : UINT32_MAX);
    }
    std::uint64_t bytes(const Choice& choice) const override { return largest(sizes(choice)); }

    std::vector<Contestant> contestants(Field& field, std::uint64_t size) const override {
        std::vector<Contestant> result;
        for (const std::string& arm : field.able(op_)) {
            Transport& transport = field.transport(arm);
            const Request request{op_, static_cast<std::uint32_t>(size)};
            result.push_back({arm, arm, 1, [=, &transport](const Slice& s) {
                                  return transport.times(request, s);
                              }});
        }
        return result;
    }

  private:
    std::string_view name_;
    std::string_view title_;
    Op op_;
};

/// A slice is one sample: calls per second or, for large ones, MB (10^6 bytes) per second.
class Stream final : public Workload {
  public:
    // From this size on, time on the wire dominates.
    static constexpr std::uint32_t large = 64 << 10;

    constexpr Stream(std::string_view name, std::string_view title, Op op, bool bandwidth)
        : name_(name), title_(title), op_(op), bandwidth_(bandwidth) {}

    std::string_view name() const override { return name_; }
    std::string_view title() const override { return title_; }
    std::string_view unit() const override { return bandwidth_ ? "MB/s" : "calls/s"; }
    bool lower_is_better() const override { return false; }

    std::vector<std::uint64_t> sizes(const Choice& choice) const override {
        return bandwidth_ ? sizes_within(choice, large, UINT32_MAX)
                          : sizes_within(choice, 1, large - 1);
    }
    std::uint64_t bytes(const Choice& choice) const override {
        return largest(sizes(choice)) * *std::ranges::max_element(choice.windows);
    }

    std::vector<Contestant> contestants(Field& field, std::uint64_t size) const override {
        std::vector<Contestant> result;
        const auto arms = field.able(op_);
        for (const unsigned window : field.choice().windows) {
            for (const std::string& arm : arms) {
                Transport& transport = field.transport(arm);
                if (window > transport.max_window())
                    continue;
                const Request request{op_, static_cast<std::uint32_t>(size)};
                const double scale = bandwidth_ ? static_cast<double>(size) / 1e6 : 1;
                result.push_back({arm, label_of(arm, window), window,
                                  [=, &transport](const Slice& s) -> std::vector<double> {
                                      return {transport.rate(request, window, s) * scale};
                                  }});
            }
        }
        return result;
    }

  private:
    std::string_view name_;
    std::string_view title_;
    Op op_;
    bool bandwidth_;
};

const Latency read_latency("read-latency", "READ latency: one call, complete when it returns",
                           Op::read);
const Latency write_latency("write-latency", "WRITE latency: one call, complete when it returns",
                            Op::write);
const Latency fetch_add("fetch-add", "FETCH-ADD latency: one call, old value known when it returns",
                        Op::fetch_add);
const Latency rpc_latency("rpc-latency",
                          "Echo by a program: request and reply of this size, round trip",
                          Op::echo);
const Stream read_rate("read-rate", "READ rate, so many under way", Op::read, false);
const Stream write_rate("write-rate", "WRITE rate, so many under way", Op::write, false);
const Stream read_throughput("read-throughput", "READ throughput, so many under way", Op::read,
                             true);
const Stream write_throughput("write-throughput", "WRITE throughput, so many under way", Op::write,
                              true);

}  // namespace

std::vector<const Workload*> operation_workloads() {
    return {&read_latency, &write_latency, &fetch_add,       &rpc_latency,
            &read_rate,    &write_rate,    &read_throughput, &write_throughput};
}

}  // namespace perf
