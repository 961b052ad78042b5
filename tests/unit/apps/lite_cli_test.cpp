// SPDX-License-Identifier: MIT
//
// The commands of "lite" on a fake cluster: what they do, what they print, and how they fail.

#include "lite_machine.hpp"

#include "common/io.hpp"
#include "common/signals.hpp"

#include "catch.hpp"

#include <nlohmann/json.hpp>

#include <array>
#include <atomic>
#include <cctype>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <sstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace std::string_literals;
using nlohmann::json;

TEST_CASE("lite: mistakes on the command line", "[lite]") {
    machine lite;
    check_usage(lite({}), "A subcommand is required");
    check_usage(lite({"frobnicate"}), "'frobnicate' is not a command");
    check_usage(lite({"alloc"}), "NAME is required");
    check_usage(lite({"alloc", "x"}), "SIZE is required");
    check_usage(lite({"alloc", "x", "0"}), "an LMR cannot be of size 0");
    check_usage(lite({"alloc", "x", "1KB"}),
                "SIZE: '1KB' is ambiguous: write K or KiB for powers of 1024");
    check_usage(lite({"alloc", "x", "1K", "--mode", "0777"}),
                "--mode: '0777' has bits beyond 0666: LMRs can be read and written, nothing else");
    check_usage(lite({"alloc", "x", "1K", "--node", "1,1"}), "--node: '1,1' names node 1 twice");
    check_usage(lite({"alloc", "a\nb", "1K"}),
                "NAME: 'a\\x0ab' is not a name: it has a control character");
    check_usage(lite({"write", "x", "0", "data", "--file", "f"}), "DATA excludes --file");
    check_usage(lite({"read", "x", "0", "1", "--hex", "--raw"}), "--hex excludes --raw");
    check_usage(lite({"fetch-add", "x", "0", "much"}),
                "VALUE: 'much' is not a number (decimal or 0x hexadecimal)");
    check_usage(lite({"--index", "-1", "ls"}),
                "--index: '-1' is not a number (decimal or 0x hexadecimal)");
    CHECK(lite({"ls", "extra"}).status == 2);
    CHECK(lite({"ls", "--frob"}).status == 2);
    // Usage errors are found without a node.
    CHECK_FALSE(lite.opened);
}

namespace {

// The headings of a --help with the commands below each of them.
using help_groups = std::vector<std::pair<std::string, std::vector<std::string>>>;

help_groups groups_of(const std::string& help) {
    help_groups groups;
    std::istringstream lines(help);
    for (std::string line; std::getline(lines, line);) {
        if (line.ends_with(':') && !line.starts_with(' '))
            groups.emplace_back(line.substr(0, line.size() - 1), std::vector<std::string>{});
        else if (line.starts_with("  ") && std::isalpha(static_cast<unsigned char>(line[2])))
            groups.at(groups.size() - 1).second.push_back(line.substr(2, line.find(' ', 2) - 2));
    }
    return groups;
}

}  // namespace

TEST_CASE("lite: help and version", "[lite]") {
    machine lite;
    const auto help = lite({"--help"});
    CHECK(help.status == 0);
    CHECK(help.err.empty());
    // Every command is in a group of what one wants to do.
    const help_groups wanted{
        {"Options", {}},
        {"Make, find and free LMRs", {"alloc", "free", "ls", "stat"}},
        {"Read and write", {"write", "read", "put", "get", "cp"}},
        {"Count and swap 8-byte words", {"fetch-add", "cas", "swap", "fetch-and", "fetch-or"}},
        {"Work on bytes where they are", {"set", "copy", "cmp", "checksum"}},
        {"Change an LMR: name, length, place", {"rename", "resize", "move"}},
        {"Say who may use it", {"grant", "revoke", "grants", "chmod", "chown"}},
        {"Call functions and send messages", {"serve", "call", "send"}},
        {"Wait for others", {"lock", "barrier"}},
    };
    CHECK(groups_of(help.out) == wanted);
    for (const auto& [heading, commands] : wanted) {
        for (const auto& command : commands) {
            CAPTURE(command);
            CHECK(lite({command, "-h"}).status == 0);
        }
    }
    const auto version = lite({"--version"});
    CHECK(version.status == 0);
    CHECK(version.out.starts_with("lite "));
}

