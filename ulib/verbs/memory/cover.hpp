// SPDX-License-Identifier: MIT
//
// Which LMRs cover which memory. A page can be in only one unpinned LMR of a process. So a
// registration uses the LMRs of earlier ones where it overlaps them, and has LMRs of its own for
// the rest. Pure bookkeeping, not thread-safe.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

namespace lite::verbs {

// A piece of a range, in LMR @id, or in none yet (0).
struct piece {
    uint32_t id;
    uint64_t begin, end;     // addresses
    uint64_t lmr_begin = 0;  // address of the LMR's first byte
};

class cover {
  public:
    // @max: bytes of the largest LMR.
    explicit cover(uint64_t max) : m_max(max) {}

    // The pieces of [begin, end), in order.
    std::vector<piece> pieces(uint64_t begin, uint64_t end) const {
        std::vector<piece> found;
        while (begin < end) {
            auto next = m_ranges.upper_bound(begin);
            if (next != m_ranges.begin()) {
                const auto& [at, lmr] = *std::prev(next);
                if (lmr.end > begin) {
                    const uint64_t stop = lmr.end < end ? lmr.end : end;
                    found.push_back({lmr.id, begin, stop, at});
                    begin = stop;
                    continue;
                }
            }
            uint64_t stop = next != m_ranges.end() && next->first < end ? next->first : end;
            if (stop - begin > m_max)
                stop = begin + m_max;
            found.push_back({0, begin, stop, begin});
            begin = stop;
        }
        return found;
    }

    // Enters an LMR that was made for a piece; it has one user.
    void add(uint32_t id, uint64_t begin, uint64_t end) {
        m_begins[id] = begin;  // harmless if the next line throws
        m_ranges[begin] = {id, end, 1};
    }

    void use(uint32_t id) { m_ranges.at(m_begins.at(id)).users++; }

    bool is_last(uint32_t id) const { return m_ranges.at(m_begins.at(id)).users == 1; }

    // True: this was the last user, and the LMR is forgotten.
    bool release(uint32_t id) {
        const auto begin = m_begins.find(id);
        const auto lmr = m_ranges.find(begin->second);
        if (--lmr->second.users)
            return false;
        m_ranges.erase(lmr);
        m_begins.erase(begin);
        return true;
    }

    bool empty() const { return m_ranges.empty(); }

  private:
    struct range {
        uint32_t id;
        uint64_t end;
        uint64_t users;
    };

    uint64_t m_max;
    std::map<uint64_t, range> m_ranges;  // by first address; disjoint
    std::map<uint32_t, uint64_t> m_begins;
};

}  // namespace lite::verbs
