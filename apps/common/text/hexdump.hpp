// SPDX-License-Identifier: MIT
//
// Bytes as "hexdump -C" shows them, fed in pieces of any size.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace tools {

class hexdump {
  public:
    // @address: label of the first byte
    explicit hexdump(std::uint64_t address) : m_address(address) {}

    // The lines that these bytes complete. One "*" replaces all lines equal to the one before.
    std::string feed(std::span<const std::byte> bytes);

    // The last, shorter line, if any, and the end address. Empty only if nothing was fed.
    std::string finish();

  private:
    static constexpr std::size_t line_size = 16;
    using line = std::array<std::byte, line_size>;

    void put_line(std::string& out, std::span<const std::byte> bytes) const;
    void complete(std::string& out);

    std::uint64_t m_address;  // of m_line
    line m_line{};
    std::size_t m_fill = 0;
    line m_previous{};
    bool m_has_previous = false;
    bool m_squeezing = false;
};

}  // namespace tools
