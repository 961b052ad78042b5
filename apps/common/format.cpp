// SPDX-License-Identifier: MIT

#include "format.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace tools {

std::string human_size(std::uint64_t bytes) {
    if (bytes < 1024)
        return fmt::to_string(bytes);

    unsigned shift = 10;
    while (shift < 60 && bytes >> shift >= 1024)
        shift += 10;

    // Rounded up, 1023.5K becomes 1024K, which is 1.0M.
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

std::string printable(std::string_view text) {
    std::string result;
    result.reserve(text.size());
    for (std::size_t i = 0; i < text.size(); i++) {
        const auto byte = static_cast<unsigned char>(text[i]);
        if (byte < 0x20 || byte == 0x7f) {
            result += '?';
        } else if (byte == 0xc2 && i + 1 < text.size() &&
                   (static_cast<unsigned char>(text[i + 1]) & 0xe0) == 0x80) {
            result += '?';  // U+0080..U+009F
            i++;
        } else {
            result += text[i];
        }
    }
    return result;
}

bool is_text(std::string_view bytes) {
    return std::ranges::all_of(bytes, [](char c) {
        const auto byte = static_cast<unsigned char>(c);
        // 9..13: tab, newline, vertical tab, form feed, return.
        return (byte >= 0x20 || (byte >= 9 && byte <= 13)) && byte != 0x7f;
    });
}

std::string byte_count(std::uint64_t bytes) {
    return bytes == 1 ? "1 byte" : fmt::format("{} bytes", bytes);
}

}  // namespace tools
