// SPDX-License-Identifier: MIT
// Mapped LMRs: what may be mapped, what a mapping shows, and how it behaves as a mapping.
#include "fixture.hpp"

#include <atomic>

#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace lite_test;

namespace {

constexpr std::uint64_t kMappedLength = 5 * kHugePage / 2 + 3 * kPage + 100;  // several page tables

}  // namespace

TEST_CASE_METHOD(Mmap, "map: loads and stores are reads and writes", "[map]") {
    NamedLmr lmr(dev, kMappedLength);
    const Device other = device_for(1);
    const auto elsewhere = other.map(lmr.name(), kUse);
    const View view(dev, lmr.lh(), 0, kMappedLength);

    // Fresh memory is zero, up to the end of its last page.
    REQUIRE(std::all_of(view.bytes().begin(), view.bytes().end(),
                        [](std::byte b) { return b == std::byte{}; }));

    const auto written = make_pattern(kMappedLength, 1);
    other.write(elsewhere, 0, written);
    REQUIRE_FALSE(find_mismatch(view.bytes().first(kMappedLength), 1));

    fill_pattern(view.bytes().first(kMappedLength), 2);
    std::vector<std::byte> read(kMappedLength);
    other.read(elsewhere, 0, read);
    REQUIRE_FALSE(find_mismatch(read, 2));
    dev.read(lmr.lh(), 0, read);
    REQUIRE_FALSE(find_mismatch(read, 2));

    view.word(kHugePage + 8) = 40;
    CHECK(other.fetch_add(elsewhere, kHugePage + 8, 2) == 40);
    CHECK(view.word(kHugePage + 8) == 42);
    CHECK(dev.cmp_swap(lmr.lh(), kHugePage + 8, 42, 7) == 42);
    CHECK(view.word(kHugePage + 8) == 7);
}

TEST_CASE_METHOD(Mmap, "map: a word goes to and fro between a mapping and another node", "[map]") {
    NamedLmr lmr(dev, kPage);
    const Device other = device_for(1);
    const auto elsewhere = other.map(lmr.name(), kUse);
    const View view(dev, lmr.lh(), 0, kPage);
    const std::uint64_t rounds = env().scaled(500, 20);
    Threads threads;
    threads.start([&] {
        for (std::uint64_t i = 1; i < 2 * rounds; i += 2) {
            std::uint64_t now = 0;
            wait_until("a store to arrive", [&] {
                other.read(elsewhere, 0, std::as_writable_bytes(std::span(&now, 1)));
                return now == i;
            });
            now++;
            other.write(elsewhere, 0, std::as_bytes(std::span(&now, 1)));
        }
    });
    for (std::uint64_t i = 0; i < 2 * rounds; i += 2) {
        REQUIRE_NOTHROW(wait_until("a write to arrive", [&] { return view.word(0) == i; }));
        view.word(0) = i + 1;
    }
    REQUIRE_NOTHROW(threads.join());
    CHECK(view.word(0) == 2 * rounds);
}

TEST_CASE_METHOD(Mmap, "map: a part, at an offset", "[map]") {
    NamedLmr lmr(dev, kMappedLength);
    dev.write(lmr.lh(), 0, make_pattern(kMappedLength, 3));
    const View one(dev, lmr.lh(), kPage, 1);
    CHECK(one.size() == kPage);
    CHECK_FALSE(find_mismatch(one.bytes(), 3, kPage));
    const View last(dev, lmr.lh(), kMappedLength / kPage * kPage, kMappedLength % kPage);
    CHECK_FALSE(
        find_mismatch(last.bytes().first(kMappedLength % kPage), 3, kMappedLength / kPage * kPage));
    const View at_once(dev, lmr.lh(), 2 * kPage, kHugePage, kReadWrite, LITE_MMAP_POPULATE);
    std::vector<unsigned char> there(kHugePage / kPage);
    REQUIRE(::mincore(at_once.data(), kHugePage, there.data()) == 0);
    CHECK_FALSE(find_mismatch(at_once.bytes(), 3, 2 * kPage));
}

