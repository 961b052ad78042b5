// SPDX-License-Identifier: MIT
//
// Tests of the checker: right histories, every kind of error, small histories against brute force,
// and the cost of large ones.
#include <algorithm>
#include <stdexcept>

#include "../catch.hpp"
#include "checker.hpp"
#include "generate.hpp"

using namespace lin;

namespace {

Operation op(std::uint32_t process, Time begin, Time end, Kind kind, std::uint64_t a = 0,
             std::uint64_t result = 0) {
    return {0, process, kind, Answer::done, a, 0, result, begin, end};
}

Operation cas(std::uint32_t process, Time begin, Time end, std::uint64_t expected,
              std::uint64_t desired, std::uint64_t result) {
    return {0, process, Kind::cmp_swap, Answer::done, expected, desired, result, begin, end};
}

Operation answered(Operation operation, Answer answer) {
    operation.answer = answer;
    return operation;
}

/// The same operation without an answer; it may take effect until @end.
Operation lost(Operation operation, Time end = never) {
    operation.answer = Answer::unknown;
    operation.end = end;
    return operation;
}

Operation death(std::uint32_t process, Time begin, Time end = never) {
    return lost({0, process, Kind::die, Answer::unknown, 0, 0, 0, begin, end}, end);
}

Verdict verdict(const std::vector<Operation>& history) { return check(history).verdict; }

bool right(const std::vector<Operation>& history) {
    return verdict(history) == Verdict::linearizable;
}
bool wrong(const std::vector<Operation>& history) {
    return verdict(history) == Verdict::not_linearizable;
}

const std::vector<Kind> words{Kind::fetch_add, Kind::cmp_swap, Kind::swap, Kind::fetch_and,
                              Kind::fetch_or};
const std::vector<Kind> registers{Kind::read, Kind::write};
const std::vector<Kind> locks{Kind::lock, Kind::trylock, Kind::unlock};
const std::vector<Kind> shared_locks{Kind::lock, Kind::lock_shared, Kind::unlock_shared};

}  // namespace

TEST_CASE("one after the other") {
    CHECK(right({}));
    CHECK(right({op(1, 0, 1, Kind::read, 0, 0)}));
    CHECK(wrong({op(1, 0, 1, Kind::read, 0, 1)}));
    CHECK(right({op(1, 0, 1, Kind::write, 5), op(2, 2, 3, Kind::fetch_add, 2, 5),
                 op(1, 4, 5, Kind::swap, 12, 7), op(2, 6, 7, Kind::fetch_and, 6, 12),
                 op(1, 8, 9, Kind::fetch_or, 3, 4), cas(2, 10, 11, 7, 1, 7),
                 cas(2, 12, 13, 7, 2, 1), op(1, 14, 15, Kind::read, 0, 1)}));
    CHECK(
        right({op(1, 0, 1, Kind::fetch_add, ~std::uint64_t{0}, 0),
               op(1, 2, 3, Kind::fetch_add, 1, ~std::uint64_t{0}), op(1, 4, 5, Kind::read, 0, 0)}));
}

TEST_CASE("overlapping operations have no order") {
    CHECK(right({op(1, 0, 10, Kind::fetch_add, 1, 1), op(2, 0, 10, Kind::fetch_add, 1, 0)}));
    CHECK(right({op(1, 0, 10, Kind::write, 1), op(2, 2, 3, Kind::read, 0, 0),
                 op(2, 4, 5, Kind::read, 0, 1)}));
    CHECK(right({op(1, 0, 5, Kind::write, 1), op(2, 5, 6, Kind::read, 0, 0)}));  // they touch
    // Wrong, because each operation would have to come after the other.
    CHECK(wrong({op(1, 0, 10, Kind::fetch_add, 1, 1), op(2, 0, 10, Kind::fetch_add, 1, 1)}));
}

TEST_CASE("wrong: a lost update") {
    CHECK(wrong({op(1, 0, 10, Kind::fetch_add, 1, 0), op(2, 0, 10, Kind::fetch_add, 1, 0)}));
    CHECK(wrong({op(1, 0, 1, Kind::fetch_add, 1, 0), op(2, 2, 3, Kind::read, 0, 0)}));
    CHECK(wrong({op(1, 0, 10, Kind::fetch_or, 1, 0), op(2, 0, 10, Kind::fetch_or, 2, 0)}));
    CHECK(wrong({op(1, 0, 4, Kind::fetch_or, 1, 0), op(2, 0, 4, Kind::fetch_or, 2, 1),
                 op(1, 5, 6, Kind::fetch_and, 0, 2)}));
    CHECK(wrong({op(1, 0, 10, Kind::swap, 1, 0), op(2, 0, 10, Kind::swap, 2, 0)}));
    CHECK(wrong({cas(1, 0, 10, 0, 1, 0), cas(2, 0, 10, 0, 2, 0)}));  // both succeed
}

