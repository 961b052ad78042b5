// SPDX-License-Identifier: MIT
// Transfers larger than the kernel keeps in flight at once, from and to buffers with mixed pages or
// buffers that change meanwhile.
#include "fixture.hpp"

#include "../common/missing_page.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <fstream>
#include <string>
#include <vector>

using namespace lite_test;

namespace {

constexpr std::size_t kLong = (1U << 20) + 350000;

// Another place than this node only: local transfers are copied, and not of interest here.
Placement elsewhere(bool spread) {
    std::vector<std::uint32_t> nodes{env().peer()};
    if (!spread)
        return {"remote", nodes};
    nodes.push_back(env().self);
    if (env().remote.size() > 1)
        nodes.push_back(env().remote.back());
    return {"spread", nodes};
}

struct LargeBuffers : Data {
    Placement where = elsewhere(GENERATE(false, true));
    std::uint64_t lh = dev.alloc(kLong + 64, where.nodes);

    struct Outcome {
        Errno error;
        std::uint64_t done = 0;
    };
    Outcome transfer(lite_op args) {
        const Errno error = dev(args);
        return {error, args.result};
    }
    Outcome read(std::span<std::byte> into, std::uint64_t offset = 3) {
        return transfer(read_args(lh, offset, into.data(), into.size()));
    }
    Outcome write(std::span<const std::byte> from, std::uint64_t offset = 3) {
        return transfer(write_args(lh, offset, from.data(), from.size()));
    }

    void check_both_ways(std::span<std::byte> buffer) {
        INFO(where.label << ", " << buffer.size() << " bytes at "
                         << static_cast<void*>(buffer.data()));
        fill_pattern(buffer, env().seed);
        REQUIRE(write(buffer).error == ok);
        check_holds(buffer.size(), env().seed);
        dev.write(lh, 3, make_pattern(buffer.size(), 77));
        REQUIRE(read(buffer).error == ok);
        CHECK(find_mismatch(buffer, 77) == std::nullopt);
    }

    void check_holds(std::size_t length, std::uint64_t pattern) {
        std::vector<std::byte> back(length);
        dev.read(lh, 3, back);
        CHECK(find_mismatch(back, pattern) == std::nullopt);
    }
};

}  // namespace

TEST_CASE_METHOD(LargeBuffers, "large buffers: at every alignment", "[large]") {
    std::vector<std::byte> heap(kLong + kPage);
    for (const std::size_t skew : {1U, 4095U})
        check_both_ways(std::span(heap).subspan(skew, kLong - skew));
}

TEST_CASE_METHOD(LargeBuffers, "large buffers: lengths around what is in flight at once",
                 "[large]") {
    const Mapping memory(kLong + kPage);
    for (const std::size_t size : {256U << 10, 1U << 20}) {
        check_both_ways(memory.bytes().first(size));
        check_both_ways(memory.bytes().subspan(1, size + 1));
    }
}

TEST_CASE_METHOD(LargeBuffers, "large buffers: transparent huge pages, and half of one",
                 "[large]") {
    const Mapping memory(3 * kHugePage + kLong);
    ::madvise(memory.data(), memory.size(), MADV_HUGEPAGE);
    check_both_ways(memory.bytes().subspan(kHugePage + 4000, kLong));
    // The rest of the huge page still exists, but not in this mapping.
    memory.replace(2 * kHugePage, kHugePage / 2, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS);
    check_both_ways(memory.bytes().subspan(kHugePage + 4000, kLong));
}

TEST_CASE_METHOD(LargeBuffers, "large buffers: huge pages of hugetlbfs", "[large]") {
    std::ofstream("/proc/sys/vm/nr_hugepages") << 4 << std::flush;
    void* memory = ::mmap(nullptr, 3 * kHugePage, PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB, -1, 0);
    if (memory == MAP_FAILED) {
        WARN("no huge pages here: not tested");
        return;
    }
    const std::span huge(static_cast<std::byte*>(memory), 3 * kHugePage);
    check_both_ways(huge.subspan(kHugePage / 2 + 11, kLong));
    ::munmap(memory, huge.size());
}

