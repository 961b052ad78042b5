// SPDX-License-Identifier: MIT

#include "copy/output_file.hpp"

#include "common/crc32c.hpp"
#include "common/error.hpp"
#include "common/signals.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <span>
#include <string_view>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

namespace tools {
namespace {

failure file_failure(const std::string& path) {
    return failure{fmt::format("{}: {}", path, system_text(errno))};
}

// @target with ".lite-part" appended. If the name gets too long, a checksum replaces its end, so
// that a later attempt finds the same file.
std::string part_of(const std::string& target) {
    constexpr std::string_view suffix = ".lite-part";
    const auto at = target.rfind('/') + 1;
    const auto name = std::string_view(target).substr(at);
    if (name.size() + suffix.size() <= NAME_MAX)
        return fmt::format("{}{}", target, suffix);
    const auto sum = fmt::format("-{:08x}", crc32c(0, std::as_bytes(std::span(name))));
    return fmt::format("{}{}{}", target.substr(0, at + NAME_MAX - suffix.size() - sum.size()), sum,
                       suffix);
}

}  // namespace

// The name is predictable. In a directory that all can write to, another user may have made it, as
// a file or as a link to a file of this user.
void output_file::open_part(bool resume) {
    const auto part = part_of(m_target);
    constexpr int flags = O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC;
    m_fd = unique_fd(::open(part.c_str(), flags | O_EXCL, 0600));
    const bool made = static_cast<bool>(m_fd);
    if (!made && errno == EEXIST)
        m_fd = unique_fd(::open(part.c_str(), flags, 0600));
    if (!m_fd)
        throw file_failure(part);
    struct stat status {};
    if (::fstat(m_fd.get(), &status))
        throw file_failure(part);
    // A file just made is not checked: NFS and vfat may give it another owner.
    if (!made && (!S_ISREG(status.st_mode) || status.st_nlink != 1 ||
                  status.st_uid != ::geteuid() || ::fchmod(m_fd.get(), 0600)))
        throw failure(fmt::format("{}: not a file of an earlier attempt of this user", part));
    // Some file systems have no locks: then continue without.
    if (::flock(m_fd.get(), LOCK_EX | LOCK_NB) && errno == EWOULDBLOCK)
        throw failure(fmt::format("{}: another process writes it", part));
    // The process that had the lock may have renamed or removed the file before it was locked here.
    struct stat now {};
    if (::stat(part.c_str(), &now) || now.st_ino != status.st_ino || now.st_dev != status.st_dev)
        throw failure(fmt::format("{}: another process has just finished it", part));
    m_keep = true;
    m_temporary = part;
    if (!resume && ::ftruncate(m_fd.get(), 0))
        throw file_failure(part);
}

output_file::output_file(const std::string& path, partial left) : m_path(path), m_target(path) {
    struct stat status {};
    // Otherwise an empty name would fail only at the end, in rename().
    if (path.empty())
        throw usage_error("the file has no name");
    if (::stat(path.c_str(), &status) == 0) {
        if (!S_ISREG(status.st_mode)) {
            m_has_offsets = S_ISBLK(status.st_mode);
            // O_RDWR, because checksums of what has offsets may be compared.
            m_fd = unique_fd(::open(path.c_str(), (m_has_offsets ? O_RDWR : O_WRONLY) | O_CLOEXEC));
            if (!m_fd) {
                // open() of a FIFO waits for a reader, and a signal may end it.
                const int error = errno;
                interrupt_guard::check();
                errno = error;
                throw file_failure(path);
            }
            return;
        }
        // rename() needs no right to the file itself, but a read-only file should be kept.
        if (::access(path.c_str(), W_OK))
            throw file_failure(path);
        const std::unique_ptr<char, decltype(&std::free)> real(::realpath(path.c_str(), nullptr),
                                                               std::free);
        if (!real)
            throw file_failure(path);
        m_target = real.get();
        // In a directory that all can write to, another user may have replaced the file by a link.
        // No system call follows that (fs.protected_symlinks), but realpath() does.
        struct stat found {};
        if (::lstat(m_target.c_str(), &found) || !S_ISREG(found.st_mode) ||
            found.st_dev != status.st_dev || found.st_ino != status.st_ino)
            throw failure(fmt::format("{}: another process has just replaced it", path));
    } else if (errno != ENOENT) {
        throw file_failure(path);
    } else if (::lstat(path.c_str(), &status) == 0 && S_ISLNK(status.st_mode)) {
        throw failure(fmt::format("{}: a symbolic link to a file that does not exist", path));
    }

    if (left != partial::removed) {
        open_part(left == partial::resumed);
        return;
    }
    const std::filesystem::path target(m_target);
    auto pattern = (target.parent_path() / (".lite-XXXXXX")).string();
    m_fd = unique_fd(::mkostemp(pattern.data(), O_CLOEXEC));
    if (!m_fd)
        throw file_failure(path);
    m_temporary = pattern;
}

output_file::~output_file() {
    if (!m_temporary.empty() && leftover().empty())
        ::unlink(m_temporary.c_str());
}

std::string output_file::leftover() const {
    struct stat status {};
    const bool any = m_keep && ::fstat(m_fd.get(), &status) == 0 && status.st_size > 0;
    return any ? m_temporary : std::string();
}

void output_file::end_at(std::uint64_t length) {
    if (!m_temporary.empty() && ::ftruncate(m_fd.get(), static_cast<off_t>(length)))
        throw file_failure(m_path);
}

// Keeps the lock until the file has its final name: no other process may begin it anew before.
void output_file::commit() {
    // The data must be on disk before it replaces the old file: a crash leaves one of the two.
    if ((m_has_offsets || !m_temporary.empty()) && ::fdatasync(m_fd.get()) && errno != EINVAL) {
        // Data that the disk refused may still be in the page cache: a resume would accept it.
        m_keep = false;
        throw file_failure(m_path);
    }
    if (!m_temporary.empty() && std::rename(m_temporary.c_str(), m_target.c_str()))
        throw file_failure(m_path);
    m_temporary.clear();
    if (::close(m_fd.release()))
        throw file_failure(m_path);
}

}  // namespace tools
