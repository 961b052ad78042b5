// SPDX-License-Identifier: MIT
//
// Copies between LMRs and pipes, terminals or sockets. The caller has an interrupt_guard.
#pragma once

#include "session.hpp"

#include "common/text/progress.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace tools {

struct source {
    std::string name;  // for messages
    unique_fd owned;
    int fd;
    std::uint64_t at = 0;               // offset of the data in the file; only with a size
    std::optional<std::uint64_t> size;  // bytes from there on, if it has offsets
};

// Opens the file @path; none and "-": standard input. Throws failure.
source open_source(const std::optional<std::string>& path, const streams& io);

// The destination of the data, and how much has arrived.
class sink {
  public:
    // @verb: for messages. @total: bytes to come, if known. @grow: lengthen the LMR if needed.
    sink(lite::region& region, std::string_view verb, const std::string& name, std::uint64_t offset,
         std::optional<std::uint64_t> total, bool grow = false)
        : m_region(region),
          m_verb(verb),
          m_name(name),
          m_offset(offset),
          m_total(total.value_or(0)),
          m_grow(grow) {}

    std::uint64_t done() const { return m_done; }

    // Throws failure.
    void put(std::span<const std::byte> bytes);

    // "VERB NAME: WHY; so much was written".
    failure stopped(std::string_view why) const;

  private:
    void make_room(std::uint64_t length);

    lite::region& m_region;
    std::string_view m_verb;
    const std::string& m_name;
    std::uint64_t m_offset;
    std::uint64_t m_total;
    bool m_grow;
    std::uint64_t m_done = 0;
};

using consumer = std::function<void(std::span<const std::byte>)>;

// Writes the source from its position on; @written gets each piece. Throws failure, interrupted.
void stream_in(const source& from, sink& to, progress& progress, const consumer& written = {});

// Reads @length bytes and gives them to @consume in pieces. Throws failure, interrupted.
void stream_out(const lite::region& region, std::string_view verb, const std::string& name,
                std::uint64_t offset, std::uint64_t length, progress& progress,
                const consumer& consume);

}  // namespace tools
