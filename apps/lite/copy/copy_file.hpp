// SPDX-License-Identifier: MIT
//
// Copies between LMRs and files, block devices or other LMRs. The caller has an interrupt_guard.
#pragma once

#include "copy/lmr_range.hpp"
#include "copy/output_file.hpp"
#include "copy/stream.hpp"
#include "session.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace tools {

struct copy_options {
    bool checksum = false;  // compare what was copied
    bool resume = false;    // copy only what differs
    bool progress = true;
};

// One end of a copy: what messages and checksums need.
class copy_end {
  public:
    virtual ~copy_end() = default;
    virtual std::string label() const = 0;
    // Continues @crc by @length bytes at @at, relative to the start of the copy. None if some of
    // these bytes do not exist. Throws failure, interrupted.
    virtual std::optional<std::uint32_t> checksum(std::uint64_t at, std::uint64_t length,
                                                  std::uint32_t crc) const = 0;
};

// Bytes of a file that begin at @at.
class file_end final : public copy_end {
  public:
    file_end(std::string name, int fd, std::uint64_t at)
        : m_name(std::move(name)), m_fd(fd), m_at(at) {}

    std::string label() const override { return m_name; }
    std::optional<std::uint32_t> checksum(std::uint64_t at, std::uint64_t length,
                                          std::uint32_t crc) const override;
    int fd() const { return m_fd; }
    std::uint64_t at() const { return m_at; }

  private:
    std::string m_name;
    int m_fd;
    std::uint64_t m_at;
};

// Bytes of an LMR that begin at the range's offset.
class lmr_end final : public copy_end {
  public:
    lmr_end(std::string_view verb, const lmr_range& range, lite::region& region)
        : m_verb(verb), m_range(range), m_region(region) {}

    std::string label() const override;
    // Computed by the nodes that hold the bytes.
    std::optional<std::uint32_t> checksum(std::uint64_t at, std::uint64_t length,
                                          std::uint32_t crc) const override;
    std::string_view verb() const { return m_verb; }
    const std::string& name() const { return m_range.name; }
    std::uint64_t offset() const { return m_range.offset; }
    lite::region& region() const { return m_region; }

  private:
    std::string_view m_verb;
    const lmr_range& m_range;
    lite::region& m_region;
};

// Copy @length bytes in pieces, with progress and interruption in between. Return false, with
// nothing copied, if the kernel cannot move the file's pages. Throw failure, interrupted.
bool copy(session& session, const file_end& from, const lmr_end& to, std::uint64_t length,
          const copy_options& options);
bool copy(session& session, const lmr_end& from, const file_end& to, std::uint64_t length,
          const copy_options& options);
bool copy(session& session, const lmr_end& from, const lmr_end& to, std::uint64_t length,
          const copy_options& options);

// The same for the whole of a source that has a size. Moves the file's position as read(2) does.
bool copy_all(session& session, const source& from, const lmr_end& to, const copy_options& options);

// A consumer that compares a stream with @lmr's range, from the start on, by CRC. Throws failure.
class stream_check {
  public:
    // @name: of the stream, for messages
    stream_check(const lmr_end& lmr, std::string name) : m_lmr(lmr), m_name(std::move(name)) {}
    void operator()(std::span<const std::byte> bytes);

  private:
    const lmr_end& m_lmr;
    std::string m_name;
    std::uint64_t m_at = 0;
};

// Reads @length bytes and gives all of them to @consume in pieces: a stream cannot be resumed. @to:
// its name, for messages. Throws failure, interrupted.
void stream_to(session& session, const lmr_end& from, const std::string& to, std::uint64_t length,
               const copy_options& options, const consumer& consume);

// Copies @length bytes to a file, without committing it. Throws failure, interrupted.
void save(session& session, const lmr_end& from, output_file& to, std::uint64_t length,
          const copy_options& options);

}  // namespace tools
