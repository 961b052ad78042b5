// SPDX-License-Identifier: MIT
// Shared by the tests of files: directories on several file systems, files in them, and calls that
// move bytes between a file and an LMR.
//
//   LITE_TEST_DIRS  directories, separated by colons; default /tmp
#pragma once

#include "../common/catch.hpp"
#include "../common/data/pattern.hpp"
#include "../common/env.hpp"
#include "../common/memory.hpp"
#include "../common/process.hpp"
#include "../common/raw.hpp"

#include <uapi/lite_file.h>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <span>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

namespace lite_test {

// In place of a directory: files of memfd_create(2).
inline constexpr const char* kMemfd = "memfd";

inline std::vector<std::string> directories() {
    const char* given = std::getenv("LITE_TEST_DIRS");
    std::istringstream words(given ? given : "/tmp");
    std::vector<std::string> all{kMemfd};
    for (std::string word; std::getline(words, word, ':');)
        all.push_back(word);
    return all;
}

class File {
  public:
    explicit File(int fd) : fd_(fd) {}
    File(const std::string& path, int flags) : File(::open(path.c_str(), flags | O_CLOEXEC, 0600)) {
        if (fd_ < 0)
            throw Failure(path + ": " + ::strerrorname_np(errno));
    }
    File(File&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
    File& operator=(File&&) = delete;
    ~File() {
        if (fd_ >= 0)
            ::close(fd_);
    }

    int fd() const { return fd_; }

    std::uint64_t size() const {
        struct stat status {};
        expect_equal(::fstat(fd_, &status), 0, "fstat");
        return static_cast<std::uint64_t>(status.st_size);
    }

    void write(std::uint64_t offset, std::span<const std::byte> from) const {
        expect_equal(::pwrite(fd_, from.data(), from.size(), static_cast<off_t>(offset)),
                     static_cast<ssize_t>(from.size()), "pwrite");
    }

    std::vector<std::byte> read(std::uint64_t offset, std::size_t length) const {
        std::vector<std::byte> bytes(length);
        expect_equal(::pread(fd_, bytes.data(), length, static_cast<off_t>(offset)),
                     static_cast<ssize_t>(length), "pread");
        return bytes;
    }

    void resize(std::uint64_t length) const {
        expect_equal(::ftruncate(fd_, static_cast<off_t>(length)), 0, "ftruncate");
    }

  private:
    int fd_;
};

// A new file that is gone when it is closed.
inline File make_file(const std::string& directory, int flags = O_RDWR) {
    if (directory == kMemfd)
        return File(::memfd_create("file", MFD_CLOEXEC | MFD_ALLOW_SEALING));
    const auto path = directory + "/" + unique_name("file");
    File file(path, flags | O_CREAT);
    ::unlink(path.c_str());
    return file;
}

// Another open file of the same file.
inline File open_again(const File& file, int flags) {
    return {"/proc/self/fd/" + std::to_string(file.fd()), flags};
}

// Is no page of the file referenced by anyone but the page cache? Only of a memfd, which is sealed
// by this, and of files that can be evicted.
inline bool is_released(const File& file) {
    if (::fcntl(file.fd(), F_GET_SEALS) == 0)
        return ::fcntl(file.fd(), F_ADD_SEALS, F_SEAL_WRITE) == 0;
    ::fsync(file.fd());
    ::posix_fadvise(file.fd(), 0, 0, POSIX_FADV_DONTNEED);
    const Mapping mapped(file.size(), file.fd(), MAP_SHARED);
    std::vector<unsigned char> resident(mapped.size() / kPage);
    expect_equal(::mincore(mapped.data(), mapped.size(), resident.data()), 0, "mincore");
    return std::count_if(resident.begin(), resident.end(), [](auto c) { return c & 1; }) == 0;
}

// What the page cache can let go of a file. (drop_caches would go through all files of the
// machine.)
inline void evict(const File& file) { ::posix_fadvise(file.fd(), 0, 0, POSIX_FADV_DONTNEED); }

struct Moved {
    Errno error;
    std::uint64_t bytes;
    std::uint64_t end;  // the offset in the file afterwards
};

inline lite_ioc_file file_args(std::uint64_t lh, std::uint64_t offset, int fd,
                               std::uint64_t file_offset, std::uint64_t length) {
    lite_ioc_file args{};
    args.size = sizeof(args);
    args.lh = lh;
    args.offset = offset;
    args.fd = fd;
    args.file_offset = file_offset;
    args.length = length;
    return args;
}

inline Moved move(const Device& dev, unsigned long request, lite_ioc_file args) {
    args.moved = ~0ULL;
    const Errno e = dev.call(request, &args);
    return {e, args.moved, args.file_offset};
}

inline Moved send(const Device& dev, std::uint64_t lh, std::uint64_t offset, const File& file,
                  std::uint64_t file_offset, std::uint64_t length) {
    return move(dev, LITE_IOC_SENDFILE, file_args(lh, offset, file.fd(), file_offset, length));
}

inline Moved receive(const Device& dev, std::uint64_t lh, std::uint64_t offset, const File& file,
                     std::uint64_t file_offset, std::uint64_t length) {
    return move(dev, LITE_IOC_RECVFILE, file_args(lh, offset, file.fd(), file_offset, length));
}

inline std::vector<std::byte> read_lmr(const Device& dev, std::uint64_t lh, std::uint64_t offset,
                                       std::size_t length) {
    std::vector<std::byte> bytes(length);
    if (length)
        dev.read(lh, offset, bytes);
    return bytes;
}

inline constexpr std::uint64_t kAll = ~0ULL;

struct Files {
    Device dev{env().indexes.front()};
};

// On every file system.
struct FilesEverywhere : Files {
    std::string directory = GENERATE(from_range(directories()));
};

}  // namespace lite_test
