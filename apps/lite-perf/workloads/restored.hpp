// SPDX-License-Identifier: MIT
#pragma once

#include <sys/types.h>

#include <string>

#include "net.hpp"

namespace perf {

/// A setting of this machine that a command changes. The destructor restores the value that was
/// found; if this process ends otherwise, the value is restored soon after.
class Restored {
  public:
    /// @value: what was found, without quotes.
    /// @change: for the shell; gives the setting the value "$value".
    Restored(std::string value, const std::string& change);
    ~Restored();
    Restored(const Restored&) = delete;
    Restored& operator=(const Restored&) = delete;

    /// False if the command fails, which writes the reason to standard error.
    bool set(const std::string& value);

  private:
    std::string value_;
    Fd channel_;  // to a shell that executes the command
    pid_t shell_ = 0;
};

}  // namespace perf
