// SPDX-License-Identifier: MIT

#include "queues/bounce.hpp"

#include "log.hpp"
#include "real.hpp"

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <new>

#include <sys/mman.h>

namespace lite::verbs {
namespace {

// Bytes of the smallest buffer.
constexpr uint64_t smallest = 16384;

// Bytes at the end, registered but not used: when the last page of a region of whole MB is copied,
// Soft-RoCE of 6.1 reads a pointer behind its table (rxe_mr_copy()).
constexpr uint64_t behind = 4096;

constexpr uint64_t granule = internal::ranges::granule;

constexpr uint64_t rounded(uint64_t length) {
    return std::max((length + granule - 1) / granule * granule, granule);
}

}  // namespace

bool bounce::empty() const {
    return std::all_of(m_buffers.begin(), m_buffers.end(),
                       [](const buffer& b) { return b.free.all_free(); });
}

void bounce::drop() {
    for (const buffer& b : m_buffers) {
        real().dereg_mr(b.mr);
        ::munmap(b.memory, b.size + behind);
    }
    m_buffers.clear();
    m_size = 0;
}

// 0 or errno.
int bounce::make(uint64_t size) {
    std::list<buffer> made;
    buffer& b = made.emplace_back(size);
    const uint64_t all = size + behind;
    void* memory = ::mmap(nullptr, all, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
        return errno;
    // Else a write after fork(2) would give the process other pages than the device has.
    ::madvise(memory, all, MADV_DONTFORK);
    b.mr = real().reg_mr_iova2(m_pd, memory, all, reinterpret_cast<uintptr_t>(memory),
                               IBV_ACCESS_LOCAL_WRITE);
    if (!b.mr) {
        const int err = errno;
        ::munmap(memory, all);
        return err;
    }
    b.memory = static_cast<char*>(memory);
    m_buffers.splice(m_buffers.begin(), made);
    m_size += size;
    debug("bounce buffer of %llu bytes", static_cast<unsigned long long>(size));
    return 0;
}

std::optional<bounce::place> bounce::buffer::take(uint64_t n) {
    place made{this, 0, n, internal::ranges::make_spare()};
    const auto begin = free.take(n, granule);
    if (!begin)
        return std::nullopt;
    made.begin = *begin;
    return made;
}

std::optional<bounce::place> bounce::take(uint64_t length, uint64_t count, bool all,
                                          int& failed) try {
    failed = 0;
    const uint64_t room = rounded(length);
    for (buffer& b : m_buffers) {
        if (auto found = b.take(room))
            return found;
    }
    // Parts up to twice as long fit later, so there are few buffers.
    const uint64_t wide = std::bit_ceil(room) * count;
    const bool is_idle = empty();
    // What others may have to pin is left to them, unless messages would be lost.
    if (!is_idle && !all && m_refused != UINT64_MAX)
        return std::nullopt;
    if (is_idle)
        drop();
    uint64_t most = all ? wide : std::max(limit, is_idle ? room : 0) - std::min(m_size, limit);
    // With a low RLIMIT_MEMLOCK a smaller buffer must do. A refused size is tried again only for a
    // message that needs it.
    if (m_refused / 2 >= room)
        most = std::min(most, m_refused / 2 / granule * granule);
    if (most < room)
        return std::nullopt;
    for (uint64_t wanted = std::min(most, std::max(smallest, wide)); wanted;
         wanted = wanted > room ? std::max(wanted / 2 / granule * granule, room) : 0) {
        failed = make(wanted);
        if (!failed)
            return m_buffers.front().take(room);
        m_refused = wanted;
        if (!is_idle && !all)
            break;
    }
    if (!is_idle) {
        if (all)
            say_once("messages may be lost: no bounce buffer", std::strerror(failed));
        failed = 0;
    }
    return std::nullopt;
} catch (const std::bad_alloc&) {
    failed = empty() ? ENOMEM : 0;
    return std::nullopt;
}

ibv_sge bounce::sge(const place& where, uint32_t length) const {
    return {reinterpret_cast<uintptr_t>(at(where)), length, where.in->mr->lkey};
}

}  // namespace lite::verbs
