// SPDX-License-Identifier: MIT
//
// lite rename, lite resize, lite move.

#include "commands.hpp"
#include "memory/transfer.hpp"

#include "common/signals.hpp"
#include "common/text/format.hpp"
#include "common/text/progress.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <string>
#include <system_error>

namespace tools {
namespace {

// Bytes per ioctl. Steps end at multiples of this, and so at page boundaries.
constexpr std::uint64_t step = std::uint64_t{16} << 20;

// Counts the bytes moved in @done. Throws failure, interrupted.
void move_in_steps(lite::region& lmr, const move_arguments& args, std::uint64_t length,
                   std::uint64_t& done, progress& progress) {
    while (done < length) {
        interrupt_guard::check();
        const auto from = args.offset + done;
        const auto part = std::min(length - done, step - from % step);
        try {
            lmr.move(args.node, from, part);
        } catch (const lite::error& e) {
            done += std::min(e.transferred(), part);
            throw cut_short("move", args.name, e.code().message(), done, length, "moved");
        }
        done += part;
        progress.advance(part);
    }
}

// With a handle, all steps are for one LMR, even if another LMR gets its name.
lite::region open_to_move(lite::context& node, const std::string& name) {
    try {
        return node.map(name, lite::rights::master);
    } catch (const lite::error& e) {
        const bool denied = e.code() == std::errc::permission_denied;
        throw explain("move", name, denied ? lite::error(EPERM, "move") : e);
    }
}

}  // namespace

int rename_command(session& session, const rename_arguments& args) {
    auto& node = session.node();
    try {
        node.rename(args.name, args.to);
    } catch (const lite::error& e) {
        throw failure(fmt::format("rename {} to {}: {}", printable(args.name), printable(args.to),
                                  e.code().message()));
    }
    return status_ok;
}

int resize_command(session& session, const resize_arguments& args) {
    if (args.size == 0)
        throw usage_error("an LMR cannot be of size 0");
    auto& node = session.node();
    try {
        node.resize(args.name, args.size);
    } catch (const lite::error& e) {
        throw explain("resize", args.name, e);
    }
    return status_ok;
}

int move_command(session& session, const move_arguments& args) {
    auto lmr = open_to_move(session.node(), args.name);
    check_range("move", args.name, args.offset, args.length.value_or(0), lmr.length());
    const auto length = args.length.value_or(lmr.length() - args.offset);

    const auto& io = session.io();
    std::uint64_t done = 0;
    try {
        const interrupt_guard guard;
        progress progress(io.err, length, args.progress);
        move_in_steps(lmr, args, length, done, progress);
    } catch (const interrupted&) {
        complain(io.err, "lite",
                 cut_short("move", args.name, "interrupted", done, length, "moved").what());
        throw;
    }
    if (args.verbose)
        print(io.out, fmt::format("{}: {} moved to node {}\n", printable(args.name),
                                  byte_count(done), args.node));
    return status_ok;
}

}  // namespace tools
