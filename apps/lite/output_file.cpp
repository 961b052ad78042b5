// SPDX-License-Identifier: MIT

#include "output_file.hpp"

#include "common/error.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace tools {
namespace {

failure file_failure(const std::string& path) {
    return failure{fmt::format("{}: {}", path, system_text(errno))};
}

}  // namespace

output_file::output_file(const std::string& path) : m_path(path), m_target(path) {
    struct stat status {};
    if (::stat(path.c_str(), &status) == 0) {
        if (!S_ISREG(status.st_mode)) {
            m_fd = unique_fd(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
            if (!m_fd)
                throw file_failure(path);
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
    } else if (errno != ENOENT) {
        throw file_failure(path);
    }

    const std::filesystem::path target(m_target);
    auto pattern = (target.parent_path() / (".lite-XXXXXX")).string();
    m_fd = unique_fd(::mkostemp(pattern.data(), O_CLOEXEC));
    if (!m_fd)
        throw file_failure(path);
    m_temporary = pattern;
}

output_file::~output_file() {
    if (!m_temporary.empty())
        ::unlink(m_temporary.c_str());
}

void output_file::commit() {
    // On disk before it replaces the old file, so that a crash leaves one of them.
    if (!m_temporary.empty() && ::fdatasync(m_fd.get()) && errno != EINVAL)
        throw file_failure(m_path);
    if (::close(m_fd.release()))
        throw file_failure(m_path);
    if (!m_temporary.empty() && std::rename(m_temporary.c_str(), m_target.c_str()))
        throw file_failure(m_path);
    m_temporary.clear();
}

}  // namespace tools
