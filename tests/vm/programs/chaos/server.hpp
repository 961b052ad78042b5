// SPDX-License-Identifier: MIT
#pragma once

#include "order.hpp"

#include <string>

namespace lite_chaos {

struct ServerOptions {
    int index = 0;
    std::string books;  // directory
    u64 seed = 1;
    unsigned slowness = 1;  // of the machine
    unsigned calm = 1;      // by this factor, kills are rarer
};

// Serves all functions, by processes that are killed now and then, until standard input ends.
int serve(const ServerOptions& options);

}  // namespace lite_chaos
