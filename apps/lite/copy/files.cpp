// SPDX-License-Identifier: MIT
//
// lite put, get, cp: copy between files and LMRs. Where it can, the kernel itself moves the pages.

#include "commands.hpp"
#include "copy/copy_file.hpp"
#include "copy/output_file.hpp"
#include "copy/stream.hpp"

#include "common/signals.hpp"
#include "common/text/format.hpp"
#include "common/text/progress.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <filesystem>
#include <optional>
#include <system_error>
#include <utility>
#include <vector>

#include <unistd.h>

namespace tools {
namespace {

// First length of a new LMR for a stream, and its length if there is too little memory for that.
constexpr std::uint64_t first_length = std::uint64_t{16} << 20;
constexpr std::uint64_t least_length = 4096;

// The owner of an LMR that root makes at another node with root squash.
constexpr std::uint32_t squashed_root = 65534;

failure no_data(std::string_view verb, const std::string& name) {
    return failure(fmt::format("{} {}: there is no data, and an LMR cannot be of size 0", verb,
                               printable(name)));
}

// Lets the owner write and read the LMR until finish() sets the final mode.
std::uint32_t first_mode(const make_options& make) { return make.mode | 0600; }

// Throws lite::error.
void create(session& session, const lmr_range& to, std::optional<std::uint64_t> size,
            const make_options& make) {
    const auto with = [&](std::uint64_t bytes) {
        session.node().create({.name = to.name,
                               .length = to.offset + bytes,
                               .nodes = make.nodes,
                               .mode = first_mode(make)});
    };
    try {
        with(size.value_or(first_length));
    } catch (const lite::error& e) {
        const int error = e.code().value();
        if (size || (error != ENOSPC && error != EDQUOT && error != ENOMEM))
            throw;
        with(least_length);
    }
}

// Accepts an existing LMR as that of an earlier attempt, and gives it the mode of a new one.
// Refuses another user's LMR, even if this user may write to it: the other user would get the data.
void take_up(lite::region& region, std::string_view verb, const lmr_range& to, std::uint64_t length,
             std::uint32_t mode) {
    const auto other = [&](const std::string& what) {
        return failure(
            fmt::format("{} {}: an LMR of that name exists, {}", verb, printable(to.name), what));
    };
    if (region.length() != length)
        throw other(fmt::format("with another length ({})", byte_count(region.length())));
    try {
        const auto owner = region.stat().info.uid;
        const auto user = ::geteuid();
        if (owner != user && (user || owner != squashed_root))
            throw other(fmt::format("and belongs to uid {}", owner));
        region.chmod(mode);
    } catch (const lite::error& e) {
        throw explain(verb, to.name, e);
    }
}

// Maps the LMR to write to, and makes it first if @make says so. No @known_size: for a stream.
lite::region open_target(session& session, std::string_view verb, const lmr_range& to,
                         std::optional<std::uint64_t> known_size, const make_options& make,
                         const copy_options& options) {
    bool earlier = false;
    const auto size = known_size.value_or(first_length);
    if (make.alloc && !size)
        throw no_data(verb, to.name);
    if (make.alloc && (size > LITE_LMR_SIZE_MAX || to.offset > LITE_LMR_SIZE_MAX - size))
        throw failure(fmt::format("{} {}: more than an LMR can have", verb, printable(to.name)));
    if (make.alloc) {
        try {
            create(session, to, known_size, make);
        } catch (const lite::error& e) {
            if (!options.resume || e.code().value() != EEXIST)
                throw explain(verb, to.name, e);
            earlier = true;
        }
    }
    auto rights = lite::rights::write;
    if (make.alloc)
        rights |= lite::rights::master;
    if (options.checksum || options.resume)
        rights |= lite::rights::read;
    auto region = map_for(session, verb, to.name, rights);
    if (earlier)
        take_up(region, verb, to, to.offset + size, first_mode(make));
    return region;
}

void finish(lite::region& region, std::string_view verb, const lmr_range& to,
            const make_options& make) {
    if (!make.alloc || (make.mode & 0600) == 0600)
        return;
    try {
        region.chmod(make.mode);
    } catch (const lite::error& e) {
        throw explain(verb, to.name, e);
    }
}

void discard(lite::region& region) {
    try {
        region.free();
    } catch (const lite::error&) {
        // The user needs the error that led here, not this one.
    }
}

void refuse_resume(std::string_view verb, const std::string& name, bool resume,
                   std::string_view what = "offsets") {
    if (resume)
        throw failure(fmt::format("{} {}: --resume needs a file that has {}", verb, name, what));
}

void fill_from_stream(session& session, const source& from, const lmr_end& to,
                      const make_options& make, const copy_options& options) {
    sink sink(to.region(), to.verb(), to.name(), to.offset(), from.size, make.alloc);
    progress progress(session.io().err, from.size, options.progress);
    stream_in(from, sink, progress, options.checksum ? stream_check(to, from.name) : consumer());
    if (!make.alloc)
        return;
    if (!sink.done())
        throw no_data(to.verb(), to.name());
    try {
        if (to.region().length() != to.offset() + sink.done())
            to.region().resize(to.offset() + sink.done());
    } catch (const lite::error& e) {
        throw sink.stopped(e.code().message());
    }
}

void put(session& session, std::string_view verb, const std::string& file, const lmr_range& to,
         const make_options& make, const copy_options& options) {
    if (to.length)
        throw usage_error("the length is that of the file: give the LMR as NAME[:OFFSET]");
    const auto from = open_source(file, session.io());
    if (!from.size)
        refuse_resume(verb, from.name, options.resume, "a size and is not empty");
    const interrupt_guard guard;
    auto region = open_target(session, verb, to, from.size, make, options);
    const lmr_end end(verb, to, region);
    check_range(verb, to.name, to.offset, from.size.value_or(0), region.length());
    try {
        if (!from.size || !copy_all(session, from, end, options))
            fill_from_stream(session, from, end, make, options);
        finish(region, verb, to, make);
    } catch (...) {
        // A copy from a stream cannot be resumed, and the LMR's length is wrong.
        if (make.alloc && !from.size)
            discard(region);
        throw;
    }
}

void get(session& session, std::string_view verb, const lmr_range& from, const std::string& file,
         const copy_options& options) {
    auto region = map_for(session, verb, from.name, lite::rights::read);
    check_range(verb, from.name, from.offset, from.length.value_or(0), region.length());
    const auto length = from.length.value_or(region.length() - from.offset);
    // As parse_source() refuses a length of 0: a file would be emptied.
    if (!length)
        throw failure(
            fmt::format("{} {}: there is nothing from this offset on", verb, printable(from.name)));
    const lmr_end end(verb, from, region);
    const interrupt_guard guard;
    if (file == "-") {
        refuse_resume(verb, "standard output", options.resume);
        stream_to(session, end, "standard output", length, options,
                  [&](std::span<const std::byte> bytes) { print(session.io().out, bytes); });
        return;
    }
    output_file to(file,
                   options.resume ? output_file::partial::resumed : output_file::partial::kept);
    if (options.resume && !to.has_offsets())
        refuse_resume(verb, file, true);
    try {
        save(session, end, to, length, options);
        to.commit();
    } catch (const failure& e) {
        const auto part = to.leftover();
        if (part.empty())
            throw;
        throw failure(fmt::format("{}; --resume goes on with {}", e.what(), part));
    }
    interrupt_guard::check();
}

void copy_lmr(session& session, const lmr_range& from, const lmr_range& to,
              const make_options& make, const copy_options& options) {
    if (from.name == to.name)
        throw failure("cp: within an LMR: use 'lite copy'");
    if (to.length)
        throw usage_error("the length is that of the source: give the target as NAME:[OFFSET]");
    const interrupt_guard guard;
    auto source = map_for(session, "cp", from.name, lite::rights::read);
    check_range("cp", from.name, from.offset, from.length.value_or(0), source.length());
    const auto length = from.length.value_or(source.length() - from.offset);
    auto target = open_target(session, "cp", to, length, make, options);
    check_range("cp", to.name, to.offset, length, target.length());
    copy(session, lmr_end("cp", from, source), lmr_end("cp", to, target), length, options);
    finish(target, "cp", to, make);
}

bool is_directory(const std::string& path) {
    std::error_code error;
    return std::filesystem::is_directory(path, error);
}

std::string base_name(const std::string& path) {
    return std::filesystem::path(path).filename().string();
}

// A source or a target: an LMR or a file.
struct place {
    std::optional<lmr_range> lmr;
    std::string file;

