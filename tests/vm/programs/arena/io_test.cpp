// SPDX-License-Identifier: MIT
// Other users of an arena's pages: O_DIRECT, verbs, LITE itself.
#include "fixture.hpp"

#include <cstdlib>
#include <memory>

#include <fcntl.h>
#include <infiniband/verbs.h>
#include <sys/uio.h>

using namespace lite_test;

TEST_CASE_METHOD(Mmap, "arena: a device reads and writes the pages themselves", "[arena]") {
    // The test provides a block device, as files here do not support O_DIRECT.
    const char* path = std::getenv("LITE_TEST_BLOCK");
    REQUIRE(path);
    const int fd = ::open(path, O_RDWR | O_DIRECT);
    REQUIRE(fd >= 0);
    const Arena from(dev, 2 * kBlock, LITE_ARENA_EAGER);
    const Arena to(dev, 2 * kBlock, LITE_ARENA_EAGER);
    const auto lh = register_memory(dev, to.bytes());
    fill_pattern(from.bytes(), 1);
    CHECK(::pwrite(fd, from.data(), 2 * kBlock, 0) == 2 * kBlock);
    CHECK(::pread(fd, to.data(), 2 * kBlock, 0) == 2 * kBlock);  // pages that were not touched
    ::close(fd);
    std::vector<std::byte> got(2 * kBlock);
    dev.read(lh, 0, got);
    CHECK(!find_mismatch(got, 1));
}

TEST_CASE_METHOD(Mmap, "arena: verbs register it", "[arena]") {
    int n = 0;
    ibv_device** list = ::ibv_get_device_list(&n);
    REQUIRE(n > 0);
    ibv_context* context = ::ibv_open_device(list[0]);
    REQUIRE(context);
    ibv_pd* pd = ::ibv_alloc_pd(context);
    REQUIRE(pd);
    Arena arena(dev, 2 * kBlock);
    fill_pattern(arena.bytes().first(kBlock), 2);
    ibv_mr* mr = ::ibv_reg_mr(pd, arena.data(), 2 * kBlock,
                              IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
    REQUIRE(mr);
    CHECK(!find_mismatch(arena.bytes().first(kBlock), 2));
    // Its pages stay while verbs have them, whatever becomes of the arena.
    arena.unmap();
    drop_caches();
    REQUIRE_NOTHROW(wait_used(dev, 0));
    Arena next(dev, 2 * kBlock, LITE_ARENA_EAGER);
    CHECK(all_zero(next.bytes()));
    CHECK(::ibv_dereg_mr(mr) == 0);
    ::ibv_dealloc_pd(pd);
    ::ibv_close_device(context);
    ::ibv_free_device_list(list);
}

TEST_CASE_METHOD(Mmap, "arena: a page that is pinned is not used again", "[arena]") {
    Arena arena(dev, 2 * kBlock);
    fill_pattern(arena.bytes(), 1);
    int pipe[2];
    REQUIRE(::pipe(pipe) == 0);
    const iovec secret{arena.data() + 3 * kPage, kPage};
    REQUIRE(::vmsplice(pipe[1], &secret, 1, 0) == kPage);
    std::vector<std::byte> got(kPage), wanted(secret.iov_len);
    std::memcpy(wanted.data(), secret.iov_base, kPage);
    arena.unmap();
    Arena next(dev, 2 * kBlock);
    // The other block is the process's again, in the first place; the pinned one is not.
    CHECK(!all_zero(next.bytes().first(kBlock)));
    CHECK(all_zero(next.bytes(kBlock, kBlock)));
    fill_pattern(next.bytes(), 2);
    CHECK(::read(pipe[0], got.data(), kPage) == kPage);
    CHECK(got == wanted);
    ::close(pipe[0]);
    ::close(pipe[1]);
    next.unmap();
    drop_caches();
    check_nothing_used();
}

TEST_CASE_METHOD(Mmap, "arena: LITE's own operations take it as a buffer", "[arena]") {
    const std::uint32_t away[] = {env().peer()};
    const NamedLmr far(dev, kBlock, away);
    const Arena arena(dev, 2 * kBlock, LITE_ARENA_EAGER);
    for (const std::size_t length : {std::size_t{8}, std::size_t{3000}, kBlock}) {
        fill_pattern(arena.bytes(0, length), length);
        dev.write(far.lh(), 0, arena.bytes(0, length));
        dev.read(far.lh(), 0, arena.bytes(kBlock, length));
        CHECK(!find_mismatch(arena.bytes(kBlock, length), length));
    }
}
