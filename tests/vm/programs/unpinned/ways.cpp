// SPDX-License-Identifier: MIT
// Each way in which a process, or the kernel on its behalf, can change memory that is an unpinned
// LMR: another node sees what the process would see, or gets EFAULT, and nothing else. What cannot
// be done on this kernel says "skipped".
#include "memory.hpp"

#include <lite/arena.h>

#include <linux/userfaultfd.h>
#include <sys/wait.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <functional>
#include <map>
#include <thread>
#include <vector>

namespace unpinned {
namespace {

constexpr std::size_t kHuge = 2 << 20;
constexpr std::size_t kSize = 2 * kHuge;
constexpr std::size_t kSome = 1 << 20;  // of it, where so much will do
constexpr std::uint64_t kFrame = (std::uint64_t{1} << 55) - 1;

void skipped(const char* why) { std::printf("skipped: %s\n", why); }

void set(const char* path, int value) {
    std::ofstream file(path);
    file << value << std::flush;
    check(static_cast<bool>(file), path);
}

// A change of memory that the kernel makes in its own time.
void wait_for(const std::function<bool()>& condition) {
    while (!condition())
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
}

std::vector<std::uint64_t> pattern(std::size_t length, std::uint64_t seed) {
    std::vector<std::uint64_t> words(length / 8);
    for (std::size_t i = 0; i < words.size(); ++i)
        words[i] = seed << 32 | (i + 1);
    return words;
}

bool all_are(const std::byte* at, std::size_t length, std::byte value) {
    return *at == value && !std::memcmp(at, at + 1, length - 1);
}

struct Ways {
    Node owner;
    Node user;
    Range range{kSize};
    lite_lh_t mine = 0;
    lite_lh_t theirs = 0;
    std::uint64_t seed = 0;
    const bool leased = std::getenv("LEASED");

    Ways(int here, int there) : owner(here), user(there) {}

    void begin() {
        mine = owner.make("ways", range.data(), kSize);
        theirs = user.open("ways");
    }

    void end() {
        check(!lite_free(owner.get(), mine), "free");
        lite_unmap(user.get(), theirs);
        range.renew(0, kSize);
    }

    void write(std::size_t offset, std::size_t length) {
        const auto words = pattern(length, ++seed);
        const int err = lite_write(user.get(), theirs, offset, words.data(), length);
        check(!err, std::string("write: ") + lite_strerror(err));
    }

    int read_error(std::size_t offset, std::size_t length = 8) {
        std::vector<std::uint64_t> words(length / 8);
        return lite_read(user.get(), theirs, offset, words.data(), length);
    }

    int write_error(std::size_t offset) {
        const std::uint64_t word = 0xbad;
        return lite_write(user.get(), theirs, offset, &word, 8);
    }

    // What the other node reads is what the process reads.
    void same(std::size_t offset, std::size_t length, const char* what) {
        std::vector<std::uint64_t> words(length / 8);
        const int err = lite_read(user.get(), theirs, offset, words.data(), length);
        check(!err, std::string(what) + ": " + lite_strerror(err));
        check(!std::memcmp(words.data(), range.data() + offset, length),
              std::string(what) + ": another node reads something else");
    }

    // The process has what was written last.
    void written(std::size_t offset, std::size_t length, const char* what) {
        const auto words = pattern(length, seed);
        check(!std::memcmp(words.data(), range.data() + offset, length),
              std::string(what) + ": not what was written");
    }

    // Leased pages stay while their lease lasts; others, while an earlier copy is being written to
    // the swap device.
    void page_out(std::size_t length, const char* what) const {
        const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(60);
        auto stay = unpinned::page_out(range.data(), length);
        while (!leased && stay == length / kPage && std::chrono::steady_clock::now() < until)
            stay = unpinned::page_out(range.data(), length);
        check(leased || stay < length / kPage, std::string(what) + ": no page is swapped out");
    }

    // Of the huge page in it.
    std::byte* huge() const {
        return range.data() +
               (kHuge - reinterpret_cast<std::uintptr_t>(range.data()) % kHuge) % kHuge;
    }

