// SPDX-License-Identifier: MIT
//
// Arenas: an allocator over chunks. A chunk is one mapping of LITE_IOC_ARENA, and one LMR of all of
// it. An allocation includes the memory that freeing it needs, so freeing cannot fail. A key is the
// number of a slot and the slot's generation, which each use of the slot increases.

#include "../context.hpp"
#include "../forks.hpp"
#include "ranges.hpp"

#include <lite/arena.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include <sys/mman.h>
#include <unistd.h>

using lite::internal::control;
using lite::internal::ranges;

namespace {

constexpr size_t block = LITE_ARENA_BLOCK;

// The longest arena and allocation. Rounded up to blocks, with a block for the alignment, it is
// still a size_t in a 32-bit program.
constexpr auto longest =
    static_cast<size_t>(std::min<uint64_t>(LITE_LMR_SIZE_MAX, SIZE_MAX - 2 * block));

// Names tried for a chunk before -EEXIST.
constexpr int name_tries = 64;

// Of the longest suffix, ".4294967295".
constexpr size_t suffix_size = 11;

constexpr size_t round_up(size_t n, size_t to) noexcept { return (n + to - 1) / to * to; }

}  // namespace

namespace lite::internal {

struct arena_chunk {
    lite_ctx* ctx;
    uint32_t number;
    std::byte* data;
    size_t size;
    unsigned process = forks;  // that has it mapped
    pid_t pid = ::getpid();
    lite_lh_t lh = 0;
    bool ending = false;  // nothing is allocated in it any more: its LMR may be freed already
    ranges free;

    arena_chunk(lite_ctx* on, uint32_t n, std::byte* memory, size_t bytes)
        : ctx(on),
          number(n),
          data(memory),
          size(bytes),
          free(reinterpret_cast<uintptr_t>(memory), bytes) {}
    arena_chunk(const arena_chunk&) = delete;
    arena_chunk& operator=(const arena_chunk&) = delete;

    // Frees the LMR, so that no node can reach it. 0 or a negative errno: it may still be there.
    int close() noexcept {
        ending = true;
        const int err = lh && ours() ? lite_free(ctx, lh) : 0;
        // With these the LMR is gone: freed by another user, or with the node or its life.
        if (err && err != -EIDRM && err != -EBADF && err != -ESTALE && err != -ENODEV)
            return err;
        lh = 0;
        return 0;
    }

    ~arena_chunk() {
        close();
        if (ours())
            ::munmap(data, size);
    }

    // In a child the LMR is the parent's. The pid tells clone(2) children, which run no handlers.
    bool ours() const noexcept { return process == forks && pid == ::getpid(); }
};

struct arena_allocation {
    arena_chunk* in;
    size_t size;
    ranges::spare spare;
    size_t registered = 0;  // valid keys of ranges in it
};

struct arena_slot {
    uint32_t generation = 0;
    bool used = false;
    std::byte* of = nullptr;  // the allocation's address
    lite_range range = {};
};

}  // namespace lite::internal

struct lite_arena {
    using chunk = lite::internal::arena_chunk;
    using allocation = lite::internal::arena_allocation;
    using slot = lite::internal::arena_slot;

    lite_ctx* ctx;
    std::string name;
    size_t chunk_size;
    uint32_t mode;
    uint32_t flags;

    std::mutex growing{};  // held while taking a chunk; before @lock
    uint32_t numbers = 0;  // names used; protected by @growing

    using chunk_map = std::map<uint32_t, std::unique_ptr<chunk>>;  // by number
    std::mutex lock{};                                             // protects the rest
    chunk_map chunks{};
    std::map<std::byte*, allocation> allocations{};
    std::vector<slot> slots{};
    std::vector<uint32_t> unused{};  // free slots; has room for all

    std::string chunk_name(uint32_t number) const {
        return name.empty() || !number ? name : name + '.' + std::to_string(number);
    }

    // Makes a chunk with room for @size bytes, with @growing held. 0 or a negative errno.
    int make_chunk(size_t size, std::unique_ptr<chunk>& made) {
        const size_t want = std::max(chunk_size, round_up(size, block));
        void* memory;
        // Zeroed: this arena's users must not see what an earlier arena left in the memory.
        int err = lite_arena_mmap(ctx, want, flags | LITE_ARENA_ZERO, &memory);
        if (err)
            return err;
        try {
            made = std::make_unique<chunk>(ctx, numbers, static_cast<std::byte*>(memory), want);
        } catch (...) {
            ::munmap(memory, want);
            throw;
        }
        // Other users may have some names. The first must be free, as peers know the arena by it.
        int tries = name_tries;
        do {
            made->number = numbers;
            err =
                lite_register(ctx, chunk_name(numbers).c_str(), made->data, want, mode, &made->lh);
            if (!err || (err == -EEXIST && numbers))
                numbers++;
        } while (err == -EEXIST && numbers && --tries);
        return err;
    }

