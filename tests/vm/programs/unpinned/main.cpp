// SPDX-License-Identifier: MIT
// Unpinned LMRs: see alloc.cpp, ways.cpp and flood.cpp; and
//
//   unpinned hold NODE NAME MB     registers memory that it never touches, says "ready", and obeys
//                                  lines: "unmap" (new memory takes its place), "canaries", "look",
//                                  "exec", "resident"; says what it took in us. "pageout" asks the
//                                  kernel to swap it out, and says how many pages are still there
//   unpinned use NODE NAME         writes all of it again and again; says "using" after the first
//                                  time, and what ended that
//   unpinned fill NODE NAME MB     writes all of it, reads it back and compares
//   unpinned touch NODE NAME       writes a word to each chunk
//   unpinned limits NODE           what is refused
//   unpinned churn NODE            registers and frees until that fails; says "churning" before
//   unpinned restless NODE         registers memory, says which threads always change other memory,
//                                  and after each line goes on: changes what it has registered, and
//                                  says "restless"; frees it, and says "freed"; ends
//   unpinned punched NODE NAME     registers memory of a file in tmpfs, says which of its threads
//                                  will work, and after the next line one frees the pages of the
//                                  file, which takes long: then it says "punching", and the other
//                                  threads are busy; after another line it ends
//   unpinned starved NODE NAME MB  registers memory, says which of its threads will work, and after
//                                  the next line the first one asks the kernel to take the memory
//                                  away; after another the others are busy; after another the main
//                                  thread asks for the same, and says "taken"; after another it
//                                  ends
//   unpinned costs OWNER USER MB   what it costs to register memory, and to write to it, also for
//                                  the other kinds of memory
#include "memory.hpp"

#include <lite/arena.h>
#include <lite/sync.h>

#include <infiniband/verbs.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <functional>
#include <iostream>
#include <latch>
#include <numeric>
#include <random>
#include <thread>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <sys/stat.h>

