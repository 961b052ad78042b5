// SPDX-License-Identifier: MIT
//
// The commands of "litectl" without a kernel: their requests, their use of the
// answers, and their failures.

#include "litectl_machine.hpp"

#include "catch.hpp"

#include <nlohmann/json.hpp>

#include <uapi/lite.h>

#include <cerrno>
#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <unistd.h>

using namespace std::string_literals;
using nlohmann::json;
using tools::message;
using namespace litectl_test;

namespace {

void check_usage(const result& r, const std::string& text) {
    CHECK(r.status == 2);
    CHECK(r.out.empty());
    CHECK(r.err == "litectl: " + text + "\nTry 'litectl --help' for more information.\n");
}

void check_failure(const result& r, const std::string& text, int status = 1) {
    CHECK(r.status == status);
    CHECK(r.err == "litectl: " + text + "\n");
}

std::string text_of(const message& message, std::uint16_t attr) {
    const auto bytes = message.bytes(attr);
    REQUIRE(bytes);
    return {reinterpret_cast<const char*>(bytes->data()), bytes->size()};
}

// While it lives, a test that runs as root is user 65534, with access to @directory.
class unprivileged {
  public:
    explicit unprivileged(const std::string& directory) {
        std::filesystem::permissions(directory, std::filesystem::perms(0755));
        REQUIRE((::geteuid() != 0 || ::seteuid(65534) == 0));
    }
    unprivileged(const unprivileged&) = delete;
    unprivileged& operator=(const unprivileged&) = delete;
    ~unprivileged() {
        if (::getuid() == 0)
            CHECK(::seteuid(0) == 0);
    }
};

message node(std::uint16_t id, std::uint8_t state, const char* address) {
    message node(LITE_CMD_PEER_GET);
    node.put_u16(LITE_A_NODE_ID, id);
    node.put_u8(LITE_A_STATE, state);
    node.put_bytes(LITE_A_ADDR, tools::ip_address::from_text(address)->bytes());
    node.put_u16(LITE_A_PORT, 18500);
    node.put_u64(LITE_A_INCARNATION, 1000U + id);
    return node;
}

}  // namespace

TEST_CASE("attributes survive the round trip through a message", "[litectl]") {
    message m(LITE_CMD_NODE_GET);
    m.put_u8(LITE_A_STATE, 2);
    m.put_u16(LITE_A_PORT, 18500);
    m.put_u32(LITE_A_INDEX, 3);
    m.put_u64(LITE_A_MEM_USED, 1ULL << 40);
    m.put_string(LITE_A_DEV, "rxe0");
    m.put_flag(LITE_A_SELF);
    CHECK(m.u8(LITE_A_STATE) == 2);
    CHECK(m.u16(LITE_A_PORT) == 18500);
    CHECK(m.u32(LITE_A_INDEX) == 3U);
    CHECK(m.u64(LITE_A_MEM_USED) == 1ULL << 40);
    CHECK(m.string(LITE_A_DEV) == "rxe0");
    CHECK(text_of(m, LITE_A_DEV) == "rxe0\0"s);
    CHECK(m.flag(LITE_A_SELF));
    CHECK_FALSE(m.flag(LITE_A_ADDR));
    CHECK_FALSE(m.u32(LITE_A_LMRS));
    CHECK_FALSE(m.string(LITE_A_STAT_NAME));
    CHECK_THROWS_AS(m.u16(LITE_A_INDEX), tools::failure);
}

