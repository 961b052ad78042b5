// SPDX-License-Identifier: MIT

#include "copy/copy_file.hpp"
#include "memory/transfer.hpp"

#include "common/crc32c.hpp"
#include "common/signals.hpp"
#include "common/text/format.hpp"

#include <lite/file.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <functional>
#include <system_error>

#include <unistd.h>

namespace tools {
namespace {

// Bytes per call. Not fewer, because each call ends with a wait for all pages in flight.
constexpr std::uint64_t piece_size = std::uint64_t{16} << 20;

// Copies a piece. Returns false if the kernel cannot move the file's pages.
using mover = std::function<bool(std::uint64_t at, std::uint64_t length)>;

failure differ(std::string_view verb, const std::string& from, const std::string& to,
               std::uint64_t length, std::uint64_t at) {
    return failure(
        fmt::format("{}: {} and {} differ within {} bytes at {}", verb, from, to, length, at));
}

bool in_pieces(session& session, const copy_end& from, const copy_end& to, std::string_view verb,
               std::uint64_t total, const copy_options& options, const mover& move) {
    progress progress(session.io().err, total, options.progress);
    std::uint32_t crc = 0;
    for (std::uint64_t done = 0; done < total;) {
        const auto length = std::min(piece_size, total - done);
        std::optional<std::uint32_t> sum;
        bool equal = false;
        if (options.resume) {
            sum = from.checksum(done, length, crc);
            equal = sum && sum == to.checksum(done, length, crc);
        }
        if (!equal && !move(done, length))
            return false;
        if (options.checksum && !equal) {
            sum = from.checksum(done, length, crc);
            if (!sum || sum != to.checksum(done, length, crc))
                throw differ(verb, from.label(), to.label(), length, done);
        }
        crc = sum.value_or(0);
        done += length;
        progress.advance(length);
        interrupt_guard::check();
    }
    return true;
}

// An error that may be the file's gets the text that read(2) and write(2) have for it.
std::string text_of(const std::error_code& code) {
    switch (code.value()) {
        case EDQUOT:
        case EFBIG:
        case ENOSPC:
        case EPERM:
        case ETXTBSY:
            return system_text(code.value());
        case EIO:
        case ESTALE:
            return fmt::format("{}, or the file failed: {}", code.message(),
                               system_text(code.value()));
        default:
            return code.message();
    }
}

// Moves a piece at @at between a file and @lmr by @move, which returns the bytes moved. Returns
// false if the kernel can neither splice from the file nor write pages to it, which the first piece
// tells. @first: this is the first piece that is moved; becomes false. For messages: @participle of
// the verb, and @shorter, why fewer bytes may have been moved.
template <typename Move>
bool move_piece(const lmr_end& lmr, std::uint64_t at, std::uint64_t length, std::uint64_t total,
                bool& first, std::string_view participle, std::string_view shorter, Move move) {
    const auto stopped = [&](std::string_view why, std::uint64_t moved) {
        return cut_short(lmr.verb(), lmr.name(), why, at + moved, total, participle);
    };
    try {
        const std::uint64_t moved = move();
        if (moved < length)
            throw stopped(shorter, moved);
    } catch (const lite::error& e) {
        if (e.code().value() == EINVAL && first && !e.transferred())
            return false;
        throw stopped(text_of(e.code()), e.transferred());
    }
    first = false;
    return true;
}

}  // namespace

std::optional<std::uint32_t> file_end::checksum(std::uint64_t at, std::uint64_t length,
                                                std::uint32_t crc) const {
    const transfer_buffer buffer(std::size_t{1} << 20);
    while (length) {
        interrupt_guard::check();
        const auto n =
            ::pread(m_fd, buffer.get().data(),
                    static_cast<std::size_t>(std::min<std::uint64_t>(buffer.get().size(), length)),
                    static_cast<off_t>(m_at + at));
        if (n == 0)
            return std::nullopt;
        if (n < 0 && errno != EINTR)
            throw failure(fmt::format("{}: {}", m_name, system_text(errno)));
        if (n < 0)
            continue;
        crc = crc32c(crc, buffer.get().first(static_cast<std::size_t>(n)));
        at += static_cast<std::uint64_t>(n);
        length -= static_cast<std::uint64_t>(n);
    }
    return crc;
}

std::string lmr_end::label() const { return printable(m_range.name); }

std::optional<std::uint32_t> lmr_end::checksum(std::uint64_t at, std::uint64_t length,
                                               std::uint32_t crc) const {
    try {
        return m_region.checksum(m_range.offset + at, length, crc);
    } catch (const lite::error& e) {
        throw explain(m_verb, m_range.name, e);
    }
}

bool copy(session& session, const file_end& from, const lmr_end& to, std::uint64_t length,
          const copy_options& options) {
    const auto shorter = from.label() + " became shorter while it was read";
    bool first = true;
    return in_pieces(session, from, to, to.verb(), length, options, [&](auto at, auto part) {
        return move_piece(to, at, part, length, first, "written", shorter, [&] {
            return lite::send_file(session.node(), to.region(), to.offset() + at, from.fd(),
                                   from.at() + at, part);
        });
    });
}

bool copy(session& session, const lmr_end& from, const file_end& to, std::uint64_t length,
          const copy_options& options) {
    bool first = true;
    return in_pieces(session, from, to, from.verb(), length, options, [&](auto at, auto part) {
        return move_piece(
            from, at, part, length, first, "read", "it became shorter meanwhile", [&] {
                return lite::receive_file(session.node(), from.region(), from.offset() + at,
                                          to.fd(), to.at() + at, part);
            });
    });
}

bool copy(session& session, const lmr_end& from, const lmr_end& to, std::uint64_t length,
          const copy_options& options) {
    return in_pieces(session, from, to, from.verb(), length, options, [&](auto at, auto part) {
        try {
            to.region().copy(to.offset() + at, from.region(), from.offset() + at, part);
        } catch (const lite::error& e) {
            throw cut_short(from.verb(), from.name() + ", " + to.name(), e.code().message(),
                            at + e.transferred(), length, "copied");
        }
        return true;
    });
}

bool copy_all(session& session, const source& from, const lmr_end& to,
              const copy_options& options) {
    if (!copy(session, file_end(from.name, from.fd, from.at), to, *from.size, options))
        return false;
    ::lseek(from.fd, static_cast<off_t>(from.at + *from.size), SEEK_SET);
    return true;
}

void stream_check::operator()(std::span<const std::byte> bytes) {
    if (m_lmr.checksum(m_at, bytes.size(), 0) != crc32c(0, bytes))
        throw differ(m_lmr.verb(), m_name, m_lmr.label(), bytes.size(), m_at);
    m_at += bytes.size();
}

void stream_to(session& session, const lmr_end& from, const std::string& to, std::uint64_t length,
               const copy_options& options, const consumer& consume) {
    progress progress(session.io().err, length, options.progress);
    stream_check check(from, to);
    stream_out(from.region(), from.verb(), from.name(), from.offset(), length, progress,
               [&](std::span<const std::byte> bytes) {
                   if (options.checksum)
                       check(bytes);
                   consume(bytes);
               });
}

void save(session& session, const lmr_end& from, output_file& to, std::uint64_t length,
          const copy_options& options) {
    if (to.has_offsets() && copy(session, from, file_end(to.path(), to.fd(), 0), length, options)) {
        to.end_at(length);
        return;
    }
    stream_to(session, from, to.path(), length, options, [&](std::span<const std::byte> bytes) {
        try {
            write_full(to.fd(), bytes);
        } catch (const std::system_error& e) {
            throw failure(fmt::format("{}: {}", to.path(), system_text(e.code().value())));
        }
    });
    to.end_at(length);
}

}  // namespace tools
