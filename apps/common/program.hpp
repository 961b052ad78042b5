// SPDX-License-Identifier: MIT
//
// What the main() of a tool is made of. Without CLI11, which takes the compiler seconds.
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace tools {

// The words of a command line in order, without the program's name.
using arguments = std::vector<std::string>;

arguments arguments_of(int argc, char** argv);

// main(): reserves the standard streams, and lets a signal that was caught end the process.
int run_main(const std::function<int()>& body) noexcept;

}  // namespace tools
