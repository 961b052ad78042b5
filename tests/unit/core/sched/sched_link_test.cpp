// SPDX-License-Identifier: MIT
// The scheduler's guarantees for shares, delays and the window, on a simulated link; and wake-ups
// between threads.
#include "sched_link.hpp"
#include "../support.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <mutex>
#include <numeric>
#include <thread>
#include <vector>

using namespace lite_test;

namespace {

// A link under a 64-deep stream of the default class, and urgent operations of 64 bytes.
struct Urgent {
    double used;             // part of the link
    std::uint64_t p50, p99;  // ns
    std::int64_t limit;
};

Urgent urgent_beside_stream(lite_sched_mode mode, const LinkModel& model) {
    SchedSim sim(sched_conf(mode), model, seed());
    sim.add({.tenant = sim.tenant(100), .depth = 64});
    const auto& urgent = sim.add(
        {.tenant = sim.tenant(100), .prio = 0, .bytes = 64, .pause = 2 * kMs, .record = true});
    // The same number of slices at every rate.
    const auto span = static_cast<std::uint64_t>(0.4e9 / model.bytes_per_ns) + kSecond / 10;
    sim.run(span / 2);
    const auto early = sim.sent();
    sim.run(span);
    return {(sim.sent() - early) / (model.bytes_per_ns * static_cast<double>(span - span / 2)),
            percentile(urgent.took, 0.5), percentile(urgent.took, 0.99), sim.sched.limit};
}

}  // namespace

TEST_CASE("sched: shares are within 5 % of the weights over any second") {
    const auto weights = {10U, 25U, 64U, 100U, 100U, 130U, 250U, 511U, 512U, 999U, 1000U};
    const double total = std::accumulate(weights.begin(), weights.end(), 0.0);
    // Bytes decide for large operations, their number for small ones.
    for (const std::uint32_t bytes : {kSlice, 64U, 5000U}) {
        CAPTURE(bytes, seed());
        SchedSim sim(sched_conf(), {.bytes_per_ns = bytes == kSlice ? 2.5 : 0.6}, seed());
        std::vector<SchedSim::Source*> sources;
        std::uint32_t depth = 20;
        for (const auto weight : weights) {
            // The number of threads must not change the share.
            sources.push_back(&sim.add({.tenant = sim.tenant(weight),
                                        .bytes = bytes,
                                        .depth = depth = depth == 40 ? 20 : 40}));
        }
        std::vector<std::vector<std::uint64_t>> at;
        constexpr std::uint64_t step = kSecond / 10;
        for (std::uint64_t i = 2; i <= (bytes == kSlice ? 30U : 15U); i++) {
            sim.run(i * step);
            at.emplace_back();
            for (const auto* source : sources)
                at.back().push_back(source->done_ops);
        }
        double worst = 0;
        for (std::size_t end = 10; end < at.size(); end++) {
            double all = 0;
            for (std::size_t i = 0; i < sources.size(); i++)
                all += static_cast<double>(at[end][i] - at[end - 10][i]);
            for (std::size_t i = 0; i < sources.size(); i++) {
                const double share = static_cast<double>(at[end][i] - at[end - 10][i]) / all;
                const double due = sources[i]->tenant->weight / total;
                worst = std::max(worst, std::abs(share / due - 1));
            }
        }
        CAPTURE(worst);
        CHECK(worst <= 0.05);
    }
}

TEST_CASE("sched: weights 1:3 share 0.25 to 0.75, large beside small") {
    SchedSim sim(sched_conf(), {}, seed());
    const auto& one = sim.add({.tenant = sim.tenant(1), .bytes = 64, .depth = 64});
    const auto& three = sim.add({.tenant = sim.tenant(3), .depth = 16});
    sim.run(kSecond);
    const auto cost_one = static_cast<double>(one.done_ops) * (64 + 8192);
    const auto cost_three = static_cast<double>(three.done_ops) * kQuantum;
    CHECK(std::abs(cost_one / (cost_one + cost_three) - 0.25) < 0.005);
}

TEST_CASE("sched: of 16 equal tenants, the tenant with 64 threads gets no more") {
    for (const std::uint32_t bytes : {kSlice, 64U}) {
        SchedSim sim(sched_conf(), {.delay = 2 * kUs}, seed());
        std::vector<const SchedSim::Source*> sources;
        for (std::uint32_t i = 0; i < 16; i++)
            sources.push_back(
                &sim.add({.tenant = sim.tenant(100), .bytes = bytes, .depth = i ? 1U : 64U}));
        sim.run(kSecond);
        std::vector<double> done;
        for (const auto* source : sources)
            done.push_back(static_cast<double>(source->done_ops));
        CAPTURE(bytes, done);
        CHECK(jain(done) >= 0.98);
    }
}

