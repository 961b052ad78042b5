// SPDX-License-Identifier: MIT
// Generic netlink without a library in between: messages exactly as a test wants them, answers as
// bytes.
#pragma once

#include "raw.hpp"

#include "uapi/lite_netlink.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace lite_test {

// A command and its attributes, which put() adds.
class GenlRequest {
  public:
    explicit GenlRequest(std::uint8_t command, std::uint16_t flags = 0)
        : command_(command), flags_(flags) {}

    GenlRequest& put(std::uint16_t type, std::span<const std::byte> payload);
    GenlRequest& put_string(std::uint16_t type, std::string_view text);  // with a NUL
    template <typename T>
    GenlRequest& put_value(std::uint16_t type, T value) {
        return put(type, std::as_bytes(std::span(&value, 1)));
    }
    // An attribute with a false length in its header.
    GenlRequest& put_raw(std::span<const std::byte> bytes);
    // The reserved bytes of the header, which must be 0.
    GenlRequest& put_reserved(std::uint16_t value);

    std::uint8_t command() const { return command_; }
    std::uint16_t flags() const { return flags_; }
    std::uint16_t reserved() const { return reserved_; }
    std::span<const std::byte> attributes() const { return attributes_; }

  private:
    std::uint8_t command_;
    std::uint16_t flags_;
    std::uint16_t reserved_ = 0;
    std::vector<std::byte> attributes_;
};

struct GenlAnswer {
    Errno error;
    std::string text;                              // of the extended ack
    std::vector<std::vector<std::byte>> messages;  // as they came, headers included

    // The payload of the first attribute of that type in any of the messages.
    std::optional<std::vector<std::byte>> find(std::uint16_t type) const;
    template <typename T>
    std::optional<T> value(std::uint16_t type) const;
};

class GenlSocket {
  public:
    // Finds the family; throws std::system_error (ENOENT if it does not exist).
    explicit GenlSocket(const std::string& family = LITE_GENL_NAME);
    ~GenlSocket();
    GenlSocket(const GenlSocket&) = delete;
    GenlSocket& operator=(const GenlSocket&) = delete;

    // Sends the request and collects the whole answer; throws Failure if none comes in time.
    GenlAnswer ask(const GenlRequest& request);

    // The answer to the query for the family itself: all that user space learns of it.
    const GenlAnswer& family() const { return family_; }

  private:
    GenlAnswer exchange(std::uint16_t type, std::uint8_t version, const GenlRequest& request);

    int fd_ = -1;
    std::uint16_t type_ = 0;
    std::uint32_t sequence_ = 0;
    GenlAnswer family_;
};

template <typename T>
std::optional<T> GenlAnswer::value(std::uint16_t type) const {
    const auto bytes = find(type);
    if (!bytes || bytes->size() != sizeof(T))
        return std::nullopt;
    T value{};
    __builtin_memcpy(&value, bytes->data(), sizeof(value));
    return value;
}

}  // namespace lite_test
