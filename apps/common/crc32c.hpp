// SPDX-License-Identifier: MIT
//
// CRC-32C (Castagnoli), as the nodes compute it for lite_checksum().
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace tools {

// Continues @crc, which is 0 at the beginning, by @bytes.
std::uint32_t crc32c(std::uint32_t crc, std::span<const std::byte> bytes) noexcept;

namespace detail {

// Without instructions of the processor for it.
std::uint32_t crc32c_by_table(std::uint32_t crc, std::span<const std::byte> bytes) noexcept;

}  // namespace detail
}  // namespace tools
