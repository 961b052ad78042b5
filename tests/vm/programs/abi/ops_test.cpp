// SPDX-License-Identifier: MIT
// Operations: bounds, lengths, alignment. In local, remote and spread LMRs, since the paths differ.
#include "fixture.hpp"

#include <cstring>

using namespace lite_test;

namespace {

constexpr std::uint64_t kHuge = 1ULL << 63;
constexpr std::uint64_t kMax = ~0ULL;

struct Range {
    std::uint64_t offset;
    std::uint64_t length;
};

}  // namespace

TEST_CASE_METHOD(AbiEverywhere, "ops: ranges beyond the end are ERANGE", "[ops]") {
    INFO(where.label);
    const Range range = GENERATE(Range{kLength, 1}, Range{kLength - 1, 2}, Range{0, kLength + 1},
                                 Range{kLength + 1, 1}, Range{kLength + kPage, 8},
                                 Range{1ULL << 32, 1}, Range{kHuge, 1}, Range{kMax - 7, 8});
    INFO("offset " << range.offset << " length " << range.length);
    Mapping big(kLength + 2 * kPage);
    CHECK(dev(read_args(lh, range.offset, big.data(), range.length)) == err(ERANGE));
    CHECK(dev(write_args(lh, range.offset, big.data(), range.length)) == err(ERANGE));
}

TEST_CASE_METHOD(AbiEverywhere, "ops: ranges that wrap around are ERANGE", "[ops]") {
    INFO(where.label);
    const Range range =
        GENERATE(Range{kMax, 1}, Range{kMax, 2}, Range{kMax - 7, 16}, Range{kMax - 7, kLength},
                 Range{8, kMax - 7}, Range{1, kMax}, Range{kHuge, kHuge}, Range{kHuge + 8, kHuge});
    INFO("offset " << range.offset << " length " << range.length);
    CHECK(dev(read_args(lh, range.offset, buf.data(), range.length)) == err(ERANGE));
    CHECK(dev(write_args(lh, range.offset, buf.data(), range.length)) == err(ERANGE));
}

TEST_CASE_METHOD(AbiEverywhere, "ops: the largest lengths are ERANGE", "[ops]") {
    INFO(where.label);
    const auto length = GENERATE(as<std::uint64_t>{}, 1ULL << 32, (1ULL << 32) + 8, 1ULL << 47,
                                 kHuge, kHuge + 8, kMax);
    CHECK(dev(read_args(lh, 0, buf.data(), length)) == err(ERANGE));
    CHECK(dev(write_args(lh, 0, buf.data(), length)) == err(ERANGE));
}

TEST_CASE_METHOD(AbiEverywhere, "ops: exactly up to the end is fine", "[ops]") {
    INFO(where.label);
    Mapping big(kLength);
    CHECK(dev(write_args(lh, 0, big.data(), kLength)) == ok);
    CHECK(dev(read_args(lh, 0, big.data(), kLength)) == ok);
    CHECK(dev(write_args(lh, kLength - 1, big.data(), 1)) == ok);
    CHECK(dev(read_args(lh, kLength - 17, big.data(), 17)) == ok);
    CHECK(dev(fetch_add_args(lh, kLength - 8, 1)) == ok);
}

TEST_CASE_METHOD(AbiEverywhere, "ops: length 0 is EINVAL", "[ops]") {
    INFO(where.label);
    const auto offset = GENERATE(as<std::uint64_t>{}, 0, 8, kLength, kMax);
    CHECK(dev(read_args(lh, offset, buf.data(), 0)) == err(EINVAL));
    CHECK(dev(write_args(lh, offset, buf.data(), 0)) == err(EINVAL));
}

TEST_CASE_METHOD(AbiEverywhere, "ops: a refused operation changes nothing", "[ops]") {
    INFO(where.label);
    Mapping ones(kLength + kPage);
    std::memset(ones.data(), 0xff, ones.size());
    REQUIRE(dev(write_args(lh, 8, ones.data(), kLength)) == err(ERANGE));
    REQUIRE(dev(fetch_add_args(lh, 4, 1)) == err(EINVAL));

    Mapping now(kLength);
    dev.read(lh, 0, now.bytes());
    CHECK(std::all_of(now.data(), now.data() + kLength,
                      [](std::byte b) { return b == std::byte{}; }));

    // A refused read leaves the buffer unchanged.
    REQUIRE(dev(read_args(lh, 8, ones.data(), kLength)) == err(ERANGE));
    CHECK(std::all_of(ones.data(), ones.data() + ones.size(),
                      [](std::byte b) { return b == std::byte{0xff}; }));
}