TEST_CASE("litectl: mistakes on the command line", "[litectl]") {
    machine litectl;
    check_usage(litectl({}), "A subcommand is required");
    check_usage(litectl({"frob"}), "'frob' is not a command");
    check_usage(litectl({"join"}), "ADDRESS is required");
    check_usage(litectl({"join", "[::1"}), "ADDRESS: '[::1' is not an address: ']' is missing");
    for (const auto* time : {"0", "24.1h", "4294967295"})
        check_usage(litectl({"join", "10.0.0.1", "--timeout", time}),
                    "--timeout: '" + std::string(time) + "' is out of range (1..86400000 ms)");
    check_usage(litectl({"start", "--qps", "5"}), "--qps: '5' is out of range (1..4)");
    check_usage(litectl({"start", "--id", "0"}), "--id: '0' is out of range (1..65535)");
    check_usage(litectl({"start", "--heartbeat", "0"}),
                "--heartbeat: '0' is out of range (1..4294967295 ms)");
    check_usage(litectl({"start", "--heartbeat", "100", "--dead", "100"}),
                "--dead must be longer than --heartbeat");
    check_usage(litectl({"start", "--insecure", "--secret-file", "x"}),
                "--insecure and --secret-file exclude each other");
    check_usage(litectl({"start", "--mem-limit", "lots"}),
                "--mem-limit: 'lots' is not a size (a whole number, maybe with K, M, G, T or P)");
    CHECK(litectl({"stop", "now"}).status == 2);
    CHECK(litectl.kernel.asked.empty());
}

TEST_CASE("litectl: help and version", "[litectl]") {
    machine litectl;
    const auto help = litectl({"-h"});
    CHECK(help.status == 0);
    for (const char* command : {"secret", "start", "join", "leave", "stop", "nodes", "status",
                                "stats", "qos", "events"}) {
        CAPTURE(command);
        CHECK(help.out.find("\n  "s + command + ' ') != std::string::npos);
        CHECK(litectl({command, "--help"}).status == 0);
    }
    CHECK(litectl({"--version"}).out.starts_with("litectl "));
}

TEST_CASE("litectl start finds the options that are not given", "[litectl]") {
    machine litectl;
    message answer(LITE_CMD_NODE_START);
    answer.put_u32(LITE_A_INDEX, 0);
    answer.put_u16(LITE_A_NODE_ID, 1);
    litectl.kernel.answers = {answer};
    write_file(litectl.world.default_secret, "by default\n");
    const auto r = litectl({"start"});
    CHECK(r.status == 0);
    CHECK(r.out == "/dev/lite0: started on rxe0 at 10.0.0.7:18500 as node 1\n");
    CHECK(r.err.empty());
    REQUIRE(litectl.kernel.asked.size() == 1);
    const auto& asked = litectl.kernel.asked[0];
    CHECK(asked.command() == LITE_CMD_NODE_START);
    CHECK_FALSE(litectl.kernel.dumps[0]);
    CHECK(asked.string(LITE_A_DEV) == "rxe0");
    CHECK(text_of(asked, LITE_A_ADDR) == "\x0a\0\0\x07"s);
    CHECK(asked.u16(LITE_A_PORT) == LITE_DEFAULT_PORT);
    // The kernel chooses everything else.
    CHECK(text_of(asked, LITE_A_SECRET) == "by default");
    CHECK(asked.attributes().size() == 4);
}

