// SPDX-License-Identifier: MIT
//
// LMRs mapped into the process, and memory of the process registered as LMRs.

#include "context.hpp"

#include <cerrno>

#include <sys/mman.h>

using lite::internal::as_u64;
using lite::internal::control;
using lite::internal::copy_name;

static_assert(LITE_PROT_READ == PROT_READ && LITE_PROT_WRITE == PROT_WRITE);

int lite_mmap(struct lite_ctx* ctx, lite_lh_t lh, uint64_t offset, size_t length, int prot,
              uint32_t flags, void** addr) noexcept {
    struct lite_ioc_mmap arg = {};
    arg.flags = flags;
    arg.lh = lh;
    arg.offset = offset;
    arg.length = length;
    arg.prot = static_cast<uint32_t>(prot);

    const int err = control(ctx, LITE_IOC_MMAP, arg);
    if (!err)
        // The kernel's integer is a pointer of this process.
        // NOLINTNEXTLINE(performance-no-int-to-ptr)
        *addr = reinterpret_cast<void*>(static_cast<uintptr_t>(arg.addr));
    return err;
}

int lite_register(struct lite_ctx* ctx, const char* name, void* addr, size_t length, uint32_t mode,
                  lite_lh_t* lh) noexcept {
    return lite_register_with(ctx, name, addr, length, mode, 0, lh);
}

int lite_register_with(struct lite_ctx* ctx, const char* name, void* addr, size_t length,
                       uint32_t mode, uint32_t flags, lite_lh_t* lh) noexcept {
    struct lite_ioc_register arg = {};
    if (name && *name) {
        const int err = copy_name(arg.name, name);
        if (err)
            return err;
    }
    arg.flags = flags;
    arg.addr = as_u64(addr);
    arg.length = length;
    arg.mode = mode;

    const int err = control(ctx, LITE_IOC_REGISTER, arg);
    if (!err)
        *lh = arg.lh;
    return err;
}
