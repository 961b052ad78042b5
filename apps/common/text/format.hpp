// SPDX-License-Identifier: MIT
//
// Numbers and bytes as text for users.
#pragma once

#include <uapi/lite.h>

#include <array>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace tools {

// The letters for rights, in this order, and their bits.
inline constexpr std::string_view right_letters = "rwasm";
inline constexpr std::array<std::uint32_t, 5> right_bits = {
    LITE_RIGHT_READ, LITE_RIGHT_WRITE, LITE_RIGHT_ATOMIC, LITE_RIGHT_SHARE, LITE_RIGHT_MASTER};

// As ls -h prints it: 512, 1.0K, 23K, 1.5G. Rounded up, so that nothing looks smaller than it is.
std::string human_size(std::uint64_t bytes);

// M:SS, or H:MM:SS from an hour on; "-:--" from a hundred hours on.
std::string human_duration(std::chrono::seconds duration);

// rw-r----- for 0640.
std::string mode_text(std::uint32_t mode);

// rwa-- for read, write and atomic; without @dashes rwa, as on a command line.
std::string rights_text(std::uint32_t rights, bool dashes = true);

// Escapes as \xNN every byte that a terminal may interpret (control characters, also those of two
// bytes in UTF-8), every byte that is not UTF-8, and a backslash that would start such an escape.
std::string printable(std::string_view text);

// The inverse of printable().
std::string unprintable(std::string_view text);

// Checks that a terminal can show bytes as text: no control characters except white space. The
// pieces given to take() are one text: a character may be split between two of them.
class text_check {
  public:
    bool take(std::string_view bytes);

  private:
    // The previous byte; none at the start, where a continuation byte is refused: it could complete
    // a character that earlier output left open.
    std::optional<unsigned char> m_before;
};

bool is_text(std::string_view bytes);

// "1 byte", "2 bytes".
std::string byte_count(std::uint64_t bytes);

}  // namespace tools