    // Allocates, in a new chunk if need be. 0 or a negative errno.
    int allocate(size_t size, size_t alignment, void*& memory) {
        {
            const std::lock_guard guard(lock);
            memory = take(size, alignment);
        }
        if (memory)
            return 0;
        std::unique_ptr<chunk> made;
        const std::lock_guard grow(growing);
        {
            // Another thread may have made a chunk meanwhile.
            const std::lock_guard guard(lock);
            memory = take(size, alignment);
        }
        if (memory)
            return 0;
        // Chunks are aligned to pages only.
        const int err = make_chunk(size + (alignment > 4096 ? alignment : 0), made);
        if (err)
            return err;
        const std::lock_guard guard(lock);
        const auto number = made->number;
        chunks.emplace(number, std::move(made));
        memory = take(size, alignment);
        return memory ? 0 : -ENOMEM;
    }

    // Allocates in an existing chunk; nullptr: none has room.
    void* take(size_t size, size_t alignment) {
        for (auto& [number, c] : chunks) {
            if (c->ending)
                continue;
            auto spare = ranges::make_spare();
            const auto at = c->free.take(size, alignment);
            if (!at)
                continue;
            std::byte* memory = c->data + (*at - reinterpret_cast<uintptr_t>(c->data));
            try {
                allocations.emplace(memory, allocation{c.get(), size, {}}).first->second.spare =
                    std::move(spare);
            } catch (...) {
                c->free.give(*at, size, spare);
                throw;
            }
            return memory;
        }
        return nullptr;
    }

    // The allocation that has all of a range, or the end.
    std::map<std::byte*, allocation>::iterator find(const void* addr, size_t length) {
        auto* from = static_cast<std::byte*>(const_cast<void*>(addr));
        auto it = allocations.upper_bound(from);
        if (it == allocations.begin())
            return allocations.end();
        --it;
        const auto in = static_cast<size_t>(from - it->first);
        return in < it->second.size && length <= it->second.size - in ? it : allocations.end();
    }

    // Finds the slot of a valid key. 0, -EBADF, -EIDRM.
    int look_up(uint64_t key, slot*& found) {
        const auto index = static_cast<uint32_t>(key);
        if (!index || index > slots.size())
            return -EBADF;
        slot& s = slots[index - 1];
        const auto generation = static_cast<uint32_t>(key >> 32);
        if (!generation || generation > s.generation)
            return -EBADF;
        if (generation != s.generation || !s.used)
            return -EIDRM;
        found = &s;
        return 0;
    }

    void drop(slot& s) noexcept {
        s.used = false;
        // No key may be valid twice, so a slot without further generations is retired.
        if (s.generation != UINT32_MAX)
            unused.push_back(static_cast<uint32_t>(&s - slots.data()));
    }

    // Removes the chunks in which nothing is allocated.
    std::vector<chunk_map::node_type> take_idle() {
        std::vector<chunk_map::node_type> idle;
        idle.reserve(chunks.size());
        for (auto it = chunks.begin(); it != chunks.end();) {
            const auto at = it++;
            if (at->second->free.all_free())
                idle.push_back(chunks.extract(at));
        }
        return idle;
    }

    // Frees an idle chunk, or puts it back, to be freed the next time. Returns the bytes freed.
    size_t free_idle(chunk_map::node_type& idle) noexcept {
        const size_t size = idle.mapped()->size;
        if (!idle.mapped()->close()) {
            idle = {};
            return size;
        }
        const std::lock_guard guard(lock);
        chunks.insert(std::move(idle));
        return 0;
    }
};

int lite_arena_mmap(struct lite_ctx* ctx, size_t length, uint32_t flags, void** addr) noexcept {
    struct lite_ioc_arena arg = {};
    arg.flags = flags;
    arg.length = length;
    const int err = control(ctx, LITE_IOC_ARENA, arg);
    if (!err)
        // The kernel's integer is a pointer of this process.
        // NOLINTNEXTLINE(performance-no-int-to-ptr)
        *addr = reinterpret_cast<void*>(static_cast<uintptr_t>(arg.addr));
    return err;
}

