// SPDX-License-Identifier: MIT
//
// Shared by the commands that transfer data.
#pragma once

#include "session.hpp"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace tools {

// Hides the cost of a call, yet interruption and progress are prompt on a slow network.
constexpr std::size_t chunk_size = std::size_t{4} << 20;

// "VERB NAME: why; 10 of 20 bytes were PARTICIPLE". @total 0: unknown.
failure cut_short(std::string_view verb, std::string_view name, std::string_view why,
                  std::uint64_t done, std::uint64_t total, std::string_view participle);

}  // namespace tools
