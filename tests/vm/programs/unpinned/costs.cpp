// SPDX-License-Identifier: MIT
// What memory costs as an LMR:
//
//   unpinned costs OWNER USER MB   what it costs to register memory, and to write to it, also for
//                                  the other kinds of memory
//   unpinned writes OWNER USER     compares writes to unpinned memory and to pinned
//   unpinned native MB             registers so much memory with ibv_reg_mr, and says what came of
//   it
#include "memory.hpp"

#include <lite/arena.h>

#include <infiniband/verbs.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

namespace unpinned {
namespace {

using std::chrono::steady_clock;

constexpr std::size_t kChunk = 64 * kPage;

// Of the machine.
long long free_kb() { return static_cast<long long>(number_in("/proc/meminfo", "MemFree:")); }

template <typename F>
double us_of(F function) {
    const auto begun = steady_clock::now();
    function();
    return std::chrono::duration<double, std::micro>(steady_clock::now() - begun).count();
}

double median(std::vector<double> values) {
    std::ranges::sort(values);
    return values[values.size() / 2];
}

// Registers as a program of verbs does. Returns us, or -1: it failed, see errno.
double reg_mr(const Range& range) {
    int n = 0;
    ibv_device** devices = ibv_get_device_list(&n);
    check(devices && n, "no RDMA device");
    ibv_context* context = ibv_open_device(devices[0]);
    check(context, "ibv_open_device");
    ibv_pd* pd = ibv_alloc_pd(context);
    check(pd, "ibv_alloc_pd");
    ibv_mr* mr = nullptr;
    const auto took = us_of([&] {
        mr = ibv_reg_mr(pd, range.data(), range.size(),
                        IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
    });
    const int err = errno;
    if (mr)
        ibv_dereg_mr(mr);
    ibv_dealloc_pd(pd);
    ibv_close_device(context);
    ibv_free_device_list(devices);
    errno = err;
    return mr ? took : -1;
}

void registering(const Node& node, std::size_t mb, bool all) {
    const Range unpinned_(mb << 20);
    const Range pinned(mb << 20);
    const Range verbs(mb << 20);
    const auto before = resident_kb();
    lite_lh_t lh = 0;
    long long more = 0;
    // The quickest of several: a busy host delays some.
    std::vector<double> makes;
    std::vector<double> frees;
    for (int i = 0; i < 9; ++i) {
        makes.push_back(us_of([&] { lh = node.make("", unpinned_.data(), unpinned_.size()); }));
        more = resident_kb() - before;
        frees.push_back(us_of([&] { check(!lite_free(node.get(), lh), "free"); }));
    }
    std::printf("register %zu MB: unpinned %.0f us, %lld KB, free %.0f us", mb,
                std::ranges::min(makes), more, std::ranges::min(frees));
    if (all) {
        const auto took = us_of([&] {
            check(!node.try_register("", pinned.data(), pinned.size(), 0, &lh), "register, pinned");
        });
        std::printf(", pinned %.0f us", took);
        lite_free(node.get(), lh);
        pinned.renew(0, pinned.size());
        std::printf(", ibv_reg_mr %.0f us", reg_mr(verbs));
    }
    std::puts("");
}

// us of operation() after the process has changed its memory there.
template <typename F>
double minor_fault(std::byte* at, F operation) {
    ::mprotect(at, kPage, PROT_READ);
    ::mprotect(at, kPage, PROT_READ | PROT_WRITE);
    return us_of(operation);
}

// us of operation() after the kernel has swapped out its chunk, noted if it has.
template <typename F>
void major_fault(std::byte* at, std::vector<double>& seen, F operation) {
    page_out(at, kChunk);
    const bool gone = !(page_table(at, kPage)[0] >> 63);
    const auto us = us_of(operation);
    if (gone)
        seen.push_back(us);
}

// Writes of 64 bytes: to pinned memory; to unpinned memory that is mapped; and just not mapped.
void writing(const Node& owner, const Node& user) {
    constexpr std::size_t size = 1 << 20;
    const Range pinned(size);
    const Range free_(size);
    lite_lh_t lh = 0;
    check(!owner.try_register("costs-pinned", pinned.data(), size, 0, &lh), "register");
    const lite_lh_t free_lh = owner.make("costs-unpinned", free_.data(), size);
    const lite_lh_t lhs[] = {user.open("costs-pinned"), user.open("costs-unpinned")};
    const std::uint64_t words[8] = {1, 2, 3, 4, 5, 6, 7, 8};
    std::vector<double> took[2], minor, calls;
    lite_lmr_info info = {};
    for (std::size_t i = 0; i < 4000; ++i) {
        for (const auto k : {0, 1}) {
            const auto us = us_of([&] {
                check(!lite_write(user.get(), lhs[k], i * 4160 % (size - 64), words, 64), "write");
            });
            if (i > 1000)
                took[k].push_back(us);
        }
    }
    for (std::size_t i = 0; i < 300; ++i) {
        minor.push_back(minor_fault(free_.data(), [&] {
            check(!lite_write(user.get(), lhs[1], 0, words, 64), "write, with a fault");
        }));
        calls.push_back(
            us_of([&] { check(!lite_stat(user.get(), lhs[0], &info, nullptr, nullptr), "stat"); }));
    }
    std::printf(
        "write 64 B: pinned %.3f us, unpinned %.3f us, with a minor fault %.3f us; a call "
        "%.3f us\n",
        median(took[0]), median(took[1]), median(minor), median(calls));
    check(!lite_free(owner.get(), lh) && !lite_free(owner.get(), free_lh), "free");
}

// Memory of a kind, as an LMR: what it takes to make it, the machine's memory that has gone into it
// before anyone has touched it, the first write of a user at another node, later ones, those after
// the kernel has taken the page or swapped it out (@unpinned: only there it does), and its end.
template <typename Make, typename End>
void kind(const char* name, const Node& user, const Range* unpinned, Make make, End end) {
    constexpr int kRounds = 5;
    constexpr int kWrites = 200;
    constexpr int kFaults = 20;
    std::vector<double> made, held, first, later, minor, major, ended;
    for (int round = 0; round < kRounds; ++round) {
        const auto before = free_kb();
        made.push_back(us_of(make));
        held.push_back(static_cast<double>(before - free_kb()));
        const lite_lh_t lh = user.open("kind");
        std::uint64_t words[8] = {1, 2, 3, 4, 5, 6, 7, 8};
        const auto write = [&] { check(!lite_write(user.get(), lh, 0, words, 64), "write"); };
        first.push_back(us_of(write));
        for (int i = 0; i < kWrites; ++i)
            later.push_back(us_of(write));
        for (int i = 0; unpinned && i < kFaults; ++i) {
            minor.push_back(minor_fault(unpinned->data(), write));
            major_fault(unpinned->data(), major, write);
        }
        lite_unmap(user.get(), lh);
        ended.push_back(us_of(end));
    }
    std::printf("%-10s make %.0f us, held %.0f KB, first write %.1f us, write %.1f us", name,
                median(made), median(held), median(first), median(later));
    if (!minor.empty())
        std::printf(", minor fault %.0f us", median(minor));
    if (!major.empty())
        std::printf(", major fault %.0f us", median(major));
    std::printf(", end %.0f us\n", median(ended));
}

void kinds(const Node& owner, const Node& user, std::size_t mb) {
    const std::size_t size = mb << 20;
    const Range memory(size);
    void* arena = nullptr;
    lite_lh_t lh = 0;
    const auto free_it = [&] { check(!lite_free(owner.get(), lh), "free"); };
    const auto registered = [&](void* at, std::uint32_t flags) {
        const int err = owner.try_register("kind", at, size, flags, &lh);
        check(!err, std::string("register: ") + lite_strerror(err));
    };
    kind(
        "allocated", user, nullptr,
        [&] {
            lite_alloc_params params = {};
            params.size = sizeof(params);
            params.name = "kind";
            params.mode = 0666;
            params.length = size;
            check(!lite_alloc(owner.get(), &params, &lh), "alloc");
        },
        free_it);
    kind(
        "registered", user, nullptr, [&] { registered(memory.data(), 0); },
        [&] {
            free_it();
            memory.renew(0, size);
        });
    kind(
        "unpinned", user, &memory, [&] { registered(memory.data(), LITE_REGISTER_UNPINNED); },
        free_it);
    kind(
        "leased", user, &memory,
        [&] { registered(memory.data(), LITE_REGISTER_UNPINNED | LITE_REGISTER_LEASED); }, free_it);
    // With and without the mapping.
    kind(
        "new arena", user, nullptr,
        [&] {
            check(!lite_arena_mmap(owner.get(), size, LITE_ARENA_EAGER, &arena), "arena");
            registered(arena, 0);
        },
        [&] {
            free_it();
            ::munmap(arena, size);
        });
    check(!lite_arena_mmap(owner.get(), size, LITE_ARENA_EAGER, &arena), "arena");
    kind(
        "in arena", user, nullptr, [&] { registered(arena, 0); }, free_it);
    ::munmap(arena, size);
}

// Rounds of writes, 64 bytes in each chunk, after the kernel was asked to swap the memory out: what
// a lease gives. One lasts longer than all rounds of each kind.
void squeezed(const Node& owner, const Node& user) {
    constexpr std::size_t size = 1 << 20;
    const Range unpinned_(size);
    const Range leased(size);
    const std::uint64_t words[8] = {1, 2, 3, 4, 5, 6, 7, 8};
    lite_lh_t lh = 0;
    const lite_lh_t free_lh = owner.make("squeezed", unpinned_.data(), size);
    check(!owner.try_register("squeezed-leased", leased.data(), size,
                              LITE_REGISTER_UNPINNED | LITE_REGISTER_LEASED, &lh),
          "register, leased");
    for (const auto& [name, range] :
         {std::pair{"squeezed", &unpinned_}, {"squeezed-leased", &leased}}) {
        const auto theirs = user.open(name);
        std::vector<double> took;
        std::size_t stayed = 0;
        for (int i = 0; i < 40; ++i) {
            took.push_back(us_of([&] {
                for (std::size_t at = 0; at < size; at += kChunk)
                    check(!lite_write(user.get(), theirs, at, words, 64), "write");
            }));
            stayed += page_out(range->data(), range->size());
        }
        std::printf(
            "%s: 4 writes in %.0f us, after all was to be swapped out; %zu of 256 pages stayed\n",
            name, median(took), stayed / 40);
    }
    check(!lite_free(owner.get(), lh) && !lite_free(owner.get(), free_lh), "free");
}

}  // namespace

int costs(int argc, char** argv) {
    if (argc < 5)
        return 2;
    const Node owner(std::stoi(argv[2]));
    const Node user(std::stoi(argv[3]));
    const auto mb = std::stoull(argv[4]);
    kinds(owner, user, 64);
    registering(owner, mb, true);
    registering(owner, mb * 16, false);
    squeezed(owner, user);
    return 0;
}

int writes(int argc, char** argv) {
    if (argc < 4)
        return 2;
    writing(Node(std::stoi(argv[2])), Node(std::stoi(argv[3])));
    return 0;
}

int native(int argc, char** argv) {
    if (argc < 3)
        return 2;
    const auto took = reg_mr(Range(std::stoull(argv[2]) << 20));
    std::printf("ibv_reg_mr: %s\n", took < 0 ? std::strerror(errno) : "good");
    return 0;
}

}  // namespace unpinned
