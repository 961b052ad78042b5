// SPDX-License-Identifier: MIT
// Nothing can be moved that the caller could not read or write otherwise: the LMR, and the file by
// read(2) and write(2).
#include "fixture.hpp"

#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/swap.h>

#include <array>
#include <csignal>

using namespace lite_test;

namespace {

constexpr std::uint64_t kLength = 1 << 20;

struct Refusals : Files {
    std::uint64_t lh = dev.alloc(kLength, std::vector{env().peer()});
};

struct RefusalsEverywhere : FilesEverywhere {
    std::uint64_t lh = dev.alloc(kLength, std::vector{env().peer()});
};

// The errno of write(2).
Errno errno_of_write(const File& file, std::uint64_t offset) {
    return ::pwrite(file.fd(), "x", 1, static_cast<off_t>(offset)) < 0 ? err(errno) : ok;
}

}  // namespace

TEST_CASE_METHOD(Refusals, "refusals: descriptors", "[refusals]") {
    const File file = make_file("/tmp");
    file.write(0, make_pattern(100, 1));
    const File reading = open_again(file, O_RDONLY);
    const File writing = open_again(file, O_WRONLY);
    const File path = open_again(file, O_PATH);
    REQUIRE(send(dev, lh, 0, reading, 0, 100).bytes == 100);
    REQUIRE(receive(dev, lh, 0, writing, 0, 100).bytes == 100);
    for (const std::uint64_t length : {0UL, 100UL}) {
        REQUIRE(send(dev, lh, 0, writing, 0, length).error == err(EBADF));
        REQUIRE(receive(dev, lh, 0, reading, 0, length).error == err(EBADF));
        REQUIRE(send(dev, lh, 0, path, 0, length).error == err(EBADF));
        REQUIRE(receive(dev, lh, 0, path, 0, length).error == err(EBADF));
        REQUIRE(send(dev, lh, 0, File(-1), 0, length).error == err(EBADF));
        REQUIRE(receive(dev, lh, 0, File(-1), 0, length).error == err(EBADF));
    }
    REQUIRE(send(dev, lh, 0, reading, 0, 0).error == ok);
}

TEST_CASE_METHOD(Refusals, "refusals: kinds of files", "[refusals]") {
    std::array<int, 2> ends{};
    REQUIRE(::pipe(ends.data()) == 0);
    const File out(ends[0]);
    const File in(ends[1]);
    REQUIRE(::write(in.fd(), "abc", 3) == 3);
    REQUIRE(send(dev, lh, 0, out, 0, 3).error == err(EINVAL));
    REQUIRE(receive(dev, lh, 0, in, 0, 3).error == err(EINVAL));
    REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM, 0, ends.data()) == 0);
    const File left(ends[0]);
    const File right(ends[1]);
    REQUIRE(send(dev, lh, 0, left, 0, 3).error == err(EINVAL));
    REQUIRE(receive(dev, lh, 0, right, 0, 3).error == err(EINVAL));
    REQUIRE(send(dev, lh, 0, File("/tmp", O_RDONLY), 0, 3).error == err(EINVAL));
    const File self("/dev/lite" + std::to_string(env().indexes.front()), O_RDWR);
    REQUIRE(send(dev, lh, 0, self, 0, 3).error == err(EINVAL));
    REQUIRE(receive(dev, lh, 0, self, 0, 3).error == err(EINVAL));
    // A device with positions works.
    REQUIRE(receive(dev, lh, 0, File("/dev/null", O_WRONLY), 0, kLength).bytes == kLength);
}

TEST_CASE_METHOD(Refusals, "refusals: arguments", "[refusals]") {
    const File file = make_file(kMemfd);
    file.write(0, make_pattern(100, 1));
    for (const auto request : {LITE_IOC_SENDFILE, LITE_IOC_RECVFILE}) {
        auto args = file_args(lh, 0, file.fd(), 0, 100);
        REQUIRE(move(dev, request, args).error == ok);
        args.flags = LITE_FILE_POSITION << 1;
        REQUIRE(move(dev, request, args).error == err(EOPNOTSUPP));
        args = file_args(lh, 0, file.fd(), 0, 100);
        args.reserved = 1;
        REQUIRE(move(dev, request, args).error == err(EOPNOTSUPP));
        args = file_args(lh, 0, file.fd(), 0, 100);
        args.pages = LITE_FILE_PAGES_MAX + 1;
        REQUIRE(move(dev, request, args).error == err(EINVAL));
        args.pages = LITE_FILE_PAGES_MAX;
        args.sets = LITE_FILE_SETS_MAX;
        REQUIRE(move(dev, request, args).error == ok);
        args.sets++;
        const auto moved = move(dev, request, args);
        REQUIRE(moved.error == err(EINVAL));
        REQUIRE(moved.bytes == 0);
        args = file_args(lh, 0, file.fd(), 1ULL << 63, 100);
        REQUIRE(move(dev, request, args).error == err(EINVAL));
        args = file_args(lh + 1, 0, file.fd(), 0, 100);
        REQUIRE(move(dev, request, args).error == err(EBADF));
        args = file_args(lh, ~0ULL, file.fd(), 0, 100);
        REQUIRE(move(dev, request, args).error == err(ERANGE));
    }
    // The largest offset of a file is no offset of this one.
    REQUIRE(send(dev, lh, 0, file, (1ULL << 63) - 1, 100).bytes == 0);
    REQUIRE(receive(dev, lh, 0, file, (1ULL << 63) - 1, 100).error ==
            errno_of_write(file, (1ULL << 63) - 1));
}