namespace unpinned {
namespace {

using std::chrono::steady_clock;

constexpr std::uint64_t kCanary = 0xca4a12ca4a12ca4a;
constexpr std::uint64_t kUsed = 0xa77ac0dea77ac0de;

long long us_since(steady_clock::time_point begun) {
    return std::chrono::duration_cast<std::chrono::microseconds>(steady_clock::now() - begun)
        .count();
}

long long resident_kb() {
    std::ifstream status("/proc/self/status");
    std::string word;
    while (status >> word) {
        if (word == "VmRSS:") {
            long long kb = 0;
            status >> kb;
            return kb;
        }
    }
    return -1;
}

std::uint64_t length_of(const Node& node, lite_lh_t lh) {
    lite_lmr_info info = {};
    check(!lite_stat(node.get(), lh, &info, nullptr, nullptr), "stat");
    return info.length;
}

int use(int argc, char** argv) {
    if (argc < 4)
        return 2;
    const Node node(std::stoi(argv[2]));
    const lite_lh_t lh = node.open(argv[3]);
    const auto length = length_of(node, lh);
    std::vector<std::uint64_t> words(2 * kPage / 8, kUsed);
    for (bool said = false;; said = true) {
        for (std::uint64_t at = 0; at + 2 * kPage <= length; at += 2 * kPage) {
            const int err = lite_write(node.get(), lh, at, words.data(), 2 * kPage);
            if (err) {
                std::printf("%d %s\n", -err, lite_strerror(err));
                return 0;
            }
        }
        if (!said)
            std::puts("using");
        std::fflush(stdout);
    }
}

int fill(int argc, char** argv) {
    if (argc < 5)
        return 2;
    const Node node(std::stoi(argv[2]));
    const lite_lh_t lh = node.open(argv[3]);
    const auto pieces = std::stoull(argv[4]);
    constexpr std::size_t piece = 1 << 20;
    std::vector<std::uint64_t> words(piece / 8), got(piece / 8);
    for (const bool write : {true, false}) {
        for (std::uint64_t i = 0; i < pieces; ++i) {
            for (std::size_t k = 0; k < words.size(); ++k)
                words[k] = i << 32 | (k + 1);
            const int err = write ? lite_write(node.get(), lh, i * piece, words.data(), piece)
                                  : lite_read(node.get(), lh, i * piece, got.data(), piece);
            check(!err, lite_strerror(err));
            check(write || got == words, "piece " + std::to_string(i) + " is not what was written");
        }
    }
    std::puts("right");
    return 0;
}

int touch(int argc, char** argv) {
    if (argc < 4)
        return 2;
    const Node node(std::stoi(argv[2]));
    const lite_lh_t lh = node.open(argv[3]);
    const auto length = length_of(node, lh);
    for (std::uint64_t at = 0; at < length; at += 64 * kPage)
        check(!lite_write(node.get(), lh, at, &kUsed, sizeof(kUsed)), "write");
    return 0;
}

// Returns how many pages stay in the process's page table.
std::ptrdiff_t page_out(const Range& range) {
    check_errno(::madvise(range.data(), range.size(), MADV_PAGEOUT), "MADV_PAGEOUT");
    std::vector<std::uint64_t> entries(range.size() / kPage);
    const std::size_t size = entries.size() * 8;
    const int fd = ::open("/proc/self/pagemap", O_RDONLY);
    const auto page = reinterpret_cast<std::uintptr_t>(range.data()) / kPage;
    check(::pread(fd, entries.data(), size, static_cast<off_t>(page * 8)) ==
              static_cast<ssize_t>(size),
          "pagemap");
    ::close(fd);
    return std::ranges::count_if(entries, [](std::uint64_t entry) { return entry >> 63; });
}

int hold(int argc, char** argv) {
    if (argc < 5)
        return 2;
    const Node node(std::stoi(argv[2]));
    const Range range(std::stoull(argv[4]) << 20);
    node.make(argv[3], range.data(), range.size());
    std::puts("ready");
    std::fflush(stdout);
    for (std::string line; std::getline(std::cin, line);) {
        const auto begun = steady_clock::now();
        if (line == "unmap")
            range.renew(0, range.size());
        else if (line == "canaries")
            std::fill_n(range.words(), range.size() / 8, kCanary);
        else if (line == "look")
            check(std::all_of(range.words(), range.words() + range.size() / 8,
                              [](std::uint64_t word) { return word == kCanary; }),
                  "a canary is damaged");
        else if (line == "pageout")
            std::printf("%td pages\n", page_out(range));
        else if (line == "exec")
            ::execl("/bin/sleep", "sleep", "1000", nullptr);
        std::printf("%s %lld us, %lld KB\n", line.c_str(), us_since(begun), resident_kb());
        std::fflush(stdout);
    }
    return 0;
}

int limits(int argc, char** argv) {
    if (argc < 3)
        return 2;
    const Node node(std::stoi(argv[2]));
    constexpr std::size_t huge = 2 << 20;
    const Range range(4 * huge);
    // From the start of a huge page.
    std::byte* const at =
        range.data() + (huge - reinterpret_cast<std::uintptr_t>(range.data()) % huge);
    const auto expect = [&](std::size_t offset, std::size_t length, int wanted, lite_lh_t* lh) {
        const int err = node.try_register("", at + offset, length, LITE_REGISTER_UNPINNED, lh);
        check(err == wanted, "register " + std::to_string(length) + " bytes at " +
                                 std::to_string(offset) + ": " + lite_strerror(err));
    };
    lite_lh_t lhs[8] = {}, lh = 0;
    // Registered twice.
    expect(0, 2 * kPage, 0, &lhs[0]);
    for (const std::size_t offset : {std::size_t{0}, kPage})
        expect(offset, kPage, -EEXIST, &lh);
    check(!node.try_register("", at, kPage, 0, &lh) && !lite_free(node.get(), lh), "pinned, too");
    check(!lite_free(node.get(), lhs[0]), "free");
    // Many in one huge page.
    for (std::size_t i = 0; i < 8; ++i)
        expect(i * 2 * kPage, kPage, 0, &lhs[i]);
    expect(kPage, kPage, -EBUSY, &lh);
    expect(huge - kPage, 2 * kPage, -EBUSY, &lh);
    expect(huge, kPage, 0, &lh);
    check(!lite_free(node.get(), lh) && !lite_free(node.get(), lhs[3]), "free");
    expect(kPage, kPage, 0, &lhs[3]);
    // Releasing a lock needs its word at any time, with a handle or without.
    check(lite_lock(node.get(), lhs[0], 0, 1, 0, 0) == -EOPNOTSUPP, "a lock");
    check(lite_barrier(node.get(), lhs[0], 0, 1, 0) == -EOPNOTSUPP, "a barrier");
    for (const auto each : lhs)
        check(!lite_free(node.get(), each), "free");
    // Too long.
    const Range large((std::size_t{4} << 30) + kPage);
    const int err = node.try_register("", large.data(), large.size(), LITE_REGISTER_UNPINNED, &lh);
    check(err == -EFBIG, std::string("register 4 GB and a page: ") + lite_strerror(err));
    std::puts("right");
    return 0;
}

int churn(int argc, char** argv) {
    if (argc < 3)
        return 2;
    const Node node(std::stoi(argv[2]));
    const Range range(1 << 20);
    for (int i = 0;; ++i) {
        lite_lh_t lh = 0;
        int err = node.try_register("", range.data(), range.size(), LITE_REGISTER_UNPINNED, &lh);
        if (!err)
            err = lite_free(node.get(), lh);
        if (err) {
            std::printf("%d %s\n", -err, lite_strerror(err));
            return 0;
        }
        if (i == 10) {
            std::puts("churning");
            std::fflush(stdout);
        }
    }
}

// Threads that call madvise(2) again and again, which takes long: most of the time each is in it.
class Restless {
  public:
    Restless() {
        check_errno(::madvise(range_.data(), range_.size(), MADV_NOHUGEPAGE), "MADV_NOHUGEPAGE");
        // A page table for each 2 MB, to be looked at.
        for (std::size_t at = 0; at < range_.size(); at += 2 << 20)
            range_.data()[at] = std::byte{1};
        for (std::size_t i = 0; i < kThreads; ++i) {
            threads_.emplace_back([this, i] {
                ids_[i] = ::gettid();
                for (bool first = true; !ended_; first = false) {
                    ::madvise(range_.data(), range_.size(), MADV_DONTNEED);
                    if (first)
                        begun_.count_down();
                }
            });
        }
        begun_.wait();
        for (const auto id : ids_)
            std::printf("thread %d\n", id);
    }
    ~Restless() { ended_ = true; }
    Restless(const Restless&) = delete;
    Restless& operator=(const Restless&) = delete;

