// SPDX-License-Identifier: MIT
// Shared by the tests of arenas.
#pragma once

#include "../mmap/fixture.hpp"

#include <fstream>

#include <unistd.h>

namespace lite_test {

inline constexpr std::size_t kBlock = LITE_ARENA_BLOCK;

inline lite_ioc_arena arena_args(std::uint64_t length, std::uint32_t flags = 0) {
    lite_ioc_arena args{};
    args.size = sizeof(args);
    args.flags = flags;
    args.length = length;
    return args;
}

inline Errno try_arena(const Device& dev, lite_ioc_arena args) {
    const Errno e = dev.call(LITE_IOC_ARENA, &args);
    if (e == ok)
        ::munmap(reinterpret_cast<void*>(static_cast<std::uintptr_t>(args.addr)), args.length);
    return e;
}

// A mapped arena.
class Arena {
  public:
    Arena(const Device& dev, std::size_t size, std::uint32_t flags = 0) : size_(size) {
        auto args = arena_args(size, flags);
        const Errno e = dev.call(LITE_IOC_ARENA, &args);
        if (e != ok)
            throw Failure("LITE_IOC_ARENA: " + std::string(::strerrorname_np(e.value)));
        data_ = reinterpret_cast<std::byte*>(static_cast<std::uintptr_t>(args.addr));
    }
    // One that was made by the call with these arguments.
    explicit Arena(const lite_ioc_arena& made)
        : data_(reinterpret_cast<std::byte*>(static_cast<std::uintptr_t>(made.addr))),
          size_(made.length) {}
    ~Arena() { unmap(); }
    Arena(Arena&& other) noexcept
        : data_(std::exchange(other.data_, nullptr)), size_(other.size_) {}
    Arena& operator=(Arena&&) = delete;

    std::byte* data() const { return data_; }
    std::span<std::byte> bytes() const { return {data_, size_}; }
    std::span<std::byte> bytes(std::size_t offset, std::size_t size) const {
        return bytes().subspan(offset, size);
    }
    void unmap() {
        if (data_)
            ::munmap(std::exchange(data_, nullptr), size_);
    }

  private:
    std::byte* data_ = nullptr;
    std::size_t size_;
};

inline bool all_zero(std::span<const std::byte> bytes) { return all_are(bytes, std::byte{}); }

// The kernel frees what it can spare, kept blocks among it.
inline void drop_caches() {
    std::ofstream file("/proc/sys/vm/drop_caches");
    file << "2" << std::flush;
    expect(file.good(), "drop_caches");
}

// Bytes that the node has given to LMRs and arenas, counting on when other CPUs are done.
inline void wait_used(const Device& dev, std::uint64_t bytes) {
    wait_until("memory used: " + std::to_string(bytes),
               [&] { return dev.query().mem_used == bytes; });
}

}  // namespace lite_test
