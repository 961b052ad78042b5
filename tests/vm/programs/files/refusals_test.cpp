// SPDX-License-Identifier: MIT
// Nothing can be moved that the caller could not read or write otherwise: the LMR, and the file by
// read(2) and write(2).
#include "fixture.hpp"

#include <linux/fs.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/swap.h>

#include <array>
#include <csignal>

using namespace lite_test;

namespace {

constexpr std::uint64_t kRefusedLength = 1 << 20;

struct Refusals : Files {
    std::uint64_t lh = dev.alloc(kRefusedLength, std::vector{env().peer()});
};

struct RefusalsEverywhere : FilesEverywhere {
    std::uint64_t lh = dev.alloc(kRefusedLength, std::vector{env().peer()});
};

// The errno of write(2).
Errno errno_of_write(const File& file, std::uint64_t offset) {
    return ::pwrite(file.fd(), "x", 1, static_cast<off_t>(offset)) < 0 ? err(errno) : ok;
}

// For files with locks or leases.
struct Advisory : RefusalsEverywhere {
    static constexpr std::uint64_t length = 100000;
    const std::vector<std::byte> zeroes = std::vector<std::byte>(length);

    // All of it is sent, by sendfile(2) and by LITE.
    void expect_sent(const File& file) const {
        const File copy = make_file(kMemfd);
        off_t at = 0;
        expect_equal(::sendfile(copy.fd(), file.fd(), &at, length), static_cast<ssize_t>(length),
                     "sendfile(2)");
        dev.write(lh, 0, zeroes);
        const auto moved = send(dev, lh, 0, file, 0, length);
        expect_equal(moved.error, ok, "LITE sends");
        expect_equal(moved.bytes, length, "LITE sends");
        expect(read_lmr(dev, lh, 0, length) == copy.read(0, length), "what LITE has sent");
    }

    // All of it is written, by pwrite(2) and by LITE.
    void expect_received(const File& file) const {
        file.write(0, zeroes);
        dev.write(lh, 0, make_pattern(length, 2));
        const auto moved = receive(dev, lh, 0, file, 0, length);
        expect_equal(moved.error, ok, "LITE receives");
        expect_equal(moved.bytes, length, "LITE receives");
        expect(!find_mismatch(file.read(0, length), 2), "what LITE has received");
    }
};

struct LockKind {
    const char* name;
    // Locks all of the file, exclusively. False: another holder has it locked.
    bool (*try_take)(const File& file);
};

bool is_granted(int result) {
    expect(!result || errno == EAGAIN || errno == EACCES, ::strerrorname_np(errno));
    return !result;
}

bool try_record_lock(const File& file, int command) {
    struct flock all {};
    all.l_type = F_WRLCK;
    all.l_whence = SEEK_SET;
    return is_granted(::fcntl(file.fd(), command, &all));
}

constexpr std::array kLockKinds{
    LockKind{"flock(2)",
             [](const File& file) { return is_granted(::flock(file.fd(), LOCK_EX | LOCK_NB)); }},
    LockKind{"POSIX", [](const File& file) { return try_record_lock(file, F_SETLK); }},
    LockKind{"OFD", [](const File& file) { return try_record_lock(file, F_OFD_SETLK); }},
};

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
    REQUIRE(receive(dev, lh, 0, File("/dev/null", O_WRONLY), 0, kRefusedLength).bytes ==
            kRefusedLength);
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
    const NamedLmr lmr(dev, kRefusedLength, std::vector{env().peer()});
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
    file.write(0, std::vector<std::byte>(kRefusedLength));
    run_program({"mkswap", path});
    REQUIRE(::swapon(path.c_str(), 0) == 0);
    const auto wanted = errno_of_write(file, 0);
    const auto got = receive(dev, lh, 0, file, 0, 100).error;
    REQUIRE(::swapoff(path.c_str()) == 0);
    ::unlink(path.c_str());
    REQUIRE(wanted == err(ETXTBSY));
    REQUIRE(got == wanted);
}

