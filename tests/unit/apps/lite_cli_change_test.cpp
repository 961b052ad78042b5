// SPDX-License-Identifier: MIT
//
// The commands of "lite" that change LMRs: grant, revoke, grants, chmod, chown,
// rename, resize, move.

#include "lite_machine.hpp"

#include "common/signals.hpp"

#include <nlohmann/json.hpp>

#include <cerrno>
#include <csignal>
#include <optional>
#include <string>
#include <utility>
#include <vector>

using namespace std::string_literals;
using nlohmann::json;

namespace {

constexpr std::uint32_t nobody_here = 4000000000;  // a user without a name

// Offsets and lengths of the requests to move.
using moves = std::vector<std::pair<std::uint64_t, std::uint64_t>>;

}  // namespace

TEST_CASE("lite: usage errors of the commands that change LMRs", "[lite][change]") {
    machine lite;
    check_usage(lite({"grant", "x", "--rights", "r"}), "--uid is required");
    check_usage(lite({"grant", "x", "--uid", "1"}), "--rights is required");
    check_usage(lite({"grant", "x", "--uid", "1", "--rights", "rx"}),
                "--rights: 'rx' is not a set of rights (of the letters rwasm for read, write, "
                "atomic, share and master, each at most once)");
    check_usage(lite({"grant", "x", "--uid", "no such user", "--rights", "r"}),
                "--uid: no user 'no such user' on this machine, and not a number");
    check_usage(lite({"grant", "x", "--uid", "4294967295", "--rights", "r"}),
                "--uid: no user '4294967295' on this machine, and not a number");
    check_usage(lite({"grant", "x", "--uid", "1", "--rights", "r", "--node", "0"}),
                "--node: '0' is out of range (1..65535)");
    check_usage(lite({"chmod", "0777", "x"}),
                "MODE: '0777' has bits beyond 0666: LMRs can be read and written, nothing else");
    check_usage(lite({"chmod", "u+x", "x"}),
                "MODE: 'u+x' has bits beyond r and w: LMRs can be read and written, nothing else");
    check_usage(lite({"chmod", "much", "x"}),
                "MODE: 'much' is not a mode (octal as 0640, or like u=rw,g+r,o-w)");
    check_usage(lite({"chmod", "0600"}), "NAME is required");
    check_usage(lite({"chown", ":", "x"}), "OWNER: ':' names neither an owner nor a group");
    check_usage(lite({"rename", "x", "a\nb"}),
                "NEW: 'a\\x0ab' is not a name: it has a control character");
    check_usage(lite({"resize", "x", "0"}), "an LMR cannot be of size 0");
    check_usage(lite({"move", "x"}), "--node is required");
    CHECK_FALSE(lite.opened);
}

TEST_CASE("lite grant, grants, revoke", "[lite][change]") {
    machine lite;
    lite({"alloc", "x", "4K"});
    check_silent(lite({"grants", "x"}));
    CHECK(lite({"grants", "x", "-j"}).out == "[]\n");
    check_silent(lite({"grant", "x", "--uid", "4000000000", "--rights", "rw"}));
    check_silent(lite({"grant", "x", "-u", "root", "-n", "3", "-r", "rwasm"}));
    check_silent(lite({"grant", "x", "-u", "root", "-n", "2", "-r", "a"}));
    CHECK(lite({"grants", "x"}).out ==
          "USER        NODE  RIGHTS\n"
          "root           2  --a--\n"
          "root           3  rwasm\n"
          "4000000000   all  rw---\n");
    const auto list = json::parse(lite({"grants", "x", "--json"}).out);
    REQUIRE(list.size() == 3);
    CHECK(list[0] == json{{"uid", 0}, {"user", "root"}, {"node", 2}, {"rights", "a"}});
    CHECK(list[2]["node"].is_null());
    CHECK(list[2]["rights"] == "rw");

    // A grant replaces the previous one.
    check_silent(lite({"grant", "x", "-u", "root", "-n", "2", "-r", "r"}));
    check_silent(lite({"revoke", "x", "-u", "root", "-n", "3"}));
    check_silent(lite({"revoke", "x", "--uid", "4000000000"}));
    CHECK(lite({"grants", "x"}).out == "USER  NODE  RIGHTS\nroot     2  r----\n");

    check_failure(lite({"grants", "nobody"}), "grants nobody: no LMR of that name");
    check_failure(lite({"revoke", "nobody", "-u", "1"}), "revoke nobody: no LMR of that name");
    lite.cluster.uid = nobody_here;
    check_failure(lite({"grant", "x", "-u", "1", "-r", "r"}),
                  "grant x: permission denied by the LMR's mode or the handle's rights");
    lite.cluster.intercept = [](unsigned long, void*) { return -ENOSPC; };
    check_failure(lite({"grant", "x", "-u", "1", "-r", "r"}),
                  "grant x: it has 64 grants and cannot have more, or its home has no memory left "
                  "for them");
}

TEST_CASE("lite chmod", "[lite][change]") {
    machine lite;
    lite({"alloc", "x", "1"});
    lite({"alloc", "y", "1", "-m", "0666"});
    const auto mode = [&](const char* name) { return lite.cluster.find(name)->info.mode; };
    check_silent(lite({"chmod", "0640", "x", "y"}));
    CHECK(mode("x") == 0640);
    CHECK(mode("y") == 0640);
    check_silent(lite({"chmod", "o+r,g-r", "x"}));
    CHECK(mode("x") == 0604);
    check_silent(lite({"chmod", "a=r", "x"}));
    CHECK(mode("x") == 0444);
    // After a failure the command goes on with the other LMRs.
    check_failure(lite({"chmod", "0600", "nobody", "x"}), "chmod nobody: no LMR of that name");
    CHECK(mode("x") == 0600);
    lite.cluster.uid = nobody_here;
    check_failure(lite({"chmod", "0666", "x"}),
                  "chmod x: only a master of the LMR may do that: its owner, root, or a user "
                  "made master by them; with a lock, only its holder");
}

