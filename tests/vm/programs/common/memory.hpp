// SPDX-License-Identifier: MIT
// Buffers of every awkward kind.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

namespace lite_test {

inline constexpr std::size_t kPage = 4096;
inline constexpr std::size_t kHugePage = 2U << 20;

// An mmap(2)ed range; holes and protections can be cut into it.
class Mapping {
  public:
    explicit Mapping(std::size_t size);            // private, anonymous, readable and writable
    Mapping(std::size_t size, int fd, int flags);  // of a file
    ~Mapping();
    Mapping(Mapping&& other) noexcept
        : data_(std::exchange(other.data_, nullptr)), size_(other.size_) {}
    Mapping& operator=(Mapping&&) = delete;

    std::byte* data() const { return data_; }
    std::size_t size() const { return size_; }
    std::span<std::byte> bytes() const { return {data_, size_}; }

    void protect(std::size_t offset, std::size_t size, int protection) const;
    void cut(std::size_t offset, std::size_t size) const;  // munmap(2)
    // Replaces a part by another mapping, so that a buffer across the seam lies in several VMAs.
    void replace(std::size_t offset, std::size_t size, int protection, int flags,
                 int fd = -1) const;

  private:
    std::byte* data_;
    std::size_t size_;
};

// @size usable bytes that end exactly where unmapped memory begins.
class GuardedBuffer {
  public:
    explicit GuardedBuffer(std::size_t size);
    std::byte* data() const { return data_; }
    std::size_t size() const { return size_; }
    std::span<std::byte> bytes() const { return {data_, size_}; }

  private:
    std::size_t size_;
    Mapping mapping_;
    std::byte* data_;
};

// An address range where nothing is mapped.
std::byte* unmapped_address(std::size_t size);

}  // namespace lite_test
