// SPDX-License-Identifier: MIT
// LMRs made of ranges of arenas: the same bytes, for all nodes; when blocks are used again; and
// what unmapping and freeing do while other nodes use them.
#include "fixture.hpp"

#include <array>
#include <atomic>

#include <sys/resource.h>

using namespace lite_test;

namespace {

constexpr Identity kAlice{1000, 1000};

Errno try_register(const Device& dev, const void* addr, std::uint64_t length) {
    auto args = register_args({}, addr, length);
    const Errno e = dev.call(LITE_IOC_REGISTER, &args);
    if (e == ok)
        dev.free(args.lh);
    return e;
}

// The LMR and the memory are the same bytes, for this node and for another one.
void check_same(const Device& dev, std::uint64_t lh, const std::string& name,
                std::span<std::byte> memory) {
    const Device other = device_for(1);
    const auto elsewhere = other.map(name, kUse);
    check_same_bytes(dev, lh, other, elsewhere, memory);
    std::uint64_t word = 0;
    expect(other(read_args(elsewhere, memory.size() - 4, &word, sizeof(word))) == err(ERANGE),
           "the bounds are the range's");
    other.unmap(elsewhere);
}

}  // namespace

TEST_CASE_METHOD(Mmap, "arena: ranges are LMRs", "[arena]") {
    const Arena arena(dev, 4 * kBlock, LITE_ARENA_EAGER);
    const auto used = dev.query().mem_used;
    const auto [offset, size] =
        GENERATE(std::pair{std::size_t{0}, 4 * kBlock}, std::pair{std::size_t{0}, kPage},
                 std::pair{3 * kBlock + kPage, kBlock - kPage},
                 std::pair{kBlock - kPage, kBlock + 2 * kPage}, std::pair{2 * kBlock, kBlock});
    INFO(offset << " " << size);
    const auto name = unique_name("range");
    const auto memory = arena.bytes(offset, size);
    const auto lh = register_memory(dev, memory, name);
    CHECK(dev.query().mem_used == used);
    CHECK(dev.stat(name).length == size);
    REQUIRE_NOTHROW(check_same(dev, lh, name, memory));
    // What is beside it is not in it.
    CHECK(all_zero(arena.bytes().first(offset)));
    CHECK(all_zero(arena.bytes().subspan(offset + size)));
    CHECK(try_mmap(dev, mmap_args(lh, 0, kPage)) == err(EOPNOTSUPP));
    device_for(1).free(name);
    CHECK(dev(read_args(lh, 0, memory.data(), 8)) == err(EIDRM));
}

TEST_CASE_METHOD(Mmap, "arena: registering takes no RLIMIT_MEMLOCK, and needs one whole range",
                 "[arena]") {
    as_user(kAlice, [] {
        const Device own(env().indexes.front());
        const rlimit none{0, 0};
        expect_equal(::setrlimit(RLIMIT_MEMLOCK, &none), 0, "setrlimit");
        const Arena arena(own, 2 * kBlock);
        expect_equal(try_register(own, arena.data(), 2 * kBlock), ok, "all of it");
        expect_equal(try_register(own, arena.data(), kPage + 1), err(EINVAL), "no whole page");
        expect_equal(try_register(own, arena.data() + 8, kPage), err(EINVAL), "misaligned");
    });
    const Arena arena(dev, 2 * kBlock, LITE_ARENA_EAGER);
    REQUIRE(::munmap(arena.data() + kBlock, kPage) == 0);
    CHECK(try_register(dev, arena.data(), kBlock) == ok);
    const Errno beyond = try_register(dev, arena.data(), kBlock + kPage);
    CHECK((beyond == err(EFAULT) || beyond == err(EOPNOTSUPP)));
    CHECK(try_register(dev, arena.data() + kBlock + kPage, kBlock - kPage) == ok);
    REQUIRE(::mprotect(arena.data(), kPage, PROT_READ) == 0);
    CHECK(try_register(dev, arena.data(), kPage) == err(EFAULT));
    // The VMA stays split; the range is whole.
    REQUIRE(::mprotect(arena.data(), kPage, PROT_READ | PROT_WRITE) == 0);
    CHECK(try_register(dev, arena.data(), kBlock) == ok);
    CHECK(try_register(dev, arena.data(), kPage) == ok);
    // Of another node of this machine it is a driver's memory, as any.
    if (env().indexes.size() > 1) {
        const Errno foreign = try_register(device_for(1), arena.data() + kPage, kPage);
        CHECK(foreign == err(EOPNOTSUPP));
    }
}

TEST_CASE_METHOD(Mmap, "arena: a block is not used again while an LMR has it", "[arena]") {
    Arena arena(dev, 2 * kBlock);
    fill_pattern(arena.bytes(), 1);
    const auto name = unique_name("held");
    const auto lh = register_memory(dev, arena.bytes(kBlock, kPage), name);
    arena.unmap();
    {
        // One block is free to be used again; the other one is not.
        Arena next(dev, 2 * kBlock);
        CHECK(!find_mismatch(next.bytes().first(kBlock), 1));
        CHECK(all_zero(next.bytes(kBlock, kBlock)));
        // The LMR still has the memory of the first arena.
        std::vector<std::byte> got(kPage), wanted(make_pattern(2 * kBlock, 1));
        dev.read(lh, 0, got);
        CHECK(std::equal(got.begin(), got.end(), wanted.begin() + kBlock));
        fill_pattern(next.bytes(), 2);
        const Device other = device_for(1);
        other.write(other.map(name), 0, make_pattern(kPage, 9));
        CHECK(!find_mismatch(next.bytes(), 2));
    }
    dev.free(lh);
    drop_caches();
    check_nothing_used();
}

