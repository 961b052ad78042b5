// SPDX-License-Identifier: MIT
//
// lite read: from an LMR to a terminal, a stream or a file.

#include "commands.hpp"
#include "copy/copy_file.hpp"
#include "copy/output_file.hpp"
#include "copy/stream.hpp"

#include "common/signals.hpp"
#include "common/text/format.hpp"
#include "common/text/hexdump.hpp"
#include "common/text/progress.hpp"

#include <fmt/format.h>

#include <unistd.h>

namespace tools {
namespace {

std::string_view as_text(std::span<const std::byte> bytes) {
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

void refuse_binary(const read_arguments& args, text_check& text, std::span<const std::byte> bytes) {
    if (!text.take(as_text(bytes)))
        throw failure(
            fmt::format("read {}: binary data might upset the terminal (--hex shows it, "
                        "--raw prints it all the same, --file saves it)",
                        printable(args.name)));
}

void to_stream(session& session, const read_arguments& args, const lite::region& region,
               std::uint64_t length) {
    const auto& io = session.io();
    const bool to_terminal = ::isatty(io.out);
    // On one terminal the bar and the data would mix.
    progress progress(io.err, length, args.progress && !to_terminal);
    const auto give = [&](const consumer& consume) {
        stream_out(region, "read", args.name, args.offset, length, progress, consume);
    };
    if (args.hex) {
        hexdump dump(args.offset);
        give([&](std::span<const std::byte> bytes) { print(io.out, dump.feed(bytes)); });
        print(io.out, dump.finish());
        return;
    }
    text_check text;
    give([&](std::span<const std::byte> bytes) {
        if (to_terminal && !args.raw)
            refuse_binary(args, text, bytes);
        print(io.out, bytes);
    });
}

}  // namespace

int read_command(session& session, const read_arguments& args) {
    auto region = map_for(session, "read", args.name, lite::rights::read);
    check_range("read", args.name, args.offset, args.length.value_or(0), region.length());
    const auto length = args.length.value_or(region.length() - args.offset);
    if (!length && !args.file)
        return status_ok;
    const interrupt_guard guard;
    if (!args.file || *args.file == "-") {
        to_stream(session, args, region, length);
        return status_ok;
    }
    output_file file(*args.file);
    const lmr_range range{args.name, args.offset, length};
    save(session, lmr_end("read", range, region), file, length, {.progress = args.progress});
    file.commit();
    return status_ok;
}

}  // namespace tools
