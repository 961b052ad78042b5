// SPDX-License-Identifier: MIT
//
// Parsers of words on a command line. Each takes the whole word, without spaces around it, and
// throws usage_error with the word, as printable() shows it, and the reason.
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

// A number of bytes, optionally with K, M, G, T or P (powers of 1024, in either case) or with KiB,
// MiB and so on. KB and the like are rejected: many users take them for powers of 1000.
std::uint64_t parse_size(std::string_view text);

// A time in ms, of @low..@high, rounded up: a number, maybe with a fraction, and ms, s, m or h.
// Without a unit it is in ms and must be whole: 0.5 probably means seconds.
std::uint64_t parse_time(std::string_view text, std::uint64_t low, std::uint64_t high);

// A number to add modulo 2^64: as parse_number(), or negative down to -2^63, returned as its two's
// complement.
std::uint64_t parse_addend(std::string_view text);

// A pattern of 1 to 8 bytes: two hexadecimal digits each, first byte first.
std::vector<std::byte> parse_pattern(std::string_view text);

// Permission bits in octal, 0..0666.
std::uint32_t parse_mode(std::string_view text);

// A mode as in chmod(1): octal, or clauses like "u=rw,g+w,o-r"; a clause without u, g, o or a is
// for all. Bits 0..0666.
class mode_change {
  public:
    std::uint32_t apply(std::uint32_t mode) const;
    // Does the result depend on the previous mode?
    bool is_relative() const { return m_relative; }

  private:
    friend mode_change parse_mode_change(std::string_view text);
    struct step {
        std::uint32_t keep;
        std::uint32_t add;  // mode = (mode & keep) | add
    };
    void add_clause(std::string_view clause, std::string_view text);

    std::vector<step> m_steps;
    bool m_relative = true;
};
mode_change parse_mode_change(std::string_view text);

// Rights as the letters r, w, a, s and m, each at most once: a non-empty set of LITE_RIGHT_*.
std::uint32_t parse_rights(std::string_view text);

// Node ids separated by commas, at most 64, without duplicates.
std::vector<std::uint32_t> parse_nodes(std::string_view text);

// A name of an LMR, written as printable() shows it: 1..255 bytes, none a control character or DEL.
// The kernel checks it too; this gives a better message.
std::string parse_name(std::string_view text);

}  // namespace tools
