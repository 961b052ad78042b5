// SPDX-License-Identifier: MIT
//
// What the processors of both machines do: kernel and users, interrupts, whatever is not idle.
#pragma once

#include <cstdint>
#include <optional>

#include "../net.hpp"
#include "../transport.hpp"

namespace perf {

/// Time that the processors of this machine were busy, all together, in ns since some time. The
/// kernel tells it in steps of 10 ms. A processor that a hypervisor does not run counts as busy.
std::int64_t busy_time();

/// Busy times of both machines, or differences of them, in ns.
struct Busy {
    double here = 0;
    double there = 0;
};

/// Reads the busy times.
class Processors {
  public:
    /// Without a server, nothing is known about the other machine.
    explicit Processors(const Target& target);

    bool knows_both() const { return server_.has_value(); }
    Busy busy() const;

  private:
    std::optional<Fd> server_;
};

}  // namespace perf
