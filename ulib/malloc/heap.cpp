// SPDX-License-Identifier: MIT
#include "heap.hpp"

#include "../cancellation.hpp"
#include "node.hpp"

#include <uapi/lite_arena.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>
#include <thread>
#include <utility>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/sysinfo.h>
#include <sys/uio.h>
#include <unistd.h>

namespace lite::large {

constinit address_range block_addresses;

namespace {

using internal::ranges;

constexpr std::size_t unit = LITE_ARENA_BLOCK;
// A new chunk has a quarter of the total of all, up to this, or what is needed if that is more.
constexpr std::size_t spare_max = 32 << 20;
// Chunks without blocks stay for later ones, up to this in all, as in the kernel.
constexpr std::size_t idle_max = LITE_ARENA_KEPT_MAX * unit;

// After a refusal, the node is not asked again for as long as this: asking takes long, and keeps
// other threads from fork(2).
constexpr std::chrono::milliseconds refusal_pause{100};

constexpr std::size_t round_up(std::size_t n, std::size_t to) noexcept {
    return (n + to - 1) / to * to;
}

// NOLINTNEXTLINE(performance-no-int-to-ptr): addresses are reckoned with
std::byte* pointer(std::uintptr_t at) { return reinterpret_cast<std::byte*>(at); }

// Unmaps what is there, and keeps the addresses reserved.
bool seal(std::uintptr_t at, std::size_t size) noexcept {
    return ::mmap(pointer(at), size, PROT_NONE,
                  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0) != MAP_FAILED;
}

bool move(void* from, std::size_t size, std::uintptr_t to) noexcept {
    return ::mremap(from, size, size, MREMAP_MAYMOVE | MREMAP_FIXED, pointer(to)) != MAP_FAILED;
}

bool is_zero(const char* p) noexcept { return !*p && !std::memcmp(p, p + 1, page - 1); }

class errno_keeper {
  public:
    errno_keeper() = default;
    ~errno_keeper() { errno = m_saved; }
    errno_keeper(const errno_keeper&) = delete;
    errno_keeper& operator=(const errno_keeper&) = delete;

