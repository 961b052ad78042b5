// SPDX-License-Identifier: MIT
// The scheduler's policy, case by case. sched_link_test.cpp tests its guarantees on a link,
// sched_property_test.cpp the invariants of any sequence of calls.
#include "../support.hpp"
#include "sched_link.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <vector>

using namespace lite_test;

namespace {

constexpr std::uint64_t kAge = 10 * kMs;

}  // namespace

TEST_CASE("sched: with nothing waiting and room, an operation passes by") {
    Sched t;
    REQUIRE(lite_sched_try(&t.s, kQuantum));
    // The window begins as one quantum.
    CHECK_FALSE(lite_sched_try(&t.s, 1));
    lite_sched_flight flight{};
    flight.cost = kQuantum;
    CHECK_FALSE(lite_sched_leave(&t.s, &flight));
    CHECK(lite_sched_try(&t.s, lite_sched_cost(&t.s, 64, 1)));
}

TEST_CASE("sched: no operation passes a waiting item, and the last item opens the gate") {
    Sched t;
    auto& a = t.tenant();
    t.fill();
    auto& first = t.push(a, 4);
    auto& second = t.push(a, 5);
    CHECK(t.pop() == nullptr);
    t.empty();
    CHECK_FALSE(lite_sched_try(&t.s, 1));
    CHECK(t.serve() == &first);
    CHECK_FALSE(lite_sched_try(&t.s, 1));
    lite_sched_remove(&t.s, &second);
    CHECK(lite_sched_try(&t.s, 1));
}

TEST_CASE("sched: lite_sched_leave() reports waiting items") {
    Sched t;
    auto& a = t.tenant();
    t.fill();
    lite_sched_flight passed{};
    passed.cost = kQuantum;
    auto& item = t.push(a, 4);
    CHECK(t.pop() == nullptr);
    CHECK(lite_sched_leave(&t.s, &passed));
    lite_sched_done(&t.s, &passed, t.now);
    REQUIRE(t.pop() == &item);
    // An item that was taken out always needs lite_sched_done().
    CHECK(lite_sched_leave(&t.s, &item.flight));
    lite_sched_done(&t.s, &item.flight, t.now);
    CHECK(a.stats.in_flight == 0);
}

TEST_CASE("sched: the cost of an operation") {
    Sched t;
    CHECK(lite_sched_cost(&t.s, 0, 1) == 8 << 10);
    CHECK(lite_sched_cost(&t.s, kSlice, 1) == kQuantum);
    CHECK(lite_sched_cost(&t.s, 64, 3) == 3 * (8 << 10) + 64);
    CHECK(lite_sched_cost(&t.s, kSlice, 2) == kQuantum);
    CHECK(lite_sched_cost(&t.s, UINT32_MAX, UINT32_MAX) == kQuantum);
}

TEST_CASE("sched: the highest class goes first; a tenant's items of a class stay in order") {
    Sched t;
    auto& a = t.tenant();
    t.fill();
    std::vector<lite_sched_item*> order;
    for (const std::uint32_t prio : {7U, 4U, 0U, 4U, 7U, 1U, 0U})
        order.push_back(&t.push(a, prio));
    t.empty();
    for (const std::size_t next : {2U, 6U, 5U, 1U, 3U, 0U, 4U})
        CHECK(t.serve() == order[next]);
    CHECK(t.serve() == nullptr);
}

