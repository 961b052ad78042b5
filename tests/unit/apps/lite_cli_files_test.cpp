// SPDX-License-Identifier: MIT
//
// lite put, get and cp on a fake cluster.

#include "copy/lmr_range.hpp"
#include "lite_machine.hpp"

#include "../../vm/programs/common/data/crc32c.hpp"
#include "common/crc32c.hpp"
#include "common/error.hpp"
#include "common/signals.hpp"

#include "catch.hpp"

#include <array>
#include <cerrno>
#include <csignal>
#include <filesystem>
#include <functional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <pthread.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace std::string_literals;

namespace {

std::string pattern(std::size_t size, unsigned seed = 1) {
    std::string data(size, 0);
    for (std::size_t i = 0; i < size; i++)
        data[i] = static_cast<char>((i + seed) * 2654435761U >> 13);
    return data;
}

bool exists(const std::string& path) { return ::access(path.c_str(), F_OK) == 0; }

// Counts the bytes that calls for files move.
struct counter {
    explicit counter(fake::cluster& cluster) {
        cluster.intercept = [this](unsigned long request, void* arg) -> std::optional<int> {
            if (request == LITE_IOC_SENDFILE || request == LITE_IOC_RECVFILE) {
                calls++;
                bytes += static_cast<lite_ioc_file*>(arg)->length;
            }
            return std::nullopt;
        };
    }
    int calls = 0;
    std::uint64_t bytes = 0;
};

constexpr std::size_t piece = 16 << 20;

// Called once, before the next resolution of a path.
std::function<void()> before_realpath;

}  // namespace

// The linker directs the tools' calls of realpath(3) here (--wrap).
extern "C" {
char* real_realpath(const char* path, char* resolved) __asm__("__real_realpath");
char* wrapped_realpath(const char* path, char* resolved) __asm__("__wrap_realpath");

char* wrapped_realpath(const char* path, char* resolved) {
    if (before_realpath)
        std::exchange(before_realpath, nullptr)();
    return real_realpath(path, resolved);
}
}

TEST_CASE("crc32c: both ways are that of the definition", "[lite]") {
    const auto text = pattern(1000);
    const auto all = std::as_bytes(std::span(text));
    for (const std::size_t begin : {0U, 1U, 7U})
        for (std::size_t length = 0; length < 70; length++) {
            const auto part = all.subspan(begin, length);
            const auto wanted = lite_test::crc32c(part, 12345);
            CHECK(tools::crc32c(12345, part) == wanted);
            CHECK(tools::detail::crc32c_by_table(12345, part) == wanted);
        }
    CHECK(tools::crc32c(tools::crc32c(0, all.first(99)), all.subspan(99)) ==
          lite_test::crc32c(all));
}

TEST_CASE("lite: ranges of LMRs as words", "[lite]") {
    struct {
        const char* word;
        const char* name;
        std::uint64_t offset;
        std::optional<std::uint64_t> length;
    } const cases[] = {
        {"x", "x", 0, {}},           {"x:", "x", 0, {}},
        {"x:5", "x", 5, {}},         {"x:4K:0x10", "x", 4096, 16},
        {"x:y", "x:y", 0, {}},       {"x:1:0", "x", 1, 0},
        {"x:1:", "x:1", 0, {}},      {"1:2:3", "1", 2, 3},
        {"1:2:3:4", "1:2", 3, 4},    {"x:y:7", "x:y", 7, {}},
        {"a/b:1", "a/b", 1, {}},     {"x:-1", "x:-1", 0, {}},
        {"x::", "x:", 0, {}},        {"x:1:2:", "x:1:2", 0, {}},
        {"x:1KB:", "x:1KB", 0, {}},  {"x\\x3a1", "x:1", 0, {}},
        {"x\\x3a1:5", "x:1", 5, {}},
    };
    for (const auto& [word, name, offset, length] : cases) {
        CAPTURE(word);
        const auto range = tools::parse_range(word);
        CHECK(range.name == name);
        CHECK(range.offset == offset);
        CHECK(range.length == length);
    }
    CHECK_THROWS_AS(tools::parse_range(""), tools::usage_error);
    CHECK_THROWS_AS(tools::parse_range(":"), tools::usage_error);
    CHECK_THROWS_AS(tools::parse_range(":5"), tools::usage_error);
    CHECK_THROWS_AS(tools::parse_range("x:1KB"), tools::usage_error);
    CHECK_THROWS_AS(tools::parse_range("x:99999999999999999999"), tools::usage_error);
    CHECK(tools::names_lmr("x:"));
    CHECK(tools::names_lmr(":"));
    CHECK_FALSE(tools::names_lmr("x"));
    CHECK_FALSE(tools::names_lmr("./x:"));
}

