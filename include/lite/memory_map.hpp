// SPDX-License-Identifier: MIT
//
// liblite for C++20: LMRs mapped into the process. Made by <lite/lite.hpp>.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

#include <sys/mman.h>

#include <lite/lite.h>
#include <lite/types.hpp>

namespace lite {

enum class protection : std::uint32_t {
    read = LITE_PROT_READ,
    read_write = LITE_PROT_READ | LITE_PROT_WRITE,
};

// A part of an LMR mapped into the process, unmapped by the destructor; made by region::mmap(), and
// independent of the region. An access raises SIGBUS once the LMR was freed, a right to it was
// taken away, or the node was stopped; while its bytes are elsewhere; and while its home is down.
class memory_map {
  public:
    memory_map() noexcept = default;

    // Takes ownership of @size bytes at @data, from lite_mmap().
    memory_map(void* data, std::size_t size) noexcept
        : m_data(static_cast<std::byte*>(data)), m_size(size) {}

    memory_map(memory_map&& other) noexcept
        : m_data(std::exchange(other.m_data, nullptr)), m_size(std::exchange(other.m_size, 0)) {}

    memory_map& operator=(memory_map&& other) noexcept {
        memory_map taken(std::move(other));
        swap(taken);
        return *this;
    }

    ~memory_map() {
        if (m_data)
            ::munmap(m_data, m_size);
    }

    void swap(memory_map& other) noexcept {
        std::swap(m_data, other.m_data);
        std::swap(m_size, other.m_size);
    }

    explicit operator bool() const noexcept { return m_data != nullptr; }
    std::byte* data() const noexcept { return m_data; }
    std::size_t size() const noexcept { return m_size; }
    std::span<std::byte> bytes() const noexcept { return {m_data, m_size}; }

    // As many whole objects as fit. Pages are aligned for any T, and LITE does not look at
    // alignment.
    template <plain T>
    std::span<T> as() const noexcept {
        return {reinterpret_cast<T*>(m_data), m_size / sizeof(T)};
    }

  private:
    std::byte* m_data = nullptr;
    std::size_t m_size = 0;
};

inline void swap(memory_map& a, memory_map& b) noexcept { a.swap(b); }

}  // namespace lite
