// SPDX-License-Identifier: MIT
// Invariants of the scheduler: a million random steps, compared with a model of the rules that has
// no virtual time. Documentation/scheduling.rst has the bounds.
#include "../support.hpp"
#include "sched_link.hpp"

#include <algorithm>
#include <cstdio>
#include <deque>
#include <map>
#include <random>
#include <vector>

using namespace lite_test;

namespace {

// Catch2's macros would be too slow: there are millions of these checks.
#define MUST(...)                                                                         \
    do {                                                                                  \
        if (!(__VA_ARGS__))                                                               \
            FAIL(#__VA_ARGS__ << ", step " << step_ << ", line " << __LINE__ << ", seed " \
                              << seed());                                                 \
    } while (false)

constexpr std::size_t kTenants = 12;
constexpr std::size_t kPosters = 80;

class Property {
  public:
    Property() : random_(seed()) {
        auto conf = sched_conf();
        conf.age_ns = age_;
        conf.window_max = window_max_;
        lite_sched_init(&s_, &conf);
        // Virtual time wraps soon after the start.
        for (auto& of : s_.classes)
            of.vtime = 0 - (std::uint64_t{1} << 44);
        for (auto& tenant : tenants_)
            lite_sched_tenant_init(&tenant, random_weight());
        for (auto& poster : posters_)
            free_.push_back(&poster);
    }

    void run(std::uint64_t steps) {
        for (step_ = 0; step_ < steps; step_++) {
            if (step_ % 5000 == 0)
                new_regime();
            const auto what = random_() % 100;
            if (what < submits_ && !free_.empty())
                submit();
            else if (what < 96)
                complete();
            else if (what < 98)
                cancel();
            else
                now_ += random_() % (2 * kUs);
            check();
        }
        drain();
    }

    // As fractions of the bounds.
    double worst_gap = 0;
    double worst_wait = 0;
    std::uint64_t passed = 0;
    std::uint64_t waited = 0;
    std::uint64_t inversions = 0;

  private:
    struct Poster {
        lite_sched_item item{};
        lite_sched_flight flight{};
        std::size_t tenant = 0;
        std::uint32_t prio = 0;
        std::uint64_t served_before = 0;  // cost served of its class when it began to wait
        std::uint64_t ahead = 0;          // cost ahead in its queue, its own included
        bool bounded = true;              // no weight has changed while it waited
    };
    struct Class {
        std::uint64_t since = 0;  // time of its last quantum, or when it began to wait
        std::uint64_t spent = 0;
        std::uint64_t served = 0;
        std::uint64_t risen_at = 0;  // completed cost when it reached the top, + 1; 0: not there
        std::size_t waiting = 0;
    };

    std::uint32_t random_weight() {
        return static_cast<std::uint32_t>(random_() % 4 ? 50 + random_() % 200
                                                        : 1 + random_() % LITE_SCHED_WEIGHT_MAX);
    }

    // Changes the load, the classes and sizes in use, and the speed of the device.
    void new_regime() {
        submits_ = 30 + random_() % 60;
        classes_ = random_() % 3 ? 8 : 1 + random_() % 8;
        high_ = random_() % 2;
        sizes_ = random_() % 3;
        ns_per_kb_ = 50 + random_() % 2000;
        // Weights also change while their tenants wait.
        for (std::size_t i = 0; i < kTenants; i++) {
            if (random_() % 4 == 0)
                lite_sched_set_weight(&s_, &tenants_[i], random_weight());
        }
        for (auto& poster : posters_)
            poster.bounded = false;
        // The bound does not hold while costs from before the change are still unsettled.
        unsettled_ = step_ + 2500;
    }

    std::uint32_t random_bytes() {
        switch (sizes_ == 2 ? random_() % 2 : sizes_) {
            case 0:
                return static_cast<std::uint32_t>(random_() % 256);
            default:
                return static_cast<std::uint32_t>(random_() % ((64 << 10) + 1));
        }
    }

