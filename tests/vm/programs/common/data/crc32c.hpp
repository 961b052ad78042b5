// SPDX-License-Identifier: MIT
// CRC-32C by its definition, bit by bit: a reference for other implementations.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace lite_test {

inline std::uint32_t crc32c(std::span<const std::byte> bytes, std::uint32_t seed = 0) {
    std::uint32_t crc = ~seed;
    for (const auto byte : bytes) {
        crc ^= std::to_integer<std::uint32_t>(byte);
        for (int bit = 0; bit < 8; ++bit)
            crc = crc >> 1 ^ (crc & 1 ? 0x82f63b78U : 0);
    }
    return ~crc;
}

}  // namespace lite_test