TEST_CASE("lite put and get", "[lite]") {
    machine lite;
    const temporary_directory directory;
    const auto data = pattern(piece + 4321);
    write_file(directory / "in", data);

    check_silent(lite({"put", directory / "in", "x", "--alloc", "-n", "2,3", "-m", "0640", "-c"}));
    const auto made = lite.cluster.find("x");
    REQUIRE(made);
    CHECK(made->info.length == data.size());
    CHECK(made->info.mode == 0640);
    CHECK(made->nodes == std::vector<std::uint32_t>{2, 3});
    CHECK(lite.content("x", data.size()) == data);
    check_silent(lite({"get", "x", directory / "out", "--checksum"}));
    CHECK(read_file(directory / "out") == data);
    check_silent(lite({"get", "x:1000:5", directory / "out"}));
    CHECK(read_file(directory / "out") == data.substr(1000, 5));
    CHECK(lite({"get", "x:16M", "-"}).out == data.substr(piece));
    CHECK(lite({"get", "x:1:3", "-", "-c"}).out == data.substr(1, 3));
    check_silent(lite({"get", "x", "/dev/null"}));
    CHECK_FALSE(exists(directory / "out.lite-part"));
    // With the longest name that a file can have, and after an attempt that failed.
    const auto longest = directory / std::string(255, 'n');
    lite.cluster.fail_file(EHOSTDOWN, 4);
    CHECK(lite({"get", "x:0:9", longest}).status == 1);
    check_silent(lite({"get", "x:0:9", longest, "-r"}));
    CHECK(read_file(longest) == data.substr(0, 9));

    check_silent(lite({"put", directory / "out", "x:100"}));
    CHECK(lite.content("x", 105).substr(100) == data.substr(1000, 5));
    check_silent(lite({"put", "-", "x:0"}, "rest"));
    CHECK(lite.content("x", 4) == "rest");
    CHECK(lite.cluster.open_handles() == 0);
}

TEST_CASE("lite put, get and cp: a colon ends a name that ends in a number", "[lite]") {
    machine lite;
    const temporary_directory directory;
    write_file(directory / "in", "0123456789");
    check_silent(lite({"put", directory / "in", "a:1:", "-a"}));
    CHECK_FALSE(lite.cluster.find("a"));
    REQUIRE(lite.cluster.find("a:1"));
    check_silent(lite({"get", "a:1:", directory / "out"}));
    CHECK(read_file(directory / "out") == "0123456789");
    check_silent(lite({"cp", "a:1:", "b:2:", "-a"}));
    CHECK(lite.content("b:2", 10) == "0123456789");
    CHECK(lite({"get", "b\\x3a2:7", "-"}).out == "789");

    // A length of 0 would empty the file.
    lite({"alloc", "a", "8"});
    check_usage(lite({"get", "a:1:0", directory / "out"}),
                "NAME: 'a:1:0' has the length 0: there is nothing to copy");
    for (const auto& target : {directory / "out", "b:2:"s})
        check_usage(lite({"cp", "a:0:0x0", target}),
                    "'a:0:0x0' has the length 0: there is nothing to copy");
    CHECK(read_file(directory / "out") == "0123456789");
}

