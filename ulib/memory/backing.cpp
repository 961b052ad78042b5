// SPDX-License-Identifier: MIT
//
// lite_alloc() with LITE_ALLOC_UNPINNED: the bytes are a memfd's, which is mapped here and
// registered unpinned, so the kernel brings its pages in when they are used, and may swap them out.

#include "memory/backing.hpp"

#include "context.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <new>

#include <sys/mman.h>
#include <unistd.h>

namespace lite::internal {
namespace {

// Zeroed memory: sets @addr. 0 or a negative errno. Not of a child, which has no part in the LMR.
int map_memory(std::size_t length, void*& addr) noexcept {
    const int fd = ::memfd_create("lite", MFD_CLOEXEC);
    if (fd < 0)
        return -errno;
    int err = ::ftruncate(fd, static_cast<off_t>(length)) ? -errno : 0;
    if (!err) {
        addr = ::mmap(nullptr, length, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        err = addr == MAP_FAILED ? -errno : 0;
    }
    ::close(fd);
    if (!err && ::madvise(addr, length, MADV_DONTFORK)) {
        err = -errno;
        ::munmap(addr, length);
    }
    return err;
}

// Whole pages, or 0: too long.
std::size_t whole_pages(std::uint64_t length) noexcept {
    const auto page = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
    return length > LITE_LMR_SIZE_MAX ? 0 : (length + page - 1) & ~(page - 1);
}

// Does it name this node, and no other?
int check_nodes(lite_ctx* ctx, const lite_alloc_params& p) noexcept {
    if (!p.n_nodes)
        return 0;
    lite_ioc_query query = {};
    const int err = lite_query(ctx, &query);
    if (err)
        return err;
    return p.n_nodes == 1 && p.nodes && p.nodes[0] == query.node_id ? 0 : -EINVAL;
}

}  // namespace

backing::~backing() {
    for (const auto& b : m_blocks) {
        if (b.owner == ::getpid())
            ::munmap(b.addr, b.length);
    }
}

int backing::alloc(lite_ctx* ctx, const lite_alloc_params& p, lite_lh_t* lh) noexcept try {
    // Without a handle nothing would tell when the memory may go.
    if (p.flags != LITE_ALLOC_UNPINNED || !p.length)
        return -EINVAL;
    int err = check_nodes(ctx, p);
    if (err)
        return err;
    const auto length = whole_pages(p.length);
    if (!length)
        return -EFBIG;
    std::list<block> made(1);
    block& b = made.front();
    b = {0, nullptr, length, p.name && *p.name, ::getpid()};
    err = map_memory(length, b.addr);
    if (err)
        return err;
    err = lite_register_with(ctx, p.name, b.addr, length, p.mode, LITE_REGISTER_UNPINNED, &b.lh);
    if (err) {
        ::munmap(b.addr, length);
        return err;
    }
    *lh = b.lh;
    const std::lock_guard lock(m_lock);
    m_blocks.splice(m_blocks.begin(), made);
    return 0;
} catch (const std::bad_alloc&) {
    return -ENOMEM;
}

void backing::drop(lite_lh_t lh, bool named_too) noexcept {
    const std::lock_guard lock(m_lock);
    const auto b = std::find_if(m_blocks.begin(), m_blocks.end(), [&](const block& candidate) {
        return candidate.lh == lh && (named_too || !candidate.named);
    });
    if (b == m_blocks.end())
        return;
    if (b->owner == ::getpid())
        ::munmap(b->addr, b->length);
    m_blocks.erase(b);
}

void backing::freed(lite_lh_t lh) noexcept { drop(lh, true); }

void backing::closed(lite_lh_t lh) noexcept { drop(lh, false); }

}  // namespace lite::internal
