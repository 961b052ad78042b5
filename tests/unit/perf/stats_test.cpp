// SPDX-License-Identifier: MIT
#include "report/stats.hpp"

#include <random>
#include "catch.hpp"

using perf::quantile;
using perf::ratio_of_medians;
using perf::Rounds;
using perf::summarize;

namespace {

// Rounds in which the machine slows down by the same factor for both arms.
Rounds noisy(double median, std::uint64_t seed, std::size_t rounds, double drift) {
    std::mt19937_64 random(seed);
    std::uniform_real_distribution<double> spread(0.9, 1.1);
    Rounds result(rounds);
    for (std::size_t i = 0; i < rounds; i++) {
        const double factor = 1 + drift * static_cast<double>(i);
        for (int n = 0; n < 500; n++)
            result[i].push_back(median * factor * spread(random));
    }
    return result;
}

}  // namespace

TEST_CASE("quantiles interpolate between neighbours") {
    const std::vector<double> one{7};
    CHECK(quantile(one, 0) == 7);
    CHECK(quantile(one, 0.5) == 7);
    CHECK(quantile(one, 1) == 7);

    const std::vector<double> five{1, 2, 3, 4, 100};
    CHECK(quantile(five, 0) == 1);
    CHECK(quantile(five, 0.5) == 3);
    CHECK(quantile(five, 0.125) == Approx(1.5));
    CHECK(quantile(five, 1) == 100);

    const std::vector<double> four{1, 2, 3, 4};
    CHECK(quantile(four, 0.5) == Approx(2.5));
    CHECK(quantile(four, -1) == 1);
    CHECK(quantile(four, 2) == 4);

    CHECK_THROWS_AS(quantile({}, 0.5), std::invalid_argument);
}

TEST_CASE("a summary pools the rounds") {
    const auto summary = summarize({{5, 1}, {3}, {2, 4}});
    CHECK(summary.count == 5);
    CHECK(summary.min == 1);
    CHECK(summary.p50 == 3);
    CHECK(summary.max == 5);
}

TEST_CASE("a tail is shown only with enough samples") {
    auto of = [](int count) {
        std::vector<double> round;
        for (int i = 1; i <= count; i++)
            round.push_back(i);
        return summarize({round});
    };
    CHECK_FALSE(of(99).p99);
    CHECK_FALSE(of(999).p999);
    REQUIRE(of(100).p99);
    REQUIRE(of(1001).p999);
    CHECK(*of(1001).p99 == Approx(991));
    CHECK(*of(1001).p999 == Approx(1000));
}

TEST_CASE("the ratio of an arm to itself is one, without a spread") {
    const Rounds arm = noisy(150, 1, 9, 0.05);
    const auto ratio = ratio_of_medians(arm, arm);
    CHECK(ratio.value == 1);
    CHECK(ratio.low == 1);
    CHECK(ratio.high == 1);
}

TEST_CASE("drift that both arms see does not widen the ratio") {
    // The machine gets 2.6 times slower from the first to the last round.
    const auto ratio = ratio_of_medians(noisy(135, 1, 9, 0.2), noisy(150, 2, 9, 0.2));
    CHECK(ratio.value == Approx(0.9).margin(0.02));
    CHECK(ratio.low <= ratio.value);
    CHECK(ratio.value <= ratio.high);
    CHECK(ratio.high - ratio.low < 0.08);
}

TEST_CASE("an outlying round widens the ratio and hardly moves it") {
    Rounds arm = noisy(135, 1, 9, 0);
    for (double& sample : arm[4])
        sample *= 30;
    const auto ratio = ratio_of_medians(arm, noisy(150, 2, 9, 0));
    CHECK(ratio.value == Approx(0.9).margin(0.03));
    CHECK(ratio.low <= ratio.value);
    CHECK(ratio.high >= ratio.value);
}

TEST_CASE("one sample per round, as for throughput") {
    const auto ratio = ratio_of_medians({{40}, {42}, {41}}, {{20}, {21}, {20.5}});
    CHECK(ratio.value == Approx(2));
    CHECK(ratio.low == Approx(2));
    CHECK(ratio.high == Approx(2));
}

TEST_CASE("the interval is reproducible") {
    const Rounds a = noisy(100, 1, 7, 0.3);
    const Rounds b = noisy(120, 2, 7, 0.1);
    CHECK(ratio_of_medians(a, b).low == ratio_of_medians(a, b).low);
    CHECK(ratio_of_medians(a, b).high == ratio_of_medians(a, b).high);
}

TEST_CASE("arms with different numbers of rounds are refused") {
    CHECK_THROWS_AS(ratio_of_medians({{1}, {2}}, {{1}}), std::invalid_argument);
}
