// SPDX-License-Identifier: MIT
//
// The command line.
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "load.hpp"
#include "net.hpp"
#include "runner.hpp"
#include "serve.hpp"

namespace perf {

struct RunOptions {
    Target target;
    std::vector<std::string> arms;       ///< empty: whatever can be measured
    std::vector<std::string> workloads;  ///< empty: all
    std::vector<std::uint64_t> sizes{64, 4 << 10, 64 << 10, 1 << 20};
    std::vector<unsigned> windows{1, 16};
    std::vector<unsigned> threads{1, 4, 16};
    std::vector<unsigned> processes{1, 8};
    std::vector<std::uint32_t> counts{1, 100, 1000};
    std::vector<std::uint64_t> lmr_sizes{1 << 20, 16 << 20, 64 << 20};
    unsigned rounds = 9;
    double seconds = 1;
    std::uint64_t count = 0;  ///< calls; 0: seconds decide
    std::string baseline;     ///< empty: verbs, if it is measured
    std::string json;
    bool quiet = false;
};

/// The command line was answered, or could not be understood, and that was said.
struct Exit {
    int status;
};

using Command = std::variant<RunOptions, LoadOptions, ServeOptions, Exit>;

/// Prints help to standard output, and what is wrong to standard error.
Command parse_command_line(int argc, const char* const* argv);

/// Those to measure: of the command line, or those for which there is something to talk to. Throws
/// std::runtime_error if there are none, or one has nothing to talk to.
std::vector<std::string> arms_to_measure(const RunOptions& options);

/// Throws std::runtime_error if the options do not fit together.
Plan make_plan(const RunOptions& options, const std::vector<std::string>& arms);

}  // namespace perf
