// SPDX-License-Identifier: MIT
//
// Operations of a high class beside a stream of large writes of the default class to the same
// machine, by one or more processes. Small ones: how long they take, and what the stream loses.
// Large ones: their share of the traffic. LITE schedules them in one mode after another; native
// verbs have one queue pair for all, or one each; TCP has one connection each, with and without
// fair queueing.
#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>
#include <thread>
#include <utility>

#include "arms/tcp/tcp_queue.hpp"
#include "qos_mode.hpp"
#include "report/stats.hpp"
#include "workload.hpp"
#include "workloads/rivals.hpp"

namespace perf {

namespace {

constexpr std::uint32_t small_max = 16 << 10;

double mb(const Choice& choice) { return static_cast<double>(choice.stream_bytes) / 1e6; }

Bulk large(const Choice& choice, unsigned depth) {
    return {{Op::write, static_cast<std::uint32_t>(choice.stream_bytes)}, depth};
}

double median(const std::vector<double>& values) { return summarize({values}).p50; }

class CrewStreams final : public Streams {
  public:
    CrewStreams(Crew& crew, unsigned count, std::uint64_t bytes)
        : crew_(crew), count_(count), length_(static_cast<std::uint32_t>(bytes)) {
        crew_.hire(count_);
    }

    void start() override { crew_.start_streams(count_, length_); }
    Rates stop(const Interval& before, const Interval& after) override {
        return crew_.stop_streams(count_, before, after);
    }

  private:
    Crew& crew_;
    unsigned count_;
    std::uint32_t length_;
};

class OwnStream final : public Streams {
  public:
    OwnStream(std::string_view arm, Target target, const Choice& choice, bool urgent) {
        target.bytes = choice.stream_bytes;
        target.window = choice.streams;
        target.patient = true;
        unsigned depth = 1;
        for (unsigned left = choice.streams; left; left -= depth) {
            owned_.push_back(make_transport(arm, target));
            Transport& transport = *owned_.back();
            verify(transport);
            // One more thread makes the urgent calls.
            transport.set_crowded(choice.streams + 1 > std::thread::hardware_concurrency());
            if (urgent)
                transport.set_urgent();
            // A blocking arm needs a transport and a thread for each operation in flight.
            depth = std::min(left, transport.max_window());
        }
        std::vector<Transport*> transports;
        for (const auto& transport : owned_)
            transports.push_back(transport.get());
        threads_.emplace(transports, large(choice, depth));
    }

    void start() override { threads_->start(); }
    Rates stop(const Interval& before, const Interval& after) override {
        return threads_->stop(before, after);
    }

  private:
    std::vector<std::unique_ptr<Transport>> owned_;
    std::optional<ThreadStreams> threads_;  // last: uses the transports
};

std::unique_ptr<Transport> make_urgent(std::string_view arm, Target target, std::uint64_t bytes,
                                       unsigned window, const Choice& choice) {
    target.bytes = bytes;
    target.window = window;
    target.patient = true;
    auto transport = make_transport(arm, target);
    verify(*transport);
    // The stream's operations count as callers, too: they keep a software device busy.
    const unsigned rivals = std::max(choice.streams, *std::ranges::max_element(choice.processes));
    transport->set_crowded(rivals + 1 > std::thread::hardware_concurrency());
    transport->set_urgent();
    return transport;
}

/// What makes urgent calls, and the stream beside them.
struct Entrant {
    std::string arm;  ///< of the urgent calls
    std::string label;
    std::shared_ptr<Transport> urgent;
    std::string streaming;           ///< arm of the stream; empty: it uses the urgent transport
    std::shared_ptr<Streams> own{};  ///< stream made by this process
    std::function<void()> prepare = [] {};
};

class Qos : public Workload {
  public:
    constexpr Qos(std::string_view name, std::string_view title) : name_(name), title_(title) {}

    std::string_view name() const override { return name_; }
    std::string_view title() const override { return title_; }
    bool on_request() const override { return true; }
    bool streaming_processes() const override { return true; }

  private:
    std::string_view name_;
    std::string_view title_;
};

class Urgent final : public Qos {
  public:
    constexpr Urgent(std::string_view name, std::string_view title, Op op)
        : Qos(name, title), op_(op) {}

