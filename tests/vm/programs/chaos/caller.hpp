// SPDX-License-Identifier: MIT
#pragma once

#include "order.hpp"

#include <string>
#include <vector>

namespace lite_chaos {

struct CallerOptions {
    int index = 0;
    std::vector<u32> nodes;  // to call
    std::string books;       // directory
    u64 calls = 1000;
    u64 seed = 1;
    unsigned slowness = 1;  // of the machine
    unsigned calm = 1;      // by this factor, kills and long calls are rarer
    bool kernel = false;    // the functions of kcalls, too
};

// Makes calls, in processes that are killed now and then.
int call(const CallerOptions& options);

}  // namespace lite_chaos
