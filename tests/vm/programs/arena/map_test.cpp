// SPDX-License-Identifier: MIT
// Arenas as memory: which are refused, what they contain, which process gets which blocks, and when
// blocks go back to the kernel.
#include "fixture.hpp"

#include <array>

#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace lite_test;

TEST_CASE_METHOD(Mmap, "arena: refusals", "[arena]") {
    CHECK(try_arena(dev, arena_args(0)) == err(EINVAL));
    CHECK(try_arena(dev, arena_args(kPage)) == err(EINVAL));
    CHECK(try_arena(dev, arena_args(kBlock + kPage)) == err(EINVAL));
    CHECK(try_arena(dev, arena_args(kBlock, 4)) == err(EOPNOTSUPP));
    CHECK(try_arena(dev, arena_args(LITE_LMR_SIZE_MAX + kBlock)) == err(EFBIG));
    const Errno large = try_arena(dev, arena_args(LITE_LMR_SIZE_MAX));
    CHECK((large == err(ENOMEM) || large == err(ENOSPC)));
    auto args = arena_args(kBlock);
    args.size = 8;
    CHECK(try_arena(dev, args) == err(EINVAL));
    check_nothing_used();
}

TEST_CASE_METHOD(Mmap, "arena: zeroed, writable, and no larger", "[arena]") {
    const Arena arena(dev, 3 * kBlock, LITE_ARENA_EAGER);
    CHECK(all_zero(arena.bytes()));
    fill_pattern(arena.bytes(), 1);
    CHECK(!find_mismatch(arena.bytes(), 1));
    CHECK(dev.query().mem_used == 3 * kBlock);
    CHECK(::mremap(arena.data(), 3 * kBlock, 4 * kBlock, MREMAP_MAYMOVE) == MAP_FAILED);
    // What is thrown out of page tables comes back.
    CHECK(::madvise(arena.data(), 3 * kBlock, MADV_DONTNEED) == 0);
    CHECK(!find_mismatch(arena.bytes(), 1));
    void* moved = ::mremap(arena.data(), 3 * kBlock, 3 * kBlock, MREMAP_MAYMOVE | MREMAP_FIXED,
                           unmapped_address(3 * kBlock));
    REQUIRE(moved != MAP_FAILED);
    CHECK(!find_mismatch({static_cast<std::byte*>(moved), 3 * kBlock}, 1));
    ::munmap(moved, kBlock);
    // Blocks go together.
    CHECK(dev.query().mem_used == 3 * kBlock);
    ::munmap(static_cast<std::byte*>(moved) + kBlock, 2 * kBlock);
    check_nothing_used();
}

TEST_CASE_METHOD(Mmap, "arena: a process gets the blocks back that it has unmapped", "[arena]") {
    constexpr std::size_t size = 4 * kBlock;
    Arena first(dev, size);
    fill_pattern(first.bytes(), 7);
    first.unmap();
    CHECK(dev.query().mem_used == size);
    Arena second(dev, size);
    CHECK(!find_mismatch(second.bytes(), 7));
    CHECK(dev.query().mem_used == size);
    // Larger than what is kept: the rest is new, and zeroed.
    second.unmap();
    Arena third(dev, size + kBlock);
    CHECK(!find_mismatch(third.bytes().first(size), 7));
    CHECK(all_zero(third.bytes(size, kBlock)));
    third.unmap();
    // For memory that others will see.
    {
        Arena zeroed(dev, size, LITE_ARENA_ZERO);
        CHECK(all_zero(zeroed.bytes()));
        CHECK(dev.query().mem_used == (size + kBlock));
        fill_pattern(zeroed.bytes(), 7);
    }
    // Another open file of the process has its own.
    {
        const Device other(env().indexes.front());
        const Arena fourth(other, size, LITE_ARENA_EAGER);
        CHECK(all_zero(fourth.bytes()));
    }
    drop_caches();
    REQUIRE_NOTHROW(wait_used(dev, 0));
    const Arena fifth(dev, size, LITE_ARENA_EAGER);
    CHECK(all_zero(fifth.bytes()));
}

TEST_CASE_METHOD(Mmap, "arena: no other process gets blocks that are kept", "[arena]") {
    Arena secret(dev, 2 * kBlock);
    fill_pattern(secret.bytes(), 3);
    secret.unmap();
    // With the same open file: a child, of the same user and of another one.
    in_child([&] {
        for (int i = 0; i < 3; i++) {
            const Arena own(dev, 2 * kBlock);
            expect(all_zero(own.bytes()), "another process gets zeroes");
            fill_pattern(own.bytes(), 4);
        }
        const Device other(env().indexes.front());
        const Arena own(other, 2 * kBlock);
        expect(all_zero(own.bytes()), "another process and file get zeroes");
    });
    // The child's blocks were not kept for this process.
    REQUIRE_NOTHROW(wait_used(dev, 2 * kBlock));
    Arena again(dev, 2 * kBlock, LITE_ARENA_EAGER);
    CHECK(!find_mismatch(again.bytes(), 3));
    again.unmap();
    check_nothing_used();
}