TEST_CASE("lite put and get: refusals", "[lite]") {
    machine lite;
    const temporary_directory directory;
    write_file(directory / "in", "0123456789");
    write_file(directory / "empty", "");
    lite({"alloc", "x", "9"});
    check_failure(lite({"put", directory / "in", "x"}),
                  "put x: offset 0 + length 10 is beyond the end (9 bytes)");
    check_failure(lite({"put", directory / "in", "x", "-a"}), "put x: an LMR of that name exists");
    check_failure(lite({"put", directory / "in", "y"}), "put y: no LMR of that name");
    check_failure(lite({"put", directory / "none", "x"}),
                  directory / "none" + ": No such file or directory");
    check_failure(lite({"put", directory / "empty", "y", "-a"}),
                  "put y: there is no data, and an LMR cannot be of size 0");
    CHECK_FALSE(lite.cluster.find("y"));
    check_usage(lite({"put", directory / "in", "x:1:2"}),
                "the length is that of the file: give the LMR as NAME[:OFFSET]");
    CHECK(lite({"put", directory / "in", "x", "-n", "1"}).status == 2);
    // This LMR is not from an earlier attempt with the file.
    check_failure(lite({"put", directory / "in", "x", "-a", "-r"}),
                  "put x: an LMR of that name exists, with another length (9 bytes)");
    check_failure(lite({"put", directory.path(), "y", "-a"}),
                  directory.path() + ": Is a directory");
    check_failure(lite({"put", directory / "in", "y:0xfffffffffffffff8", "-a"}),
                  "put y: more than an LMR can have");
    CHECK_FALSE(lite.cluster.find("y"));
    // A new LMR gets its mode when it is complete.
    check_silent(lite({"put", directory / "in", "public", "-a", "-m", "0444", "-c"}));
    CHECK(lite.cluster.find("public")->info.mode == 0444);
    CHECK(lite.content("public", 10) == "0123456789");
    // A stream that fails leaves no LMR that looks complete.
    lite.cluster.fail_op(LITE_OP_WRITE, EHOSTDOWN, 3);
    check_failure(lite({"put", "/proc/self/mountinfo", "y", "-a"}),
                  "put y: the node is down; 3 bytes were written");
    CHECK_FALSE(lite.cluster.find("y"));
    check_failure(lite({"get", "x:10", directory / "out"}),
                  "get x: offset 10 + length 0 is beyond the end (9 bytes)");
    check_failure(lite({"get", "x:9", directory / "out"}),
                  "get x: there is nothing from this offset on");
    check_usage(lite({"get", "x", ""}), "the file has no name");
    check_failure(lite({"get", "x", directory / "no" + "/out"}),
                  directory / "no" + "/out.lite-part: No such file or directory");
    check_failure(lite({"get", "x", "-", "--resume"}),
                  "get standard output: --resume needs a file that has offsets");
    write_file(directory / "empty", "");
    check_failure(lite({"put", directory / "empty", "x", "--resume"}),
                  "put " + (directory / "empty") +
                      ": --resume needs a file that has a size and is not empty");
    CHECK(lite.content("x", 9) == std::string(9, 0));
}

TEST_CASE("lite put from a pipe makes the LMR as long as what comes", "[lite]") {
    machine lite;
    for (const std::size_t size : {std::size_t{1}, piece, 2 * piece + 77}) {
        std::array<int, 2> ends{};
        REQUIRE(::pipe2(ends.data(), O_CLOEXEC) == 0);
        const auto data = pattern(size);
        const pid_t writer = ::fork();
        if (!writer) {
            for (std::size_t done = 0; done < size;) {
                const auto n = ::write(ends[1], data.data() + done, size - done);
                if (n <= 0)
                    break;
                done += static_cast<std::size_t>(n);
            }
            ::_exit(0);
        }
        ::close(ends[1]);
        const capture out;
        const capture err;
        lite.env.io = {ends[0], out.fd(), err.fd()};
        CHECK(tools::run_lite({"put", "-", "piped", "-a", "-c"}, lite.env) == 0);
        ::close(ends[0]);
        REQUIRE(::waitpid(writer, nullptr, 0) == writer);
        CHECK(err.text().empty());
        REQUIRE(lite.cluster.find("piped"));
        CHECK(lite.cluster.find("piped")->info.length == size);
        CHECK(lite.content("piped", size) == data);
        check_silent(lite({"free", "piped"}));
    }
}

