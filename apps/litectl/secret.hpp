// SPDX-License-Identifier: MIT
//
// The cluster secret and its file.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

namespace tools {

// Bytes that are wiped after use.
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

// Reads a secret of 1..64 bytes from a file, without a final newline. It must be a regular file
// that belongs to root or the caller, without permissions for others; "-" is standard input, @in,
// which is not checked. Throws failure.
secret read_secret(const std::string& path, int in);

// Makes a secret of 32 random bytes, written as hexadecimal digits and a newline to a new file that
// only its owner may read; makes the directory if necessary. "-" is standard output, @out. Throws
// failure, also if the file exists.
void make_secret(const std::string& path, int out);

}  // namespace tools
