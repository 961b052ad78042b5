// SPDX-License-Identifier: MIT
#include "support.hpp"

using namespace lite_test;

namespace {

constexpr std::uint64_t us = 1000;

std::uint64_t after(std::uint64_t median, int times, auto figure) {
    for (int i = 0; i < times; i++)
        median = lite_median_next(median, figure());
    return median;
}

// Waits of a kind: how long they take awake and asleep, give or take a fifth. A wait that goes to
// sleep after a while takes as long as one that has slept from the beginning, and that while.
class Waits {
  public:
    void take(std::uint64_t awake, std::uint64_t asleep) {
        awake_ = awake;
        asleep_ = asleep;
    }
    // One in ten takes so much longer.
    void delay(std::uint64_t ns) { tail_ = ns; }

    struct Done {
        int awake = 0;   // to their end
        int asleep = 0;  // from the beginning
    };
    Done go(int n, bool crowded = false) {
        Done done;
        for (int i = 0; i < n; i++) {
            lite_pace_wait wait = {};
            const bool timed = lite_pace_plan(&pace_, &wait, crowded);
            const std::uint64_t more = random_.between(0, 9) ? 0 : tail_;
            const std::uint64_t awake = some(awake_) + more;
            const std::uint64_t asleep = some(asleep_) + more;
            done.asleep += !wait.awake_ns;
            done.awake += wait.awake_ns >= awake;
            const auto took = wait.awake_ns >= awake ? awake : wait.awake_ns + asleep;
            if (timed)
                lite_pace_learn(&pace_, &wait, took);
        }
        return done;
    }

  private:
    std::uint64_t some(std::uint64_t about) {
        return random_.between(about - about / 5, about + about / 5);
    }

    Random random_;
    lite_pace pace_ = {};
    std::uint64_t awake_ = 0;
    std::uint64_t asleep_ = 0;
    std::uint64_t tail_ = 0;
};

}  // namespace

TEST_CASE("pace: short waits are awake, all of them, even in a crowd") {
    Waits waits;
    waits.take(3 * us, 10 * us);
    CHECK(waits.go(10000).awake == 10000);
    CHECK(waits.go(1000, true).awake == 1000);
}

TEST_CASE("pace: waits that are quicker awake are so from the beginning") {
    CAPTURE(seed());
    Waits waits;
    waits.take(450 * us, 650 * us);
    CHECK(waits.go(200).awake >= 150);
    CHECK(waits.go(1000).awake >= 900);
    CHECK(waits.go(10000).awake >= 9800);
}

TEST_CASE("pace: waits that are quicker asleep soon are so") {
    CAPTURE(seed());
    Waits waits;
    waits.take(650 * us, 450 * us);
    waits.go(400);
    CHECK(waits.go(10000).asleep >= 9800);
    // They become quick.
    waits.take(5 * us, 15 * us);
    waits.go(10000);
    CHECK(waits.go(1000).awake == 1000);
}

TEST_CASE("pace: other lengths do not change the way") {
    CAPTURE(seed());
    Waits waits;
    waits.take(450 * us, 650 * us);
    waits.go(1000);
    for (int i = 0; i < 10; i++) {
        waits.take(900 * us, 1300 * us);
        CHECK(waits.go(1000).asleep < 100);
        waits.take(450 * us, 650 * us);
        CHECK(waits.go(1000).asleep < 100);
    }
}

TEST_CASE("pace: it follows when the other way becomes quicker") {
    CAPTURE(seed());
    Waits waits;
    for (int i = 0; i < 10; i++) {
        waits.take(450 * us, 650 * us);
        waits.go(1200);
        CHECK(waits.go(1000).awake >= 900);
        waits.take(650 * us, 450 * us);
        waits.go(1200);
        CHECK(waits.go(1000).asleep >= 900);
    }
}

TEST_CASE("pace: a few very long waits decide nothing") {
    CAPTURE(seed());
    Waits waits;
    waits.take(200 * us, 350 * us);
    waits.delay(20000 * us);
    waits.go(300);
    // Awake for four times the median: the tenth that is delayed goes to sleep.
    CHECK(waits.go(10000).awake >= 8500);
}

TEST_CASE("pace: what is quick in half of the cases only is not quicker") {
    CAPTURE(seed());
    Random random;
    lite_pace pace = {};
    int asleep = 0;
    for (int i = 0; i < 4000; i++) {
        lite_pace_wait wait = {};
        lite_pace_plan(&pace, &wait, false);
        const std::uint64_t awake = (random.between(0, 99) < 55 ? 350 : 1800) * us;
        lite_pace_learn(&pace, &wait, wait.awake_ns ? awake : 500 * us);
        asleep += !wait.awake_ns && i >= 1000;
    }
    CHECK(asleep >= 2500);
}

