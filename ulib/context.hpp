// SPDX-License-Identifier: MIT
//
// The context behind struct lite_ctx. The device does not change after lite_open(), so threads use
// it without a lock.
#pragma once

#include "device.hpp"
#include "memory/backing.hpp"

#include <lite/lite.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
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

// Copies the caller's structure, which begins with its size, from an older or newer header than
// ours. 0; -EINVAL: shorter than @first, the first published one; -E2BIG: longer than a page, as in
// the kernel, or what it has beyond ours is not zero.
template <typename T>
int take_params(const T* from, size_t first, T& to) noexcept {
    constexpr uint32_t page = 4096;
    uint32_t size;
    std::memcpy(&size, from, sizeof(size));
    if (size < first)
        return -EINVAL;
    if (size > page)
        return -E2BIG;
    const auto* bytes = reinterpret_cast<const unsigned char*>(from);
    for (size_t i = sizeof(to); i < size; i++) {
        if (bytes[i])
            return -E2BIG;
    }
    std::memcpy(&to, from, std::min<size_t>(size, sizeof(to)));
    return 0;
}

// Pointers cross the ABI as 64-bit integers, on 32-bit machines too.
inline __u64 as_u64(const void* p) noexcept {
    return static_cast<__u64>(reinterpret_cast<uintptr_t>(p));
}

// Lengths cross the ABI as 32 bits; longer ones are refused anyway.
inline uint32_t clamp_length(size_t n) noexcept {
    return n > UINT32_MAX ? UINT32_MAX : static_cast<uint32_t>(n);
}

}  // namespace lite::internal
