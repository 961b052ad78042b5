// SPDX-License-Identifier: MIT

#include "crc32c.hpp"

#include <array>
#include <cstring>

namespace tools {
namespace {

constexpr auto remainders = [] {
    std::array<std::uint32_t, 256> table{};
    for (std::uint32_t i = 0; i < table.size(); ++i) {
        table[i] = i;
        for (int bit = 0; bit < 8; ++bit)
            table[i] = table[i] >> 1 ^ (table[i] & 1 ? 0x82f63b78U : 0);
    }
    return table;
}();

#ifdef __x86_64__
[[gnu::target("sse4.2")]] std::uint32_t by_instruction(std::uint32_t crc,
                                                       std::span<const std::byte> bytes) noexcept {
    std::uint64_t state = ~crc;
    for (; bytes.size() >= 8; bytes = bytes.subspan(8)) {
        std::uint64_t word;
        std::memcpy(&word, bytes.data(), sizeof(word));
        state = __builtin_ia32_crc32di(state, word);
    }
    auto rest = static_cast<std::uint32_t>(state);
    for (const auto byte : bytes)
        rest = __builtin_ia32_crc32qi(rest, std::to_integer<unsigned char>(byte));
    return ~rest;
}
#endif

}  // namespace

std::uint32_t detail::crc32c_by_table(std::uint32_t crc,
                                      std::span<const std::byte> bytes) noexcept {
    crc = ~crc;
    for (const auto byte : bytes)
        crc = crc >> 8 ^ remainders[(crc ^ std::to_integer<std::uint32_t>(byte)) & 0xff];
    return ~crc;
}

std::uint32_t crc32c(std::uint32_t crc, std::span<const std::byte> bytes) noexcept {
#ifdef __x86_64__
    if (__builtin_cpu_supports("sse4.2"))
        return by_instruction(crc, bytes);
#endif
    return detail::crc32c_by_table(crc, bytes);
}

}  // namespace tools
