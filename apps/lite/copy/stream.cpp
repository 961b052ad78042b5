// SPDX-License-Identifier: MIT

#include "copy/stream.hpp"
#include "memory/transfer.hpp"

#include "common/signals.hpp"
#include "common/text/format.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace tools {
namespace {

// Files of /proc also have offsets, but report size 0: they are read as streams.
void find_size(source& from) {
    struct stat status {};
    if (::fstat(from.fd, &status) || (!S_ISREG(status.st_mode) && !S_ISBLK(status.st_mode)))
        return;
    const auto at = ::lseek(from.fd, 0, SEEK_CUR);
    const auto end = S_ISREG(status.st_mode) ? status.st_size : ::lseek(from.fd, 0, SEEK_END);
    if (at < 0 || end <= 0 || ::lseek(from.fd, at, SEEK_SET) < 0)
        return;
    from.at = static_cast<std::uint64_t>(at);
    from.size = at < end ? static_cast<std::uint64_t>(end - at) : 0;
}

}  // namespace

source open_source(const std::optional<std::string>& path, const streams& io) {
    source from{"standard input", unique_fd(), io.in};
    if (path && *path != "-") {
        from.owned = unique_fd(::open(path->c_str(), O_RDONLY | O_CLOEXEC));
        if (!from.owned)
            throw failure(fmt::format("{}: {}", *path, system_text(errno)));
        from.name = *path;
        from.fd = from.owned.get();
    }
    struct stat status {};
    if (::fstat(from.fd, &status) == 0 && S_ISDIR(status.st_mode))
        throw failure(fmt::format("{}: {}", from.name, system_text(EISDIR)));
    find_size(from);
    return from;
}

void sink::make_room(std::uint64_t length) {
    if (!m_grow || m_offset + m_done + length <= m_region.length())
        return;
    const auto needed = m_offset + m_done + length;
    // Double the length, so that few calls are needed. fill_from_stream() gives the excess back.
    try {
        m_region.resize(std::max(needed, 2 * m_region.length()));
        return;
    } catch (const lite::error&) {
        // There may be memory for what is needed now.
    }
    try {
        m_region.resize(needed);
    } catch (const lite::error& e) {
        throw stopped(e.code().message());
    }
}

void sink::put(std::span<const std::byte> bytes) {
    make_room(bytes.size());
    const auto offset = m_offset + m_done;
    try {
        check_range(m_verb, m_name, offset, bytes.size(), m_region.length());
    } catch (const failure&) {
        // After the first bytes only a stream can fail here: its length was not known before.
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

failure sink::stopped(std::string_view why) const {
    return cut_short(m_verb, m_name, why, m_done, m_total, "written");
}

void stream_in(const source& from, sink& to, progress& progress, const consumer& written) {
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
            if (written)
                written(buffer.get().first(n));
            progress.advance(n);
        }
        if (n < chunk_size)
            break;
    }
    interrupt_guard::check();
    if (from.size && to.done() < *from.size)
        throw to.stopped(fmt::format("{} became shorter while it was read", from.name));
}

void stream_out(const lite::region& region, std::string_view verb, const std::string& name,
                std::uint64_t offset, std::uint64_t length, progress& progress,
                const consumer& consume) {
    const transfer_buffer buffer(
        static_cast<std::size_t>(std::min<std::uint64_t>(chunk_size, length)));
    for (std::uint64_t done = 0; done < length;) {
        interrupt_guard::check();
        const auto part = buffer.get().first(
            static_cast<std::size_t>(std::min<std::uint64_t>(buffer.get().size(), length - done)));
        try {
            region.read(offset + done, part);
        } catch (const lite::error& e) {
            throw cut_short(verb, name, e.code().message(), done, length, "read");
        }
        consume(part);
        progress.advance(part.size());
        done += part.size();
    }
    interrupt_guard::check();
}

}  // namespace tools
