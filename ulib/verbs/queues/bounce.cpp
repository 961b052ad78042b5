// SPDX-License-Identifier: MIT

#include "queues/bounce.hpp"

#include "log.hpp"
#include "real.hpp"

#include <algorithm>
#include <bit>
#include <cerrno>

#include <sys/mman.h>

namespace lite::verbs {
namespace {

// Bytes of the smallest buffer: parts of any size do not fill a ring to its last byte.
constexpr uint64_t smallest = 16384;

// Bytes at the end, registered but not used: when the last page of a region of whole MB is copied,
// Soft-RoCE of 6.1 reads a pointer behind its table (rxe_mr_copy()).
constexpr uint64_t behind = 4096;

}  // namespace

void bounce::drop() {
    if (m_mr)
        real().dereg_mr(m_mr);
    if (m_memory)
        ::munmap(m_memory, m_ring.size() + behind);
    m_mr = nullptr;
    m_memory = nullptr;
    m_ring = ring();
}

// 0 or errno.
int bounce::make(uint64_t size) {
    drop();
    const uint64_t all = size + behind;
    void* memory = ::mmap(nullptr, all, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
        return errno;
    // Else a write after fork(2) would give the process other pages than the device has.
    ::madvise(memory, all, MADV_DONTFORK);
    m_mr = real().reg_mr_iova2(m_pd, memory, all, reinterpret_cast<uintptr_t>(memory),
                               IBV_ACCESS_LOCAL_WRITE);
    if (!m_mr) {
        const int err = errno;
        ::munmap(memory, all);
        return err;
    }
    m_memory = static_cast<char*>(memory);
    m_ring = ring(size);
    debug("bounce buffer of %llu bytes", static_cast<unsigned long long>(size));
    return 0;
}

std::optional<uint64_t> bounce::take(uint64_t length, uint64_t count, bool all, int& failed) {
    failed = 0;
    if (m_ring.empty()) {
        const uint64_t room = length + 64;
        uint64_t wanted = std::max(smallest, room);
        const uint64_t most = all ? room * count : limit;
        if (count > 1 && room < most)
            wanted = std::max(wanted, std::min(most, room * count));
        wanted = std::bit_ceil(wanted);
        // With a low RLIMIT_MEMLOCK a smaller buffer must do. A refused size is tried again only
        // for a message that needs it.
        if (m_refused / 2 >= room)
            wanted = std::min(wanted, m_refused / 2);
        while (m_ring.size() < wanted) {
            if (m_ring.size() >= room && m_ring.size() * 2 > most)
                break;
            failed = make(wanted);
            if (!failed || wanted / 2 < room)
                break;
            m_refused = wanted;
            wanted /= 2;
        }
        if (failed)
            return std::nullopt;
    }
    return m_ring.take(length);
}

ibv_sge bounce::sge(uint64_t offset, uint32_t length) const {
    return {reinterpret_cast<uintptr_t>(m_memory + offset), length, m_mr->lkey};
}

}  // namespace lite::verbs
