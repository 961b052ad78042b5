// SPDX-License-Identifier: MIT
// Every kind of buffer that a program may have, as source and destination, small and large.
#include "fixture.hpp"

#include "../common/missing_page.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <memory>

using namespace lite_test;

namespace {

constexpr std::size_t kLargest = 300000;

struct DataBuffers : DataEverywhere {
    std::size_t size = GENERATE(as<std::size_t>{}, 40, 4096, 70000, kLargest);
    lite::region region = node.alloc({.length = kLargest + 64, .nodes = where.nodes});

    // Writes from @buffer, and reads back into it.
    void check_both_ways(std::span<std::byte> buffer) {
        INFO(where.label << ", " << buffer.size() << " bytes at "
                         << static_cast<void*>(buffer.data()));
        fill_pattern(buffer, env().seed);
        region.write(3, buffer);
        CHECK(find_mismatch(buffer, env().seed) == std::nullopt);
        check_holds(3, buffer.size(), env().seed);

        region.write(3, make_pattern(buffer.size(), 77));
        region.read(3, buffer);
        CHECK(find_mismatch(buffer, 77) == std::nullopt);
    }

    void check_holds(std::uint64_t offset, std::size_t length, std::uint64_t pattern) {
        std::vector<std::byte> back(length);
        region.read(offset, std::span(back));
        CHECK(find_mismatch(back, pattern) == std::nullopt);
    }
};

class TemporaryFile {
  public:
    explicit TemporaryFile(std::size_t size) : fd_(::memfd_create("lite-test", 0)) {
        if (fd_ < 0 || ::ftruncate(fd_, static_cast<off_t>(size)) < 0)
            throw std::system_error(errno, std::generic_category(), "memfd");
    }
    ~TemporaryFile() { ::close(fd_); }
    TemporaryFile(const TemporaryFile&) = delete;
    TemporaryFile& operator=(const TemporaryFile&) = delete;
    int fd() const { return fd_; }

  private:
    int fd_;
};

}  // namespace

TEST_CASE_METHOD(DataBuffers, "data buffers: on the stack", "[buffers]") {
    std::array<std::byte, 70000> stack;
    check_both_ways(std::span(stack).first(std::min(size, stack.size())));
}

TEST_CASE_METHOD(DataBuffers, "data buffers: on the heap, at every alignment", "[buffers]") {
    std::vector<std::byte> heap(size + 64);
    for (const std::size_t skew : {0U, 1U, 2U, 3U, 4U, 7U, 8U, 15U, 31U, 63U})
        check_both_ways(std::span(heap).subspan(skew, size));
}

TEST_CASE_METHOD(DataBuffers, "data buffers: never touched before", "[buffers]") {
    region.write(3, make_pattern(size, 5));
    const Mapping fresh(kLargest);
    region.read(3, fresh.bytes().first(size));
    CHECK(find_mismatch(fresh.bytes().first(size), 5) == std::nullopt);
    const auto rest = fresh.bytes().subspan(size);
    CHECK(std::all_of(rest.begin(), rest.end(), [](std::byte b) { return b == std::byte{}; }));
}

TEST_CASE_METHOD(DataBuffers, "data buffers: up to the last mapped byte", "[buffers]") {
    const GuardedBuffer guarded(size);
    check_both_ways(guarded.bytes());
}

TEST_CASE_METHOD(DataBuffers, "data buffers: a file mapped shared: the file gets the data",
                 "[buffers]") {
    const TemporaryFile file(kLargest);
    {
        const Mapping mapped(kLargest, file.fd(), MAP_SHARED);
        check_both_ways(mapped.bytes().subspan(1, size - 1));
    }
    std::vector<std::byte> content(size);
    REQUIRE(::pread(file.fd(), content.data(), size, 0) == static_cast<ssize_t>(size));
    CHECK(find_mismatch(std::span(content).subspan(1), 77) == std::nullopt);
}

TEST_CASE_METHOD(DataBuffers, "data buffers: a file mapped private: the file stays as it was",
                 "[buffers]") {
    const TemporaryFile file(kLargest);
    const Mapping mapped(kLargest, file.fd(), MAP_PRIVATE);
    check_both_ways(mapped.bytes().first(size));
    std::vector<std::byte> content(size);
    REQUIRE(::pread(file.fd(), content.data(), size, 0) == static_cast<ssize_t>(size));
    CHECK(
        std::all_of(content.begin(), content.end(), [](std::byte b) { return b == std::byte{}; }));
}