TEST_CASE("lite put from a pipe needs no more memory than the data", "[lite]") {
    machine lite;
    std::uint64_t room = 0;
    int error = 0;
    lite.cluster.intercept = [&](unsigned long request, void* arg) -> std::optional<int> {
        const bool too_long =
            (request == LITE_IOC_ALLOC && static_cast<lite_ioc_alloc*>(arg)->length > room) ||
            (request == LITE_IOC_RESIZE && static_cast<lite_ioc_resize*>(arg)->length > room);
        return too_long ? std::optional(-error) : std::nullopt;
    };
    const auto put = [&](const std::string& data, const tools::arguments& words) {
        std::array<int, 2> ends{};
        REQUIRE(::pipe2(ends.data(), O_CLOEXEC) == 0);
        // A pipe holds 64 KiB.
        REQUIRE(::write(ends[1], data.data(), data.size()) == static_cast<ssize_t>(data.size()));
        ::close(ends[1]);
        const capture out;
        const capture err;
        lite.env.io = {ends[0], out.fd(), err.fd()};
        const int status = tools::run_lite(words, lite.env);
        ::close(ends[0]);
        return result{status, out.text(), err.text()};
    };
    const auto data = pattern(10000);
    for (const int what : {ENOSPC, EDQUOT, ENOMEM}) {
        error = what;
        room = 12288;
        check_silent(put("hi", {"put", "-", "x:100", "-a", "-c"}));
        REQUIRE(lite.cluster.find("x"));
        CHECK(lite.cluster.find("x")->info.length == 102);
        CHECK(lite.content("x", 102) == std::string(100, 0) + "hi");
        check_silent(lite({"free", "x"}));
        check_silent(put(data, {"put", "-", "x", "-a", "-c"}));
        CHECK(lite.cluster.find("x")->info.length == data.size());
        CHECK(lite.content("x", data.size()) == data);
        check_silent(lite({"free", "x"}));
        // The room is less than a page, or less than the data.
        for (const std::uint64_t less : {4095U, 9999U}) {
            room = less;
            CHECK(put(data, {"put", "-", "x", "-a"}).status == 1);
            CHECK_FALSE(lite.cluster.find("x"));
        }
    }
}

TEST_CASE("lite put and get go on where they were interrupted", "[lite]") {
    machine lite;
    lite.cluster.uid = ::geteuid();
    const temporary_directory directory;
    const auto data = pattern(3 * piece + 5);
    write_file(directory / "in", data);
    const std::string total = std::to_string(data.size());

    lite.cluster.fail_file(EHOSTDOWN, piece / 2);
    check_failure(lite({"put", directory / "in", "x", "-a"}),
                  "put x: the node is down; 8388608 of " + total + " bytes were written");
    check_failure(lite({"put", directory / "in", "x", "-a"}), "put x: an LMR of that name exists");
    {
        counter moved(lite.cluster);
        check_silent(lite({"put", directory / "in", "x", "-a", "-r", "-c"}));
        CHECK(moved.bytes == data.size());
        moved.bytes = 0;
        lite.cluster.find("x")->data[piece] ^= std::byte{1};
        check_silent(lite({"put", directory / "in", "x", "-r"}));
        CHECK(moved.bytes == piece);
        lite.cluster.intercept = nullptr;
    }
    CHECK(lite.content("x", data.size()) == data);

    write_file(directory / "out", "old");
    lite.cluster.fail_file(ETIMEDOUT, piece);
    check_failure(lite({"get", "x", directory / "out"}),
                  "get x: a node did not answer in time; 16777216 of " + total +
                      " bytes were read; --resume goes on with " + (directory / "out") +
                      ".lite-part");
    CHECK(read_file(directory / "out") == "old");
    CHECK(read_file(directory / "out.lite-part") == data.substr(0, piece));
    {
        counter moved(lite.cluster);
        check_silent(lite({"get", "x", directory / "out", "--resume"}));
        CHECK(moved.bytes == data.size() - piece);
        lite.cluster.intercept = nullptr;
    }
    CHECK(read_file(directory / "out") == data);
    CHECK_FALSE(exists(directory / "out.lite-part"));

    // The last step fails: what was copied stays.
    lite.cluster.intercept = [&](unsigned long request, void*) -> std::optional<int> {
        if (request == LITE_IOC_RECVFILE && ::unlink((directory / "out").c_str()) == 0)
            REQUIRE(::mkdir((directory / "out").c_str(), 0700) == 0);
        return std::nullopt;
    };
    check_failure(lite({"get", "x:0:9", directory / "out"}),
                  directory / "out" + ": Is a directory; --resume goes on with " +
                      (directory / "out") + ".lite-part");
    lite.cluster.intercept = nullptr;
    CHECK(read_file(directory / "out.lite-part") == data.substr(0, 9));
    REQUIRE(::rmdir((directory / "out").c_str()) == 0);

    // The old part file may be of other data, and longer.
    write_file(directory / "out.lite-part", pattern(data.size() + 10, 7));
    check_silent(lite({"get", "x", directory / "out", "-r"}));
    CHECK(read_file(directory / "out") == data);
    // Without --resume an old part file is ignored.
    write_file(directory / "out.lite-part", "xyz");
    check_silent(lite({"get", "x:0:2", directory / "out"}));
    CHECK(read_file(directory / "out") == data.substr(0, 2));
}

