// SPDX-License-Identifier: MIT
//
// What a context talks to. In a program it is an open file of /dev/liteN; unit
// tests put a fake in its place, which is why it is an interface. It is not
// part of the ABI.
#pragma once

#include <memory>

struct lite_ctx;

namespace lite::internal {

class device {
  public:
    device() = default;
    device(const device&) = delete;
    device& operator=(const device&) = delete;
    virtual ~device() = default;

    // One ioctl(2) with a structure of LITE's ABI. Returns what it returned
    // if that was not negative, else -errno.
    virtual int control(unsigned long request, void* arg) noexcept = 0;

    virtual int fd() const noexcept = 0;
};

// Wraps a device into a context that lite_close() gives back. nullptr when out
// of memory; the device is then destroyed.
lite_ctx* make_context(std::unique_ptr<device> dev) noexcept;

}  // namespace lite::internal
