// SPDX-License-Identifier: MIT

#include "copy/lmr_range.hpp"

#include "common/error.hpp"
#include "common/text/parse.hpp"

namespace tools {
namespace {

// Takes ":NUMBER" off the end, if that is there.
std::optional<std::uint64_t> take_number(std::string_view& text) {
    const auto colon = text.rfind(':');
    if (colon == text.npos)
        return std::nullopt;
    try {
        const auto number = parse_size(text.substr(colon + 1));
        text = text.substr(0, colon);
        return number;
    } catch (const usage_error&) {
        return std::nullopt;
    }
}

}  // namespace

lmr_range parse_range(std::string_view text) {
    if (text.ends_with(':'))
        text.remove_suffix(1);
    lmr_range range;
    const auto last = take_number(text);
    const auto first = last ? take_number(text) : std::nullopt;
    range.offset = first.value_or(last.value_or(0));
    if (first)
        range.length = last;
    range.name = parse_name(text);
    return range;
}

bool names_lmr(std::string_view word) {
    const auto colon = word.find(':');
    return colon != word.npos && colon < word.find('/');
}

}  // namespace tools
