// SPDX-License-Identifier: MIT
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

namespace perf {

struct ServeOptions {
    std::string address;  ///< empty: all addresses of this machine
    std::uint16_t port = 0;
    unsigned lite_index = 0;  ///< the N of this machine's /dev/liteN
    std::vector<std::string> arms;
    bool spin = false;             ///< the server of write-imm and send polls even without traffic
    bool background = false;       ///< return when ready; a child continues
    std::chrono::seconds limit{};  ///< 0: no limit
};

/// Serves until SIGINT, SIGTERM or the limit. Returns the exit status.
int serve(const ServeOptions& options);

}  // namespace perf
