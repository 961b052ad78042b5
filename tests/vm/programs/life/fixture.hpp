// SPDX-License-Identifier: MIT
// Shared by the tests of lifetimes.
#pragma once

#include "../common/catch.hpp"
#include "../common/data/pattern.hpp"
#include "../common/env.hpp"
#include "../common/memory.hpp"
#include "../common/process.hpp"
#include "../common/raw.hpp"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <string>
#include <vector>

namespace lite_test {

struct Life {
    Device dev{env().indexes.front()};

    Life() { wait_until_unused(dev); }
    // The memory that this test took at the first node is freed.
    void check_nothing_used() const { REQUIRE_NOTHROW(wait_until_unused(dev)); }
};

struct LifeEverywhere : Life {
    Placement where = GENERATE(from_range(env().placements()));
};

// For storms.
struct LifeSomewhere : Life {
    Placement where = GENERATE(from_range(env().some_placements(test_name())));
};

// The device for the @i-th of several users: they use the nodes of this machine in turn.
inline Device device_for(std::size_t i) { return Device(env().indexes[i % env().indexes.size()]); }

inline std::size_t anonymous_lmrs(const Device& dev) {
    const auto all = dev.list();
    return static_cast<std::size_t>(std::count_if(
        all.begin(), all.end(), [](const auto& info) { return info.name[0] == '\0'; }));
}

}  // namespace lite_test
