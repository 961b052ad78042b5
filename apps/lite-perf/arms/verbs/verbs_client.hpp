// SPDX-License-Identifier: MIT
#pragma once

#include <chrono>
#include <cstdint>

#include "arms/verbs/rdma.hpp"
#include "transport.hpp"

namespace perf {

/// A queue pair connected to "lite-perf serve", without local memory. Used by one thread.
class VerbsClient {
  public:
    /// @target: the server, and the regions that it provides. @window: most requests in flight.
    VerbsClient(const Target& target, unsigned window);
    ~VerbsClient() { disconnect(); }
    VerbsClient(const VerbsClient&) = delete;
    VerbsClient& operator=(const VerbsClient&) = delete;

    ibv_pd* pd() const { return id_->pd; }
    unsigned window() const { return window_; }
    /// Most bytes of an inline write.
    unsigned inline_bytes() const { return inline_bytes_; }
    /// The remote region, or the table of regions if there are several.
    const kperf_region& granted() const { return granted_; }

    /// Posts a chain of requests.
    void post(ibv_send_wr& first) const;
    /// The next completion. @asleep: sleeps instead of polling. Throws if the request failed.
    ibv_wc completion(bool asleep) const;
    /// Ends what is in flight. Call it before local memory is deregistered.
    void disconnect();

  private:
    void connect(const Target& target);

    // In order of creation; destroyed in reverse.
    EventChannel channel_;
    CmId id_;
    CompletionEvents events_;
    CompletionQueue cq_;
    QueuePair qp_;
    unsigned window_;
    unsigned inline_bytes_ = 0;
    std::chrono::seconds limit_;  // for a completion
    bool connected_ = false;
    kperf_region granted_{};
};

}  // namespace perf
