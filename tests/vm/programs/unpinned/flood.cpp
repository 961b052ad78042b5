// SPDX-License-Identifier: MIT
// A process changes its memory without a break while other nodes read and write it: what they
// write must never reach pages that the process no longer has there, nor do they ever read such a
// page.
//
// All they write is marked as theirs; the pages that the process has let go are taken at once for
// canaries, which must stay. So a marked word among canaries, or a canary that was read, is a page
// that a node could still reach.
#include "memory.hpp"

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <exception>
#include <mutex>
#include <new>
#include <random>
#include <thread>
#include <vector>

#include <fcntl.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/wait.h>

namespace unpinned {
namespace {

constexpr std::uint64_t kMark = 0xa77ac0de00000000;
constexpr std::uint64_t kCanary = 0xca4a12ca4a12ca4a;
constexpr std::size_t kSize = 2 << 20;
constexpr std::size_t kEvent = 16 * kPage;  // bytes of an event, at most

constexpr unsigned kKinds = 9;          // of events
constexpr std::uint64_t kWatched = 50;  // operations in the life of a child

// What children see, too.
struct Progress {
    std::atomic<bool> over;
    std::atomic<std::uint64_t> ops;
};

Progress* shared_progress() {
    void* at = ::mmap(nullptr, kPage, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    check(at != MAP_FAILED, "mmap");
    return new (at) Progress{};
}

struct Flood {
    Node owner;
    int there;
    Range anonymous{kSize};
    Range file{kSize};
    Range canaries{kEvent};
    std::vector<std::byte> snapshot = std::vector<std::byte>(kSize);
    int fd = -1;
    std::uint64_t events = 0;
    std::uint64_t children = 0;
    std::uint64_t migrated = 0;
    Progress* const progress = shared_progress();
    std::atomic<bool>& over = progress->over;
    std::atomic<std::uint64_t>& ops = progress->ops;
    std::atomic<std::uint64_t> faults = 0;
    std::mutex lock;
    std::string trouble;

    Flood(int here, int other) : owner(here), there(other) {}

    void fail(const std::string& what) {
        const std::scoped_lock guard(lock);
        if (trouble.empty())
            trouble = what;
        over = true;
    }

    void attack(unsigned number) {
        const Node node(there);
        const lite_lh_t lh[] = {node.open("flood-anonymous"), node.open("flood-file")};
        std::mt19937 random(number);
        std::vector<std::uint64_t> words(kEvent / 8);
        while (!over) {
            const auto which = random() % 2;
            const std::size_t length = random() % 4 ? 64 : kEvent;
            const std::size_t offset = random() % ((kSize - length) / 8) * 8;
            int err = 0;
            if (random() % 2) {
                for (std::size_t i = 0; i < length / 8; ++i)
                    words[i] = kMark | static_cast<std::uint32_t>(random());
                err = lite_write(node.get(), lh[which], offset, words.data(), length);
            } else {
                err = lite_read(node.get(), lh[which], offset, words.data(), length);
                for (std::size_t i = 0; !err && i < length / 8; ++i) {
                    if (words[i] && (words[i] >> 32) != kMark >> 32)
                        fail("read something else: " + std::to_string(words[i]));
                }
            }
            if (err == -EFAULT)
                ++faults;
            else if (err)
                fail(std::string("operation: ") + lite_strerror(err));
            ++ops;
        }
    }

    // Takes the pages that have just been freed, most likely.
    void take(std::size_t length) {
        canaries.renew(0, kEvent);
        std::fill_n(canaries.words(), length / 8, kCanary);
    }

    void look(std::size_t length) {
        for (std::size_t i = 0; i < length / 8; ++i) {
            if (canaries.words()[i] != kCanary)
                return fail("a canary is damaged: " + std::to_string(canaries.words()[i]));
        }
    }

    // In a child: its memory stays as it is while its parent's is written. Returns its exit status.
    int watch() {
        ::prctl(PR_SET_PDEATHSIG, SIGKILL);
        std::memcpy(snapshot.data(), anonymous.data(), kSize);
        const auto until = ops + kWatched;
        while (ops < until && !over)
            ::sched_yield();
        return std::memcmp(snapshot.data(), anonymous.data(), kSize) ? 1 : 0;
    }

    void fork_one() {
        const pid_t child = ::fork();
        check_errno(child, "fork");
        if (!child)
            ::_exit(watch());
        int status = 0;
        check_errno(::waitpid(child, &status, 0), "waitpid");
        if (status)
            fail("a child's memory is damaged: " + std::to_string(status));
        ++children;
    }

    void event(std::mt19937& random) {
        const std::size_t length = (random() % 16 + 1) * kPage;
        const std::size_t at = random() % ((kSize - length) / kPage) * kPage;
        // Each kind at least once.
        const bool first = events < kKinds;
        switch (first ? events : random() % kKinds) {
            case 0:
                ::munmap(anonymous.data() + at, length);
                take(length);
                anonymous.renew(at, length);
                break;
            case 1:
                anonymous.renew(at, length);
                take(length);
                break;
            case 2:
            case 3:
                ::madvise(anonymous.data() + at, length, MADV_DONTNEED);
                take(length);
                break;
            case 4:
                if (first || !(random() % 8))
                    fork_one();
                take(length);
                break;
            case 5:
                ::fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(at),
                            static_cast<off_t>(length));
                take(length);
                break;
            case 6:
                ::madvise((random() % 2 ? anonymous : file).data() + at, length, MADV_PAGEOUT);
                take(length);
                break;
            case 7:
                if (has_node(1))
                    migrated += migrate((random() % 2 ? anonymous : file).data() + at, length,
                                        static_cast<int>(random() % 2));
                take(length);
                break;
            default:
                ::mprotect(anonymous.data() + at, length, PROT_READ);
                ::mprotect(anonymous.data() + at, length, PROT_READ | PROT_WRITE);
                take(length);
        }
        look(length);
        ++events;
    }
};

}  // namespace

// unpinned flood OWNER USER EVENTS THREADS SEED
int flood(int argc, char** argv) {
    if (argc < 7)
        return 2;
    Flood f(std::stoi(argv[2]), std::stoi(argv[3]));
    const auto events = std::stoull(argv[4]);
    std::mt19937 random(static_cast<unsigned>(std::stoul(argv[6])));
    f.fd = ::memfd_create("flood", 0);
    check_errno(f.fd, "memfd_create");
    check_errno(::ftruncate(f.fd, kSize), "ftruncate");
    f.file.use_file(f.fd, kSize);
    f.owner.make("flood-anonymous", f.anonymous.data(), kSize);
    f.owner.make("flood-file", f.file.data(), kSize);
    std::vector<std::thread> threads;
    for (unsigned i = 0; i < std::stoul(argv[5]); ++i) {
        threads.emplace_back([&f, i] {
            try {
                f.attack(i);
            } catch (const std::exception& e) {
                f.fail(e.what());
            }
        });
    }
    using std::chrono::steady_clock;
    auto slowest = steady_clock::duration::zero();
    const auto swapped = number_in("/proc/vmstat", "pswpout");
    while (f.events < events && !f.over) {
        const auto begun = steady_clock::now();
        f.event(random);
        slowest = std::max(slowest, steady_clock::now() - begun);
        // Some events find nothing in use; let the others work.
        if (!(f.events % 4))
            std::this_thread::sleep_for(std::chrono::microseconds(300));
    }
    f.over = true;
    for (auto& thread : threads)
        thread.join();
    const auto print = [](const char* what, std::uint64_t n) {
        std::printf("%llu %s\n", static_cast<unsigned long long>(n), what);
    };
    print("events", f.events);
    print("forks", f.children);
    print("pages migrated", f.migrated);
    print("pages swapped out", number_in("/proc/vmstat", "pswpout") - swapped);
    print("operations", f.ops);
    print("EFAULT", f.faults);
    using std::chrono::microseconds;
    print("us in the slowest event",
          static_cast<std::uint64_t>(std::chrono::duration_cast<microseconds>(slowest).count()));
    check(f.trouble.empty(), f.trouble);
    check(f.ops > f.faults, "all operations failed");
    return 0;
}

}  // namespace unpinned