TEST_CASE_METHOD(DataBuffers, "data buffers: a read-only source", "[buffers]") {
    const Mapping memory(kLargest);
    fill_pattern(memory.bytes(), 6);
    memory.protect(0, kLargest / kPage * kPage, PROT_READ);
    region.write(3, memory.bytes().first(size));
    check_holds(3, size, 6);

    static constexpr char kText[] = "in the read-only data of the program";
    region.write(3, std::string_view(kText));
    std::string back(sizeof(kText) - 1, '\0');
    region.read(3, std::span(back));
    CHECK(back == kText);
}

// Memory of an LMR is written only with what its writer has.
TEST_CASE_METHOD(DataEverywhere,
                 "data buffers: a word that is absent changes nothing until it comes",
                 "[buffers][absent]") {
    INFO(where.label);
    constexpr auto old = ~std::uint64_t{};
    auto region = node.alloc({.length = 64, .nodes = where.nodes});
    for (std::uint64_t at = 0; at < 64; at += 8)
        region.store(at, old);
    // A word that is there, and one in a page that is not.
    const Mapping memory(2 * kPage);
    const auto words = memory.bytes().subspan(kPage - 8, 16);
    fill_pattern(words.first(8), 1);
    {
        const MissingPage page(memory.data() + kPage);
        Threads writer;
        writer.start([&] { region.write(8, words); });
        page.await();
        CHECK(region.load<std::uint64_t>(16) == old);
        page.come();
        writer.join();
        CHECK(region.load<std::uint64_t>(16) == 0);
        CHECK(region.load<std::uint64_t>(24) == old);
    }
    region.store(16, old);
    memory.protect(kPage, kPage, PROT_NONE);
    CHECK_THROWS_AS(region.write(8, words), lite::error);
    CHECK(region.load<std::uint64_t>(16) == old);
    CHECK_THROWS_AS(region.write(16, words.subspan(8)), lite::error);
    CHECK(region.load<std::uint64_t>(16) == old);
}

TEST_CASE_METHOD(DataBuffers, "data buffers: across mappings of different kinds", "[buffers]") {
    const TemporaryFile file(kLargest);
    const Mapping memory(4 * kPage + kLargest);
    memory.replace(kPage, kPage, PROT_READ | PROT_WRITE, MAP_SHARED, file.fd());
    memory.replace(2 * kPage, kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS);
    memory.replace(3 * kPage, kPage, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS);
    check_both_ways(memory.bytes().subspan(kPage - 13, size));
}

TEST_CASE_METHOD(DataBuffers, "data buffers: huge pages", "[buffers]") {
    std::ofstream("/proc/sys/vm/nr_hugepages") << 4 << std::flush;
    void* memory = ::mmap(nullptr, 2 * kHugePage, PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB, -1, 0);
    if (memory == MAP_FAILED) {
        WARN("no huge pages here: not tested");
        return;
    }
    const std::span huge(static_cast<std::byte*>(memory), 2 * kHugePage);
    check_both_ways(huge.subspan(kHugePage - size / 2, size));  // across two of them
    ::munmap(memory, huge.size());
}

TEST_CASE_METHOD(DataBuffers, "data buffers: transparent huge pages", "[buffers]") {
    const Mapping memory(3 * kHugePage);
    ::madvise(memory.data(), memory.size(), MADV_HUGEPAGE);
    check_both_ways(memory.bytes().subspan(kHugePage + 4000, size));
}

TEST_CASE_METHOD(DataBuffers, "data buffers: shared with a child before the write to it",
                 "[buffers]") {
    // After fork(2) the parent and the child share pages until one of them writes. The kernel's
    // write for the parent must count as such a write.
    const Mapping memory(kLargest);
    fill_pattern(memory.bytes().first(size), 1);
    region.write(3, make_pattern(size, 2));
    Shared<Signal> read_done;
    Child child([&] {
        read_done->wait("the parent's read");
        expect(!find_mismatch(memory.bytes().first(size), 1), "the child's copy changed");
    });
    region.read(3, memory.bytes().first(size));
    CHECK(find_mismatch(memory.bytes().first(size), 2) == std::nullopt);
    read_done->post();
    REQUIRE_NOTHROW(child.join());
}

TEST_CASE_METHOD(DataBuffers, "data buffers: unmapped by another thread in the middle of transfers",
                 "[buffers]") {
    // Whatever happens to the transfer, memory that it has pinned must not be reused before it
    // ends.
    const std::size_t rounds = env().scaled(30, 3);
    for (std::size_t round = 0; round < rounds; ++round) {
        Mapping memory(kLargest);
        Threads threads;
        threads.start([&] { memory.cut(0, kLargest / kPage * kPage); });
        const Mapping canary(kLargest);
        try {
            region.read(3, memory.bytes().first(size));
        } catch (const lite::error& e) {
            CHECK(e.code() == std::errc::bad_address);
        }
        threads.join();
        CHECK(std::all_of(canary.data(), canary.data() + kLargest,
                          [](std::byte b) { return b == std::byte{}; }));
    }
}