TEST_CASE_METHOD(Mmap, "arena: blocks that LMRs have do not keep others from being kept",
                 "[arena]") {
    Arena full(dev, LITE_ARENA_KEPT_MAX * kBlock);
    const auto lh = register_memory(dev, full.bytes());
    full.unmap();
    Arena own(dev, kBlock);
    CHECK(all_zero(own.bytes()));
    fill_pattern(own.bytes(), 1);
    own.unmap();
    Arena again(dev, kBlock, LITE_ARENA_EAGER);
    CHECK(!find_mismatch(again.bytes(), 1));
    again.unmap();
    dev.free(lh);
    check_nothing_used();
}

TEST_CASE_METHOD(Mmap, "arena: its LMRs end with the context that made them", "[arena]") {
    const Arena arena(dev, kBlock, LITE_ARENA_EAGER);
    const auto name = unique_name("ends");
    Device other(env().indexes.front());
    register_memory(other, arena.bytes(), name);
    CHECK(dev.stat(name).length == kBlock);
    other.close();
    auto args = stat_args(name);
    CHECK(dev(args) == err(ENOENT));
    CHECK(dev.query().mem_used == kBlock);
}

TEST_CASE_METHOD(Mmap, "arena: memory used again is out of reach of the LMRs that it was in",
                 "[arena]") {
    // Other threads, of another node, write to each LMR until it is gone. What the process gets
    // next at the place of its memory must stay as it is.
    const std::size_t rounds = env().scaled(60, 8);
    const auto flags = GENERATE(0U, static_cast<unsigned>(LITE_ARENA_EAGER));
    constexpr std::size_t at = kBlock / 2;
    constexpr std::size_t length = 16 * kPage;
    std::atomic<bool> done{false};
    std::atomic<unsigned> writes{0};
    std::array<std::atomic<unsigned>, 2> opened{};  // how often each thread has opened it, or tried
    const auto name = unique_name("flood");
    Threads threads;
    for (auto& count : opened) {
        threads.start([&] {
            const Device other = device_for(1);
            const auto canary = make_pattern(length, 99);
            for (; !done; ++count) {
                auto map = map_args(name, kUse);
                if (other(map) != ok)
                    continue;
                Errno e = ok;
                while (e == ok && !done) {
                    e = other(write_args(map.lh, 0, canary.data(), canary.size()));
                    writes += e == ok;
                }
                expect(e == ok || e == err(EIDRM), "the LMR was freed");
                other.unmap(map.lh);
            }
        });
    }
    try {
        for (std::size_t i = 0; i < rounds; i++) {
            Arena arena(dev, kBlock, flags);
            const auto lh = register_memory(dev, arena.bytes(at, length), name);
            const auto seen = writes.load();
            wait_until("writes", [&] { return writes.load() != seen; });
            // Unmapped before, or after it is freed.
            if (i % 2)
                arena.unmap();
            dev.free(lh);
            arena.unmap();
            Arena next(dev, kBlock, flags);
            fill_pattern(next.bytes(), i);
            // Until no thread is any more in what it has begun before.
            const std::array begun{opened[0].load(), opened[1].load()};
            wait_until("they open it again", [&] {
                expect(!find_mismatch(next.bytes(at, length), i, at),
                       "memory used again is left alone");
                return opened[0] != begun[0] && opened[1] != begun[1];
            });
            expect(!find_mismatch(next.bytes(), i), "memory used again is left alone");
        }
    } catch (...) {
        done = true;
        threads.join();
        throw;
    }
    done = true;
    threads.join();
    drop_caches();
    check_nothing_used();
}

TEST_CASE_METHOD(Mmap, "arena: processes killed in every state", "[arena]") {
    const std::size_t rounds = env().scaled(40, 8);
    for (std::size_t i = 0; i < rounds; i++) {
        Shared<Signal> started;
        Child child([&] {
            const Device own = device_for(i);
            started->post();
            for (std::size_t k = 0;; k++) {
                Arena arena(own, (1 + k % 3) * kBlock, k % 4 ? 0 : LITE_ARENA_EAGER);
                arena.bytes()[k % kBlock] = std::byte{1};
                const auto lh = register_memory(own, arena.bytes(0, kBlock),
                                                k % 2 ? unique_name("killed") : std::string());
                if (k % 3)
                    arena.unmap();
                if (k % 5)
                    own.free(lh);
            }
        });
        started->wait("the child");
        ::usleep(static_cast<useconds_t>((i * 7919) % 40000));
        child.kill(SIGKILL);
        child.wait();
    }
    check_nothing_used();
}

TEST_CASE_METHOD(Mmap, "arena: a user's share of the memory bounds its arenas", "[arena]") {
    as_user(kAlice, [] {
        const Device own(env().indexes.front());
        std::vector<Arena> all;
        Errno e = ok;
        const auto step = std::max<std::uint64_t>(own.query().mem_limit / 16 / kBlock, 1) * kBlock;
        while (e == ok && all.size() < 64) {
            auto args = arena_args(step);
            e = own.call(LITE_IOC_ARENA, &args);
            if (e == ok)
                all.push_back(Arena(args));
        }
        expect_equal(e, err(EDQUOT), "a user's share is used up");
        expect(all.size() >= 2, "a share is more than that");
        // What is unmapped can be had again, as it was kept, or is free.
        all.pop_back();
        expect_equal(try_arena(own, arena_args(step)), ok, "after unmapping");
        // What is kept for one open file is free for another one before the limit is met.
        const Device second(env().indexes.front());
        const Arena other(second, step);
        expect_equal(try_arena(own, arena_args(step)), err(EDQUOT), "it is used again");
    });
    check_nothing_used();
}