TEST_CASE_METHOD(Files, "refusals: rights on the LMR", "[refusals]") {
    const NamedLmr lmr(dev, kLength, std::vector{env().peer()});
    const File file = make_file(kMemfd);
    file.write(0, make_pattern(100, 1));
    const auto reader = dev.map(lmr.name(), LITE_RIGHT_READ);
    REQUIRE(send(dev, reader, 0, file, 0, 100).error == err(EACCES));
    REQUIRE(receive(dev, reader, 0, file, 0, 100).bytes == 100);
    const auto writer = dev.map(lmr.name(), LITE_RIGHT_WRITE);
    REQUIRE(send(dev, writer, 0, file, 0, 100).bytes == 100);
    REQUIRE(receive(dev, writer, 0, file, 0, 100).error == err(EACCES));
    dev.free(lmr.name());
    REQUIRE(send(dev, writer, 0, file, 0, 100).error == err(EIDRM));
    REQUIRE(receive(dev, reader, 0, file, 0, 100).error == err(EIDRM));
}

TEST_CASE_METHOD(Refusals, "refusals: seals", "[refusals]") {
    const File file = make_file(kMemfd);
    file.write(0, make_pattern(10000, 1));
    REQUIRE(send(dev, lh, 0, file, 0, 10000).bytes == 10000);
    REQUIRE(::fcntl(file.fd(), F_ADD_SEALS, F_SEAL_GROW) == 0);
    REQUIRE(receive(dev, lh, 0, file, 0, 10000).bytes == 10000);
    REQUIRE(receive(dev, lh, 0, file, 20000, 10).error == err(EPERM));
    REQUIRE(file.size() == 10000);
    REQUIRE(::fcntl(file.fd(), F_ADD_SEALS, F_SEAL_WRITE) == 0);
    REQUIRE(receive(dev, lh, 0, file, 0, 10).error == err(EPERM));
    REQUIRE(send(dev, lh, 0, file, 0, 10000).bytes == 10000);
}

TEST_CASE_METHOD(RefusalsEverywhere, "refusals: immutable files", "[refusals]") {
    const File file = make_file(directory);
    file.write(0, make_pattern(100, 1));
    int flags = FS_IMMUTABLE_FL;
    if (::ioctl(file.fd(), FS_IOC_SETFLAGS, &flags))
        return;  // this file system has none
    const auto wanted = errno_of_write(file, 0);
    const auto got = receive(dev, lh, 0, file, 0, 100).error;
    const auto sent = send(dev, lh, 0, file, 0, 100).bytes;
    flags = 0;
    REQUIRE(::ioctl(file.fd(), FS_IOC_SETFLAGS, &flags) == 0);
    REQUIRE(got == wanted);
    REQUIRE(sent == 100);
}

TEST_CASE_METHOD(RefusalsEverywhere, "refusals: swap files", "[refusals]") {
    if (directory.find("ext4") == std::string::npos)
        return;
    const auto path = directory + "/" + unique_name("swap");
    const File file(path, O_RDWR | O_CREAT);
    file.write(0, std::vector<std::byte>(kLength));
    run_program({"mkswap", path});
    REQUIRE(::swapon(path.c_str(), 0) == 0);
    const auto wanted = errno_of_write(file, 0);
    const auto got = receive(dev, lh, 0, file, 0, 100).error;
    REQUIRE(::swapoff(path.c_str()) == 0);
    ::unlink(path.c_str());
    REQUIRE(wanted == err(ETXTBSY));
    REQUIRE(got == wanted);
}

TEST_CASE_METHOD(RefusalsEverywhere, "refusals: RLIMIT_FSIZE", "[refusals]") {
    const File file = make_file(directory);
    REQUIRE_NOTHROW(in_child([this, &file] {
        std::signal(SIGXFSZ, SIG_IGN);
        const rlimit limit{300000, 300000};
        expect_equal(::setrlimit(RLIMIT_FSIZE, &limit), 0, "setrlimit");
        const auto moved = receive(dev, lh, 0, file, 100, kLength);
        expect_equal(moved.error, ok, "up to the limit");
        expect_equal(moved.bytes, 299900U, "up to the limit");
        expect_equal(receive(dev, lh, 0, file, 300000, 1).error, err(EFBIG), "beyond the limit");
        expect_equal(file.size(), 300000U, "size");
        std::signal(SIGXFSZ, SIG_DFL);
        Child killed([&] { (void)receive(dev, lh, 0, file, 300000, 1); });
        expect(killed.wait().find(::strsignal(SIGXFSZ)) != std::string::npos, "SIGXFSZ");
    }));
}

TEST_CASE_METHOD(Refusals, "refusals: a full file system", "[refusals]") {
    const char* full = std::getenv("LITE_TEST_SMALL");  // of 256 KB
    REQUIRE(full);
    const File file = make_file(full);
    const auto moved = receive(dev, lh, 0, file, 0, kLength);
    REQUIRE(moved.error == ok);
    REQUIRE(moved.bytes == 256 * 1024);
    REQUIRE(receive(dev, lh, moved.bytes, file, moved.end, 1).error == err(ENOSPC));
}