TEST_CASE("lite: the node is chosen by --index, before or after the command", "[lite]") {
    machine lite;
    lite({"ls"});
    CHECK(lite.opened == -1);
    lite({"--index", "3", "ls"});
    CHECK(lite.opened == 3);
    lite({"ls", "-i", "0x4"});
    CHECK(lite.opened == 4);

    lite.env.open = [](int index) -> lite::context {
        throw lite::error(ENODEV, std::to_string(index));
    };
    check_failure(lite({"ls"}), "/dev/lite0: no such LITE node ('litectl start' makes one)");
    check_failure(lite({"ls", "-i", "5"}),
                  "/dev/lite5: no such LITE node ('litectl start' makes one)");
    lite.env.open = [](int) -> lite::context { throw lite::error(EACCES, ""); };
    check_failure(lite({"ls"}), "/dev/lite0: Permission denied");
    lite.env.open = [](int) -> lite::context { throw lite::error(EPROTONOSUPPORT, ""); };
    check_failure(lite({"ls"}),
                  "/dev/lite0: the loaded module, or the node to join, has another version of LITE "
                  "(after an upgrade: litectl stop, rmmod lite, litectl start)");
    lite.env.open = [](int) -> lite::context { throw lite::error(EINVAL, ""); };
    check_failure(lite({"ls"}), "the environment variable LITE_INDEX is not the number of a node");
}

TEST_CASE("lite alloc, stat, free", "[lite]") {
    machine lite;
    check_silent(lite({"alloc", "x", "4K", "--node", "2,3", "--mode", "0640"}));
    const auto made = lite.cluster.find("x");
    REQUIRE(made);
    CHECK(made->info.length == 4096);
    CHECK(made->info.mode == 0640);
    CHECK(made->nodes == std::vector<std::uint32_t>{2, 3});
    CHECK(lite.cluster.open_handles() == 0);
    check_silent(lite({"alloc", "y", "1"}));
    CHECK(lite.cluster.find("y")->info.mode == 0600);

    check_failure(lite({"alloc", "x", "1"}), "alloc x: an LMR of that name exists");
    check_failure(lite({"alloc", "z", "1", "-n", "9"}),
                  "alloc z: no node of that id in this cluster");
    check_failure(lite({"alloc", "z", "2G"}),
                  "alloc z: the memory that the node gives to LMRs is used up");

    const auto stat = lite({"stat", "x"});
    CHECK(stat.status == 0);
    CHECK(stat.out.find("   Size: 4096 bytes (4.0K)\n") != stat.out.npos);
    CHECK(stat.out.find("   Mode: 0640 (rw-r-----)\n") != stat.out.npos);
    CHECK(stat.out.find("   Home: node 2, id 1\n") != stat.out.npos);
    CHECK(stat.out.find("  Nodes: 2, 3\n") != stat.out.npos);
    const auto object = json::parse(lite({"stat", "x", "-j"}).out);
    CHECK(object["name"] == "x");
    CHECK(object["size"] == 4096);
    CHECK(object["mode"] == "0640");
    CHECK(object["nodes"] == std::vector<int>{2, 3});
    check_failure(lite({"stat", "nobody"}), "stat nobody: no LMR of that name");

    // After a failure the command goes on with the other LMRs.
    check_failure(lite({"free", "nobody", "x", "y"}), "free nobody: no LMR of that name");
    CHECK_FALSE(lite.cluster.find("x"));
    CHECK_FALSE(lite.cluster.find("y"));
}

