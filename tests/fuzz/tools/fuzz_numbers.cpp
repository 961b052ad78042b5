// SPDX-License-Identifier: MIT
//
// Parses words that should be numbers: each parser either refuses a word, with a text, or returns a
// value that, printed and parsed again, is the same.

#include "common/error.hpp"
#include "common/text/format.hpp"
#include "common/text/parse.hpp"

#include <uapi/lite.h>

#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

namespace {

void require(bool condition) {
    if (!condition)
        std::abort();
}

// Runs a parser and, unless it refuses the word, a check of its result.
void attempt(const auto& parser, std::string_view word, const auto& check) {
    try {
        check(parser(word));
    } catch (const tools::usage_error& e) {
        require(e.what()[0] != '\0');
    }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const std::string_view word(reinterpret_cast<const char*>(data), size);

    attempt(tools::parse_size, word, [&](std::uint64_t value) {
        require(tools::parse_size(std::to_string(value)) == value);
        require(!tools::human_size(value).empty());
    });
    attempt([](std::string_view w) { return tools::parse_number(w, 1, 65535); }, word,
            [](std::uint64_t value) { require(value >= 1 && value <= 65535); });
    attempt(tools::parse_addend, word, [&](std::uint64_t value) {
        // Every number is also an addend of the same value.
        if (word[0] != '-')
            require(tools::parse_number(word) == value);
    });
    attempt(tools::parse_mode, word, [](std::uint32_t mode) { require(!(mode & ~0666U)); });
    attempt(tools::parse_nodes, word, [](const std::vector<std::uint32_t>& nodes) {
        require(!nodes.empty() && nodes.size() <= LITE_SPREAD_MAX);
        for (const auto node : nodes)
            require(node >= 1 && node <= LITE_NODE_ID_MAX);
    });
    attempt(tools::parse_name, word, [&](const std::string& name) {
        require(!name.empty() && name.size() <= LITE_NAME_MAX);
        require(name.find('\0') == name.npos);
        // The parser accepts the displayed form of a name.
        require(tools::parse_name(tools::printable(name)) == name);
    });
    return 0;
}
