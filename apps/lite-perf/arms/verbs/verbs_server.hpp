// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>

#include "arms/verbs/rdma.hpp"
#include "net.hpp"

namespace perf {

/// Serves the verbs arm: each connection has its own registered memory. Operations are one-sided,
/// so one thread, asleep between connections, is enough. Stops when destroyed.
class VerbsServer {
  public:
    VerbsServer(const std::string& address, std::uint16_t port);
    ~VerbsServer();

  private:
    class Connection;

    /// A copy of an event: an id with unacknowledged events cannot be destroyed.
    struct Notice {
        rdma_cm_event_type type;
        rdma_cm_id* id;
        std::uint8_t initiator_depth;  ///< of the client
        Hello hello;                   ///< of a connect request; invalid if there was none
    };

    void run();
    std::optional<Notice> next_notice();
    void handle(const Notice& notice);
    void accept(const Notice& notice);

    Fd stop_;  // eventfd, readable to stop
    EventChannel channel_;
    CmId listener_;
    std::map<rdma_cm_id*, std::unique_ptr<Connection>> connections_;  // used by the thread only
    std::jthread thread_;
};

}  // namespace perf
