// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <thread>

#include "arms/verbs/rdma.hpp"
#include "arms/verbs/verbs_echo.hpp"
#include "net.hpp"

namespace perf {

/// Serves the arms write-imm and send: one thread polls one CQ for all connections. When idle for a
/// while it sleeps, so as not to disturb other arms. Stops when destroyed.
class VerbsEchoServer {
  public:
    /// @spin: polls as long as there is a connection.
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
    Fd stop_;  // eventfd, readable to stop
    EventChannel channel_;
    CmId listener_;
    // Used by the thread only. All connections are on one device.
    CompletionEvents events_;
    CompletionQueue receive_cq_;
    std::map<std::uint32_t, std::unique_ptr<EchoEnd>> connections_;  // by queue pair number
    std::jthread thread_;
};

}  // namespace perf