TEST_CASE("wrong: a stale value") {
    CHECK(wrong({op(1, 0, 1, Kind::write, 1), op(2, 2, 3, Kind::read, 0, 0)}));
    // One process sees the new value, and then another one the old.
    CHECK(wrong({op(1, 0, 10, Kind::write, 1), op(2, 1, 2, Kind::read, 0, 1),
                 op(3, 3, 4, Kind::read, 0, 0)}));
    CHECK(wrong({op(1, 0, 1, Kind::fetch_add, 3, 0), cas(2, 2, 3, 0, 1, 0)}));
    CHECK(wrong(
        {op(1, 0, 1, Kind::write, 1), op(1, 2, 3, Kind::write, 2), op(2, 4, 5, Kind::swap, 9, 1)}));
}

TEST_CASE("wrong: a value out of nowhere") {
    CHECK(wrong({op(1, 0, 9, Kind::write, 1), op(2, 0, 9, Kind::read, 0, 2)}));
    CHECK(wrong({op(1, 5, 9, Kind::write, 1), op(2, 0, 4, Kind::read, 0, 1)}));  // too early
    CHECK(wrong({cas(1, 0, 9, 5, 1, 0), op(2, 10, 11, Kind::read, 0, 1)}));      // cas failed
    CHECK(wrong({cas(1, 0, 9, 0, 1, 0), op(2, 10, 11, Kind::read, 0, 0)}));      // cas succeeded
    CHECK(wrong({op(1, 0, 9, Kind::fetch_and, 1, 0), op(2, 10, 11, Kind::read, 0, 1)}));
}

TEST_CASE("a write that would change nothing now may be needed later") {
    CHECK(right({lost(op(1, 0, 1, Kind::fetch_add, 1)), op(2, 0, 9, Kind::fetch_add, 1, 1),
                 op(3, 2, 5, Kind::write, 1), op(4, 6, 9, Kind::read, 0, 1)}));
}

TEST_CASE("an operation without a known end") {
    const Operation add = lost(op(1, 0, 1, Kind::fetch_add, 1));
    CHECK(right({add, op(2, 2, 3, Kind::read, 0, 0)}));
    CHECK(right({add, op(2, 2, 3, Kind::read, 0, 1)}));
    CHECK(right({add, op(2, 2, 3, Kind::read, 0, 0), op(2, 4, 5, Kind::read, 0, 1)}));  // late
    SECTION("wrong: it happens twice, or before it begins, or does something else") {
        CHECK(wrong({add, op(2, 2, 3, Kind::read, 0, 2)}));
        CHECK(wrong({lost(op(1, 5, 9, Kind::fetch_add, 1)), op(2, 2, 3, Kind::read, 0, 1)}));
        CHECK(wrong({add, op(2, 2, 3, Kind::swap, 5, 1), op(2, 4, 5, Kind::read, 0, 6)}));
        CHECK(wrong({add, op(2, 2, 3, Kind::swap, 5, 0), op(2, 4, 5, Kind::read, 0, 1)}));
    }
    SECTION("wrong: it is undone") {
        CHECK(wrong({add, op(2, 2, 3, Kind::read, 0, 1), op(2, 4, 5, Kind::read, 0, 0)}));
    }
    SECTION("it may have an end, but no answer") {
        CHECK(right({lost(add, 3), op(2, 2, 5, Kind::read, 0, 1)}));
        CHECK(right({lost(add, 3), op(2, 4, 5, Kind::read, 0, 0), op(2, 6, 7, Kind::read, 0, 0)}));
        CHECK(wrong({lost(add, 3), op(2, 4, 5, Kind::read, 0, 0), op(2, 6, 7, Kind::read, 0, 1)}));
    }
    SECTION("several such operations") {
        CHECK(right({add, add, add, op(2, 2, 3, Kind::read, 0, 2), op(2, 4, 5, Kind::read, 0, 3)}));
        CHECK(wrong({add, add, add, op(2, 2, 3, Kind::read, 0, 4)}));
        CHECK(right({lost(cas(1, 0, 1, 0, 7, 0)), lost(cas(2, 0, 1, 7, 8, 0)),
                     op(3, 2, 3, Kind::read, 0, 8)}));
        CHECK(wrong({lost(cas(1, 0, 1, 1, 7, 0)), lost(cas(2, 0, 1, 7, 8, 0)),
                     op(3, 2, 3, Kind::read, 0, 8)}));
    }
}

