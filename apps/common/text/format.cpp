// SPDX-License-Identifier: MIT

#include "common/text/format.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <system_error>
#include <utility>

namespace tools {

std::string human_size(std::uint64_t bytes) {
    if (bytes < 1024)
        return fmt::to_string(bytes);

    unsigned shift = 10;
    while (shift < 60 && bytes >> shift >= 1024)
        shift += 10;

    // 1023.5K is rounded up to 1024K, which is shown as 1.0M.
    const auto units = [&] {
        return (bytes >> shift) + ((bytes & ((std::uint64_t{1} << shift) - 1)) != 0);
    };
    if (units() >= 1024 && shift < 60)
        shift += 10;

    const char suffix = "KMGTPE"[shift / 10 - 1];
    const std::uint64_t whole = bytes >> shift;
    const std::uint64_t rest = bytes & ((std::uint64_t{1} << shift) - 1);
    // rest * 10 fits: rest < 2^60.
    const std::uint64_t tenths = (rest * 10 + (std::uint64_t{1} << shift) - 1) >> shift;
    if (whole * 10 + tenths < 100)
        return fmt::format("{}.{}{}", whole + tenths / 10, tenths % 10, suffix);
    return fmt::format("{}{}", units(), suffix);
}

std::string human_duration(std::chrono::seconds duration) {
    const auto seconds = duration.count();
    if (seconds < 0 || seconds >= 100L * 3600)
        return "-:--";
    if (seconds < 3600)
        return fmt::format("{}:{:02}", seconds / 60, seconds % 60);
    return fmt::format("{}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60);
}

std::string mode_text(std::uint32_t mode) {
    std::string text = "rwxrwxrwx";
    for (unsigned bit = 0; bit < text.size(); bit++)
        if (!(mode & (0400U >> bit)))
            text[bit] = '-';
    return text;
}

std::string rights_text(std::uint32_t rights, bool dashes) {
    std::string text;
    for (std::size_t i = 0; i < right_bits.size(); i++) {
        if (rights & right_bits[i])
            text += right_letters[i];
        else if (dashes)
            text += '-';
    }
    return text;
}

namespace {

// Bytes of the first character; 0 if that is a control character, of one byte or two, or not valid
// UTF-8: an overlong form, a surrogate, or out of range.
std::size_t shown(std::string_view text) {
    const auto at = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
    const auto first = at(0);
    if (first < 0x80)
        return first >= 0x20 && first != 0x7f;
    const std::size_t bytes = first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
    if (first < 0xc2 || first > 0xf4 || text.size() < bytes)
        return 0;
    std::uint32_t code = first & (0x7fU >> bytes);
    for (std::size_t i = 1; i < bytes; i++) {
        if ((at(i) & 0xc0) != 0x80)
            return 0;
        code = code << 6 | (at(i) & 0x3f);
    }
    if (code < 0xa0 || (bytes == 3 && code < 0x800) || (code >= 0xd800 && code < 0xe000) ||
        (bytes == 4 && (code < 0x10000 || code > 0x10ffff)))
        return 0;
    return bytes;
}

// The byte that the \xNN at the start of @text stands for; 0: there is none.
char escaped(std::string_view text) {
    unsigned value = 0;
    if (!text.starts_with("\\x") || text.size() < 4)
        return 0;
    const auto [end, error] = std::from_chars(text.data() + 2, text.data() + 4, value, 16);
    return error == std::errc() && end == text.data() + 4 ? static_cast<char>(value) : '\0';
}

}  // namespace

std::string printable(std::string_view text) {
    std::string result;
    result.reserve(text.size());
    while (!text.empty()) {
        // A backslash at the start of what looks like an escape is escaped, too.
        const auto bytes = escaped(text) ? 0 : shown(text);
        if (bytes)
            result += text.substr(0, bytes);
        else
            result += fmt::format("\\x{:02x}", static_cast<unsigned char>(text[0]));
        text.remove_prefix(std::max<std::size_t>(bytes, 1));
    }
    return result;
}

std::string unprintable(std::string_view text) {
    std::string result;
    while (!text.empty()) {
        const char byte = escaped(text);
        result += byte ? byte : text[0];
        text.remove_prefix(byte ? 4 : 1);
    }
    return result;
}

bool text_check::take(std::string_view bytes) {
    return std::ranges::all_of(bytes, [this](char c) {
        const auto byte = static_cast<unsigned char>(c);
        const auto before = std::exchange(m_before, byte);
        if ((byte & 0xc0) == 0x80)
            // 0xc2 0x80 to 0xc2 0x9f are control characters that terminals obey, too.
            return before && (*before != 0xc2 || byte >= 0xa0);
        // 9..13: tab, newline, vertical tab, form feed, return.
        return (byte >= 0x20 || (byte >= 9 && byte <= 13)) && byte != 0x7f;
    });
}

bool is_text(std::string_view bytes) { return text_check().take(bytes); }

std::string byte_count(std::uint64_t bytes) {
    return bytes == 1 ? "1 byte" : fmt::format("{} bytes", bytes);
}

}  // namespace tools