TEST_CASE("lite ls", "[lite]") {
    machine lite;
    lite.cluster.uid = 4000000000;  // a user without a name
    lite.cluster.gid = 4000000001;
    check_silent(lite({"ls"}));
    CHECK(lite({"ls", "-j"}).out == "[]\n");

    lite({"alloc", "zeta", "1536"});
    lite({"alloc", "alpha", "10", "-n", "2,1", "-m", "0666"});
    CHECK(lite({"ls"}).out ==
          "MODE       OWNER       GROUP       SIZE  HOME  NODES  NAME\n"
          "rw-rw-rw-  4000000000  4000000001    10     2      2  alpha\n"
          "rw-------  4000000000  4000000001  1536     1      1  zeta\n");
    CHECK(lite({"ls", "-H"}).out.find("  1.5K  ") != std::string::npos);
    const auto list = json::parse(lite({"ls", "--json"}).out);
    REQUIRE(list.size() == 2);
    CHECK(list[0]["name"] == "alpha");
    CHECK(list[0]["uid"] == 4000000000);
    CHECK(list[0]["owner"] == "4000000000");
    CHECK(list[0]["node_count"] == 2);
    CHECK(list[1]["size"] == 1536);

    // Names are bytes: the output must be valid JSON, and harmless for a terminal.
    auto node = lite.cluster.context();
    node.create({.name = "\xff", .length = 1});
    node.create({.name = "\xc2\x9b", .length = 1});
    const auto anonymous = node.alloc({.length = 1});
    CHECK(json::parse(lite({"ls", "-j"}).out).size() == 5);
    const auto table = lite({"ls"}).out;
    CHECK(table.find("\xc2\x9b") == table.npos);
    CHECK(table.find("(anonymous)") != table.npos);

    lite.cluster.intercept = [](unsigned long, void*) { return -ENOTCONN; };
    check_failure(lite({"ls"}), "ls: this node is in no cluster");
}

TEST_CASE("lite write and read small things", "[lite]") {
    machine lite;
    lite({"alloc", "x", "4096"});
    check_silent(lite({"write", "x", "0", "hello"}));
    check_silent(lite({"write", "x", "5", "-"}, " world"));
    check_silent(lite({"write", "x", "11"}, "!"));
    check_silent(lite({"write", "x", "12", "--", "-5"}));
    check_silent(lite({"write", "x", "0x10", "-f", "-"}, "from a file"));
    check_silent(lite({"write", "x", "0"}, ""));
    check_silent(lite({"write", "x", "4096", ""}));
    CHECK(lite.content("x", 27) == "hello world!-5\0\0from a file"s);

    CHECK(lite({"read", "x", "0", "12"}).out == "hello world!");
    CHECK(lite({"read", "x", "16", "4"}).out == "from");
    CHECK(lite({"read", "x"}).out == lite.content("x", 4096));
    CHECK(lite({"read", "x", "4090", "all"}).out == "\0\0\0\0\0\0"s);
    CHECK(lite({"read", "x", "4090"}).out.size() == 6);
    check_silent(lite({"read", "x", "4096"}));
    check_silent(lite({"read", "x", "1", "0"}));
    CHECK(lite({"read", "x", "16", "4", "--hex"}).out ==
          "00000010  66 72 6f 6d                                       |from|\n00000014\n");
    CHECK(lite.cluster.open_handles() == 0);
}

TEST_CASE("lite write and read beyond the end", "[lite]") {
    machine lite;
    lite({"alloc", "x", "4096"});
    check_failure(lite({"write", "x", "4096", "0123456789"}),
                  "write x: offset 4096 + length 10 is beyond the end (4096 bytes)");
    check_failure(lite({"write", "x", "0xffffffffffffffff", "0"}),
                  "write x: offset 18446744073709551615 + length 1 is beyond the end (4096 bytes)");
    // The length of a file is known before the first byte is written.
    check_failure(lite({"write", "x", "4000"}, std::string(97, 'a')),
                  "write x: offset 4000 + length 97 is beyond the end (4096 bytes)");
    CHECK(lite.content("x", 4096) == std::string(4096, 0));
    check_failure(lite({"read", "x", "4000", "97"}),
                  "read x: offset 4000 + length 97 is beyond the end (4096 bytes)");
    check_failure(lite({"read", "x", "4097"}),
                  "read x: offset 4097 + length 0 is beyond the end (4096 bytes)");
    check_failure(lite({"read", "x", "0xffffffffffffffff", "0xffffffffffffffff"}),
                  "read x: offset 18446744073709551615 + length 18446744073709551615 is beyond the "
                  "end (4096 bytes)");
}

