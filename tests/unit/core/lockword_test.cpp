// SPDX-License-Identifier: MIT
#include "support.hpp"

using namespace lite_test;

TEST_CASE("lock word: every holder survives the round trip") {
    Random random;
    for (int i = 0; i < 10000; ++i) {
        const auto node = static_cast<std::uint32_t>(random.between(1, LITE_NODE_ID_MAX));
        const auto ticket = static_cast<std::uint32_t>(random.between(1, LITE_TICKET_MAX));
        const auto incarnation = random.bits();
        const auto word = lite_lockword_held(node, incarnation, ticket);
        REQUIRE(lite_lockword_kind(word) == LITE_LOCKWORD_HELD);
        REQUIRE(lite_lockword_node(word) == node);
        REQUIRE(lite_lockword_ticket(word) == ticket);
        REQUIRE(lite_lockword_is_of(word, incarnation));
        REQUIRE(lite_lock_step(word) == LITE_LOCK_ASK);
    }
}

TEST_CASE("lock word: lives of a node differ") {
    // Incarnations are times in ns; lives may begin shortly after each other, or years apart.
    const std::uint64_t begin = 1790000000000000000ULL;
    int same = 0, all = 0;
    for (std::uint64_t apart = 1; apart < begin; apart = apart * 3 + 1)
        for (std::uint64_t i = 0; i < 1000; ++i, ++all) {
            const auto life = begin + i * 1000003;
            same += lite_lockword_is_of(lite_lockword_held(5, life, 9), life + apart);
        }
    // By chance, one pair in 2^18 is equal.
    CHECK(same <= all / 10000 + 2);
}

TEST_CASE("lock word: words of each kind") {
    CHECK(lite_lockword(LITE_LOCKWORD_FREE) == 0);
    for (const auto kind :
         {LITE_LOCKWORD_FREE, LITE_LOCKWORD_MANAGED, LITE_LOCKWORD_DIED, LITE_LOCKWORD_ENDED}) {
        const auto word = lite_lockword(kind);
        CHECK(lite_lockword_kind(word) == kind);
        // No other bit may be set.
        for (int bit = 0; bit < 61; ++bit)
            CHECK(lite_lockword_kind(word | 1ULL << bit) == LITE_LOCKWORD_OTHER);
    }
    CHECK(lite_lock_step(lite_lockword(LITE_LOCKWORD_FREE)) == LITE_LOCK_SWAP);
    CHECK(lite_lock_step(lite_lockword(LITE_LOCKWORD_DIED)) == LITE_LOCK_SWAP);
    CHECK(lite_lock_step(lite_lockword(LITE_LOCKWORD_MANAGED)) == LITE_LOCK_ASK);
    CHECK(lite_lock_step(lite_lockword(LITE_LOCKWORD_ENDED)) == LITE_LOCK_UNLOCKABLE);
}

TEST_CASE("lock word: other words are not taken for locks") {
    // A counter, a pointer, text, all ones; impossible holders and kinds.
    const std::vector<std::uint64_t> words = {1,
                                              0x7f0000001000,
                                              0xe76e697465657267,
                                              ~0ULL,
                                              std::uint64_t{LITE_LOCKWORD_HELD} << 61,
                                              lite_lockword_held(0, 5, 7),
                                              lite_lockword_held(3, 5, 0),
                                              std::uint64_t{5} << 61,
                                              std::uint64_t{6} << 61,
                                              std::uint64_t{7} << 61};
    for (const auto word : words) {
        CAPTURE(word);
        CHECK(lite_lockword_kind(word) == LITE_LOCKWORD_OTHER);
        CHECK(lite_lock_step(word) == LITE_LOCK_NONE);
    }
}

TEST_CASE("lock word: its value after each kind of release") {
    CHECK(lite_lock_after(LITE_LOCK_CLEAN) == 0);
    CHECK(lite_lock_after(LITE_LOCK_UNUSED) == 0);
    CHECK(lite_lockword_kind(lite_lock_after(LITE_LOCK_DEAD)) == LITE_LOCKWORD_DIED);
    CHECK(lite_lockword_kind(lite_lock_after(LITE_LOCK_BROKEN)) == LITE_LOCKWORD_ENDED);
}

TEST_CASE("lock: only shared holders fit together") {
    for (const bool shared : {false, true})
        for (const bool wants_shared : {false, true}) {
            CHECK(lite_lock_fits(false, shared, wants_shared));
            CHECK(lite_lock_fits(true, shared, wants_shared) == (shared && wants_shared));
        }
}
