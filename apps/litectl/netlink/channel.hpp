// SPDX-License-Identifier: MIT
//
// litectl's connection to the kernel. Unit tests replace the netlink socket by a fake.
#pragma once

#include "netlink/message.hpp"

#include "common/error.hpp"

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

namespace tools {

// The kernel refused a request. what() is its explanation, or empty.
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

    // Sends a request and waits for the answer: all parts of a dump, else at most one message.
    // Throws refusal, and failure if netlink itself fails.
    virtual std::vector<message> request(const message& request, bool dump) = 0;

    // Calls @on_event for each event from now on, and @on_loss when events were lost because they
    // were not read in time, until one of them returns false. Calls @on_ready once no event can be
    // missed. Returns false if nothing came within @timeout.
    virtual bool follow(const std::function<void()>& on_ready,
                        const std::function<bool(const message&)>& on_event,
                        const std::function<bool()>& on_loss,
                        std::optional<std::chrono::milliseconds> timeout = {}) = 0;
};

// Opens a netlink socket. Throws module_missing, failure. Unit tests use another @family.
std::unique_ptr<channel> connect_netlink(const std::string& family = LITE_GENL_NAME);

}  // namespace tools
