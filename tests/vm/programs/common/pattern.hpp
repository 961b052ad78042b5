// SPDX-License-Identifier: MIT
// Bytes that can be told again from a seed and an offset, at any alignment: what is written on one
// machine is checked on another without a copy of it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace lite_test {

// SplitMix64's finalizer: neighbouring numbers give unrelated ones.
std::uint64_t mix(std::uint64_t x);

// Makes @into the part of the pattern @seed that starts at @offset.
void fill_pattern(std::span<std::byte> into, std::uint64_t seed, std::uint64_t offset = 0);

std::vector<std::byte> make_pattern(std::size_t length, std::uint64_t seed,
                                    std::uint64_t offset = 0);

// Index of the first byte that is not the pattern's.
std::optional<std::size_t> find_mismatch(std::span<const std::byte> bytes, std::uint64_t seed,
                                         std::uint64_t offset = 0);

}  // namespace lite_test
