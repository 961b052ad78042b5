// SPDX-License-Identifier: MIT
#include "net.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <memory>
#include <stdexcept>
#include <system_error>

namespace perf {

namespace {

using AddressList = std::unique_ptr<addrinfo, decltype(&freeaddrinfo)>;

AddressList resolve(const std::string& host, std::uint16_t port, int flags) {
    addrinfo hints{};
    hints.ai_family = AF_UNSPEC;
    hints.ai_socktype = SOCK_STREAM;
    hints.ai_flags = AI_NUMERICSERV | flags;
    addrinfo* list = nullptr;
    const int error = getaddrinfo(host.empty() ? nullptr : host.c_str(),
                                  std::to_string(port).c_str(), &hints, &list);
    if (error)
        throw std::runtime_error(fmt::format("cannot resolve '{}': {}", host, gai_strerror(error)));
    return {list, freeaddrinfo};
}

void set_option(int fd, int level, int option, int value) {
    if (setsockopt(fd, level, option, &value, sizeof value))
        throw_errno("setsockopt");
}

timeval patience_as_timeval() { return {std::chrono::seconds(patience).count(), 0}; }

}  // namespace

Fd::~Fd() {
    if (fd_ >= 0)
        close(fd_);
}

void throw_errno(const std::string& what) {
    throw std::system_error(errno, std::generic_category(), what);
}

void make_nonblocking(int fd) {
    const int flags = fcntl(fd, F_GETFL);
    if (flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK))
        throw_errno("fcntl");
}

void tcp_prepare(int fd) {
    set_option(fd, IPPROTO_TCP, TCP_NODELAY, 1);
    set_option(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
    set_option(fd, IPPROTO_TCP, TCP_USER_TIMEOUT,
               static_cast<int>(std::chrono::milliseconds(patience).count()));
}

Fd tcp_connect(const std::string& host, std::uint16_t port) {
    const std::string where = fmt::format("TCP connection to {} port {}", host, port);
    const AddressList list = resolve(host, port, 0);
    int error = EHOSTUNREACH;
    for (const addrinfo* entry = list.get(); entry; entry = entry->ai_next) {
        Fd fd(socket(entry->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
        if (fd.get() < 0) {
            if (error == EHOSTUNREACH)
                error = errno;
            continue;
        }
        const timeval limit = patience_as_timeval();
        // The send time-out also limits connect().
        if (setsockopt(fd.get(), SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit) ||
            setsockopt(fd.get(), SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit))
            throw_errno(where);
        if (connect(fd.get(), entry->ai_addr, entry->ai_addrlen) == 0) {
            tcp_prepare(fd.get());
            return fd;
        }
        error = errno == EINPROGRESS ? ETIMEDOUT : errno;
    }
    throw std::system_error(error, std::generic_category(), where);
}

Fd tcp_open(const std::string& host, std::uint16_t port, std::uint64_t bytes) {
    Fd fd = tcp_connect(host, port);
    Hello hello = make_hello(bytes);
    iovec part = iov_of(hello);
    send_all(fd.get(), {&part, 1});
    Hello answer{};
    if (!receive_all(fd.get(), bytes_of(answer)) || !is_valid(answer) ||
        answer.bytes != hello.bytes)
        throw std::runtime_error("the peer is not lite-perf serve of this version");
    return fd;
}

Fd tcp_listen(const std::string& address, std::uint16_t port) {
    const std::string where = fmt::format("listening on TCP port {}", port);
    const AddressList list = resolve(address, port, AI_PASSIVE);
    Fd fd(socket(list->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
    if (fd.get() < 0)
        throw_errno(where);
    set_option(fd.get(), SOL_SOCKET, SO_REUSEADDR, 1);
    if (bind(fd.get(), list->ai_addr, list->ai_addrlen) || listen(fd.get(), 16))
        throw_errno(where);
    return fd;
}

void send_all(int fd, std::span<iovec> parts) {
    while (!parts.empty()) {
        msghdr message{};
        message.msg_iov = parts.data();
        message.msg_iovlen = parts.size();
        const ssize_t sent = sendmsg(fd, &message, MSG_NOSIGNAL);
        if (sent < 0) {
            if (errno == EINTR)
                continue;
            if (errno == EAGAIN)
                errno = ETIMEDOUT;
            throw_errno("send");
        }
        auto left = static_cast<std::size_t>(sent);
        while (!parts.empty() && left >= parts.front().iov_len) {
            left -= parts.front().iov_len;
            parts = parts.subspan(1);
        }
        if (left) {
            parts.front().iov_base = static_cast<std::byte*>(parts.front().iov_base) + left;
            parts.front().iov_len -= left;
        }
    }
}

bool receive_all(int fd, std::span<std::byte> data) {
    const std::size_t wanted = data.size();
    while (!data.empty()) {
        const ssize_t got = recv(fd, data.data(), data.size(), MSG_WAITALL);
        if (got < 0) {
            if (errno == EINTR)
                continue;
            if (errno == EAGAIN)
                errno = ETIMEDOUT;
            throw_errno("receive");
        }
        if (got == 0) {
            if (data.size() == wanted)
                return false;
            throw std::runtime_error("the connection was closed in the middle of a message");
        }
        data = data.subspan(static_cast<std::size_t>(got));
    }
    return true;
}

}  // namespace perf
