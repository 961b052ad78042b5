// SPDX-License-Identifier: MIT
//
// The parts of a bounce buffer. Most are given back in order, but not all: if a peer dies in the
// middle of a message, that receive of an SRQ comes back late or never, and must not hold up the
// others. Pure, not thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <list>
#include <optional>

namespace lite::verbs {

class parts {
  public:
    struct part {
        uint64_t begin;
        uint64_t size;
        bool used;
    };
    using handle = std::list<part>::iterator;

    // Parts are as long as a multiple of this.
    static constexpr uint64_t align = 64;
    static uint64_t rounded(uint64_t length) {
        return length ? (length + align - 1) / align * align : align;
    }

    explicit parts(uint64_t size)
        : m_size(size), m_parts{{0, size, false}}, m_next(m_parts.begin()), m_left(size) {}
    parts(const parts&) = delete;
    parts& operator=(const parts&) = delete;

    bool empty() const { return m_left == m_size; }

    // Takes a part of @length bytes, rounded up; nothing: no gap is so large. The search begins at
    // the gap that was used last, so it ends there if parts come back in order. Nothing has changed
    // if it throws bad_alloc.
    std::optional<handle> take(uint64_t length) {
        length = rounded(length);
        if (length > m_left)
            return std::nullopt;
        handle gap = m_next;
        for (size_t n = m_parts.size(); gap->used || gap->size < length; n--) {
            if (n == 0)
                return std::nullopt;
            if (++gap == m_parts.end())
                gap = m_parts.begin();
        }
        handle taken = gap;
        if (gap->size > length) {
            taken = m_parts.insert(gap, {gap->begin, length, true});
            gap->begin += length;
            gap->size -= length;
        }
        taken->used = true;
        m_left -= length;
        m_next = gap;
        return taken;
    }

    void give(handle one) {
        one->used = false;
        m_left += one->size;
        if (one != m_parts.begin())
            one = merge(std::prev(one), one);
        if (std::next(one) != m_parts.end())
            merge(one, std::next(one));
        // If there is no other gap, the search is short.
        if (m_next->used)
            m_next = one;
    }

    void clear() {
        m_parts.erase(std::next(m_parts.begin()), m_parts.end());
        m_parts.front() = {0, m_size, false};
        m_next = m_parts.begin();
        m_left = m_size;
    }

  private:
    // Makes one gap of two. Returns what is now in place of @second.
    handle merge(handle first, handle second) {
        if (first->used || second->used)
            return second;
        first->size += second->size;
        if (m_next == second)
            m_next = first;
        m_parts.erase(second);
        return first;
    }

    const uint64_t m_size;
    std::list<part> m_parts;  // in order, without holes; no two gaps are neighbours
    handle m_next;            // where the next search begins
    uint64_t m_left;          // bytes of all gaps
};

}  // namespace lite::verbs
