// SPDX-License-Identifier: MIT
// Fixtures for the tests of core/sched.c and for sched-sim: a scheduler that a test drives by hand,
// and a simulated link behind a scheduler, with sources that load it.
#pragma once

extern "C" {
#include "core/sched.h"
}

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <queue>
#include <random>
#include <utility>
#include <vector>

namespace lite_test {

constexpr std::uint64_t kUs = 1000;
constexpr std::uint64_t kMs = 1000 * kUs;
constexpr std::uint64_t kSecond = 1000 * kMs;
constexpr std::uint32_t kSlice = 64 << 10;
constexpr std::uint32_t kQuantum = (64 + 8) << 10;

// The module's values: 64 KB slices, and each operation costs as much as 8 KB.
inline lite_sched_conf sched_conf(lite_sched_mode mode = LITE_SCHED_FAIR) {
    return {.mode = mode,
            .slice = 64 << 10,
            .op_cost = 8 << 10,
            .window_max = 2 << 20,
            .age_ns = 10 * kMs};
}

// A scheduler with the test as its posters and its device.
class Sched {
  public:
    explicit Sched(lite_sched_mode mode = LITE_SCHED_FAIR) {
        const auto conf = sched_conf(mode);
        lite_sched_init(&s, &conf);
    }

    lite_sched_tenant& tenant(std::uint32_t weight = 100) {
        tenants_.emplace_back();
        lite_sched_tenant_init(&tenants_.back(), weight);
        return tenants_.back();
    }

    lite_sched_item& push(lite_sched_tenant& tenant, std::uint32_t prio,
                          std::uint32_t bytes = kSlice) {
        items_.emplace_back();
        lite_sched_push(&s, &items_.back(), &tenant, prio, bytes, 1, now);
        return items_.back();
    }

    // Fill the window with operations that pass by.
    void fill() {
        while (lite_sched_try(&s, kQuantum))
            passed_++;
    }

    void leave(const lite_sched_flight& flight) {
        if (lite_sched_leave(&s, &flight))
            lite_sched_done(&s, &flight, now);
    }

    // Complete the operations that have passed by.
    void empty() {
        lite_sched_flight flight{};
        flight.cost = kQuantum;
        for (; passed_; passed_--)
            leave(flight);
    }

    lite_sched_item* pop() { return lite_sched_pop(&s, now); }

    // Take the next item, and complete it at once.
    lite_sched_item* serve() {
        auto* item = pop();
        if (item)
            leave(item->flight);
        return item;
    }

    lite_sched s{};
    std::uint64_t now = kSecond;

  private:
    std::deque<lite_sched_tenant> tenants_;
    std::deque<lite_sched_item> items_;
    int passed_ = 0;
};

// A device that serves its queue pairs in turn, one item each, and completes each item after a
// delay.
struct LinkModel {
    double bytes_per_ns = 1.25;  // 10 Gb/s
    double op_bytes = 8 << 10;   // fixed cost of an operation, as bytes
    std::uint64_t delay = 10 * kUs;
    std::uint64_t jitter = 0;  // most extra delay; completions stay in order
    std::uint32_t queue_pairs = 1;
};

class SchedSim {
  public:
    struct Source {
        lite_sched_tenant* tenant;
        std::uint32_t prio = LITE_SCHED_CLASS_DEFAULT;
        std::uint32_t bytes = 64 << 10;
        std::uint32_t depth = 1;  // operations under way
        std::uint64_t pause = 0;  // mean pause before the next operation; exponential
        std::uint64_t from = 0;   // time of the first operation
        // Of completed operations:
        std::uint64_t done_bytes = 0;
        std::uint64_t done_ops = 0;
        bool record = false;
        std::vector<std::uint64_t> took;  // ns, if @record
    };

    SchedSim(const lite_sched_conf& conf, const LinkModel& model, std::uint64_t seed = 1)
        : model_(model), random_(seed), pairs_(model.queue_pairs) {
        lite_sched_init(&sched, &conf);
    }

    lite_sched_tenant* tenant(std::uint32_t weight) {
        tenants_.push_back(std::make_unique<lite_sched_tenant>());
        lite_sched_tenant_init(tenants_.back().get(), weight);
        return tenants_.back().get();
    }

    // Valid until the end of the simulation.
    Source& add(const Source& source) {
        sources_.push_back(std::make_unique<Source>(source));
        for (std::uint32_t i = 0; i < source.depth; i++) {
            ops_.push_back(std::make_unique<Op>());
            ops_.back()->source = sources_.back().get();
            ops_.back()->pair = static_cast<std::uint32_t>(ops_.size());
            at(source.from, [this, op = ops_.back().get()] { submit(*op); });
        }
        return *sources_.back();
    }

