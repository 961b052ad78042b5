// SPDX-License-Identifier: MIT
// The administration interface against malformed messages and callers without the required
// capability. Runs on a node of a cluster and changes nothing there: every command here is refused,
// or only queries.
#include "../common/catch.hpp"
#include "../common/env.hpp"
#include "../common/genl.hpp"
#include "../common/process.hpp"

#include <lite/cluster.hpp>

#include <arpa/inet.h>
#include <linux/capability.h>
#include <linux/netlink.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

using namespace lite_test;

namespace {

constexpr std::array<std::byte, 4> kLoopback{std::byte{127}, std::byte{0}, std::byte{0},
                                             std::byte{1}};
constexpr std::uint16_t kFreePort = 28500;
constexpr std::uint32_t kNoSuchIndex = 4000;

struct Netlink {
    GenlSocket socket;

    std::uint32_t index() const { return env().indexes.front(); }

    // START with an address of this machine that has no RDMA device: refused in any case, and with
    // that error if all else is right. So a bad attribute shows as a different error.
    static GenlRequest start() {
        auto request = bare_start();
        request.put(LITE_A_ADDR, kLoopback).put_value(LITE_A_PORT, kFreePort);
        return request;
    }

    // Only with the attributes that every START must have.
    static GenlRequest bare_start() {
        GenlRequest request(LITE_CMD_NODE_START);
        request.put(LITE_A_SECRET, std::as_bytes(std::span("secret", 6)));
        return request;
    }

    std::size_t nodes() {
        return socket.ask(GenlRequest(LITE_CMD_NODE_GET, NLM_F_DUMP)).messages.size();
    }
};

}  // namespace

TEST_CASE_METHOD(Netlink, "netlink: changes need CAP_NET_ADMIN", "[netlink]") {
    for (const std::uint8_t command :
         {LITE_CMD_NODE_START, LITE_CMD_NODE_STOP, LITE_CMD_NODE_JOIN, LITE_CMD_NODE_LEAVE}) {
        INFO("command " << int{command});
        CHECK_NOTHROW(as_user({1000, 1000}, [&] {
            GenlSocket own;
            GenlRequest request(command);
            request.put_value(LITE_A_INDEX, kNoSuchIndex).put(LITE_A_ADDR, kLoopback);
            expect_equal(own.ask(request).error, err(EPERM), "as an ordinary user");
        }));
    }
}

TEST_CASE_METHOD(Netlink, "netlink: START needs CAP_SYS_RAWIO, as it opens all memory",
                 "[netlink]") {
    const auto without = [](std::uint32_t capability) {
        __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
        std::array<__user_cap_data_struct, 2> sets{};
        expect(::syscall(SYS_capget, &header, sets.data()) == 0, "capget");
        auto& set = sets[CAP_TO_INDEX(capability)];
        set.effective &= ~CAP_TO_MASK(capability);
        set.permitted &= ~CAP_TO_MASK(capability);
        expect(::syscall(SYS_capset, &header, sets.data()) == 0, "capset");
    };
    const auto expect_refused = [](GenlSocket& own) {
        const auto answer = own.ask(start());
        expect_equal(answer.error, err(EPERM), "START");
        expect(answer.text.find("CAP_SYS_RAWIO") != std::string::npos, answer.text);
    };
    CHECK_NOTHROW(in_child([&] {
        without(CAP_SYS_RAWIO);
        GenlSocket own;
        expect_refused(own);
        // A socket of a process with the capability does not help either.
        expect_refused(socket);
        // For all other changes CAP_NET_ADMIN is enough.
        GenlRequest stop(LITE_CMD_NODE_STOP);
        expect_equal(own.ask(stop.put_value(LITE_A_INDEX, kNoSuchIndex)).error, err(ENODEV),
                     "STOP");
    }));
    CHECK(socket.ask(start()).error != err(EPERM));
}