TEST_CASE(
    "sched: an urgent operation waits for two and a half slices at most, and the stream loses "
    "nothing") {
    for (const double rate : {0.1, 1.25, 12.5}) {
        for (const std::uint64_t delay : {kUs, 10 * kUs, 100 * kUs}) {
            LinkModel model{.bytes_per_ns = rate, .delay = delay};
            const auto slice = static_cast<std::uint64_t>(kQuantum / rate);
            const auto idle = static_cast<std::uint64_t>((64 + 8192) / rate) + delay;
            const auto fair = urgent_beside_stream(LITE_SCHED_FAIR, model);
            CAPTURE(rate, delay, fair.limit, fair.used, fair.p99, slice, idle);
            CHECK(fair.used >= 0.98);
            CHECK(fair.p99 <= idle + 5 * slice / 2);
            const auto none = urgent_beside_stream(LITE_SCHED_NONE, model);
            CAPTURE(none.p99, none.used);
            CHECK(fair.used >= 0.99 * none.used);
            if (delay <= slice)
                CHECK(none.p99 >= 20 * fair.p99);
        }
    }
}

TEST_CASE("sched: latencies that vary do not empty the link") {
    for (const std::uint64_t jitter : {20 * kUs, 60 * kUs, 200 * kUs}) {
        LinkModel model{.jitter = jitter};
        const auto fair = urgent_beside_stream(LITE_SCHED_FAIR, model);
        CAPTURE(jitter, fair.limit, fair.used, fair.p99);
        CHECK(fair.used >= (jitter > 60 * kUs ? 0.80 : 0.97));
    }
}

TEST_CASE("sched: the window follows the link") {
    SchedSim sim(sched_conf(), {.bytes_per_ns = 1.25, .delay = 500 * kUs}, seed());
    sim.add({.tenant = sim.tenant(100), .depth = 128});
    sim.run(kSecond);
    const auto early = sim.sent();
    sim.run(2 * kSecond);
    const auto fast = sim.sched.limit;
    CHECK(sim.sent() - early >= 0.99 * 1.25e9);
    // The pipe holds nine and a half quanta.
    CHECK(fast >= 9 * kQuantum);
    CHECK(fast <= 13 * kQuantum);
    sim.model().bytes_per_ns = 0.125;
    sim.run(4 * kSecond);
    CAPTURE(sim.sched.limit);
    CHECK(sim.sched.limit <= 4 * kQuantum);
    // The scheduler notices a longer delay when it measures the base latency again.
    sim.model().bytes_per_ns = 1.25;
    sim.model().delay = kMs;
    sim.run(13 * kSecond);
    CAPTURE(sim.sched.limit);
    CHECK(sim.sched.limit >= 17 * kQuantum);
    CHECK(sim.sched.limit <= 25 * kQuantum);
}

TEST_CASE("sched: an operation posted before the base latency restarts is no sample of it") {
    Sched t;
    auto& a = t.tenant();
    t.push(a, 0);
    t.push(a, 0);
    const auto* first = t.pop();
    const auto* second = t.pop();
    REQUIRE(second != nullptr);
    t.now += 11 * kSecond;
    t.leave(first->flight);
    CHECK(t.s.restarted == t.now);
    t.leave(second->flight);
    CHECK(t.s.based[1] == 0);
    t.push(a, 0);
    const auto* third = t.pop();
    t.leave(third->flight);
    CHECK(t.s.based[1] == 1);
}

TEST_CASE("sched: sizes without a base latency get one; operations that passed by do not count") {
    Sched t;
    auto& a = t.tenant();
    const auto serve = [&](std::uint32_t bytes, int n) {
        t.fill();
        for (int i = 0; i < n; i++)
            t.push(a, 4, bytes);
        t.empty();
        while (auto* item = t.pop()) {
            t.now += 10 * kUs;
            t.leave(item->flight);
        }
    };
    serve(kSlice, 40);
    const auto limit = t.s.limit;
    CHECK(t.s.based[1] == 16);
    CHECK(limit > kQuantum);
    // While an item waits, only operations that had passed by complete.
    for (int i = 0; i < 10; i++)
        serve(kSlice, 1);
    CHECK(t.s.based[1] == 16);
    CHECK(t.s.limit >= limit);
    serve(64, 500);
    CHECK(t.s.based[0] == 16);
    CHECK(t.s.based[1] == 0);
}

TEST_CASE("sched: a device that runs dry gets a larger window, whatever the latency") {
    SchedSim sim(sched_conf(), {.delay = kUs}, seed());
    sim.add({.tenant = sim.tenant(100), .depth = 64});
    sim.run(kSecond);
    // Suddenly the latency looks like that of a long queue.
    sim.model().delay = 200 * kUs;
    sim.run(2 * kSecond);
    const auto before = sim.sent();
    sim.run(4 * kSecond);
    const double one_by_one = kQuantum * 2e9 / (kQuantum / 1.25 + 200e3);
    CAPTURE(sim.sched.limit);
    CHECK(sim.sent() - before >= 1.25 * one_by_one);
}

TEST_CASE("sched: the window is never more than allowed, nor less than a quantum") {
    auto conf = sched_conf();
    conf.window_max = 4 * kQuantum;
    SchedSim sim(conf, {.delay = kMs}, seed());
    sim.add({.tenant = sim.tenant(100), .depth = 128});
    sim.run(kSecond / 2);
    CHECK(sim.sched.limit == 4 * kQuantum);
    conf.window_max = 1;
    SchedSim least(conf, {}, seed());
    least.add({.tenant = least.tenant(100), .depth = 128});
    least.run(kSecond / 10);
    CHECK(least.sched.limit == kQuantum);
    CHECK(least.sent() >= 0.08e9);
}

