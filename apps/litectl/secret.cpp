// SPDX-License-Identifier: MIT

#include "secret.hpp"

#include "common/error.hpp"
#include "common/io.hpp"

#include <uapi/lite_netlink.h>

#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <system_error>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace tools {
namespace {

void check_owner(int fd, const std::string& path) {
    struct stat status {};
    if (::fstat(fd, &status))
        throw failure(fmt::format("{}: {}", path, system_text(errno)));
    if (!S_ISREG(status.st_mode))
        throw failure(fmt::format("{}: the secret must be in a regular file", path));
    if (status.st_uid != 0 && status.st_uid != ::geteuid())
        throw failure(fmt::format("{}: the secret belongs to uid {}, who is neither root nor you",
                                  path, status.st_uid));
    if (status.st_mode & 077)
        throw failure(
            fmt::format("{}: the secret may be used by others than its owner "
                        "(mode {:04o}); 'chmod 600' it",
                        path, status.st_mode & 07777));
}

}  // namespace

secret::~secret() { ::explicit_bzero(m_bytes.data(), m_bytes.size()); }

secret read_secret(const std::string& path, int in) {
    unique_fd owned;
    int fd = in;
    if (path != "-") {
        // Not to be kept waiting by a pipe of that name.
        owned = unique_fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
        if (!owned)
            throw failure(fmt::format("{}: {}", path, system_text(errno)));
        fd = owned.get();
        check_owner(fd, path);
    }

    // Room for the newline, and for one byte too many.
    std::vector<std::byte> bytes(LITE_SECRET_MAX + 2);
    std::size_t length;
    try {
        length = read_full(fd, bytes);
    } catch (const std::system_error& e) {
        throw failure(fmt::format("{}: {}", path, system_text(e.code().value())));
    }
    if (length && bytes[length - 1] == std::byte{'\n'})
        length--;
    // Shrinking moves nothing: no copy stays behind.
    bytes.resize(length);
    secret result(std::move(bytes));
    if (!length)
        throw failure(fmt::format("{}: the secret is empty", path));
    if (length > LITE_SECRET_MAX)
        throw failure(fmt::format("{}: the secret is longer than {} bytes", path, LITE_SECRET_MAX));
    return result;
}

}  // namespace tools
