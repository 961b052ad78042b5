// SPDX-License-Identifier: MIT
//
// The free ranges of one piece of memory: best fit, merged with their neighbours. They are kept
// outside of that memory.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <set>
#include <utility>

namespace lite::internal {

class ranges {
  public:
    // Sizes and positions are multiples of this, so that no two allocations share a cache line.
    static constexpr std::size_t granule = 64;

    // All of @size bytes at an address are free; both are multiples of the granule.
    ranges(std::size_t start, std::size_t size) : m_size(size) { add(start, size); }

    bool all_free() const noexcept {
        return m_by_size.size() == 1 && m_by_size.begin()->first == m_size;
    }

    // Takes @size bytes, a multiple of the granule, at a multiple of @alignment, a power of two and
    // at least the granule. Allocates memory of its own, and changes nothing if it throws. Returns
    // the address.
    std::optional<std::size_t> take(std::size_t size, std::size_t alignment);

    // The nodes of one more range: with them, giving a range back does not allocate memory.
    struct spare {
        std::map<std::size_t, std::size_t>::node_type by_start;
        std::set<std::pair<std::size_t, std::size_t>>::node_type by_size;
    };
    void give(std::size_t start, std::size_t size, spare& nodes);
    static spare make_spare() {
        std::map<std::size_t, std::size_t> starts{{0, 0}};
        std::set<std::pair<std::size_t, std::size_t>> sizes{{0, 0}};
        return {starts.extract(starts.begin()), sizes.extract(sizes.begin())};
    }

  private:
    void add(std::size_t start, std::size_t size);
    void remove(std::size_t start, std::size_t size) noexcept;

    std::size_t m_size;
    std::map<std::size_t, std::size_t> m_by_start;            // start -> size
    std::set<std::pair<std::size_t, std::size_t>> m_by_size;  // (size, start)
};

}  // namespace lite::internal