TEST_CASE("litectl start passes all its options on", "[litectl]") {
    machine litectl;
    const auto r = litectl({"start",
                            "--dev",
                            "rxe0",
                            "--addr",
                            "[fd00::1]:1234",
                            "--id",
                            "7",
                            "--index",
                            "2",
                            "--secret-file",
                            "-",
                            "--qps",
                            "4",
                            "--mem-limit",
                            "1G",
                            "--root-squash",
                            "--idle",
                            "--mode",
                            "0606",
                            "--uid-limit",
                            "64M",
                            "--handle-limit",
                            "100",
                            "--heartbeat",
                            "200",
                            "--dead",
                            "0.9s",
                            "--op-timeout",
                            "3s",
                            "--orphan-time",
                            "20m"},
                           "top secret\n");
    CHECK(r.status == 0);
    CHECK(r.err.empty());
    CHECK(r.out == "/dev/lite2: started on rxe0 at [fd00::1]:1234\n");
    REQUIRE(litectl.kernel.asked.size() == 1);
    const auto& asked = litectl.kernel.asked[0];
    CHECK(asked.u32(LITE_A_INDEX) == 2U);
    CHECK(asked.bytes(LITE_A_ADDR)->size() == 16);
    CHECK(asked.u16(LITE_A_PORT) == 1234);
    CHECK(asked.u16(LITE_A_NODE_ID) == 7);
    CHECK(text_of(asked, LITE_A_SECRET) == "top secret");
    CHECK(asked.u8(LITE_A_NUM_QPS) == 4);
    CHECK(asked.u64(LITE_A_MEM_LIMIT) == 1ULL << 30);
    CHECK(asked.u64(LITE_A_UID_LIMIT) == 64ULL << 20);
    CHECK(asked.flag(LITE_A_ROOT_SQUASH));
    CHECK(asked.flag(LITE_A_IDLE));
    CHECK(asked.u32(LITE_A_MODE) == 0606);
    CHECK(asked.u32(LITE_A_HANDLE_LIMIT) == 100U);
    CHECK(asked.u32(LITE_A_HEARTBEAT_MS) == 200U);
    CHECK(asked.u32(LITE_A_DEAD_MS) == 900U);
    CHECK(asked.u32(LITE_A_OP_TIMEOUT_MS) == 3000U);
    CHECK(asked.u32(LITE_A_ORPHAN_MS) == 1200000U);
}

TEST_CASE("litectl start without a secret needs --insecure", "[litectl]") {
    machine litectl;
    check_failure(litectl({"start"}),
                  "start: there is no cluster secret: " + litectl.world.default_secret +
                      " does not exist; 'litectl secret' makes one, which all members need (or "
                      "--insecure: without)");
    CHECK(litectl.kernel.asked.empty());
    // With --insecure litectl does not use an existing secret either.
    write_file(litectl.world.default_secret, "by default\n");
    const auto r = litectl({"start", "--insecure"});
    CHECK(r.status == 0);
    CHECK(r.err ==
          "litectl: warning: no cluster secret: any host that reaches port 18500 can join and use "
          "all memory\n");
    REQUIRE(litectl.kernel.asked.size() == 1);
    CHECK(litectl.kernel.asked[0].flag(LITE_A_INSECURE));
    CHECK_FALSE(litectl.kernel.asked[0].bytes(LITE_A_SECRET));
}

TEST_CASE("litectl secret makes a secret for start", "[litectl]") {
    machine litectl;
    const temporary_directory etc;
    litectl.world.default_secret = etc / "lite/secret";
    CHECK(litectl({"secret"}).out ==
          litectl.world.default_secret + ": made; all members need a copy\n");
    CHECK(std::filesystem::status(litectl.world.default_secret).permissions() ==
          std::filesystem::perms(0600));
    CHECK(std::filesystem::status(etc / "lite").permissions() == std::filesystem::perms(0700));
    CHECK(litectl({"start"}).status == 0);
    const auto made = text_of(litectl.kernel.asked.at(0), LITE_A_SECRET);
    CHECK(made.size() == LITE_SECRET_MAX);
    CHECK(made.find_first_not_of("0123456789abcdef") == std::string::npos);
    // It may be in use, so litectl does not replace it.
    check_failure(litectl({"secret"}), litectl.world.default_secret + ": File exists");
    CHECK(litectl({"start"}).status == 0);
    CHECK(text_of(litectl.kernel.asked.at(1), LITE_A_SECRET) == made);

    const auto printed = litectl({"secret", "-"}).out;
    CHECK(printed.size() == LITE_SECRET_MAX + 1);
    CHECK(printed != made + "\n");
    CHECK(litectl({"start", "-s", "-"}, printed).status == 0);
    check_failure(litectl({"secret", etc / "no/such/file"}),
                  etc / "no/such" + ": No such file or directory");
}

