// SPDX-License-Identifier: MIT
//
// Arenas of the library: the allocator, keys, and what is asked of the kernel.

#include "arena/ranges.hpp"
#include "fake_node.hpp"

#include <lite/arena.hpp>

#include "catch.hpp"
#include "code_of.hpp"

#include <cerrno>
#include <cstring>
#include <functional>
#include <map>
#include <memory_resource>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

using lite::internal::ranges;

namespace {

constexpr std::size_t block = LITE_ARENA_BLOCK;

// A node that gives out blocks and records LMRs.
struct machine {
    fake::cluster cluster;
    std::map<std::uint64_t, std::string> lmrs;
    std::set<std::uint32_t> flags;
    std::uint64_t last = 0;
    std::size_t mapped = 0;
    int error = 0;
    int register_error = 0;
    int free_error = 0;
    std::set<std::string> taken;  // names
    std::function<void()> on_register = [] {};

    machine() {
        cluster.intercept = [this](unsigned long request, void* arg) -> std::optional<int> {
            if (request == LITE_IOC_ARENA) {
                auto& a = *static_cast<lite_ioc_arena*>(arg);
                if (error)
                    return -error;
                flags.insert(a.flags);
                void* at = ::mmap(nullptr, a.length, PROT_READ | PROT_WRITE,
                                  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
                a.addr = reinterpret_cast<std::uintptr_t>(at);
                mapped += a.length;
                return 0;
            }
            if (request == LITE_IOC_REGISTER) {
                auto& r = *static_cast<lite_ioc_register*>(arg);
                if (register_error)
                    return -register_error;
                on_register();
                if (taken.contains(r.name))
                    return -EEXIST;
                r.lh = ++last;
                lmrs[r.lh] = r.name;
                return 0;
            }
            if (request == LITE_IOC_FREE && free_error)
                return -free_error;
            if (request == LITE_IOC_FREE)
                return lmrs.erase(static_cast<lite_ioc_free*>(arg)->lh) ? 0 : -EBADF;
            return std::nullopt;
        };
    }
};

bool is_mapped(const void* at) {
    unsigned char there;
    const auto page = reinterpret_cast<std::uintptr_t>(at) & ~std::uintptr_t{4095};
    return ::mincore(reinterpret_cast<void*>(page), 1, &there) == 0;
}

}  // namespace

TEST_CASE("ranges: never overlap, and merge again") {
    constexpr std::size_t base = 1 << 20, size = 1 << 16;
    std::mt19937 random(1);
    ranges free(base, size);
    struct taken {
        std::size_t at, size;
        ranges::spare spare;
    };
    std::vector<taken> all;
    std::vector<bool> used(size / ranges::granule);
    for (int i = 0; i < 20000; i++) {
        if (random() % 2 || all.empty()) {
            const std::size_t n = (1 + random() % 40) * ranges::granule;
            const std::size_t alignment = ranges::granule << random() % 6;
            auto spare = ranges::make_spare();
            const auto at = free.take(n, alignment);
            if (!at)
                continue;
            REQUIRE(*at % alignment == 0);
            REQUIRE(*at >= base);
            REQUIRE(*at + n <= base + size);
            for (std::size_t k = (*at - base) / ranges::granule, end = k + n / ranges::granule;
                 k < end; k++) {
                REQUIRE(!used[k]);
                used[k] = true;
            }
            all.push_back({*at, n, std::move(spare)});
        } else {
            std::swap(all[random() % all.size()], all.back());
            auto& t = all.back();
            for (std::size_t k = 0; k < t.size / ranges::granule; k++)
                used[(t.at - base) / ranges::granule + k] = false;
            free.give(t.at, t.size, t.spare);
            all.pop_back();
        }
    }
    for (auto& t : all)
        free.give(t.at, t.size, t.spare);
    CHECK(free.all_free());
    CHECK(free.take(size, ranges::granule) == base);
    CHECK(!free.take(ranges::granule, ranges::granule));
}

TEST_CASE("arena: allocations are apart, aligned, and keep their contents") {
    machine node;
    auto context = node.cluster.context();
    lite::arena arena(context, "buffers", 3 * block);
    CHECK(node.lmrs == std::map<std::uint64_t, std::string>{{1, "buffers"}});
    std::mt19937 random(2);
    struct piece {
        std::byte* at;
        std::size_t size;
        std::byte value;
    };
    std::vector<piece> all;
    for (int i = 0; i < 3000; i++) {
        if (random() % 3 || all.empty()) {
            const std::size_t size = random() % 50000;
            const std::size_t alignment = std::size_t{1} << random() % 13;
            void* memory = nullptr;
            REQUIRE(lite_arena_alloc(arena.get(), size, alignment, &memory) == 0);
            REQUIRE(reinterpret_cast<std::uintptr_t>(memory) %
                        std::max<std::size_t>(alignment, 64) ==
                    0);
            const std::byte value{static_cast<unsigned char>(random())};
            std::memset(memory, static_cast<int>(value), size);
            all.push_back({static_cast<std::byte*>(memory), size, value});
        } else {
            std::swap(all[random() % all.size()], all.back());
            const auto& p = all.back();
            for (std::size_t k = 0; k < p.size; k++)
                REQUIRE(p.at[k] == p.value);
            REQUIRE(lite_arena_free(arena.get(), p.at) == 0);
            all.pop_back();
        }
    }
    const auto chunks = node.lmrs.size();
    CHECK(chunks > 1);
    for (const auto& p : all)
        CHECK(lite_arena_free(arena.get(), p.at) == 0);
    CHECK(arena.trim() == node.mapped);
    CHECK(node.lmrs.empty());
    // The arena takes a new chunk, with a new name.
    void* memory = nullptr;
    CHECK(lite_arena_alloc(arena.get(), 1, 0, &memory) == 0);
    CHECK(node.lmrs.begin()->second == "buffers." + std::to_string(chunks));
}

TEST_CASE("arena: large alignments, and more than a chunk") {
    machine node;
    auto context = node.cluster.context();
    lite::arena arena(context, "", 1);
    void* a = nullptr;
    CHECK(lite_arena_alloc(arena.get(), 5 * block, block, &a) == 0);
    CHECK(reinterpret_cast<std::uintptr_t>(a) % block == 0);
    CHECK(node.lmrs == std::map<std::uint64_t, std::string>{{1, ""}, {2, ""}});
    CHECK(lite_arena_alloc(arena.get(), 1, 3, &a) == -EINVAL);
    CHECK(lite_arena_alloc(arena.get(), 1, 2 * block, &a) == -EINVAL);
    CHECK(lite_arena_alloc(arena.get(), SIZE_MAX, 1, &a) == -EFBIG);
    CHECK(lite_arena_free(arena.get(), &node) == -EINVAL);
    CHECK(lite_arena_free(arena.get(), nullptr) == -EINVAL);
}

TEST_CASE("arena: keys end with their range or its memory") {
    machine node;
    auto context = node.cluster.context();
    lite::arena arena(context, "", block);
    void* memory = nullptr;
    void* before = nullptr;
    REQUIRE(lite_arena_alloc(arena.get(), 100, 0, &before) == 0);
    REQUIRE(lite_arena_alloc(arena.get(), 1000, 0, &memory) == 0);
    auto* bytes = static_cast<std::byte*>(memory);

    const auto all = arena.register_range({bytes, 1000});
    const auto part = arena.register_range({bytes + 10, 5});
    CHECK(all.lh == 1);
    CHECK(all.length == 1000);
    CHECK(part.offset == all.offset + 10);
    CHECK(part.key != all.key);
    CHECK(arena.find(part.key).offset == part.offset);
    CHECK(code_of([&] { arena.register_range({bytes, 0}); }) == EINVAL);
    CHECK(code_of([&] { arena.register_range({bytes, 5000}); }) == EFAULT);
    CHECK(code_of([&] { arena.register_range({bytes - 1, 2}); }) == EFAULT);
    CHECK(code_of([&] { arena.find(0); }) == EBADF);
    CHECK(code_of([&] { arena.find(all.key + 100); }) == EBADF);
    CHECK(code_of([&] { arena.find(all.key + (5ULL << 32)); }) == EBADF);

    arena.deregister(part.key);
    CHECK(code_of([&] { arena.find(part.key); }) == EIDRM);
    CHECK(code_of([&] { arena.deregister(part.key); }) == EIDRM);
    // The slot is used again, with another key.
    const auto next = arena.register_range({bytes, 1});
    CHECK(static_cast<std::uint32_t>(next.key) == static_cast<std::uint32_t>(part.key));
    CHECK(next.key != part.key);
    CHECK(code_of([&] { arena.find(part.key); }) == EIDRM);

    REQUIRE(lite_arena_free(arena.get(), memory) == 0);
    CHECK(code_of([&] { arena.find(all.key); }) == EIDRM);
    CHECK(code_of([&] { arena.find(next.key); }) == EIDRM);
    CHECK(lite_arena_free(arena.get(), memory) == -EINVAL);
    // The same memory again: the old keys stay invalid.
    void* again = nullptr;
    REQUIRE(lite_arena_alloc(arena.get(), 1000, 0, &again) == 0);
    CHECK(again == memory);
    CHECK(code_of([&] { arena.find(all.key); }) == EIDRM);
    const auto last = arena.register_range({bytes, 1000});
    CHECK(code_of([&] { arena.find(all.key); }) == EIDRM);
    CHECK(arena.find(last.key).length == 1000);
}

TEST_CASE("arena: eager ones give chunks back at once") {
    machine node;
    auto context = node.cluster.context();
    lite::arena arena(context, "e", block, 0600, LITE_ARENA_EAGER);
    // Blocks that an earlier arena has had are zeroed before this one's users can see them.
    CHECK(node.flags == std::set<std::uint32_t>{LITE_ARENA_EAGER | LITE_ARENA_ZERO});
    void* memory = nullptr;
    REQUIRE(lite_arena_alloc(arena.get(), 100, 0, &memory) == 0);
    const auto range = arena.register_range({static_cast<std::byte*>(memory), 100});
    REQUIRE(lite_arena_free(arena.get(), memory) == 0);
    CHECK(node.lmrs.empty());
    CHECK(!is_mapped(memory));
    CHECK(code_of([&] { arena.find(range.key); }) == EIDRM);
    REQUIRE(lite_arena_alloc(arena.get(), 100, 0, &memory) == 0);
    CHECK(node.lmrs.size() == 1);
}

TEST_CASE("arena: failures of the kernel") {
    machine node;
    auto context = node.cluster.context();
    node.error = EDQUOT;
    CHECK(code_of([&] { lite::arena(context, "", block); }) == EDQUOT);
    node.error = 0;
    node.register_error = EEXIST;
    CHECK(code_of([&] { lite::arena(context, "taken", block); }) == EEXIST);
    CHECK(code_of([&] { lite::arena(context, "", block, 0600, 2); }) == EOPNOTSUPP);
    node.register_error = 0;
    lite::arena arena(context, "", block);
    node.error = ENOSPC;
    void* memory = &node;
    CHECK(lite_arena_alloc(arena.get(), 2 * block, 0, &memory) == -ENOSPC);
    CHECK(memory == &node);
    CHECK(lite_arena_alloc(arena.get(), block, 0, &memory) == 0);
    CHECK_THROWS_AS(arena.allocate(block), std::bad_alloc);
}

TEST_CASE("arena: names that others have taken are passed over") {
    machine node;
    auto context = node.cluster.context();
    node.taken = {"a", "b.1", "b.2"};
    CHECK(code_of([&] { lite::arena(context, "a", block); }) == EEXIST);
    lite::arena arena(context, "b", block);
    void* memory = nullptr;
    REQUIRE(lite_arena_alloc(arena.get(), 2 * block, 0, &memory) == 0);
    CHECK(node.lmrs == std::map<std::uint64_t, std::string>{{1, "b"}, {2, "b.3"}});
    CHECK(arena.register_range({static_cast<std::byte*>(memory), 1}).chunk == 3);
    // Longer names would leave no room for the numbers.
    CHECK(code_of([&] { lite::arena(context, std::string(245, 'n'), block); }) == ENAMETOOLONG);
    lite::arena longest(context, std::string(244, 'n'), block);
}

TEST_CASE("arena: a chunk stays if its LMR cannot be freed") {
    machine node;
    auto context = node.cluster.context();
    const bool eager = GENERATE(false, true);
    lite::arena arena(context, "", block, 0600, eager ? LITE_ARENA_EAGER : 0);
    void* memory = nullptr;
    REQUIRE(lite_arena_alloc(arena.get(), 1, 0, &memory) == 0);
    node.free_error = EHOSTDOWN;
    CHECK(lite_arena_free(arena.get(), memory) == 0);
    CHECK(arena.trim() == 0);
    CHECK(is_mapped(memory));
    void* again = nullptr;
    // The memory is not used again, because its LMR may be gone for peers.
    CHECK(lite_arena_alloc(arena.get(), 1, 0, &again) == 0);
    CHECK(again != memory);
    node.free_error = 0;
    CHECK(lite_arena_free(arena.get(), again) == 0);
    CHECK(arena.trim() == (eager ? block : 2 * block));
    CHECK(!is_mapped(memory));
    // Memory of an LMR that another user has freed is gone.
    REQUIRE(lite_arena_alloc(arena.get(), 1, 0, &memory) == 0);
    node.free_error = EIDRM;
    CHECK(lite_arena_free(arena.get(), memory) == 0);
    CHECK(arena.trim() == (eager ? 0 : block));
    CHECK(!is_mapped(memory));
}

TEST_CASE("arena: other threads do not wait for a new chunk") {
    machine node;
    auto context = node.cluster.context();
    lite::arena arena(context, "", block);
    void* memory = nullptr;
    REQUIRE(lite_arena_alloc(arena.get(), 100, 0, &memory) == 0);
    const auto range = arena.register_range({static_cast<std::byte*>(memory), 100});
    bool found = false;
    node.on_register = [&] {
        std::thread([&] { found = arena.find(range.key).offset == range.offset; }).join();
    };
    void* large = nullptr;
    REQUIRE(lite_arena_alloc(arena.get(), 2 * block, 0, &large) == 0);
    CHECK(found);
}

TEST_CASE("arena: a child leaves the parent's LMRs, and its own memory, alone") {
    // _Fork() runs no handlers of libraries.
    const auto make_child = GENERATE(&::fork, &::_Fork);
    machine node;
    auto context = node.cluster.context();
    std::optional<lite::arena> arena(std::in_place, context, "", block, 0600U, LITE_ARENA_EAGER);
    void* memory = nullptr;
    REQUIRE(lite_arena_alloc(arena->get(), 100, 0, &memory) == 0);
    const pid_t child = make_child();
    if (!child) {
        // The child has inherited the fake's memory; it would not inherit the kernel's.
        arena.reset();
        ::_exit(node.lmrs.size() == 1 && is_mapped(memory) ? 0 : 1);
    }
    int status = 1;
    REQUIRE(::waitpid(child, &status, 0) == child);
    CHECK(status == 0);
    arena.reset();
    CHECK(node.lmrs.empty());
    CHECK(!is_mapped(memory));
}

TEST_CASE("arena: memory of containers, in several threads") {
    machine node;
    auto context = node.cluster.context();
    lite::arena arena(context, "", block);
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; i++) {
        threads.emplace_back([&arena, i] {
            for (int k = 0; k < 200; k++) {
                std::pmr::vector<int> numbers(static_cast<std::size_t>(1 + k), i, &arena);
                const auto range = arena.register_range(std::as_bytes(std::span(numbers)));
                if (arena.find(range.key).length != numbers.size() * sizeof(int))
                    std::abort();
                numbers.push_back(i);
            }
        });
    }
    for (auto& thread : threads)
        thread.join();
    CHECK(arena.trim() == node.mapped);
}
