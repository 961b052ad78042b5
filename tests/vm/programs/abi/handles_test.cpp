// SPDX-License-Identifier: MIT
// Handles: the files that they belong to, and their lifetime.
#include "fixture.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <string>

using namespace lite_test;

namespace {

// Every call that takes a handle fails with @e for @lh.
void check_all_calls(const Device& dev, std::uint64_t lh, Errno e) {
    std::array<std::byte, 8> buf{};
    CHECK(dev(read_args(lh, 0, buf.data(), buf.size())) == e);
    CHECK(dev(write_args(lh, 0, buf.data(), buf.size())) == e);
    CHECK(dev(fetch_add_args(lh, 0, 1)) == e);
    CHECK(dev(cmp_swap_args(lh, 0, 0, 1)) == e);
    if (lh != 0) {
        // STAT and FREE take a handle of 0 as "by name".
        CHECK(dev(stat_args(lh)) == e);
        CHECK(dev(free_args(lh)) == e);
    }
}

void check_bad(const Device& dev, std::uint64_t lh) {
    check_all_calls(dev, lh, err(EBADF));
    CHECK(dev(unmap_args(lh)) == err(EBADF));
}

}  // namespace

TEST_CASE_METHOD(Abi, "handles: a handle that never existed is EBADF", "[handles]") {
    const auto lh = GENERATE(as<std::uint64_t>{}, 0, 1, 2, 4096, 0x7fffffff, 0xffffffff, 1ULL << 32,
                             1ULL << 63, ~0ULL);
    check_bad(dev, lh);
}

TEST_CASE_METHOD(AbiWithLmr, "handles: neighbours of a valid handle are EBADF", "[handles]") {
    // Kernels have been seen to look handles up by their low half only.
    for (const auto wrong : std::array{lh + 1, lh - 1, lh + (1UL << 32), lh ^ (1UL << 63), ~lh})
        check_bad(dev, wrong);
    CHECK(dev(read_args(lh, 0, buf.data(), 8)) == ok);
}

TEST_CASE_METHOD(AbiWithLmr, "handles: an unmapped handle is EBADF", "[handles]") {
    dev.unmap(lh);
    check_bad(dev, lh);
}

TEST_CASE_METHOD(Abi, "handles: unmapping one handle of an LMR leaves the others", "[handles]") {
    NamedLmr lmr(dev, kLength);
    const auto second = dev.map(lmr.name());
    REQUIRE(second != lmr.lh());
    dev.unmap(second);
    check_bad(dev, second);
    CHECK(dev.fetch_add(lmr.lh(), 0, 1) == 0);
}

TEST_CASE_METHOD(AbiWithLmr, "handles: a handle of another open file is EBADF", "[handles]") {
    const Device other(env().indexes.front());
    check_bad(other, lh);
    CHECK(dev.fetch_add(lh, 0, 1) == 0);
}

TEST_CASE_METHOD(AbiWithLmr, "handles: a handle of another process is EBADF", "[handles]") {
    in_child([&] {
        std::array<std::byte, 8> mine{};
        const Device own(env().indexes.front());
        expect_equal(own(read_args(lh, 0, mine.data(), mine.size())), err(EBADF), "read");
        expect_equal(own(free_args(lh)), err(EBADF), "free");
        expect_equal(own(unmap_args(lh)), err(EBADF), "unmap");
    });
    CHECK(dev.fetch_add(lh, 0, 1) == 0);
}

TEST_CASE_METHOD(AbiWithLmr, "handles: a file inherited through fork is the same file",
                 "[handles]") {
    in_child([&] { expect_equal(dev.fetch_add(lh, 0, 5), 0U, "old value"); });
    CHECK(dev.fetch_add(lh, 0, 1) == 5);
}

TEST_CASE_METHOD(Abi, "handles: a new handle is never 0 and differs from the live ones",
                 "[handles]") {
    std::vector<std::uint64_t> live;
    for (int i = 0; i < 64; ++i) {
        const auto lh = dev.alloc(1);
        CHECK(lh != 0);
        CHECK(std::find(live.begin(), live.end(), lh) == live.end());
        live.push_back(lh);
    }
}

TEST_CASE_METHOD(AbiEverywhere, "handles: handles of a freed LMR are EIDRM", "[handles]") {
    INFO(where.label);
    NamedLmr lmr(dev, kLength, where.nodes);
    const auto second = dev.map(lmr.name(), LITE_RIGHTS_ALL);
    const Device other(env().indexes.front());
    const auto elsewhere = other.map(lmr.name(), LITE_RIGHTS_ALL);

    dev.free(lmr.lh());

    check_bad(dev, lmr.lh());  // closed by the free
    check_all_calls(dev, second, err(EIDRM));
    check_all_calls(other, elsewhere, err(EIDRM));
    // Closing such handles still works, once.
    CHECK(dev(unmap_args(second)) == ok);
    CHECK(dev(unmap_args(second)) == err(EBADF));
    CHECK(other(unmap_args(elsewhere)) == ok);
}

TEST_CASE_METHOD(AbiEverywhere, "handles: handles of an LMR freed by name are EIDRM", "[handles]") {
    INFO(where.label);
    NamedLmr lmr(dev, kLength, where.nodes);
    dev.free(lmr.name());
    check_all_calls(dev, lmr.lh(), err(EIDRM));
    CHECK(dev(map_args(lmr.name(), LITE_RIGHT_READ)) == err(ENOENT));
    CHECK(dev(free_args(lmr.name())) == err(ENOENT));
}

TEST_CASE_METHOD(Abi, "handles: NO_HANDLE makes a named LMR and opens nothing", "[handles]") {
    const auto name = unique_name("no-handle");
    auto args = alloc_args(name, kLength, 0600, LITE_ALLOC_NO_HANDLE);
    args.lh = 0x1234;
    REQUIRE(dev(args) == ok);
    CHECK((args.lh == 0 || args.lh == 0x1234));
    check_bad(dev, 0x1234);
    const auto lh = dev.map(name, LITE_RIGHTS_ALL);
    CHECK(dev.fetch_add(lh, 0, 1) == 0);
    dev.free(lh);
}

TEST_CASE_METHOD(Abi, "handles: read(2), write(2) and mmap(2) of the file are refused",
                 "[handles]") {
    std::array<char, 8> bytes{};
    CHECK(::read(dev.fd(), bytes.data(), bytes.size()) == -1);
    CHECK(::write(dev.fd(), bytes.data(), bytes.size()) == -1);
    CHECK(::pread(dev.fd(), bytes.data(), bytes.size(), 0) == -1);
    CHECK_THROWS(Mapping(kPage, dev.fd(), 0x01 /* MAP_SHARED */));
}