TEST_CASE_METHOD(LargeBuffers, "large buffers: parts never touched before", "[large]") {
    dev.write(lh, 3, make_pattern(kLong, 5));
    const Mapping fresh(kLong);
    // Present and absent parts in turn.
    fill_pattern(fresh.bytes().first(600000), 1);
    fill_pattern(fresh.bytes().subspan(1000000, 300000), 1);
    REQUIRE(read(fresh.bytes()).error == ok);
    CHECK(find_mismatch(fresh.bytes(), 5) == std::nullopt);
    // As a source, absent pages are zeroes.
    const Mapping zeros(kLong);
    fill_pattern(zeros.bytes().first(600000), 1);
    REQUIRE(write(zeros.bytes()).error == ok);
    std::vector<std::byte> back(kLong);
    dev.read(lh, 3, back);
    CHECK(find_mismatch(std::span(back).first(600000), 1) == std::nullopt);
    CHECK(all_are(std::span(back).subspan(600000), std::byte{}));
}

TEST_CASE_METHOD(LargeBuffers, "large buffers: what is before a hole is transferred", "[large]") {
    // Holes in the first batch, at its end, and behind what may be in flight with it.
    const auto [page, skew] =
        GENERATE(table<std::size_t, std::size_t>({{20, 0}, {64, 100}, {300, 0}}));
    const std::size_t hole = page * kPage;
    INFO(where.label << ", hole at page " << page << ", skew " << skew);
    const Mapping memory(kLong);
    fill_pattern(memory.bytes(), 1);
    memory.cut(hole, kPage);
    const auto buffer = memory.bytes().subspan(skew);
    dev.write(lh, 3, make_pattern(kLong, 9));

    const Outcome written = write(buffer);
    CHECK(written.error == err(EFAULT));
    REQUIRE(written.done == hole - skew);
    std::vector<std::byte> back(kLong);
    dev.read(lh, 3, back);
    CHECK(find_mismatch(std::span(back).first(hole - skew), 1, skew) == std::nullopt);
    CHECK(find_mismatch(std::span(back).subspan(hole - skew), 9, hole - skew) == std::nullopt);

    dev.write(lh, 3, make_pattern(kLong, 2));
    const Outcome got = read(buffer);
    CHECK(got.error == err(EFAULT));
    REQUIRE(got.done == hole - skew);
    CHECK(find_mismatch(buffer.first(hole - skew), 2) == std::nullopt);
    CHECK(find_mismatch(memory.bytes().subspan(hole + kPage), 1, hole + kPage) == std::nullopt);
}

TEST_CASE_METHOD(LargeBuffers, "large buffers: a read-only page in the middle of a destination",
                 "[large]") {
    const Mapping memory(kLong);
    fill_pattern(memory.bytes(), 1);
    memory.protect(100 * kPage, kPage, PROT_READ);
    dev.write(lh, 3, make_pattern(kLong, 2));
    const Outcome got = read(memory.bytes());
    CHECK(got.error == err(EFAULT));
    REQUIRE(got.done == 100 * kPage);
    CHECK(find_mismatch(memory.bytes().first(100 * kPage), 2) == std::nullopt);
    CHECK(find_mismatch(memory.bytes().subspan(100 * kPage), 1, 100 * kPage) == std::nullopt);
    // As a source, a read-only page is fine.
    CHECK(write(memory.bytes()).error == ok);
}

