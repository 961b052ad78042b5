// SPDX-License-Identifier: MIT
//
// Large blocks of memory from arenas of the LITE node.
//
// All arenas (chunks) are moved into one range of addresses that is reserved for them, so that one
// comparison tells whether a pointer may be to a block. Blocks are whole pages of one chunk. What
// is known about them is outside of the arenas, and is allocated by the real allocator.
//
// A child of fork(2) does not inherit arenas (VM_DONTCOPY). So the parent copies all blocks to
// ordinary memory before fork(2), and the child moves the copies to where the blocks were. They are
// its own then, as after any fork, and need no copies when it forks in its turn. New large blocks
// of the child come from arenas of its own.
#pragma once

#include "arena/ranges.hpp"

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <shared_mutex>

namespace lite::large {

inline constexpr std::size_t page = 4096;

// Addresses at which blocks may be. At first all, so that every call takes the long way.
struct address_range {
    std::atomic<std::uintptr_t> start = 0;
    std::atomic<std::size_t> size = SIZE_MAX;

    // A thread that has a pointer to a block sees the range, which was stored before.
    bool has(const void* p) const noexcept {
        const std::size_t n = size.load(std::memory_order_acquire);
        return reinterpret_cast<std::uintptr_t>(p) - start.load(std::memory_order_relaxed) < n;
    }
};
extern address_range block_addresses;

// Thread-safe. All functions keep errno.
class heap {
  public:
    // Allocates a block at a multiple of @alignment, a power of two; nullptr: it must come from
    // elsewhere. @zeroed: set to whether it is filled with zeroes. @size is at most PTRDIFF_MAX.
    void* allocate(std::size_t size, std::size_t alignment, bool& zeroed) noexcept;
    // False: it is no block.
    bool free(void* p) noexcept;
    // The usable size of a block; 0: it is no block.
    std::size_t size_of(const void* p) noexcept;

    // Called around fork(2). Nothing can be allocated or freed in between, so this thread handles
    // no signals: a handler that allocates would wait forever.
    void before_fork() noexcept;
    void after_fork_in_parent() noexcept;
    void after_fork_in_child() noexcept;

  private:
    struct chunk {
        chunk(std::uintptr_t at, std::size_t n) : size(n), free(at, n) {}
        void drop_copy() noexcept;
        void lack_copy(const char* why) noexcept;
        std::size_t size;
        internal::ranges free;
        internal::ranges::spare addresses = internal::ranges::make_spare();
        bool inherited = false;     // from a parent: ordinary memory, not used for new blocks
        std::byte* copy = nullptr;  // for the child, during fork(2)
        bool has_no_copy = false;   // during fork(2): none can be made
    };
    using chunks = std::map<std::uintptr_t, chunk>;
    struct block {
        chunks::iterator in;
        std::size_t size;
        internal::ranges::spare spare;
    };

    void* take(std::size_t size, std::size_t alignment);
    void* take_from(chunks::iterator in, std::size_t size, std::size_t alignment);
    void* grow(std::size_t length, std::size_t size, std::size_t alignment, int& err);
    bool reserve();
    void drop(chunks::iterator it, bool quietly = false) noexcept;
    bool drop_idle() noexcept;

    std::atomic<bool> m_over = false;             // there will be no more arenas
    std::shared_mutex m_growing;                  // shared: the node's file is open; before m_lock
    std::mutex m_lock;                            // protects the rest
    std::optional<internal::ranges> m_addresses;  // not used by chunks
    chunks m_chunks;
    std::map<std::uintptr_t, block> m_blocks;
    std::size_t m_total = 0;  // bytes of chunks that are not inherited
    // The node has refused this many bytes. It is not asked for so many again before m_again, or
    // before a block is freed. SIZE_MAX: there was no refusal since then.
    std::size_t m_refused = SIZE_MAX;
    std::chrono::steady_clock::time_point m_again;
    sigset_t m_signals = {};  // during fork(2): what this thread had blocked
};

}  // namespace lite::large
