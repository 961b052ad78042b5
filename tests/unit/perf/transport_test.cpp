// SPDX-License-Identifier: MIT
#include "transport.hpp"

#include <set>
#include <stdexcept>
#include "catch.hpp"

#include "fake_transport.hpp"

using namespace perf;

TEST_CASE("an arm that moves no data is detected") {
    FakeTransport good(1, 1);
    CHECK_NOTHROW(verify(good));
    FakeTransport bad(1, 1);
    bad.lazy = true;
    CHECK_THROWS_AS(verify(bad), std::runtime_error);
}

TEST_CASE("a window is kept full, in batches of the arm's size") {
    for (const unsigned batch : {1U, 8U, 16U}) {
        FakeTransport arm(16, batch);
        const double rate = arm.rate({Op::read, 64}, 16, {std::chrono::hours(1), 160});
        CHECK(rate > 0);
        // At most a window was in flight, nothing is left, and each request of a window has its own
        // place.
        CHECK(arm.most == 16);
        CHECK(arm.under_way == 0);
        CHECK(arm.collected == arm.posted.size());
        std::set<std::uint64_t> places;
        for (std::size_t i = 0; i < 16 / batch; i++) {
            CHECK(arm.posted[i].size() == batch);
            for (const Request& request : arm.posted[i]) {
                CHECK(request.offset == request.local);
                places.insert(request.offset);
            }
        }
        CHECK(places.size() == 16);
        CHECK(*places.rbegin() == std::uint64_t{15} * 64);
    }
}

TEST_CASE("a batch is no larger than the window") {
    FakeTransport arm(64, 64);
    arm.rate({Op::write, 8}, 4, {std::chrono::hours(1), 8});
    CHECK(arm.most == 4);
}

TEST_CASE("every call is a sample, except for warm-up calls") {
    FakeTransport arm(1, 1);
    const auto samples = arm.times({Op::read, 8}, {std::chrono::hours(1), 20});
    CHECK(samples.size() == 20);
    CHECK(arm.posted.size() == 20 + warm_up_calls);
}

TEST_CASE("a slice has at least one call") {
    FakeTransport arm(1, 1);
    CHECK(arm.times({Op::read, 8}, {std::chrono::nanoseconds(1), 1000}).size() == 1);
}

TEST_CASE("arms are found by name") {
    for (const Arm& arm : arms())
        CHECK(&arm_of(arm.name) == &arm);
    CHECK_THROWS_AS(arm_of("carrier-pigeon"), std::invalid_argument);
}

TEST_CASE("an arm without its other end is not connected") {
    Target target;
    target.bytes = 4096;
    CHECK_THROWS_WITH(make_transport("lite", target), Catch::Contains("--node"));
    CHECK_THROWS_WITH(make_transport("verbs", target), Catch::Contains("--server"));
    target.server = "localhost";
    target.regions = 2;
    CHECK_THROWS_WITH(make_transport("tcp", target), Catch::Contains("one region"));
}
