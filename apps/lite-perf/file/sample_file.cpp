// SPDX-License-Identifier: MIT
#include "sample_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <random>
#include <stdexcept>
#include <vector>

namespace perf {

namespace {

constexpr std::size_t chunk = 1 << 20;
constexpr std::uint64_t page = 4096;

/// Repeats a system call that may move less than asked, until all is moved.
template <typename Bytes, typename Call>
void move_all(std::span<Bytes> data, std::uint64_t offset, const char* what, Call&& call) {
    while (!data.empty()) {
        const ssize_t moved = call(data.data(), data.size(), static_cast<off_t>(offset));
        if (moved < 0 && errno == EINTR)
            continue;
        if (moved < 0)
            throw_errno(what);
        if (moved == 0)
            throw std::runtime_error(fmt::format("{}: the file ends too early", what));
        data = data.subspan(static_cast<std::size_t>(moved));
        offset += static_cast<std::uint64_t>(moved);
    }
}

Fd make_nameless(const std::string& directory) {
    std::string name = directory + "/lite-perf-XXXXXX";
    Fd fd(mkostemp(name.data(), O_CLOEXEC));
    if (fd.get() < 0 || unlink(name.c_str()))
        throw_errno(fmt::format("a file in {}", directory));
    return fd;
}

bool is_cached(int fd, std::uint64_t bytes) {
    void* mapped = mmap(nullptr, bytes, PROT_READ, MAP_SHARED, fd, 0);
    if (mapped == MAP_FAILED)
        throw_errno("mmap");
    std::vector<unsigned char> present((bytes + page - 1) / page);
    const int error = mincore(mapped, bytes, present.data());
    munmap(mapped, bytes);
    if (error)
        throw_errno("mincore");
    return std::ranges::any_of(present, [](unsigned char flags) { return flags & 1; });
}

}  // namespace

void read_at(int fd, std::span<std::byte> data, std::uint64_t offset) {
    move_all(data, offset, "read a file",
             [fd](void* to, std::size_t n, off_t at) { return pread(fd, to, n, at); });
}

void write_at(int fd, std::span<const std::byte> data, std::uint64_t offset) {
    move_all(data, offset, "write a file",
             [fd](const void* from, std::size_t n, off_t at) { return pwrite(fd, from, n, at); });
}

SampleFile::SampleFile(const std::string& directory, std::uint64_t bytes)
    : directory_(directory), bytes_(bytes), fd_(make_nameless(directory)) {
    std::mt19937_64 random(std::random_device{}());
    std::vector<std::byte> data(chunk);
    for (std::uint64_t done = 0; done < bytes; done += chunk) {
        for (std::size_t i = 0; i < chunk; i += sizeof(std::uint64_t)) {
            const std::uint64_t word = random();
            std::memcpy(&data[i], &word, sizeof word);
        }
        write_at(fd(), std::span(data).first(std::min<std::uint64_t>(chunk, bytes - done)), done);
    }
    if (fsync(fd()))
        throw_errno("fsync");
}

void SampleFile::drop() const {
    if (fsync(fd()))
        throw_errno("fsync");
    const int error = posix_fadvise(fd(), 0, 0, POSIX_FADV_DONTNEED);
    if (error) {
        errno = error;
        throw_errno("posix_fadvise");
    }
    if (is_cached(fd(), bytes_))
        throw std::runtime_error(fmt::format(
            "files in {} stay in memory: choose a directory on a disk (--directory)", directory_));
}

void SampleFile::clear() const {
    const std::vector<std::byte> zeroes(chunk);
    for (std::uint64_t done = 0; done < bytes_; done += chunk)
        write_at(fd(), std::span(zeroes).first(std::min<std::uint64_t>(chunk, bytes_ - done)),
                 done);
}

}  // namespace perf
