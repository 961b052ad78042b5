// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <string>

#include "transport.hpp"

namespace perf {

struct LoadOptions {
    Target target;
    std::string arm;
    std::uint64_t size = 64;
    double rate = 1000;
    double seconds = 5;
};

/// Makes echoes at a fixed rate, one at a time, and prints the result. Returns the exit status.
int load(LoadOptions options);

}  // namespace perf
