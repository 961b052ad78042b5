// SPDX-License-Identifier: MIT

#include "terminal.hpp"

#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>

#include <cstdlib>

#include <poll.h>
#include <pty.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <termios.h>
#include <unistd.h>

namespace {

void require(bool condition, const char* what) {
    if (!condition)
        throw std::runtime_error(what);
}

}  // namespace

capture::capture(std::string_view content) : m_fd(::memfd_create("capture", MFD_CLOEXEC)) {
    require(m_fd >= 0, "memfd_create");
    require(::write(m_fd, content.data(), content.size()) == static_cast<ssize_t>(content.size()),
            "write");
    ::lseek(m_fd, 0, SEEK_SET);
}

capture::~capture() { ::close(m_fd); }

std::string capture::text() const {
    std::string text;
    char chunk[4096];
    ssize_t n;
    while ((n = ::pread(m_fd, chunk, sizeof(chunk), static_cast<off_t>(text.size()))) > 0)
        text.append(chunk, static_cast<std::size_t>(n));
    return text;
}

terminal::terminal() {
    winsize size{};
    size.ws_col = 80;
    size.ws_row = 24;
    require(::openpty(&m_master, &m_slave, nullptr, nullptr, &size) == 0, "openpty");
    termios settings{};
    ::tcgetattr(m_slave, &settings);
    ::cfmakeraw(&settings);
    ::tcsetattr(m_slave, TCSANOW, &settings);
}

terminal::~terminal() {
    ::close(m_slave);
    ::close(m_master);
}

std::string terminal::take() const {
    std::string text;
    pollfd ready{m_master, POLLIN, 0};
    while (::poll(&ready, 1, 0) == 1 && ready.revents & POLLIN) {
        char chunk[4096];
        const auto n = ::read(m_master, chunk, sizeof(chunk));
        if (n <= 0)
            break;
        text.append(chunk, static_cast<std::size_t>(n));
    }
    return text;
}

temporary_directory::temporary_directory() {
    std::string pattern = (std::filesystem::temp_directory_path() / "lite-test-XXXXXX").string();
    require(::mkdtemp(pattern.data()) != nullptr, "mkdtemp");
    m_path = pattern;
}

temporary_directory::~temporary_directory() {
    std::error_code ignored;
    std::filesystem::remove_all(m_path, ignored);
}

std::string temporary_directory::operator/(std::string_view name) const {
    return (std::filesystem::path(m_path) / name).string();
}

void write_file(const std::string& path, std::string_view content, unsigned mode) {
    std::ofstream out(path, std::ios::binary);
    out.write(content.data(), static_cast<std::streamsize>(content.size()));
    out.close();
    require(out.good(), "cannot write a file");
    require(::chmod(path.c_str(), mode) == 0, "chmod");
}

std::string read_file(const std::string& path) {
    std::ifstream in(path, std::ios::binary);
    require(in.good(), "cannot read a file");
    return {std::istreambuf_iterator<char>(in), {}};
}