    void run(std::uint64_t until) {
        while (!events_.empty() && events_.top().when <= until) {
            auto event = events_.top();
            events_.pop();
            now = event.when;
            event.run();
        }
        now = until;
    }

    // Changes take effect while the link runs.
    LinkModel& model() { return model_; }
    // Bytes that the link has sent, fixed costs included.
    double sent() const { return sent_; }

    lite_sched sched{};
    std::uint64_t now = 0;

  private:
    struct Op {
        Source* source = nullptr;
        std::uint32_t pair = 0;
        lite_sched_item item{};
        lite_sched_flight flight{};
        std::uint64_t submitted = 0;
    };
    struct Event {
        std::uint64_t when;
        std::uint64_t number;  // events of the same time run in this order
        std::function<void()> run;
        bool operator<(const Event& other) const {
            return std::pair(when, number) > std::pair(other.when, other.number);
        }
    };

    void at(std::uint64_t when, std::function<void()> run) {
        events_.push({when, number_++, std::move(run)});
    }

    void submit(Op& op) {
        const auto cost = lite_sched_cost(&sched, op.source->bytes, 1);
        op.submitted = now;
        if (lite_sched_try(&sched, cost)) {
            op.flight = {};
            op.flight.cost = cost;
            post(op);
            return;
        }
        lite_sched_push(&sched, &op.item, op.source->tenant, op.source->prio, op.source->bytes, 1,
                        now);
        pop();
    }

    void pop() {
        while (auto* item = lite_sched_pop(&sched, now)) {
            auto& op = *reinterpret_cast<Op*>(reinterpret_cast<char*>(item) - offsetof(Op, item));
            op.flight = item->flight;
            post(op);
        }
    }

    void post(Op& op) {
        std::uint32_t first = 0;
        const auto n = lite_sched_qps(sched.mode, op.source->prio, model_.queue_pairs, &first);
        pairs_[first + op.pair % n].push_back(&op);
        if (!busy_)
            serve();
    }

    // Send the first item of the next queue pair.
    void serve() {
        for (std::uint32_t i = 0; i < pairs_.size(); i++) {
            turn_ = (turn_ + 1) % static_cast<std::uint32_t>(pairs_.size());
            if (pairs_[turn_].empty())
                continue;
            auto& op = *pairs_[turn_].front();
            pairs_[turn_].pop_front();
            const double cost = op.source->bytes + model_.op_bytes;
            const auto sent = now + static_cast<std::uint64_t>(cost / model_.bytes_per_ns);
            auto done = sent + model_.delay;
            if (model_.jitter)
                done += random_() % model_.jitter;
            done = std::max(done, last_done_);
            last_done_ = done;
            busy_ = true;
            at(sent, [this, cost] {
                busy_ = false;
                sent_ += cost;
                serve();
            });
            at(done, [this, &op] { complete(op); });
            return;
        }
    }

    void complete(Op& op) {
        auto& source = *op.source;
        source.done_bytes += source.bytes;
        source.done_ops++;
        if (source.record)
            source.took.push_back(now - op.submitted);
        if (lite_sched_leave(&sched, &op.flight)) {
            lite_sched_done(&sched, &op.flight, now);
            pop();
        }
        std::uint64_t pause = 0;
        if (source.pause) {
            std::exponential_distribution<double> gap(1.0 / static_cast<double>(source.pause));
            pause = static_cast<std::uint64_t>(gap(random_));
        }
        at(now + pause, [this, &op] { submit(op); });
    }

    LinkModel model_;
    std::mt19937_64 random_;
    std::vector<std::deque<Op*>> pairs_;
    std::vector<std::unique_ptr<lite_sched_tenant>> tenants_;
    std::vector<std::unique_ptr<Source>> sources_;
    std::vector<std::unique_ptr<Op>> ops_;
    std::priority_queue<Event> events_;
    std::uint64_t number_ = 0;
    std::uint64_t last_done_ = 0;
    std::uint32_t turn_ = 0;
    double sent_ = 0;
    bool busy_ = false;
};

inline std::uint64_t percentile(std::vector<std::uint64_t> values, double part) {
    if (values.empty())
        return 0;
    std::sort(values.begin(), values.end());
    return values[static_cast<std::size_t>(part * static_cast<double>(values.size() - 1))];
}

// Jain's fairness index. 1: equal shares; 1 / n: one share is everything.
inline double jain(const std::vector<double>& shares) {
    double sum = 0;
    double squares = 0;
    for (const auto share : shares) {
        sum += share;
        squares += share * share;
    }
    return sum * sum / (static_cast<double>(shares.size()) * squares);
}

}  // namespace lite_test