    std::string_view unit() const override { return "us"; }
    bool lower_is_better() const override { return true; }
    std::vector<std::uint64_t> sizes(const Choice& choice) const override {
        return sizes_within(choice, 1, small_max);
    }

    std::vector<Contestant> contestants(Field& field, std::uint64_t size) const override {
        std::vector<Contestant> result;
        for (const std::string& arm : field.arms()) {
            for (const Entrant& entrant : entrants(field, arm))
                add(result, field, entrant, static_cast<std::uint32_t>(size));
        }
        return result;
    }

  private:
    std::vector<Entrant> entrants(const Field& field, const std::string& arm) const {
        if (arm == "lite")
            return of_lite(field);
        if (arm == "tcp")
            return of_tcp(field);
        if (arm == "verbs" && op_ != Op::echo)
            return {in_one(field, arm), apart(field, arm, "verbs", "verbs-own")};
        if (arm_of(arm).echoes && !arm_of(arm).one_sided && arm != "grpc" && op_ == Op::echo)
            return {apart(field, arm, "verbs", arm)};
        return {};
    }

    static Entrant in_one(const Field& field, const std::string& arm) {
        const Choice& choice = field.choice();
        return {arm, arm,
                make_urgent(arm, field.target(), choice.stream_bytes + small_max,
                            choice.streams + 1, choice),
                ""};
    }

    static Entrant apart(const Field& field, const std::string& arm, const std::string& streaming,
                         const std::string& label) {
        const Choice& choice = field.choice();
        return {arm, label, make_urgent(arm, field.target(), small_max, 1, choice), streaming,
                std::make_shared<OwnStream>(streaming, field.target(), choice, false)};
    }

    std::vector<Entrant> of_lite(const Field& field) const {
        std::vector<Entrant> result;
        Entrant entrant = apart(field, "lite", "lite", "lite");
        if (!entrant.urgent->supports(op_))
            return {};
        const auto mode = std::make_shared<QosMode>(field.target().lite_index);
        for (const std::string& name : field.choice().modes) {
            entrant.label = fmt::format("lite {}", name);
            entrant.prepare = [=] { mode->set(name); };
            result.push_back(entrant);
        }
        return result;
    }

    std::vector<Entrant> of_tcp(const Field& field) const {
        Entrant entrant = apart(field, "tcp", "tcp", "tcp");
        const auto queue = std::make_shared<TcpQueue>(field.target());
        if (!queue->set_fair(true)) {
            fmt::print(stderr,
                       "lite-perf: {} is without tcp-fq: tc cannot give {} that discipline\n",
                       name(), queue->interface());
            return {entrant};
        }
        const auto set = [=](bool fair) {
            if (!queue->set_fair(fair))
                throw std::runtime_error(fmt::format(
                    "the queueing discipline of {} cannot be changed", queue->interface()));
        };
        entrant.prepare = [=] { set(false); };
        Entrant fair = entrant;
        fair.label = "tcp-fq";
        fair.prepare = [=] { set(true); };
        return {entrant, fair};
    }

    /// Contestants beside a stream of each number of processes, and one without it.
    void add(std::vector<Contestant>& to, Field& field, const Entrant& entrant,
             std::uint32_t size) const {
        const Choice& choice = field.choice();
        // In a shared transport, the stream uses the memory in front of this place.
        const std::uint64_t place = entrant.streaming.empty() ? choice.stream_bytes : 0;
        const Request small{op_, size, place, place};
        std::string first;
        for (const unsigned count : choice.processes) {
            // Processes cannot share a queue pair.
            if (count > 1 && entrant.streaming.empty())
                continue;
            std::function<Contest(const Slice&)> contest;
            if (entrant.streaming.empty()) {
                contest = [=, bulk = large(choice, choice.streams)](const Slice& slice) {
                    return contest_in_one(*entrant.urgent, small, bulk, slice);
                };
            } else {
                auto streams = entrant.own;
                if (count > 1)
                    streams = std::make_shared<CrewStreams>(field.streamers(entrant.streaming),
                                                            count, choice.stream_bytes);
                contest = [=](const Slice& slice) {
                    return contest_beside(*entrant.urgent, small, *streams, slice);
                };
            }
            to.push_back(beside(entrant, count, contest, mb(choice)));
            if (first.empty())
                first = to.back().label;
        }
        if (first.empty())
            return;
        Contestant idle{entrant.arm, entrant.label + " idle", 0, [=](const Slice& slice) {
                            entrant.prepare();
                            return entrant.urgent->times(small, slice);
                        }};
        idle.against = first;
        to.push_back(std::move(idle));
    }

