// SPDX-License-Identifier: MIT

#include "cli.hpp"

#include "format.hpp"
#include "signals.hpp"

#include <fmt/format.h>

#include <new>
#include <sstream>
#include <string>
#include <system_error>

namespace tools {
namespace {

constexpr char shield = '\0';

int misused(const CLI::App& app, std::string_view text, const streams& io) {
    complain(io.err, app.get_name(),
             fmt::format("{}\nTry '{} --help' for more information.", text, app.get_name()));
    return status_usage;
}

std::string text_of(const CLI::App& app, const CLI::ParseError& e) {
    // CLI11 misses a command before it minds that a word is none.
    auto unknown = app.remaining();
    if (app.get_subcommands().empty() && !unknown.empty()) {
        std::erase(unknown.front(), shield);
        return fmt::format("'{}' is not a command", printable(unknown.front()));
    }
    std::string text = e.what();
    std::erase(text, shield);
    text.erase(text.find_last_not_of(" \n") + 1);
    return text;
}

// CLI11 takes "[a,b]" for a list where there may be several words: as names of
// LMRs, or words of a command, they are to stay what they are. So such a word gets
// a byte that no word can have, which is taken off when options get their words.
void shield_words(arguments& words) {
    for (auto& word : words) {
        if (word.starts_with('[') && word.ends_with(']'))
            word += shield;
    }
}

void unshield_options(CLI::App& app) {
    for (auto* option : app.get_options())
        option->transform([](std::string word) {
            std::erase(word, shield);
            return word;
        });
    for (auto* sub : app.get_subcommands({}))
        unshield_options(*sub);
}

// Help and version; everything else that CLI11 throws is the user's mistake.
int explain(const CLI::App& app, const CLI::ParseError& e, const streams& io) {
    if (e.get_exit_code() == static_cast<int>(CLI::ExitCodes::Success)) {
        std::ostringstream out;
        std::ostringstream none;
        app.exit(e, out, none);
        print(io.out, out.str());
        return status_ok;
    }
    return misused(app, text_of(app, e), io);
}

}  // namespace

arguments arguments_of(int argc, char** argv) {
    return argc > 0 ? arguments(argv + 1, argv + argc) : arguments();
}

int run(CLI::App& app, const arguments& words, const streams& io,
        const std::function<int()>& command) {
    const auto fail = [&](std::string_view text) {
        complain(io.err, app.get_name(), text);
        return status_failed;
    };
    try {
        try {
            // CLI11 wants them last first.
            arguments reversed(words.rbegin(), words.rend());
            shield_words(reversed);
            unshield_options(app);
            app.parse(std::move(reversed));
        } catch (const CLI::ParseError& e) {
            return explain(app, e, io);
        }
        return command();
    } catch (const usage_error& e) {
        return misused(app, e.what(), io);
    } catch (const failure& e) {
        return fail(e.what());
    } catch (const std::bad_alloc&) {
        return fail("out of memory");
    } catch (const std::system_error& e) {
        return fail(e.what());
    }
}

int run_main(const std::function<int()>& body) noexcept {
    reserve_standard_streams();
    try {
        return body();
    } catch (const interrupted& e) {
        die_of(e.signal);
    }
}

}  // namespace tools