TEST_CASE_METHOD(Netlink, "netlink: START needs a secret, or INSECURE", "[netlink]") {
    GenlRequest neither(LITE_CMD_NODE_START);
    neither.put(LITE_A_ADDR, kLoopback).put_value(LITE_A_PORT, kFreePort);
    const auto missing = socket.ask(neither);
    CHECK(missing.error == err(ENOKEY));
    CHECK(missing.text.find("secret") != std::string::npos);
    // The command goes on to the address, which has no RDMA device.
    const auto refused = socket.ask(start()).error;
    CHECK(socket.ask(neither.put(LITE_A_INSECURE, {})).error == refused);
    CHECK(refused != err(ENOKEY));
    CHECK(socket.ask(start().put(LITE_A_INSECURE, {})).error == err(EINVAL));
}

TEST_CASE_METHOD(Netlink, "netlink: all users may query", "[netlink]") {
    CHECK_NOTHROW(as_user({1000, 1000}, [&] {
        GenlSocket own;
        for (const std::uint8_t command :
             {LITE_CMD_NODE_GET, LITE_CMD_PEER_GET, LITE_CMD_STATS_GET}) {
            const auto answer =
                own.ask(GenlRequest(command, NLM_F_DUMP).put_value(LITE_A_INDEX, index()));
            expect_equal(answer.error, ok, "dump by an ordinary user");
            expect(!answer.messages.empty(), "an answer");
        }
        const auto one = own.ask(GenlRequest(LITE_CMD_NODE_GET).put_value(LITE_A_INDEX, index()));
        expect_equal(one.error, ok, "one node");
    }));
}

TEST_CASE_METHOD(Netlink, "netlink: a node reports its options, but never the secret",
                 "[netlink]") {
    const auto answer = socket.ask(GenlRequest(LITE_CMD_NODE_GET).put_value(LITE_A_INDEX, index()));
    REQUIRE(answer.error == ok);
    CHECK(answer.value<std::uint32_t>(LITE_A_INDEX) == index());
    CHECK(answer.value<std::uint16_t>(LITE_A_NODE_ID) == env().self);
    CHECK(answer.value<std::uint8_t>(LITE_A_STATE) == LITE_NODE_UP);
    CHECK(answer.value<std::uint64_t>(LITE_A_INCARNATION).value_or(0) != 0);
    CHECK(answer.find(LITE_A_ADDR));
    CHECK_FALSE(answer.find(LITE_A_INSECURE));
    CHECK(answer.value<std::uint16_t>(LITE_A_PORT).value_or(0) != 0);
    for (const std::uint8_t command : {LITE_CMD_NODE_GET, LITE_CMD_PEER_GET, LITE_CMD_STATS_GET}) {
        const auto dump =
            socket.ask(GenlRequest(command, NLM_F_DUMP).put_value(LITE_A_INDEX, index()));
        CHECK_FALSE(dump.find(LITE_A_SECRET));
    }
}

TEST_CASE_METHOD(Netlink, "netlink: the members are those of the cluster, this node among them",
                 "[netlink]") {
    const auto dump =
        socket.ask(GenlRequest(LITE_CMD_PEER_GET, NLM_F_DUMP).put_value(LITE_A_INDEX, index()));
    REQUIRE(dump.error == ok);
    CHECK(dump.messages.size() == 1 + env().remote.size());
    CHECK(dump.find(LITE_A_SELF));
}

TEST_CASE_METHOD(Netlink, "netlink: a node that does not exist is ENODEV", "[netlink]") {
    for (const std::uint8_t command :
         {LITE_CMD_NODE_STOP, LITE_CMD_NODE_JOIN, LITE_CMD_NODE_LEAVE, LITE_CMD_NODE_GET}) {
        INFO("command " << int{command});
        GenlRequest request(command);
        request.put_value(LITE_A_INDEX, kNoSuchIndex).put(LITE_A_ADDR, kLoopback);
        CHECK(socket.ask(request).error == err(ENODEV));
    }
    for (const std::uint8_t command : {LITE_CMD_PEER_GET, LITE_CMD_STATS_GET}) {
        INFO("dump " << int{command});
        CHECK(socket.ask(GenlRequest(command, NLM_F_DUMP).put_value(LITE_A_INDEX, kNoSuchIndex))
                  .error == err(ENODEV));
    }
}

