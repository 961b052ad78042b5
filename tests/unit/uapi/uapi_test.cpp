// SPDX-License-Identifier: MIT
//
// The layout of the ABI in a C++ program; uapi_test.c has the same for C.

#include <lite/lite.h>
#include <lite/uring.h>
#include <uapi/lite_netlink.h>
#include <uapi/lite_order.h>

#include "catch.hpp"

#include <cstddef>
#include <type_traits>

#undef CHECK
#define CHECK(condition, text) static_assert(condition, text)
#include "uapi_layout.h"

static_assert(std::is_trivially_copyable_v<lite_op>);
static_assert(noexcept(lite_open(0, nullptr)));

TEST_CASE("the generic netlink ABI keeps its numbers", "[uapi]") {
    // Attributes and commands are only ever appended.
    REQUIRE(LITE_CMD_NODE_START == 1);
    REQUIRE(LITE_CMD_NODE_STOP == 2);
    REQUIRE(LITE_CMD_NODE_JOIN == 3);
    REQUIRE(LITE_CMD_NODE_LEAVE == 4);
    REQUIRE(LITE_CMD_NODE_GET == 5);
    REQUIRE(LITE_CMD_PEER_GET == 6);
    REQUIRE(LITE_CMD_STATS_GET == 7);
    REQUIRE(LITE_CMD_EVENT == 8);
    REQUIRE(LITE_CMD_QOS_SET == 9);
    REQUIRE(LITE_CMD_QOS_GET == 10);
    REQUIRE(LITE_A_INDEX == 1);
    REQUIRE(LITE_A_SECRET == 8);
    REQUIRE(LITE_A_TIMEOUT_MS == 16);
    REQUIRE(LITE_A_SELF == 20);
    REQUIRE(LITE_A_STAT_VALUE == 22);
    REQUIRE(LITE_A_INSECURE == 25);
    REQUIRE(LITE_A_JOIN_WHY == 32);
    REQUIRE(LITE_A_CEILING == 36);
}
