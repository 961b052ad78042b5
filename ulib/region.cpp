// SPDX-License-Identifier: MIT
//
// LMRs and their handles: allocate, map, unmap, free.

#include "context.hpp"

#include <lite/uring.h>

#include <cerrno>
#include <cstddef>
#include <cstring>

using lite::internal::as_u64;
using lite::internal::control;
using lite::internal::copy_name;
using lite::internal::take_params;

namespace {

constexpr size_t params_size_first = offsetof(struct lite_alloc_params, mode) + sizeof(uint32_t);

}  // namespace

int lite_alloc(struct lite_ctx* ctx, const struct lite_alloc_params* params,
               lite_lh_t* lh) noexcept {
    struct lite_alloc_params p = {};
    int err = take_params(params, params_size_first, p);
    if (err)
        return err;

    const bool wants_handle = !(p.flags & LITE_ALLOC_NO_HANDLE);
    if (wants_handle && !lh)
        return -EINVAL;

    if (p.flags & LITE_ALLOC_UNPINNED)
        return ctx->backing.alloc(ctx, p, lh);

    struct lite_ioc_alloc arg = {};
    if (p.name && *p.name) {
        err = copy_name(arg.name, p.name);
        if (err)
            return err;
    }
    arg.flags = p.flags;
    arg.length = p.length;
    arg.nodes = as_u64(p.nodes);
    arg.n_nodes = p.n_nodes;
    arg.mode = p.mode;

    err = control(ctx, LITE_IOC_ALLOC, arg);
    if (!err && wants_handle)
        *lh = arg.lh;
    return err;
}

int lite_map(struct lite_ctx* ctx, const char* name, uint32_t rights, lite_lh_t* lh,
             uint64_t* length) noexcept {
    struct lite_ioc_map arg = {};
    int err = copy_name(arg.name, name);
    if (err)
        return err;
    arg.rights = rights;

    err = control(ctx, LITE_IOC_MAP, arg);
    if (err)
        return err;
    *lh = arg.lh;
    if (length)
        *length = arg.length;
    return 0;
}

int lite_unmap(struct lite_ctx* ctx, lite_lh_t lh) noexcept {
    struct lite_ioc_unmap arg = {};
    arg.lh = lh;
    lite_uring_unmapping(ctx, lh);
    const int err = control(ctx, LITE_IOC_UNMAP, arg);
    lite_uring_unmapped(ctx, lh, err);
    return err;
}

int lite_free(struct lite_ctx* ctx, lite_lh_t lh) noexcept {
    // The kernel takes 0 as "by name".
    if (!lh)
        return -EBADF;

    struct lite_ioc_free arg = {};
    arg.lh = lh;
    const int err = control(ctx, LITE_IOC_FREE, arg);
    lite_uring_freed(ctx, lh, err);
    return err;
}

int lite_free_name(struct lite_ctx* ctx, const char* name) noexcept {
    struct lite_ioc_free arg = {};
    int err = copy_name(arg.name, name);
    if (err)
        return err;
    err = control(ctx, LITE_IOC_FREE, arg);
    lite_uring_freed(ctx, 0, err);
    return err;
}
