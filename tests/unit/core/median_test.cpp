// SPDX-License-Identifier: MIT
#include "support.hpp"

using namespace lite_test;

namespace {

std::uint64_t after(std::uint64_t median, int times, auto figure) {
    for (int i = 0; i < times; i++)
        median = lite_median_next(median, figure());
    return median;
}

}  // namespace

TEST_CASE("median: the first figure counts in full") {
    CHECK(lite_median_next(0, 500) == 500);
    CHECK(lite_median_next(0, 0) == 0);
}

TEST_CASE("median: it reaches a constant figure, and stays there") {
    for (const std::uint64_t from : {1U, 100U, 1000U, 1000000U}) {
        const auto reached = after(from, 1000, [] { return 1000U; });
        CHECK(reached == 1000);
    }
}

TEST_CASE("median: one figure moves it by a step only, however large") {
    const auto up = lite_median_next(3200, UINT64_MAX / 2);
    CHECK(up > 3200);
    CHECK(up <= 3200 + 3200 / 8 + 4);
    const auto down = lite_median_next(3200, 0);
    CHECK(down < 3200);
    CHECK(down >= 3200 - 3200 / 8 - 4);
}

TEST_CASE("median: a tail does not move it") {
    std::mt19937_64 random(seed());
    CAPTURE(seed());
    // One figure in ten is twenty times as large: the mean would be near 3000.
    const auto figure = [&] { return (random() % 10 ? 1 : 20) * (900 + random() % 200); };
    const auto reached = after(5000, 2000, figure);
    CHECK(reached > 850);
    CHECK(reached < 1250);
}
