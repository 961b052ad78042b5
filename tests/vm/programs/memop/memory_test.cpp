// SPDX-License-Identifier: MIT
// Set, copy, compare and checksum against a model in this process, for all places of source and
// destination.
#include "../common/data/crc32c.hpp"
#include "../data/fixture.hpp"
#include "code_of.hpp"

#include <algorithm>
#include <array>
#include <random>

using namespace lite_test;

namespace {

using Bytes = std::vector<std::byte>;

// An LMR and its expected contents.
struct Twin {
    Twin(lite::context& node, std::size_t length, const std::vector<std::uint32_t>& nodes,
         std::uint64_t seed)
        : region(node.alloc({.length = length, .nodes = nodes})),
          model(make_pattern(length, seed)) {
        region.write(0, model);
    }

    std::string difference() const {
        Bytes now(model.size());
        region.read(0, std::span(now));
        return compare(now, model, 0);
    }

    std::span<const std::byte> part(std::uint64_t offset, std::uint64_t length) const {
        return std::span(model).subspan(offset, length);
    }

    lite::region region;
    Bytes model;
};

class Numbers {
  public:
    explicit Numbers(std::uint64_t seed) : engine_(seed) {}
    std::uint64_t below(std::uint64_t end) { return engine_() % end; }
    // Small and large numbers, seldom round.
    std::uint64_t length(std::uint64_t most) { return 1 + below(1ULL << below(21)) % most; }
    std::uint64_t bits() { return engine_(); }

  private:
    std::mt19937_64 engine_;
};

void copy(Twin& to, std::uint64_t to_offset, const Twin& from, std::uint64_t from_offset,
          std::uint64_t length) {
    to.region.copy(to_offset, from.region, from_offset, length);
    std::memmove(to.model.data() + to_offset, from.model.data() + from_offset, length);
}

void set(Twin& to, std::uint64_t offset, std::uint64_t length, std::span<const std::byte> pattern) {
    to.region.set(offset, length, pattern);
    for (std::uint64_t i = 0; i < length; ++i)
        to.model[offset + i] = pattern[i % pattern.size()];
}

std::uint64_t equal(const Twin& a, std::uint64_t a_offset, const Twin& b, std::uint64_t b_offset,
                    std::uint64_t length) {
    const auto x = a.part(a_offset, length);
    return static_cast<std::uint64_t>(
        std::mismatch(x.begin(), x.end(), b.model.begin() + static_cast<std::ptrdiff_t>(b_offset))
            .first -
        x.begin());
}

// Not a multiple of anything, and with several pieces in each share.
std::size_t volume() { return env().scaled(1500, 150) * 1000 + 123; }

}  // namespace

TEST_CASE_METHOD(Data, "memop: random operations leave what they should", "[memop]") {
    const auto places = env().placements();
    const auto first = GENERATE_COPY(from_range(places));
    // Each place with each, or with one by the seed.
    const auto any = mix(env().seed ^ std::hash<std::string>{}(first.label)) % places.size();
    const auto others = env().in_few_places() ? std::vector{places[any]} : places;
    const auto second = GENERATE_COPY(from_range(others));
    INFO("from " << first.label << " to " << second.label << ", seed " << env().seed);
    Numbers random(env().seed);
    const std::size_t size = volume();
    Twin a(node, size, first.nodes, env().seed);
    Twin b(node, size, second.nodes, env().seed + 1);
    const std::size_t count = env().scaled(60, 12);
    for (std::size_t i = 0; i < count; ++i) {
        Twin& to = random.below(2) ? a : b;
        const Twin& from = random.below(2) ? a : b;
        const auto length = random.length(size);
        const auto to_offset = random.below(size - length + 1);
        const auto from_offset = random.below(size - length + 1);
        CAPTURE(i, length, to_offset, from_offset, &to == &from);
        switch (random.below(5)) {
            case 0: {
                const auto word = random.bits();
                std::array<std::byte, 8> pattern;
                std::memcpy(pattern.data(), &word, sizeof(word));
                set(to, to_offset, length, std::span(pattern).first(1 + random.below(8)));
                break;
            }
            case 1:
                // Random ranges mostly differ at once. So copy one to the other first, and maybe
                // change one byte.
                copy(to, to_offset, from, from_offset, length);
                if (&to != &from && random.below(2)) {
                    const std::array odd{to.model[to_offset + length / 2] ^ std::byte{1}};
                    set(to, to_offset + length / 2, 1, odd);
                }
                [[fallthrough]];
            case 2:
                REQUIRE(to.region.compare(to_offset, from.region, from_offset, length) ==
                        equal(to, to_offset, from, from_offset, length));
                break;
            case 3:
                REQUIRE(from.region.checksum(from_offset, length) ==
                        crc32c(from.part(from_offset, length)));
                break;
            default:
                copy(to, to_offset, from, from_offset, length);
        }
    }
    CHECK(a.difference().empty());
    CHECK(b.difference().empty());
}