TEST_CASE("a lock") {
    const Operation first = op(1, 0, 1, Kind::lock);
    CHECK(right({first, op(1, 2, 3, Kind::unlock), op(2, 0, 9, Kind::lock)}));
    CHECK(right({first, op(1, 2, 5, Kind::unlock), op(2, 3, 4, Kind::lock)}));
    CHECK(right({first, answered(op(2, 2, 3, Kind::trylock), Answer::busy)}));
    CHECK(right({first, answered(op(2, 2, 3, Kind::unlock), Answer::not_owner)}));
    SECTION("wrong: granted twice") {
        CHECK(wrong({first, op(2, 0, 9, Kind::lock)}));
        CHECK(wrong({first, op(2, 2, 3, Kind::trylock), op(1, 4, 5, Kind::unlock)}));
        CHECK(wrong({first, op(1, 2, 3, Kind::lock)}));
    }
    SECTION("wrong: unlocked by another process, or while free, or twice") {
        CHECK(wrong({first, op(2, 2, 3, Kind::unlock)}));
        CHECK(wrong({op(1, 0, 1, Kind::unlock)}));
        CHECK(wrong({first, op(1, 2, 3, Kind::unlock), op(1, 4, 5, Kind::unlock)}));
        CHECK(wrong({first, answered(op(1, 2, 3, Kind::unlock), Answer::not_owner)}));
    }
    SECTION("wrong: busy while it was free") {
        CHECK(wrong({answered(op(1, 0, 1, Kind::trylock), Answer::busy)}));
        CHECK(wrong({first, op(1, 2, 3, Kind::unlock),
                     answered(op(2, 4, 5, Kind::trylock), Answer::busy)}));
    }
}

TEST_CASE("the holder of a lock dies") {
    const Operation first = op(1, 0, 1, Kind::lock);
    const Operation told = answered(op(2, 4, 9, Kind::lock), Answer::owner_dead);
    CHECK(right({first, death(1, 3), told}));
    CHECK(
        right({first, death(1, 3), told, op(2, 10, 11, Kind::unlock), op(3, 12, 13, Kind::lock)}));
    CHECK(right({first, death(1, 3),
                 answered(op(2, 4, 9, Kind::trylock), Answer::busy)}));  // not yet noticed
    CHECK(right({first, death(1, 3), answered(op(2, 4, 9, Kind::trylock), Answer::owner_dead)}));
    SECTION("wrong: owner_dead is missing, or comes twice, or without a death") {
        CHECK(wrong({first, death(1, 3), op(2, 4, 9, Kind::lock)}));
        CHECK(wrong({first, death(1, 3), told, op(2, 10, 11, Kind::unlock),
                     answered(op(3, 12, 13, Kind::lock), Answer::owner_dead)}));
        CHECK(wrong({first, op(1, 2, 3, Kind::unlock), told}));
        CHECK(wrong({first, op(1, 2, 3, Kind::unlock), death(1, 3), told}));
        CHECK(wrong({death(1, 3), told}));
        CHECK(wrong({first, death(3, 3), told}));  // another process died
    }
    SECTION("wrong: free before the death, or not at its known end") {
        CHECK(wrong({first, death(1, 10), told}));
        CHECK(wrong({first, answered(death(1, 3, 5), Answer::done),
                     answered(op(2, 6, 9, Kind::trylock), Answer::busy)}));
    }
    SECTION("killed in lock: before or after it got the lock") {
        const Operation tries = lost(op(1, 0, 1, Kind::lock));
        CHECK(right({tries, death(1, 3), told}));
        CHECK(right({tries, death(1, 3), op(2, 4, 9, Kind::lock)}));
        CHECK(right({tries, answered(death(1, 3, 5), Answer::done), op(2, 6, 9, Kind::lock)}));
    }
    SECTION("killed in unlock: before or after it took effect") {
        const Operation tries = lost(op(1, 2, 3, Kind::unlock));
        CHECK(right({first, tries, death(1, 3), told}));
        CHECK(right({first, tries, death(1, 3), op(2, 4, 9, Kind::lock)}));
        CHECK(wrong({first, tries, death(1, 3), op(2, 4, 9, Kind::lock),
                     answered(op(3, 10, 11, Kind::lock), Answer::owner_dead)}));
    }
    SECTION("wrong: a process gets the lock after the end of its death") {
        const Operation tries = lost(op(1, 0, 1, Kind::lock));
        CHECK(
            wrong({op(2, 0, 1, Kind::lock), tries, answered(death(1, 3, 5), Answer::done),
                   op(2, 6, 7, Kind::unlock), answered(op(3, 8, 9, Kind::trylock), Answer::busy)}));
        CHECK(right({op(2, 0, 1, Kind::lock), tries, death(1, 3), op(2, 6, 7, Kind::unlock),
                     answered(op(3, 8, 9, Kind::trylock), Answer::busy)}));
    }
    SECTION("a process that goes on after a time-out may have the lock") {
        const Operation tries = lost(op(2, 2, 3, Kind::lock));
        CHECK(
            right({first, tries, op(1, 4, 5, Kind::unlock),
                   answered(op(3, 6, 7, Kind::trylock), Answer::busy), op(2, 8, 9, Kind::unlock)}));
        CHECK(right({first, tries, op(1, 4, 5, Kind::unlock), op(3, 6, 7, Kind::trylock)}));
    }
}

