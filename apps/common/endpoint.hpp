// SPDX-License-Identifier: MIT
//
// Node addresses: IPv4 and IPv6, with the port of LITE.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

struct sockaddr;

namespace tools {

class ip_address {
  public:
    // @bytes: 4 or 16, in network order; anything else throws std::length_error
    explicit ip_address(std::span<const std::byte> bytes);

    // nullopt unless it is an IPv4 or IPv6 address; as text numeric, without brackets or scope.
    static std::optional<ip_address> from_text(std::string_view text);
    static std::optional<ip_address> from_sockaddr(const sockaddr* address);

    std::span<const std::byte> bytes() const { return m_bytes; }
    bool is_v6() const { return m_bytes.size() == 16; }
    bool is_loopback() const;
    bool is_link_local() const;
    std::string to_string() const;

    auto operator<=>(const ip_address&) const = default;

  private:
    std::vector<std::byte> m_bytes;
};

struct endpoint_text {
    std::string host;                   // a name or a numeric address, without brackets
    std::optional<std::uint16_t> port;  // 1..65535
};

// HOST, HOST:PORT, [ADDRESS], [ADDRESS]:PORT, or a plain IPv6 address. Throws usage_error.
endpoint_text parse_endpoint(std::string_view text);

// Looks up a host unless it is numeric. Throws failure if it has no address, and for link-local
// IPv6 addresses, which are not valid without an interface.
ip_address resolve(const std::string& host);

std::string to_string(const ip_address& address, std::uint16_t port);

}  // namespace tools