  private:
    static constexpr std::size_t kThreads = 3;
    pid_t ids_[kThreads] = {};
    std::latch begun_{kThreads};
    const Range range_{std::size_t{4} << 30};
    std::atomic<bool> ended_ = false;
    std::vector<std::jthread> threads_;
};

struct Release {
    std::latch& latch;
    ~Release() { latch.count_down(); }
};

int restless(int argc, char** argv) {
    if (argc < 3)
        return 2;
    const Node node(std::stoi(argv[2]));
    constexpr std::size_t each = 2 << 20, count = 300;
    const Range range((count / 8 + 2) * each);
    std::vector<std::byte*> pages;
    std::vector<lite_lh_t> lhs;
    for (std::size_t i = 0; i < count; ++i) {
        pages.push_back(range.data() + i / 8 * each + i % 8 * 2 * kPage);
        lhs.push_back(node.make("", pages.back(), kPage));
    }
    // Their stacks are mapped before that takes long, and unmapped after.
    std::latch begin(1), freed(count), end(1);
    std::atomic<int> failed = 0;
    std::vector<std::jthread> threads;
    for (const auto lh : lhs) {
        threads.emplace_back([&, lh] {
            begin.wait();
            failed += lite_free(node.get(), lh) != 0;
            freed.count_down();
            end.wait();
        });
    }
    const Release release{end};
    const Restless rest;
    std::string line;
    const auto next = [&line](const char* said) {
        std::puts(said);
        std::fflush(stdout);
        check(static_cast<bool>(std::getline(std::cin, line)), "no line");
    };
    next("ready");
    // The kernel tells of each.
    for (std::byte* const page : pages) {
        *page = std::byte{1};
        check_errno(::madvise(page, kPage, MADV_DONTNEED), "MADV_DONTNEED");
    }
    next("restless");
    begin.count_down();
    freed.wait();
    check(!failed, "free");
    next("freed");
    return 0;
}

// Threads that say their ids, and wait: a worker, and others that are busy then.
class Crowd {
  public:
    explicit Crowd(const std::function<void(const std::atomic<bool>& ended)>& work) {
        start(work_, [this, work] { work(ended_); });
        for (int i = 0; i < kBusy; ++i)
            start(busy_, [this] {
                while (!ended_)
                    ;
            });
        known_.wait();
    }
    ~Crowd() { ended_ = true; }
    Crowd(const Crowd&) = delete;
    Crowd& operator=(const Crowd&) = delete;

