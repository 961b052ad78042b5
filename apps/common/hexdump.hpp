// SPDX-License-Identifier: MIT
//
// Bytes as "hexdump -C" shows them, in pieces of any size.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace tools {

class hexdump {
  public:
    // @address: what the first byte is labelled with
    explicit hexdump(std::uint64_t address) : m_address(address) {}

    // The lines that these bytes complete. Lines equal to the one before are
    // shown as a single "*".
    std::string feed(std::span<const std::byte> bytes);

    // The last, shorter line if there is one, and the address of the end. Only
    // nothing if nothing was ever fed.
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