    bool is_huge() const {
        char first[32];
        std::snprintf(first, sizeof(first), "%zx-", reinterpret_cast<std::uintptr_t>(huge()));
        std::ifstream maps("/proc/self/smaps");
        for (std::string line; std::getline(maps, line);) {
            if (line.starts_with(first))
                while (std::getline(maps, line))
                    if (line.starts_with("AnonHugePages:"))
                        return std::stoul(line.substr(14)) == kHuge >> 10;
        }
        throw std::runtime_error("no such mapping");
    }

    void zero(std::size_t offset, std::size_t length, const char* what) {
        check(all_are(range.data() + offset, length, std::byte{}),
              std::string(what) + ": not zero");
        same(offset, length, what);
    }
};

void plain(Ways& w) {
    w.write(0, kSize);
    w.written(0, kSize, "all of it");
    w.same(0, kSize, "all of it");
    w.write(kPage - 24, 48);
    w.written(kPage - 24, 48, "across pages");
    w.write((256 << 10) - 2 * kPage, 4 * kPage);
    w.written((256 << 10) - 2 * kPage, 4 * kPage, "across chunks");
    std::uint64_t old = 0;
    w.range.words()[1] = 5;
    check(!lite_fetch_add(w.user.get(), w.theirs, 8, 6, &old) && old == 5, "fetch-add");
    check(w.range.words()[1] == 11, "fetch-add in memory");
    check(!lite_swap(w.user.get(), w.theirs, 8, 3, &old) && old == 11, "swap");
    check(w.range.words()[1] == 3, "swap in memory");
    check(!lite_fetch_add(w.owner.get(), w.mine, 8, 1, &old) && old == 3, "own fetch-add");
    // Memory operations, across chunks, forwards and backwards.
    const std::uint64_t byte = 0x5a;
    check(!lite_set(w.user.get(), w.theirs, 100, 1 << 20, &byte, 1), "set");
    check(all_are(w.range.data() + 100, 1 << 20, std::byte{0x5a}), "set in memory");
    w.write(0, 1 << 20);
    const auto words = pattern(1 << 20, w.seed);
    for (const std::size_t to : {std::size_t{1} << 20, (std::size_t{512} << 10) + 40}) {
        check(!lite_copy(w.user.get(), w.theirs, to, w.theirs, 0, 1 << 20), "copy");
        check(!std::memcmp(w.range.data() + to, words.data(), 1 << 20), "copy in memory");
    }
    std::uint32_t sum = 0;
    check(!lite_checksum(w.user.get(), w.theirs, 0, 1 << 20, 0, &sum), "checksum");
    // Only whole LMRs can be had in page tables.
    void* at = nullptr;
    check(lite_mmap(w.owner.get(), w.mine, 0, kPage, PROT_READ, 0, &at) == -EOPNOTSUPP, "mmap");
    check(w.read_error(kSize - 4) == -ERANGE, "beyond the end");
}

void unmapped(Ways& w) {
    w.write(0, kSome);
    check(!::munmap(w.range.data() + kPage, 2 * kPage), "munmap");
    check(w.read_error(kPage) == -EFAULT, "munmap: read");
    check(w.write_error(2 * kPage) == -EFAULT, "munmap: write");
    w.same(0, kPage, "munmap: before");
    w.same(3 * kPage, kSome - 3 * kPage, "munmap: behind");
    w.range.renew(kPage, 2 * kPage);
    w.zero(kPage, 2 * kPage, "mapped again");
    w.write(0, kSome);
    w.written(0, kSome, "mapped again");
}

void moved(Ways& w) {
    const Range other(kPage * 4);
    w.write(0, kSome);
    std::vector<std::byte> had(w.range.data(), w.range.data() + 4 * kPage);
    void* at =
        ::mremap(w.range.data(), 4 * kPage, 4 * kPage, MREMAP_MAYMOVE | MREMAP_FIXED, other.data());
    check(at == other.data(), "mremap");
    check(w.read_error(0) == -EFAULT, "mremap: read");
    check(!std::memcmp(at, had.data(), had.size()), "mremap: moved");
    w.range.renew(0, 4 * kPage);
    w.write(0, 4 * kPage);
    check(!std::memcmp(at, had.data(), had.size()), "mremap: written after it has moved");
}

void dropped(Ways& w) {
    w.write(0, kSome);
    check(!::madvise(w.range.data() + kPage, 8 * kPage, MADV_DONTNEED), "madvise");
    w.zero(kPage, 8 * kPage, "MADV_DONTNEED");
    w.same(0, kSome, "MADV_DONTNEED");
    w.write(kPage, 8 * kPage);
    w.written(kPage, 8 * kPage, "after MADV_DONTNEED");
}

void freed(Ways& w) {
    w.write(0, 64 * kPage);
    check(!::madvise(w.range.data(), 64 * kPage, MADV_FREE), "MADV_FREE");
    // A device's writes are not in the page table: they must count all the same.
    w.write(0, 64 * kPage);
    // The kernel finds them written, and is asked again.
    ::madvise(w.range.data(), 64 * kPage, MADV_PAGEOUT);
    w.written(0, 64 * kPage, "MADV_FREE");
    w.page_out(64 * kPage, "MADV_FREE");
    w.written(0, 64 * kPage, "MADV_FREE, paged out");
    w.same(0, 64 * kPage, "MADV_FREE");
}

void forked(Ways& w) {
    w.write(0, kSome);
    const auto words = pattern(kSome, w.seed);
    std::array<int, 2> go{};
    check_errno(::pipe(go.data()), "pipe");
    const pid_t child = ::fork();
    check_errno(child, "fork");
    if (!child) {
        char c = 0;
        ::close(go[1]);
        (void)!::read(go[0], &c, 1);
        ::_exit(std::memcmp(w.range.data(), words.data(), kSome) ? 1 : 0);
    }
    ::close(go[0]);
    w.write(0, kSome);
    w.written(0, kSome, "fork: the parent's");
    w.range.words()[0] = 1;
    w.same(0, kSome, "fork");
    ::close(go[1]);
    int status = 0;
    ::waitpid(child, &status, 0);
    check(WIFEXITED(status) && !WEXITSTATUS(status), "fork: the child's memory was written");
}

void protected_(Ways& w) {
    w.write(0, kSome);
    check(!::mprotect(w.range.data() + kPage, kPage, PROT_READ), "mprotect");
    check(w.write_error(kPage) == -EFAULT, "read-only: write");
    w.same(0, kSome, "read-only");
    w.write(0, kPage);
    check(!::mprotect(w.range.data() + kPage, kPage, PROT_NONE), "mprotect");
    check(w.read_error(kPage) == -EFAULT, "no access: read");
    check(!::mprotect(w.range.data() + kPage, kPage, PROT_READ | PROT_WRITE), "mprotect");
    w.write(0, kSome);
    w.written(0, kSome, "writable again");
}

void paged_out(Ways& w) {
    w.write(0, kSome);
    w.page_out(kSome, "paged out");
    w.same(0, kSome, "paged out");
    w.page_out(kSome, "paged out again");
    w.written(0, kSome, "paged out again");
    w.write(0, kSome);
    w.page_out(kSome, "written and paged out");
    w.written(0, kSome, "written and paged out");
}

// The kernel does it to all memory of the machine, and leaves out leased pages.
void compacted(Ways& w) {
    constexpr std::size_t other = 256 << 20;
    check_errno(::madvise(w.range.data(), kSize, MADV_NOHUGEPAGE), "MADV_NOHUGEPAGE");
    {
        // What is free then is in pieces, between what is written here.
        const Range beside(other);
        check_errno(::madvise(beside.data(), other, MADV_NOHUGEPAGE), "MADV_NOHUGEPAGE");
        for (std::size_t i = 0; i < kSize; i += kPage) {
            for (std::size_t k = 0; k < other / kSize; ++k)
                beside.data()[i * (other / kSize) + k * kPage] = std::byte{1};
            w.range.data()[i] = std::byte{1};
        }
    }
    w.write(0, kSize);
    const auto before = number_in("/proc/vmstat", "pgmigrate_success");
    const auto had = page_table(w.range.data(), kSize);
    set("/proc/sys/vm/compact_memory", 1);
    check(number_in("/proc/vmstat", "pgmigrate_success") > before, "nothing is compacted");
    const auto has = page_table(w.range.data(), kSize);
    std::size_t moved = 0;
    for (std::size_t i = 0; i < had.size(); ++i)
        moved += ((had[i] ^ has[i]) & kFrame) != 0;
    std::printf("%zu of %zu pages moved\n", moved, had.size());
    check(w.leased || moved, "no page of these is compacted");
    w.written(0, kSize, "compacted");
    w.same(0, kSize, "compacted");
}

void migrated(Ways& w) {
    if (!has_node(1))
        return skipped("no second NUMA node");
    check_errno(::madvise(w.range.data(), kSome, MADV_NOHUGEPAGE), "MADV_NOHUGEPAGE");
    for (const int node : {1, 0, 1}) {
        w.write(0, kSome);
        // The kernel passes pages over that it has in hand just then, and needs memory there.
        wait_for([&] { return migrate(w.range.data(), kSome, node) == kSome / kPage; });
        w.written(0, kSome, "migrated");
        w.same(0, kSome, "migrated");
    }
}

// Pages with the same contents become one, until one of them is written.
void merged(Ways& w) {
    constexpr std::size_t n = 32;
    if (::access("/sys/kernel/mm/ksm/run", W_OK))
        return skipped("no KSM");
    std::vector<std::uint64_t> words = pattern(kPage, ++w.seed), all;
    for (std::size_t i = 0; i < n; ++i)
        all.insert(all.end(), words.begin(), words.end());
    check(!lite_write(w.user.get(), w.theirs, 0, all.data(), n * kPage), "write");
    check_errno(::madvise(w.range.data(), n * kPage, MADV_MERGEABLE), "MADV_MERGEABLE");
    set("/sys/kernel/mm/ksm/pages_to_scan", 1000);
    set("/sys/kernel/mm/ksm/run", 1);
    wait_for([&] {
        const auto pages = page_table(w.range.data(), n * kPage);
        return std::ranges::all_of(pages,
                                   [&](auto page) { return page >> 63 && page == pages[0]; });
    });
    check(number_in("/sys/kernel/mm/ksm/pages_shared"), "pages_shared");
    w.same(0, n * kPage, "merged");
    w.write(0, kPage);
    w.written(0, kPage, "merged and written");
    check(!std::memcmp(w.range.data() + kPage, all.data(), (n - 1) * kPage), "others were written");
    w.same(0, n * kPage, "merged and written");
    // 2: no page is merged any more.
    set("/sys/kernel/mm/ksm/run", 2);
    check(!number_in("/sys/kernel/mm/ksm/pages_shared"), "pages_shared, unmerged");
    w.same(0, n * kPage, "unmerged");
    set("/sys/kernel/mm/ksm/run", 0);
}

void huge(Ways& w) {
    const auto at = static_cast<std::size_t>(w.huge() - w.range.data());
    check_errno(::madvise(w.huge(), kHuge, MADV_NOHUGEPAGE), "MADV_NOHUGEPAGE");
    w.write(0, kSize);
    check(!w.is_huge(), "a huge page, not asked for");
    check_errno(::madvise(w.huge(), kHuge, MADV_HUGEPAGE), "MADV_HUGEPAGE");
    // Of leased pages none is made.
    const int err = ::madvise(w.huge(), kHuge, 25 /* MADV_COLLAPSE */);
    check(w.leased || (!err && w.is_huge()), "MADV_COLLAPSE");
    w.same(0, kSize, "collapsed");
    w.write(0, kSize);
    w.written(0, kSize, "collapsed");
    // Or made by a fault, where there is no page table.
    w.range.renew(at, kHuge);
    check_errno(::madvise(w.huge(), kHuge, MADV_HUGEPAGE), "MADV_HUGEPAGE");
    w.write(0, kSize);
    check(w.is_huge(), "no huge page");
    w.written(0, kSize, "huge");
    check(!::madvise(w.huge() + 5 * kPage, kPage, MADV_DONTNEED), "madvise");
    check(!w.is_huge(), "not split");
    w.zero(at + 5 * kPage, kPage, "split");
    w.same(0, kSize, "split");
    w.write(0, kSize);
    w.written(0, kSize, "split");
}

void of_file(Ways& w) {
    const int fd = ::memfd_create("unpinned", 0);
    check_errno(fd, "memfd_create");
    check_errno(::ftruncate(fd, kSize), "ftruncate");
    w.end();
    w.range.use_file(fd, kSize);
    w.begin();
    w.write(0, kSome);
    w.written(0, kSome, "a file");
    check_errno(::fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, kPage, 4 * kPage),
                "punch");
    w.zero(kPage, 4 * kPage, "punched");
    w.same(0, kSome, "punched");
    check_errno(::ftruncate(fd, kPage), "ftruncate");
    check(w.read_error(kPage) == -EFAULT, "cut: read");
    w.same(0, kPage, "cut");
    check_errno(::ftruncate(fd, kSize), "ftruncate");
    w.zero(kPage, kSome - kPage, "grown");
    w.write(0, kSome);
    std::vector<std::uint64_t> got(kSome / 8);
    check(::pread(fd, got.data(), kSome, 0) == static_cast<ssize_t>(kSome), "pread");
    check(got == pattern(kSome, w.seed), "in the file");
    w.page_out(kSome, "a file, paged out");
    w.same(0, kSome, "a file, paged out");
    ::close(fd);
}

// Anonymous memory that keeps its file, an inode which the kernel has marked in /dev.
void of_zero(Ways& w) {
    const int zero = ::open("/dev/zero", O_RDWR);
    check_errno(zero, "/dev/zero");
    void* const at =
        ::mmap(w.range.data(), kSize, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_FIXED, zero, 0);
    check(at != MAP_FAILED, "mmap of /dev/zero");
    ::close(zero);
    w.same(0, kPage, "/dev/zero");
    w.write(kPage, kPage);
    w.written(kPage, kPage, "/dev/zero");
}

// A userfaultfd on half of it: what only that can provide is not waited for.
void watched(Ways& w) {
    const int fd = static_cast<int>(::syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK));
    if (fd < 0 && errno == ENOSYS)
        return skipped("no userfaultfd");
    check_errno(fd, "userfaultfd");
    uffdio_api api = {UFFD_API, 0, 0};
    check_errno(::ioctl(fd, UFFDIO_API, &api), "UFFDIO_API");
    uffdio_register what = {};
    what.range = {reinterpret_cast<std::uintptr_t>(w.range.data()), kSize / 2};
    what.mode = UFFDIO_REGISTER_MODE_MISSING;
    check_errno(::ioctl(fd, UFFDIO_REGISTER, &what), "UFFDIO_REGISTER");
    check(w.read_error(0) == -EFAULT && w.write_error(kPage) == -EFAULT, "a page that is missing");
    w.write(kSize / 2, kSize / 2);
    w.written(kSize / 2, kSize / 2, "not watched");
    ::close(fd);
    w.zero(0, kPage, "not watched any more");
}

