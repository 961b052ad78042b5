// SPDX-License-Identifier: MIT
#pragma once

#include <string>

#include "workloads/restored.hpp"

namespace perf {

/// The scheduling mode of this node (Documentation/scheduling.rst), changed by litectl.
class QosMode {
  public:
    /// @index: the N of /dev/liteN.
    explicit QosMode(unsigned index);

    /// Throws if litectl refuses, for example because the user is not root.
    void set(const std::string& mode);

  private:
    Restored restored_;
};

}  // namespace perf
