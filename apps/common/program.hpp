// SPDX-License-Identifier: MIT
//
// The parts of a tool's main(), apart from cli.hpp because CLI11 takes seconds to compile.
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace tools {

// The words of a command line in order, without the program's name.
using arguments = std::vector<std::string>;

arguments arguments_of(int argc, char** argv);

// Reserves the standard streams and runs @body; if that throws interrupted, dies of the signal.
int run_main(const std::function<int()>& body) noexcept;

}  // namespace tools
