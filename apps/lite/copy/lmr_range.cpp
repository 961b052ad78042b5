// SPDX-License-Identifier: MIT

#include "copy/lmr_range.hpp"

#include "common/error.hpp"
#include "common/text/format.hpp"
#include "common/text/parse.hpp"

#include <fmt/format.h>

namespace tools {
namespace {

// Removes ":NUMBER" from the end of @text, if it is there. Throws usage_error.
std::optional<std::uint64_t> take_number(std::string_view& text) {
    const auto colon = text.rfind(':');
    if (colon == text.npos)
        return std::nullopt;
    try {
        const auto number = parse_size(text.substr(colon + 1));
        text = text.substr(0, colon);
        return number;
    } catch (const usage_error&) {
        // A number of more than 64 bits, or "1KB", is a mistake and no part of the name.
        const auto word = text.substr(colon + 1);
        const auto unit = word.substr(std::min(word.find_first_not_of("0123456789"), word.size()));
        constexpr std::string_view letters = "KMGTPkmgtp";
        if (unit.size() < word.size() &&
            (unit.empty() || (unit.size() == 2 && (unit[1] == 'B' || unit[1] == 'b') &&
                              letters.find(unit[0]) != letters.npos)))
            throw;
        return std::nullopt;
    }
}

}  // namespace

lmr_range parse_range(std::string_view text) {
    lmr_range range;
    if (text.ends_with(':')) {
        text.remove_suffix(1);
    } else {
        const auto last = take_number(text);
        const auto first = last ? take_number(text) : std::nullopt;
        range.offset = first.value_or(last.value_or(0));
        if (first)
            range.length = last;
    }
    range.name = parse_name(text);
    return range;
}

lmr_range parse_source(std::string_view text) {
    auto range = parse_range(text);
    if (range.length == 0)
        throw usage_error(
            fmt::format("'{}' has the length 0: there is nothing to copy", printable(text)));
    return range;
}

bool names_lmr(std::string_view word) {
    const auto colon = word.find(':');
    return colon != word.npos && colon < word.find('/');
}

}  // namespace tools
