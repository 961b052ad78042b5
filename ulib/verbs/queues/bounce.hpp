// SPDX-License-Identifier: MIT
//
// Bounce buffers: pinned memory of the library, through which the device sends and receives
// messages. Each send queue and receive queue has one, made when first used.
#pragma once

#include "queues/ring.hpp"

#include <infiniband/verbs.h>

#include <cstdint>
#include <optional>

namespace lite::verbs {

// Not thread-safe: its queue's lock protects it.
class bounce {
  public:
    // Bytes of a queue's largest buffer, unless a single message needs more.
    static constexpr uint64_t limit = uint64_t{4} << 20;

    explicit bounce(ibv_pd* pd) : m_pd(pd) {}
    bounce(const bounce&) = delete;
    bounce& operator=(const bounce&) = delete;
    ~bounce() { drop(); }

    // Takes @length bytes; nothing: too few are free. An empty buffer is first made large enough
    // for @count such parts (within the limit, unless @all), or for this one. @failed: 0, or an
    // errno if that is not possible.
    std::optional<uint64_t> take(uint64_t length, uint64_t count, bool all, int& failed);
    void give(uint64_t offset) { m_ring.give(offset); }
    void clear() { m_ring.clear(); }
    // Unmaps the buffer; what is in it is lost.
    void drop();

    char* at(uint64_t offset) { return m_memory + offset; }
    ibv_sge sge(uint64_t offset, uint32_t length) const;

  private:
    int make(uint64_t size);

    ibv_pd* const m_pd;
    ring m_ring;
    uint64_t m_refused = UINT64_MAX;  // so many bytes could not be pinned
    char* m_memory = nullptr;
    ibv_mr* m_mr = nullptr;
};

}  // namespace lite::verbs