TEST_CASE_METHOD(LargeBuffers, "large buffers: replaced by another thread in the meantime",
                 "[large]") {
    // Each byte belongs to the old or the new memory; no other memory is touched.
    const std::size_t rounds = env().scaled(4, 1);
    dev.write(lh, 3, make_pattern(kLong, 4));
    for (std::size_t round = 0; round < rounds; ++round) {
        const Mapping memory(kLong);
        const Mapping canary(kLong);
        std::atomic<bool> over = false;
        Threads threads;
        threads.start([&] {
            for (std::size_t at = 0; !over; at = (at + 37 * kPage) % (kLong / 2))
                memory.replace(at / kPage * kPage, 50 * kPage, PROT_READ | PROT_WRITE,
                               MAP_PRIVATE | MAP_ANONYMOUS);
        });
        for (int i = 0; i < 3; ++i) {
            const Outcome got = read(memory.bytes());
            CHECK(got.error == ok);
            CHECK(write(memory.bytes(), 3).error == ok);
            dev.write(lh, 3, make_pattern(kLong, 4));
        }
        over = true;
        threads.join();
        // All bytes behind the replaced part have arrived.
        const std::size_t rest = kLong / 2 + 51 * kPage;
        CHECK(find_mismatch(memory.bytes().subspan(rest), 4, rest) == std::nullopt);
        CHECK(all_are(canary.bytes(), std::byte{}));
    }
}

TEST_CASE_METHOD(LargeBuffers, "large buffers: while the kernel tries to reclaim the pages",
                 "[large]") {
    // To reclaim pages, the kernel locks them, so LITE cannot always release pages that it has read
    // into at once.
    const Mapping memory(kLong);
    std::atomic<bool> over = false;
    Threads threads;
    threads.start([&] {
        while (!over)
            ::madvise(memory.data(), memory.size(), MADV_PAGEOUT);
    });
    for (std::size_t round = 0; round < env().scaled(10, 2); ++round) {
        dev.write(lh, 3, make_pattern(kLong, round));
        CHECK(read(memory.bytes()).error == ok);
        CHECK(find_mismatch(memory.bytes(), round) == std::nullopt);
    }
    over = true;
    threads.join();
}

TEST_CASE("large buffers: of a user that may lock no memory", "[large]") {
    // Pages that are pinned only for the time of a call are not charged.
    const std::size_t length = 2U << 20;
    in_child([&] {
        const rlimit none{0, 0};
        expect(::setrlimit(RLIMIT_MEMLOCK, &none) == 0, "setrlimit");
        become({1000, 1000});
        lite::context node(index_for(0));
        for (const Placement& where : env().placements()) {
            lite::region region = node.alloc({.length = length, .nodes = where.nodes});
            region.write(0, make_pattern(length, 3));
            std::vector<std::byte> back(length);
            region.read(0, std::span(back));
            expect(!find_mismatch(back, 3), "the data");
        }
    });
}

TEST_CASE_METHOD(Data, "large buffers: an LMR is freed while a page of one is waited for",
                 "[large]") {
    // The missing page is among those that can be in flight at once, or behind them. In both cases
    // the free must not wait for user space.
    const std::size_t missing = GENERATE(as<std::size_t>{}, 100, 300);
    const bool writing = GENERATE(true, false);
    INFO("page " << missing << (writing ? ", write" : ", read"));
    const std::uint32_t peer = env().peer();
    const std::string name = unique_name("large");
    const std::uint64_t lh = dev.alloc(kLong, std::span(&peer, 1), name);
    dev.write(lh, 0, make_pattern(kLong, 8));
    const Mapping memory(kLong);
    fill_pattern(memory.bytes(), 8);
    memory.replace(missing * kPage, kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS);
    const MissingPage page(memory.data() + missing * kPage);
    lite_op args =
        writing ? write_args(lh, 0, memory.data(), kLong) : read_args(lh, 0, memory.data(), kLong);
    Errno said;
    Threads threads;
    threads.start([&] { said = dev(args); });
    page.await();
    Device(env().indexes.front()).free(name);
    page.come();
    threads.join();
    CHECK(said == err(EIDRM));
    CHECK(args.result <= missing * kPage);
    CHECK(find_mismatch(memory.bytes().first(args.result), 8) == std::nullopt);
}
