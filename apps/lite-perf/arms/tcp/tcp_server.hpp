// SPDX-License-Identifier: MIT
#pragma once

#include <atomic>
#include <cstdint>
#include <list>
#include <string>
#include <thread>
#include <utility>

#include "net.hpp"

namespace perf {

/// Serves the TCP arm: one thread and one region per connection. Stops when destroyed.
class TcpServer {
  public:
    TcpServer(const std::string& address, std::uint16_t port);
    ~TcpServer();

  private:
    struct Client {
        explicit Client(Fd connection) : fd(std::move(connection)) {}

        Fd fd;
        std::atomic<bool> done = false;
        std::jthread thread;  // last: joined before the other members are destroyed
    };

    void accept_all(const std::stop_token& stop);

    Fd listener_;
    std::list<Client> clients_;  // used by the acceptor only, until it has ended
    std::jthread acceptor_;
};

}  // namespace perf
