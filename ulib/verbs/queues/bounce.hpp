// SPDX-License-Identifier: MIT
//
// Bounce buffers: pinned memory of the library, through which the device sends and receives
// messages. Each send queue and receive queue has its own, made when first used. Most parts of them
// are given back in order, but not all: if a peer dies in the middle of a message, that receive of
// an SRQ comes back late or never, and must not hold up the others.
#pragma once

#include "../../arena/ranges.hpp"

#include <infiniband/verbs.h>

#include <cstdint>
#include <list>
#include <optional>

namespace lite::verbs {

// Not thread-safe: its queue's lock protects it.
class bounce {
    struct buffer;

  public:
    // Bytes of a queue's buffers, unless a single message needs more.
    static constexpr uint64_t limit = uint64_t{4} << 20;

    struct place {
        buffer* in = nullptr;
        uint64_t begin = 0;
        uint64_t size = 0;
        internal::ranges::spare spare;  // so that giving it back needs no memory
    };

    explicit bounce(ibv_pd* pd) : m_pd(pd) {}
    bounce(const bounce&) = delete;
    bounce& operator=(const bounce&) = delete;
    ~bounce() { drop(); }

    // Takes @length bytes; nothing: too few are free, or (@failed is an errno then, else 0) none
    // can be had. If too few are free, another buffer is made, with room for @count such parts
    // (within the limit, unless @all), or for this one.
    std::optional<place> take(uint64_t length, uint64_t count, bool all, int& failed);
    void give(place& where) { where.in->free.give(where.begin, where.size, where.spare); }
    // Unmaps the buffers; what is in them is lost.
    void drop();

    char* at(const place& where) const { return where.in->memory + where.begin; }
    ibv_sge sge(const place& where, uint32_t length) const;

  private:
    struct buffer {
        explicit buffer(uint64_t bytes) : size(bytes), free(0, bytes) {}
        std::optional<place> take(uint64_t n);
        const uint64_t size;
        internal::ranges free;
        char* memory = nullptr;
        ibv_mr* mr = nullptr;
    };

    bool empty() const;
    int make(uint64_t size);

    ibv_pd* const m_pd;
    std::list<buffer> m_buffers;
    uint64_t m_size = 0;              // of all buffers
    uint64_t m_refused = UINT64_MAX;  // so many bytes could not be pinned
};

}  // namespace lite::verbs
