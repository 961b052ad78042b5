// SPDX-License-Identifier: MIT
//
// The way to the kernel's side of litectl. Unit tests put a fake in the place
// of the netlink socket.
#pragma once

#include "message.hpp"

#include "common/error.hpp"

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

namespace tools {

// The kernel refused. what() is its own explanation; empty if it gave none.
class refusal : public std::runtime_error {
  public:
    // @code: a positive errno
    refusal(int code, const std::string& text) : std::runtime_error(text), m_code(code) {}
    int code() const { return m_code; }

  private:
    int m_code;
};

// There is no family "lite": the module is not loaded.
class module_missing : public failure {
  public:
    using failure::failure;
};

class channel {
  public:
    virtual ~channel() = default;

    // Sends a request and waits for what comes back: all parts of a dump, or
    // the answer, if there is one, to anything else. Throws refusal, and
    // failure when netlink itself fails.
    virtual std::vector<message> request(const message& request, bool dump) = 0;

    // Calls @on_event for every event from now on, and @on_loss whenever some were lost
    // because they were not read in time, until one of them returns false. @on_ready is
    // called once no event can be missed any more. Returns false when there was
    // nothing for so long as @timeout.
    virtual bool follow(const std::function<void()>& on_ready,
                        const std::function<bool(const message&)>& on_event,
                        const std::function<bool()>& on_loss,
                        std::optional<std::chrono::milliseconds> timeout = {}) = 0;
};

// A netlink socket. Throws module_missing, and failure. @family: what unit
// tests, on a kernel without the module, have to replace.
std::unique_ptr<channel> connect_netlink(const std::string& family = LITE_GENL_NAME);

}  // namespace tools
