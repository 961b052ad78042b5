// SPDX-License-Identifier: MIT
#include "processor.hpp"

#include <unistd.h>

#include <chrono>
#include <fstream>
#include <stdexcept>
#include <string>

namespace perf {

namespace {

// The size of a region, which the TCP arm needs but a busy request does not use.
constexpr std::uint32_t some_bytes = 8;

}  // namespace

std::int64_t busy_time() {
    // Only idle time is exact: the kernel guesses the others from what a tick interrupts.
    std::ifstream file("/proc/stat");
    std::string name;
    std::int64_t user = 0;
    std::int64_t nice = 0;
    std::int64_t system = 0;
    std::int64_t idle = 0;
    std::int64_t waiting = 0;
    file >> name >> user >> nice >> system >> idle >> waiting;
    if (!file || name != "cpu")
        throw std::runtime_error("/proc/stat has no line of all processors");
    const std::int64_t since_boot =
        std::chrono::nanoseconds(Clock::now().time_since_epoch()).count();
    const std::int64_t tick = 1'000'000'000 / sysconf(_SC_CLK_TCK);
    return sysconf(_SC_NPROCESSORS_ONLN) * since_boot - (idle + waiting) * tick;
}

Processors::Processors(const Target& target) {
    if (!target.server.empty())
        server_ = tcp_open(target.server, target.port, some_bytes);
}

Busy Processors::busy() const {
    Busy busy{static_cast<double>(busy_time()), 0};
    if (server_) {
        TcpRequest request{0, some_bytes, TcpOp::busy, {}};
        iovec part = iov_of(request);
        send_all(server_->get(), {&part, 1});
        std::int64_t there = 0;
        if (!receive_all(server_->get(), bytes_of(there)))
            throw std::runtime_error("TCP: the server closed the connection");
        busy.there = static_cast<double>(there);
    }
    return busy;
}

}  // namespace perf