void refused(Ways& w) {
    lite_lh_t lh = 0;
    const auto attempt = [&](void* at, std::size_t n) {
        const int err = w.owner.try_register("", at, n, LITE_REGISTER_UNPINNED, &lh);
        if (!err)
            lite_free(w.owner.get(), lh);
        return err;
    };
    check(attempt(w.range.data(), kSize) == -EEXIST, "a second time");
    check(w.owner.try_register("", w.range.data(), kSize, 1U << 31, &lh) == -EOPNOTSUPP, "flags");
    check(w.owner.try_register("", w.range.data(), kPage, LITE_REGISTER_LEASED, &lh) == -EINVAL,
          "leased alone");
    check(attempt(w.range.data() + 1, kPage) == -EINVAL, "not pages");
    Range hole(3 * kPage);
    ::munmap(hole.data() + kPage, kPage);
    check(attempt(hole.data(), 3 * kPage) == -EFAULT, "a hole");
    // In 9p, and in tmpfs, of which the root of the machine is.
    const auto of_file = [&](int file, std::size_t n, int flags) {
        void* const at = ::mmap(nullptr, n, PROT_READ, flags, file, 0);
        check(at != MAP_FAILED, "mmap of a file");
        const int err = attempt(at, n);
        ::munmap(at, n);
        ::close(file);
        return err;
    };
    check(of_file(::open("/lite/Makefile", O_RDONLY), kPage, MAP_PRIVATE) == -EOPNOTSUPP, "a file");
    check(!of_file(::open("/usr/bin/unpinned", O_RDONLY), kPage, MAP_PRIVATE), "a file in tmpfs");
    const int secret = static_cast<int>(::syscall(447 /* memfd_secret */, 0));
    if (secret < 0 && errno == ENOSYS) {
        skipped("no memfd_secret");
    } else {
        check_errno(secret, "memfd_secret");
        check_errno(::ftruncate(secret, kPage), "ftruncate");
        check(of_file(secret, kPage, MAP_SHARED) == -EOPNOTSUPP, "secret memory");
    }
    constexpr auto huge_pages = "/proc/sys/vm/nr_hugepages";
    set(huge_pages, 1);
    check(number_in(huge_pages) == 1, "no memory for a huge page");
    check(of_file(-1, kHuge, MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB) == -EOPNOTSUPP, "hugetlb");
    set(huge_pages, 0);
    void* at = nullptr;
    lite_alloc_params params = {};
    params.size = sizeof(params);
    params.length = kPage;
    lite_lh_t lmr = 0;
    check(!lite_alloc(w.owner.get(), &params, &lmr), "alloc");
    check(!lite_mmap(w.owner.get(), lmr, 0, kPage, PROT_READ | PROT_WRITE, 0, &at), "mmap");
    check(attempt(at, kPage) == -EOPNOTSUPP, "an LMR");
    ::munmap(at, kPage);
    lite_free(w.owner.get(), lmr);
    check(!lite_arena_mmap(w.owner.get(), 2 << 20, 0, &at), "arena");
    check(attempt(at, kPage) == -EOPNOTSUPP, "an arena");
    check(!w.owner.try_register("", at, kPage, 0, &lh) && !lite_free(w.owner.get(), lh),
          "an arena, pinned");
    ::munmap(at, 2 << 20);
}

}  // namespace

// unpinned ways OWNER USER [WAY...]: indexes of nodes of this machine
int ways(int argc, char** argv) {
    const std::map<std::string, std::function<void(Ways&)>> all = {
        {"plain", plain},         {"munmap", unmapped},   {"mremap", moved},
        {"dontneed", dropped},    {"free", freed},        {"fork", forked},
        {"mprotect", protected_}, {"pageout", paged_out}, {"compact", compacted},
        {"huge", huge},           {"memfd", of_file},     {"zero", of_zero},
        {"refused", refused},     {"watched", watched},   {"migrate", migrated},
        {"merge", merged},
    };
    if (argc < 4)
        return 2;
    Ways w(std::stoi(argv[2]), std::stoi(argv[3]));
    for (const auto& [name, way] : all) {
        bool wanted = argc == 4;
        for (int i = 4; i < argc; ++i)
            wanted |= name == argv[i];
        if (!wanted)
            continue;
        std::printf("%s\n", name.c_str());
        std::fflush(stdout);
        w.begin();
        try {
            way(w);
        } catch (const std::exception& e) {
            throw std::runtime_error(name + ": " + e.what());
        }
        w.end();
    }
    return 0;
}

}  // namespace unpinned