TEST_CASE("lite write from a pipe that goes on too long", "[lite]") {
    machine lite;
    lite({"alloc", "x", "5M"});
    std::array<int, 2> ends{};
    REQUIRE(::pipe2(ends.data(), O_CLOEXEC) == 0);
    std::thread writer([&] {
        const std::vector<char> bytes(6 << 20, 'p');
        std::size_t done = 0;
        while (done < bytes.size()) {
            const auto n = ::write(ends[1], bytes.data() + done, bytes.size() - done);
            if (n <= 0)
                break;
            done += static_cast<std::size_t>(n);
        }
        ::close(ends[1]);
    });
    const capture out;
    const capture err;
    lite.env.io = {ends[0], out.fd(), err.fd()};
    CHECK(tools::run_lite({"write", "x", "0"}, lite.env) == 1);
    // Read the rest, so that the writer ends.
    std::vector<char> rest(1 << 20);
    while (::read(ends[0], rest.data(), rest.size()) > 0)
        ;
    writer.join();
    ::close(ends[0]);
    CHECK(err.text() ==
          "lite: write x: the data goes beyond the end (5242880 bytes); "
          "4194304 bytes were written\n");
    CHECK(lite.content("x", 4 << 20) == std::string(4 << 20, 'p'));
}

TEST_CASE("lite: transfers through files", "[lite]") {
    machine lite;
    const temporary_directory directory;
    std::string data(9 << 20, 0);
    for (std::size_t i = 0; i < data.size(); i++)
        data[i] = static_cast<char>(i * 2654435761U >> 13);
    write_file(directory / "in", data);
    lite({"alloc", "x", "9M", "-n", "1,2,3"});

    check_silent(lite({"write", "x", "0", "--file", directory / "in"}));
    CHECK(lite.content("x", data.size()) == data);
    check_silent(lite({"read", "x", "--file", directory / "out"}));
    CHECK(read_file(directory / "out") == data);
    struct stat status {};
    REQUIRE(::stat((directory / "out").c_str(), &status) == 0);
    CHECK((status.st_mode & 07777) == 0600);
    CHECK(lite({"read", "x", "1", "5M"}).out == data.substr(1, 5 << 20));

    check_failure(lite({"write", "x", "0", "-f", directory / "none"}),
                  directory / "none" + ": No such file or directory");
    check_failure(lite({"write", "x", "0", "-f", directory.path()}),
                  directory.path() + ": Is a directory");
    check_failure(lite({"read", "x", "-f", directory / "none" + "/out"}),
                  directory / "none" + "/out: No such file or directory");
}

