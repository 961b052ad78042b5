// SPDX-License-Identifier: MIT
//
// The device below a context: an open file of /dev/liteN, or a fake in unit tests. Not part of the
// ABI.
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

    // One ioctl(2) with a structure of LITE's ABI: its result, or -errno.
    virtual int control(unsigned long request, void* arg) noexcept = 0;

    virtual int fd() const noexcept = 0;
};

// Wraps a device into a context, to be closed by lite_close(). nullptr when out of memory; the
// device is then destroyed.
lite_ctx* make_context(std::unique_ptr<device> dev) noexcept;

}  // namespace lite::internal