TEST_CASE("a lock that is shared") {
    const Operation first = op(1, 0, 1, Kind::lock_shared);
    const Operation second = op(2, 2, 3, Kind::lock_shared);
    CHECK(right({first, second, op(1, 4, 5, Kind::unlock_shared), op(2, 6, 7, Kind::unlock_shared),
                 op(3, 0, 9, Kind::lock)}));
    CHECK(right({first, answered(op(2, 2, 3, Kind::trylock), Answer::busy)}));
    CHECK(right({first, answered(op(2, 2, 3, Kind::unlock_shared), Answer::not_owner)}));
    SECTION("wrong: shared beside an exclusive holder") {
        CHECK(wrong({first, second, op(1, 4, 5, Kind::unlock_shared), op(3, 0, 9, Kind::lock)}));
        CHECK(wrong({op(1, 0, 1, Kind::lock), op(2, 2, 3, Kind::lock_shared)}));
        CHECK(wrong({first, op(1, 2, 3, Kind::lock)}));
    }
    SECTION("wrong: unlocked by another process, or in the wrong mode") {
        CHECK(wrong({first, op(2, 2, 3, Kind::unlock_shared)}));
        CHECK(wrong({first, op(1, 2, 3, Kind::unlock)}));
        CHECK(wrong({op(1, 0, 1, Kind::lock), op(1, 2, 3, Kind::unlock_shared)}));
    }
    SECTION("wrong: busy while it is free") {
        CHECK(wrong({answered(op(1, 0, 1, Kind::lock_shared), Answer::busy)}));
    }
    SECTION("the death of a shared holder is not reported") {
        CHECK(right({first, second, death(1, 4), op(2, 6, 7, Kind::unlock_shared),
                     op(3, 8, 9, Kind::lock)}));
        CHECK(wrong({first, death(1, 4), answered(op(3, 8, 9, Kind::lock), Answer::owner_dead)}));
        CHECK(wrong({first, answered(death(1, 4, 5), Answer::done),
                     answered(op(3, 8, 9, Kind::trylock), Answer::busy)}));
    }
    SECTION("the death of an exclusive holder is reported up to the next exclusive holder") {
        const Operation alone = op(3, 0, 1, Kind::lock);
        const Operation told = answered(op(1, 4, 5, Kind::lock_shared), Answer::owner_dead);
        const Operation told_too = answered(op(2, 4, 5, Kind::lock_shared), Answer::owner_dead);
        CHECK(right({alone, death(3, 2), told, told_too}));
        CHECK(wrong({alone, death(3, 2), told, op(2, 6, 7, Kind::lock_shared)}));
        CHECK(right({alone, death(3, 2), told, op(1, 6, 7, Kind::unlock_shared),
                     answered(op(2, 8, 9, Kind::lock), Answer::owner_dead),
                     op(2, 10, 11, Kind::unlock), op(1, 12, 13, Kind::lock_shared)}));
    }
}

TEST_CASE("each word is checked separately") {
    auto at = [](std::uint64_t key, Operation operation) {
        operation.key = key;
        return operation;
    };
    std::vector<Operation> history{at(8, op(1, 0, 1, Kind::write, 1)),
                                   at(16, op(1, 2, 3, Kind::read, 0, 0)),
                                   at(8, op(1, 4, 5, Kind::read, 0, 1))};
    CHECK(check_all(history).verdict == Verdict::linearizable);
    CHECK(check_all(history, {{16, {3}}}).verdict == Verdict::not_linearizable);
    history.push_back(at(24, op(1, 6, 7, Kind::lock)));
    CHECK(check_all(history).verdict == Verdict::linearizable);
    history.push_back(at(16, op(1, 8, 9, Kind::read, 0, 1)));
    const Result result = check_all(history);
    CHECK(result.verdict == Verdict::not_linearizable);
    CHECK_THAT(result.explanation,
               Catch::Contains("word 0x10") && Catch::Contains("[8, 9] process 1: read -> 0x1"));
}

