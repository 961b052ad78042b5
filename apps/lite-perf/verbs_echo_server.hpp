// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <thread>

#include "net.hpp"
#include "rdma.hpp"
#include "verbs_echo.hpp"

namespace perf {

/// Serves the arms write-imm and send. One thread polls one CQ for all connections, as long as
/// there is traffic, and a little longer; then it waits for events, so that it is in nobody's way
/// while other arms have their turn. Stops when destroyed.
class VerbsEchoServer {
  public:
    /// @spin: polls without end while there is a connection.
    VerbsEchoServer(const std::string& address, std::uint16_t port, bool spin);
    ~VerbsEchoServer();

  private:
    void run();
    bool serve_some();
    void echo(const ibv_wc& wc);
    bool sleep();
    void handle_events();
    void accept(rdma_cm_id* raw, const EchoHello& hello, std::uint8_t depth);

    bool spin_;
    Fd stop_;  // eventfd, readable when it is time to stop
    EventChannel channel_;
    CmId listener_;
    // Of the thread alone. All connections are those of one device.
    CompletionEvents events_;
    CompletionQueue receive_cq_;
    std::map<std::uint32_t, std::unique_ptr<EchoEnd>> connections_;  // by number of the queue pair
    std::jthread thread_;
};

}  // namespace perf
