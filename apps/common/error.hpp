// SPDX-License-Identifier: MIT
//
// Errors of the tools: one line on standard error and an exit status.
#pragma once

#include <stdexcept>
#include <string>

namespace tools {

// Exit statuses of all tools, as documented in their manuals.
enum exit_status : int {
    status_ok = 0,
    status_failed = 1,
    status_usage = 2,
};

// An operation failed. The text is for the user, without the program's name or a full stop.
class failure : public std::runtime_error {
  public:
    using std::runtime_error::runtime_error;
};

class usage_error : public std::runtime_error {
  public:
    using std::runtime_error::runtime_error;
};

// "Permission denied" for EACCES: for failures of the system; those of LITE have LITE's texts.
std::string system_text(int error);

}  // namespace tools