TEST_CASE_METHOD(DataEverywhere, "memop: overlapping copies work like memmove", "[memop]") {
    INFO(where.label);
    const std::size_t size = volume();
    Twin lmr(node, size, where.nodes, env().seed);
    // By less and by more than is copied at once, in both directions.
    const auto shift = GENERATE(as<std::uint64_t>{}, 1, 7, 4096, 65537, 70001);
    const std::uint64_t length = size - shift - 11;
    CAPTURE(shift);
    copy(lmr, 5 + shift, lmr, 5, length);
    CHECK(lmr.difference().empty());
    copy(lmr, 3, lmr, 3 + shift, length);
    CHECK(lmr.difference().empty());
    // A copy of a range onto itself changes nothing.
    copy(lmr, 7, lmr, 7, length);
    CHECK(lmr.difference().empty());
}

TEST_CASE_METHOD(DataEverywhere, "memop: overlaps through two handles, too", "[memop]") {
    INFO(where.label);
    const std::size_t size = volume() / 2;
    const NamedLmr lmr(dev, size, where.nodes);
    auto one = node.map(lmr.name());
    auto other = node.map(lmr.name());
    auto model = make_pattern(size, env().seed);
    one.write(0, model);
    one.copy(4099, other, 0, size - 4099);
    std::memmove(model.data() + 4099, model.data(), size - 4099);
    Bytes now(size);
    other.read(0, std::span(now));
    CHECK(compare(now, model, 0).empty());
}

TEST_CASE_METHOD(DataEverywhere, "memop: patterns of each length, at each alignment", "[memop]") {
    INFO(where.label);
    const std::size_t size = 6 * kPage + 5;
    const auto text = make_pattern(8, env().seed);
    Twin lmr(node, size, where.nodes, env().seed + 1);
    for (std::size_t n = 1; n <= 8; ++n) {
        const auto pattern = std::span(text).first(n);
        CAPTURE(n);
        set(lmr, n, size - 2 * n, pattern);
        set(lmr, kPage - n, 2 * n + 1, pattern);
        set(lmr, 3 * kPage + n, 1, pattern);
        CHECK(lmr.difference().empty());
    }
}

TEST_CASE_METHOD(DataEverywhere, "memop: a checksum continues another one", "[memop]") {
    INFO(where.label);
    const auto size = std::max<std::size_t>(volume() / 3, 70001);
    Twin lmr(node, size, where.nodes, env().seed);
    const auto whole = lmr.region.checksum(0, size);
    CHECK(whole == crc32c(lmr.model));
    for (const std::uint64_t at : {std::uint64_t{1}, kPage + 0, size / 2, size - 1}) {
        CAPTURE(at);
        CHECK(lmr.region.checksum(at, size - at, lmr.region.checksum(0, at)) == whole);
    }
    lmr.region.write(0, std::string_view("123456789"));
    CHECK(lmr.region.checksum(0, 9) == 0xe3069283);
}

TEST_CASE_METHOD(DataEverywhere, "memop: compare finds the first difference, to the byte",
                 "[memop]") {
    INFO(where.label);
    const auto size = std::max<std::size_t>(volume() / 3, 70001);
    Twin a(node, size, where.nodes, env().seed);
    Twin b(node, size, {}, env().seed);
    CHECK(a.region.compare(0, b.region, 0, size) == size);
    CHECK(b.region.compare(0, a.region, 0, size) == size);
    std::array<std::size_t, 5> places{size - 1, size / 2, 65536, kPage - 1, 0};
    // From the end on: differences that were made earlier are behind.
    std::sort(places.begin(), places.end(), std::greater<>());
    for (const auto at : places) {
        const std::array odd{b.model[at] ^ std::byte{0x80}};
        set(b, at, 1, odd);
        CAPTURE(at);
        CHECK(a.region.compare(0, b.region, 0, size) == at);
        CHECK(b.region.compare(0, a.region, 0, size) == at);
    }
}