TEST_CASE_METHOD(Mmap, "map: refused mappings", "[map]") {
    NamedLmr lmr(dev, 8 * kPage + 10, {}, 0644);
    const auto lh = lmr.lh();
    const auto refused = [&](const lite_ioc_mmap& args) { return try_mmap(dev, args); };

    CHECK(refused(mmap_args(lh, 0, 0)) == err(EINVAL));
    CHECK(refused(mmap_args(lh, 1, kPage)) == err(EINVAL));
    CHECK(refused(mmap_args(lh, 0, kPage, 0)) == err(EINVAL));
    CHECK(refused(mmap_args(lh, 0, kPage, LITE_PROT_WRITE)) == err(EINVAL));
    CHECK(refused(mmap_args(lh, 0, kPage, kReadWrite | PROT_EXEC)) == err(EINVAL));
    CHECK(refused(mmap_args(lh, 0, 8 * kPage + 11)) == err(ERANGE));
    CHECK(refused(mmap_args(lh, 9 * kPage, 1)) == err(ERANGE));
    CHECK(refused(mmap_args(lh, std::uint64_t{0} - kPage, kPage)) == err(ERANGE));
    CHECK(refused(mmap_args(lh, 0, std::uint64_t{0} - 1)) == err(ERANGE));
    CHECK(refused(mmap_args(lh, kPage, std::uint64_t{0} - kPage)) == err(ERANGE));
    CHECK(refused(mmap_args(lh, 0, kPage, kReadWrite, 2)) == err(EOPNOTSUPP));
    CHECK(refused(mmap_args(lh + (std::uint64_t{1} << 32), 0, kPage)) == err(EBADF));
    CHECK(refused(mmap_args(0, 0, kPage)) == err(EBADF));
    auto odd = mmap_args(lh, 0, kPage);
    odd.reserved = 1;
    CHECK(refused(odd) == err(EOPNOTSUPP));
    CHECK(refused(mmap_args(lh, 8 * kPage, 10)) == ok);

    const auto reader = dev.map(lmr.name(), LITE_RIGHT_READ);
    CHECK(refused(mmap_args(reader, 0, kPage)) == err(EACCES));
    CHECK(refused(mmap_args(reader, 0, kPage, LITE_PROT_READ)) == ok);
    const auto writer = dev.map(lmr.name(), LITE_RIGHT_WRITE);
    CHECK(refused(mmap_args(writer, 0, kPage)) == err(EACCES));

    // The result cannot be stored, so the mapping is undone.
    auto* readonly = static_cast<lite_ioc_mmap*>(
        ::mmap(nullptr, kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    *readonly = mmap_args(lh, 0, kPage);
    ::mprotect(readonly, kPage, PROT_READ);
    CHECK(dev.call(LITE_IOC_MMAP, readonly) == err(EFAULT));
    ::munmap(readonly, kPage);
    dev.free(lh);
    check_nothing_used();
}

TEST_CASE_METHOD(Mmap, "map: only memory at this node", "[map]") {
    const std::uint32_t nodes[] = {env().peer(), env().self};
    NamedLmr away(dev, 4 * kPage, std::span(nodes, 1));
    CHECK(try_mmap(dev, mmap_args(away.lh(), 0, kPage)) == err(EREMOTE));

    // The second half is at this node; the home is not.
    NamedLmr spread(dev, 64 * kPage, nodes);
    dev.write(spread.lh(), 0, make_pattern(64 * kPage, 4));
    CHECK(try_mmap(dev, mmap_args(spread.lh(), 0, 64 * kPage)) == err(EREMOTE));
    CHECK(try_mmap(dev, mmap_args(spread.lh(), 31 * kPage, 2 * kPage)) == err(EREMOTE));
    const View half(dev, spread.lh(), 32 * kPage, 32 * kPage);
    CHECK_FALSE(find_mismatch(half.bytes(), 4, 32 * kPage));
    fill_pattern(half.bytes(), 5, 32 * kPage);
    std::vector<std::byte> read(32 * kPage);
    dev.read(spread.lh(), 32 * kPage, read);
    CHECK_FALSE(find_mismatch(read, 5, 32 * kPage));
    dev.free(spread.lh());
    CHECK(load_signal(half.data()) == SIGBUS);
}

TEST_CASE_METHOD(Mmap, "map: mprotect gives no more than was requested", "[map]") {
    NamedLmr lmr(dev, 4 * kPage, {}, 0644);
    const auto reader = dev.map(lmr.name(), LITE_RIGHT_READ);
    const View view(dev, reader, 0, 4 * kPage, LITE_PROT_READ);
    CHECK(store_signal(view.data()) == SIGSEGV);
    CHECK(::mprotect(view.data(), kPage, PROT_READ | PROT_WRITE) == -1);
    CHECK(errno == EACCES);
    CHECK(::mprotect(view.data(), kPage, PROT_READ | PROT_EXEC) == -1);

    // Not even if the handle would allow more.
    const View less(dev, lmr.lh(), 0, 4 * kPage, LITE_PROT_READ);
    CHECK(::mprotect(less.data(), kPage, PROT_READ | PROT_WRITE) == -1);
    CHECK(errno == EACCES);

    // Within the requested protection it works.
    const View own(dev, lmr.lh(), 0, 4 * kPage);
    REQUIRE(::mprotect(own.data(), 4 * kPage, PROT_READ) == 0);
    CHECK(load_signal(own.data()) == 0);
    CHECK(store_signal(own.data()) == SIGSEGV);
    REQUIRE(::mprotect(own.data(), 2 * kPage, PROT_READ | PROT_WRITE) == 0);
    CHECK(store_signal(own.data()) == 0);
    CHECK(store_signal(own.data() + kPage) == 0);
    CHECK(store_signal(own.data() + 2 * kPage) == SIGSEGV);
    CHECK(view.data()[0] == std::byte{0xff});
    REQUIRE(::mprotect(own.data(), 4 * kPage, PROT_NONE) == 0);
    CHECK(load_signal(own.data()) == SIGSEGV);
    REQUIRE(::mprotect(own.data(), 4 * kPage, PROT_READ) == 0);
    CHECK(load_signal(own.data()) == 0);
}

TEST_CASE_METHOD(Mmap, "map: unmapped in part, moved, advised, not grown", "[map]") {
    NamedLmr lmr(dev, 16 * kPage);
    dev.write(lmr.lh(), 0, make_pattern(16 * kPage, 6));
    View view(dev, lmr.lh(), 0, 16 * kPage);
    CHECK_FALSE(find_mismatch(view.bytes(), 6));
    // A hole, and the part behind it is moved.
    REQUIRE(::munmap(view.data() + 4 * kPage, 2 * kPage) == 0);
    void* moved = ::mremap(view.data() + 8 * kPage, 4 * kPage, 4 * kPage, MREMAP_MAYMOVE);
    REQUIRE(moved != MAP_FAILED);
    void* place = ::mmap(nullptr, 4 * kPage, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    moved = ::mremap(moved, 4 * kPage, 4 * kPage, MREMAP_MAYMOVE | MREMAP_FIXED, place);
    REQUIRE(moved == place);
    const std::span<std::byte> there(static_cast<std::byte*>(moved), 4 * kPage);
    CHECK_FALSE(find_mismatch(there, 6, 8 * kPage));
    REQUIRE(::madvise(moved, 4 * kPage, MADV_DONTNEED) == 0);
    CHECK_FALSE(find_mismatch(there, 6, 8 * kPage));
    CHECK(::mremap(moved, 4 * kPage, 8 * kPage, MREMAP_MAYMOVE) == MAP_FAILED);
    CHECK(::mremap(moved, 0, 4 * kPage, MREMAP_MAYMOVE) == MAP_FAILED);
    // None of these may do harm, whatever they return.
    for (const int advice : {MADV_WILLNEED, MADV_SEQUENTIAL, MADV_COLD, MADV_PAGEOUT, MADV_HUGEPAGE,
                             MADV_REMOVE, MADV_DONTDUMP, MADV_MERGEABLE})
        (void)::madvise(moved, 4 * kPage, advice);
    (void)::mlock(moved, 4 * kPage);
    (void)::msync(moved, 4 * kPage, MS_SYNC);
    CHECK_FALSE(find_mismatch(there, 6, 8 * kPage));
    dev.free(lmr.lh());
    CHECK(load_signal(there.data()) == SIGBUS);
    CHECK(load_signal(view.data()) == SIGBUS);
    ::munmap(moved, 4 * kPage);
}

TEST_CASE_METHOD(Mmap, "map: children inherit it", "[map]") {
    NamedLmr lmr(dev, 4 * kHugePage);
    const View view(dev, lmr.lh(), 0, 4 * kHugePage);
    view.word(0) = 1;
    in_child([&] {
        expect_equal(view.word(0), 1U, "what the parent stored");
        view.word(8) = 2;
        view.word(3 * kHugePage) = 3;  // a page that no process has touched
    });
    CHECK(view.word(8) == 2);
    CHECK(view.word(3 * kHugePage) == 3);

    Shared<Signal> mapped;
    Child child([&] {
        view.word(16) = 4;
        mapped->post();
        for (;;)
            ::pause();
    });
    REQUIRE_NOTHROW(mapped->wait("the child"));
    dev.free(lmr.lh());
    CHECK(load_signal(view.data()) == SIGBUS);
    child.kill(SIGKILL);
    (void)child.wait();
}

TEST_CASE_METHOD(Mmap, "map: it outlives handle and file, and keeps the LMR", "[map]") {
    auto file = std::make_unique<Device>(env().indexes.front());
    const auto lh = file->alloc(3 * kPage);
    View view(*file, lh, 0, 3 * kPage);
    file->write(lh, 0, make_pattern(3 * kPage, 7));
    file->unmap(lh);
    CHECK_FALSE(find_mismatch(view.bytes(), 7));
    file.reset();
    CHECK_FALSE(find_mismatch(view.bytes(), 7));
    REQUIRE(::madvise(view.data(), 3 * kPage, MADV_DONTNEED) == 0);
    CHECK_FALSE(find_mismatch(view.bytes(), 7));
    view.word(0) = 8;
    CHECK(dev.query().mem_used >= 3 * kPage);
    view.unmap();
    check_nothing_used();
}

TEST_CASE_METHOD(Mmap, "map: many threads, many mappings of one LMR", "[map]") {
    NamedLmr lmr(dev, 8 * kHugePage);
    const View shared(dev, lmr.lh(), 0, 8 * kHugePage);
    const std::size_t rounds = env().scaled(60, 4);
    Threads threads;
    for (std::size_t t = 0; t < 4; ++t) {
        threads.start([&, t] {
            for (std::size_t round = 0; round < rounds; ++round) {
                const std::size_t at = (mix(t * rounds + round) % (8 * kHugePage - 8)) & ~7UL;
                const View own(dev, lmr.lh(), at / kPage * kPage, kPage);
                const std::uint64_t value = t << 32 | round;
                __atomic_store_n(reinterpret_cast<std::uint64_t*>(own.data() + at % kPage), value,
                                 __ATOMIC_RELAXED);
                // Another thread may have stored there since, so only check for any store.
                expect(shared.word(at) != 0 || value == 0, "a store through another mapping");
            }
        });
    }
    REQUIRE_NOTHROW(threads.join());
}

TEST_CASE_METHOD(Mmap, "map: another process reads and writes it as ptrace does", "[map]") {
    NamedLmr lmr(dev, 2 * kPage);
    const View view(dev, lmr.lh(), 0, 2 * kPage);
    fill_pattern(view.bytes(), 9);
    std::vector<std::byte> got(2 * kPage);
    const iovec local{got.data(), got.size()};
    const iovec remote{view.data(), view.size()};
    REQUIRE(::process_vm_readv(::getpid(), &local, 1, &remote, 1, 0) == 2 * kPage);
    CHECK_FALSE(find_mismatch(got, 9));
    fill_pattern(got, 10);
    REQUIRE(::process_vm_writev(::getpid(), &local, 1, &remote, 1, 0) == 2 * kPage);
    dev.read(lmr.lh(), 0, got);
    CHECK_FALSE(find_mismatch(got, 10));
}
