// SPDX-License-Identifier: MIT
#include "ranges.hpp"

#include <iterator>

namespace lite::internal {

namespace {

std::size_t align(std::size_t n, std::size_t alignment) noexcept {
    return (n + alignment - 1) & ~(alignment - 1);
}

bool fits(const std::pair<std::size_t, std::size_t>& range, std::size_t size,
          std::size_t alignment) noexcept {
    const auto [length, start] = range;
    const std::size_t skip = align(start, alignment) - start;
    return skip <= length && size <= length - skip;
}

}  // namespace

void ranges::add(std::size_t start, std::size_t size) {
    m_by_start.emplace(start, size);
    try {
        m_by_size.emplace(size, start);
    } catch (...) {
        m_by_start.erase(start);
        throw;
    }
}

void ranges::remove(std::size_t start, std::size_t size) noexcept {
    m_by_start.erase(start);
    m_by_size.erase({size, start});
}

std::optional<std::size_t> ranges::take(std::size_t size, std::size_t alignment) {
    auto fit = m_by_size.lower_bound({size, 0});
    // The best fit may be misaligned; one that is this much larger is always large enough.
    if (fit != m_by_size.end() && !fits(*fit, size, alignment))
        fit = m_by_size.lower_bound({size + alignment - granule, 0});
    if (fit == m_by_size.end())
        return std::nullopt;
    const auto [length, start] = *fit;
    const std::size_t at = align(start, alignment);
    const std::size_t after = start + length - (at + size);
    if (after)
        add(at + size, after);
    try {
        if (at != start)
            m_by_size.emplace(at - start, start);
    } catch (...) {
        if (after)
            remove(at + size, after);
        throw;
    }
    m_by_size.erase({length, start});
    if (at == start)
        m_by_start.erase(start);
    else
        m_by_start[start] = at - start;
    return at;
}

void ranges::give(std::size_t start, std::size_t size, spare& nodes) {
    auto next = m_by_start.lower_bound(start);
    if (next != m_by_start.end() && next->first == start + size) {
        size += next->second;
        const auto gone = next++;
        remove(gone->first, gone->second);
    }
    if (next != m_by_start.begin()) {
        const auto previous = std::prev(next);
        if (previous->first + previous->second == start) {
            start = previous->first;
            size += previous->second;
            remove(previous->first, previous->second);
        }
    }
    nodes.by_start.key() = start;
    nodes.by_start.mapped() = size;
    nodes.by_size.value() = {size, start};
    m_by_start.insert(std::move(nodes.by_start));
    m_by_size.insert(std::move(nodes.by_size));
}

}  // namespace lite::internal