  private:
    const int m_saved = errno;
};

// Reads memory of this process where process_vm_readv(2) is forbidden. errno EIO: the first page
// cannot be read.
ssize_t read_file_of_memory(char* to, const std::byte* from, std::size_t size) noexcept {
    const internal::no_cancellation guard;
    const int fd = ::open("/proc/thread-self/mem", O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return -1;
    const ssize_t got = ::pread(fd, to, size, reinterpret_cast<off_t>(from));
    const errno_keeper keep;
    ::close(fd);
    return got;
}

// Copies whole pages to zeroed memory. The copy of a page that cannot be read stays zero. The
// kernel does the reading, as other threads may protect pages at any time. False: it refuses.
bool copy_pages(std::byte* to, std::byte* from, std::size_t size) noexcept {
    alignas(page) static char buffer[64 * 1024];
    for (std::size_t done = 0; done < size;) {
        const std::size_t n = std::min(sizeof(buffer), size - done);
        const iovec local{buffer, n};
        const iovec remote{from + done, n};
        // Not getpid(): the main thread has no memory any more if it has ended before others.
        ssize_t got = ::process_vm_readv(::gettid(), &local, 1, &remote, 1, 0);
        if (got < 0 && errno != EFAULT)
            got = read_file_of_memory(buffer, from + done, n);
        if (got < 0 && errno != EFAULT && errno != EIO)
            return false;
        const std::size_t pages = got < 0 ? 0 : static_cast<std::size_t>(got) / page * page;
        for (std::size_t i = 0; i < pages; i += page)
            if (!is_zero(buffer + i))
                std::memcpy(to + done + i, buffer + i, page);
        done += pages ? pages : page;
    }
    return true;
}

struct mapping {
    void* at;
    std::size_t size;
    ~mapping() {
        if (at)
            ::munmap(at, size);
    }
};

}  // namespace

// Reserves addresses for twice the machine's memory: enough for all arenas and the gaps.
bool heap::reserve() {
    struct sysinfo info = {};
    ::sysinfo(&info);
    const std::size_t size = round_up(2 * info.totalram * info.mem_unit, unit);
    void* p =
        ::mmap(nullptr, size + unit, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (p == MAP_FAILED)
        return false;
    const std::uintptr_t start = round_up(reinterpret_cast<std::uintptr_t>(p), unit);
    m_addresses.emplace(start, size);
    block_addresses.start.store(start, std::memory_order_relaxed);
    // Pairs with has().
    block_addresses.size.store(size, std::memory_order_release);
    return true;
}

void* heap::take_from(chunks::iterator in, std::size_t size, std::size_t alignment) {
    auto spare = ranges::make_spare();
    const auto at = in->second.free.take(size, alignment);
    if (!at)
        return nullptr;
    try {
        m_blocks.emplace(*at, block{in, size, {}}).first->second.spare = std::move(spare);
    } catch (...) {
        in->second.free.give(*at, size, spare);
        throw;
    }
    return pointer(*at);
}

void* heap::take(std::size_t size, std::size_t alignment) {
    for (auto it = m_chunks.begin(); it != m_chunks.end(); ++it) {
        if (it->second.inherited)
            continue;
        if (void* p = take_from(it, size, alignment))
            return p;
    }
    return nullptr;
}

// Takes a block from a new chunk of @length bytes.
void* heap::grow(std::size_t length, std::size_t size, std::size_t alignment, int& err) {
    mapping fresh{nullptr, length};
    err = map_arena(length, fresh.at);
    if (err)
        return nullptr;
    const std::lock_guard guard(m_lock);
    if (!m_addresses && !reserve())
        err = -ENODEV;  // for good: arenas would be of no use
    const auto at = err ? std::nullopt : m_addresses->take(length, unit);
    if (at) {
        const auto it = m_chunks.try_emplace(*at, *at, length).first;
        if (move(fresh.at, length, *at)) {
            fresh.at = nullptr;
            m_total += length;
            return take_from(it, size, alignment);
        }
        // The reservation may be gone, and other memory there: do not use the addresses again.
        m_chunks.erase(it);
    }
    say(event::no_addresses, "a large malloc is ordinary memory", "there are no free addresses");
    err = err ? err : -ENOMEM;
    return nullptr;
}

void* heap::allocate(std::size_t size, std::size_t alignment, bool& zeroed) noexcept try {
    if (m_over.load(std::memory_order_relaxed) || alignment > unit)
        return nullptr;
    const errno_keeper keep;
    std::size_t length;
    size = round_up(size, page);
    alignment = std::max(alignment, page);
    const std::size_t least = round_up(size, unit);
    zeroed = false;
    {
        const std::lock_guard guard(m_lock);
        if (void* p = take(size, alignment))
            return p;
        if (least >= m_refused && std::chrono::steady_clock::now() < m_again)
            return nullptr;
        length = std::min(m_total / 4 / unit * unit, spare_max);
    }
    zeroed = true;
    const std::shared_lock growing(m_growing);
    int err;
    void* p = grow(std::max(length, least), size, alignment, err);
    if (!err)
        return p;
    if (!may_pass(err))
        m_over.store(true, std::memory_order_relaxed);
    else if (length > least)
        p = grow(least, size, alignment, err);
    if (err && may_pass(err) && drop_idle())
        p = grow(least, size, alignment, err);
    if (err == -EDQUOT || err == -ENOSPC || err == -ENOMEM) {
        const std::lock_guard guard(m_lock);
        m_refused = least;
        m_again = std::chrono::steady_clock::now() + refusal_pause;
    }
    return p;
} catch (const std::bad_alloc&) {
    return nullptr;
}

// Unmaps a chunk without blocks. Caches of registrations for RDMA, as Open MPI's, watch madvise(2)
// but not mmap(2): without it they would go on using the old pages. @quietly: there are none, as
// this is a new child, where their hooks may not be called.
void heap::drop(chunks::iterator it, bool quietly) noexcept {
    chunk& c = it->second;
    if (!quietly)
        ::madvise(pointer(it->first), c.size, MADV_DONTNEED);
    if (!c.inherited)
        m_total -= c.size;
    // Addresses that are no longer reserved are not used again.
    if (seal(it->first, c.size))
        m_addresses->give(it->first, c.size, c.addresses);
    else
        ::munmap(pointer(it->first), c.size);
    m_chunks.erase(it);
}

bool heap::drop_idle() noexcept {
    const std::lock_guard guard(m_lock);
    bool any = false;
    for (auto it = m_chunks.begin(); it != m_chunks.end();) {
        const auto at = it++;
        if (at->second.free.all_free()) {
            drop(at);
            any = true;
        }
    }
    return any;
}

bool heap::free(void* p) noexcept {
    const errno_keeper keep;
    const std::lock_guard guard(m_lock);
    const auto it = m_blocks.find(reinterpret_cast<std::uintptr_t>(p));
    if (it == m_blocks.end())
        return false;
    const auto in = it->second.in;
    chunk& c = in->second;
    if (c.inherited)
        ::madvise(p, it->second.size, MADV_DONTNEED);
    c.free.give(it->first, it->second.size, it->second.spare);
    m_blocks.erase(it);
    m_refused = SIZE_MAX;
    if (!c.free.all_free())
        return true;
    std::size_t idle = 0;
    for (const auto& [at, other] : m_chunks)
        idle += other.free.all_free() ? other.size : 0;
    if (c.inherited || idle > idle_max)
        drop(in);
    return true;
}

std::size_t heap::size_of(const void* p) noexcept {
    const std::lock_guard guard(m_lock);
    const auto it = m_blocks.find(reinterpret_cast<std::uintptr_t>(p));
    return it == m_blocks.end() ? 0 : it->second.size;
}

void heap::chunk::drop_copy() noexcept {
    if (copy)
        ::munmap(copy, size);
    copy = nullptr;
}

// A child will have nothing where the chunk is.
void heap::chunk::lack_copy(const char* why) noexcept {
    say(event::not_copied, "a child lacks large mallocs of its parent", why);
    drop_copy();
    // Not tried for later blocks: in such a copy earlier ones would be zeroes.
    has_no_copy = true;
}

void heap::before_fork() noexcept {
    sigset_t all;
    sigset_t before;
    ::sigfillset(&all);
    // While this thread waits for the locks it handles signals: a collector of garbage may have
    // stopped the thread that has a lock, and wait until this one has stopped, too. There is no
    // way to unblock signals just for the wait, so it tries again after a pause.
    for (;;) {
        ::pthread_sigmask(SIG_SETMASK, &all, &before);
        if (m_growing.try_lock()) {
            if (m_lock.try_lock())
                break;
            m_growing.unlock();
        }
        ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
        std::this_thread::sleep_for(std::chrono::microseconds(50));
    }
    m_signals = before;
    const errno_keeper keep;
    for (const auto& [at, b] : m_blocks) {
        chunk& c = b.in->second;
        if (c.inherited || c.has_no_copy)
            continue;
        if (!c.copy) {
            void* copy = ::mmap(nullptr, c.size, PROT_READ | PROT_WRITE,
                                MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
            if (copy == MAP_FAILED) {
                c.lack_copy("no memory");
                continue;
            }
            c.copy = static_cast<std::byte*>(copy);
        }
        if (!copy_pages(c.copy + (at - b.in->first), pointer(at), b.size))
            c.lack_copy("they cannot be read");
    }
}

void heap::after_fork_in_parent() noexcept {
    const errno_keeper keep;
    for (auto& [at, c] : m_chunks) {
        c.drop_copy();
        c.has_no_copy = false;
    }
    const sigset_t before = m_signals;
    m_lock.unlock();
    m_growing.unlock();
    ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

void heap::after_fork_in_child() noexcept {
    const errno_keeper keep;
    for (auto it = m_chunks.begin(); it != m_chunks.end();) {
        const auto at = it++;
        chunk& c = at->second;
        if (c.inherited)
            continue;
        c.inherited = true;
        // What is there is nothing or, after ibv_fork_init(3), memory shared with the parent.
        if (c.free.all_free()) {
            drop(at, true);
        } else if (c.copy && move(c.copy, c.size, at->first)) {
            c.copy = nullptr;
        } else {
            seal(at->first, c.size);
            if (c.copy)
                c.lack_copy("no memory");
        }
    }
    m_total = 0;
    const sigset_t before = m_signals;
    // This thread has another id than the one that locked it, so it cannot unlock it.
    new (&m_growing) std::shared_mutex;
    m_lock.unlock();
    ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

}  // namespace lite::large
