// SPDX-License-Identifier: MIT
//
// Membership through the library, without a loaded module: the library refuses invalid arguments,
// and reports the missing module. Tests on virtual clusters cover the answers.

#include <lite/cluster.hpp>

#include "catch.hpp"

#include <cerrno>
#include <chrono>
#include <climits>
#include <cstddef>

TEST_CASE("lite_members, lite_join and lite_leave without a node", "[liblite]") {
    std::size_t count = 7;
    for (const int index : {-2, 1 << 20}) {
        CHECK(lite_members(index, nullptr, 0, &count) == -EINVAL);
        CHECK(lite_join(index, "10.0.0.1", 0, LITE_TIMEOUT_DEFAULT) == -EINVAL);
        CHECK(lite_leave(index) == -EINVAL);
    }
    constexpr int unused = 4000;
    CHECK(lite_members(unused, nullptr, 0, &count) == -ENODEV);
    for (const int ms : {1, LITE_TIMEOUT_MAX, LITE_NOWAIT, LITE_FOREVER, LITE_TIMEOUT_DEFAULT})
        CHECK(lite_join(unused, "10.0.0.1", 0, ms) == -ENODEV);
    for (const int ms : {-3, INT_MIN, LITE_TIMEOUT_MAX + 1, INT_MAX})
        CHECK(lite_join(unused, "10.0.0.1", 0, ms) == -EINVAL);
    CHECK(lite_leave(unused) == -ENODEV);
    CHECK(count == 7);
    CHECK_THROWS_AS(lite::members(unused), lite::error);
    CHECK_THROWS_AS(lite::join("10.0.0.1", 0, {}, unused), lite::error);
    CHECK_THROWS_AS(lite::leave(unused), lite::error);
    const auto error_of = [&](lite::timeout limit) {
        try {
            lite::join("10.0.0.1", 0, limit, unused);
        } catch (const lite::error& e) {
            return e.code().value();
        }
        return 0;
    };
    CHECK(error_of(lite::forever) == ENODEV);
    CHECK(error_of(lite::no_wait) == ENODEV);
    CHECK(error_of(lite::timeout(-3)) == ENODEV);
}

TEST_CASE("lite::timeout as the C functions want it", "[liblite]") {
    using lite::timeout;
    using lite::detail::milliseconds;
    CHECK(milliseconds(lite::no_wait) == LITE_NOWAIT);
    CHECK(milliseconds(lite::forever) == LITE_FOREVER);
    CHECK(milliseconds(lite::default_timeout) == LITE_TIMEOUT_DEFAULT);
    CHECK(milliseconds(timeout(1500)) == 1500);
    CHECK(milliseconds(std::chrono::hours(48)) == LITE_TIMEOUT_MAX);
    // Deadlines that have passed, some of them by as much as a constant of the C API.
    for (const int ms : {0, -1, -2, -5, INT_MIN})
        CHECK(milliseconds(timeout(ms)) == 1);
}
