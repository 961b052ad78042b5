// SPDX-License-Identifier: MIT
//
// Sockets for both ends of the TCP arm, and the messages between them.
#pragma once

#include <sys/uio.h>

#include <chrono>
#include <cstdint>
#include <span>
#include <string>
#include <utility>

#include "../kperf/kperf.h"
#include "transport.hpp"

namespace perf {

inline constexpr std::uint16_t default_port = 18600;

/// Time limit for an answer, in all arms; long enough for TCP or RC on a lossy link.
inline constexpr std::chrono::seconds patience{10};

/// Most memory that a server grants to one connection, all regions together.
inline constexpr std::uint64_t region_max = 512ULL << 20;

/// Most connections at a time to the server of one arm.
inline constexpr unsigned connections_max = 256;

// Both ends are lite-perf on little-endian machines (LITE supports no others): structs are sent as
// they are. The receiver checks every message.

/// First message each way of the TCP arm; private data of RDMA CM connect requests, kperf.ko's too.
using Hello = kperf_hello;
static_assert(sizeof(Hello) == 24);

inline Hello make_hello(std::uint64_t bytes, std::uint32_t regions = 1) {
    return {KPERF_MAGIC, KPERF_PROTOCOL, bytes, regions, 0};
}

inline bool is_valid(const Hello& hello) {
    return hello.magic == KPERF_MAGIC && hello.version == KPERF_PROTOCOL && hello.bytes > 0 &&
           hello.regions > 0 && hello.bytes <= region_max &&
           hello.regions <= region_max / hello.bytes;
}

/// Private data of an RDMA CM accept.
using VerbsGrant = kperf_grant;
static_assert(sizeof(VerbsGrant) == 40);

/// Requests of the TCP arm: those of Op, and busy, which asks for busy_time() (file/processor.hpp).
enum class TcpOp : std::uint8_t { read = 1, write = 2, fetch_add = 3, echo = 4, busy = 5 };

constexpr TcpOp tcp_op(Op op) { return static_cast<TcpOp>(op); }

/// Header of a request of the TCP arm; the data of a write or echo follows. The answer is the data
/// of a read or echo, else 8 bytes.
struct TcpRequest {
    std::uint64_t offset;
    std::uint32_t length;
    TcpOp op;
    std::uint8_t reserved[3];
};
static_assert(sizeof(TcpRequest) == 16);

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

[[noreturn]] void throw_errno(const std::string& what);

void make_nonblocking(int fd);

/// Tries each address of @host for `patience`, which is also the time-out of the socket.
Fd tcp_connect(const std::string& host, std::uint16_t port);

/// Connects to the server of the TCP arm, which provides a region of @bytes.
Fd tcp_open(const std::string& host, std::uint16_t port, std::uint64_t bytes);

/// Listens on an address ("" for all).
Fd tcp_listen(const std::string& address, std::uint16_t port);

/// Sets options for both ends of the TCP arm: no delay, and detection of a dead peer.
void tcp_prepare(int fd);

void send_all(int fd, std::span<iovec> parts);

/// Receives exactly data.size() bytes. False: the peer closed the connection before the first one.
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