TEST_CASE_METHOD(Netlink, "netlink: an unknown command is EOPNOTSUPP", "[netlink]") {
    const auto command = GENERATE(as<std::uint8_t>{}, 0, LITE_CMD_MAX + 1, 200, 255);
    CHECK(socket.ask(GenlRequest(command)).error == err(EOPNOTSUPP));
}

TEST_CASE_METHOD(Netlink, "netlink: EVENT is no command", "[netlink]") {
    CHECK(socket.ask(GenlRequest(LITE_CMD_EVENT)).error == err(EOPNOTSUPP));
}

TEST_CASE_METHOD(Netlink, "netlink: reserved bytes of the header must be 0", "[netlink]") {
    std::vector<GenlRequest> requests{start()};
    for (const std::uint8_t command : {LITE_CMD_NODE_STOP, LITE_CMD_NODE_JOIN, LITE_CMD_NODE_LEAVE,
                                       LITE_CMD_NODE_GET, LITE_CMD_QOS_SET})
        requests.emplace_back(command);
    for (const std::uint8_t command :
         {LITE_CMD_NODE_GET, LITE_CMD_PEER_GET, LITE_CMD_STATS_GET, LITE_CMD_QOS_GET})
        requests.emplace_back(command, NLM_F_DUMP);
    for (auto& request : requests) {
        INFO("command " << int{request.command()} << " with flags " << request.flags());
        if (request.command() != LITE_CMD_NODE_START)
            request.put_value(LITE_A_INDEX, kNoSuchIndex).put(LITE_A_ADDR, kLoopback);
        CHECK(socket.ask(request).text.find("reserved") == std::string::npos);
        for (const std::uint16_t value : std::array<std::uint16_t, 3>{1, 0x100, 0xffff}) {
            const auto answer = socket.ask(request.put_reserved(value));
            CHECK(answer.error == err(EINVAL));
            CHECK(answer.text.find("reserved") != std::string::npos);
        }
    }
}

TEST_CASE_METHOD(Netlink, "netlink: an unknown attribute is refused", "[netlink]") {
    auto request = start();
    request.put_value(static_cast<std::uint16_t>(LITE_A_MAX + 1), std::uint32_t{1});
    CHECK(socket.ask(request).error == err(EINVAL));
}

TEST_CASE_METHOD(Netlink, "netlink: attributes of a wrong size are refused", "[netlink]") {
    const auto before = nodes();
    struct Sized {
        std::uint16_t type;
        std::size_t right;
    };
    const Sized attribute =
        GENERATE(Sized{LITE_A_INDEX, 4}, Sized{LITE_A_NODE_ID, 2}, Sized{LITE_A_PORT, 2},
                 Sized{LITE_A_NUM_QPS, 1}, Sized{LITE_A_MEM_LIMIT, 8}, Sized{LITE_A_UID_LIMIT, 8},
                 Sized{LITE_A_HANDLE_LIMIT, 4}, Sized{LITE_A_HEARTBEAT_MS, 4},
                 Sized{LITE_A_DEAD_MS, 4}, Sized{LITE_A_OP_TIMEOUT_MS, 4}, Sized{LITE_A_MODE, 4});
    for (const std::size_t size :
         {std::size_t{0}, attribute.right - 1, attribute.right + 1, std::size_t{64}}) {
        INFO("attribute " << attribute.type << " of " << size << " bytes");
        auto request = start();
        request.put(attribute.type, std::vector<std::byte>(size, std::byte{1}));
        const auto e = socket.ask(request).error;
        CHECK((e == err(EINVAL) || e == err(ERANGE)));
    }
    CHECK(nodes() == before);
}

TEST_CASE_METHOD(Netlink, "netlink: addresses have 4 or 16 bytes", "[netlink]") {
    const auto size = GENERATE(as<std::size_t>{}, 0, 1, 3, 5, 15, 17, 28, 200);
    INFO(size << " bytes");
    auto request = bare_start();
    request.put(LITE_A_ADDR, std::vector<std::byte>(size, std::byte{1}));
    const auto e = socket.ask(request).error;
    CHECK((e == err(EINVAL) || e == err(ERANGE)));
}