TEST_CASE("lite put and cp go on only with an LMR of their user", "[lite]") {
    machine lite;
    const temporary_directory directory;
    write_file(directory / "in", "secret");
    const std::uint32_t user = ::geteuid();
    const auto make = [&](std::uint32_t owner, std::uint32_t mode) {
        lite.cluster.uid = owner;
        auto node = lite.cluster.context();
        node.create({.name = "x", .length = 6, .mode = mode});
        node.grant("x", {.uid = user, .allowed = lite::rights::all});
        lite.cluster.uid = user;
    };
    make(user, 0600);
    check_silent(lite({"rename", "x", "source"}));
    lite.cluster.find("source")->data[0] = std::byte{'s'};
    const tools::arguments put{"put", directory / "in", "x", "-a", "-r", "-m", "0644"};
    const tools::arguments cp{"cp", "source:", "x:", "-a", "-r", "-m", "0400"};

    make(user + 1, 0666);
    const std::string refused =
        " x: an LMR of that name exists, and belongs to uid " + std::to_string(user + 1);
    check_failure(lite(put), "put" + refused);
    check_failure(lite(cp), "cp" + refused);
    CHECK(lite.content("x", 6) == std::string(6, 0));
    CHECK(lite.cluster.find("x")->info.mode == 0666);
    check_silent(lite({"free", "x"}));

    // An LMR that root makes on a node with root squash.
    make(65534, 0600);
    CHECK(lite(put).status == (user == 0 || user == 65534 ? 0 : 1));
    check_silent(lite({"free", "x"}));

    // The mode is the requested one even during the copy.
    make(user, 0666);
    std::uint32_t meanwhile = 0;
    lite.cluster.intercept = [&](unsigned long request, void*) -> std::optional<int> {
        if (request == LITE_IOC_SENDFILE)
            meanwhile = lite.cluster.find("x")->info.mode;
        return std::nullopt;
    };
    check_silent(lite(put));
    CHECK(meanwhile == 0644);
    CHECK(lite.cluster.find("x")->info.mode == 0644);
    check_silent(lite(cp));
    CHECK(lite.cluster.find("x")->info.mode == 0400);
}

TEST_CASE("lite get does not write to a partial file that is not its own", "[lite]") {
    machine lite;
    const temporary_directory directory;
    lite({"alloc", "x", "8"});
    write_file(directory / "victim", "precious");
    const auto part = directory / "out.lite-part";
    REQUIRE(::symlink("victim", part.c_str()) == 0);
    check_failure(lite({"get", "x", directory / "out"}),
                  part + ": Too many levels of symbolic links");
    ::unlink(part.c_str());
    REQUIRE(::link((directory / "victim").c_str(), part.c_str()) == 0);
    check_failure(lite({"get", "x", directory / "out", "-r"}),
                  part + ": not a file of an earlier attempt of this user");
    ::unlink(part.c_str());
    REQUIRE(::mkfifo(part.c_str(), 0600) == 0);
    check_failure(lite({"get", "x", directory / "out"}),
                  part + ": not a file of an earlier attempt of this user");
    ::unlink(part.c_str());
    write_file(part, "half");
    const int other = ::open(part.c_str(), O_RDONLY | O_CLOEXEC);
    REQUIRE(::flock(other, LOCK_EX) == 0);
    check_failure(lite({"get", "x", directory / "out"}), part + ": another process writes it");
    ::close(other);
    CHECK(read_file(directory / "victim") == "precious");
    CHECK(read_file(part) == "half");
    CHECK_FALSE(exists(directory / "out"));
}

TEST_CASE("lite get follows symbolic links, but makes no file behind one", "[lite]") {
    machine lite;
    const temporary_directory directory;
    lite({"alloc", "x", "8"});
    REQUIRE(::mkdir((directory / "data").c_str(), 0700) == 0);
    REQUIRE(::symlink("data/new", (directory / "link").c_str()) == 0);
    const std::string refused =
        directory / "link" + ": a symbolic link to a file that does not exist";
    check_failure(lite({"get", "x", directory / "link"}), refused);
    check_failure(lite({"read", "x", "-f", directory / "link"}), refused);
    CHECK_FALSE(exists(directory / "link.lite-part"));
    struct stat status {};
    REQUIRE(::lstat((directory / "link").c_str(), &status) == 0);
    CHECK(S_ISLNK(status.st_mode));
    write_file(directory / "data/new", "old");
    check_silent(lite({"get", "x", directory / "link"}));
    CHECK(read_file(directory / "data/new") == std::string(8, 0));
}

