// SPDX-License-Identifier: MIT
//
// The parts of a bounce buffer: a ring, as most are given back in order. Pure, not thread-safe.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>

namespace lite::verbs {

class ring {
  public:
    explicit ring(uint64_t size = 0) : m_size(size) {}

    uint64_t size() const { return m_size; }
    bool empty() const { return m_taken.empty(); }

    // Takes @length bytes, rounded up to cache lines: their offset; nothing: too few are free.
    std::optional<uint64_t> take(uint64_t length) {
        length = (length + align - 1) / align * align;
        if (length == 0)
            length = align;
        const uint64_t tail = m_taken.empty() ? 0 : m_taken.front().begin;
        if (m_taken.empty())
            m_head = 0;
        uint64_t begin = m_head;
        if (!m_taken.empty() && m_head <= tail) {  // wrapped around
            if (tail - m_head < length)
                return std::nullopt;
        } else if (m_size - m_head < length) {
            if (m_taken.empty() || tail < length)
                return std::nullopt;
            begin = 0;
        }
        m_head = begin + length;
        m_taken.push_back({begin, true});
        return begin;
    }

    void give(uint64_t offset) {
        for (auto& one : m_taken) {
            if (one.begin == offset && one.used) {
                one.used = false;
                break;
            }
        }
        while (!m_taken.empty() && !m_taken.front().used)
            m_taken.pop_front();
    }

    void clear() { m_taken.clear(); }

  private:
    static constexpr uint64_t align = 64;

    struct part {
        uint64_t begin;
        bool used;
    };

    uint64_t m_size;
    uint64_t m_head = 0;  // end of the part that was taken last
    std::deque<part> m_taken;
};

}  // namespace lite::verbs
