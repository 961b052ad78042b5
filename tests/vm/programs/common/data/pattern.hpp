// SPDX-License-Identifier: MIT
// Bytes that can be derived again from a seed and an offset, at any alignment: data that is written
// on one machine is checked on another without a copy of it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace lite_test {

// The finalizer of SplitMix64: neighbouring numbers give unrelated results.
std::uint64_t mix(std::uint64_t x);

// Fills @into with the part of the pattern @seed that starts at @offset.
void fill_pattern(std::span<std::byte> into, std::uint64_t seed, std::uint64_t offset = 0);

std::vector<std::byte> make_pattern(std::size_t length, std::uint64_t seed,
                                    std::uint64_t offset = 0);

// The index of the first byte that differs from the pattern.
std::optional<std::size_t> find_mismatch(std::span<const std::byte> bytes, std::uint64_t seed,
                                         std::uint64_t offset = 0);

// Quicker than a loop in a test: that is not optimised, and the processor is emulated.
bool all_are(std::span<const std::byte> bytes, std::byte value);

}  // namespace lite_test
