// SPDX-License-Identifier: MIT
//
// How the tools fail: with one line on standard error and an exit status.
#pragma once

#include <stdexcept>
#include <string>

namespace tools {

// The exit statuses of all tools; their manuals promise them.
enum exit_status : int {
    status_ok = 0,
    status_failed = 1,
    status_usage = 2,
};

// An operation failed. The text is for the user, without the program's name
// and without a full stop.
class failure : public std::runtime_error {
  public:
    using std::runtime_error::runtime_error;
};

// The command line cannot be understood.
class usage_error : public std::runtime_error {
  public:
    using std::runtime_error::runtime_error;
};

// "Permission denied" for EACCES: the system's words for what failed in the
// system, as opposed to LITE's words for what failed in LITE.
std::string system_text(int error);

}  // namespace tools