TEST_CASE_METHOD(DataEverywhere, "memop: refused operations change nothing", "[memop]") {
    INFO(where.label);
    constexpr std::size_t size = 3 * kPage;
    const NamedLmr named(dev, size, where.nodes);
    auto reader = node.map(named.name(), lite::rights::read);
    auto writer = node.map(named.name(), lite::rights::write);
    auto both = node.map(named.name());
    auto* const ctx = node.get();
    const auto r = reader.handle();
    const auto w = writer.handle();
    const auto rw = both.handle();
    std::uint64_t same = 99;
    std::uint32_t crc = 99;
    both.write(0, make_pattern(size, env().seed));

    CHECK(lite_set(ctx, r, 0, 1, "x", 1) == -EACCES);
    CHECK(lite_set(ctx, rw, 0, 0, "x", 1) == -EINVAL);
    CHECK(lite_set(ctx, rw, 0, 1, "x", 0) == -EINVAL);
    CHECK(lite_set(ctx, rw, 0, 1, "123456789", 9) == -EINVAL);
    CHECK(lite_set(ctx, rw, size, 1, "x", 1) == -ERANGE);
    CHECK(lite_set(ctx, rw, 1, size, "x", 1) == -ERANGE);
    CHECK(lite_set(ctx, rw, UINT64_MAX, 2, "x", 1) == -ERANGE);
    CHECK(lite_set(ctx, 1, 0, 1, "x", 1) == -EBADF);
    CHECK(lite_copy(ctx, r, 0, rw, 0, 1) == -EACCES);
    CHECK(lite_copy(ctx, rw, 0, w, 0, 1) == -EACCES);
    CHECK(lite_copy(ctx, rw, 0, 0, 0, 1) == -EBADF);
    CHECK(lite_copy(ctx, 0, 0, rw, 0, 1) == -EBADF);
    CHECK(lite_copy(ctx, rw, 0, rw, 1, 0) == -EINVAL);
    CHECK(lite_copy(ctx, rw, 0, rw, 1, size) == -ERANGE);
    CHECK(lite_copy(ctx, rw, 1, rw, 0, size) == -ERANGE);
    CHECK(lite_copy(ctx, rw, 0, rw, UINT64_MAX, 2) == -ERANGE);
    CHECK(lite_compare(ctx, w, 0, r, 0, 1, &same) == -EACCES);
    CHECK(lite_compare(ctx, r, 0, w, 0, 1, &same) == -EACCES);
    CHECK(lite_compare(ctx, r, 0, r, 1, size, &same) == -ERANGE);
    CHECK(lite_compare(ctx, r, 0, r, 1, 0, &same) == -EINVAL);
    CHECK(lite_checksum(ctx, w, 0, 1, 0, &crc) == -EACCES);
    CHECK(lite_checksum(ctx, r, 0, 0, 0, &crc) == -EINVAL);
    CHECK(lite_checksum(ctx, r, size - 1, 2, 0, &crc) == -ERANGE);
    CHECK(same == 99);
    CHECK(crc == 99);

    lite_op op{};
    op.opcode = LITE_OP_SET;
    op.lh = rw;
    op.length = 1;
    op.operand = 0x100;  // more than a pattern of one byte
    op.swap = 1;
    CHECK(lite_op_submit(ctx, &op) == -EINVAL);
    op.opcode = LITE_OP_CHECKSUM;
    op.operand = 1ULL << 32;
    op.swap = 0;
    CHECK(lite_op_submit(ctx, &op) == -EINVAL);
    op.operand = 0;
    op.swap = 1;
    CHECK(lite_op_submit(ctx, &op) == -EOPNOTSUPP);

    CHECK(lite_swap(ctx, rw, 0, 1, &same) == -EACCES);
    auto atomic = node.map(named.name(), lite::rights::atomic);
    for (const std::uint64_t offset : {1ULL, 4ULL, 7ULL})
        CHECK(lite_fetch_or(ctx, atomic.handle(), offset, 1, &same) == -EINVAL);
    CHECK(lite_fetch_and(ctx, atomic.handle(), size, 0, &same) == -ERANGE);
    CHECK(code_of([&] { atomic.set(0, 1, std::array{std::byte{1}}); }) == EACCES);
    CHECK(same == 99);

    Bytes now(size);
    both.read(0, std::span(now));
    CHECK_FALSE(find_mismatch(now, env().seed));
}

TEST_CASE_METHOD(DataEverywhere, "memop: freed LMRs, as either operand", "[memop]") {
    INFO(where.label);
    auto kept = node.alloc({.length = 2 * kPage});
    // Without and with use before the free (then all nodes have it mapped); and through another
    // handle.
    for (const bool used : {false, true}) {
        CAPTURE(used);
        const auto name = unique_name("gone");
        auto gone = node.alloc({.name = name, .length = 2 * kPage, .nodes = where.nodes});
        if (used) {
            kept.copy(0, gone, 0, 2 * kPage);
            gone.copy(0, kept, 0, 2 * kPage);
        }
        lite::context(other_index()).free(name);
        CHECK(code_of([&] { kept.copy(0, gone, 0, 1); }) == EIDRM);
        CHECK(code_of([&] { gone.copy(0, kept, 0, 1); }) == EIDRM);
        CHECK(code_of([&] { kept.compare(0, gone, 0, 1); }) == EIDRM);
        CHECK(code_of([&] { gone.compare(0, kept, 0, 1); }) == EIDRM);
        CHECK(code_of([&] { gone.set(0, 1, std::array{std::byte{1}}); }) == EIDRM);
        CHECK(code_of([&] { gone.checksum(0, 1); }) == EIDRM);
        CHECK(code_of([&] { gone.exchange(0, 1); }) == EIDRM);
    }
}

TEST_CASE_METHOD(DataEverywhere, "memop: an anonymous LMR goes with its file all the same",
                 "[memop]") {
    INFO(where.label);
    std::uint64_t id = 0;
    std::uint32_t home = 0;
    {
        lite::context mine(index_for(0));
        auto region = mine.alloc({.length = 3 * kPage, .nodes = where.nodes});
        auto here = mine.alloc({.length = 3 * kPage});
        here.copy(0, region, 0, 3 * kPage);
        region.copy(0, here, 0, 3 * kPage);
        const auto info = region.stat().info;
        id = info.id;
        home = info.home;
    }
    wait_until("it is gone", [&] {
        bool there = false;
        for (const auto& info : lite::list(node))
            there |= info.id == id && info.home == home;
        return !there;
    });
}
