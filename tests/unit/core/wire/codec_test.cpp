// SPDX-License-Identifier: MIT
// The small encodings: immediate data, handles, shares.
#include "../support.hpp"

using namespace lite_test;

TEST_CASE("imm: every kind and slot survives the round trip") {
    for (const auto kind : {LITE_IMM_REQUEST, LITE_IMM_REPLY}) {
        for (std::uint32_t slot = 0; slot <= 0xffff; ++slot) {
            lite_imm_kind kind_back{};
            std::uint16_t ring_back = 1;
            std::uint16_t slot_back = 0;
            const auto imm = lite_imm_encode(kind, 0, static_cast<std::uint16_t>(slot));
            lite_imm_decode(imm, &kind_back, &ring_back, &slot_back);
            if (kind_back != kind || ring_back != 0 || slot_back != slot)
                FAIL("kind " << kind << " slot " << slot << " imm " << imm);
        }
    }
}

TEST_CASE("imm: no bit is lost, whatever a peer sends") {
    Random random;
    for (int i = 0; i < 1000000; ++i) {
        // C++ has no other values of the enumeration.
        const auto imm = static_cast<std::uint32_t>(random.bits()) & 0x7fffffff;
        lite_imm_kind kind{};
        std::uint16_t ring = 0;
        std::uint16_t slot = 0;
        lite_imm_decode(imm, &kind, &ring, &slot);
        if (lite_imm_encode(kind, ring, slot) != imm)
            FAIL("seed " << seed() << " imm " << imm);
    }
}

TEST_CASE("handles: are never 0, keep their index, and differ by tag") {
    Random random;
    for (int i = 0; i < 100000; ++i) {
        const auto index = static_cast<std::uint32_t>(random.between(1, ~0U));
        const auto tag = static_cast<std::uint32_t>(random.bits());
        const auto lh = lite_handle_make(index, tag);
        REQUIRE(lh != 0);
        REQUIRE(lite_handle_index(lh) == index);
        REQUIRE(lite_handle_make(index, tag + 1) != lh);
    }
}

TEST_CASE("shares: are contiguous, equal but for the end, of whole pages, and complete") {
    Random random;
    std::vector<std::uint64_t> lengths{
        1, 2, 4095, 4096, 4097, 8191, LITE_LMR_SIZE_MAX - 1, LITE_LMR_SIZE_MAX};
    for (int i = 0; i < 3000; ++i)
        lengths.push_back(1 + (random.magnitude() >> 18));
    for (const auto length : lengths) {
        for (const std::uint32_t n : {1U, 2U, 3U, 5U, 63U, 64U}) {
            CAPTURE(seed(), length, n);
            const auto first = lite_spread_share(length, n, 0);
            std::uint64_t sum = 0;
            bool ended = false;
            for (std::uint32_t i = 0; i < n; ++i) {
                const auto share = lite_spread_share(length, n, i);
                // Full shares, then at most one partial share, then empty ones.
                REQUIRE(share <= first);
                REQUIRE((!ended || share == 0));
                REQUIRE((share == first || sum + share == length));
                REQUIRE((share % LITE_PAGE_SIZE == 0 || sum + share == length));
                ended = share < first;
                sum += share;
            }
            REQUIRE(sum == length);
            REQUIRE(first > 0);
        }
    }
}

TEST_CASE("shares: large regions are shared fairly") {
    for (const std::uint32_t n : {2U, 3U, 7U, 64U}) {
        const std::uint64_t length = 1ULL << 30;
        const auto first = lite_spread_share(length, n, 0);
        const auto last = lite_spread_share(length, n, n - 1);
        CHECK(first - last <= n * LITE_PAGE_SIZE);
    }
}
