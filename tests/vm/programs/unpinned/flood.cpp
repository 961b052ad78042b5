// SPDX-License-Identifier: MIT
// A process changes its memory without a break while other nodes read and write it: what they
// write must never reach pages that the process no longer has there, nor do they ever read such a
// page.
//
// All they write is marked as theirs; the pages that the process has let go are taken at once for
// canaries, which must stay until the next event. So a marked word among canaries, or a canary that
// was read, is a page that a node could still reach. Pages that the process has moved elsewhere
// become canaries there. Where it has let go of memory, the nodes read zeroes, what they have
// written since, or, after MADV_FREE, also what they had written before: nothing in which a canary
// could hide.
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

constexpr unsigned kKinds = 13;         // of events
constexpr std::uint64_t kWatched = 50;  // operations in the life of a child
constexpr std::uint64_t kBetween = 10;  // operations until memory is in use again, about
constexpr int kTries = 100;             // of what the kernel does not do if others are in its way
constexpr int kCollapse = 25;           // MADV_COLLAPSE

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

std::uint64_t lazily_freed() { return number_in("/proc/vmstat", "pglazyfreed"); }

void allow_huge(bool allow) {
    check_errno(::prctl(PR_SET_THP_DISABLE, allow ? 0 : 1, 0, 0, 0), "PR_SET_THP_DISABLE");
}

struct Flood {
    Node owner;
    int there;
    Range anonymous{kSize, kSize};  // one huge page, if the kernel is asked for it
    Range file{kSize};
    Range canaries{kEvent};
    std::size_t taken = 0;  // bytes of canaries
    std::vector<std::byte> snapshot = std::vector<std::byte>(kSize);
    int fd = -1;
    std::uint64_t events = 0;
    std::uint64_t children = 0;
    std::uint64_t migrated = 0;
    std::uint64_t huge = 0;
    const bool leased = flags() & LITE_REGISTER_LEASED;
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

    // Lets the canaries of the last event go before pages are freed: in the reverse order, the next
    // canaries would get these pages again, and not those of the event.
    void let_go() {
        look();
        canaries.renew(0, kEvent);
        taken = 0;
    }

    // Takes the pages that have just been freed, most likely.
    void take(std::size_t length) {
        taken = length;
        std::fill_n(canaries.words(), length / 8, kCanary);
    }

    void look() {
        for (std::size_t i = 0; i < taken / 8; ++i) {
            if (canaries.words()[i] != kCanary)
                return fail("a canary is damaged: " + std::to_string(canaries.words()[i]));
        }
    }

    // Writes to all pages of a part. A word of zeroes stays one, a marked word stays marked,
    // whatever becomes of it meanwhile.
    void touch(std::size_t at, std::size_t length) const {
        for (std::size_t i = 0; i < length; i += kPage)
            *static_cast<volatile std::byte*>(anonymous.data() + at + i) = std::byte{};
    }