// Locks stand in the way of other locks only. And a transfer ends none of its caller, as closing
// any descriptor of the file would end POSIX locks.
TEST_CASE_METHOD(Advisory, "refusals: locks", "[refusals]") {
    for (const auto& [name, try_take] : kLockKinds) {
        INFO(directory << ", " << name);
        const File file = make_file(directory);
        file.write(0, make_pattern(length, 1));
        REQUIRE(try_take(file));
        REQUIRE_NOTHROW(in_child([&, take = try_take] {
            const File another = open_again(file, O_RDWR);
            expect(!take(another), "it is locked");
            expect_sent(another);
            expect_received(another);
            expect(!take(another), "it is locked after transfers of another process");
        }));
        REQUIRE_NOTHROW(expect_sent(file));
        REQUIRE_NOTHROW(expect_received(file));
        REQUIRE_NOTHROW(in_child([&, take = try_take] {
            expect(!take(open_again(file, O_RDWR)), "it is locked after its holder's transfers");
        }));
    }
}

// open(2) breaks leases, or fails. What is open is read and written without a look at them.
TEST_CASE_METHOD(Advisory, "refusals: leases", "[refusals]") {
    // A memfd is never opened by its name; of NFS, the server would have to agree.
    if (directory == kMemfd || directory.find("nfs") != std::string::npos)
        return;
    INFO(directory);
    std::signal(SIGIO, SIG_IGN);  // which tells the holder
    const auto path = directory + "/" + unique_name("leased");
    File(path, O_RDWR | O_CREAT).write(0, make_pattern(length, 1));
    const auto lease = [](const File& file) { return ::fcntl(file.fd(), F_GETLEASE); };
    const auto expect_not_opened = [&](int flags) {
        const File opened(::open(path.c_str(), flags | O_NONBLOCK | O_CLOEXEC));
        expect(opened.fd() < 0 && errno == EWOULDBLOCK, "it was opened in spite of a lease");
    };
    {
        const File holder(path, O_RDONLY);
        REQUIRE(::fcntl(holder.fd(), F_SETLEASE, F_RDLCK) == 0);
        REQUIRE_NOTHROW(in_child([&] { expect_sent(File(path, O_RDONLY)); }));
        REQUIRE(lease(holder) == F_RDLCK);
        REQUIRE_NOTHROW(in_child([&] { expect_not_opened(O_RDWR); }));
        REQUIRE(lease(holder) == F_UNLCK);
    }
    REQUIRE_NOTHROW(in_child([&] { expect_received(File(path, O_RDWR)); }));
    {
        const File holder(path, O_RDWR);
        REQUIRE(::fcntl(holder.fd(), F_SETLEASE, F_WRLCK) == 0);
        // With the holder's descriptor.
        REQUIRE_NOTHROW(in_child([&] {
            expect_sent(holder);
            expect_received(holder);
        }));
        REQUIRE(lease(holder) == F_WRLCK);
        REQUIRE_NOTHROW(in_child([&] { expect_not_opened(O_RDONLY); }));
        REQUIRE(lease(holder) == F_RDLCK);
    }
    ::unlink(path.c_str());
}

TEST_CASE_METHOD(RefusalsEverywhere, "refusals: RLIMIT_FSIZE", "[refusals]") {
    const File file = make_file(directory);
    REQUIRE_NOTHROW(in_child([this, &file] {
        std::signal(SIGXFSZ, SIG_IGN);
        const rlimit limit{300000, 300000};
        expect_equal(::setrlimit(RLIMIT_FSIZE, &limit), 0, "setrlimit");
        const auto moved = receive(dev, lh, 0, file, 100, kRefusedLength);
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
    const auto moved = receive(dev, lh, 0, file, 0, kRefusedLength);
    REQUIRE(moved.error == ok);
    REQUIRE(moved.bytes == 256 * 1024);
    REQUIRE(receive(dev, lh, moved.bytes, file, moved.end, 1).error == err(ENOSPC));
}