TEST_CASE("sched: a class rises by one per interval, for a quantum") {
    Sched t;
    auto& a = t.tenant();
    t.fill();
    std::deque<lite_sched_item*> high;
    std::deque<lite_sched_item*> low;
    for (int i = 0; i < 4; i++)
        high.push_back(&t.push(a, 2));
    // Nine of these make a quantum.
    for (int i = 0; i < 20; i++)
        low.push_back(&t.push(a, 5, 0));
    t.empty();
    const auto serves = [&t](std::deque<lite_sched_item*>& of) {
        auto* item = t.serve();
        const bool right = !of.empty() && item == of.front();
        of.pop_front();
        return right;
    };
    t.now += 3 * kAge - 1;
    CHECK(serves(high));
    t.now += 1;
    // Both classes are at level 2 now: the class that has risen further goes first.
    for (int i = 0; i < 9; i++)
        CHECK(serves(low));
    CHECK(serves(high));
    t.now += 3 * kAge - 1;
    CHECK(serves(high));
    t.now += kAge + 1;
    for (int i = 0; i < 9; i++)
        CHECK(serves(low));
    CHECK(serves(high));
    CHECK(serves(low));
    CHECK(serves(low));
    CHECK(t.serve() == nullptr);
}

TEST_CASE("sched: a class begins to age with its first waiting item") {
    Sched t;
    auto& a = t.tenant();
    t.fill();
    auto& early = t.push(a, 7);
    lite_sched_remove(&t.s, &early);
    t.now += 100 * kAge;
    auto& low = t.push(a, 7);
    auto& high = t.push(a, 6);
    t.empty();
    CHECK(t.serve() == &high);
    CHECK(t.serve() == &low);
}

TEST_CASE("sched: a clock that goes backwards ages nothing") {
    Sched t;
    auto& a = t.tenant();
    t.fill();
    auto& low = t.push(a, 1);
    auto& high = t.push(a, 0);
    t.empty();
    t.now -= kMs;
    CHECK(t.serve() == &high);
    CHECK(t.serve() == &low);
    CHECK(a.stats.waited[0] == 2);
}

TEST_CASE("sched: times wrap") {
    Sched t;
    auto& a = t.tenant();
    t.now = UINT64_MAX - kMs;
    t.fill();
    auto& low = t.push(a, 1);
    auto& high = t.push(a, 0);
    t.empty();
    t.now += kAge;
    CHECK(t.serve() == &low);
    CHECK(t.serve() == &high);
}

TEST_CASE("sched: tenants take turns, however different their weights are") {
    Sched t;
    auto& light = t.tenant(1);
    auto& heavy = t.tenant(1000);
    auto& other = t.tenant(999);
    t.fill();
    for (int i = 0; i < 30; i++) {
        t.push(heavy, 4);
        t.push(light, 4);
        t.push(other, 4);
    }
    t.empty();
    int run = 0;
    const lite_sched_tenant* last = nullptr;
    std::map<const lite_sched_tenant*, int> served;
    for (int i = 0; i < 40; i++) {
        const auto* tenant = t.serve()->flight.tenant;
        run = tenant == last ? run + 1 : 1;
        last = tenant;
        served[tenant]++;
        CHECK(run <= 2);
    }
    CHECK(served[&light] == 1);
    CHECK(std::abs(served[&heavy] - served[&other]) <= 2);
}

TEST_CASE("sched: a tenant of small operations gets as many quanta as one of large ones") {
    Sched t;
    auto& large = t.tenant();
    auto& small = t.tenant();
    t.fill();
    for (int i = 0; i < 100; i++)
        t.push(large, 4);
    for (int i = 0; i < 900; i++)
        t.push(small, 4, 0);
    t.empty();
    int bigs = 0;
    for (int i = 0; i < 500; i++)
        bigs += t.serve()->flight.tenant == &large ? 1 : 0;
    CHECK(bigs == 50);
}

TEST_CASE("sched: no tenant gets two quanta ahead of another") {
    Sched t;
    auto& a = t.tenant();
    auto& b = t.tenant();
    t.fill();
    for (int i = 0; i < 200; i++) {
        // 40 KB: two make more than a quantum.
        t.push(a, 4, 32 << 10);
        t.push(b, 4);
    }
    t.empty();
    std::uint64_t cost[2] = {};
    for (int i = 0; i < 200; i++) {
        const auto* item = t.serve();
        cost[item->flight.tenant == &b] += item->flight.cost;
        const auto apart = std::max(cost[0], cost[1]) - std::min(cost[0], cost[1]);
        CHECK(apart <= 2 * kQuantum);
    }
}

