// SPDX-License-Identifier: MIT
#include "support.hpp"

#include <algorithm>
#include <functional>

using namespace lite_test;

namespace {

using Table = std::vector<lite_extent>;

constexpr std::uint32_t kShares = 5;

std::uint64_t length_of(const Table& table) { return table.back().start + table.back().length; }

// A table like the module's: share after share, in pieces of whole pages (except the last) that do
// not touch their neighbours.
Table random_table(Random& random, std::size_t pieces) {
    Table table;
    std::uint64_t start = 0;
    std::uint32_t share = 0;
    for (std::size_t i = 0; i < pieces; ++i) {
        const auto length = i + 1 == pieces ? random.between(1, LITE_PAGE_SIZE)
                                            : LITE_PAGE_SIZE << random.between(0, 10);
        // At even multiples of 64 MB, in no particular order.
        const auto addr = 0xffff888000000000ULL + (random.between(0, 1 << 20) << 26);
        table.push_back({start, length, addr, share});
        start += length;
        if (share + 1 < kShares && random.between(0, 3) == 0)
            ++share;
    }
    return table;
}

std::uint32_t find_linear(const Table& table, std::uint64_t offset) {
    for (std::uint32_t i = 0; i < table.size(); ++i) {
        if (offset >= table[i].start && offset - table[i].start < table[i].length)
            return i;
    }
    return ~0U;
}

int check(const Table& table, std::uint64_t length, std::uint32_t shares = kShares) {
    return lite_extent_table_check(table.data(), static_cast<std::uint32_t>(table.size()), length,
                                   shares);
}

}  // namespace

TEST_CASE("extents: look-up agrees with a linear scan") {
    Random random;
    for (int round = 0; round < 300; ++round) {
        const auto table = random_table(random, random.between(1, 200));
        const auto n = static_cast<std::uint32_t>(table.size());
        CAPTURE(seed(), round, n);
        std::vector<std::uint64_t> offsets;
        for (const auto& e : table) {
            offsets.push_back(e.start);
            offsets.push_back(e.start + e.length - 1);
            offsets.push_back(random.between(0, length_of(table) - 1));
        }
        const bool all_agree =
            std::all_of(offsets.begin(), offsets.end(), [&](std::uint64_t offset) {
                return lite_extent_find(table.data(), n, offset) == find_linear(table, offset);
            });
        REQUIRE(all_agree);
    }
}

TEST_CASE("extents: look-up in a table of one") {
    const lite_extent only{0, 1, 0x1000, 0};
    CHECK(lite_extent_find(&only, 1, 0) == 0);
}

TEST_CASE("extents: sound tables are accepted") {
    Random random;
    for (int round = 0; round < 300; ++round) {
        const auto table = random_table(random, random.between(1, 100));
        CAPTURE(seed(), round);
        REQUIRE(check(table, length_of(table)) == 0);
    }
}

TEST_CASE("extents: each single error in a table is -EPROTO") {
    struct Damage {
        const char* what;
        std::function<void(Table&, std::size_t)> inflict;
    };
    const std::vector<Damage> damages{
        {"hole", [](Table& t, std::size_t i) { t[i].start += 1; }},
        {"overlap", [](Table& t, std::size_t i) { t[i].start -= 1; }},
        {"empty piece", [](Table& t, std::size_t i) { t[i].length = 0; }},
        {"longer piece", [](Table& t, std::size_t i) { t[i].length += 1; }},
        {"length that wraps", [](Table& t, std::size_t i) { t[i].length = ~0ULL; }},
        {"address that wraps", [](Table& t, std::size_t i) { t[i].addr = 0 - t[i].length + 1; }},
        {"unknown share", [](Table& t, std::size_t i) { t[i].share = kShares; }},
        {"share beyond all", [](Table& t, std::size_t i) { t[i].share = ~0U; }},
        {"two pieces exchanged",
         [](Table& t, std::size_t i) { std::swap(t[i], t[i ? i - 1 : 1]); }},
        {"piece missing",
         [](Table& t, std::size_t i) { t.erase(t.begin() + static_cast<std::ptrdiff_t>(i)); }},
    };
    Random random;
    for (const auto& damage : damages) {
        for (int round = 0; round < 100; ++round) {
            auto table = random_table(random, random.between(2, 50));
            const auto length = length_of(table);
            const auto at = random.between(0, table.size() - 1);
            CAPTURE(seed(), damage.what, round, at, table.size());
            damage.inflict(table, at);
            REQUIRE(check(table, length) == -EPROTO);
        }
    }
}

