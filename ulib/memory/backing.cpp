// SPDX-License-Identifier: MIT
//
// lite_alloc() with LITE_ALLOC_UNPINNED: maps a memfd and registers it unpinned. Leased memory is
// anonymous, as the kernel takes a page of a file before it looks for pins.

#include "memory/backing.hpp"

#include "cancellation.hpp"
#include "context.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <memory>
#include <new>
#include <utility>
#include <vector>

#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

namespace lite::internal {
namespace {

int map_anonymous(std::size_t length, void*& addr) noexcept {
    addr = ::mmap(nullptr, length, PROT_READ | PROT_WRITE,
                  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return addr == MAP_FAILED ? -errno : 0;
}

int map_memfd(std::size_t length, void*& addr) noexcept {
    // A longer file would raise SIGXFSZ.
    rlimit limit = {};
    if (!::getrlimit(RLIMIT_FSIZE, &limit) && length > limit.rlim_cur)
        return -EFBIG;
    const int fd = ::memfd_create("lite", MFD_CLOEXEC);
    if (fd < 0)
        return -errno;
    int err = ::ftruncate(fd, static_cast<off_t>(length)) ? -errno : 0;
    if (!err) {
        addr = ::mmap(nullptr, length, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        err = addr == MAP_FAILED ? -errno : 0;
    }
    ::close(fd);
    return err;
}

// Maps zeroed memory that children do not get: they have no part in the LMR. 0 or -errno.
int map_memory(std::size_t length, bool leased, void*& addr) noexcept {
    int err = leased ? map_anonymous(length, addr) : map_memfd(length, addr);
    if (!err && ::madvise(addr, length, MADV_DONTFORK)) {
        err = -errno;
        ::munmap(addr, length);
    }
    return err;
}

// Rounds up to whole pages. 0: too long for an LMR, or for an address.
std::size_t whole_pages(std::uint64_t length) noexcept {
    const auto page = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
    const auto whole =
        (std::min<std::uint64_t>(length, LITE_LMR_SIZE_MAX + 1) + page - 1) & ~(page - 1);
    return whole > LITE_LMR_SIZE_MAX || whole > SIZE_MAX ? 0 : static_cast<std::size_t>(whole);
}

// Checks that the LMR is to be on this node only. 0 or a negative errno.
int check_nodes(lite_ctx* ctx, const lite_alloc_params& p) noexcept {
    if (!p.n_nodes)
        return 0;
    lite_ioc_query query = {};
    const int err = lite_query(ctx, &query);
    if (err)
        return err;
    if (p.n_nodes != 1 || !p.nodes)
        return -EINVAL;
    return !p.nodes[0] || p.nodes[0] == query.node_id ? 0 : -EINVAL;
}

// Opens one more handle of a named LMR. 0: it has no name, or this fails.
lite_lh_t another_handle(lite_ctx* ctx, lite_lh_t lh) noexcept {
    lite_lmr_info info;
    lite_lmr_info found;
    lite_lh_t made = 0;
    if (lite_stat(ctx, lh, &info, nullptr, nullptr) || !*info.name ||
        lite_map(ctx, info.name, LITE_RIGHT_MASTER, &made, nullptr))
        return 0;
    // Another LMR may have got the name.
    if (!lite_stat(ctx, made, &found, nullptr, nullptr) && found.id == info.id &&
        found.home == info.home)
        return made;
    lite_unmap(ctx, made);
    return 0;
}

// Frees an LMR, but keeps its memory and block. 0 or a negative errno.
int free_handle(lite_ctx* ctx, lite_lh_t lh) noexcept {
    lite_ioc_free arg = {};
    arg.lh = lh;
    return control(ctx, LITE_IOC_FREE, arg);
}

// Does no LMR have this memory any more? If one has, the kernel refuses to register it again.
bool is_free(lite_ctx* ctx, void* addr, std::size_t length) noexcept {
    lite_lh_t lh = 0;
    return !lite_register_with(ctx, nullptr, addr, length, 0, LITE_REGISTER_UNPINNED, &lh) &&
           !free_handle(ctx, lh);
}

}  // namespace

backing::~backing() {
    const std::unique_ptr<blocks> of(mine());
    if (!of)
        return;
    for (const auto& b : of->all) {
        if (b.is_over)
            ::munmap(b.addr, b.length);
    }
}

// The pid tells a child made by clone(2), which runs no fork handlers.
bool backing::blocks::is_mine() const noexcept { return process == forks && pid == ::getpid(); }

backing::blocks* backing::mine() const noexcept {
    blocks* const found = m_blocks.load(std::memory_order_acquire);
    return found && found->is_mine() ? found : nullptr;
}

void backing::make() {
    blocks* found = m_blocks.load(std::memory_order_acquire);
    if (found && found->is_mine())
        return;
    auto made = std::make_unique<blocks>();
    // Those of a parent stay as they are. Another thread may have been faster.
    if (m_blocks.compare_exchange_strong(found, made.get()))
        (void)made.release();
}

int backing::alloc(lite_ctx* ctx, const lite_alloc_params& p, lite_lh_t* lh) noexcept try {
    const no_cancellation guard;
    // Without a handle the library would not learn when it can unmap the memory.
    if (p.flags & ~(LITE_ALLOC_UNPINNED | LITE_ALLOC_LEASED) || !p.length)
        return -EINVAL;
    int err = check_nodes(ctx, p);
    if (err)
        return err;
    const auto length = whole_pages(p.length);
    if (!length)
        return -EFBIG;
    make();
    std::list<block> made(1);
    block& b = made.front();
    b = {0, 0, nullptr, length, false, false};
    err = map_memory(length, p.flags & LITE_ALLOC_LEASED, b.addr);
    if (err)
        return err;
    const auto flags =
        LITE_REGISTER_UNPINNED | (p.flags & LITE_ALLOC_LEASED ? LITE_REGISTER_LEASED : 0);
    err = lite_register_with(ctx, p.name, b.addr, length, p.mode, flags, &b.lh);
    if (err) {
        ::munmap(b.addr, length);
        return err;
    }
    *lh = b.lh;
    put(made);
    return 0;
} catch (const std::bad_alloc&) {
    return -ENOMEM;
}

// Takes a block out of the list, so that its user can sleep without the lock.
std::list<backing::block> backing::take(lite_lh_t lh) noexcept {
    std::list<block> taken;
    blocks* const of = mine();
    // Blocks have handle 0 if their LMR lives on without a handle.
    if (!of || !lh)
        return taken;
    const std::lock_guard lock(of->lock);
    const auto b = std::find_if(of->all.begin(), of->all.end(),
                                [&](const block& candidate) { return candidate.lh == lh; });
    if (b != of->all.end())
        taken.splice(taken.begin(), of->all, b);
    return taken;
}

void backing::put(std::list<block>& taken) noexcept {
    blocks* const of = mine();
    const std::lock_guard lock(of->lock);
    of->all.splice(of->all.begin(), taken);
}

bool backing::freed(lite_ctx* ctx, lite_lh_t lh) noexcept {
    const auto taken = take(lh);
    for (const block& b : taken) {
        ::munmap(b.addr, b.length);
        // The library opened these handles.
        if (b.is_ours)
            lite_unmap(ctx, b.lh);
        if (b.kept)
            lite_unmap(ctx, b.kept);
    }
    return !taken.empty();
}

void backing::some_freed(lite_ctx* ctx) noexcept try {
    blocks* const of = mine();
    if (!of)
        return;
    std::vector<lite_lh_t> lhs;
    {
        const std::lock_guard lock(of->lock);
        for (const block& b : of->all)
            lhs.push_back(b.lh);
    }
    for (const lite_lh_t lh : lhs) {
        lite_lmr_info info;
        if (lite_stat(ctx, lh, &info, nullptr, nullptr) == -EIDRM)
            freed(ctx, lh);
    }
} catch (const std::bad_alloc&) {
    // The memory stays until a later call.
}

void backing::closing(lite_ctx* ctx, lite_lh_t lh) noexcept {
    auto taken = take(lh);
    if (taken.empty())
        return;
    if (!taken.front().kept)
        taken.front().kept = another_handle(ctx, lh);
    put(taken);
}

void backing::closed(lite_ctx* ctx, lite_lh_t lh) noexcept {
    auto taken = take(lh);
    if (taken.empty())
        return;
    block& b = taken.front();
    if (!b.kept && is_free(ctx, b.addr, b.length)) {
        ::munmap(b.addr, b.length);
        return;
    }
    b.lh = std::exchange(b.kept, 0);
    b.is_ours = true;
    put(taken);
}

void backing::end(lite_ctx* ctx) noexcept {
    blocks* const of = mine();
    if (!of)
        return;
    for (block& b : of->all) {
        const int err = free_handle(ctx, b.lh);
        b.is_over = !err || err == -EIDRM || err == -ENODEV || is_free(ctx, b.addr, b.length);
    }
}

}  // namespace lite::internal
