// SPDX-License-Identifier: MIT
//
// lite fetch-add, fetch-and, fetch-or, swap, cas.

#include "commands.hpp"

#include "common/text/format.hpp"

#include <fmt/format.h>

namespace tools {
namespace {

lite::region map_word(session& session, std::string_view verb, const std::string& name,
                      std::uint64_t offset) {
    if (offset % word_size)
        throw failure(fmt::format("{} {}: offset {} is not a multiple of {}", verb, printable(name),
                                  offset, word_size));
    auto region = map_for(session, verb, name, lite::rights::atomic);
    check_range(verb, name, offset, word_size, region.length());
    return region;
}

std::string word_text(std::uint64_t value, bool hex) {
    return hex ? fmt::format("{:#x}", value) : fmt::to_string(value);
}

int word_command(session& session, std::string_view verb, const word_arguments& args,
                 std::uint64_t (lite::region::*operation)(std::uint64_t, std::uint64_t)) {
    auto region = map_word(session, verb, args.name, args.offset);
    try {
        const auto old = (region.*operation)(args.offset, args.value);
        print(session.io().out, word_text(old, args.hex) + '\n');
    } catch (const lite::error& e) {
        throw explain(verb, args.name, e);
    }
    return status_ok;
}

}  // namespace

int swap_command(session& session, const word_arguments& args) {
    return word_command(session, "swap", args, &lite::region::exchange);
}

int fetch_and_command(session& session, const word_arguments& args) {
    return word_command(session, "fetch-and", args, &lite::region::fetch_and);
}

int fetch_or_command(session& session, const word_arguments& args) {
    return word_command(session, "fetch-or", args, &lite::region::fetch_or);
}

int fetch_add_command(session& session, const fetch_add_arguments& args) {
    auto region = map_word(session, "fetch-add", args.name, args.offset);
    try {
        const auto old = region.fetch_add(args.offset, args.value);
        print(session.io().out, word_text(old, args.hex) + '\n');
    } catch (const lite::error& e) {
        throw explain("fetch-add", args.name, e);
    }
    return status_ok;
}

int compare_swap_command(session& session, const compare_swap_arguments& args) {
    auto region = map_word(session, "cas", args.name, args.offset);
    const auto old = [&] {
        try {
            return region.compare_swap(args.offset, args.expected, args.desired);
        } catch (const lite::error& e) {
            throw explain("cas", args.name, e);
        }
    }();
    print(session.io().out, word_text(old, args.hex) + '\n');
    if (old == args.expected)
        return status_ok;
    if (!args.quiet)
        complain(session.io().err, "lite",
                 fmt::format("cas {}: not replaced: the word is {}, not {}", printable(args.name),
                             word_text(old, args.hex), word_text(args.expected, args.hex)));
    return status_failed;
}

}  // namespace tools