TEST_CASE("lite get replaces the file that it has looked at, and no other", "[lite]") {
    machine lite;
    const temporary_directory directory;
    lite({"alloc", "x", "8"});
    write_file(directory / "victim", "precious");
    const auto out = directory / "out";
    for (const tools::arguments& words :
         {tools::arguments{"get", "x", out}, tools::arguments{"read", "x", "-f", out}}) {
        write_file(out, "old");
        before_realpath = [&] {
            REQUIRE(::unlink(out.c_str()) == 0);
            REQUIRE(::symlink("victim", out.c_str()) == 0);
        };
        check_failure(lite(words), out + ": another process has just replaced it");
        CHECK(read_file(directory / "victim") == "precious");
        CHECK_FALSE(exists(directory / "victim.lite-part"));
        ::unlink(out.c_str());
    }
}

TEST_CASE("lite put and get end with the signal that came", "[lite]") {
    machine lite;
    const temporary_directory directory;
    write_file(directory / "in", pattern(100));
    write_file(directory / "in2", pattern(100));
    lite({"alloc", "x", "100"});
    lite.cluster.intercept = [](unsigned long request, void*) -> std::optional<int> {
        if (request == LITE_IOC_RECVFILE || request == LITE_IOC_SENDFILE)
            ::raise(SIGTERM);
        return std::nullopt;
    };
    for (const tools::arguments& words :
         {tools::arguments{"get", "x", directory / "out"},
          tools::arguments{"put", directory / "in", "x"},
          tools::arguments{"cp", directory / "in", directory / "in2", ":", "-a"}}) {
        int signal = 0;
        try {
            lite(words);
        } catch (const tools::interrupted& e) {
            signal = e.signal;
        }
        CHECK(signal == SIGTERM);
    }
    CHECK_FALSE(lite.cluster.find("in2"));
    CHECK_FALSE(exists(directory / "out"));
    CHECK(read_file(directory / "out.lite-part").size() == 100);
}

TEST_CASE("lite get ends with a signal while it waits for the reader of a FIFO", "[lite]") {
    machine lite;
    const temporary_directory directory;
    const auto fifo = directory / "fifo";
    REQUIRE(::mkfifo(fifo.c_str(), 0600) == 0);
    lite({"alloc", "x", "100"});
    // This file has the number of the system call in which the thread waits.
    const auto waits_in = "/proc/self/task/" + std::to_string(::gettid()) + "/syscall";
    std::thread sender([&, self = ::pthread_self()] {
        while (!read_file(waits_in).starts_with(std::to_string(SYS_openat) + " "))
            std::this_thread::yield();
        ::pthread_kill(self, SIGTERM);
    });
    int signal = 0;
    try {
        lite({"get", "x", fifo});
    } catch (const tools::interrupted& e) {
        signal = e.signal;
    }
    sender.join();
    CHECK(signal == SIGTERM);
}

TEST_CASE("lite put: a difference is found", "[lite]") {
    machine lite;
    const temporary_directory directory;
    write_file(directory / "in", pattern(100));
    lite.cluster.intercept = [&](unsigned long request, void* arg) -> std::optional<int> {
        if (request == LITE_IOC_OP && static_cast<lite_op*>(arg)->opcode == LITE_OP_CHECKSUM)
            lite.cluster.find("x")->data[50] ^= std::byte{1};
        return std::nullopt;
    };
    check_failure(lite({"put", directory / "in", "x", "-a", "-c"}),
                  "put: " + (directory / "in") + " and x differ within 100 bytes at 0");
    check_failure(lite({"get", "x", directory / "out", "-c"}),
                  "get: x and " + (directory / "out") +
                      " differ within 100 bytes at 0; --resume "
                      "goes on with " +
                      (directory / "out") + ".lite-part");
    CHECK_FALSE(exists(directory / "out"));
}

