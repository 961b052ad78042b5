// SPDX-License-Identifier: MIT
//
// litectl join, leave and stop.

#include "administration.hpp"

#include <uapi/lite.h>

#include <fmt/format.h>

namespace tools {

int join_command(const surroundings& world, const join_arguments& args) {
    const auto address = resolve(args.address.host);
    auto request = request_for(LITE_CMD_NODE_JOIN, args.index);
    request.put_bytes(LITE_A_ADDR, address.bytes());
    request.put_u16(LITE_A_PORT, args.address.port.value_or(LITE_DEFAULT_PORT));
    if (args.timeout_ms)
        request.put_u32(LITE_A_TIMEOUT_MS, *args.timeout_ms);

    const auto answers = ask(*world.connect(), "join", request);
    if (!answers.empty())
        if (const auto id = answers.front().u16(LITE_A_NODE_ID))
            print(world.io.out,
                  fmt::format("/dev/lite{}: joined as node {}\n", args.index.value_or(0), *id));
    return status_ok;
}

int leave_command(const surroundings& world, const node_arguments& args) {
    ask(*world.connect(), "leave", request_for(LITE_CMD_NODE_LEAVE, args.index));
    return status_ok;
}

int stop_command(const surroundings& world, const node_arguments& args) {
    ask(*world.connect(), "stop", request_for(LITE_CMD_NODE_STOP, args.index));
    return status_ok;
}

}  // namespace tools
