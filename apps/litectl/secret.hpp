// SPDX-License-Identifier: MIT
//
// The cluster secret, and the file that it is kept in.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

namespace tools {

// Bytes that are wiped when they are no longer needed.
class secret {
  public:
    explicit secret(std::vector<std::byte> bytes) : m_bytes(std::move(bytes)) {}
    secret(secret&& other) noexcept = default;
    secret& operator=(secret&&) = delete;
    ~secret();

    std::span<const std::byte> bytes() const { return m_bytes; }

  private:
    std::vector<std::byte> m_bytes;
};

// Reads a secret of 1..64 bytes from a file, less one newline at its end. It
// must be a regular file that belongs to root or to the caller and that nobody
// else may read or write; "-" is standard input, @in, of which nothing is
// asked. Throws failure.
secret read_secret(const std::string& path, int in);

// Makes a secret of 32 random bytes, in hexadecimal digits and with a newline, in a new
// file that only its owner may read, in a directory that is made if there is none; "-" is
// standard output, @out. Throws failure, also if the file exists.
void make_secret(const std::string& path, int out);

}  // namespace tools
