// SPDX-License-Identifier: MIT
// Memory operations on LMRs in the memory of a process: registered, or mapped into it.
#include "../common/data/crc32c.hpp"
#include "../data/fixture.hpp"

#include <array>
#include <cstring>
#include <random>

using namespace lite_test;

namespace {

constexpr std::size_t kLength = 75 * kPage;
constexpr std::array kPattern{std::byte{0xa1}, std::byte{0xb2}, std::byte{0xc3}};

void fill_set(std::span<std::byte> bytes) {
    for (std::size_t i = 0; i < bytes.size(); ++i)
        bytes[i] = kPattern[i % kPattern.size()];
}

// All operations, on @memory, which is the first bytes of @lmr, and on @other.
void check_operations(lite::region& lmr, std::span<std::byte> memory, lite::region& other) {
    const auto length = memory.size();
    other.write(0, make_pattern(length, 1));
    lmr.copy(0, other, 0, length);
    REQUIRE_FALSE(find_mismatch(memory, 1));
    CHECK(lmr.compare(0, other, 0, length) == length);
    CHECK(other.compare(0, lmr, 0, length) == length);

    // Operations see what the process stores.
    fill_pattern(memory, 2);
    CHECK(lmr.checksum(0, length) == crc32c(memory));
    CHECK(lmr.compare(0, other, 0, length) < length);
    other.copy(0, lmr, 0, length);
    std::vector<std::byte> model(length);
    other.read(0, std::span(model));
    CHECK_FALSE(find_mismatch(model, 2));

    lmr.set(101, 3 * kPage, kPattern);
    fill_set(std::span(model).subspan(101, 3 * kPage));
    CHECK(compare(memory, model, 0).empty());
    lmr.copy(4099, lmr, 0, length - 4099);
    std::memmove(model.data() + 4099, model.data(), length - 4099);
    CHECK(compare(memory, model, 0).empty());
    lmr.copy(0, lmr, 70001, length - 70001);
    std::memmove(model.data(), model.data() + 70001, length - 70001);
    CHECK(compare(memory, model, 0).empty());

    const auto word = [&] {
        std::uint64_t value = 0;
        std::memcpy(&value, memory.data() + kPage + 8, sizeof(value));
        return value;
    };
    const auto was = word();
    CHECK(lmr.exchange(kPage + 8, 0xf0) == was);
    CHECK(word() == 0xf0);
    CHECK(lmr.fetch_or(kPage + 8, 0x0f) == 0xf0);
    CHECK(lmr.fetch_and(kPage + 8, 0x3c) == 0xff);
    CHECK(word() == 0x3c);
}

}  // namespace

TEST_CASE_METHOD(DataEverywhere, "memop: memory that was registered", "[memop]") {
    INFO(where.label);
    Mapping memory(kLength);
    const auto name = unique_name("registered");
    auto other = node.alloc({.length = kLength, .nodes = where.nodes});
    auto lmr = node.register_memory(memory.bytes(), name);
    check_operations(*lmr, memory.bytes(), other);

    // Another node uses the memory by that name; then the memory is registered as a second LMR.
    lite::context elsewhere(other_index());
    auto theirs = elsewhere.map(name, kAccess);
    auto source = elsewhere.alloc({.length = kLength, .nodes = where.nodes});
    check_operations(theirs, memory.bytes(), source);
    auto again = node.register_memory(memory.bytes().subspan(2 * kPage, 5 * kPage));
    CHECK(again->checksum(0, 5 * kPage) == crc32c(memory.bytes().subspan(2 * kPage, 5 * kPage)));
    again->set(0, kPage, kPattern);
    std::vector<std::byte> model(kPage);
    fill_set(model);
    CHECK(compare(memory.bytes().subspan(2 * kPage, kPage), model, 0).empty());
    CHECK(lmr->compare(2 * kPage, *again, 0, 5 * kPage) == 5 * kPage);
}

TEST_CASE_METHOD(DataEverywhere, "memop: memory that is mapped", "[memop]") {
    INFO(where.label);
    const auto name = unique_name("mapped");
    auto other = node.alloc({.length = kLength, .nodes = where.nodes});
    auto lmr = node.alloc({.name = name, .length = kLength});
    {
        const auto view = lmr.mmap();
        check_operations(lmr, view.bytes(), other);
        lite::context elsewhere(other_index());
        auto theirs = elsewhere.map(name, kAccess);
        auto source = elsewhere.alloc({.length = kLength, .nodes = where.nodes});
        check_operations(theirs, view.bytes(), source);

        // The name changes, and so do the mappings of this node and of the node that carries out
        // the operations.
        const auto renamed = unique_name("renamed");
        elsewhere.rename(name, renamed);
        check_operations(lmr, view.bytes(), other);
        check_operations(theirs, view.bytes(), source);
        node.free(renamed);
    }
    CHECK_THROWS(lmr.checksum(0, 1));
}
