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

// Adds an option or argument. @parser is a function like those in parse.hpp: its usage_error
// becomes a CLI11 error, which run() reports.
template <typename Parser, typename Target>
CLI::Option* add_parsed(CLI::App& app, const std::string& name, Parser parser, Target& target,
                        const std::string& description) {
    // Messages name only "--node" of "-n,--node".
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

// Parses @words and calls @command, which returns the exit status, unless they are wrong or ask for
// help or the version. Reports every error on standard error. Throws only interrupted.
int run(CLI::App& app, const arguments& words, const streams& io,
        const std::function<int()>& command);

}  // namespace tools
