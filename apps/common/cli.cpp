// SPDX-License-Identifier: MIT

#include "cli.hpp"

#include "common/signals.hpp"
#include "common/text/format.hpp"

#include <fmt/format.h>

#include <exception>
#include <new>
#include <sstream>
#include <string>

namespace tools {
namespace {

constexpr char shield = '\0';

int misused(const CLI::App& app, std::string_view text, const streams& io) {
    complain(io.err, app.get_name(),
             fmt::format("{}\nTry '{} --help' for more information.", text, app.get_name()));
    return status_usage;
}

std::string text_of(const CLI::App& app, const CLI::ParseError& e) {
    // For an unknown command, CLI11 only says that a command is missing.
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

// CLI11 splits "[a,b]" as a list if an option takes several words, but it may be an LMR's name or a
// word of a command. A NUL, which no word contains, prevents that; unshield_options() removes it.
void shield_words(arguments& words) {
    for (auto& word : words) {
        if (word.starts_with('[') && word.ends_with(']'))
            word += shield;
    }
}

void unshield_options(CLI::App& app) {  // NOLINT(misc-no-recursion): subcommands nest
    for (auto* option : app.get_options())
        option->transform([](std::string word) {
            std::erase(word, shield);
            return word;
        });
    for (auto* sub : app.get_subcommands({}))
        unshield_options(*sub);
}

// Help and version are not errors; everything else CLI11 throws is a usage error.
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

int run(CLI::App& app, const arguments& words, const streams& io,
        const std::function<int()>& command) {
    const auto fail = [&](std::string_view text, exit_status status = status_failed) {
        complain(io.err, app.get_name(), text);
        // If a signal came, it may have caused the failure: throw interrupted.
        interrupt_guard::check();
        return status;
    };
    interrupt_guard::forget();
    try {
        try {
            // CLI11 wants the words in reverse order.
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
        return fail(e.what(), e.status());
    } catch (const std::bad_alloc&) {
        return fail("out of memory");
    } catch (const std::exception& e) {
        return fail(e.what());
    }
}

}  // namespace tools