TEST_CASE("lite read replaces a file only by a complete one", "[lite]") {
    machine lite;
    const temporary_directory directory;
    lite({"alloc", "x", "9M"});
    write_file(directory / "precious", "old", 0640);
    REQUIRE(::symlink("precious", (directory / "link").c_str()) == 0);

    lite.cluster.fail_file(EHOSTDOWN, 4 << 20);
    check_failure(lite({"read", "x", "-f", directory / "precious"}),
                  "read x: the node is down; 4194304 of 9437184 bytes were read");
    CHECK(read_file(directory / "precious") == "old");

    check_silent(lite({"read", "x", "0", "3", "-f", directory / "link"}));
    CHECK(read_file(directory / "precious") == "\0\0\0"s);
    struct stat status {};
    REQUIRE(::lstat((directory / "link").c_str(), &status) == 0);
    CHECK(S_ISLNK(status.st_mode));
    check_silent(lite({"read", "x", "-f", "/dev/null"}));
    check_silent(lite({"read", "x", "0", "0", "-f", directory / "empty"}));
    CHECK(read_file(directory / "empty").empty());

    // No temporary file is left.
    int entries = 0;
    for (const auto& entry : {"precious", "link", "empty"})
        entries += ::access((directory / entry).c_str(), F_OK) == 0;
    CHECK(entries == 3);
    CHECK(::rmdir(directory.path().c_str()) == -1);
    for (const auto& entry : {"precious", "link", "empty"})
        ::unlink((directory / entry).c_str());
    CHECK(::rmdir(directory.path().c_str()) == 0);
}

TEST_CASE("lite write says how much was written when it fails", "[lite]") {
    machine lite;
    lite({"alloc", "x", "8M"});
    lite.cluster.fail_file(ETIMEDOUT, 1000);
    check_failure(lite({"write", "x", "0"}, std::string(6 << 20, 'a')),
                  "write x: a node did not answer in time; 1000 of 6291456 bytes were written");
    lite.cluster.fail_op(LITE_OP_WRITE, EIO);
    check_failure(lite({"write", "x", "0", "a"}),
                  "write x: the RDMA device failed the operation; 0 of 1 byte was written");
}

TEST_CASE("lite: rights", "[lite]") {
    machine lite;
    lite({"alloc", "ro", "8", "-m", "0400"});
    check_failure(lite({"write", "ro", "0", "x"}),
                  "write ro: permission denied by the LMR's mode or the handle's rights");
    check_failure(lite({"fetch-add", "ro", "0", "1"}),
                  "fetch-add ro: permission denied by the LMR's mode or the handle's rights");
    CHECK(lite({"read", "ro"}).status == 0);
}

TEST_CASE("lite fetch-add", "[lite]") {
    machine lite;
    lite({"alloc", "x", "16"});
    CHECK(lite({"fetch-add", "x", "8", "5"}).out == "0\n");
    CHECK(lite({"fetch-add", "x", "8", "-6"}).out == "5\n");
    CHECK(lite({"fetch-add", "x", "8", "0x10"}).out == "18446744073709551615\n");
    CHECK(lite({"fetch-add", "x", "8", "0", "--hex"}).out == "0xf\n");
    check_failure(lite({"fetch-add", "x", "4", "1"}),
                  "fetch-add x: offset 4 is not a multiple of 8");
    check_failure(lite({"fetch-add", "x", "16", "1"}),
                  "fetch-add x: offset 16 + length 8 is beyond the end (16 bytes)");
    lite.cluster.fail_op(LITE_OP_FETCH_ADD, EOPNOTSUPP);
    check_failure(lite({"fetch-add", "x", "8", "1"}),
                  "fetch-add x: not supported by this version of LITE or by the RDMA device");
}

TEST_CASE("lite cas", "[lite]") {
    machine lite;
    lite({"alloc", "x", "8"});
    const auto done = lite({"cas", "x", "0", "0", "7"});
    CHECK(done.status == 0);
    CHECK(done.out == "0\n");
    CHECK(done.err.empty());
    auto refused = lite({"cas", "x", "0", "5", "8"});
    CHECK(refused.status == 1);
    CHECK(refused.out == "7\n");
    CHECK(refused.err == "lite: cas x: not replaced: the word is 7, not 5\n");
    refused = lite({"cas", "x", "0", "5", "8", "-q", "-x"});
    CHECK(refused.status == 1);
    CHECK(refused.out == "0x7\n");
    CHECK(refused.err.empty());
}

