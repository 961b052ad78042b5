// SPDX-License-Identifier: MIT
#pragma once

#include <string>

#include "transport.hpp"
#include "workloads/restored.hpp"

namespace perf {

/// The queueing discipline of the network interface by which this machine sends to a server; needs
/// tc and root.
class TcpQueue {
  public:
    explicit TcpQueue(const Target& target);

    const std::string& interface() const { return interface_; }

    /// @fair: tc-fq(8), else what was found. False if that is impossible: tc has told the reason.
    /// An interface keeps a discipline that an administrator has chosen.
    bool set_fair(bool fair) { return restored_.set(fair ? "fq" : "found"); }

  private:
    std::string interface_;
    Restored restored_;
};

}  // namespace perf