TEST_CASE("litectl start and secrets", "[litectl]") {
    machine litectl;
    write_file(litectl.world.default_secret, "by default\n");
    CHECK(litectl({"start"}).err.empty());
    REQUIRE(litectl.kernel.asked.size() == 1);
    CHECK(text_of(litectl.kernel.asked[0], LITE_A_SECRET) == "by default");

    write_file(litectl.world.default_secret, "by default\n", 0644);
    check_failure(litectl({"start"}), litectl.world.default_secret +
                                          ": the secret may be used by others than its owner "
                                          "(mode 0644); 'chmod 600' it");
    // A secret that cannot be read does not count as missing: below a file instead of a
    // directory, behind a broken link, or in a directory without permission.
    const auto by_default =
        std::exchange(litectl.world.default_secret, litectl.devices / "secret/x");
    const auto blind = "start: cannot see whether there is a cluster secret: "s;
    check_failure(litectl({"start"}), blind + litectl.world.default_secret + ": Not a directory");
    litectl.world.default_secret = litectl.devices / "link";
    std::filesystem::create_symlink("nowhere", litectl.world.default_secret);
    check_failure(litectl({"start"}), litectl.world.default_secret + ": No such file or directory");
    const temporary_directory closed;
    litectl.world.default_secret = closed / "secret";
    write_file(litectl.world.default_secret, "unseen\n");
    std::filesystem::permissions(closed.path(), std::filesystem::perms::none);
    {
        // Root may read every directory, so use another effective user.
        const unprivileged as_nobody(litectl.devices.path());
        check_failure(litectl({"start", "-d", "rxe0", "-a", "10.0.0.7"}),
                      blind + litectl.world.default_secret + ": Permission denied");
    }
    std::filesystem::permissions(closed.path(), std::filesystem::perms::owner_all);
    litectl.world.default_secret = by_default;

    const auto other = litectl.devices / "other";
    check_failure(litectl({"start", "-s", other}), other + ": No such file or directory");
    CHECK(litectl.kernel.asked.size() == 1);
}

TEST_CASE("litectl start loads the module", "[litectl]") {
    machine litectl;
    write_file(litectl.world.default_secret, "by default\n");
    litectl.kernel.loaded = false;
    CHECK(litectl({"start"}).status == 0);
    CHECK(litectl.loads == 1);
    CHECK(litectl.kernel.asked.size() == 1);
    CHECK(litectl({"start"}).status == 0);
    CHECK(litectl.loads == 1);

    litectl.kernel.loaded = false;
    litectl.world.load = [] { throw tools::failure("try insmod"); };
    CHECK(litectl({"start"}).err.ends_with("litectl: try insmod\n"));
    // Other commands do not load it.
    check_failure(litectl({"join", "10.0.0.1"}), "the lite module is not loaded");
    check_failure(litectl({"status"}), "the lite module is not loaded");
}

TEST_CASE("litectl repeats the kernel's messages", "[litectl]") {
    machine litectl;
    litectl.kernel.refusal.emplace(EBUSY, "3 LMRs are at home here");
    check_failure(litectl({"join", "10.0.0.1"}), "join: 3 LMRs are at home here");

    const auto reason = [&](int code, const tools::arguments& words) {
        litectl.kernel.refusal.emplace(code, "");
        const auto r = litectl(words);
        CHECK(r.status == 1);
        return r.err;
    };
    CHECK(reason(EPERM, {"leave"}) == "litectl: leave: only root may do that (CAP_NET_ADMIN)\n");
    CHECK(reason(EBUSY, {"join", "10.0.0.1"}) ==
          "litectl: join: this node has LMRs, or is in a cluster already\n");
    CHECK(reason(EKEYREJECTED, {"join", "10.0.0.1"}) ==
          "litectl: join: the cluster has another secret\n");
    CHECK(reason(EPROTONOSUPPORT, {"join", "10.0.0.1"}) ==
          "litectl: join: the other node runs another version of LITE\n");
    CHECK(reason(ENODEV, {"stop"}) ==
          "litectl: stop: no such LITE node on this machine ('litectl status' lists them)\n");
    CHECK(reason(ECONNREFUSED, {"join", "10.0.0.1"}) == "litectl: join: Connection refused\n");
    write_file(litectl.world.default_secret, "by default\n");
    CHECK(reason(ENOKEY, {"start"}) == "litectl: start: a cluster secret is missing\n");
    CHECK(reason(EPERM, {"start"}) ==
          "litectl: start: only root may do that (CAP_NET_ADMIN and CAP_SYS_RAWIO)\n");
    CHECK(reason(EADDRNOTAVAIL, {"start", "--dev", "rxe0", "--addr", "10.9.9.9"})
              .ends_with("litectl: start: not an address of this machine\n"));
}

