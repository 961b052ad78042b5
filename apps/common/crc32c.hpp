// SPDX-License-Identifier: MIT
//
// CRC-32C (Castagnoli), as the nodes compute it for lite_checksum().
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace tools {

// Returns the CRC of the bytes that @crc covers (0: none) followed by @bytes.
std::uint32_t crc32c(std::uint32_t crc, std::span<const std::byte> bytes) noexcept;

namespace detail {

// The same for processors without SSE 4.2; declared here for unit tests.
std::uint32_t crc32c_by_table(std::uint32_t crc, std::span<const std::byte> bytes) noexcept;

}  // namespace detail
}  // namespace tools