TEST_CASE("lite swap, fetch-and, fetch-or", "[lite]") {
    machine lite;
    lite({"alloc", "x", "16"});
    CHECK(lite({"fetch-or", "x", "8", "0xff"}).out == "0\n");
    CHECK(lite({"fetch-and", "x", "8", "0x3c", "--hex"}).out == "0xff\n");
    CHECK(lite({"swap", "x", "8", "-1"}).out == "60\n");
    CHECK(lite({"swap", "x", "8", "0", "-x"}).out == "0xffffffffffffffff\n");
    check_failure(lite({"swap", "x", "4", "1"}), "swap x: offset 4 is not a multiple of 8");
    check_failure(lite({"fetch-or", "x", "16", "1"}),
                  "fetch-or x: offset 16 + length 8 is beyond the end (16 bytes)");
    check_usage(lite({"fetch-and", "x", "0"}), "MASK is required");
    lite.cluster.fail_op(LITE_OP_SWAP, EOPNOTSUPP);
    check_failure(lite({"swap", "x", "0", "1"}),
                  "swap x: not supported by this version of LITE or by the RDMA device");
    CHECK(lite.cluster.open_handles() == 0);
}

TEST_CASE("lite set", "[lite]") {
    machine lite;
    lite({"alloc", "x", "9M", "-n", "1,2"});
    check_silent(lite({"set", "x", "1", "7", "616263"}));
    CHECK(lite.content("x", 9) == "\0abcabca\0"s);
    // In several pieces, each with the pattern in phase.
    check_silent(lite({"set", "x", "0", "all", "6162636465"}));
    std::string wanted(9 << 20, 0);
    for (std::size_t i = 0; i < wanted.size(); i++)
        wanted[i] = static_cast<char>('a' + i % 5);
    CHECK(lite.content("x", 9 << 20) == wanted);
    check_silent(lite({"set", "x", "9M", "all", "00"}));
    check_failure(lite({"set", "x", "9M", "1", "00"}),
                  "set x: offset 9437184 + length 1 is beyond the end (9437184 bytes)");
    check_usage(lite({"set", "x", "0", "1", "6"}),
                "PATTERN: '6' is not a pattern (1 to 8 bytes, two hexadecimal digits each)");
    lite.cluster.fail_op(LITE_OP_SET, EHOSTDOWN, 3);
    check_failure(lite({"set", "x", "0", "10", "00"}),
                  "set x: the node is down; 3 of 10 bytes were set");
}

TEST_CASE("lite copy", "[lite]") {
    machine lite;
    lite({"alloc", "x", "12M"});
    lite({"alloc", "y", "64"});
    lite({"write", "x", "0", "abcdefgh"});
    check_silent(lite({"copy", "x", "2", "y", "10", "4"}));
    CHECK(lite.content("y", 15) == std::string(10, 0) + "cdef\0"s);
    // Overlapping ranges, copied in pieces.
    const auto found = lite.cluster.find("x");
    for (std::size_t i = 0; i < found->data.size(); i++)
        found->data[i] = static_cast<std::byte>(i * 2654435761U >> 13);
    for (const auto& [from, to] : {std::pair{0U, 1000U}, std::pair{1000U, 3U}}) {
        auto wanted = found->data;
        std::memmove(&wanted[to], &wanted[from], (11 << 20));
        check_silent(lite({"copy", "x", std::to_string(from), "x", std::to_string(to), "11M"}));
        CHECK((found->data == wanted));
    }
    check_failure(lite({"copy", "x", "0", "y", "0", "65"}),
                  "copy y: offset 0 + length 65 is beyond the end (64 bytes)");
    check_failure(lite({"copy", "z", "0", "y", "0", "1"}), "copy z: no LMR of that name");
    check_usage(lite({"copy", "x", "0", "y", "0"}), "LENGTH is required");
    lite.cluster.fail_op(LITE_OP_COPY, EIDRM, 1);
    check_failure(lite({"copy", "x", "0", "y", "0", "2"}),
                  "copy x, y: the LMR was freed; 1 of 2 bytes were copied");
    CHECK(lite.cluster.open_handles() == 0);
}