TEST_CASE("sched: sw-pri holds the low classes back while the high ones are loaded") {
    // High classes alone saturate the link: the low classes keep one quantum in flight.
    LinkModel model{.queue_pairs = 4};
    std::uint64_t high_bytes[LITE_SCHED_MODES] = {};
    std::uint64_t low_bytes[LITE_SCHED_MODES] = {};
    for (const auto mode :
         {LITE_SCHED_NONE, LITE_SCHED_FAIR, LITE_SCHED_HW_SEP, LITE_SCHED_SW_PRI}) {
        SchedSim sim(sched_conf(mode), model, seed());
        const auto& high = sim.add({.tenant = sim.tenant(100), .prio = 0, .depth = 16});
        const auto& low = sim.add({.tenant = sim.tenant(100), .prio = 7, .depth = 16});
        sim.run(kSecond);
        high_bytes[mode] = high.done_bytes;
        low_bytes[mode] = low.done_bytes;
    }
    const auto all = static_cast<double>(high_bytes[0] + low_bytes[0]);
    // As in the paper's figure 16: none < hw-sep < sw-pri.
    CHECK(static_cast<double>(high_bytes[LITE_SCHED_NONE]) / all < 0.55);
    CHECK(static_cast<double>(high_bytes[LITE_SCHED_HW_SEP]) / all > 0.70);
    CHECK(high_bytes[LITE_SCHED_SW_PRI] > high_bytes[LITE_SCHED_HW_SEP]);
    CHECK(static_cast<double>(high_bytes[LITE_SCHED_FAIR]) / all > 0.97);
    for (const auto bytes : low_bytes)
        CHECK(bytes > 0);
}

TEST_CASE("sched: sw-pri gives the low classes everything while the high classes are idle") {
    SchedSim sim(sched_conf(LITE_SCHED_SW_PRI), {.delay = 50 * kUs}, seed());
    const auto& low = sim.add({.tenant = sim.tenant(100), .prio = 7, .depth = 64});
    // Later a high class has so few operations that only their latency shows the load.
    const auto& high = sim.add({.tenant = sim.tenant(100),
                                .prio = 0,
                                .bytes = 64,
                                .pause = kMs,
                                .from = kSecond,
                                .record = true});
    sim.run(kSecond);
    CHECK(static_cast<double>(low.done_bytes) >= 0.85 * 1.25e9 * 8 / 9);
    sim.run(12 * kSecond);
    const auto half = high.took.begin() + static_cast<std::ptrdiff_t>(high.took.size() / 2);
    const std::vector<std::uint64_t> later(half, high.took.end());
    CAPTURE(percentile(later, 0.5), percentile(later, 0.9));
    CHECK(percentile(later, 0.5) < 200 * kUs);
}

TEST_CASE("sched: between threads no wake-up is lost") {
    struct Post {
        lite_sched_item item{};
        std::atomic<bool> granted{false};
    };
    Sched t;
    auto& a = t.tenant();
    auto& b = t.tenant(3);
    std::mutex lock;
    std::atomic<int> done{0};
    const auto grant = [&t] {
        while (auto* item = t.pop())
            reinterpret_cast<Post*>(reinterpret_cast<char*>(item) - offsetof(Post, item))
                ->granted.store(true);
    };
    // Each thread posts and completes its own operations, one after the other.
    const auto poster = [&](lite_sched_tenant& tenant, std::uint32_t bytes) {
        const auto cost = lite_sched_cost(&t.s, bytes, 1);
        for (int i = 0; i < 20000; i++) {
            lite_sched_flight flight{};
            flight.cost = cost;
            if (!lite_sched_try(&t.s, cost)) {
                Post post;
                {
                    const std::lock_guard guard(lock);
                    lite_sched_push(&t.s, &post.item, &tenant, 4, bytes, 1, t.now);
                    grant();
                }
                const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(100);
                while (!post.granted.load()) {
                    if (std::chrono::steady_clock::now() > end) {
                        std::fputs("a wake-up was lost\n", stderr);
                        std::abort();
                    }
                    std::this_thread::yield();
                }
                flight = post.item.flight;
            }
            if (lite_sched_leave(&t.s, &flight)) {
                const std::lock_guard guard(lock);
                lite_sched_done(&t.s, &flight, t.now);
                grant();
            }
            done++;
        }
    };
    std::vector<std::thread> threads;
    for (int i = 0; i < 3; i++)
        threads.emplace_back([&, i] { poster(i ? a : b, i == 2 ? 64 : kSlice); });
    for (auto& thread : threads)
        thread.join();
    CHECK(done == 60000);
    CHECK(atomic64_read(&t.s.room) == t.s.limit);
    CHECK(a.stats.queued + a.stats.in_flight + b.stats.queued + b.stats.in_flight == 0);
}
