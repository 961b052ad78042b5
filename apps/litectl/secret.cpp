// SPDX-License-Identifier: MIT

#include "secret.hpp"

#include "common/error.hpp"
#include "common/io.hpp"

#include <uapi/lite_netlink.h>

#include <fmt/format.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <string_view>
#include <system_error>

#include <fcntl.h>
#include <sys/random.h>
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

secret random_line() {
    constexpr std::string_view digits = "0123456789abcdef";
    std::array<unsigned char, LITE_SECRET_MAX / 2> random;
    if (::getrandom(random.data(), random.size(), 0) != static_cast<ssize_t>(random.size()))
        throw failure(fmt::format("no random bytes: {}", system_text(errno)));
    std::vector<std::byte> line;
    line.reserve(2 * random.size() + 1);
    for (const auto byte : random) {
        line.push_back(static_cast<std::byte>(digits[byte >> 4]));
        line.push_back(static_cast<std::byte>(digits[byte & 15]));
    }
    line.push_back(std::byte{'\n'});
    ::explicit_bzero(random.data(), random.size());
    return secret(std::move(line));
}

}  // namespace

secret::~secret() { ::explicit_bzero(m_bytes.data(), m_bytes.size()); }

secret read_secret(const std::string& path, int in) {
    unique_fd owned;
    int fd = in;
    if (path != "-") {
        // O_NONBLOCK: a FIFO of that name must not block.
        owned = unique_fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
        if (!owned)
            throw failure(fmt::format("{}: {}", path, system_text(errno)));
        fd = owned.get();
        check_owner(fd, path);
    }

    // Two more, for the newline, and to notice a secret that is too long.
    std::vector<std::byte> bytes(LITE_SECRET_MAX + 2);
    std::size_t length;
    try {
        length = read_full(fd, bytes);
    } catch (const std::system_error& e) {
        throw failure(fmt::format("{}: {}", path, system_text(e.code().value())));
    }
    if (length && bytes[length - 1] == std::byte{'\n'})
        length--;
    // Shrinking does not reallocate, so no copy is left behind.
    bytes.resize(length);
    secret result(std::move(bytes));
    if (!length)
        throw failure(fmt::format("{}: the secret is empty", path));
    if (length > LITE_SECRET_MAX)
        throw failure(fmt::format("{}: the secret is longer than {} bytes", path, LITE_SECRET_MAX));
    return result;
}

void make_secret(const std::string& path, int out) {
    const auto line = random_line();
    if (path == "-") {
        print(out, line.bytes());
        return;
    }
    const auto directory = std::filesystem::path(path).parent_path();
    if (!directory.empty() && ::mkdir(directory.c_str(), 0700) && errno != EEXIST)
        throw failure(fmt::format("{}: {}", directory.string(), system_text(errno)));
    // O_EXCL: a secret that may be in use is never replaced.
    const unique_fd fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
    if (!fd)
        throw failure(fmt::format("{}: {}", path, system_text(errno)));
    try {
        write_full(fd.get(), line.bytes());
        if (::fsync(fd.get()))
            throw std::system_error(errno, std::generic_category());
    } catch (const std::system_error& e) {
        ::unlink(path.c_str());
        throw failure(fmt::format("{}: {}", path, system_text(e.code().value())));
    } catch (...) {
        ::unlink(path.c_str());
        throw;
    }
}

}  // namespace tools
