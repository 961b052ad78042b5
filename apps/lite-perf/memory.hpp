// SPDX-License-Identifier: MIT
#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <new>
#include <span>
#include <utility>

namespace perf {

/// Page-aligned memory with all pages present, so measurements see no first faults. May be empty.
class Region {
  public:
    Region() = default;
    explicit Region(std::size_t bytes) : data_(bytes ? map(bytes) : nullptr), bytes_(bytes) {}
    Region(Region&& other) noexcept
        : data_(std::exchange(other.data_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}
    Region& operator=(Region&& other) noexcept {
        std::swap(data_, other.data_);
        std::swap(bytes_, other.bytes_);
        return *this;
    }
    ~Region() {
        if (data_)
            munmap(data_, bytes_);
    }

    std::span<std::byte> bytes() const { return {static_cast<std::byte*>(data_), bytes_}; }

  private:
    static void* map(std::size_t bytes) {
        void* data = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
        if (data == MAP_FAILED)
            throw std::bad_alloc();
        return data;
    }

    void* data_ = nullptr;
    std::size_t bytes_ = 0;
};

}  // namespace perf
