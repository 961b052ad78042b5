// SPDX-License-Identifier: MIT
#include "protocol.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <stdexcept>
#include <system_error>
#include <thread>

namespace lite_stress {
namespace {

[[noreturn]] void fail(const std::string& what) {
    throw std::system_error(errno, std::generic_category(), what);
}

sockaddr_in socket_address(const std::string& host, std::uint16_t port) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    if (::inet_pton(AF_INET, host.c_str(), &address.sin_addr) != 1)
        throw std::runtime_error("not an address: " + host);
    return address;
}

}  // namespace

const char* name_of(Verb verb) {
    static constexpr std::array names{
        "alloc", "map",  "unmap",  "free",    "read",  "write", "f-add",   "swap",   "f-and",
        "f-or",  "set",  "copy",   "compare", "check", "grant", "setattr", "rename", "resize",
        "move",  "stat", "grants", "peek",    "query", "exit",  "stop"};
    static_assert(names.size() == static_cast<std::size_t>(Verb::stop) + 1);
    return names.at(static_cast<std::size_t>(verb));
}

bool send_all(int fd, const void* data, std::size_t size) {
    const auto* at = static_cast<const char*>(data);
    while (size) {
        const auto n = ::send(fd, at, size, MSG_NOSIGNAL);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return false;
        at += n;
        size -= static_cast<std::size_t>(n);
    }
    return true;
}

bool receive_all(int fd, void* data, std::size_t size) {
    auto* at = static_cast<char*>(data);
    while (size) {
        const auto n = ::recv(fd, at, size, 0);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return false;
        at += n;
        size -= static_cast<std::size_t>(n);
    }
    return true;
}

int listen_at(std::uint16_t port) {
    const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const int on = 1;
    const auto address = socket_address("0.0.0.0", port);
    if (fd < 0 || ::setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) < 0 ||
        ::bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) < 0 ||
        ::listen(fd, 128) < 0)
        fail("listen");
    return fd;
}

int connect_to(const Address& to) {
    const auto address = socket_address(to.host, to.port);
    for (int tries = 0;; ++tries) {
        const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        if (fd < 0)
            fail("socket");
        if (::connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0) {
            const int on = 1;
            (void)::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
            return fd;
        }
        const int error = errno;
        ::close(fd);
        errno = error;
        if (error != ECONNREFUSED || tries == 600)
            fail("connect to " + to.host);
        std::this_thread::sleep_for(std::chrono::milliseconds(100));
    }
}

}  // namespace lite_stress