TEST_CASE_METHOD(AbiEverywhere, "ops: misaligned atomics are EINVAL", "[ops]") {
    INFO(where.label);
    const auto offset = GENERATE(as<std::uint64_t>{}, 1, 2, 4, 7, 9, kPage - 4, kLength - 4);
    INFO("offset " << offset);
    CHECK(dev(fetch_add_args(lh, offset, 1)) == err(EINVAL));
    CHECK(dev(cmp_swap_args(lh, offset, 0, 1)) == err(EINVAL));
}

TEST_CASE_METHOD(AbiEverywhere, "ops: atomics of another length than 8 are EINVAL", "[ops]") {
    INFO(where.label);
    auto add = fetch_add_args(lh, 0, 1);
    auto swap = cmp_swap_args(lh, 0, 0, 1);
    add.length = swap.length = GENERATE(as<std::uint64_t>{}, 0, 1, 4, 7, 9, 16, kMax);
    INFO("length " << add.length);
    CHECK(dev(add) == err(EINVAL));
    CHECK(dev(swap) == err(EINVAL));
}

TEST_CASE_METHOD(AbiEverywhere, "ops: atomics beyond the end are ERANGE", "[ops]") {
    INFO(where.label);
    const auto offset =
        GENERATE(as<std::uint64_t>{}, kLength, kLength + 8, 1ULL << 32, kHuge, kMax - 7);
    INFO("offset " << offset);
    CHECK(dev(fetch_add_args(lh, offset, 1)) == err(ERANGE));
    CHECK(dev(cmp_swap_args(lh, offset, 0, 1)) == err(ERANGE));
}

TEST_CASE_METHOD(AbiEverywhere, "ops: atomics in an incomplete last word are ERANGE", "[ops]") {
    INFO(where.label);
    const auto odd = dev.alloc(20, std::span(where.nodes).first(1));
    CHECK(dev.fetch_add(odd, 8, 1) == 0);
    CHECK(dev(fetch_add_args(odd, 16, 1)) == err(ERANGE));
    CHECK(dev(cmp_swap_args(odd, 16, 0, 1)) == err(ERANGE));
}

TEST_CASE_METHOD(AbiEverywhere, "ops: atomics return the old value and change the word", "[ops]") {
    INFO(where.label);
    const auto offset = GENERATE(as<std::uint64_t>{}, 0, 8, kPage - 8, kPage, kLength - 8);
    INFO("offset " << offset);
    CHECK(dev.fetch_add(lh, offset, 0) == 0);
    CHECK(dev.fetch_add(lh, offset, 41) == 0);
    CHECK(dev.fetch_add(lh, offset, 1) == 41);
    CHECK(dev.cmp_swap(lh, offset, 41, 7) == 42);  // does not match: stays
    CHECK(dev.cmp_swap(lh, offset, 42, kMax) == 42);
    CHECK(dev.fetch_add(lh, offset, 2) == kMax);  // wraps around
    CHECK(dev.cmp_swap(lh, offset, 1, 0x0102030405060708) == 1);

    std::uint64_t word = 0;
    dev.read(lh, offset, std::as_writable_bytes(std::span(&word, 1)));
    CHECK(word == 0x0102030405060708);
}

TEST_CASE_METHOD(AbiEverywhere, "ops: a fresh LMR is all zeroes", "[ops]") {
    INFO(where.label);
    // Dirty some memory and free it, so that the next LMR has a chance to get it.
    Mapping image(kLength);
    std::memset(image.data(), 0xa5, image.size());
    dev.write(lh, 0, image.bytes());
    dev.free(lh);

    const auto fresh = dev.alloc(kLength, where.nodes);
    dev.read(fresh, 0, image.bytes());
    CHECK(std::all_of(image.data(), image.data() + kLength,
                      [](std::byte b) { return b == std::byte{}; }));
}