TEST_CASE("sched: a waiting item can be removed from any position") {
    Sched t;
    auto& a = t.tenant();
    auto& b = t.tenant(7);
    t.fill();
    auto& first = t.push(a, 4);
    auto& middle = t.push(a, 4);
    auto& last = t.push(a, 4);
    auto& only = t.push(b, 0);
    lite_sched_remove(&t.s, &middle);
    lite_sched_remove(&t.s, &only);
    CHECK(b.stats.queued == 0);
    CHECK(t.s.classes[0].stats.queued == 0);
    t.empty();
    CHECK(t.serve() == &first);
    lite_sched_remove(&t.s, &last);
    CHECK(t.serve() == nullptr);
    CHECK(a.stats.queued == 0);
    CHECK(a.stats.slices == 1);
}

TEST_CASE("sched: at the end of a connection every waiting item can be removed") {
    Sched t;
    auto& a = t.tenant();
    auto& b = t.tenant(900);
    t.fill();
    std::vector<lite_sched_item*> items;
    for (std::uint32_t i = 0; i < 50; i++)
        items.push_back(&t.push(i % 3 ? a : b, i % 8, i));
    for (auto* item : items)
        lite_sched_remove(&t.s, item);
    CHECK(t.s.queued == 0);
    CHECK(t.pop() == nullptr);
    t.empty();
    CHECK(atomic64_read(&t.s.room) == t.s.limit);
}

TEST_CASE("sched: high classes exceed a full window by a quantum, low ones do not") {
    for (std::uint32_t prio = 0; prio < LITE_SCHED_CLASSES; prio++) {
        CAPTURE(prio);
        Sched t;
        auto& a = t.tenant();
        t.fill();
        t.push(a, prio);
        t.push(a, prio);
        CHECK((t.pop() != nullptr) == (prio < LITE_SCHED_LOW));
        CHECK(t.pop() == nullptr);
    }
}

TEST_CASE("sched: a low class that has risen exceeds the window, too") {
    Sched t;
    auto& a = t.tenant();
    t.fill();
    t.push(a, 4);
    CHECK(t.pop() == nullptr);
    t.now += kAge;
    CHECK(t.pop() != nullptr);
}

TEST_CASE("sched: waiting times are counted by powers of two") {
    for (const auto& [waited, bucket] : std::vector<std::pair<std::uint64_t, std::size_t>>{
             {0, 0},
             {999, 0},
             {kUs, 1},
             {2 * kUs - 1, 1},
             {2 * kUs, 2},
             {kMs, 10},
             {3 * kSecond, 22},
             {3600 * kSecond, LITE_SCHED_WAITS - 1}}) {
        CAPTURE(waited);
        Sched t;
        auto& a = t.tenant();
        t.fill();
        t.push(a, 4, 100);
        t.empty();
        CHECK(a.stats.queued == 1);
        CHECK(t.s.classes[4].stats.queued == 1);
        t.now += waited;
        const auto* item = t.pop();
        for (const auto* stats : {&a.stats, &t.s.classes[4].stats}) {
            CHECK(stats->waited[bucket] == 1);
            CHECK(stats->queued == 0);
            CHECK(stats->in_flight == 1);
            CHECK(stats->slices == 1);
            CHECK(stats->bytes == 100);
        }
        t.leave(item->flight);
        CHECK(a.stats.in_flight == 0);
        CHECK(t.s.classes[4].stats.in_flight == 0);
    }
}