    void submit() {
        auto& poster = *free_.back();
        const auto bytes = random_bytes();
        const auto cost = lite_sched_cost(&s_, bytes, 1);
        MUST(cost >= (8 << 10) && cost <= kQuantum);
        free_.pop_back();
        if (lite_sched_try(&s_, cost)) {
            // Only if no item waits, and the window has room.
            MUST(waiting_ == 0);
            MUST(in_flight_ + cost <= static_cast<std::uint64_t>(s_.limit));
            poster.flight = {};
            poster.flight.cost = cost;
            passed++;
            launch(poster);
            return;
        }
        poster.tenant = random_() % kTenants;
        // With one class saturated, all classes age.
        poster.prio = static_cast<std::uint32_t>(high_ && random_() % 2 ? 0 : random_() % classes_);
        auto& tenant = tenants_[poster.tenant];
        auto& queue = queues_[{poster.prio, poster.tenant}];
        auto& of = of_[poster.prio];
        if (!of.waiting++) {
            of.since = now_;
            of.spent = 0;
            of.risen_at = 0;
        }
        poster.served_before = of.served;
        poster.ahead = cost;
        for (const auto* other : queue)
            poster.ahead += other->item.flight.cost;
        poster.bounded = step_ >= unsettled_;
        queue.push_back(&poster);
        waiting_++;
        waited++;
        lite_sched_push(&s_, &poster.item, &tenant, poster.prio, bytes, 1, now_);
        pop();
    }

    void pop() {
        while (auto* item = lite_sched_pop(&s_, now_))
            granted(
                *reinterpret_cast<Poster*>(reinterpret_cast<char*>(item) - offsetof(Poster, item)));
        // Work conserving: items wait only while the window has no room for a quantum.
        if (waiting_)
            MUST(in_flight_ > 0 && in_flight_ + kQuantum > static_cast<std::uint64_t>(s_.limit));
    }

    std::uint64_t level(std::uint32_t prio) const {
        return prio - std::min<std::uint64_t>(prio, (now_ - of_[prio].since) / age_);
    }

    void granted(Poster& poster) {
        const auto prio = poster.prio;
        const auto cost = poster.item.flight.cost;
        auto& queue = queues_[{prio, poster.tenant}];
        auto& of = of_[prio];
        // First in, first out.
        MUST(!queue.empty() && queue.front() == &poster);
        queue.pop_front();
        // No inversion: no other waiting class is before this one.
        for (std::uint32_t other = 0; other < LITE_SCHED_CLASSES; other++) {
            if (other == prio || !of_[other].waiting)
                continue;
            MUST(level(prio) <= level(other));
            MUST(prio > other || level(prio) < level(other));
            inversions += other < prio;
        }
        // The window, and the reserve of high classes.
        const auto reserve = level(prio) < LITE_SCHED_LOW ? kQuantum : 0;
        MUST(in_flight_ + cost <= static_cast<std::uint64_t>(s_.limit) + reserve);
        // No starvation of a tenant within its class.
        if (poster.bounded) {
            double weights = 0;
            for (const auto& tenant : tenants_)
                weights += tenant.weight;
            const double allowed = weights / tenants_[poster.tenant].weight *
                                       static_cast<double>(poster.ahead + 2 * kQuantum) +
                                   2.0 * kTenants * kQuantum;
            const auto took = static_cast<double>(of.served + cost - poster.served_before);
            worst_wait = std::max(worst_wait, took / allowed);
            MUST(took <= allowed);
        }
        // check() looks for starvation of a class.
        of.served += cost;
        of.spent += cost;
        of.waiting--;
        waiting_--;
        if (of.spent >= kQuantum) {
            of.spent = 0;
            of.since = now_;
            of.risen_at = 0;
        }
        MUST(poster.item.flight.tenant == &tenants_[poster.tenant]);
        MUST(poster.item.flight.posted == now_);
        poster.flight = poster.item.flight;
        launch(poster);
    }

    void launch(Poster& poster) {
        busy_until_ = std::max(busy_until_, now_) + poster.flight.cost * ns_per_kb_ / 1024;
        flying_.push_back({busy_until_ + random_() % (10 * kUs), &poster});
        in_flight_ += poster.flight.cost;
    }

    void complete() {
        if (flying_.empty())
            return;
        auto [when, poster] = flying_.front();
        flying_.pop_front();
        now_ = std::max(now_, when);
        in_flight_ -= poster->flight.cost;
        completed_ += poster->flight.cost;
        free_.push_back(poster);
        const bool call = lite_sched_leave(&s_, &poster->flight);
        MUST(call || waiting_ == 0);
        if (call) {
            lite_sched_done(&s_, &poster->flight, now_);
            pop();
        }
    }

