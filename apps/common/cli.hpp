// SPDX-License-Identifier: MIT
//
// What the tools' command lines share, on top of CLI11.
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

// Adds an option or argument that is parsed by a function as in parse.hpp; what the parser rejects
// is a usage error.
template <typename Parser, typename Target>
CLI::Option* add_parsed(CLI::App& app, const std::string& name, Parser parser, Target& target,
                        const std::string& description) {
    // Messages call "-n,--node" "--node".
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
    // Drop the default type name, TEXT.
    return option->type_name("");
}

// The words of a command line in order, without the program's name.
using arguments = std::vector<std::string>;

arguments arguments_of(int argc, char** argv);

// Parses, calls @command unless the command line is wrong or asks for help or the version, and
// turns every outcome into an exit status and at most one line on standard error. @command returns
// the status. Only interrupted and logic errors are thrown.
int run(CLI::App& app, const arguments& words, const streams& io,
        const std::function<int()>& command);

// main(): reserves the standard streams, and lets a signal that was caught end the process.
int run_main(const std::function<int()>& body) noexcept;

}  // namespace tools
