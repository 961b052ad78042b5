// SPDX-License-Identifier: MIT
//
// The command line.
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "net.hpp"
#include "runner.hpp"
#include "serve.hpp"
#include "workloads/load.hpp"

namespace perf {

struct RunOptions {
    Target target;
    std::vector<std::string> arms;       ///< empty: the default ones that can be reached
    std::vector<std::string> workloads;  ///< empty: all that are not on request
    std::vector<std::uint64_t> sizes{64, 4 << 10, 64 << 10, 1 << 20};
    std::vector<unsigned> windows{1, 16};
    std::vector<unsigned> threads{1, 4, 16};
    std::vector<unsigned> processes{1, 8};
    std::vector<std::uint32_t> counts{1, 100, 1000};
    std::vector<std::uint64_t> lmr_sizes{1 << 20, 16 << 20, 64 << 20};
    std::vector<std::string> modes{"none", "fair", "hw-sep", "sw-pri"};
    std::uint64_t stream_size = 64 << 20;
    unsigned streams = 2;
    std::vector<std::uint64_t> file_sizes{4 << 10, 64 << 10, 1 << 20, 4 << 20};
    std::vector<unsigned> pipes{1, 2, 6};
    std::vector<unsigned> pages{16, 256};
    std::string directory = "/var/tmp";
    unsigned rounds = 9;
    double seconds = 1;
    std::uint64_t count = 0;  ///< calls; 0: use seconds
    std::string baseline;     ///< empty: verbs if measured, else the first arm
    std::string json;
    bool quiet = false;
};

/// Help or an error was printed: exit with this status.
struct Exit {
    int status;
};

using Command = std::variant<RunOptions, LoadOptions, ServeOptions, Exit>;

/// Prints help to standard output, errors to standard error.
Command parse_command_line(int argc, const char* const* argv);

/// The arms that the user named, else the default ones that can be reached. Throws
/// std::runtime_error if there are none, or --server or --node is missing for a named one.
std::vector<std::string> arms_to_measure(const RunOptions& options);

/// Throws std::runtime_error for conflicting options.
Plan make_plan(const RunOptions& options, const std::vector<std::string>& arms);

}  // namespace perf
