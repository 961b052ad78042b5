// SPDX-License-Identifier: MIT
//
// From words on a command line to numbers. Every function takes the whole word,
// without spaces around it, and throws usage_error with a text that repeats the
// word, as printable() has it, and says what is wrong with it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tools {

// An unsigned number, decimal or 0x hexadecimal, of @low..@high.
std::uint64_t parse_number(std::string_view text, std::uint64_t low = 0,
                           std::uint64_t high = UINT64_MAX);

// A number of bytes: a number, maybe followed by K, M, G, T or P (powers of
// 1024, in either case) or by KiB, MiB and so on. KB and the like are refused,
// since half of the world takes them for powers of 1000.
std::uint64_t parse_size(std::string_view text);

// A time in milliseconds, of @low..@high, rounded up: a number, which may have a
// fraction, followed by ms, s, m or h. Without a unit it is of milliseconds, and
// whole: who writes 0.5 means something else.
std::uint64_t parse_time(std::string_view text, std::uint64_t low, std::uint64_t high);

// A number to be added modulo 2^64: as parse_number(), or negative down to
// -2^63, of which the two's complement is returned.
std::uint64_t parse_addend(std::string_view text);

// A pattern of 1 to 8 bytes: two hexadecimal digits each, the first byte first.
std::vector<std::byte> parse_pattern(std::string_view text);

// Permission bits in octal, 0..0666.
std::uint32_t parse_mode(std::string_view text);

// What chmod(1) takes: an octal mode, or clauses like "u=rw,g+w,o-r", of which
// those without u, g, o or a are for all. Modes are of bits 0..0666.
class mode_change {
  public:
    std::uint32_t apply(std::uint32_t mode) const;
    // Whether the outcome depends on what the mode is before.
    bool is_relative() const { return m_relative; }

  private:
    friend mode_change parse_mode_change(std::string_view text);
    struct step {
        std::uint32_t keep;  // bits that stay
        std::uint32_t add;   // bits that are set then
    };
    void add_clause(std::string_view clause, std::string_view text);

    std::vector<step> m_steps;
    bool m_relative = true;
};
mode_change parse_mode_change(std::string_view text);

// Rights as the letters r, w, a, s and m, each at most once: a set of
// LITE_RIGHT_*, not empty.
std::uint32_t parse_rights(std::string_view text);

// Ids of nodes, separated by commas, at most 64, none of them twice.
std::vector<std::uint32_t> parse_nodes(std::string_view text);

// A name that an LMR may have, as printable() shows it: 1..255 bytes, none of them a control
// character or DEL. (The kernel has the last word; here it gets a better text.)
std::string parse_name(std::string_view text);

}  // namespace tools
