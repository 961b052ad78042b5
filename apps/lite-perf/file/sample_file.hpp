// SPDX-License-Identifier: MIT
//
// Files to be moved.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "../net.hpp"

namespace perf {

/// Reads or writes exactly these bytes at an offset. Throws if the file ends before.
void read_at(int fd, std::span<std::byte> data, std::uint64_t offset);
void write_at(int fd, std::span<const std::byte> data, std::uint64_t offset);

/// A file of random bytes, without a name: it is gone with this object.
class SampleFile {
  public:
    /// @directory: on the file system to measure.
    SampleFile(const std::string& directory, std::uint64_t bytes);

    int fd() const { return fd_.get(); }
    std::uint64_t bytes() const { return bytes_; }

    /// Removes the file from the page cache. Throws if the file system keeps it in memory.
    void drop() const;
    /// Overwrites it with zeroes.
    void clear() const;

  private:
    std::string directory_;
    std::uint64_t bytes_;
    Fd fd_;
};

}  // namespace perf
