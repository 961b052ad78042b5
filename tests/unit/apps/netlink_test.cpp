// SPDX-License-Identifier: MIT
//
// litectl's netlink socket with a family that every kernel has: the controller,
// which lists the families. Its commands and attributes have other meanings, but
// requests, answers and refusals have the same form.

#include "netlink/channel.hpp"

#include "catch.hpp"

#include <linux/genetlink.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <memory>
#include <string>

namespace {

using tools::message;

constexpr std::uint8_t get_family = CTRL_CMD_GETFAMILY;
constexpr std::uint16_t family_id = CTRL_ATTR_FAMILY_ID;
constexpr std::uint16_t family_name = CTRL_ATTR_FAMILY_NAME;

message ask_for(const std::string& name) {
    message request(get_family);
    request.put_string(family_name, name);
    return request;
}

}  // namespace

TEST_CASE("a missing family is a missing module", "[netlink]") {
    CHECK_THROWS_AS(tools::connect_netlink("no-such-family"), tools::module_missing);
}

TEST_CASE("a request is answered", "[netlink]") {
    const auto channel = tools::connect_netlink("nlctrl");
    // More than once on the same socket.
    for (int i = 0; i < 3; i++) {
        const auto answers = channel->request(ask_for("nlctrl"), false);
        REQUIRE(answers.size() == 1);
        CHECK(answers[0].string(family_name) == "nlctrl");
        CHECK(answers[0].u16(family_id) == GENL_ID_CTRL);
    }
}

TEST_CASE("a dump is answered completely", "[netlink]") {
    const auto channel = tools::connect_netlink("nlctrl");
    const auto answers = channel->request(message(get_family), true);
    CHECK(std::any_of(answers.begin(), answers.end(), [](const message& answer) {
        return answer.string(family_name) == "nlctrl";
    }));
}

TEST_CASE("a refusal gives a reason, and the socket can be used again", "[netlink]") {
    const auto channel = tools::connect_netlink("nlctrl");
    const auto refused = [&](const message& request, bool dump) {
        try {
            channel->request(request, dump);
        } catch (const tools::refusal& e) {
            return std::pair(e.code(), std::string(e.what()));
        }
        return std::pair(0, std::string());
    };
    CHECK(refused(ask_for("no-such-family"), false).first == ENOENT);
    CHECK(refused(message(200), false).first == EOPNOTSUPP);
    CHECK(refused(message(200), true).first == EOPNOTSUPP);
    // An attribute of a wrong size: kernels since 5.2 add a text.
    message malformed(get_family);
    malformed.put_u8(family_id, 1);
    const auto [code, text] = refused(malformed, false);
    CHECK((code == EINVAL || code == ERANGE));
    CHECK_FALSE(text.empty());
    CHECK(channel->request(ask_for("nlctrl"), false).size() == 1);
}