TEST_CASE("lite cmp has the exit statuses of cmp(1)", "[lite]") {
    machine lite;
    lite({"alloc", "x", "9M"});
    lite({"alloc", "y", "9M"});
    check_silent(lite({"cmp", "x", "0", "y", "0", "9M"}));
    lite({"write", "y", "5M", "!"});
    const auto different = lite({"cmp", "x", "0", "y", "1", "8M"});
    CHECK(different.status == 1);
    CHECK(different.out == "x y differ: byte 5242880\n");
    CHECK(different.err.empty());
    const auto quiet = lite({"cmp", "-q", "x", "0", "y", "0", "9M"});
    CHECK(quiet.status == 1);
    CHECK(quiet.out.empty());
    for (const tools::arguments& words :
         {tools::arguments{"cmp", "x", "0", "z", "0", "1"},
          tools::arguments{"cmp", "x", "0", "y", "9M", "1"}, tools::arguments{"cmp", "x"}}) {
        const auto failed = lite(words);
        CHECK(failed.status == 2);
        CHECK(failed.out.empty());
        CHECK_FALSE(failed.err.empty());
    }
    lite.cluster.fail_op(LITE_OP_COMPARE, EHOSTDOWN);
    const auto failed = lite({"cmp", "x", "0", "y", "0", "1"});
    CHECK(failed.status == 2);
    CHECK(failed.err == "lite: cmp x, y: the node is down\n");
}

TEST_CASE("lite checksum", "[lite]") {
    machine lite;
    lite({"alloc", "x", "9M"});
    lite({"write", "x", "100", "123456789"});
    CHECK(lite({"checksum", "x", "100", "9"}).out == "e3069283\n");
    CHECK(lite({"checksum", "x", "9M"}).out == "00000000\n");
    // The checksum of several pieces is that of the whole.
    const auto found = lite.cluster.find("x");
    auto node = lite.cluster.context();
    const auto whole = node.map("x", lite::rights::read).checksum(0, 9 << 20);
    char text[16];
    std::snprintf(text, sizeof(text), "%08x\n", whole);
    CHECK(lite({"checksum", "x"}).out == text);
    CHECK(lite({"checksum", "x", "0", "all"}).out == text);
    check_failure(lite({"checksum", "x", "9M", "1"}),
                  "checksum x: offset 9437184 + length 1 is beyond the end (9437184 bytes)");
    lite.cluster.fail_op(LITE_OP_CHECKSUM, EIO);
    check_failure(lite({"checksum", "x", "0", "1"}),
                  "checksum x: the RDMA device failed the operation");
}

TEST_CASE("lite read spares the terminal", "[lite]") {
    machine lite;
    lite({"alloc", "x", "16"});
    lite({"write", "x", "0", "text\n"});
    const terminal screen;
    const capture err;
    lite.env.io = {0, screen.fd(), err.fd()};
    CHECK(tools::run_lite({"read", "x", "0", "5"}, lite.env) == 0);
    CHECK(screen.take() == "text\n");
    CHECK(tools::run_lite({"read", "x"}, lite.env) == 1);
    CHECK(screen.take().empty());
    CHECK(err.text() ==
          "lite: read x: binary data might upset the terminal (--hex shows it, "
          "--raw prints it all the same, --file saves it)\n");
    CHECK(tools::run_lite({"read", "x", "--raw"}, lite.env) == 0);
    CHECK(screen.take().size() == 16);
    CHECK(tools::run_lite({"read", "x", "--hex"}, lite.env) == 0);
    CHECK(screen.take().starts_with("00000000  74 65 78 74"));
}

