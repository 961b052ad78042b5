// SPDX-License-Identifier: MIT
#include "arms/tcp/tcp_server.hpp"

#include <fmt/format.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <exception>
#include <stdexcept>
#include <system_error>

#include "file/processor.hpp"
#include "memory.hpp"

namespace perf {

namespace {

void reply(int fd, std::span<std::byte> data) {
    iovec part{data.data(), data.size()};
    send_all(fd, {&part, 1});
}

/// Receives header, data and maybe the next request in one system call; large data without a copy.
class Inbox {
  public:
    explicit Inbox(int fd) : fd_(fd) {}

    /// False: the client closed the connection, perhaps in the middle.
    bool receive(std::span<std::byte> data) {
        while (!data.empty()) {
            if (begin_ == end_) {
                if (data.size() >= buffer_.size())
                    return receive_all(fd_, data);
                if (!fill())
                    return false;
            }
            const std::size_t n = std::min(data.size(), end_ - begin_);
            std::copy_n(buffer_.begin() + static_cast<std::ptrdiff_t>(begin_), n, data.begin());
            begin_ += n;
            data = data.subspan(n);
        }
        return true;
    }

  private:
    bool fill() {
        ssize_t n;
        do {
            n = recv(fd_, buffer_.data(), buffer_.size(), 0);
        } while (n < 0 && errno == EINTR);
        if (n < 0)
            throw_errno("TCP: receive");
        begin_ = 0;
        end_ = static_cast<std::size_t>(n);
        return n > 0;
    }

    int fd_;
    std::array<std::byte, 8192> buffer_;
    std::size_t begin_ = 0;
    std::size_t end_ = 0;
};

/// Answers one request. False: the client closed the connection.
bool answer(int fd, Inbox& inbox, std::span<std::byte> region) {
    TcpRequest request;
    if (!inbox.receive(bytes_of(request)))
        return false;
    if (request.length == 0 || request.offset > region.size() ||
        request.length > region.size() - request.offset)
        throw std::runtime_error("a request beyond the region");
    const auto data = region.subspan(request.offset, request.length);

    std::uint64_t word = 0;
    switch (request.op) {
        case TcpOp::read:
            reply(fd, data);
            return true;
        case TcpOp::write:
            if (!inbox.receive(data))
                return false;
            break;
        case TcpOp::echo:
            if (!inbox.receive(data))
                return false;
            reply(fd, data);
            return true;
        case TcpOp::fetch_add:
            if (request.length != atomic_bytes || request.offset % atomic_bytes)
                throw std::runtime_error("a malformed atomic");
            word = std::atomic_ref(*reinterpret_cast<std::uint64_t*>(data.data())).fetch_add(1);
            break;
        case TcpOp::busy:
            word = static_cast<std::uint64_t>(busy_time());
            break;
        default:
            throw std::runtime_error("an unknown request");
    }
    reply(fd, bytes_of(word));
    return true;
}

void serve(int fd) {
    tcp_prepare(fd);
    Hello hello{};
    if (!receive_all(fd, bytes_of(hello)))
        return;
    if (!is_valid(hello) || hello.regions != 1)
        throw std::runtime_error("not a lite-perf of this version");
    const Region region(hello.bytes);
    iovec part = iov_of(hello);
    send_all(fd, {&part, 1});
    Inbox inbox(fd);
    while (answer(fd, inbox, region.bytes())) {
    }
}

}  // namespace

TcpServer::TcpServer(const std::string& address, std::uint16_t port)
    : listener_(tcp_listen(address, port)),
      acceptor_([this](const std::stop_token& stop) { accept_all(stop); }) {}

TcpServer::~TcpServer() {
    acceptor_.request_stop();
    // Wakes accept(); the loop below wakes the threads that wait for requests.
    shutdown(listener_.get(), SHUT_RDWR);
    acceptor_.join();
    for (const Client& client : clients_)
        shutdown(client.fd.get(), SHUT_RDWR);
}

void TcpServer::accept_all(const std::stop_token& stop) {
    while (!stop.stop_requested()) {
        Fd fd(accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
        if (fd.get() < 0) {
            if (errno == EINTR || errno == ECONNABORTED)
                continue;
            if (!stop.stop_requested())
                fmt::print(stderr, "lite-perf: accepting no more TCP clients: {}\n",
                           std::generic_category().message(errno));
            return;
        }
        std::erase_if(clients_, [](const Client& client) { return client.done.load(); });
        if (clients_.size() >= connections_max) {
            fmt::print(stderr, "lite-perf: more than {} TCP clients\n", connections_max);
            continue;
        }
        Client& client = clients_.emplace_back(std::move(fd));
        client.thread = std::jthread([&client] {
            try {
                serve(client.fd.get());
            } catch (const std::exception& error) {
                fmt::print(stderr, "lite-perf: a TCP client was dropped: {}\n", error.what());
            }
            // The socket is closed only when the next client comes; tell the peer now.
            shutdown(client.fd.get(), SHUT_RDWR);
            client.done = true;
        });
    }
}

}  // namespace perf
