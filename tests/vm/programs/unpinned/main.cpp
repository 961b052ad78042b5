// SPDX-License-Identifier: MIT
// Unpinned LMRs: see alloc.cpp, ways.cpp, flood.cpp and operations.cpp; and
//
//   unpinned hold NODE NAME MB     registers memory that it never touches, says "ready", and obeys
//                                  lines: "unmap" (new memory takes its place), "canaries", "look",
//                                  "exec", "resident"; says what it took in us. "pageout" asks the
//                                  kernel to swap it out, and says how many pages are still there
//   unpinned use NODE NAME         writes all of it again and again; says "using" after the first
//                                  time, and what ended that
//   unpinned fill NODE NAME MB     writes all of it, reads it back and compares
//   unpinned touch NODE NAME       writes a word to each chunk
//   unpinned sparse NODE NAME KB   writes a hundredth of it, in pieces of KB at random places
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
//
// costs.cpp has "costs", "writes" and "native".
#include "memory.hpp"

#include <lite/sync.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <functional>
#include <iostream>
#include <latch>
#include <numeric>
#include <random>
#include <thread>
#include <vector>

#include <fcntl.h>
#include <sys/prctl.h>
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
    std::vector<std::uint64_t> words(piece / 8);
    auto got = words;
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

int sparse(int argc, char** argv) {
    if (argc < 5)
        return 2;
    const Node node(std::stoi(argv[2]));
    const lite_lh_t lh = node.open(argv[3]);
    const auto piece = std::stoull(argv[4]) << 10, pieces = length_of(node, lh) / piece;
    const std::vector<std::uint64_t> words(piece / 8, kUsed);
    std::vector<std::uint64_t> order(pieces);
    std::iota(order.begin(), order.end(), 0);
    std::ranges::shuffle(order, std::mt19937_64{1});
    for (std::uint64_t i = 0; i < pieces / 100; ++i)
        check(!lite_write(node.get(), lh, order[i] * piece, words.data(), piece), "write");
    return 0;
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
            std::printf("%zu pages\n", page_out(range.data(), range.size()));
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
        for (auto& id : ids_) {
            threads_.emplace_back([this, &id] {
                id = ::gettid();
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
    // khugepaged would wait for the threads that change memory, and all others then wait for it.
    check_errno(::prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0), "PR_SET_THP_DISABLE");
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

}  // namespace
}  // namespace unpinned

int main(int argc, char** argv) {
    const std::string mode = argc > 1 ? argv[1] : "";
    try {
        if (mode == "ways")
            return unpinned::ways(argc, argv);
        if (mode == "flood")
            return unpinned::flood(argc, argv);
        if (mode == "operations")
            return unpinned::operations(argc, argv);
        if (mode == "shake")
            return unpinned::shake(argc, argv);
        if (mode == "hold")
            return unpinned::hold(argc, argv);
        if (mode == "use")
            return unpinned::use(argc, argv);
        if (mode == "fill")
            return unpinned::fill(argc, argv);
        if (mode == "touch")
            return unpinned::touch(argc, argv);
        if (mode == "sparse")
            return unpinned::sparse(argc, argv);
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
        if (mode == "writes")
            return unpinned::writes(argc, argv);
        if (mode == "native")
            return unpinned::native(argc, argv);
    } catch (const std::exception& e) {
        std::printf("%s\n", e.what());
        std::fflush(stdout);
        return 1;
    }
    return 2;
}