TEST_CASE("pace: nothing spends a processor on waits of many milliseconds") {
    Waits waits;
    waits.take(8000 * us, 8100 * us);
    waits.go(150);
    CHECK(waits.go(12800).asleep >= 12600);
}

TEST_CASE("pace: in a crowd all sleep, but for one that looks whether waits are quick") {
    Waits waits;
    waits.take(450 * us, 650 * us);
    waits.go(400);
    CHECK(waits.go(1280, true).asleep >= 1270);
    CHECK(waits.go(1000).awake >= 900);
}

TEST_CASE("pace: after a slow first wait, a crowd finds out that waits are quick") {
    Waits waits;
    waits.take(500 * us, 510 * us);
    waits.go(1, true);
    waits.take(3 * us, 10 * us);
    waits.go(2000, true);
    CHECK(waits.go(1000, true).awake == 1000);
}

TEST_CASE("pace: many that wait at once find the quicker way") {
    CAPTURE(seed());
    Random random;
    for (const bool quicker_awake : {true, false}) {
        lite_pace pace = {};
        int usual = 0;
        for (int i = 0; i < 4000; i++) {
            lite_pace_wait waits[8] = {};
            bool timed[8];
            for (int n = 0; n < 8; n++)
                timed[n] = lite_pace_plan(&pace, &waits[n], n > 0);
            for (int n = 0; n < 8; n++) {
                const bool quick = (waits[n].awake_ns > 500 * us) == quicker_awake;
                const std::uint64_t about = quick ? 450 * us : 650 * us;
                if (timed[n])
                    lite_pace_learn(&pace, &waits[n], random.between(about * 9 / 10, about));
            }
            usual += i >= 2000 && !waits[0].awake_ns != quicker_awake;
        }
        CHECK(usual >= 1800);  // of 2000
    }
}

TEST_CASE("pace: waits of two kinds that take turns") {
    for (const int first : {0, 1}) {
        lite_pace pace = {};
        int asleep = 0;
        for (int i = 0; i < 8000; i++) {
            lite_pace_wait wait = {};
            lite_pace_plan(&pace, &wait, false);
            const bool is_long = i % 2 == first;
            const std::uint64_t took =
                wait.awake_ns ? (is_long ? 420 : 280) : (is_long ? 300 : 200);
            lite_pace_learn(&pace, &wait, took * us);
            asleep += i >= 4000 && !wait.awake_ns;
        }
        CHECK(asleep >= 3800);  // of 4000
    }
}

TEST_CASE("pace: a client and a server do not mislead each other") {
    CAPTURE(seed());
    Random random;
    for (int pair = 0; pair < 20; pair++) {
        lite_pace ends[2] = {};
        for (int i = 0; i < pair; i++) {  // one of them began earlier
            lite_pace_wait wait = {};
            lite_pace_plan(&ends[0], &wait, false);
            lite_pace_learn(&ends[0], &wait, 300 * us);
        }
        int awake = 0;
        for (int i = 0; i < 5000; i++) {
            lite_pace_wait waits[2] = {};
            // Both wait during a call: a sleeper delays itself, and its peer more.
            std::uint64_t took[2];
            for (int end = 0; end < 2; end++) {
                lite_pace_plan(&ends[end], &waits[end], false);
                took[end] = random.between(290 * us, 310 * us);
            }
            for (int end = 0; end < 2; end++) {
                if (waits[end].awake_ns > 400 * us)
                    continue;
                took[end] += 100 * us;
                took[!end] += 400 * us;
            }
            for (int end = 0; end < 2; end++)
                lite_pace_learn(&ends[end], &waits[end], took[end]);
            awake += i >= 1000 && waits[0].awake_ns && waits[1].awake_ns;
        }
        CHECK(awake >= 3500);  // of 4000
    }
}

TEST_CASE("pace: waits that are quick, or in a crowd, are not compared with others") {
    for (const bool crowded : {false, true}) {
        lite_pace pace = {.awake_ns = crowded ? 100 * us : 10 * us};
        lite_pace_wait wait = {};
        CHECK(lite_pace_plan(&pace, &wait, crowded));
        lite_pace_learn(&pace, &wait, 300 * us);
        CHECK(pace.awake_ns > (crowded ? 100 * us : 10 * us));
        CHECK(pace.usual_ns == 0);
    }
}

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
