// SPDX-License-Identifier: MIT
#include "arms/tcp/tcp_queue.hpp"

#include <fmt/format.h>
#include <ifaddrs.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cstring>
#include <memory>
#include <stdexcept>

namespace perf {

namespace {

bool is_same(const sockaddr* one, const sockaddr* other) {
    if (!one || one->sa_family != other->sa_family)
        return false;
    if (one->sa_family == AF_INET)
        return reinterpret_cast<const sockaddr_in*>(one)->sin_addr.s_addr ==
               reinterpret_cast<const sockaddr_in*>(other)->sin_addr.s_addr;
    return one->sa_family == AF_INET6 &&
           !std::memcmp(&reinterpret_cast<const sockaddr_in6*>(one)->sin6_addr,
                        &reinterpret_cast<const sockaddr_in6*>(other)->sin6_addr, sizeof(in6_addr));
}

/// The interface with the address of this end of a connection to the server.
std::string interface_to(const Target& target) {
    const Fd socket = tcp_connect(target.server, target.port);
    sockaddr_storage name{};
    socklen_t length = sizeof name;
    auto* own = reinterpret_cast<sockaddr*>(&name);
    ifaddrs* list = nullptr;
    if (getsockname(socket.get(), own, &length) || getifaddrs(&list))
        throw_errno("looking for the network interface");
    const std::unique_ptr<ifaddrs, decltype(&freeifaddrs)> all(list, freeifaddrs);
    for (const ifaddrs* entry = list; entry; entry = entry->ifa_next) {
        if (is_same(entry->ifa_addr, own))
            return entry->ifa_name;
    }
    throw std::runtime_error("no network interface has the address of this end of a connection");
}

// The kernel refuses "add" if an administrator has set a discipline. "del" names the one to remove,
// and brings the default one back.
constexpr std::string_view change = R"(
case $value in
fq) tc qdisc add dev '{0}' root handle 1f7e: fq ;;
*) tc qdisc del dev '{0}' root handle 1f7e: ;;
esac)";

}  // namespace

TcpQueue::TcpQueue(const Target& target)
    : interface_(interface_to(target)), restored_("found", fmt::format(change, interface_)) {}

}  // namespace perf