TEST_CASE("litectl join, leave, stop", "[litectl]") {
    machine litectl;
    const auto event = [](std::uint32_t index) {
        message news(LITE_CMD_EVENT);
        news.put_u32(LITE_A_INDEX, index);
        return news;
    };
    const auto attempt = [](std::uint32_t number, std::optional<std::uint32_t> error) {
        message node(LITE_CMD_NODE_GET);
        node.put_u32(LITE_A_JOIN, number);
        node.put_u16(LITE_A_NODE_ID, 3);
        if (error)
            node.put_u32(LITE_A_JOIN_ERROR, *error);
        return node;
    };
    const tools::arguments words{"join", "10.0.0.1:2000", "--timeout", "500", "--index", "1"};
    // An event of another node, then two of this node: the attempt goes on, then it has ended.
    litectl.kernel.answers = {event(0), event(1), event(1)};
    litectl.kernel.in_turn = {attempt(7, {}), attempt(7, {}), attempt(7, 0)};
    const auto r = litectl(words);
    CHECK(r.status == 0);
    CHECK(r.out == "/dev/lite1: joined as node 3\n");
    CHECK(litectl.kernel.in_turn.empty());
    const auto& join = litectl.kernel.asked[0];
    CHECK(join.command() == LITE_CMD_NODE_JOIN);
    CHECK(text_of(join, LITE_A_ADDR) == "\x0a\0\0\x01"s);
    CHECK(join.u16(LITE_A_PORT) == 2000);
    CHECK(join.u32(LITE_A_TIMEOUT_MS) == 500U);
    CHECK(join.u32(LITE_A_INDEX) == 1U);
    CHECK(litectl.kernel.asked[1].command() == LITE_CMD_NODE_GET);
    CHECK(litectl.kernel.asked[1].u32(LITE_A_INDEX) == 1U);

    // After a loss of events, litectl asks for the state.
    litectl.kernel.answers.clear();
    litectl.kernel.losses = 1;
    litectl.kernel.in_turn = {attempt(8, {}), attempt(8, 0)};
    CHECK(litectl(words).status == 0);
    litectl.kernel.in_turn = {attempt(9, {}), attempt(9, ETIMEDOUT)};
    check_failure(litectl(words), "join: no answer in time", 3);
    // A member that has answered, with a reason.
    litectl.kernel.in_turn = {attempt(9, {}), attempt(9, ETIMEDOUT)};
    litectl.kernel.in_turn[1].put_string(LITE_A_JOIN_WHY, "the member waits for another");
    check_failure(litectl(words), "join: the member waits for another");
    litectl.kernel.in_turn = {attempt(10, {}), attempt(10, EEXIST)};
    litectl.kernel.in_turn[1].put_string(LITE_A_JOIN_WHY, "the kernel knows");
    check_failure(litectl(words), "join: the kernel knows");
    litectl.kernel.in_turn = {attempt(11, {}), attempt(12, {})};
    check_failure(litectl(words), "join: another attempt to join has taken the place of this one");
    litectl.kernel.losses = 0;
    litectl.kernel.in_turn = {attempt(13, {})};
    check_failure(litectl(words), "join: still in progress; 'litectl status' shows how it ends");

    litectl.kernel.asked.clear();
    // The answer to LEAVE; an event of another node; an event while this node is still leaving;
    // an event when it has left.
    const auto in_state = [&](std::uint32_t index, std::uint8_t state) {
        auto news = event(index);
        news.put_u8(LITE_A_STATE, state);
        return news;
    };
    litectl.kernel.answers = {event(1), event(0), event(0), event(0)};
    litectl.kernel.in_turn = {event(0), in_state(0, LITE_NODE_LEAVING),
                              in_state(0, LITE_NODE_IDLE)};
    CHECK(litectl({"leave"}).status == 0);
    CHECK(litectl.kernel.in_turn.empty());
    REQUIRE(litectl.kernel.asked.size() == 3);
    CHECK(litectl.kernel.asked[0].command() == LITE_CMD_NODE_LEAVE);
    CHECK(litectl.kernel.asked[0].attributes().empty());
    CHECK(litectl.kernel.asked[1].command() == LITE_CMD_NODE_GET);

    litectl.kernel.asked.clear();
    litectl.kernel.answers = {in_state(0, LITE_NODE_STOPPED), in_state(4, LITE_NODE_IDLE),
                              in_state(4, LITE_NODE_STOPPED)};
    CHECK(litectl({"stop", "-i", "4"}).status == 0);
    CHECK(litectl.kernel.asked[0].command() == LITE_CMD_NODE_STOP);
    CHECK(litectl.kernel.asked[0].u32(LITE_A_INDEX) == 4U);
}

