// SPDX-License-Identifier: MIT
// Unpinned LMRs of a test, and what a process can do to its memory.
#pragma once

#include <lite/lite.h>

#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <stdexcept>
#include <string>
#include <system_error>
#include <vector>

#include <fcntl.h>
#include <sys/syscall.h>

namespace unpinned {

inline constexpr std::size_t kPage = 4096;

inline void check(bool good, const std::string& what) {
    if (!good)
        throw std::runtime_error(what);
}

inline void check_errno(long ret, const std::string& what) {
    if (ret == -1)
        throw std::system_error(errno, std::generic_category(), what);
}

// For lite_register_with(); LEASED in the environment: with leases.
inline std::uint32_t flags() {
    return LITE_REGISTER_UNPINNED | (std::getenv("LEASED") ? LITE_REGISTER_LEASED : 0);
}

// A user of one node.
class Node {
  public:
    explicit Node(int index) {
        const int err = lite_open(index, &ctx_);
        check(!err, "open node " + std::to_string(index) + ": " + lite_strerror(err));
    }
    ~Node() { lite_close(ctx_); }
    Node(const Node&) = delete;
    Node& operator=(const Node&) = delete;

    lite_ctx* get() const { return ctx_; }

    // 0 or a negative errno; past the library, which has tests of its own.
    int try_register(const char* name, void* addr, std::size_t length, std::uint32_t flags,
                     lite_lh_t* lh) const {
        lite_ioc_register arg = {};
        arg.size = sizeof(arg);
        arg.flags = flags;
        arg.addr = reinterpret_cast<std::uintptr_t>(addr);
        arg.length = length;
        arg.mode = 0666;
        std::strncpy(arg.name, name, sizeof(arg.name) - 1);
        if (::ioctl(lite_fd(ctx_), LITE_IOC_REGISTER, &arg))
            return -errno;
        *lh = arg.lh;
        return 0;
    }

    lite_lh_t make(const char* name, void* addr, std::size_t length) const {
        lite_lh_t lh = 0;
        const int err = try_register(name, addr, length, flags(), &lh);
        check(!err, std::string("register ") + name + ": " + lite_strerror(err));
        return lh;
    }

    lite_lh_t open(const char* name) const {
        lite_lh_t lh = 0;
        const int err = lite_map(ctx_, name, LITE_RIGHT_READ | LITE_RIGHT_WRITE | LITE_RIGHT_ATOMIC,
                                 &lh, nullptr);
        check(!err, std::string("map ") + name + ": " + lite_strerror(err));
        return lh;
    }

  private:
    lite_ctx* ctx_ = nullptr;
};

// Address space that stays this process's: what is cut out of it is not used by anything else.
class Range {
  public:
    explicit Range(std::size_t size, std::size_t align = kPage) : size_(size) {
        const std::size_t more = align - kPage;
        void* at = ::mmap(nullptr, size + more, PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        check(at != MAP_FAILED, "mmap");
        const std::size_t before = (align - reinterpret_cast<std::uintptr_t>(at) % align) % align;
        data_ = static_cast<std::byte*>(at) + before;
        if (before)
            ::munmap(at, before);
        if (before < more)
            ::munmap(data_ + size, more - before);
    }
    ~Range() { ::munmap(data_, size_); }
    Range(const Range&) = delete;
    Range& operator=(const Range&) = delete;

    std::byte* data() const { return data_; }
    std::size_t size() const { return size_; }
    std::uint64_t* words() const { return reinterpret_cast<std::uint64_t*>(data_); }

    // Fresh anonymous memory instead of a part.
    void renew(std::size_t offset, std::size_t length) const {
        void* at = ::mmap(data_ + offset, length, PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
        check(at == data_ + offset, "mmap over a part");
    }

    void use_file(int fd, std::size_t length) const {
        void* at = ::mmap(data_, length, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0);
        check(at == data_, "mmap of a file");
    }

  private:
    std::byte* data_ = nullptr;
    std::size_t size_;
};

// Entries of /proc/self/pagemap: bit 63 is set of a page that is in the page table, with its frame
// in the lower 55.
inline std::vector<std::uint64_t> page_table(const std::byte* at, std::size_t length) {
    std::vector<std::uint64_t> entries(length / kPage);
    const auto size = static_cast<ssize_t>(entries.size() * 8);
    const auto page = reinterpret_cast<std::uintptr_t>(at) / kPage;
    const int fd = ::open("/proc/self/pagemap", O_RDONLY);
    check(::pread(fd, entries.data(), entries.size() * 8, static_cast<off_t>(page * 8)) == size,
          "pagemap");
    ::close(fd);
    return entries;
}

// Asks the kernel to swap pages out. Returns how many stay in the process's page table.
inline std::size_t page_out(std::byte* at, std::size_t length) {
    check_errno(::madvise(at, length, MADV_PAGEOUT), "MADV_PAGEOUT");
    const auto pages = page_table(at, length);
    return static_cast<std::size_t>(
        std::ranges::count_if(pages, [](auto page) { return page >> 63; }));
}

// The number in a file, or the one after a word there.
inline std::uint64_t number_in(const char* path, const std::string& before = "") {
    std::ifstream file(path);
    std::string word;
    while (!before.empty() && file >> word && word != before)
        ;
    std::uint64_t value = 0;
    check(static_cast<bool>(file >> value), std::string(path) + ": no " + before);
    return value;
}

inline long long resident_kb() {
    return static_cast<long long>(number_in("/proc/self/status", "VmRSS:"));
}

inline bool has_node(int node) {
    return !::access(("/sys/devices/system/node/node" + std::to_string(node)).c_str(), F_OK);
}

// Moves pages to a NUMA node. Returns how many are there then.
inline std::size_t migrate(std::byte* at, std::size_t length, int node) {
    const std::size_t n = length / kPage;
    std::vector<void*> pages;
    for (std::size_t i = 0; i < n; ++i) {
        // NUMA balancing hides pages until they are used, also from move_pages(2).
        static_cast<void>(*static_cast<volatile std::byte*>(at + i * kPage));
        pages.push_back(at + i * kPage);
    }
    const std::vector<int> nodes(n, node);
    std::vector<int> status(n, -1);
    const auto move_pages = [&](const int* to) {
        // 2: MPOL_MF_MOVE
        check(::syscall(SYS_move_pages, 0, n, pages.data(), to, status.data(), 2) >= 0,
              "move_pages");
    };
    move_pages(nodes.data());
    move_pages(nullptr);  // where are they?
    return static_cast<std::size_t>(std::ranges::count(status, node));
}

int alloc(int argc, char** argv);
int costs(int argc, char** argv);
int native(int argc, char** argv);
int writes(int argc, char** argv);
int ways(int argc, char** argv);
int flood(int argc, char** argv);
int operations(int argc, char** argv);
int shake(int argc, char** argv);

}  // namespace unpinned
