// SPDX-License-Identifier: MIT
// Swap, fetch-and and fetch-or: alone, and mixed with the atomics that devices do.
#include "../data/fixture.hpp"

#include <algorithm>

using namespace lite_test;

TEST_CASE_METHOD(DataEverywhere, "words: the result of each operation on a word", "[memop]") {
    INFO(where.label);
    constexpr std::size_t kSize = 2 * kPage + 16;
    auto region = node.alloc({.length = kSize, .nodes = where.nodes});
    write_pattern(region, env().seed);
    auto model = make_pattern(kSize, env().seed);
    std::uint64_t next = env().seed;
    for (std::uint64_t offset = 0; offset + 8 <= kSize; offset += 8 * 57) {
        std::uint64_t word = 0;
        std::memcpy(&word, model.data() + offset, sizeof(word));
        next = mix(next);
        CHECK(region.fetch_and(offset, next) == word);
        word &= next;
        next = mix(next);
        CHECK(region.fetch_or(offset, next) == word);
        word |= next;
        next = mix(next);
        CHECK(region.exchange(offset, next) == word);
        CHECK(region.exchange(offset, next) == next);
        CHECK(region.fetch_add(offset, 1) == next);
        CHECK(region.fetch_or(offset, 0) == next + 1);
        CHECK(region.fetch_and(offset, ~0ULL) == next + 1);
        word = next + 1;
        std::memcpy(model.data() + offset, &word, sizeof(word));
    }
    std::vector<std::byte> now(kSize);
    region.read(0, std::span(now));
    CHECK(compare(now, model, 0).empty());
}
