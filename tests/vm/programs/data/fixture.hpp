// SPDX-License-Identifier: MIT
// Shared by the tests of data: nodes as processes see them, and regions that are freed at the end
// of the test.
#pragma once

#include "../common/catch.hpp"
#include "../common/data/pattern.hpp"
#include "../common/data/transfers.hpp"
#include "../common/env.hpp"
#include "../common/memory.hpp"
#include "../common/process.hpp"
#include "../common/raw.hpp"

#include <lite/lite.hpp>

#include <cstdint>
#include <string>

namespace lite_test {

// The index for the @i-th of several processes: they use the nodes of this machine in turn.
inline int index_for(std::size_t i) {
    return static_cast<int>(env().indexes[i % env().indexes.size()]);
}

// A node other than the first one, if this machine has several, so that data is checked at another
// node than it was written at.
inline int other_index() { return index_for(1); }

inline constexpr lite::rights kAccess =
    lite::rights::read | lite::rights::write | lite::rights::atomic;

struct Data {
    lite::context node{index_for(0)};
    Device dev{env().indexes.front()};
};

struct DataEverywhere : Data {
    Placement where = GENERATE(from_range(env().placements()));
};

}  // namespace lite_test
