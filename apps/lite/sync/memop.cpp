// SPDX-License-Identifier: MIT
//
// lite set, copy, cmp, checksum: done in chunks by the nodes that hold the bytes.

#include "commands.hpp"
#include "memory/transfer.hpp"

#include "common/signals.hpp"
#include "common/text/format.hpp"
#include "common/text/progress.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace tools {
namespace {

std::string both(const std::string& first, const std::string& second) {
    return first == second ? first : first + ", " + second;
}

std::uint64_t length_of(const std::optional<std::uint64_t>& wanted, std::uint64_t offset,
                        const lite::region& region) {
    return wanted.value_or(offset < region.length() ? region.length() - offset : 0);
}

// Calls @piece(done, length) for pieces of at most @chunk bytes until it returns false.
template <typename Piece>
void in_pieces(session& session, std::uint64_t total, std::uint64_t chunk, bool show, Piece piece) {
    const interrupt_guard guard;
    progress progress(session.io().err, total, show);
    for (std::uint64_t done = 0; done < total;) {
        interrupt_guard::check();
        const auto length = std::min(chunk, total - done);
        if (!piece(done, length))
            return;
        done += length;
        progress.advance(length);
    }
}

// Must the pieces be copied from the last to the first, because the ranges overlap?
bool is_backward(const copy_arguments& args) {
    return args.from == args.to && args.to_offset > args.from_offset &&
           args.to_offset - args.from_offset < args.length;
}

std::uint64_t first_difference(session& session, const compare_arguments& args) {
    const auto first = map_for(session, "cmp", args.first, lite::rights::read);
    const auto second = map_for(session, "cmp", args.second, lite::rights::read);
    check_range("cmp", args.first, args.first_offset, args.length, first.length());
    check_range("cmp", args.second, args.second_offset, args.length, second.length());
    std::uint64_t equal = 0;
    in_pieces(session, args.length, chunk_size, args.progress, [&](auto done, auto length) {
        try {
            const auto same =
                first.compare(args.first_offset + done, second, args.second_offset + done, length);
            equal += same;
            return same == length;
        } catch (const lite::error& e) {
            throw explain("cmp", both(args.first, args.second), e);
        }
    });
    return equal;
}

}  // namespace

int set_command(session& session, const set_arguments& args) {
    auto region = map_for(session, "set", args.name, lite::rights::write);
    const auto total = length_of(args.length, args.offset, region);
    check_range("set", args.name, args.offset, total, region.length());
    // Every piece starts with the pattern's first byte.
    const auto chunk = chunk_size - chunk_size % args.pattern.size();
    in_pieces(session, total, chunk, args.progress, [&](auto done, auto length) {
        try {
            region.set(args.offset + done, length, args.pattern);
        } catch (const lite::error& e) {
            throw cut_short("set", args.name, e.code().message(), done + e.transferred(), total,
                            "set");
        }
        return true;
    });
    return status_ok;
}

int copy_command(session& session, const copy_arguments& args) {
    const auto from = map_for(session, "copy", args.from, lite::rights::read);
    auto to = map_for(session, "copy", args.to, lite::rights::write);
    check_range("copy", args.from, args.from_offset, args.length, from.length());
    check_range("copy", args.to, args.to_offset, args.length, to.length());
    const bool backward = is_backward(args);
    in_pieces(session, args.length, chunk_size, args.progress, [&](auto done, auto length) {
        const auto at = backward ? args.length - done - length : done;
        try {
            to.copy(args.to_offset + at, from, args.from_offset + at, length);
        } catch (const lite::error& e) {
            throw cut_short("copy", both(args.from, args.to), e.code().message(),
                            backward ? done : done + e.transferred(), args.length, "copied");
        }
        return true;
    });
    return status_ok;
}

int compare_command(session& session, const compare_arguments& args) {
    std::uint64_t equal = 0;
    try {
        equal = first_difference(session, args);
    } catch (const failure& e) {
        complain(session.io().err, "lite", e.what());
        return status_usage;
    }
    if (equal == args.length)
        return status_ok;
    if (!args.quiet)
        print(session.io().out, fmt::format("{} {} differ: byte {}\n", printable(args.first),
                                            printable(args.second), equal + 1));
    return status_failed;
}

int checksum_command(session& session, const checksum_arguments& args) {
    const auto region = map_for(session, "checksum", args.name, lite::rights::read);
    const auto total = length_of(args.length, args.offset, region);
    check_range("checksum", args.name, args.offset, total, region.length());
    std::uint32_t crc = 0;
    in_pieces(session, total, chunk_size, args.progress, [&](auto done, auto length) {
        try {
            crc = region.checksum(args.offset + done, length, crc);
        } catch (const lite::error& e) {
            throw explain("checksum", args.name, e);
        }
        return true;
    });
    print(session.io().out, fmt::format("{:08x}\n", crc));
    return status_ok;
}

}  // namespace tools
