// SPDX-License-Identifier: MIT

#include "parse.hpp"

#include "error.hpp"
#include "format.hpp"

#include <uapi/lite.h>

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <string>

namespace tools {
namespace {

constexpr std::string_view digits = "0123456789";
constexpr std::string_view hex_digits = "0123456789abcdefABCDEF";

bool is_hex(std::string_view text) { return text.starts_with("0x") || text.starts_with("0X"); }

// How much of the text is a number, prefix included.
std::size_t number_length(std::string_view text) {
    const std::size_t start = is_hex(text) ? 2 : 0;
    const auto end = text.find_first_not_of(start ? hex_digits : digits, start);
    return end == std::string_view::npos ? text.size() : end;
}

// nullopt: not a number, or one of more than 64 bits; the latter sets @overflow.
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
    throw usage_error(fmt::format("'{}' {}", text, why));
}

// The power of 1024 that a suffix stands for; nullopt if for none.
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
    if (text.empty())
        throw usage_error("a name cannot be empty");
    if (text.size() > LITE_NAME_MAX)
        refuse(printable(text.substr(0, 16)) + "...",
               fmt::format("is too long for a name ({} bytes, {} at most)", text.size(),
                           LITE_NAME_MAX));
    for (const char c : text)
        if (c == '/' || static_cast<unsigned char>(c) < 0x20 || c == 0x7f)
            refuse(printable(text), "is not a name: it has a '/' or a control character");
    return std::string(text);
}

}  // namespace tools
