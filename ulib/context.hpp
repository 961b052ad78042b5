// SPDX-License-Identifier: MIT
//
// The context behind struct lite_ctx. The device does not change after lite_open(), so threads use
// it without a lock.
#pragma once

#include "device.hpp"
#include "memory/backing.hpp"

#include <lite/lite.h>

#include <memory>

struct lite_ctx {
    lite::internal::backing backing;  // freed after the device is closed
    std::unique_ptr<lite::internal::device> dev;
};

namespace lite::internal {

// Runs an ioctl on a structure that begins with its size: 0 or a negative errno.
template <typename T>
int control(lite_ctx* ctx, unsigned long request, T& arg) noexcept {
    arg.size = sizeof(T);
    const int ret = ctx->dev->control(request, &arg);
    return ret < 0 ? ret : 0;
}

// Copies a name into the fixed field of an ABI structure. 0, -EINVAL (NULL, or empty),
// -ENAMETOOLONG.
int copy_name(char (&field)[LITE_NAME_SIZE], const char* name) noexcept;

// The N of /dev/liteN for the @index of lite_open(), or -EINVAL.
int node_index(int index) noexcept;

// Pointers cross the ABI as 64-bit integers, on 32-bit machines too.
inline __u64 as_u64(const void* p) noexcept {
    return static_cast<__u64>(reinterpret_cast<uintptr_t>(p));
}

// Lengths cross the ABI as 32 bits; what does not fit is too long anyway.
inline uint32_t clamp_length(size_t n) noexcept {
    return n > UINT32_MAX ? UINT32_MAX : static_cast<uint32_t>(n);
}

}  // namespace lite::internal
