// SPDX-License-Identifier: MIT
// System calls on mapped LMRs: as buffers of read(2) and write(2), with O_DIRECT, and for LITE
// itself.
#include "fixture.hpp"

#include <cstdlib>

#include <fcntl.h>
#include <unistd.h>

using namespace lite_test;

namespace {

constexpr std::uint64_t kMovedLength = kHugePage + 64 * kPage;

class File {
  public:
    File(const std::string& path, int flags) : fd_(::open(path.c_str(), flags, 0600)) {
        if (fd_ < 0)
            throw Failure(path + ": " + ::strerrorname_np(errno));
    }
    ~File() { ::close(fd_); }
    File(const File&) = delete;
    File& operator=(const File&) = delete;

    void write(std::span<const std::byte> from) const {
        expect_equal(::pwrite(fd_, from.data(), from.size(), 0), static_cast<ssize_t>(from.size()),
                     "pwrite");
    }
    void read(std::span<std::byte> into) const {
        expect_equal(::pread(fd_, into.data(), into.size(), 0), static_cast<ssize_t>(into.size()),
                     "pread");
    }

  private:
    int fd_;
};

// Copies one mapped LMR through a file into another one.
void copy_through(const Device& dev, const std::string& path, int flags, std::uint64_t seed) {
    NamedLmr from(dev, kMovedLength);
    NamedLmr to(dev, kMovedLength);
    const View out(dev, from.lh(), 0, kMovedLength);
    const View in(dev, to.lh(), 0, kMovedLength);
    dev.write(from.lh(), 0, make_pattern(kMovedLength, seed));
    const File file(path, flags);
    file.write(out.bytes());  // pages that no process has touched
    file.read(in.bytes());
    std::vector<std::byte> got(kMovedLength);
    dev.read(to.lh(), 0, got);
    expect(!find_mismatch(got, seed), "what came through " + path);
}

}  // namespace

TEST_CASE_METHOD(Mmap, "io: write from and read into a mapping", "[io]") {
    const std::string path = "/tmp/" + unique_name("through");
    REQUIRE_NOTHROW(copy_through(dev, path, O_RDWR | O_CREAT, 1));
    ::unlink(path.c_str());
}

TEST_CASE_METHOD(Mmap, "io: a device reads and writes the pages themselves", "[io]") {
    // The test provides a block device, as files here do not support O_DIRECT.
    const char* path = std::getenv("LITE_TEST_BLOCK");
    REQUIRE(path);
    REQUIRE_NOTHROW(copy_through(dev, path, O_RDWR | O_DIRECT, 2));
    REQUIRE_NOTHROW(copy_through(dev, path, O_RDWR, 3));
}

TEST_CASE_METHOD(Mmap, "io: LITE's own operations on a mapping", "[io]") {
    // Local and remote LMRs, small and large, from and to the mapping; also the LMR that is mapped.
    const std::uint32_t away[] = {env().peer()};
    NamedLmr near(dev, kMovedLength);
    NamedLmr far(dev, kMovedLength, away);
    const View view(dev, near.lh(), 0, kMovedLength);
    for (const std::uint64_t length : {std::uint64_t{8}, std::uint64_t{3000}, kMovedLength}) {
        fill_pattern(view.bytes().first(length), length);
        dev.write(far.lh(), 0, view.bytes().first(length));
        std::memset(view.data(), 0, length);
        dev.read(far.lh(), 0, view.bytes().first(length));
        REQUIRE_FALSE(find_mismatch(view.bytes().first(length), length));
    }
    // From and to the mapped LMR itself: page faults while the LMR is in use.
    REQUIRE(::madvise(view.data(), view.size(), MADV_DONTNEED) == 0);
    dev.read(near.lh(), 0, view.bytes().first(kPage));
    REQUIRE(::madvise(view.data(), view.size(), MADV_DONTNEED) == 0);
    dev.write(near.lh(), kPage, view.bytes().first(kPage));
    CHECK_FALSE(find_mismatch(view.bytes().subspan(kPage, kPage), kMovedLength));
    // The LMR that the write would read from is freed.
    dev.free(near.lh());
    CHECK(dev(write_args(far.lh(), 0, view.data(), kPage)) == err(EFAULT));
    CHECK(dev(read_args(far.lh(), 0, view.data(), 16 * kPage)) == err(EFAULT));
}
