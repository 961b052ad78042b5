// SPDX-License-Identifier: MIT
// Shared by the tests of the ABI: an open file, and an LMR for tests that work in any place.
#pragma once

#include "../common/catch.hpp"
#include "../common/env.hpp"
#include "../common/memory.hpp"
#include "../common/process.hpp"
#include "../common/raw.hpp"

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <span>

namespace lite_test {

inline constexpr std::uint64_t kLength = 64 * 1024 + 40;  // not a multiple of a page, but of a word

struct Abi {
    Device dev{env().indexes.front()};
};

struct AbiWithLmr : Abi {
    std::uint64_t lh = dev.alloc(kLength);
    std::array<std::byte, 64> buf{};
};

// The LMR in each of the places that the cluster has, for checks that differ between local and
// remote memory.
struct AbiEverywhere : Abi {
    Placement where = GENERATE(from_range(env().placements()));
    std::uint64_t lh = dev.alloc(kLength, where.nodes);
    std::array<std::byte, 64> buf{};
};

}  // namespace lite_test
