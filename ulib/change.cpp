// SPDX-License-Identifier: MIT
//
// Changes of LMRs in use: rename, resize, move.

#include "context.hpp"

#include <cerrno>

using lite::internal::control;
using lite::internal::copy_name;

namespace {

int rename(lite_ctx* ctx, struct lite_ioc_rename& arg, const char* to) noexcept {
    const int err = copy_name(arg.to, to);
    return err ? err : control(ctx, LITE_IOC_RENAME, arg);
}

int move(lite_ctx* ctx, struct lite_ioc_move& arg, uint64_t offset, uint64_t length, uint32_t node,
         uint64_t* moved) noexcept {
    arg.offset = offset;
    arg.length = length;
    arg.node = node;

    const int err = control(ctx, LITE_IOC_MOVE, arg);
    // On failure too: what was moved stays moved.
    if (moved)
        *moved = arg.moved;
    return err;
}

}  // namespace

int lite_rename(struct lite_ctx* ctx, lite_lh_t lh, const char* to) noexcept {
    // The kernel takes 0 as "by name".
    if (!lh)
        return -EBADF;

    struct lite_ioc_rename arg = {};
    arg.lh = lh;
    return rename(ctx, arg, to);
}

int lite_rename_name(struct lite_ctx* ctx, const char* name, const char* to) noexcept {
    struct lite_ioc_rename arg = {};
    const int err = copy_name(arg.name, name);
    return err ? err : rename(ctx, arg, to);
}

int lite_resize(struct lite_ctx* ctx, lite_lh_t lh, uint64_t length) noexcept {
    if (!lh)
        return -EBADF;

    struct lite_ioc_resize arg = {};
    arg.lh = lh;
    arg.length = length;
    return control(ctx, LITE_IOC_RESIZE, arg);
}

int lite_resize_name(struct lite_ctx* ctx, const char* name, uint64_t length) noexcept {
    struct lite_ioc_resize arg = {};
    arg.length = length;
    const int err = copy_name(arg.name, name);
    return err ? err : control(ctx, LITE_IOC_RESIZE, arg);
}

int lite_move(struct lite_ctx* ctx, lite_lh_t lh, uint64_t offset, uint64_t length, uint32_t node,
              uint64_t* moved) noexcept {
    struct lite_ioc_move arg = {};
    arg.lh = lh;
    if (lh)
        return move(ctx, arg, offset, length, node, moved);
    if (moved)
        *moved = 0;
    return -EBADF;
}

int lite_move_name(struct lite_ctx* ctx, const char* name, uint64_t offset, uint64_t length,
                   uint32_t node, uint64_t* moved) noexcept {
    struct lite_ioc_move arg = {};
    const int err = copy_name(arg.name, name);
    if (!err)
        return move(ctx, arg, offset, length, node, moved);
    if (moved)
        *moved = 0;
    return err;
}