TEST_CASE("lite chown", "[lite][change]") {
    machine lite;
    lite({"alloc", "x", "1"});
    const auto owner = [&] {
        const auto& info = lite.cluster.find("x")->info;
        return std::pair(info.uid, info.gid);
    };
    check_failure(lite({"chown", "4000000000", "x"}),
                  "chown x: only a master of the LMR may do that: its owner, root, or a user "
                  "made master by them; with a lock, only its holder");
    lite.cluster.uid = 0;
    check_silent(lite({"chown", "4000000000", "x"}));
    CHECK(owner() == std::pair(4000000000U, 1000U));
    check_silent(lite({"chown", ":4000000001", "x"}));
    CHECK(owner() == std::pair(4000000000U, 4000000001U));
    check_silent(lite({"chown", "root:root", "x"}));
    CHECK(owner() == std::pair(0U, 0U));
    check_silent(lite({"chown", "5:6", "x"}));
    check_silent(lite({"chown", "root:", "x"}));  // of the login group
    CHECK(owner() == std::pair(0U, 0U));
}

TEST_CASE("lite rename", "[lite][change]") {
    machine lite;
    lite({"alloc", "x", "1"});
    lite({"alloc", "y", "1"});
    check_silent(lite({"rename", "x", "z"}));
    CHECK(lite.cluster.find("z"));
    CHECK_FALSE(lite.cluster.find("x"));
    check_failure(lite({"rename", "z", "y"}), "rename z to y: an LMR of that name exists");
    check_failure(lite({"rename", "x", "w"}), "rename x to w: no LMR of that name");
}

TEST_CASE("lite resize", "[lite][change]") {
    machine lite;
    lite({"alloc", "x", "4096"});
    lite({"write", "x", "0", "kept"});
    check_silent(lite({"resize", "x", "1M"}));
    CHECK(lite.cluster.find("x")->info.length == 1 << 20);
    check_silent(lite({"resize", "x", "2"}));
    CHECK(lite({"read", "x"}).out == "ke");
    check_failure(lite({"resize", "x", "2G"}),
                  "resize x: the memory that the node gives to LMRs is used up");
    check_failure(lite({"resize", "nobody", "1"}), "resize nobody: no LMR of that name");
}

TEST_CASE("lite move goes in steps that end at multiples of their size", "[lite][change]") {
    machine lite;
    lite({"alloc", "x", "40M"});
    moves seen;
    int fail_at = -1;
    lite.cluster.intercept = [&](unsigned long request, void* arg) -> std::optional<int> {
        if (request != LITE_IOC_MOVE)
            return std::nullopt;
        auto& move = *static_cast<lite_ioc_move*>(arg);
        seen.emplace_back(move.offset, move.length);
        if (static_cast<int>(seen.size()) != fail_at)
            return std::nullopt;
        move.moved = 1 << 20;
        return -EHOSTDOWN;
    };
    constexpr std::uint64_t mb = 1 << 20;
    check_silent(lite({"move", "x", "--node", "2"}));
    CHECK(seen == moves{{0, 16 * mb}, {16 * mb, 16 * mb}, {32 * mb, 8 * mb}});
    CHECK(lite.cluster.find("x")->nodes == std::vector<std::uint32_t>{2});

    seen.clear();
    check_silent(lite({"move", "x", "-n", "3", "-o", "100", "-l", "17M"}));
    CHECK(seen == moves{{100, 16 * mb - 100}, {16 * mb, mb + 100}});
    CHECK(lite.cluster.find("x")->nodes == std::vector<std::uint32_t>{3, 2});
    CHECK(lite({"move", "x", "-n", "1", "-v"}).out == "x: 41943040 bytes moved to node 1\n");

    seen.clear();
    fail_at = 2;
    check_failure(lite({"move", "x", "-n", "2"}),
                  "move x: the node is down; 17825792 of 41943040 bytes were moved");

    check_failure(lite({"move", "x", "-n", "2", "-o", "1", "-l", "40M"}),
                  "move x: offset 1 + length 41943040 is beyond the end (41943040 bytes)");
    check_failure(lite({"move", "nobody", "-n", "2"}), "move nobody: no LMR of that name");
    check_failure(lite({"move", "x", "-n", "9"}),
                  "move x: no node of that id in this cluster; 0 of 41943040 bytes were moved");
    // With nothing to move, the command makes no request.
    seen.clear();
    check_silent(lite({"move", "x", "-n", "2", "-o", "40M"}));
    CHECK(seen.empty());
}

TEST_CASE("lite move stops between two steps, and says how far it is", "[lite][change]") {
    machine lite;
    lite({"alloc", "x", "40M"});
    int calls = 0;
    lite.cluster.intercept = [&](unsigned long request, void*) -> std::optional<int> {
        if (request == LITE_IOC_MOVE && ++calls == 2)
            ::raise(SIGINT);
        return std::nullopt;
    };
    const capture out;
    const capture err;
    lite.env.io = {0, out.fd(), err.fd()};
    int signal = 0;
    try {
        tools::run_lite({"move", "x", "-n", "2"}, lite.env);
    } catch (const tools::interrupted& e) {
        signal = e.signal;
    }
    CHECK(signal == SIGINT);
    CHECK(calls == 2);
    CHECK(err.text() == "lite: move x: interrupted; 33554432 of 41943040 bytes were moved\n");
    CHECK(lite.cluster.find("x")->nodes == std::vector<std::uint32_t>{2, 1});
}
