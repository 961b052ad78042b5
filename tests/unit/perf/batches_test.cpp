// SPDX-License-Identifier: MIT
#include "workloads/batches.hpp"

#include <stdexcept>
#include "catch.hpp"

using namespace perf;

TEST_CASE("a batch is complete with the last of its requests") {
    Batches batches;
    CHECK(batches.none());
    const auto only = batches.begin(2);
    CHECK_FALSE(batches.none());
    CHECK(batches.oldest_left() == 2);
    batches.done(only);
    CHECK(batches.oldest_left() == 1);
    batches.done(only);
    CHECK(batches.oldest_left() == 0);
    CHECK(batches.end_oldest() == 2);
    CHECK(batches.none());
}

TEST_CASE("the oldest batch is collected first, even if another completes first") {
    Batches batches;
    const auto first = batches.begin(1);
    const auto second = batches.begin(2);
    batches.done(second);
    batches.done(second);
    CHECK(batches.oldest_left() == 1);
    batches.done(first);
    CHECK(batches.oldest_left() == 0);
    CHECK(batches.end_oldest() == 1);
    CHECK(batches.oldest_left() == 0);
    const auto third = batches.begin(3);
    CHECK(batches.end_oldest() == 2);
    CHECK(batches.oldest_left() == 3);
    batches.done(third);
    CHECK(batches.oldest_left() == 2);
}

TEST_CASE("a batch that is not in flight cannot complete") {
    Batches batches;
    const auto only = batches.begin(1);
    CHECK_THROWS_AS(batches.done(only + 1), std::out_of_range);
    batches.done(only);
    batches.end_oldest();
    CHECK_THROWS_AS(batches.done(only), std::out_of_range);
    CHECK_THROWS_AS(batches.oldest_left(), std::out_of_range);
}
