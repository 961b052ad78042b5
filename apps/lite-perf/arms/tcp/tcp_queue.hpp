// SPDX-License-Identifier: MIT
#pragma once

#include <string>

#include "transport.hpp"
#include "workloads/restored.hpp"

namespace perf {

/// The queueing discipline of the interface that sends to the server; needs tc and root.
class TcpQueue {
  public:
    explicit TcpQueue(const Target& target);

    const std::string& interface() const { return interface_; }

    /// @fair: tc-fq(8), else what was found. False: tc has failed and printed the reason, for
    /// example because an administrator has chosen a discipline, which stays.
    bool set_fair(bool fair) { return restored_.set(fair ? "fq" : "found"); }

  private:
    std::string interface_;
    Restored restored_;
};

}  // namespace perf