TEST_CASE("lite put and get of what the kernel cannot splice", "[lite]") {
    machine lite;
    const temporary_directory directory;
    const auto data = pattern(5 << 20);
    write_file(directory / "in", data);
    lite.cluster.intercept = [](unsigned long request, void*) -> std::optional<int> {
        if (request == LITE_IOC_SENDFILE || request == LITE_IOC_RECVFILE)
            return -EINVAL;
        return std::nullopt;
    };
    check_silent(lite({"put", directory / "in", "x", "-a", "-c"}));
    CHECK(lite.content("x", data.size()) == data);
    check_silent(lite({"get", "x", directory / "out", "-c"}));
    CHECK(read_file(directory / "out") == data);
    // The same if the first pieces need not be copied.
    const auto longer = pattern(piece + 4321);
    write_file(directory / "in", longer);
    check_silent(lite({"put", directory / "in", "y", "-a"}));
    lite.cluster.find("y")->data[piece + 7] ^= std::byte{1};
    check_silent(lite({"put", directory / "in", "y", "--resume"}));
    CHECK((lite.content("y", longer.size()) == longer));
    write_file(directory / "out.lite-part", longer.substr(0, piece + 9));
    check_silent(lite({"get", "y", directory / "out", "--resume"}));
    CHECK((read_file(directory / "out") == longer));
    // Files of /proc say that they are empty.
    CHECK(lite({"put", "/proc/self/mountinfo", "proc", "-a"}).status == 0);
    CHECK(lite.cluster.find("proc")->info.length == read_file("/proc/self/mountinfo").size());
}

TEST_CASE("lite cp", "[lite]") {
    machine lite;
    const temporary_directory directory;
    write_file(directory / "a", "alpha");
    write_file(directory / "b", "beta");
    check_silent(lite({"cp", directory / "a", directory / "b", ":", "--alloc"}));
    CHECK(lite.content("a", 5) == "alpha");
    CHECK(lite.content("b", 4) == "beta");
    check_silent(lite({"cp", "a:1:3", "c:", "-a", "-n", "2", "-c"}));
    CHECK(lite.content("c", 3) == "lph");
    CHECK(lite.cluster.find("c")->info.length == 3);
    check_silent(lite({"cp", "b:2", "a:3"}));
    CHECK(lite.content("a", 5) == "alpta");
    REQUIRE(::mkdir((directory / "d").c_str(), 0700) == 0);
    check_silent(lite({"cp", "a:", "b:", directory / "d"}));
    CHECK(read_file(directory / "d" + "/a") == "alpta");
    CHECK(read_file(directory / "d" + "/b") == "beta");
    check_silent(lite({"cp", "c:", directory / "e"}));
    CHECK(read_file(directory / "e") == "lph");

    // After a failure the command goes on with the other sources.
    check_failure(lite({"cp", "none:", "c:", directory / "d"}), "cp none: no LMR of that name");
    CHECK(read_file(directory / "d" + "/c") == "lph");
    lite.cluster.context().create({.name = "..", .length = 1});
    check_usage(lite({"cp", "..:", directory / "d"}),
                "'..' is no name for a file: name the file, too");
    check_usage(lite({"cp", "a:0:1", "b:", "a:1:1", directory / "d"}),
                "'a:1:1' would overwrite what another source gave");
    check_usage(lite({"cp", directory / "a", directory / "d" + "/a", ":"}),
                "'" + (directory / "d") + "/a' would overwrite what another source gave");
    lite.cluster.context().create({.name = "new", .length = 1});
    lite.cluster.context().create({.name = "new.lite-part", .length = 1});
    check_usage(lite({"cp", "new.lite-part:", "new:", directory / "d"}),
                "'new:' would overwrite what another source gave");
    check_usage(lite({"cp", "new:", "new.lite-part:", directory / "d"}),
                "'new.lite-part:' would overwrite what another source gave");
    CHECK_FALSE(std::filesystem::exists(directory / "d" + "/new"));
    check_failure(lite({"cp", "a:0:1", "a:1"}), "cp: within an LMR: use 'lite copy'");
    check_failure(lite({"cp", "a:", "c:"}),
                  "cp c: offset 0 + length 5 is beyond the end (3 bytes)");
    check_usage(lite({"cp", "a:", "b:", directory / "e"}),
                "with several sources the target must be a directory, or ':' for LMRs named like "
                "the files; '" +
                    (directory / "e") + "' is neither");
    check_usage(lite({"cp", "a", "b"}), "'a' and 'b' are files: an LMR is NAME:, with a colon");
}