TEST_CASE("litectl nodes", "[litectl]") {
    machine litectl;
    litectl.kernel.answers = {node(12, LITE_NODE_DOWN, "fd00::c"),
                              node(3, LITE_NODE_UP, "10.0.0.3")};
    litectl.kernel.answers[1].put_flag(LITE_A_SELF);
    CHECK(litectl({"nodes"}).out ==
          "ID  STATE  ADDRESS          INCARNATION  SELF\n"
          " 3  up     10.0.0.3:18500          1003  *\n"
          "12  down   [fd00::c]:18500         1012\n");
    CHECK(litectl.kernel.asked[0].command() == LITE_CMD_PEER_GET);
    CHECK(litectl.kernel.dumps[0]);
    const auto list = json::parse(litectl({"nodes", "-j"}).out);
    REQUIRE(list.size() == 2);
    CHECK(list[0]["id"] == 3);
    CHECK(list[0]["self"] == true);
    CHECK(list[1]["state"] == "down");
    CHECK(list[1]["address"] == "fd00::c");
    CHECK(list[1]["port"] == 18500);
    CHECK(list[1]["self"] == false);
    CHECK(list[1]["insecure"] == false);
    CHECK(litectl({"nodes"}).err.empty());
    litectl.kernel.answers[0].put_flag(LITE_A_INSECURE);
    CHECK(litectl({"nodes"}).err.starts_with("litectl: warning: there is no cluster secret"));
    CHECK(json::parse(litectl({"nodes", "-j"}).out)[1]["insecure"] == true);
}

TEST_CASE("litectl status", "[litectl]") {
    machine litectl;
    auto up = node(3, LITE_NODE_UP, "10.0.0.3");
    up.put_u32(LITE_A_INDEX, 0);
    up.put_string(LITE_A_DEV, "rxe0");
    up.put_u32(LITE_A_PEERS, 2);
    up.put_u32(LITE_A_LMRS, 5);
    up.put_u64(LITE_A_MEM_USED, 1536);
    up.put_u64(LITE_A_MEM_LIMIT, 1ULL << 30);
    litectl.kernel.answers = {up};
    CHECK(litectl({"status"}).out ==
          "INDEX  DEVICE  ID  STATE  ADDRESS         PEERS  LMRS  USED  LIMIT  SECRET\n"
          "    0  rxe0     3  up     10.0.0.3:18500      2     5  1.5K   1.0G  yes\n");
    CHECK(litectl.kernel.dumps[0]);
    CHECK(litectl({"status", "--index", "0"}).status == 0);
    CHECK_FALSE(litectl.kernel.dumps[1]);
    const auto list = json::parse(litectl({"status", "--json"}).out);
    CHECK(list[0]["device"] == "rxe0");
    CHECK(list[0]["mem_used"] == 1536);
    CHECK(list[0]["dead_ms"].is_null());
    CHECK(list[0]["insecure"] == false);
    litectl.kernel.answers[0].put_flag(LITE_A_INSECURE);
    const auto open = litectl({"status"});
    CHECK(open.out.ends_with("  none\n"));
    CHECK(open.err.starts_with("litectl: warning: there is no cluster secret"));
    CHECK(json::parse(litectl({"status", "--json"}).out)[0]["insecure"] == true);

    // A kernel that sends fewer attributes, or unknown values.
    litectl.kernel.answers = {message(LITE_CMD_NODE_GET)};
    litectl.kernel.answers[0].put_u8(LITE_A_STATE, 77);
    CHECK(litectl({"status"}).out.find("state 77") != std::string::npos);
    litectl.kernel.answers = {message(LITE_CMD_NODE_GET)};
    litectl.kernel.answers[0].put_u32(LITE_A_STATE, 2);
    check_failure(litectl({"status"}),
                  "the kernel's answer is malformed (attribute 6 has 4 bytes)");
    litectl.kernel.answers.clear();
    CHECK(litectl({"status"}).out.empty());
    CHECK(litectl({"status", "-j"}).out == "[]\n");
}

