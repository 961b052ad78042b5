// SPDX-License-Identifier: MIT
//
// For LD_PRELOAD: the malloc family. Large blocks come from arenas of the LITE node (heap.cpp), all
// others from the next allocator (real.cpp), at the cost of a comparison with a limit, or with a
// range of addresses. Before the library is set up, both comparisons send every call the long way,
// which finds the real functions.

#include "heap.hpp"
#include "node.hpp"
#include "real.hpp"

#include <algorithm>
#include <atomic>
#include <bit>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <new>

#include <pthread.h>

using namespace lite::large;

namespace {

constexpr std::size_t default_least = 1 << 20;

// Blocks of at least this size are large. SIZE_MAX: none, as the environment has not been read yet.
constinit std::atomic<std::size_t> least = 0;

// Never destroyed: destructors of the program free blocks.
alignas(heap) constinit std::byte heap_memory[sizeof(heap)];
constinit heap* blocks = nullptr;

bool is_small(std::size_t size) noexcept { return size < least.load(std::memory_order_relaxed); }

void find_others() noexcept {
    if (real.malloc)
        return;
    least = SIZE_MAX;
    block_addresses.size = 0;
    find_real();
    // Another allocator must install its fork handlers before these: its locks are then taken after
    // the heap's, as by all threads, and are free in a child when the heap moves its blocks.
    real.free(real.malloc(1));
    // Handlers of the program come later, most probably: they run while the heap is not locked.
    ::pthread_atfork(
        [] {
            if (blocks)
                blocks->before_fork();
        },
        [] {
            if (blocks)
                blocks->after_fork_in_parent();
        },
        [] {
            if (blocks)
                blocks->after_fork_in_child();
        });
}

std::size_t least_from_environment() noexcept {
    // NOLINTNEXTLINE(concurrency-mt-unsafe)
    const char* text = std::getenv("LITE_ARENA_MIN");
    if (!text || !*text)
        return default_least;
    char* end = nullptr;
    errno = 0;
    unsigned long long bytes = std::strtoull(text, &end, 10);
    constexpr char suffixes[] = "KMG";
    const int letter = *end & ~0x20;  // 0: the end, or a space
    const char* suffix = letter ? std::strchr(suffixes, letter) : nullptr;
    const auto shift = suffix ? 10 * static_cast<unsigned>(suffix - suffixes + 1) : 0;
    if (end == text || *text == '-' || errno || bytes << shift >> shift != bytes ||
        (*end && (!suffix || end[1]))) {
        say(event::bad_setting, "LITE_ARENA_MIN is ignored", text);
        return default_least;
    }
    return std::max<std::size_t>(bytes << shift, page);
}

[[gnu::constructor]] void begin() {
    const int saved = errno;
    find_others();
    blocks = new (heap_memory) heap;
    read_environment();
    least = least_from_environment();
    errno = saved;
}

// A large block, or nullptr: it must come from the real allocator.
[[gnu::noinline]] void* take(std::size_t size, std::size_t alignment, bool zero = false) noexcept {
    find_others();
    if (is_small(size) || size > PTRDIFF_MAX || !std::has_single_bit(alignment))
        return nullptr;
    bool zeroed;
    void* p = blocks->allocate(size, alignment, zeroed);
    if (p && zero && !zeroed)
        std::memset(p, 0, size);
    return p;
}

// The size of a large block; 0: it is the real allocator's.
[[gnu::noinline]] std::size_t size_of(const void* p) noexcept {
    find_others();
    return block_addresses.has(p) ? blocks->size_of(p) : 0;
}

[[gnu::noinline]] void give(void* p) noexcept {
    find_others();
    if (!block_addresses.has(p) || !blocks->free(p))
        real.free(p);
}

[[gnu::noinline]] void* change(void* p, std::size_t size) noexcept {
    const std::size_t old = size_of(p);
    if (!old) {
        void* fresh = p ? take(size, page) : nullptr;
        if (!fresh)
            return p ? real.realloc(p, size) : ::malloc(size);
        std::memcpy(fresh, p, std::min(size, real.malloc_usable_size(p)));
        real.free(p);
        return fresh;
    }
    if (!size) {
        give(p);
        return nullptr;
    }
    if (size <= old && size >= old / 2)
        return p;
    // A block that grows will grow again: without some room each step would copy all of it.
    void* fresh = size > old && size <= PTRDIFF_MAX ? take(size + size / 8, page) : nullptr;
    if (!fresh)
        fresh = ::malloc(size);
    if (!fresh)
        return size < old ? p : nullptr;
    std::memcpy(fresh, p, std::min(size, old));
    give(p);
    return fresh;
}

}  // namespace

extern "C" {

void* malloc(std::size_t size) noexcept {
    if (is_small(size)) [[likely]]
        return real.malloc(size);
    void* p = take(size, page);
    return p ? p : real.malloc(size);
}

void free(void* p) noexcept {
    if (!block_addresses.has(p)) [[likely]]
        return real.free(p);
    give(p);
}

void* calloc(std::size_t n, std::size_t size) noexcept {
    std::size_t all;
    if (__builtin_mul_overflow(n, size, &all))
        all = SIZE_MAX;  // refused by the real function
    if (is_small(all)) [[likely]]
        return real.calloc(n, size);
    void* p = take(all, page, true);
    return p ? p : real.calloc(n, size);
}

void* realloc(void* p, std::size_t size) noexcept {
    if (is_small(size) && !block_addresses.has(p)) [[likely]]
        return real.realloc(p, size);
    return change(p, size);
}

void* reallocarray(void* p, std::size_t n, std::size_t size) noexcept {
    std::size_t all;
    if (!__builtin_mul_overflow(n, size, &all))
        return realloc(p, all);
    errno = ENOMEM;
    return nullptr;
}

void* aligned_alloc(std::size_t alignment, std::size_t size) noexcept {
    void* p = is_small(size) ? nullptr : take(size, alignment);
    return p ? p : real.aligned_alloc(alignment, size);
}

void* memalign(std::size_t alignment, std::size_t size) noexcept {
    void* p = is_small(size) ? nullptr : take(size, alignment);
    return p ? p : real.memalign(alignment, size);
}

int posix_memalign(void** out, std::size_t alignment, std::size_t size) noexcept {
    void* p = is_small(size) ? nullptr : take(size, alignment % sizeof(void*) ? 0 : alignment);
    if (!p)
        return real.posix_memalign(out, alignment, size);
    *out = p;
    return 0;
}

void* valloc(std::size_t size) noexcept {
    void* p = is_small(size) ? nullptr : take(size, page);
    return p ? p : real.valloc(size);
}

void* pvalloc(std::size_t size) noexcept {
    void* p = is_small(size) ? nullptr : take(size, page);
    return p ? p : real.pvalloc(size);
}

std::size_t malloc_usable_size(void* p) noexcept {
    const std::size_t size = block_addresses.has(p) ? size_of(p) : 0;
    return size ? size : real.malloc_usable_size(p);
}
}
