// SPDX-License-Identifier: MIT
// Carries out plans of transfers through liblite, and checks the contents afterwards.
#pragma once

#include "shadow.hpp"

#include <lite/lite.hpp>

#include <cstdint>
#include <span>

namespace lite_test {

// Does all transfers of @plan and compares every read with the model; throws Failure at the first
// difference.
void carry_out(lite::region& region, const Plan& plan);

// Reads all of @region and compares it with what @plan leaves behind; throws Failure.
void check_outcome(const lite::region& region, const Plan& plan);

// Write the pattern @seed to all of @region in pieces, or compare with it; with @every, only every
// @every-th piece and the last one.
void write_pattern(lite::region& region, std::uint64_t seed, std::size_t piece = 4 << 20,
                   std::size_t every = 1);
void check_pattern(const lite::region& region, std::uint64_t seed, std::size_t piece = 4 << 20,
                   std::size_t every = 1);

}  // namespace lite_test
