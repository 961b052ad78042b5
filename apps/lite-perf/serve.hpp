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
    bool spin = false;             ///< the server of native echoes polls even if nothing comes
    bool background = false;       ///< return once it serves; a child goes on
    std::chrono::seconds limit{};  ///< stop after so long; 0: never
};

/// Serve until SIGINT, SIGTERM or the limit. Returns the exit status.
int serve(const ServeOptions& options);

}  // namespace perf