TEST_CASE("litectl stats", "[litectl]") {
    machine litectl;
    for (const auto& [name, number] : std::vector<std::pair<std::string, std::uint64_t>>{
             {"reads", 12}, {"write_bytes", INT64_MAX}, {"handles", UINT64_MAX}}) {
        message counter(LITE_CMD_STATS_GET);
        counter.put_string(LITE_A_STAT_NAME, name);
        counter.put_u64(LITE_A_STAT_VALUE, number);
        litectl.kernel.answers.push_back(counter);
    }
    CHECK(litectl({"stats"}).out ==
          "COUNTER                    VALUE\n"
          "reads                         12\n"
          "write_bytes  9223372036854775807\n"
          "handles                        0\n");
    const auto object = json::parse(litectl({"stats", "-j"}).out);
    CHECK(object["reads"] == 12);
    CHECK(object["write_bytes"] == INT64_MAX);
    CHECK(object["handles"] == -1);
}

TEST_CASE("litectl events", "[litectl]") {
    machine litectl;
    for (const std::uint32_t index : {0U, 1U}) {
        message event(LITE_CMD_EVENT);
        event.put_u32(LITE_A_INDEX, index);
        event.put_u16(LITE_A_NODE_ID, 3);
        event.put_u8(LITE_A_STATE, LITE_NODE_DOWN);
        litectl.kernel.answers.push_back(event);
    }
    message ended(LITE_CMD_EVENT);
    ended.put_u32(LITE_A_INDEX, 2);
    ended.put_u16(LITE_A_NODE_ID, 3);
    ended.put_u8(LITE_A_STATE, LITE_NODE_UP);
    ended.put_u8(LITE_A_CAUSE, LITE_END_SILENCE);
    ended.put_u64(LITE_A_FIGURE, 5016);
    litectl.kernel.answers.push_back(ended);
    litectl.kernel.losses = 1;
    const auto r = litectl({"events"});
    CHECK(r.out.find(" /dev/lite2: session with node 3 ended by silence (5016), which is up\n") !=
          std::string::npos);
    CHECK(json::parse(litectl({"events", "-j", "--index", "2"}).out)["cause"] == "silence");
    CHECK(r.out.find(" /dev/lite0: node 3 is down\n") != std::string::npos);
    CHECK(r.out.find(" /dev/lite1: node 3 is down\n") != std::string::npos);
    CHECK(r.err == "litectl: warning: some events were lost\n");

    const auto line = litectl({"events", "-j", "--index", "1"}).out;
    CHECK(line.find('\n') == line.size() - 1);
    const auto object = json::parse(line);
    CHECK(object["index"] == 1);
    CHECK(object["state"] == "down");
    // 2017-10-28T12:34:56.789+00:00
    CHECK(object["time"].get<std::string>().size() == 29);
}
