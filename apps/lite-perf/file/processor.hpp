// SPDX-License-Identifier: MIT
//
// Busy time of the processors of both machines: kernel, users, interrupts, all that is not idle.
#pragma once

#include <cstdint>
#include <optional>

#include "../net.hpp"
#include "../transport.hpp"

namespace perf {

/// Time that the processors of this machine were busy, all together, in ns since an arbitrary time.
/// The kernel counts in steps of 10 ms. A processor that a hypervisor does not run counts as busy.
std::int64_t busy_time();

/// Busy times of both machines, or differences of them, in ns.
struct Busy {
    double here = 0;
    double there = 0;
};

class Processors {
  public:
    /// Without target.server, nothing is known about the other machine.
    explicit Processors(const Target& target);

    bool knows_both() const { return server_.has_value(); }
    Busy busy() const;

  private:
    std::optional<Fd> server_;
};

}  // namespace perf
