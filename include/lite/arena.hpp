// SPDX-License-Identifier: MIT
//
// liblite for C++20: arenas as memory of standard containers.
//
//    lite::arena arena(node, "buffers", 64 << 20);
//    std::pmr::vector<double> numbers(1000, &arena);
//    const lite_range range = arena.register_range(std::as_bytes(std::span(numbers)));
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory_resource>
#include <new>
#include <span>
#include <string_view>

#include <lite/arena.h>
#include <lite/lite.hpp>

namespace lite {

// Memory that peers can reach as soon as it is allocated; see <lite/arena.h>. Must not outlive its
// context. Several threads may use it.
class arena final : public std::pmr::memory_resource {
  public:
    // @throws error as lite_arena_create()
    arena(context& node, std::string_view name, std::size_t size, std::uint32_t mode = 0600,
          std::uint32_t flags = 0) {
        const int err =
            lite_arena_create(node.get(), detail::c_name(name).get(), size, mode, flags, &m_arena);
        if (err)
            throw error(err, "make an arena");
    }
    arena(const arena&) = delete;
    arena& operator=(const arena&) = delete;
    ~arena() override { lite_arena_destroy(m_arena); }

    // The key and place of bytes of one allocation. @throws error as lite_arena_register()
    lite_range register_range(std::span<const std::byte> bytes) {
        lite_range range{};
        check(lite_arena_register(m_arena, bytes.data(), bytes.size(), &range), "register a range");
        return range;
    }

    // @throws error as lite_arena_find()
    lite_range find(std::uint64_t key) const {
        lite_range range{};
        check(lite_arena_find(m_arena, key, &range), "find a range");
        return range;
    }

    // @throws error as lite_arena_deregister()
    void deregister(std::uint64_t key) {
        check(lite_arena_deregister(m_arena, key), "deregister a range");
    }

    // Returns the bytes that were freed.
    std::uint64_t trim() noexcept { return lite_arena_trim(m_arena); }

    lite_arena* get() const noexcept { return m_arena; }

  private:
    static void check(int err, const char* doing) {
        if (err)
            throw error(err, doing);
    }

    void* do_allocate(std::size_t size, std::size_t alignment) override {
        void* memory;
        if (lite_arena_alloc(m_arena, size, alignment, &memory))
            throw std::bad_alloc();
        return memory;
    }

    void do_deallocate(void* memory, std::size_t, std::size_t) override {
        lite_arena_free(m_arena, memory);
    }

    bool do_is_equal(const memory_resource& other) const noexcept override {
        return this == &other;
    }

    lite_arena* m_arena = nullptr;
};

// An allocator of an arena, for containers without the prefix std::pmr.
template <typename T>
using arena_allocator = std::pmr::polymorphic_allocator<T>;

}  // namespace lite
