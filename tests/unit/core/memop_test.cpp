// SPDX-License-Identifier: MIT
#include "support.hpp"

#include <algorithm>

using namespace lite_test;

namespace {

using Text = std::vector<unsigned char>;

std::uint64_t word_of(const Text& pattern) {
    std::uint64_t word = 0;
    for (std::size_t i = pattern.size(); i-- > 0;)
        word = word << 8 | pattern[i];
    return word;
}

Text random_text(Random& random, std::size_t length) {
    Text text(length);
    for (auto& byte : text)
        byte = static_cast<unsigned char>(random.bits());
    return text;
}

// Extents of random lengths, in shares of some extents each.
std::vector<lite_extent> random_table(Random& random) {
    std::vector<lite_extent> table(random.between(1, 20));
    std::uint64_t start = 0;
    std::uint32_t share = 0;
    for (auto& e : table) {
        e = {start, random.between(1, 30), random.bits() >> 1, share};
        start += e.length;
        share += random.between(0, 2) == 0;
    }
    return table;
}

}  // namespace

TEST_CASE("patterns: the valid patterns of SET") {
    CHECK(lite_pattern_check(0, 0) == -EINVAL);
    CHECK(lite_pattern_check(0, 9) == -EINVAL);
    CHECK(lite_pattern_check(0, ~0ULL) == -EINVAL);
    CHECK(lite_pattern_check(0xff, 1) == 0);
    CHECK(lite_pattern_check(0x100, 1) == -EINVAL);
    CHECK(lite_pattern_check(~0ULL >> 8, 7) == 0);
    CHECK(lite_pattern_check(~0ULL, 7) == -EINVAL);
    CHECK(lite_pattern_check(~0ULL, 8) == 0);
}

TEST_CASE("patterns: filling in parts gives the same bytes as filling at once") {
    Random random;
    for (std::uint32_t length = 1; length <= LITE_PATTERN_MAX; ++length) {
        for (int i = 0; i < 60; ++i) {
            const auto pattern = random_text(random, length);
            const std::size_t size = random.between(1, 2000);
            Text memory(size + 2, 0xee);
            for (std::size_t at = 0; at < size;) {
                const std::size_t n = random.between(1, size - at);
                lite_pattern_fill(memory.data() + 1 + at, n,
                                  lite_pattern_rotate(word_of(pattern), length, at), length);
                at += n;
            }
            CAPTURE(seed(), length, size);
            bool right = memory.front() == 0xee && memory.back() == 0xee;
            for (std::size_t at = 0; at < size; ++at)
                right &= memory[1 + at] == pattern[at % length];
            REQUIRE(right);
            CHECK(lite_pattern_check(lite_pattern_rotate(word_of(pattern), length, random.bits()),
                                     length) == 0);
        }
    }
}

TEST_CASE("runs: the bytes of one share, forwards and backwards") {
    Random random;
    for (int i = 0; i < 2000; ++i) {
        const auto table = random_table(random);
        const auto n = static_cast<std::uint32_t>(table.size());
        std::vector<std::uint32_t> share;
        for (const auto& e : table)
            share.insert(share.end(), e.length, e.share);
        const auto max = random.between(1, share.size() + 10);
        const auto at = random.between(0, share.size() - 1);
        std::uint64_t run = 0;
        while (run < max && at + run < share.size() && share[at + run] == share[at])
            ++run;
        CAPTURE(seed(), i, at, max);
        REQUIRE(lite_extent_run(table.data(), n, at, max) == run);
        run = 0;
        while (run < max && run <= at && share[at - run] == share[at])
            ++run;
        REQUIRE(lite_extent_run_back(table.data(), n, at + 1, max) == run);
    }
}

TEST_CASE("copies: overlap, and direction") {
    // A copy must go backwards exactly if a bytewise copy forwards would be wrong.
    for (std::uint64_t to = 0; to < 8; ++to) {
        for (std::uint64_t from = 0; from < 8; ++from) {
            for (std::uint64_t length = 1; length < 8; ++length) {
                std::vector<int> bytes(16);
                for (std::size_t i = 0; i < bytes.size(); ++i)
                    bytes[i] = static_cast<int>(i);
                auto model = bytes;
                std::memmove(&model[to], &bytes[from], length * sizeof(int));
                const bool backward = lite_copy_is_backward(to, from, length);
                for (std::uint64_t i = 0; i < length; ++i) {
                    const auto at = backward ? length - 1 - i : i;
                    bytes[to + at] = bytes[from + at];
                }
                CAPTURE(to, from, length);
                CHECK(bytes == model);
                CHECK(lite_copy_overlaps(to, from, length) ==
                      (std::max(to, from) < std::min(to, from) + length));
            }
        }
    }
    CHECK_FALSE(lite_copy_overlaps(0, ~0ULL, 100));
    CHECK_FALSE(lite_copy_is_backward(~0ULL, 0, 100));
    CHECK(lite_copy_is_backward(~0ULL, 0, ~0ULL) == false);
}

TEST_CASE("differences: the first one, wherever it is") {
    Random random;
    for (int i = 0; i < 3000; ++i) {
        const std::size_t size = random.between(0, 80);
        auto a = random_text(random, size + 8);
        const std::size_t skew = random.between(0, 7);
        auto b = a;
        const std::size_t at = random.between(0, size);
        for (std::size_t k = at; k < size; ++k) {
            if (k == at || random.between(0, 1))
                b[skew + k] =
                    static_cast<unsigned char>(b[skew + k] ^ (1U << random.between(0, 7)));
        }
        CAPTURE(seed(), i, size, at);
        REQUIRE(lite_first_difference(a.data() + skew, b.data() + skew, size) == at);
    }
}

TEST_CASE("atomics: the new value of a word") {
    CHECK(lite_atomic_result(LITE_OP_SWAP, 12, 10) == 10);
    CHECK(lite_atomic_result(LITE_OP_FETCH_AND, 12, 10) == 8);
    CHECK(lite_atomic_result(LITE_OP_FETCH_OR, 12, 10) == 14);
}
