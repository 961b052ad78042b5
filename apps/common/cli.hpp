// SPDX-License-Identifier: MIT
//
// What the command lines of all tools have in common, on top of CLI11.
#pragma once

#include "error.hpp"
#include "io.hpp"

#include <CLI/CLI.hpp>

#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tools {

// Adds an option or argument whose word goes through a parser of parse.hpp or
// the like; what the parser refuses is a usage error.
template <typename Parser, typename Target>
CLI::Option* add_parsed(CLI::App& app, const std::string& name, Parser parser, Target& target,
                        const std::string& description) {
    // Of "-n,--node" messages say "--node".
    const auto label = name.substr(name.rfind(',') + 1);
    auto* option = app.add_option_function<std::string>(
        name,
        [label, parser = std::move(parser), &target](const std::string& word) {
            try {
                target = parser(std::string_view(word));
            } catch (const usage_error& e) {
                throw CLI::ValidationError(label, e.what());
            }
        },
        description);
    // That its word is TEXT goes without saying.
    return option->type_name("");
}

// The words of a command line, without the program's name, in the order in
// which they came.
using arguments = std::vector<std::string>;

arguments arguments_of(int argc, char** argv);

// Parses, calls @command if the command line makes sense and does not merely
// ask for help or the version, and turns everything that can happen into an
// exit status and at most one line on standard error. @command returns the
// status. Only interrupted and logic errors get out.
int run(CLI::App& app, const arguments& words, const streams& io,
        const std::function<int()>& command);

// main(): reserves the standard streams, and lets the process die of a signal that was
// noted.
int run_main(const std::function<int()>& body) noexcept;

}  // namespace tools
