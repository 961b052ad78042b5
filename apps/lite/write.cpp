// SPDX-License-Identifier: MIT
//
// lite write: from the command line, a file or a stream into an LMR.

#include "commands.hpp"
#include "transfer.hpp"

#include "common/format.hpp"
#include "common/progress.hpp"
#include "common/signals.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <system_error>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace tools {
namespace {

struct source {
    std::string name;  // for messages
    unique_fd owned;
    int fd;
    std::optional<std::uint64_t> size;  // rest of a regular file, bytes
};

std::optional<std::uint64_t> size_left(int fd) {
    struct stat status {};
    if (::fstat(fd, &status) || !S_ISREG(status.st_mode))
        return std::nullopt;
    const auto position = ::lseek(fd, 0, SEEK_CUR);
    if (position < 0)
        return std::nullopt;
    return position < status.st_size ? static_cast<std::uint64_t>(status.st_size - position) : 0;
}

source open_source(const write_arguments& args, const streams& io) {
    if (!args.file || *args.file == "-")
        return {"standard input", unique_fd(), io.in, size_left(io.in)};

    unique_fd fd(::open(args.file->c_str(), O_RDONLY | O_CLOEXEC));
    if (!fd)
        throw failure(fmt::format("{}: {}", *args.file, system_text(errno)));
    const int number = fd.get();
    return {*args.file, std::move(fd), number, size_left(number)};
}

// Destination of the data, and how much is there.
class sink {
  public:
    sink(lite::region& region, const write_arguments& args, std::optional<std::uint64_t> total)
        : m_region(region), m_args(args), m_total(total.value_or(0)) {}

    std::uint64_t done() const { return m_done; }

    void put(std::span<const std::byte> bytes) {
        const auto offset = m_args.offset + m_done;
        try {
            check_range("write", m_args.name, offset, bytes.size(), m_region.length());
        } catch (const failure&) {
            // Only a stream can fail here after its start: its length is unknown before.
            if (!m_done)
                throw;
            throw stopped(
                fmt::format("the data goes beyond the end ({})", byte_count(m_region.length())));
        }
        try {
            m_region.write(offset, bytes);
        } catch (const lite::error& e) {
            m_done += e.transferred();
            throw stopped(e.code().message());
        }
        m_done += bytes.size();
    }

    failure stopped(std::string_view why) const {
        return cut_short("write", m_args.name, why, m_done, m_total, "written");
    }

  private:
    lite::region& m_region;
    const write_arguments& m_args;
    std::uint64_t m_total;
    std::uint64_t m_done = 0;
};

void copy(const source& from, sink& to, progress& progress) {
    const transfer_buffer buffer(chunk_size);
    for (;;) {
        interrupt_guard::check();
        std::size_t n;
        try {
            n = read_full(from.fd, buffer.get());
        } catch (const std::system_error& e) {
            throw to.stopped(fmt::format("{}: {}", from.name, system_text(e.code().value())));
        }
        if (n) {
            to.put(buffer.get().first(n));
            progress.advance(n);
        }
        if (n < chunk_size)
            break;
    }
    if (from.size && to.done() < *from.size)
        throw to.stopped(fmt::format("{} became shorter while it was read", from.name));
}

int write_stream(session& session, const write_arguments& args) {
    // The file first: no need to map the LMR without it.
    const auto from = open_source(args, session.io());
    auto region = map_for(session, "write", args.name, lite::rights::write);
    // Do not start a transfer that cannot fit.
    check_range("write", args.name, args.offset, from.size.value_or(0), region.length());

    const interrupt_guard guard;
    sink to(region, args, from.size);
    progress progress(session.io().err, from.size, args.progress);
    copy(from, to, progress);
    return status_ok;
}

}  // namespace

int write_command(session& session, const write_arguments& args) {
    if (!args.data || *args.data == "-")
        return write_stream(session, args);

    auto region = map_for(session, "write", args.name, lite::rights::write);
    sink to(region, args, args.data->size());
    check_range("write", args.name, args.offset, args.data->size(), region.length());
    if (!args.data->empty())
        to.put(std::as_bytes(std::span(args.data->data(), args.data->size())));
    return status_ok;
}

}  // namespace tools
