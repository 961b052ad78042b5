// SPDX-License-Identifier: MIT
// Each way in which a process, or the kernel on its behalf, can change memory that is an unpinned
// LMR: another node sees what the process would see, or gets EFAULT, and nothing else.
#include "memory.hpp"

#include <lite/arena.h>

#include <linux/userfaultfd.h>
#include <sys/wait.h>

#include <array>
#include <cstdio>
#include <fstream>
#include <functional>
#include <map>
#include <vector>

#include <fcntl.h>
#include <sys/syscall.h>

namespace unpinned {
namespace {

constexpr std::size_t kSize = 3 << 20;

std::vector<std::uint64_t> pattern(std::size_t length, std::uint64_t seed) {
    std::vector<std::uint64_t> words(length / 8);
    for (std::size_t i = 0; i < words.size(); ++i)
        words[i] = seed << 32 | (i + 1);
    return words;
}

struct Ways {
    Node owner;
    Node user;
    Range range{kSize};
    lite_lh_t mine = 0;
    lite_lh_t theirs = 0;
    std::uint64_t seed = 0;

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

    void zero(std::size_t offset, std::size_t length, const char* what) {
        for (std::size_t i = 0; i < length; ++i)
            check(range.data()[offset + i] == std::byte{}, std::string(what) + ": not zero");
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
    for (std::size_t i = 0; i < 1 << 20; ++i)
        check(w.range.data()[100 + i] == std::byte{0x5a}, "set in memory");
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
    w.write(0, kSize);
    check(!::munmap(w.range.data() + kPage, 2 * kPage), "munmap");
    check(w.read_error(kPage) == -EFAULT, "munmap: read");
    check(w.write_error(2 * kPage) == -EFAULT, "munmap: write");
    w.same(0, kPage, "munmap: before");
    w.same(3 * kPage, kSize - 3 * kPage, "munmap: behind");
    w.range.renew(kPage, 2 * kPage);
    w.zero(kPage, 2 * kPage, "mapped again");
    w.write(0, kSize);
    w.written(0, kSize, "mapped again");
}

void moved(Ways& w) {
    const Range other(kPage * 4);
    w.write(0, kSize);
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
    w.write(0, kSize);
    check(!::madvise(w.range.data() + kPage, 8 * kPage, MADV_DONTNEED), "madvise");
    w.zero(kPage, 8 * kPage, "MADV_DONTNEED");
    w.same(0, kSize, "MADV_DONTNEED");
    w.write(kPage, 8 * kPage);
    w.written(kPage, 8 * kPage, "after MADV_DONTNEED");
}

void freed(Ways& w) {
    w.write(0, 64 * kPage);
    check(!::madvise(w.range.data(), 64 * kPage, MADV_FREE), "MADV_FREE");
    // A device's writes are not in the page table: they must count all the same.
    w.write(0, 64 * kPage);
    ::madvise(w.range.data(), 64 * kPage, MADV_PAGEOUT);
    w.written(0, 64 * kPage, "MADV_FREE");
    w.same(0, 64 * kPage, "MADV_FREE");
}

void forked(Ways& w) {
    w.write(0, kSize);
    const auto words = pattern(kSize, w.seed);
    std::array<int, 2> go{};
    check_errno(::pipe(go.data()), "pipe");
    const pid_t child = ::fork();
    check_errno(child, "fork");
    if (!child) {
        char c = 0;
        ::close(go[1]);
        (void)!::read(go[0], &c, 1);
        ::_exit(std::memcmp(w.range.data(), words.data(), kSize) ? 1 : 0);
    }
    ::close(go[0]);
    w.write(0, kSize);
    w.written(0, kSize, "fork: the parent's");
    w.range.words()[0] = 1;
    w.same(0, kSize, "fork");
    ::close(go[1]);
    int status = 0;
    ::waitpid(child, &status, 0);
    check(WIFEXITED(status) && !WEXITSTATUS(status), "fork: the child's memory was written");
}

void protected_(Ways& w) {
    w.write(0, kSize);
    check(!::mprotect(w.range.data() + kPage, kPage, PROT_READ), "mprotect");
    check(w.write_error(kPage) == -EFAULT, "read-only: write");
    w.same(0, kSize, "read-only");
    w.write(0, kPage);
    check(!::mprotect(w.range.data() + kPage, kPage, PROT_NONE), "mprotect");
    check(w.read_error(kPage) == -EFAULT, "no access: read");
    check(!::mprotect(w.range.data() + kPage, kPage, PROT_READ | PROT_WRITE), "mprotect");
    w.write(0, kSize);
    w.written(0, kSize, "writable again");
}

void paged_out(Ways& w) {
    w.write(0, kSize);
    ::madvise(w.range.data(), kSize, MADV_PAGEOUT);
    w.same(0, kSize, "paged out");
    ::madvise(w.range.data(), kSize, MADV_PAGEOUT);
    w.written(0, kSize, "paged out again");
    w.write(0, kSize);
    ::madvise(w.range.data(), kSize, MADV_PAGEOUT);
    w.written(0, kSize, "written and paged out");
}

void compacted(Ways& w) {
    w.write(0, kSize);
    std::ofstream("/proc/sys/vm/compact_memory") << "1";
    w.same(0, kSize, "compacted");
    w.write(0, kSize);
    std::ofstream("/proc/sys/vm/compact_memory") << "1";
    w.written(0, kSize, "written and compacted");
}

void huge(Ways& w) {
    ::madvise(w.range.data(), kSize, MADV_HUGEPAGE);
    w.write(0, kSize);
    ::madvise(w.range.data(), kSize, 25 /* MADV_COLLAPSE */);
    w.same(0, kSize, "collapsed");
    w.write(0, kSize);
    check(!::madvise(w.range.data() + 5 * kPage, kPage, MADV_DONTNEED), "madvise");
    w.zero(5 * kPage, kPage, "split");
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
    w.write(0, kSize);
    w.written(0, kSize, "a file");
    check_errno(::fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, kPage, 4 * kPage),
                "punch");
    w.zero(kPage, 4 * kPage, "punched");
    w.same(0, kSize, "punched");
    check_errno(::ftruncate(fd, kPage), "ftruncate");
    check(w.read_error(kPage) == -EFAULT, "cut: read");
    w.same(0, kPage, "cut");
    check_errno(::ftruncate(fd, kSize), "ftruncate");
    w.zero(kPage, kSize - kPage, "grown");
    w.write(0, kSize);
    std::vector<std::uint64_t> got(kSize / 8);
    check(::pread(fd, got.data(), kSize, 0) == static_cast<ssize_t>(kSize), "pread");
    check(got == pattern(kSize, w.seed), "in the file");
    ::madvise(w.range.data(), kSize, MADV_PAGEOUT);
    w.same(0, kSize, "a file, paged out");
    ::close(fd);
}

// A userfaultfd on half of it: what only that can provide is not waited for.
void watched(Ways& w) {
    const int fd = static_cast<int>(::syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK));
    uffdio_api api = {UFFD_API, 0, 0};
    if (fd < 0 || ::ioctl(fd, UFFDIO_API, &api)) {
        std::puts("there is no userfaultfd");
        return;
    }
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
    const int file = ::open("/usr/bin/unpinned", O_RDONLY);
    void* at = ::mmap(nullptr, kPage, PROT_READ, MAP_PRIVATE, file, 0);
    if (file >= 0 && at != MAP_FAILED) {
        const int err = attempt(at, kPage);
        // The root of the machine may be in tmpfs.
        check(err == -EOPNOTSUPP || !err, "a file");
        ::munmap(at, kPage);
    }
    ::close(file);
    const int secret = static_cast<int>(::syscall(447 /* memfd_secret */, 0));
    if (secret >= 0 && !::ftruncate(secret, kPage)) {
        at = ::mmap(nullptr, kPage, PROT_READ | PROT_WRITE, MAP_SHARED, secret, 0);
        check(at == MAP_FAILED || attempt(at, kPage) == -EOPNOTSUPP, "secret memory");
    }
    at = ::mmap(nullptr, 2 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB,
                -1, 0);
    if (at != MAP_FAILED)
        check(attempt(at, 2 << 20) == -EOPNOTSUPP, "hugetlb");
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
        {"huge", huge},           {"memfd", of_file},     {"refused", refused},
        {"watched", watched},
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
