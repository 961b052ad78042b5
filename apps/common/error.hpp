// SPDX-License-Identifier: MIT
//
// Errors of the tools: a message on standard error and an exit status.
#pragma once

#include <stdexcept>
#include <string>

namespace tools {

// Exit statuses of all tools, as documented in their manuals.
enum exit_status : int {
    status_ok = 0,
    status_failed = 1,
    status_usage = 2,
    status_no_answer = 3,  // join: no member has answered
};

// An operation failed. The text is for the user, without the program's name or a full stop.
class failure : public std::runtime_error {
  public:
    explicit failure(const std::string& text, exit_status status = status_failed)
        : std::runtime_error(text), m_status(status) {}
    exit_status status() const { return m_status; }

  private:
    exit_status m_status;
};

class usage_error : public std::runtime_error {
  public:
    using std::runtime_error::runtime_error;
};

// The C library's text for an errno of a system call. Errors of LITE have texts of their own.
std::string system_text(int error);

}  // namespace tools