TEST_CASE("lite read to a terminal: a character that is split between two pieces", "[lite]") {
    machine lite;
    lite({"alloc", "x", "5M"});
    lite({"set", "x", "0", "all", "61"});
    const terminal screen;
    const capture err;
    const auto shown_with = [&](const char* character) {
        check_silent(lite({"set", "x", "4194303", "2", character}));
        lite.env.io = {0, screen.fd(), err.fd()};
        std::atomic<bool> ended = false;
        std::string shown;
        std::thread reader([&] {
            while (!ended)
                shown += screen.take();
        });
        const int status = tools::run_lite({"read", "x"}, lite.env);
        ended = true;
        reader.join();
        shown += screen.take();
        return std::pair(status, shown.size());
    };
    CHECK(shown_with("c3a4") == std::pair(0, std::size_t{5} << 20));
    // A control character of two bytes.
    CHECK(shown_with("c29b") == std::pair(1, std::size_t{4} << 20));
}

TEST_CASE("lite: write errors are reported", "[lite]") {
    machine lite;
    lite({"alloc", "x", "16"});
    const int full = ::open("/dev/full", O_WRONLY | O_CLOEXEC);
    REQUIRE(full >= 0);
    const capture err;
    lite.env.io = {0, full, err.fd()};
    CHECK(tools::run_lite({"read", "x"}, lite.env) == 1);
    CHECK(tools::run_lite({"ls"}, lite.env) == 1);
    CHECK(tools::run_lite({"--help"}, lite.env) == 1);
    const auto line = "lite: write error: No space left on device\n"s;
    CHECK(err.text() == line + line + line);
    ::close(full);
}

TEST_CASE("no file takes the place of a standard stream that is closed", "[lite]") {
    // In a child process, as the test needs its own streams.
    const pid_t child = ::fork();
    REQUIRE(child >= 0);
    if (child == 0) {
        for (const int fd : {0, 1, 2})
            ::close(fd);
        const int kept = ::open("/dev/null", O_RDWR);  // 0: an open stream stays as it is
        tools::reserve_standard_streams();
        char byte = 0;
        const bool good = kept == 0 && ::write(0, "", 1) == 1 && ::read(0, &byte, 1) == 0 &&
                          ::write(1, "", 1) < 0 && errno == EBADF && ::write(2, "", 1) < 0 &&
                          ::open("/dev/null", O_RDONLY) > 2;
        ::close(0);
        tools::reserve_standard_streams();
        ::_exit(good && ::read(0, &byte, 1) < 0 && errno == EBADF ? 0 : 1);
    }
    int status = 0;
    REQUIRE(::waitpid(child, &status, 0) == child);
    CHECK(status == 0);
}

TEST_CASE("lite: signals become an exception and leave nothing behind", "[lite]") {
    machine lite;
    const temporary_directory directory;
    lite({"alloc", "x", "9M"});
    lite.cluster.intercept = [](unsigned long request, void*) -> std::optional<int> {
        if (request == LITE_IOC_RECVFILE)
            ::raise(SIGINT);
        return std::nullopt;
    };
    int signal = 0;
    try {
        lite({"read", "x", "-f", directory / "out"});
    } catch (const tools::interrupted& e) {
        signal = e.signal;
    }
    CHECK(signal == SIGINT);
    CHECK(::rmdir(directory.path().c_str()) == 0);
    CHECK(lite.cluster.open_handles() == 0);

    // A pipe without a reader ends the program without a message.
    lite.cluster.intercept = nullptr;
    std::array<int, 2> ends{};
    REQUIRE(::pipe2(ends.data(), O_CLOEXEC) == 0);
    ::close(ends[0]);
    const capture err;
    lite.env.io = {0, ends[1], err.fd()};
    signal = 0;
    try {
        tools::run_lite({"read", "x"}, lite.env);
    } catch (const tools::interrupted& e) {
        signal = e.signal;
    }
    CHECK(signal == SIGPIPE);
    CHECK(err.text().empty());

    // If SIGPIPE is ignored, it is a write error like others.
    ::signal(SIGPIPE, SIG_IGN);
    CHECK(tools::run_lite({"read", "x"}, lite.env) == 1);
    ::signal(SIGPIPE, SIG_DFL);
    CHECK(err.text() == "lite: write error: Broken pipe\n");
    ::close(ends[1]);
}