    bool operator==(const place& other) const {
        return lmr.has_value() == other.lmr.has_value() && file == other.file &&
               (!lmr || lmr->name == other.lmr->name);
    }
};

place parse_place(const std::string& word, lmr_range (*parse)(std::string_view) = parse_range) {
    if (names_lmr(word))
        return {parse(word), {}};
    return {std::nullopt, word};
}

// The target for @from. @word is the last word of the command line. Throws failure, usage_error.
place target_of(const place& from, const std::string& word) {
    // ":" is the LMR with the file's name.
    if (word == ":" && !from.lmr)
        return {lmr_range{.name = base_name(from.file)}, {}};
    auto to = parse_place(word);
    if (!from.lmr && !to.lmr)
        throw usage_error(fmt::format("'{}' and '{}' are files: an LMR is NAME:, with a colon",
                                      printable(from.file), printable(word)));
    if (to.lmr || !is_directory(to.file))
        return to;
    const auto& name = from.lmr->name;
    // A name must not lead out of the directory.
    if (name.find('/') != std::string::npos || name == "." || name == "..")
        throw usage_error(
            fmt::format("'{}' is no name for a file: name the file, too", printable(name)));
    return {std::nullopt, (std::filesystem::path(to.file) / name).string()};
}

void copy_one(session& session, const place& from, const place& to, const cp_arguments& args) {
    if (!from.lmr)
        put(session, "cp", from.file, *to.lmr, args.make, args.copy);
    else if (!to.lmr)
        get(session, "cp", *from.lmr, to.file, args.copy);
    else
        copy_lmr(session, *from.lmr, *to.lmr, args.make, args.copy);
}

}  // namespace

int put_command(session& session, const put_arguments& args) {
    put(session, "put", args.file, args.to, args.make, args.copy);
    return status_ok;
}

int get_command(session& session, const get_arguments& args) {
    get(session, "get", args.from, args.file, args.copy);
    return status_ok;
}

int cp_command(session& session, const cp_arguments& args) {
    auto sources = args.places;
    if (sources.size() < 2)
        throw usage_error("a source and a target are required");
    const auto to = sources.back();
    sources.pop_back();
    if (sources.size() > 1 && to != ":" && !is_directory(to))
        throw usage_error(fmt::format(
            "with several sources the target must be a directory, or ':' for LMRs named like the "
            "files; '{}' is neither",
            printable(to)));
    // Check the whole command line before anything is copied.
    std::vector<std::pair<place, place>> copies;
    for (const auto& word : sources) {
        auto from = parse_place(word, parse_source);
        auto target = target_of(from, to);
        // While "a" is incomplete, its data is in "a.lite-part".
        for (const auto& [other, same] : copies)
            if (same == target || same.file == target.file + ".lite-part" ||
                target.file == same.file + ".lite-part")
                throw usage_error(
                    fmt::format("'{}' would overwrite what another source gave", printable(word)));
        copies.emplace_back(std::move(from), std::move(target));
    }
    int status = status_ok;
    for (const auto& [from, target] : copies) {
        try {
            copy_one(session, from, target, args);
        } catch (const failure& e) {
            complain(session.io().err, "lite", e.what());
            status = status_failed;
        }
        interrupt_guard::check();
    }
    return status;
}

}  // namespace tools