    void work() { work_.count_down(); }
    void be_busy() { busy_.count_down(); }

  private:
    void start(std::latch& latch, const std::function<void()>& body) {
        threads_.emplace_back([this, &latch, body] {
            std::printf("%s %d\n", &latch == &work_ ? "worker" : "thread", ::gettid());
            known_.count_down();
            latch.wait();
            body();
        });
    }

    static constexpr int kBusy = 40;
    std::latch known_{kBusy + 1}, work_{1}, busy_{1};
    std::atomic<bool> ended_ = false;
    std::vector<std::jthread> threads_;
};

// Without memory from the heap, for which there may be no mmap_lock.
void next_line(const char* said) {
    char line[80];
    std::puts(said);
    std::fflush(stdout);
    check(std::fgets(line, sizeof(line), stdin), "no line");
}

int punched(int argc, char** argv) {
    if (argc < 4)
        return 2;
    const Node node(std::stoi(argv[2]));
    constexpr std::size_t file_size = 256 << 20, size = 1 << 20;
    const int fd = ::memfd_create("punched", 0);
    check_errno(fd, "memfd_create");
    check_errno(::fallocate(fd, 0, 0, file_size), "fallocate");
    const Range range(size);
    range.use_file(fd, size);
    (void)node.make(argv[3], range.data(), size);
    Crowd crowd([fd](const std::atomic<bool>& ended) {
        while (!ended) {
            ::fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, file_size);
            ::fallocate(fd, 0, 0, file_size);
        }
    });
    next_line("ready");
    crowd.work();
    // Its page table entries have gone before.
    struct stat status = {};
    do {
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
        check_errno(::fstat(fd, &status), "fstat");
    } while (static_cast<std::size_t>(status.st_blocks) * 512 == file_size);
    crowd.be_busy();
    next_line("punching");
    return 0;
}

int starved(int argc, char** argv) {
    if (argc < 5)
        return 2;
    const Node node(std::stoi(argv[2]));
    const Range range(std::stoull(argv[4]) << 20);
    // Neighbours that have nothing to do with each other, so that each has to be unmapped.
    std::vector<std::size_t> pages(range.size() / kPage);
    std::iota(pages.begin(), pages.end(), 0);
    std::ranges::shuffle(pages, std::mt19937_64{1});
    check_errno(::madvise(range.data(), range.size(), MADV_NOHUGEPAGE), "MADV_NOHUGEPAGE");
    for (const auto page : pages)
        range.data()[page * kPage] = std::byte{1};
    (void)node.make(argv[3], range.data(), range.size());
    const auto take = [&range] { ::madvise(range.data(), range.size(), MADV_DONTNEED); };
    Crowd crowd([&](const std::atomic<bool>&) { take(); });
    next_line("ready");
    crowd.work();
    next_line("taking");
    crowd.be_busy();
    next_line("busy");
    take();
    next_line("taken");
    return 0;
}

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

// Registers as a program of verbs does. Returns us, or -1: it failed.
double native(const Range& range) {
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
    const bool good = mr;
    if (mr)
        ibv_dereg_mr(mr);
    ibv_dealloc_pd(pd);
    ibv_close_device(context);
    ibv_free_device_list(devices);
    return good ? took : -1;
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
        std::printf(", ibv_reg_mr %.0f us", native(verbs));
    }
    std::puts("");
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
    std::uint64_t words[8] = {1, 2, 3, 4, 5, 6, 7, 8};
    std::vector<double> took[2], faults, calls;
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
        ::mprotect(free_.data(), kPage, PROT_READ);
        ::mprotect(free_.data(), kPage, PROT_READ | PROT_WRITE);
        faults.push_back(us_of(
            [&] { check(!lite_write(user.get(), lhs[1], 0, words, 64), "write, with a fault"); }));
        calls.push_back(
            us_of([&] { check(!lite_stat(user.get(), lhs[0], &info, nullptr, nullptr), "stat"); }));
    }
    std::printf(
        "write 64 B: pinned %.1f us, unpinned %.1f us, with a minor fault %.1f us; a call "
        "%.1f us\n",
        median(took[0]), median(took[1]), median(faults), median(calls));
    check(!lite_free(owner.get(), lh) && !lite_free(owner.get(), free_lh), "free");
}