TEST_CASE("sched: a weight changes while its tenant waits") {
    Sched t;
    auto& a = t.tenant(1);
    auto& b = t.tenant(1);
    t.fill();
    for (int i = 0; i < 100; i++) {
        t.push(a, i % 2 ? 4 : 5);
        t.push(b, i % 2 ? 4 : 5);
    }
    lite_sched_set_weight(&t.s, &a, 3);
    t.empty();
    int served = 0;
    for (int i = 0; i < 60; i++)
        served += t.serve()->flight.tenant == &a ? 1 : 0;
    CHECK(served >= 44);
    CHECK(served <= 46);
    lite_sched_set_weight(&t.s, &a, 1);
    while (t.serve()) {
    }
    CHECK(a.stats.queued == 0);
    CHECK(list_empty(&t.s.classes[5].due));
}

TEST_CASE("sched: a new weight counts at once") {
    Sched t;
    auto& a = t.tenant(1);
    auto& b = t.tenant(1000);
    t.fill();
    for (int i = 0; i < 50; i++) {
        t.push(a, 4, 50001);
        t.push(b, 4, 50001);
    }
    t.empty();
    while (t.serve()->flight.tenant != &a) {
    }
    // With its old weight it would have to wait for a thousand slices of the other tenant.
    lite_sched_set_weight(&t.s, &a, 1000);
    int served = 0;
    for (int i = 0; i < 20; i++)
        served += t.serve()->flight.tenant == &a ? 1 : 0;
    CHECK(served >= 9);
    CHECK(served <= 11);
}

TEST_CASE("sched: a tenant that was idle while virtual time wrapped is like any other") {
    Sched t;
    auto& a = t.tenant();
    auto& b = t.tenant();
    t.s.classes[4].vtime = (std::uint64_t{1} << 63) + 12345678912345;
    t.fill();
    for (int i = 0; i < 20; i++) {
        t.push(a, 4);
        t.push(b, 4);
    }
    CHECK(a.queue[4].vtime == t.s.classes[4].vtime);
    t.empty();
    int served = 0;
    for (int i = 0; i < 20; i++)
        served += t.serve()->flight.tenant == &a ? 1 : 0;
    CHECK(served == 10);
}

TEST_CASE("sched: mode none has no window, and lets the waiting items go") {
    Sched t;
    auto& a = t.tenant();
    t.fill();
    auto& first = t.push(a, 4);
    auto& second = t.push(a, 4);
    CHECK(t.pop() == nullptr);
    lite_sched_set_mode(&t.s, LITE_SCHED_NONE);
    CHECK(t.pop() == &first);
    CHECK(t.pop() == &second);
    for (int i = 0; i < 10000; i++)
        CHECK(lite_sched_try(&t.s, kQuantum));
    // Too much is in flight for the window now.
    lite_sched_set_mode(&t.s, LITE_SCHED_FAIR);
    CHECK_FALSE(lite_sched_try(&t.s, 1));
    t.push(a, 0);
    CHECK(t.pop() == nullptr);
    lite_sched_set_mode(&t.s, LITE_SCHED_HW_SEP);
    CHECK(t.pop() != nullptr);
}

TEST_CASE("sched: in sw-pri every operation queues, and only low classes are held back") {
    Sched t(LITE_SCHED_SW_PRI);
    auto& a = t.tenant();
    CHECK_FALSE(lite_sched_try(&t.s, 1));
    std::vector<lite_sched_item*> low;
    for (int i = 0; i < 3; i++)
        low.push_back(&t.push(a, 4));
    CHECK(t.pop() == low[0]);
    CHECK(t.pop() == nullptr);
    for (int i = 0; i < 100; i++) {
        auto& high = t.push(a, 3);
        CHECK(t.pop() == &high);
    }
    t.leave(low[0]->flight);
    CHECK(t.pop() == low[1]);
    lite_sched_set_mode(&t.s, LITE_SCHED_NONE);
    CHECK(t.pop() == low[2]);
    CHECK(lite_sched_try(&t.s, 1));
    lite_sched_set_mode(&t.s, LITE_SCHED_SW_PRI);
    CHECK_FALSE(lite_sched_try(&t.s, 1));
}

