// SPDX-License-Identifier: MIT

#include "netlink/message.hpp"

#include "common/error.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

namespace tools {

void message::put_bytes(std::uint16_t type, std::span<const std::byte> value) {
    m_attributes.push_back({type, {value.begin(), value.end()}});
}

void message::put_string(std::uint16_t type, std::string_view value) {
    const std::string terminated(value);
    put_bytes(type, std::as_bytes(std::span(terminated.c_str(), terminated.size() + 1)));
}

std::optional<std::span<const std::byte>> message::bytes(std::uint16_t type) const {
    const auto found = std::find_if(m_attributes.begin(), m_attributes.end(),
                                    [&](const attribute& a) { return a.type == type; });
    if (found == m_attributes.end())
        return std::nullopt;
    return found->value;
}

std::optional<std::string> message::string(std::uint16_t type) const {
    const auto value = bytes(type);
    if (!value)
        return std::nullopt;
    const auto* text = reinterpret_cast<const char*>(value->data());
    return std::string(text, ::strnlen(text, value->size()));
}

template <typename T>
std::optional<T> message::integer(std::uint16_t type) const {
    const auto value = bytes(type);
    if (!value)
        return std::nullopt;
    if (value->size() != sizeof(T))
        throw failure(fmt::format("the kernel's answer is malformed (attribute {} has {} bytes)",
                                  type, value->size()));
    T result;
    std::memcpy(&result, value->data(), sizeof(T));
    return result;
}

template std::optional<std::uint8_t> message::integer(std::uint16_t) const;
template std::optional<std::uint16_t> message::integer(std::uint16_t) const;
template std::optional<std::uint32_t> message::integer(std::uint16_t) const;
template std::optional<std::uint64_t> message::integer(std::uint16_t) const;

}  // namespace tools
