// SPDX-License-Identifier: MIT
// Shared by the tests of kernel/core. The headers under test are C, included here from C++.
#pragma once

extern "C" {
#include "core/bounds.h"
#include "core/extent.h"
#include "core/handle.h"
#include "core/lockword.h"
#include "core/memop_rules.h"
#include "core/name.h"
#include "core/pace.h"
#include "core/rights.h"
#include "core/ring.h"
#include "core/share.h"
#include "core/spread.h"
#include "wire/imm.h"
#include "wire/wire.h"
#include "wire/wire_pack.h"
#include "wire/wire_rpc.h"
}

#if __has_include(<catch2/catch_all.hpp>)
#include <catch2/catch_all.hpp>
#else
#include <catch2/catch.hpp>
#endif

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <initializer_list>
#include <random>
#include <span>
#include <string>
#include <vector>

namespace lite_test {

// The seed of all random numbers in a run; LITE_TEST_SEED repeats a failed run.
inline std::uint64_t seed() {
    static const std::uint64_t value = [] {
        const char* text = std::getenv("LITE_TEST_SEED");
        return text ? std::strtoull(text, nullptr, 0) : 20171028ULL;
    }();
    return value;
}

class Random {
  public:
    Random() : engine_(seed()) {}

    std::uint64_t bits() { return engine_(); }
    // In [least, most].
    std::uint64_t between(std::uint64_t least, std::uint64_t most) {
        return std::uniform_int_distribution(least, most)(engine_);
    }
    // Every order of magnitude is equally likely.
    std::uint64_t magnitude() { return bits() >> between(0, 63); }
    template <typename T>
    const T& pick(std::span<const T> from) {
        return from[between(0, from.size() - 1)];
    }

  private:
    std::mt19937_64 engine_;
};

// Numbers at which arithmetic goes wrong, and their neighbours.
inline const std::vector<std::uint64_t>& edges() {
    static const std::vector<std::uint64_t> values = [] {
        std::vector<std::uint64_t> all;
        for (const std::uint64_t base : std::initializer_list<std::uint64_t>{
                 0, 8, 4096, 1ULL << 16, 1ULL << 31, 1ULL << 32, LITE_LMR_SIZE_MAX, 1ULL << 63}) {
            for (int delta = -2; delta <= 2; ++delta)
                all.push_back(base + static_cast<std::uint64_t>(delta));
        }
        return all;
    }();
    return values;
}

}  // namespace lite_test