TEST_CASE("sched: in sw-pri high classes do not wait for low classes that have risen") {
    Sched t(LITE_SCHED_SW_PRI);
    auto& a = t.tenant();
    t.push(a, 7);
    t.push(a, 7);
    CHECK(t.pop() != nullptr);
    CHECK(t.pop() == nullptr);
    t.now += 100 * kAge;
    auto& high = t.push(a, 0);
    CHECK(t.pop() == &high);
}

TEST_CASE("sched: sw-pri halves and doubles the window of the low classes") {
    Sched t(LITE_SCHED_SW_PRI);
    auto& a = t.tenant();
    // Number of slices of low classes that may be in flight.
    const auto room = [&] {
        std::vector<lite_sched_item*> low;
        std::set<lite_sched_item*> waiting;
        for (int i = 0; i < 64; i++)
            waiting.insert(&t.push(a, 7));
        while (auto* item = t.pop()) {
            low.push_back(item);
            waiting.erase(item);
        }
        for (auto* item : waiting)
            lite_sched_remove(&t.s, item);
        for (const auto* item : low)
            t.leave(item->flight);
        return low.size();
    };
    // Ten rounds of large and small operations of a high class, each with this latency.
    const auto high = [&](int large, int small, std::uint64_t us) {
        for (int round = 0; round < 10; round++) {
            for (int i = 0; i < large + small; i++) {
                t.push(a, 0, i < large ? kSlice : 0);
                const auto* item = t.pop();
                t.now += us * kUs;
                t.leave(item->flight);
            }
            t.now += 10 * kMs;
            room();
        }
    };
    high(16, 16, 10);
    CHECK(room() == 1);
    // The high class is idle.
    high(0, 0, 0);
    CHECK(room() == 64);
    // Light load with the usual latency; the low classes move more.
    high(1, 1, 10);
    CHECK(room() == 64);
    // Heavy load with the usual latency.
    high(70, 0, 10);
    CHECK(room() == 1);
    high(0, 0, 0);
    CHECK(room() == 64);
    // Light load with a longer latency.
    high(0, 1, 25);
    CHECK(room() == 1);
}

TEST_CASE("sched: the queue pairs of a class") {
    const auto range = [](lite_sched_mode mode, std::uint32_t prio, std::uint32_t n) {
        std::uint32_t first = 99;
        const auto count = lite_sched_qps(mode, prio, n, &first);
        return std::pair(first, count);
    };
    using Range = std::pair<std::uint32_t, std::uint32_t>;
    for (const auto mode : {LITE_SCHED_NONE, LITE_SCHED_SW_PRI})
        CHECK(range(mode, 0, 4) == Range(0, 4));
    for (const std::uint32_t prio : {0U, 3U}) {
        CHECK(range(LITE_SCHED_HW_SEP, prio, 4) == Range(0, 3));
        CHECK(range(LITE_SCHED_FAIR, prio, 4) == Range(0, 1));
    }
    for (const std::uint32_t prio : {4U, 7U}) {
        CHECK(range(LITE_SCHED_HW_SEP, prio, 4) == Range(3, 1));
        CHECK(range(LITE_SCHED_FAIR, prio, 4) == Range(1, 3));
    }
    for (const auto mode : {LITE_SCHED_FAIR, LITE_SCHED_HW_SEP}) {
        for (std::uint32_t prio = 0; prio < LITE_SCHED_CLASSES; prio++)
            CHECK(range(mode, prio, 1) == Range(0, 1));
        for (const std::uint32_t n : {2U, 3U, 8U, 9U}) {
            const auto high = range(mode, 0, n);
            const auto low = range(mode, 7, n);
            CHECK(high.first == 0);
            CHECK(high.second >= 1);
            CHECK(low == Range(high.second, n - high.second));
        }
    }
}
