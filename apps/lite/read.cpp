// SPDX-License-Identifier: MIT
//
// lite read: from an LMR to a terminal, a stream or a file.

#include "commands.hpp"
#include "output_file.hpp"
#include "transfer.hpp"

#include "common/format.hpp"
#include "common/hexdump.hpp"
#include "common/progress.hpp"
#include "common/signals.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <system_error>

#include <unistd.h>

namespace tools {
namespace {

using consumer = std::function<void(std::span<const std::byte>)>;

std::string_view as_text(std::span<const std::byte> bytes) {
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

void copy(const lite::region& region, const read_arguments& args, std::uint64_t length,
          progress& progress, const consumer& consume) {
    const transfer_buffer buffer(
        static_cast<std::size_t>(std::min<std::uint64_t>(chunk_size, length)));
    for (std::uint64_t done = 0; done < length;) {
        interrupt_guard::check();
        const auto part = buffer.get().first(
            static_cast<std::size_t>(std::min<std::uint64_t>(buffer.get().size(), length - done)));
        try {
            region.read(args.offset + done, part);
        } catch (const lite::error& e) {
            throw cut_short("read", args.name, e.code().message(), done, length, "read");
        }
        consume(part);
        progress.advance(part.size());
        done += part.size();
    }
}

// Control characters are not sent to a terminal unless asked for.
void refuse_binary(const read_arguments& args, std::span<const std::byte> bytes) {
    if (!is_text(as_text(bytes)))
        throw failure(
            fmt::format("read {}: binary data might upset the terminal (--hex shows it, "
                        "--raw prints it all the same, --file saves it)",
                        printable(args.name)));
}

}  // namespace

int read_command(session& session, const read_arguments& args) {
    const auto& io = session.io();
    const auto region = map_for(session, "read", args.name, lite::rights::read);
    check_range("read", args.name, args.offset, args.length.value_or(0), region.length());
    const auto length = args.length.value_or(region.length() - args.offset);
    if (!length && !args.file)
        return status_ok;

    const interrupt_guard guard;
    const bool to_file = args.file && *args.file != "-";
    const bool to_terminal = !to_file && ::isatty(io.out);
    // On one terminal the bar and the data would mix.
    progress progress(io.err, length, args.progress && !to_terminal);

    if (to_file) {
        output_file file(*args.file);
        copy(region, args, length, progress, [&](std::span<const std::byte> bytes) {
            try {
                write_full(file.fd(), bytes);
            } catch (const std::system_error& e) {
                throw failure(fmt::format("{}: {}", *args.file, system_text(e.code().value())));
            }
        });
        file.commit();
    } else if (args.hex) {
        hexdump dump(args.offset);
        copy(region, args, length, progress,
             [&](std::span<const std::byte> bytes) { print(io.out, dump.feed(bytes)); });
        print(io.out, dump.finish());
    } else {
        copy(region, args, length, progress, [&](std::span<const std::byte> bytes) {
            if (to_terminal && !args.raw)
                refuse_binary(args, bytes);
            print(io.out, bytes);
        });
    }
    return status_ok;
}

}  // namespace tools