TEST_CASE_METHOD(Netlink, "netlink: a START or JOIN without an address is EINVAL", "[netlink]") {
    CHECK(socket.ask(bare_start()).error == err(EINVAL));
    CHECK(socket.ask(GenlRequest(LITE_CMD_NODE_JOIN).put_value(LITE_A_INDEX, index())).error ==
          err(EINVAL));
}

TEST_CASE_METHOD(Netlink, "netlink: secrets have 1 to 64 bytes", "[netlink]") {
    const auto size = GENERATE(as<std::size_t>{}, 0, LITE_SECRET_MAX + 1, 4096);
    auto request = start();
    request.put(LITE_A_SECRET, std::vector<std::byte>(size, std::byte{'s'}));
    const auto e = socket.ask(request).error;
    CHECK((e == err(EINVAL) || e == err(ERANGE)));
}

TEST_CASE_METHOD(Netlink, "netlink: values out of range are refused", "[netlink]") {
    const auto refused = [&](GenlRequest request) {
        const auto e = socket.ask(request).error;
        return e == err(EINVAL) || e == err(ERANGE);
    };
    CHECK(refused(start().put_value(LITE_A_NUM_QPS, std::uint8_t{0})));
    CHECK(refused(start().put_value(LITE_A_NUM_QPS, std::uint8_t{5})));
    CHECK(refused(start().put_value(LITE_A_HEARTBEAT_MS, std::uint32_t{0})));
    CHECK(refused(start().put_value(LITE_A_DEAD_MS, std::uint32_t{0})));
    CHECK(refused(start().put_value(LITE_A_OP_TIMEOUT_MS, std::uint32_t{0})));
    CHECK(refused(start().put_value(LITE_A_HANDLE_LIMIT, std::uint32_t{0})));
}

TEST_CASE_METHOD(Netlink, "netlink: a device name without an end is refused", "[netlink]") {
    auto request = start();
    request.put(LITE_A_DEV, std::vector<std::byte>(300, std::byte{'x'}));
    const auto e = socket.ask(request).error;
    CHECK((e == err(EINVAL) || e == err(ERANGE)));
}

TEST_CASE_METHOD(Netlink, "netlink: START says what is wrong, in words too", "[netlink]") {
    const auto no_device = socket.ask(start().put_string(LITE_A_DEV, "no-such-device"));
    CHECK(no_device.error == err(ENODEV));
    CHECK_FALSE(no_device.text.empty());

    auto elsewhere = bare_start();
    elsewhere.put(LITE_A_ADDR,
                  std::array{std::byte{192}, std::byte{0}, std::byte{2}, std::byte{1}});
    const auto not_ours = socket.ask(elsewhere);
    CHECK(not_ours.error == err(EADDRNOTAVAIL));
    CHECK_FALSE(not_ours.text.empty());

    const auto node = socket.ask(GenlRequest(LITE_CMD_NODE_GET).put_value(LITE_A_INDEX, index()));
    const auto address = node.find(LITE_A_ADDR);
    REQUIRE(address);
    auto again = bare_start();
    again.put(LITE_A_ADDR, *address)
        .put_value(LITE_A_PORT, node.value<std::uint16_t>(LITE_A_PORT).value_or(0));
    const auto taken = socket.ask(again);
    CHECK(taken.error == err(EADDRINUSE));
    CHECK_FALSE(taken.text.empty());

    auto same_index = bare_start();
    same_index.put(LITE_A_ADDR, *address)
        .put_value(LITE_A_PORT, kFreePort)
        .put_value(LITE_A_INDEX, index());
    CHECK(socket.ask(same_index).error == err(EEXIST));
}

