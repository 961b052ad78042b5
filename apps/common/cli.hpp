// SPDX-License-Identifier: MIT
//
// What the tools' command lines share, on top of CLI11.
#pragma once

#include "error.hpp"
#include "io.hpp"
#include "program.hpp"

#include <CLI/CLI.hpp>

#include <functional>
#include <string>
#include <string_view>
#include <utility>

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

// Parses, calls @command unless the command line is wrong or asks for help or the version, and
// turns every outcome into an exit status and at most one line on standard error. @command returns
// the status. Only interrupted and logic errors are thrown.
int run(CLI::App& app, const arguments& words, const streams& io,
        const std::function<int()>& command);

}  // namespace tools
