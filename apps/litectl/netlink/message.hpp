// SPDX-License-Identifier: MIT
//
// A generic netlink message of LITE's family, independent of sockets: a command and attributes.
// Both are plain numbers, not lite_cmd and lite_attr: a newer kernel may send unknown ones.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <uapi/lite_netlink.h>

namespace tools {

class message {
  public:
    explicit message(std::uint8_t command) : m_command(command) {}

    std::uint8_t command() const { return m_command; }

    void put_bytes(std::uint16_t type, std::span<const std::byte> value);
    void put_string(std::uint16_t type, std::string_view value);  // appends a NUL
    void put_flag(std::uint16_t type) { put_bytes(type, {}); }
    void put_u8(std::uint16_t type, std::uint8_t value) { put_integer(type, value); }
    void put_u16(std::uint16_t type, std::uint16_t value) { put_integer(type, value); }
    void put_u32(std::uint16_t type, std::uint32_t value) { put_integer(type, value); }
    void put_u64(std::uint16_t type, std::uint64_t value) { put_integer(type, value); }

    // The value, or nothing if the attribute is absent. Throws failure if its size is wrong.
    std::optional<std::uint8_t> u8(std::uint16_t type) const { return integer<std::uint8_t>(type); }
    std::optional<std::uint16_t> u16(std::uint16_t type) const {
        return integer<std::uint16_t>(type);
    }
    std::optional<std::uint32_t> u32(std::uint16_t type) const {
        return integer<std::uint32_t>(type);
    }
    std::optional<std::uint64_t> u64(std::uint16_t type) const {
        return integer<std::uint64_t>(type);
    }
    std::optional<std::string> string(std::uint16_t type) const;
    bool flag(std::uint16_t type) const { return bytes(type).has_value(); }
    std::optional<std::span<const std::byte>> bytes(std::uint16_t type) const;

    struct attribute {
        std::uint16_t type;
        std::vector<std::byte> value;
    };
    const std::vector<attribute>& attributes() const { return m_attributes; }

  private:
    template <typename T>
    void put_integer(std::uint16_t type, T value) {
        put_bytes(type, std::as_bytes(std::span(&value, 1)));
    }
    template <typename T>
    std::optional<T> integer(std::uint16_t type) const;

    std::uint8_t m_command;
    std::vector<attribute> m_attributes;
};

}  // namespace tools