TEST_CASE_METHOD(Netlink, "netlink: attributes cut off or nested in nonsense are refused",
                 "[netlink]") {
    const auto before = nodes();
    const std::vector<std::vector<std::uint16_t>> heads{
        {3, LITE_A_INDEX},
        {0, LITE_A_INDEX},
        {0xffff, LITE_A_INDEX},
        {100, LITE_A_ADDR},
    };
    for (const auto& head : heads) {
        auto request = bare_start();
        request.put_raw(std::as_bytes(std::span(head)));
        const auto e = socket.ask(request).error;
        INFO("length " << head[0] << ": " << e);
        CHECK((e == err(EINVAL) || e == err(ERANGE)));
    }
    CHECK(nodes() == before);
}

TEST_CASE_METHOD(Netlink, "netlink: joining an absent node fails in time", "[netlink]") {
    // This node has peers, which alone forbids the join.
    GenlRequest request(LITE_CMD_NODE_JOIN);
    request.put_value(LITE_A_INDEX, index())
        .put(LITE_A_ADDR, kLoopback)
        .put_value(LITE_A_TIMEOUT_MS, std::int32_t{100});
    CHECK(socket.ask(request).error == err(EBUSY));
}

TEST_CASE_METHOD(Netlink, "netlink: JOIN takes the time-outs of all LITE", "[netlink]") {
    const auto join_for = [&](std::int32_t ms) {
        GenlRequest request(LITE_CMD_NODE_JOIN);
        request.put_value(LITE_A_INDEX, index())
            .put(LITE_A_ADDR, kLoopback)
            .put_value(LITE_A_TIMEOUT_MS, ms);
        return socket.ask(request).error;
    };
    // This node has peers.
    for (const int ms : {1, LITE_TIMEOUT_MAX, LITE_NOWAIT, LITE_FOREVER, LITE_TIMEOUT_DEFAULT})
        CHECK(join_for(ms) == err(EBUSY));
    for (const int ms : {-3, INT_MIN, LITE_TIMEOUT_MAX + 1, INT_MAX})
        CHECK(join_for(ms) == err(EINVAL));
}

// On a node of its own, which the test stops. LITE_TEST_ABSENT is an address that never answers.
TEST_CASE_METHOD(Netlink, "netlink: JOIN is only begun, and ends at the latest with the node",
                 "[.join]") {
    std::array<std::byte, 4> absent{};
    REQUIRE(::inet_pton(AF_INET, std::getenv("LITE_TEST_ABSENT"), absent.data()) == 1);
    GenlRequest join(LITE_CMD_NODE_JOIN);
    join.put_value(LITE_A_INDEX, index())
        .put(LITE_A_ADDR, absent)
        .put_value(LITE_A_TIMEOUT_MS, std::int32_t{LITE_FOREVER});
    const auto begun = socket.ask(join);
    REQUIRE(begun.error == ok);
    const auto number = begun.value<std::uint32_t>(LITE_A_JOIN);
    REQUIRE(number.value_or(0) > 0);
    // The answer came before the attempt has ended, which has no time-out.
    const auto node = socket.ask(GenlRequest(LITE_CMD_NODE_GET).put_value(LITE_A_INDEX, index()));
    CHECK(node.value<std::uint8_t>(LITE_A_STATE) == LITE_NODE_JOINING);
    CHECK(node.value<std::uint32_t>(LITE_A_JOIN) == number);
    CHECK_FALSE(node.find(LITE_A_JOIN_ERROR));
    // Only one join at a time; and a caller that waits for it in the library learns that the node
    // is gone.
    CHECK(socket.ask(join).error == err(EBUSY));
    CHECK(socket.ask(GenlRequest(LITE_CMD_NODE_LEAVE).put_value(LITE_A_INDEX, index())).error ==
          err(EBUSY));
    CHECK(socket.ask(GenlRequest(LITE_CMD_NODE_STOP).put_value(LITE_A_INDEX, index())).error == ok);
    const GenlRequest get(LITE_CMD_NODE_GET);
    wait_until("it has stopped", [&] {
        return socket.ask(GenlRequest(get).put_value(LITE_A_INDEX, index())).error == err(ENODEV);
    });
}

