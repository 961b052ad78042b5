// SPDX-License-Identifier: MIT
//
// Sockets as both ends of the TCP arm use them, and the messages between the ends.
#pragma once

#include <sys/uio.h>

#include <chrono>
#include <cstdint>
#include <span>
#include <string>
#include <utility>

#include "transport.hpp"

namespace perf {

inline constexpr std::uint16_t default_port = 18600;

/// No answer of any arm may take longer. Long enough for what a lossy link does to TCP or RC.
inline constexpr std::chrono::seconds patience{10};

/// The most that a server gives to one connection.
inline constexpr std::uint64_t region_max = 256ULL << 20;

inline constexpr std::uint32_t protocol_magic = 0x4650544c;  // "LTPF"
inline constexpr std::uint32_t protocol_version = 1;

// Both ends are lite-perf on little-endian machines (LITE runs on no others): structs go out as
// they are. Every message is checked by whoever receives it.

/// First bytes in each direction of the TCP arm; private data of an RDMA CM connect request.
struct Hello {
    std::uint32_t magic = protocol_magic;
    std::uint32_t version = protocol_version;
    std::uint64_t bytes = 0;  ///< size of the region wanted, echoed if granted

    bool valid() const {
        return magic == protocol_magic && version == protocol_version && bytes > 0 &&
               bytes <= region_max;
    }
};
static_assert(sizeof(Hello) == 16);

/// Private data of an RDMA CM accept.
struct VerbsGrant {
    Hello hello;
    std::uint64_t address;
    std::uint32_t rkey;
    std::uint32_t reserved;
};
static_assert(sizeof(VerbsGrant) == 32);

/// TCP arm: followed by the data of a write. Answered by the data of a read, or by 8 bytes.
struct TcpRequest {
    std::uint64_t offset;
    std::uint32_t length;
    Op op;
    std::uint8_t reserved[3];
};
static_assert(sizeof(TcpRequest) == 16);

/// A file descriptor that is closed with its owner.
class Fd {
  public:
    explicit Fd(int fd = -1) : fd_(fd) {}
    Fd(Fd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
    Fd& operator=(Fd&& other) noexcept {
        std::swap(fd_, other.fd_);
        return *this;
    }
    ~Fd();

    int get() const { return fd_; }

  private:
    int fd_;
};

/// Throws std::system_error from errno.
[[noreturn]] void throw_errno(const std::string& what);

/// Connect within `patience`. The socket then has TCP_NODELAY and gives up waiting after as long.
Fd tcp_connect(const std::string& host, std::uint16_t port);

/// Listen on an address ("" for all).
Fd tcp_listen(const std::string& address, std::uint16_t port);

/// What a connection of the TCP arm needs at either end: no delay, and not to wait for the dead.
void tcp_prepare(int fd);

/// Send all of it, in as few segments as the stack makes of it.
void send_all(int fd, std::span<iovec> parts);

/// Receive exactly so much. False: the other side closed the connection before the first byte.
bool receive_all(int fd, std::span<std::byte> data);

template <typename T>
std::span<std::byte> bytes_of(T& object) {
    return std::as_writable_bytes(std::span(&object, 1));
}

template <typename T>
iovec iov_of(T& object) {
    return {&object, sizeof object};
}

}  // namespace perf
