// SPDX-License-Identifier: MIT

#include "common/text/parse.hpp"

#include "common/error.hpp"
#include "common/text/format.hpp"

#include <uapi/lite.h>

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>
#include <string>

namespace tools {
namespace {

constexpr std::string_view digits = "0123456789";
constexpr std::string_view hex_digits = "0123456789abcdefABCDEF";

bool is_hex(std::string_view text) { return text.starts_with("0x") || text.starts_with("0X"); }

constexpr std::string_view not_a_mode = "is not a mode (octal as 0640, or like u=rw,g+r,o-w)";

std::size_t number_length(std::string_view text) {
    const std::size_t start = is_hex(text) ? 2 : 0;
    const auto end = text.find_first_not_of(start ? hex_digits : digits, start);
    return end == std::string_view::npos ? text.size() : end;
}

// nullopt: not a number, or more than 64 bits; only the latter sets @overflow.
std::optional<std::uint64_t> to_number(std::string_view text, bool& overflow) {
    overflow = false;
    const bool hex = is_hex(text);
    const auto body = text.substr(hex ? 2 : 0);
    std::uint64_t value = 0;
    const char* end = body.data() + body.size();
    const auto [stop, error] = std::from_chars(body.data(), end, value, hex ? 16 : 10);
    if (body.empty() || stop != end)
        return std::nullopt;
    overflow = error == std::errc::result_out_of_range;
    if (error != std::errc{})
        return std::nullopt;
    return value;
}

[[noreturn]] void refuse(std::string_view text, std::string_view why) {
    throw usage_error(fmt::format("'{}' {}", printable(text), why));
}

// The power of 1024 of a suffix; nullopt if there is no such suffix.
std::optional<unsigned> exponent_of(std::string_view suffix) {
    if (suffix.empty())
        return 0;
    const auto letter = std::string_view("KMGTP").find(static_cast<char>(
        suffix[0] >= 'a' && suffix[0] <= 'z' ? suffix[0] - 'a' + 'A' : suffix[0]));
    if (letter == std::string_view::npos)
        return std::nullopt;
    if (suffix.size() == 1 || suffix.substr(1) == "iB")
        return static_cast<unsigned>(letter) + 1;
    return std::nullopt;
}

std::optional<double> milliseconds_of(std::string_view unit) {
    if (unit.empty() || unit == "ms")
        return 1;
    if (unit == "s")
        return 1000;
    if (unit == "m")
        return 60 * 1000;
    if (unit == "h")
        return 60 * 60 * 1000;
    return std::nullopt;
}

}  // namespace

std::uint64_t parse_number(std::string_view text, std::uint64_t low, std::uint64_t high) {
    bool overflow;
    const auto value = to_number(text, overflow);
    if (!value && !overflow)
        refuse(text, "is not a number (decimal or 0x hexadecimal)");
    if (overflow || *value < low || *value > high)
        refuse(text, fmt::format("is out of range ({}..{})", low, high));
    return *value;
}

std::uint64_t parse_size(std::string_view text) {
    const auto length = number_length(text);
    const auto suffix = text.substr(length);
    bool overflow;
    const auto value = to_number(text.substr(0, length), overflow);
    const auto exponent = exponent_of(suffix);
    if (!overflow && (!value || !exponent)) {
        if (suffix.size() == 2 && (suffix[1] == 'B' || suffix[1] == 'b') &&
            exponent_of(suffix.substr(0, 1)))
            refuse(text, fmt::format("is ambiguous: write {0} or {0}iB for powers of 1024",
                                     suffix.substr(0, 1)));
        refuse(text, "is not a size (a whole number, maybe with K, M, G, T or P)");
    }
    const unsigned shift = exponent.value_or(0) * 10;
    if (overflow || *value > UINT64_MAX >> shift)
        refuse(text, "is too large: sizes have 64 bits");
    return *value << shift;
}

std::uint64_t parse_time(std::string_view text, std::uint64_t low, std::uint64_t high) {
    const auto length = std::min(text.find_first_not_of("0123456789."), text.size());
    const auto unit = text.substr(length);
    const auto factor = milliseconds_of(unit);
    double value = 0;
    const char* end = text.data() + length;
    const auto [stop, error] = std::from_chars(text.data(), end, value, std::chars_format::fixed);
    const bool overflow = error == std::errc::result_out_of_range;
    if (stop != end || (error != std::errc{} && !overflow) || !factor)
        refuse(text, "is not a time (a number with ms, s, m or h; without, of milliseconds)");
    if (unit.empty() && text.find('.') != std::string_view::npos)
        refuse(text, fmt::format("lacks a unit, as in {0}s or {0}ms", text));
    const double ms = std::ceil(value * *factor);
    if (overflow || ms < static_cast<double>(low) || ms > static_cast<double>(high))
        refuse(text, fmt::format("is out of range ({}..{} ms)", low, high));
    return static_cast<std::uint64_t>(ms);
}

std::uint64_t parse_addend(std::string_view text) {
    if (!text.starts_with('-'))
        return parse_number(text);

    constexpr std::uint64_t limit = std::uint64_t{1} << 63;
    bool overflow;
    const auto value = to_number(text.substr(1), overflow);
    if (!value && !overflow)
        refuse(text, "is not a number (decimal or 0x hexadecimal)");
    if (overflow || *value > limit)
        refuse(text, "is out of range (-2^63..2^64-1)");
    return 0 - *value;
}

std::vector<std::byte> parse_pattern(std::string_view text) {
    if (text.empty() || text.size() % 2 || text.size() > 2 * sizeof(std::uint64_t) ||
        text.find_first_not_of(hex_digits) != std::string_view::npos)
        refuse(text, "is not a pattern (1 to 8 bytes, two hexadecimal digits each)");
    std::vector<std::byte> bytes;
    for (std::size_t i = 0; i < text.size(); i += 2) {
        unsigned value = 0;
        std::from_chars(text.data() + i, text.data() + i + 2, value, 16);
        bytes.push_back(static_cast<std::byte>(value));
    }
    return bytes;
}

std::uint32_t parse_mode(std::string_view text) {
    std::uint32_t mode = 0;
    const char* end = text.data() + text.size();
    const auto [stop, error] = std::from_chars(text.data(), end, mode, 8);
    if (text.empty() || stop != end || error != std::errc{})
        refuse(text, "is not a mode (octal, as in 0640)");
    if (mode & ~0666U)
        refuse(text, "has bits beyond 0666: LMRs can be read and written, nothing else");
    return mode;
}

std::uint32_t mode_change::apply(std::uint32_t mode) const {
    for (const auto& [keep, add] : m_steps)
        mode = (mode & keep) | add;
    return mode;
}

// One clause, such as "ug+r-w".
void mode_change::add_clause(std::string_view clause, std::string_view text) {
    const auto end_of_who = std::min(clause.find_first_not_of("ugoa"), clause.size());
    std::uint32_t who = end_of_who ? 0 : 0777;
    for (const char c : clause.substr(0, end_of_who))
        who |= c == 'u' ? 0700U : c == 'g' ? 0070U : c == 'o' ? 0007U : 0777U;

    auto actions = clause.substr(end_of_who);
    if (actions.empty())
        refuse(text, not_a_mode);
    while (!actions.empty()) {
        const char how = actions[0];
        const auto length = std::min(actions.find_first_not_of("rw", 1), actions.size());
        std::uint32_t bits = 0;
        for (const char c : actions.substr(1, length - 1))
            bits |= (c == 'r' ? 0444U : 0222U) & who;
        actions.remove_prefix(length);
        if (how == '=')
            m_steps.push_back({~who, bits});
        else if (how == '+')
            m_steps.push_back({~0U, bits});
        else if (how == '-')
            m_steps.push_back({~bits, 0});
        else if (how == 'x' || how == 'X' || how == 's' || how == 't')
            refuse(text, "has bits beyond r and w: LMRs can be read and written, nothing else");
        else
            refuse(text, not_a_mode);
    }
}

mode_change parse_mode_change(std::string_view text) {
    mode_change change;
    if (!text.empty() && text.find_first_not_of(digits) == std::string_view::npos) {
        change.m_steps.push_back({0, parse_mode(text)});
        change.m_relative = false;
        return change;
    }
    for (std::string_view rest = text;;) {
        const auto comma = rest.find(',');
        change.add_clause(rest.substr(0, comma), text);
        if (comma == std::string_view::npos)
            return change;
        rest.remove_prefix(comma + 1);
    }
}

std::uint32_t parse_rights(std::string_view text) {
    std::uint32_t rights = 0;
    for (const char c : text) {
        const auto at = right_letters.find(c);
        const auto bit = at == std::string_view::npos ? 0 : right_bits[at];
        if (!bit || rights & bit)
            refuse(text,
                   "is not a set of rights (of the letters rwasm for read, write, "
                   "atomic, share and master, each at most once)");
        rights |= bit;
    }
    if (!rights)
        throw usage_error("rights cannot be empty ('lite revoke' takes a grant away)");
    return rights;
}

std::vector<std::uint32_t> parse_nodes(std::string_view text) {
    std::vector<std::uint32_t> nodes;
    for (std::string_view rest = text;;) {
        const auto comma = rest.find(',');
        const auto word = rest.substr(0, comma);
        bool overflow;
        const auto id = to_number(word, overflow);
        if (!id || *id < 1 || *id > LITE_NODE_ID_MAX)
            refuse(text, fmt::format("is not a list of node ids (1..{}, separated by commas)",
                                     LITE_NODE_ID_MAX));
        if (std::find(nodes.begin(), nodes.end(), *id) != nodes.end())
            refuse(text, fmt::format("names node {} twice", *id));
        nodes.push_back(static_cast<std::uint32_t>(*id));
        if (comma == std::string_view::npos)
            break;
        rest.remove_prefix(comma + 1);
    }
    if (nodes.size() > LITE_SPREAD_MAX)
        refuse(text, fmt::format("names more than {} nodes", LITE_SPREAD_MAX));
    return nodes;
}

std::string parse_name(std::string_view text) {
    std::string name = unprintable(text);
    if (name.empty())
        throw usage_error("a name cannot be empty");
    if (name.size() > LITE_NAME_MAX)
        refuse(name.substr(0, 16) + "...",
               fmt::format("is too long for a name ({} bytes, {} at most)", name.size(),
                           LITE_NAME_MAX));
    for (const char c : name)
        if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f)
            refuse(name, "is not a name: it has a control character");
    return name;
}

}  // namespace tools
