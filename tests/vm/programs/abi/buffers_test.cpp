// SPDX-License-Identifier: MIT
// Operations with bad user buffers. Small transfers are copied, large ones are pinned, two batches
// at a time: all paths are taken, at sizes on either side of any plausible threshold.
#include "../common/data/pattern.hpp"
#include "fixture.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <cstring>

using namespace lite_test;

namespace {

constexpr std::byte kMark{0x5a};

struct AbiBuffers : Abi {
    Placement where = GENERATE(from_range(env().placements()));
    std::size_t size = GENERATE(as<std::size_t>{}, 1, 64, 4096, 5000, 65536, 1 << 18, 1200000);
    // The LMR and the memory are larger, and no more than it takes.
    std::uint64_t big = (size + (128 << 10)) / kPage * kPage;
    std::uint64_t lh = dev.alloc(big, where.nodes);

    void check_refused(const void* bad) {
        INFO(where.label << ", " << size << " bytes at " << bad);
        auto read = read_args(lh, 0, const_cast<void*>(bad), size);
        read.result = ~0ULL;
        CHECK(dev(read) == err(EFAULT));
        CHECK(read.result == 0);
        auto write = write_args(lh, 0, bad, size);
        write.result = ~0ULL;
        CHECK(dev(write) == err(EFAULT));
        CHECK(write.result == 0);
    }

    std::vector<std::byte> content(std::size_t length, std::size_t offset = 0) {
        std::vector<std::byte> bytes(length);
        if (length > 0)
            dev.read(lh, offset, bytes);
        return bytes;
    }
};

}  // namespace

TEST_CASE_METHOD(AbiBuffers, "buffers: NULL is EFAULT", "[buffers]") { check_refused(nullptr); }

TEST_CASE_METHOD(AbiBuffers, "buffers: unmapped memory is EFAULT", "[buffers]") {
    check_refused(unmapped_address(big));
}

TEST_CASE_METHOD(AbiBuffers, "buffers: memory without any permission is EFAULT", "[buffers]") {
    Mapping memory(big);
    memory.protect(0, big, PROT_NONE);
    check_refused(memory.data());
}

TEST_CASE_METHOD(AbiBuffers, "buffers: kernel addresses are EFAULT", "[buffers]") {
    // Direct map, vmalloc, kernel text, the non-canonical hole, and ranges that run from user
    // memory into it or wrap.
    for (const auto address : {0xffff888000001000ULL, 0xffffc90000000000ULL, 0xffffffff81000000ULL,
                               0x0000800000000000ULL, 0x8000000000000000ULL, ~0ULL - 4095, ~0ULL})
        check_refused(reinterpret_cast<void*>(address));
}

TEST_CASE_METHOD(AbiBuffers, "buffers: a read-only target of a READ is EFAULT", "[buffers]") {
    INFO(where.label << ", " << size << " bytes");
    dev.write(lh, 0, std::vector<std::byte>(size, kMark));
    Mapping memory(big);
    memory.data()[0] = std::byte{1};
    memory.protect(0, big, PROT_READ);
    auto read = read_args(lh, 0, memory.data(), size);
    CHECK(dev(read) == err(EFAULT));
    CHECK(read.result == 0);
    CHECK(memory.data()[0] == std::byte{1});
    CHECK(all_are(memory.bytes().subspan(1), std::byte{}));
}

TEST_CASE_METHOD(AbiBuffers, "buffers: a read-only source of a WRITE is fine", "[buffers]") {
    INFO(where.label << ", " << size << " bytes");
    Mapping memory(big);
    std::memset(memory.data(), 0x5a, big);
    memory.protect(0, big, PROT_READ);
    REQUIRE(dev(write_args(lh, 0, memory.data(), size)) == ok);
    CHECK(all_are(content(size), kMark));
}