// On a node alone in its cluster; LITE_TEST_MEMBER is the address of another node.
TEST_CASE_METHOD(Netlink, "liblite joins, lists the members, and leaves", "[.join]") {
    const int node = static_cast<int>(index());
    const std::string address = std::getenv("LITE_TEST_MEMBER");
    const auto alone = lite::members(node);
    REQUIRE(alone.size() == 1);
    CHECK(alone[0].flags == LITE_MEMBER_SELF);

    const auto joined = [&] {
        const auto now = lite::members(node);
        const auto up = [](const lite::member& m) { return m.state == LITE_NODE_UP; };
        return now.size() == 2 && std::all_of(now.begin(), now.end(), up);
    };
    lite::join(address, 0, std::chrono::seconds(15), node);
    // On a busy machine it may still be connecting to the other node.
    REQUIRE_NOTHROW(wait_until("it has joined", joined));
    const auto members = lite::members(node);
    REQUIRE(members.size() == 2);
    CHECK(members[0].id < members[1].id);
    CHECK((members[0].flags & LITE_MEMBER_SELF) != (members[1].flags & LITE_MEMBER_SELF));
    const auto& other = members[members[0].flags & LITE_MEMBER_SELF ? 1 : 0];
    CHECK(other.state == LITE_NODE_UP);
    CHECK(other.address == address);
    CHECK(other.port == LITE_DEFAULT_PORT);
    CHECK(other.incarnation != 0);
    std::size_t count = 0;
    CHECK(lite_members(node, nullptr, 0, &count) == 0);
    CHECK(count == 2);

    CHECK(lite_join(node, address.c_str(), 0, LITE_TIMEOUT_DEFAULT) == -EBUSY);
    CHECK_NOTHROW(as_user({1000, 1000}, [&] {
        expect_equal(lite_leave(node), -EPERM, "leave by an ordinary user");
        expect_equal(lite_join(node, address.c_str(), 0, LITE_TIMEOUT_DEFAULT), -EPERM,
                     "join by one");
        expect_equal(lite::members(node).size(), std::size_t{2}, "members");
    }));
    lite::leave(node);
    CHECK(lite_leave(node) == -ENOTCONN);
    CHECK(lite_join(node, address.c_str(), kFreePort, LITE_TIMEOUT_DEFAULT) == -ECONNREFUSED);
    CHECK(lite_join(node, "nowhere", 0, LITE_TIMEOUT_DEFAULT) == -EINVAL);
    CHECK(lite_join(node, address.c_str(), kFreePort, LITE_FOREVER) == -ECONNREFUSED);
    const int soon = lite_join(node, address.c_str(), kFreePort, 1);
    CHECK((soon == -ETIMEDOUT || soon == -ECONNREFUSED));
    CHECK(lite_join(node, address.c_str(), 0, -3) == -EINVAL);
    CHECK(lite_join(kNoSuchIndex, address.c_str(), 0, LITE_TIMEOUT_DEFAULT) == -ENODEV);
    CHECK_THROWS_AS(lite::members(kNoSuchIndex), lite::error);
    CHECK(lite_join(node, address.c_str(), 0, LITE_NOWAIT) == -EINPROGRESS);
    wait_until("it has joined again", joined);
}

TEST_CASE_METHOD(Netlink, "netlink: statistics have names and values", "[netlink]") {
    const auto dump =
        socket.ask(GenlRequest(LITE_CMD_STATS_GET, NLM_F_DUMP).put_value(LITE_A_INDEX, index()));
    REQUIRE(dump.error == ok);
    std::vector<std::string> names;
    for (const auto& message : dump.messages) {
        const GenlAnswer one{ok, "", {message}};
        const auto name = one.find(LITE_A_STAT_NAME);
        REQUIRE(name);
        CHECK(one.value<std::uint64_t>(LITE_A_STAT_VALUE));
        names.emplace_back(reinterpret_cast<const char*>(name->data()));
    }
    for (const char* wanted :
         {"handles", "mappings", "lmrs", "lmr_bytes", "allocs", "dma_mapped_pages", "ops_inflight",
          "slots_busy", "pinned_pages", "peers", "conns", "calls_inflight", "files", "ctxs"}) {
        INFO(wanted);
        CHECK(std::count(names.begin(), names.end(), wanted) == 1);
    }
}