TEST_CASE_METHOD(Mmap, "arena: what is kept ends with the process, not with its open file",
                 "[arena]") {
    const Device inherited(env().indexes.front());
    in_child([&] {
        Arena first(inherited, 2 * kBlock);
        fill_pattern(first.bytes(), 5);
        first.unmap();
        const Arena second(inherited, kBlock);
        expect(!find_mismatch(second.bytes(), 5), "kept for the child");
        // Dies with one arena mapped and one block kept.
    });
    REQUIRE_NOTHROW(wait_used(dev, 0));
    const Arena own(inherited, 2 * kBlock);
    CHECK(all_zero(own.bytes()));
}

TEST_CASE_METHOD(Mmap, "arena: what is kept ends when the process runs another program",
                 "[arena]") {
    const Device inherited(env().indexes.front());
    std::array<int, 2> go{};
    REQUIRE(::pipe(go.data()) == 0);
    const Child child([&] {
        Arena(inherited, 2 * kBlock).unmap();
        char c;
        expect(::read(go[0], &c, 1) == 1, "the parent has seen them");
        ::execl("/bin/sleep", "sleep", "1000", nullptr);
    });
    REQUIRE_NOTHROW(wait_used(dev, 2 * kBlock));
    CHECK(::write(go[1], "", 1) == 1);
    REQUIRE_NOTHROW(wait_used(dev, 0));
    REQUIRE_NOTHROW(wait_until("it runs another program", [&] {
        std::string name;
        return std::getline(std::ifstream("/proc/" + std::to_string(child.pid()) + "/comm"),
                            name) &&
               name == "sleep";
    }));

    // A child that shares this process's memory until it runs another program leaves this one's.
    Arena own(inherited, 2 * kBlock);
    fill_pattern(own.bytes(), 6);
    own.unmap();
    pid_t spawned = 0;
    std::array<char, 5> name{"true"};
    std::array<char*, 2> arguments{name.data(), nullptr};
    REQUIRE(!::posix_spawnp(&spawned, name.data(), nullptr, nullptr, arguments.data(), environ));
    CHECK(::waitpid(spawned, nullptr, 0) == spawned);
    const Arena again(inherited, 2 * kBlock, LITE_ARENA_EAGER);
    CHECK(!find_mismatch(again.bytes(), 6));
    for (const int fd : go)
        ::close(fd);
}

TEST_CASE_METHOD(Mmap, "arena: a limited number of blocks is kept", "[arena]") {
    Arena large(dev, (LITE_ARENA_KEPT_MAX + 3) * kBlock);
    large.unmap();
    CHECK(dev.query().mem_used == LITE_ARENA_KEPT_MAX * kBlock);
    drop_caches();
    REQUIRE_NOTHROW(wait_used(dev, 0));
}

TEST_CASE_METHOD(Mmap, "arena: children have it only if the process says so", "[arena]") {
    const Arena arena(dev, kBlock, LITE_ARENA_EAGER);
    fill_pattern(arena.bytes(), 1);
    in_child([&] { expect_equal(load_signal(arena.data()), SIGSEGV, "load in a child"); });
    REQUIRE(::madvise(arena.data(), kBlock, MADV_DOFORK) == 0);
    in_child([&] {
        expect(!find_mismatch(arena.bytes(), 1), "the child sees it");
        fill_pattern(arena.bytes(), 2);
    });
    CHECK(!find_mismatch(arena.bytes(), 2));
}

TEST_CASE_METHOD(Mmap, "arena: what a child has left in it is not used again", "[arena]") {
    Arena arena(dev, kBlock);
    fill_pattern(arena.bytes(), 1);
    REQUIRE(::madvise(arena.data(), kBlock, MADV_DOFORK) == 0);
    std::array<int, 2> unmapped{};
    REQUIRE(::pipe(unmapped.data()) == 0);
    Child child([&] {
        ::close(unmapped[1]);
        char c;
        expect(::read(unmapped[0], &c, 1) == 0, "the parent has unmapped it");
        fill_pattern(arena.bytes(), 2);
    });
    arena.unmap();
    ::close(unmapped[1]);
    REQUIRE_NOTHROW(child.join());
    ::close(unmapped[0]);
    const Arena next(dev, kBlock);
    CHECK(all_zero(next.bytes()));
}

TEST_CASE_METHOD(Mmap, "arena: works after its open file is closed", "[arena]") {
    Device closing(env().indexes.front());
    Arena arena(closing, 2 * kBlock);
    fill_pattern(arena.bytes().first(kBlock), 6);
    closing.close();
    CHECK(!find_mismatch(arena.bytes().first(kBlock), 6));
    CHECK(all_zero(arena.bytes(kBlock, kBlock)));
    arena.unmap();
    check_nothing_used();
}