// Of the machine.
long long free_kb() {
    std::ifstream info("/proc/meminfo");
    std::string word;
    while (info >> word) {
        if (word == "MemFree:") {
            long long kb = 0;
            info >> kb;
            return kb;
        }
    }
    return -1;
}

// Memory of a kind, as an LMR: what it takes to make it, the machine's memory that has gone into it
// before anyone has touched it, the first write of a user at another node, later ones, and its end.
template <typename Make, typename End>
void kind(const char* name, const Node& user, Make make, End end) {
    constexpr int kRounds = 5;
    constexpr int kWrites = 500;
    std::vector<double> made, held, first, later, ended;
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
        lite_unmap(user.get(), lh);
        ended.push_back(us_of(end));
    }
    std::printf(
        "%-10s make %.0f us, held %.0f KB, first write %.1f us, write %.1f us, end %.0f us\n", name,
        median(made), median(held), median(first), median(later), median(ended));
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
        "allocated", user,
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
        "registered", user, [&] { registered(memory.data(), 0); },
        [&] {
            free_it();
            memory.renew(0, size);
        });
    kind(
        "unpinned", user, [&] { registered(memory.data(), LITE_REGISTER_UNPINNED); }, free_it);
    kind(
        "leased", user,
        [&] { registered(memory.data(), LITE_REGISTER_UNPINNED | LITE_REGISTER_LEASED); }, free_it);
    // With and without the mapping.
    kind(
        "new arena", user,
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
        "in arena", user, [&] { registered(arena, 0); }, free_it);
    ::munmap(arena, size);
}

// Rounds of writes, 64 bytes in each chunk, after the kernel was asked to swap the memory out: what
// a lease gives. One lasts longer than all rounds of each kind.
void squeezed(const Node& owner, const Node& user) {
    constexpr std::size_t size = 1 << 20, chunk = 64 * kPage;
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
        std::ptrdiff_t stayed = 0;
        for (int i = 0; i < 40; ++i) {
            took.push_back(us_of([&] {
                for (std::size_t at = 0; at < size; at += chunk)
                    check(!lite_write(user.get(), theirs, at, words, 64), "write");
            }));
            stayed += page_out(*range);
        }
        std::printf(
            "%s: 4 writes in %.0f us, after all was to be swapped out; %td of 256 pages stayed\n",
            name, median(took), stayed / 40);
    }
    check(!lite_free(owner.get(), lh) && !lite_free(owner.get(), free_lh), "free");
}

int costs(int argc, char** argv) {
    if (argc < 5)
        return 2;
    const Node owner(std::stoi(argv[2]));
    const Node user(std::stoi(argv[3]));
    const auto mb = std::stoull(argv[4]);
    kinds(owner, user, 64);
    registering(owner, mb, true);
    registering(owner, mb * 16, false);
    writing(owner, user);
    squeezed(owner, user);
    return 0;
}

}  // namespace
}  // namespace unpinned

int main(int argc, char** argv) {
    const std::string mode = argc > 1 ? argv[1] : "";
    try {
        if (mode == "ways")
            return unpinned::ways(argc, argv);
        if (mode == "flood")
            return unpinned::flood(argc, argv);
        if (mode == "hold")
            return unpinned::hold(argc, argv);
        if (mode == "use")
            return unpinned::use(argc, argv);
        if (mode == "fill")
            return unpinned::fill(argc, argv);
        if (mode == "touch")
            return unpinned::touch(argc, argv);
        if (mode == "limits")
            return unpinned::limits(argc, argv);
        if (mode == "alloc")
            return unpinned::alloc(argc, argv);
        if (mode == "churn")
            return unpinned::churn(argc, argv);
        if (mode == "restless")
            return unpinned::restless(argc, argv);
        if (mode == "punched")
            return unpinned::punched(argc, argv);
        if (mode == "starved")
            return unpinned::starved(argc, argv);
        if (mode == "costs")
            return unpinned::costs(argc, argv);
    } catch (const std::exception& e) {
        std::printf("%s\n", e.what());
        std::fflush(stdout);
        return 1;
    }
    return 2;
}