    // Until the nodes have gone on for a while.
    void await_use() const {
        const auto until = ops + kBetween;
        while (ops < until && !over)
            ::sched_yield();
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
        // What was left to MADV_FREE may become zeroes in a child, too: it is not left any more.
        touch(0, kSize);
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

    bool try_move(std::size_t at, std::size_t from, std::size_t length, int flags) const {
        void* const to = canaries.data() + from;
        return ::mremap(anonymous.data() + at + from, length, length, flags, to) == to;
    }

    // The pages themselves become canaries. @stays: the process has other memory in their place at
    // once, and not only later.
    void move(std::size_t at, std::size_t length, bool stays) {
        const int flags = MREMAP_MAYMOVE | MREMAP_FIXED | (stays ? MREMAP_DONTUNMAP : 0);
        if (!try_move(at, 0, length, flags)) {
            // The part consists of several mappings; what was at the target is gone.
            canaries.renew(0, kEvent);
            for (std::size_t i = 0; i < length; i += kPage)
                check_errno(try_move(at, i, kPage, flags) ? 0 : -1, "mremap");
        }
        take(length);
        if (!stays)
            anonymous.renew(at, length);
    }

    // From now on the kernel may free these pages: until one is written, it has what it had or
    // zeroes.
    // @now: ask the kernel to do it.
    void free_lazily(std::size_t at, std::size_t length, bool now) {
        // Of pages that are not there it makes no use.
        touch(at, length);
        check_errno(::madvise(anonymous.data() + at, length, MADV_FREE), "MADV_FREE");
        if (now)
            ::madvise(anonymous.data() + at, length, MADV_PAGEOUT);
        take(std::min(length, kEvent));
    }

    // Until the kernel has freed one. Some may have been written by a node in between, and others
    // be in lists of the kernel, but hardly all of them each time.
    void free_one_lazily() {
        const auto freed = lazily_freed();
        for (int i = 0; i < kTries && !over; ++i) {
            free_lazily(0, kSize, true);
            if (lazily_freed() > freed)
                return;
            await_use();
        }
        fail("MADV_FREE frees nothing");
    }

    // Has the kernel put a huge page in the place of all the anonymous memory, while that is in
    // use?
    bool collapse() const {
        // One mapping: for several, the kernel makes none, and calls that a success.
        anonymous.renew(0, kSize);
        touch(0, kSize);
        await_use();
        // There is a page table now, so no fault makes a huge page.
        allow_huge(true);
        const bool made = !::madvise(anonymous.data(), kSize, kCollapse);
        allow_huge(false);
        return made;
    }

    // Makes a huge page, and splits it. Nothing of it stays: if it has not been split, its pages
    // are freed only all at once, and later events would leave none to canaries. @must: until there
    // is one; while others are at work the kernel may fail.
    void make_huge(std::size_t at, std::size_t length, bool must) {
        int tries = 1;
        bool made = collapse();
        for (; !made && must && tries < kTries && !over; ++tries)
            made = collapse();
        if (!made && must)
            return fail("MADV_COLLAPSE makes no huge page");
        huge += made;
        take(kEvent);
        await_use();
        look();
        ::madvise(anonymous.data() + at, length, MADV_PAGEOUT);
        await_use();
        anonymous.renew(0, kSize);
    }

    void event(std::mt19937& random) {
        const std::size_t length = (random() % 16 + 1) * kPage;
        const std::size_t at = random() % ((kSize - length) / kPage) * kPage;
        // Each kind at least once.
        const bool first = events < kKinds;
        let_go();
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
                // A fork takes as long as many others. Pages of a file stay in the file.
                if (first || !(random() % 8))
                    fork_one();
                else
                    ::madvise(file.data() + at, length, MADV_DONTNEED);
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
            case 8:
                move(at, length, random() % 2 == 0);
                break;
            case 9:
                if (first && !leased)
                    free_one_lazily();
                else
                    free_lazily(at, length, random() % 2 == 0);
                break;
            case 10:
                // This process does not touch it before it is whole again.
                check_errno(::ftruncate(fd, static_cast<off_t>(at)), "ftruncate");
                take(std::min(kEvent, kSize - at));
                check_errno(::ftruncate(fd, kSize), "ftruncate");
                break;
            case 11:
                // A huge page, too, takes as long as many others.
                if (first || !(random() % 8))
                    make_huge(at, length, first && !leased);
                else
                    free_lazily(at, length, random() % 2 == 0);
                break;
            default:
                ::mprotect(anonymous.data() + at, length, PROT_READ);
                ::mprotect(anonymous.data() + at, length, PROT_READ | PROT_WRITE);
                take(length);
        }
        look();
        ++events;
    }
};

}  // namespace

// unpinned flood OWNER USER EVENTS THREADS SEED
int flood(int argc, char** argv) {
    if (argc < 7)
        return 2;
    allow_huge(false);
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
    const auto freed = lazily_freed();
    while (f.events < events && !f.over) {
        const auto begun = steady_clock::now();
        f.event(random);
        slowest = std::max(slowest, steady_clock::now() - begun);
        // Some events find nothing in use; let the others work.
        if (!(f.events % 4))
            std::this_thread::sleep_for(std::chrono::microseconds(300));
    }
    f.look();
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
    print("pages freed lazily", lazily_freed() - freed);
    print("huge pages made", f.huge);
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
