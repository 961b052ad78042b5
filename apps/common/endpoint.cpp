// SPDX-License-Identifier: MIT

#include "endpoint.hpp"

#include "common/text/format.hpp"
#include "common/text/parse.hpp"
#include "error.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <stdexcept>

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>

namespace tools {
namespace {

std::span<const std::byte> bytes_of(const auto& object) {
    return std::as_bytes(std::span(&object, 1));
}

std::uint16_t parse_port(std::string_view text) {
    return static_cast<std::uint16_t>(parse_number(text, 1, UINT16_MAX));
}

bool all_zero(std::span<const std::byte> bytes) {
    return std::ranges::all_of(bytes, [](std::byte byte) { return byte == std::byte{0}; });
}

}  // namespace

ip_address::ip_address(std::span<const std::byte> bytes) : m_bytes(bytes.begin(), bytes.end()) {
    if (bytes.size() != 4 && bytes.size() != 16)
        throw std::length_error("an IP address has 4 or 16 bytes");
}

std::optional<ip_address> ip_address::from_text(std::string_view text) {
    const std::string copy(text);
    // inet_pton() would stop at a NUL and accept the part before it.
    if (copy.find('\0') != std::string_view::npos)
        return std::nullopt;
    if (in_addr v4; ::inet_pton(AF_INET, copy.c_str(), &v4) == 1)
        return ip_address(bytes_of(v4));
    if (in6_addr v6; ::inet_pton(AF_INET6, copy.c_str(), &v6) == 1)
        return ip_address(bytes_of(v6));
    return std::nullopt;
}

std::optional<ip_address> ip_address::from_sockaddr(const sockaddr* address) {
    if (!address)
        return std::nullopt;
    if (address->sa_family == AF_INET) {
        sockaddr_in v4;
        std::memcpy(&v4, address, sizeof(v4));
        return ip_address(bytes_of(v4.sin_addr));
    }
    if (address->sa_family == AF_INET6) {
        sockaddr_in6 v6;
        std::memcpy(&v6, address, sizeof(v6));
        return ip_address(bytes_of(v6.sin6_addr));
    }
    return std::nullopt;
}

bool ip_address::is_loopback() const {
    if (!is_v6())
        return m_bytes[0] == std::byte{127};
    return all_zero(bytes().first(15)) && m_bytes[15] == std::byte{1};
}

bool ip_address::is_link_local() const {
    if (!is_v6())
        return m_bytes[0] == std::byte{169} && m_bytes[1] == std::byte{254};
    return m_bytes[0] == std::byte{0xfe} && (m_bytes[1] & std::byte{0xc0}) == std::byte{0x80};
}

std::string ip_address::to_string() const {
    char text[INET6_ADDRSTRLEN];
    // inet_ntop() fails only if the family is unknown or the buffer too short.
    return ::inet_ntop(is_v6() ? AF_INET6 : AF_INET, m_bytes.data(), text, sizeof(text));
}

endpoint_text parse_endpoint(std::string_view text) {
    const auto refuse = [text](std::string_view why) {
        return usage_error(fmt::format("'{}' {}", printable(text), why));
    };
    endpoint_text result;
    std::string_view host = text;

    if (text.starts_with('[')) {
        const auto end = text.find(']');
        if (end == std::string_view::npos)
            throw refuse("is not an address: ']' is missing");
        host = text.substr(1, end - 1);
        const auto after = text.substr(end + 1);
        if (!after.empty() && after[0] != ':')
            throw refuse("is not an address: only :PORT may follow ']'");
        const auto numeric = ip_address::from_text(host);
        if (!numeric || !numeric->is_v6())
            throw refuse("is not an address: there must be an IPv6 address in brackets");
        if (!after.empty())
            result.port = parse_port(after.substr(1));
    } else if (const auto colon = text.find(':'); colon != std::string_view::npos) {
        if (text.find(':', colon + 1) == std::string_view::npos) {
            host = text.substr(0, colon);
            result.port = parse_port(text.substr(colon + 1));
        } else if (!ip_address::from_text(text)) {
            throw refuse("is not an address (IPv6 with a port is written [ADDRESS]:PORT)");
        }
    }
    if (host.empty())
        throw refuse("has no address");
    if (host.find_first_of(std::string_view(" \t\n/%\0", 6)) != std::string_view::npos)
        throw refuse("is not an address or host name");
    result.host = host;
    return result;
}

ip_address resolve(const std::string& host) {
    auto address = ip_address::from_text(host);
    if (!address) {
        addrinfo hints{};
        hints.ai_socktype = SOCK_STREAM;
        hints.ai_flags = AI_ADDRCONFIG;
        addrinfo* found = nullptr;
        const int error = ::getaddrinfo(host.c_str(), nullptr, &hints, &found);
        if (error)
            throw failure(fmt::format("{}: {}", host, ::gai_strerror(error)));
        const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> guard(found, ::freeaddrinfo);
        address = ip_address::from_sockaddr(found->ai_addr);
        if (!address)
            throw failure(fmt::format("{}: has no IP address", host));
    }
    if (address->is_v6() && address->is_link_local())
        throw failure(
            fmt::format("{} is link-local: LITE needs an address that means the same "
                        "on all nodes",
                        address->to_string()));
    return *address;
}

std::string to_string(const ip_address& address, std::uint16_t port) {
    const auto text = address.to_string();
    return address.is_v6() ? fmt::format("[{}]:{}", text, port) : fmt::format("{}:{}", text, port);
}

}  // namespace tools