TEST_CASE("extents: shares may come in any order, and again") {
    const Table table{{0, 4096, 0x10000, 1}, {4096, 4096, 0x40000, 0}, {8192, 4096, 0x50000, 1}};
    CHECK(check(table, 12288) == 0);
}

TEST_CASE("extents: the table must cover exactly the length") {
    const Table table{{0, 4096, 0x10000, 0}, {4096, 100, 0x40000, 1}};
    CHECK(check(table, 4196) == 0);
    for (const auto wrong : {0ULL, 1ULL, 4096ULL, 4195ULL, 4197ULL, ~0ULL}) {
        CAPTURE(wrong);
        CHECK(check(table, wrong) == -EPROTO);
    }
    CHECK(lite_extent_table_check(table.data(), 0, 0, kShares) == -EPROTO);
    CHECK(lite_extent_table_check(table.data(), 0, 4196, kShares) == -EPROTO);
    CHECK(check(table, 4196, 1) == -EPROTO);
    CHECK(check(table, 4196, 0) == -EPROTO);
}

TEST_CASE("extents: the last byte of the address space is an address") {
    CHECK(check({{0, 4096, ~0ULL - 4095, 0}}, 4096) == 0);
    CHECK(check({{0, 4097, ~0ULL - 4095, 0}}, 4097) == -EPROTO);
}

TEST_CASE("extents: appending merges pieces that touch, and no others") {
    std::vector<lite_extent> table(4);
    std::uint32_t n = 0;
    lite_extent_append(table.data(), &n, 0x10000, 0x1000, 0);
    REQUIRE(n == 1);
    lite_extent_append(table.data(), &n, 0x11000, 0x2000, 0);  // touches
    REQUIRE(n == 1);
    CHECK(table[0].start == 0);
    CHECK(table[0].addr == 0x10000);
    CHECK(table[0].length == 0x3000);
    lite_extent_append(table.data(), &n, 0x13000, 0x1000, 1);  // touches, but on another node
    REQUIRE(n == 2);
    CHECK(table[1].start == 0x3000);
    CHECK(table[1].share == 1);
    lite_extent_append(table.data(), &n, 0x12000, 0x1000, 1);  // lies before
    REQUIRE(n == 3);
    CHECK(table[2].start == 0x4000);
    lite_extent_append(table.data(), &n, 0x13001, 0x1000, 1);  // a byte too far
    REQUIRE(n == 4);
}

TEST_CASE("extents: a table built by appending is sound and maps every byte to its address") {
    Random random;
    for (int round = 0; round < 200; ++round) {
        CAPTURE(seed(), round);
        // The appended pieces, unmerged.
        Table pieces;
        std::uint64_t start = 0;
        std::uint64_t addr = 0x100000;
        std::uint32_t share = 0;
        for (auto i = random.between(1, 60); i > 0; --i) {
            const auto length = LITE_PAGE_SIZE * random.between(1, 8);
            if (random.between(0, 1))
                addr += LITE_PAGE_SIZE * random.between(1, 8);
            if (share + 1 < kShares && random.between(0, 9) == 0)
                ++share;
            pieces.push_back({start, length, addr, share});
            start += length;
            addr += length;
        }
        Table built(pieces.size());
        std::uint32_t n = 0;
        for (const auto& p : pieces)
            lite_extent_append(built.data(), &n, p.addr, p.length, p.share);
        built.resize(n);

        REQUIRE(check(built, start) == 0);
        for (const auto& p : pieces) {
            for (const auto offset : {p.start, p.start + p.length - 1}) {
                const auto& e = built[lite_extent_find(built.data(), n, offset)];
                REQUIRE(e.share == p.share);
                REQUIRE(e.addr + (offset - e.start) == p.addr + (offset - p.start));
            }
        }
    }
}