    static Contestant beside(const Entrant& entrant, unsigned count,
                             const std::function<Contest(const Slice&)>& contest, double size) {
        struct Tally {
            std::vector<double> alone;
            std::vector<double> beside;
        };
        const auto tally = std::make_shared<Tally>();
        Contestant result{entrant.arm, label_of(entrant.label, count), count,
                          [=, prepare = entrant.prepare](const Slice& slice) {
                              prepare();
                              Contest seen = contest(slice);
                              tally->alone.push_back(seen.alone);
                              tally->beside.push_back(seen.beside);
                              return std::move(seen.times);
                          }};
        result.facts = [=] {
            const double alone = median(tally->alone) * size;
            const double beside = median(tally->beside) * size;
            return std::map<std::string, double>{
                {"stream_alone", alone}, {"stream_beside", beside}, {"kept", beside / alone}};
        };
        return result;
    }

    Op op_;
};

class Share final : public Qos {
  public:
    using Qos::Qos;

    std::string_view unit() const override { return "share"; }
    bool lower_is_better() const override { return false; }
    std::vector<std::uint64_t> sizes(const Choice& choice) const override {
        return {choice.stream_bytes};
    }

    std::vector<Contestant> contestants(Field& field, std::uint64_t) const override {
        // Other arms have no classes.
        if (!std::ranges::count(field.arms(), "lite"))
            return {};
        const Target& target = field.target();
        const Choice& choice = field.choice();
        const auto mode = std::make_shared<QosMode>(target.lite_index);
        const auto high = std::make_shared<OwnStream>("lite", target, choice, true);
        std::vector<Contestant> result;
        for (const unsigned count : choice.processes) {
            std::shared_ptr<Streams> low;
            if (count == 1)
                low = std::make_shared<OwnStream>("lite", target, choice, false);
            else
                low = std::make_shared<CrewStreams>(field.streamers("lite"), count,
                                                    choice.stream_bytes);
            for (const std::string& name : choice.modes)
                result.push_back(divided(fmt::format("lite {}", name), count, high, low, mb(choice),
                                         [=] { mode->set(name); }));
        }
        return result;
    }

  private:
    static Contestant divided(const std::string& label, unsigned count,
                              const std::shared_ptr<Streams>& high,
                              const std::shared_ptr<Streams>& low, double size,
                              const std::function<void()>& prepare) {
        struct Tally {
            std::vector<double> alone;
            std::vector<double> high;
            std::vector<double> low;
        };
        const auto tally = std::make_shared<Tally>();
        Contestant result{"lite", label_of(label, count), count,
                          [=](const Slice& slice) -> std::vector<double> {
                              prepare();
                              const Division seen = divide(*high, *low, slice);
                              tally->alone.push_back(seen.alone);
                              tally->high.push_back(seen.first);
                              tally->low.push_back(seen.second);
                              return {seen.first / (seen.first + seen.second)};
                          }};
        result.facts = [=] {
            return std::map<std::string, double>{{"high_alone", median(tally->alone) * size},
                                                 {"high", median(tally->high) * size},
                                                 {"low", median(tally->low) * size}};
        };
        return result;
    }
};

const Urgent qos_read("qos-read", "Urgent READ beside a stream of large WRITEs, and idle",
                      Op::read);
const Urgent qos_write("qos-write", "Urgent WRITE beside a stream of large WRITEs, and idle",
                       Op::write);
const Urgent qos_rpc("qos-rpc", "Urgent echo beside a stream of large WRITEs, and idle", Op::echo);
const Share qos_share("qos-share",
                      "Share of large WRITEs of a high class beside those of a low one");

}  // namespace

std::vector<const Workload*> qos_workloads() {
    return {&qos_read, &qos_write, &qos_rpc, &qos_share};
}

}  // namespace perf