int lite_arena_create(struct lite_ctx* ctx, const char* name, size_t size, uint32_t mode,
                      uint32_t flags, struct lite_arena** arena) noexcept try {
    if (flags & ~LITE_ARENA_EAGER)
        return -EOPNOTSUPP;
    if (size > longest)
        return -EFBIG;
    std::unique_ptr<lite_arena> made(
        new lite_arena{ctx, name ? name : "", std::max(round_up(size, block), block), mode, flags});
    if (made->name.size() > LITE_NAME_MAX - suffix_size)
        return -ENAMETOOLONG;
    std::unique_ptr<lite_arena::chunk> first;
    const int err = made->make_chunk(1, first);
    if (err)
        return err;
    made->chunks.emplace(0, std::move(first));
    *arena = made.release();
    return 0;
} catch (const std::bad_alloc&) {
    return -ENOMEM;
}

void lite_arena_destroy(struct lite_arena* arena) noexcept { delete arena; }

int lite_arena_alloc(struct lite_arena* arena, size_t size, size_t alignment, void** out) noexcept
    try {
    if (!alignment)
        alignment = 1;
    if (!std::has_single_bit(alignment) || alignment > block)
        return -EINVAL;
    if (size > longest)
        return -EFBIG;
    alignment = std::max(alignment, ranges::granule);
    size = round_up(std::max<size_t>(size, 1), ranges::granule);
    void* memory = nullptr;
    const int err = arena->allocate(size, alignment, memory);
    if (!err)
        *out = memory;
    return err;
} catch (const std::bad_alloc&) {
    return -ENOMEM;
}

int lite_arena_free(struct lite_arena* arena, void* memory) noexcept {
    lite_arena::chunk_map::node_type idle;
    std::unique_lock guard(arena->lock);
    const auto it = arena->allocations.find(static_cast<std::byte*>(memory));
    if (it == arena->allocations.end())
        return -EINVAL;
    lite_arena::allocation& a = it->second;
    for (auto& s : arena->slots) {
        if (!a.registered)
            break;
        if (s.used && s.of == it->first) {
            arena->drop(s);
            a.registered--;
        }
    }
    a.in->free.give(reinterpret_cast<uintptr_t>(memory), a.size, a.spare);
    if (arena->flags & LITE_ARENA_EAGER && a.in->free.all_free())
        idle = arena->chunks.extract(a.in->number);
    arena->allocations.erase(it);
    guard.unlock();
    if (idle)
        arena->free_idle(idle);
    return 0;
}

int lite_arena_register(struct lite_arena* arena, const void* addr, size_t length,
                        struct lite_range* range) noexcept try {
    if (!length)
        return -EINVAL;
    const std::lock_guard guard(arena->lock);
    const auto it = arena->find(addr, length);
    if (it == arena->allocations.end())
        return -EFAULT;
    if (arena->unused.empty()) {
        // Room for all slots, so that drop() does not fail.
        arena->unused.reserve(arena->slots.size() + 1);
        arena->slots.emplace_back();
        arena->unused.push_back(static_cast<uint32_t>(arena->slots.size() - 1));
    }
    const uint32_t index = arena->unused.back();
    arena->unused.pop_back();
    lite_arena::slot& s = arena->slots[index];
    lite_arena::allocation& a = it->second;
    a.registered++;
    s.generation++;
    s.used = true;
    s.of = it->first;
    s.range = {};
    s.range.lh = a.in->lh;
    s.range.offset = static_cast<uint64_t>(static_cast<const std::byte*>(addr) - a.in->data);
    s.range.length = length;
    s.range.key = static_cast<uint64_t>(s.generation) << 32 | (index + 1);
    s.range.chunk = a.in->number;
    *range = s.range;
    return 0;
} catch (const std::bad_alloc&) {
    return -ENOMEM;
}

int lite_arena_find(struct lite_arena* arena, uint64_t key, struct lite_range* range) noexcept {
    const std::lock_guard guard(arena->lock);
    lite_arena::slot* s;
    const int err = arena->look_up(key, s);
    if (!err)
        *range = s->range;
    return err;
}

int lite_arena_deregister(struct lite_arena* arena, uint64_t key) noexcept {
    const std::lock_guard guard(arena->lock);
    lite_arena::slot* s;
    const int err = arena->look_up(key, s);
    if (!err) {
        arena->allocations.find(s->of)->second.registered--;
        arena->drop(*s);
    }
    return err;
}

uint64_t lite_arena_trim(struct lite_arena* arena) noexcept try {
    std::vector<lite_arena::chunk_map::node_type> idle;
    {
        const std::lock_guard guard(arena->lock);
        idle = arena->take_idle();
    }
    uint64_t bytes = 0;
    for (auto& c : idle)
        bytes += arena->free_idle(c);
    return bytes;
} catch (const std::bad_alloc&) {
    return 0;
}
