// SPDX-License-Identifier: MIT
//
// lite alloc, lite free.

#include "commands.hpp"

#include "common/text/format.hpp"

#include <fmt/format.h>

namespace tools {

int alloc_command(session& session, const alloc_arguments& args) {
    if (args.size == 0)
        throw usage_error("an LMR cannot be of size 0");
    auto& node = session.node();
    try {
        node.create(
            {.name = args.name, .length = args.size, .nodes = args.nodes, .mode = args.mode});
    } catch (const lite::error& e) {
        throw explain("alloc", args.name, e);
    }
    return status_ok;
}

int free_command(session& session, const free_arguments& args) {
    auto& node = session.node();
    int status = status_ok;
    for (const auto& name : args.names) {
        try {
            node.free(name);
        } catch (const lite::error& e) {
            complain(session.io().err, "lite", explain("free", name, e).what());
            status = status_failed;
        }
    }
    return status;
}

}  // namespace tools