TEST_CASE("histories that make no sense are refused") {
    CHECK_THROWS_AS(verdict({op(1, 5, 4, Kind::read)}), std::invalid_argument);
    CHECK_THROWS_AS(verdict({op(1, 5, never, Kind::read)}), std::invalid_argument);
    CHECK_THROWS_AS(verdict({op(1, 0, 1, Kind::read), op(1, 2, 3, Kind::lock)}),
                    std::invalid_argument);
    CHECK_THROWS_AS(verdict({death(1, 0), death(1, 5)}), std::invalid_argument);
    CHECK_THROWS_AS(verdict({op(64, 0, 1, Kind::lock_shared)}), std::invalid_argument);
    CHECK_THROWS_AS(verdict({death(1, 0, 3), op(1, 4, 5, Kind::lock)}), std::invalid_argument);
    CHECK_THROWS_AS(verdict({death(1, 0, 3), op(1, 2, 4, Kind::lock)}), std::invalid_argument);
}

TEST_CASE("small histories against brute force") {
    const auto lock = GENERATE(false, true);
    std::mt19937_64 random(4711 + lock);
    unsigned right_ones = 0;
    constexpr unsigned rounds = 30'000;
    for (unsigned i = 0; i < rounds; i++) {
        const auto history = any_history(1 + i % 7, lock, random);
        const bool wanted = brute_force(history);
        right_ones += wanted;
        if (right(history) == wanted)
            continue;
        for (const Operation& operation : history)
            UNSCOPED_INFO(to_string(operation));
        FAIL("brute force says " << wanted);
    }
    // Both verdicts are frequent enough.
    CHECK(right_ones > rounds / 20);
    CHECK(right_ones < rounds - rounds / 20);
}

TEST_CASE("small right histories with one answer changed, against brute force") {
    std::mt19937_64 random(815);
    unsigned found = 0;
    for (unsigned i = 0; i < 3000; i++) {
        auto history = right_history({3, 7, i % 2 ? words : registers, 4, 0.1}, random);
        REQUIRE(right(history));
        history[random() % history.size()].result ^= 1 + random() % 3;
        const bool wanted = brute_force(history);
        found += !wanted;
        REQUIRE(right(history) == wanted);
    }
    CHECK(found > 1000);
}

TEST_CASE("large right histories") {
    struct Case {
        const char* name;
        Shape shape;
    };
    const auto one = GENERATE(Case{"words", {24, 5000, words, 1000, 0}},
                              Case{"words, few values", {24, 5000, words, 4, 0}},
                              Case{"counters", {24, 20'000, {Kind::fetch_add}, 2, 0}},
                              Case{"words, some answers lost", {24, 5000, words, 1 << 20, 0.02}},
                              Case{"registers", {12, 5000, registers, 1 << 20, 0}},
                              Case{"locks", {24, 20'000, locks, 1, 0}},
                              Case{"shared locks", {24, 5000, shared_locks, 1, 0}},
                              Case{"locks, processes die", {24, 5000, locks, 1, 0.01}});
    CAPTURE(one.name);
    std::mt19937_64 random(99);
    const auto history = right_history(one.shape, random);
    const Result result = check(history);
    CHECK(result.explanation.empty());
    CHECK(result.verdict == Verdict::linearizable);
    // Independent of the machine: there are few dead ends.
    CHECK(result.configurations < 10 * history.size());
}

TEST_CASE("large histories with one wrong answer") {
    std::mt19937_64 random(1234);
    for (std::ptrdiff_t round = 0; round < 10; round++) {
        auto history = right_history({24, 3000, words, 1 << 20, 0.001}, random);
        auto& victim =
            *std::find_if(history.begin() + 250 * round, history.end(),
                          [](const Operation& operation) { return !operation.optional(); });
        victim.result ^= 1 << 25;  // never in the word
        const Result result = check(history);
        CHECK(result.verdict == Verdict::not_linearizable);
        CHECK_THAT(result.explanation, Catch::StartsWith("cannot have happened before its end"));
    }
}

TEST_CASE("a search that takes too long says so") {
    std::mt19937_64 random(5);
    const auto history = right_history({24, 2000, words, 1000, 0}, random);
    CHECK(check(history, {}, 100).verdict == Verdict::undecided);
}