    void cancel() {
        std::vector<Poster*> all;
        for (const auto& [key, queue] : queues_)
            all.insert(all.end(), queue.begin(), queue.end());
        if (all.empty())
            return;
        auto* poster = all[random_() % all.size()];
        auto& queue = queues_[{poster->prio, poster->tenant}];
        queue.erase(std::find(queue.begin(), queue.end(), poster));
        lite_sched_remove(&s_, &poster->item);
        of_[poster->prio].waiting--;
        waiting_--;
        free_.push_back(poster);
        pop();
    }

    void check() {
        MUST(s_.queued == waiting_);
        MUST(s_.limit >= kQuantum && s_.limit <= std::max<std::int64_t>(window_max_, kQuantum));
        const auto gate = waiting_ ? LITE_SCHED_GATE : 0;
        MUST(atomic64_read(&s_.room) == s_.limit - static_cast<std::int64_t>(in_flight_) - gate);
        for (std::uint32_t prio = 0; prio < LITE_SCHED_CLASSES; prio++) {
            auto& of = of_[prio];
            MUST(s_.classes[prio].stats.queued == of.waiting);
            if (!of.waiting || level(prio)) {
                of.risen_at = 0;
                continue;
            }
            // A class at the top gets a quantum before this much cost has completed.
            if (!of.risen_at)
                of.risen_at = completed_ + 1;
            const auto allowed = window_max_ + 17.0 * kQuantum;
            const auto took = static_cast<double>(completed_ + 1 - of.risen_at);
            worst_gap = std::max(worst_gap, took / allowed);
            MUST(took <= allowed);
        }
    }

    void drain() {
        while (!flying_.empty())
            complete();
        MUST(waiting_ == 0);
        check();
        MUST(atomic64_read(&s_.room) == s_.limit);
        MUST(s_.in_flight[0] == 0 && s_.in_flight[1] == 0);
        std::uint64_t slices[2] = {};
        std::uint64_t bytes[2] = {};
        std::uint64_t waits[2] = {};
        const auto add = [&](int which, const lite_sched_stats& stats) {
            MUST(stats.queued == 0 && stats.in_flight == 0);
            slices[which] += stats.slices;
            bytes[which] += stats.bytes;
            for (const auto n : stats.waited)
                waits[which] += n;
        };
        for (const auto& of : s_.classes) {
            add(0, of.stats);
            MUST(list_empty(&of.due));
        }
        for (const auto& tenant : tenants_)
            add(1, tenant.stats);
        MUST(slices[0] == slices[1] && bytes[0] == bytes[1]);
        MUST(waits[0] == slices[0] && waits[1] == slices[1]);
    }

    static constexpr std::uint64_t age_ = 2 * kMs;
    static constexpr std::uint32_t window_max_ = 1 << 20;

    std::mt19937_64 random_;
    lite_sched s_{};
    std::array<lite_sched_tenant, kTenants> tenants_{};
    std::array<Poster, kPosters> posters_{};
    std::array<Class, LITE_SCHED_CLASSES> of_{};
    std::vector<Poster*> free_;
    std::map<std::pair<std::uint32_t, std::size_t>, std::deque<Poster*>> queues_;
    std::deque<std::pair<std::uint64_t, Poster*>> flying_;
    std::uint64_t step_ = 0;
    std::uint64_t unsettled_ = 0;
    std::uint64_t now_ = kSecond;
    std::uint64_t busy_until_ = 0;
    std::uint64_t in_flight_ = 0;
    std::uint64_t completed_ = 0;
    std::uint64_t waiting_ = 0;
    std::uint64_t submits_ = 50;
    std::uint64_t classes_ = 8;
    std::uint64_t high_ = 0;
    std::uint64_t sizes_ = 0;
    std::uint64_t ns_per_kb_ = 100;
};

}  // namespace

TEST_CASE("sched: a million random steps keep to the rules") {
    Property property;
    property.run(1000000);
    std::printf(
        "sched: %llu passed by, %llu waited; of what is allowed a class took %.2f, an item "
        "%.2f; lower before higher %llu\n",
        static_cast<unsigned long long>(property.passed),
        static_cast<unsigned long long>(property.waited), property.worst_gap, property.worst_wait,
        static_cast<unsigned long long>(property.inversions));
    // The random steps must have covered every case.
    CHECK(property.passed > 20000);
    CHECK(property.waited > 200000);
    CHECK(property.inversions > 1000);
    CHECK(property.worst_gap > 0.1);
    CHECK(property.worst_wait > 0.1);
}
