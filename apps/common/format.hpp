// SPDX-License-Identifier: MIT
//
// From numbers to words that people read.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

namespace tools {

// Three significant digits and a power of 1024, as ls -h does: 512, 1.0K,
// 23K, 1.5G. Rounded up, so that something never looks smaller than it is.
std::string human_size(std::uint64_t bytes);

// M:SS, or H:MM:SS from an hour on; "-:--" from a hundred hours on.
std::string human_duration(std::chrono::seconds duration);

// rw-r----- for 0640.
std::string mode_text(std::uint32_t mode);

// The same text with every byte that a terminal may obey instead of show
// (control characters, also those of two bytes in UTF-8) replaced by '?'.
std::string printable(std::string_view text);

// Whether a terminal shows these bytes as text: no control characters but
// white space.
bool is_text(std::string_view bytes);

// "1 byte", "2 bytes".
std::string byte_count(std::uint64_t bytes);

}  // namespace tools
