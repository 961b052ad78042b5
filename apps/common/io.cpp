// SPDX-License-Identifier: MIT

#include "io.hpp"

#include "error.hpp"
#include "signals.hpp"
#include "text/format.hpp"

#include <nlohmann/json.hpp>

#include <cerrno>
#include <cstdlib>
#include <new>
#include <string>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <unistd.h>

namespace tools {
namespace {

// Returns only if the caller is to retry: after EINTR by a signal that is not guarded.
void handle(int error) {
    interrupt_guard::check();
    if (error != EINTR)
        throw std::system_error(error, std::generic_category());
}

}  // namespace

void reserve_standard_streams() noexcept {
    for (const int fd : {0, 1, 2}) {
        if (::fcntl(fd, F_GETFD) >= 0)
            continue;
        // open() takes the lowest free number, which is @fd. The access mode is wrong on purpose:
        // reads or writes fail with EBADF, as on a closed descriptor.
        [[maybe_unused]] const int reserved = ::open("/dev/null", fd ? O_RDONLY : O_WRONLY);
    }
}

unique_fd& unique_fd::operator=(unique_fd&& other) noexcept {
    unique_fd taken(std::move(other));
    std::swap(m_fd, taken.m_fd);
    return *this;
}

unique_fd::~unique_fd() {
    if (m_fd >= 0)
        ::close(m_fd);
}

int unique_fd::release() noexcept { return std::exchange(m_fd, -1); }

std::size_t read_full(int fd, std::span<std::byte> to) {
    std::size_t done = 0;
    while (done < to.size()) {
        const auto n = ::read(fd, to.data() + done, to.size() - done);
        if (n < 0)
            handle(errno);
        else if (n == 0)
            break;
        else
            done += static_cast<std::size_t>(n);
    }
    return done;
}

void write_full(int fd, std::span<const std::byte> from) {
    while (!from.empty()) {
        const auto n = ::write(fd, from.data(), from.size());
        if (n < 0)
            handle(errno);
        else
            from = from.subspan(static_cast<std::size_t>(n));
    }
}

void print(int fd, std::string_view text) {
    print(fd, std::as_bytes(std::span(text.data(), text.size())));
}

void print(int fd, std::span<const std::byte> bytes) {
    try {
        write_full(fd, bytes);
    } catch (const std::system_error& e) {
        throw failure("write error: " + system_text(e.code().value()));
    }
}

void print_json(int fd, const nlohmann::json& document, bool compact) {
    print(fd,
          document.dump(compact ? -1 : 2, ' ', false, nlohmann::json::error_handler_t::replace) +
              '\n');
}

void complain(int fd, std::string_view program, std::string_view text) noexcept {
    try {
        std::string line(program);
        // File names and words of the command line may contain escape sequences for the terminal.
        line.append(": ").append(is_text(text) ? text : printable(text)).append("\n");
        // One write, so that lines of several programs do not mix.
        [[maybe_unused]] const auto n = ::write(fd, line.data(), line.size());
    } catch (const std::bad_alloc&) {
        [[maybe_unused]] const auto n = ::write(fd, "out of memory\n", 14);
    }
}

transfer_buffer::transfer_buffer(std::size_t size) : m_size(size) {
    void* bytes = nullptr;
    if (::posix_memalign(&bytes, static_cast<std::size_t>(::sysconf(_SC_PAGESIZE)), size))
        throw std::bad_alloc();
    m_bytes.reset(static_cast<std::byte*>(bytes));
}

void transfer_buffer::release::operator()(std::byte* bytes) const noexcept { std::free(bytes); }

}  // namespace tools
