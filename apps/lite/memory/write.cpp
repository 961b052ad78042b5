// SPDX-License-Identifier: MIT
//
// lite write: from the command line, a file or a stream into an LMR.

#include "commands.hpp"
#include "copy/copy_file.hpp"
#include "copy/stream.hpp"

#include "common/signals.hpp"
#include "common/text/progress.hpp"

namespace tools {
namespace {

int write_file(session& session, const write_arguments& args) {
    // Open the file first: without it there is no need to map the LMR.
    const auto from = open_source(args.file, session.io());
    auto region = map_for(session, "write", args.name, lite::rights::write);
    check_range("write", args.name, args.offset, from.size.value_or(0), region.length());
    const interrupt_guard guard;
    const lmr_range range{args.name, args.offset, {}};
    if (from.size &&
        copy_all(session, from, lmr_end("write", range, region), {.progress = args.progress}))
        return status_ok;

    sink to(region, "write", args.name, args.offset, from.size);
    progress progress(session.io().err, from.size, args.progress);
    stream_in(from, to, progress);
    return status_ok;
}

}  // namespace

int write_command(session& session, const write_arguments& args) {
    if (!args.data || *args.data == "-")
        return write_file(session, args);

    auto region = map_for(session, "write", args.name, lite::rights::write);
    sink to(region, "write", args.name, args.offset, args.data->size());
    check_range("write", args.name, args.offset, args.data->size(), region.length());
    if (!args.data->empty())
        to.put(std::as_bytes(std::span(args.data->data(), args.data->size())));
    return status_ok;
}

}  // namespace tools
