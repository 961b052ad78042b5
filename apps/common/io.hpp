// SPDX-License-Identifier: MIT
//
// Complete reads and writes on file descriptors, with exact errors.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include <cstddef>
#include <memory>
#include <span>
#include <string_view>

namespace tools {

// The standard streams of a command; tests replace them.
struct streams {
    int in = 0;
    int out = 1;
    int err = 2;
};

// Opens unusable descriptors for standard streams that the parent has closed. Otherwise the next
// file opened would take such a number and receive what is printed.
void reserve_standard_streams() noexcept;

class unique_fd {
  public:
    unique_fd() noexcept = default;
    explicit unique_fd(int fd) noexcept : m_fd(fd) {}
    unique_fd(unique_fd&& other) noexcept : m_fd(other.release()) {}
    unique_fd& operator=(unique_fd&& other) noexcept;
    ~unique_fd();

    explicit operator bool() const noexcept { return m_fd >= 0; }
    int get() const noexcept { return m_fd; }
    int release() noexcept;

  private:
    int m_fd = -1;
};

// Reads until @to is full or the file ends, and returns how much. Throws as write_full().
std::size_t read_full(int fd, std::span<std::byte> to);

// Writes everything. Throws std::system_error; interrupted if a guarded signal came, including
// SIGPIPE when the reader of a pipe is gone.
void write_full(int fd, std::span<const std::byte> from);

// Write to a command's standard output. Throw failure ("write error: ..."), interrupted.
void print(int fd, std::string_view text);
void print(int fd, std::span<const std::byte> bytes);

// Writes an indented document and a newline; bytes that are not UTF-8 become U+FFFD. @compact: on
// one line. Throws as print().
void print_json(int fd, const nlohmann::json& document, bool compact = false);

// Writes "PROGRAM: TEXT" and a newline to standard error; errors are ignored.
void complain(int fd, std::string_view program, std::string_view text) noexcept;

// A buffer for large transfers, page-aligned so that the kernel pins no extra page.
class transfer_buffer {
  public:
    explicit transfer_buffer(std::size_t size);
    std::span<std::byte> get() const noexcept { return {m_bytes.get(), m_size}; }

  private:
    struct release {
        void operator()(std::byte* bytes) const noexcept;
    };
    std::unique_ptr<std::byte[], release> m_bytes;
    std::size_t m_size;
};

}  // namespace tools