TEST_CASE_METHOD(AbiBuffers, "buffers: never touched anonymous memory is a WRITE of zeroes",
                 "[buffers]") {
    INFO(where.label << ", " << size << " bytes");
    dev.write(lh, 0, std::vector<std::byte>(size, kMark));
    const Mapping untouched(big);
    untouched.protect(0, big, PROT_READ);
    REQUIRE(dev(write_args(lh, 0, untouched.data(), size)) == ok);
    CHECK(all_are(content(size), std::byte{}));
}

TEST_CASE_METHOD(AbiBuffers, "buffers: a READ into a buffer with an unmapped end", "[buffers]") {
    dev.write(lh, 0, std::vector<std::byte>(size, kMark));
    const auto missing = GENERATE(as<std::size_t>{}, 1, 4096);
    if (missing > size)
        return;
    INFO(where.label << ", " << size << " bytes, the last " << missing << " unmapped");
    const GuardedBuffer buffer(size - missing + (size == missing ? 1 : 0));
    std::byte* const start = buffer.data() + (size == missing ? 1 : 0);

    auto read = read_args(lh, 0, start, size);
    read.result = ~0ULL;
    REQUIRE(dev(read) == err(EFAULT));
    REQUIRE(read.result <= size - missing);
    CHECK(all_are({start, read.result}, kMark));
}

TEST_CASE_METHOD(AbiBuffers, "buffers: a WRITE from a buffer with an unmapped end", "[buffers]") {
    const auto missing = GENERATE(as<std::size_t>{}, 1, 4096);
    if (missing > size)
        return;
    INFO(where.label << ", " << size << " bytes, the last " << missing << " unmapped");
    const GuardedBuffer buffer(size - missing + (size == missing ? 1 : 0));
    std::byte* const start = buffer.data() + (size == missing ? 1 : 0);
    std::memset(start, 0x5a, size - missing);

    auto write = write_args(lh, 0, start, size);
    write.result = ~0ULL;
    REQUIRE(dev(write) == err(EFAULT));
    REQUIRE(write.result <= size - missing);
    const auto now = content(size + (64 << 10));
    CHECK(all_are(std::span(now).first(write.result), kMark));
    // Bytes behind the mapped part must not have come from anywhere else.
    CHECK(all_are(std::span(now).subspan(size - missing), std::byte{}));
}

TEST_CASE_METHOD(AbiBuffers, "buffers: a hole in the middle", "[buffers]") {
    if (size < 3 * kPage)
        return;
    INFO(where.label << ", " << size << " bytes");
    const std::size_t hole = size / 2 / kPage * kPage;
    Mapping memory(big);
    std::memset(memory.data(), 0x5a, big);
    memory.protect(hole, kPage, PROT_NONE);

    auto write = write_args(lh, 0, memory.data(), size);
    REQUIRE(dev(write) == err(EFAULT));
    REQUIRE(write.result <= hole);
    CHECK(all_are(content(write.result), kMark));
    CHECK(all_are(content(big - size, size), std::byte{}));
}

TEST_CASE_METHOD(AbiBuffers, "buffers: a READ that meets a read-only page in the middle",
                 "[buffers]") {
    if (size < 3 * kPage)
        return;
    INFO(where.label << ", " << size << " bytes");
    dev.write(lh, 0, std::vector<std::byte>(big, kMark));
    const std::size_t hole = size / 2 / kPage * kPage;
    Mapping memory(big);
    memory.protect(hole, kPage, PROT_READ);

    auto read = read_args(lh, 0, memory.data(), size);
    REQUIRE(dev(read) == err(EFAULT));
    REQUIRE(read.result <= hole);
    CHECK(all_are(memory.bytes().first(read.result), kMark));
    CHECK(all_are(memory.bytes().subspan(hole, kPage), std::byte{}));
    CHECK(all_are(memory.bytes().subspan(size), std::byte{}));
}

TEST_CASE_METHOD(AbiBuffers, "buffers: after a fault the handle works on", "[buffers]") {
    INFO(where.label << ", " << size << " bytes");
    REQUIRE(dev(write_args(lh, 0, nullptr, size)) == err(EFAULT));
    dev.write(lh, 0, std::vector<std::byte>(size, kMark));
    CHECK(all_are(content(size), kMark));
}
