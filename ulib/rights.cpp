// SPDX-License-Identifier: MIT
//
// Access rights of an LMR: grants, owner, group and mode.

#include "context.hpp"

#include <cerrno>

using lite::internal::as_u64;
using lite::internal::control;
using lite::internal::copy_name;

namespace {

int grants(lite_ctx* ctx, struct lite_ioc_grants& arg, struct lite_grant* list,
           uint32_t* n) noexcept {
    if (!n || (*n && !list))
        return -EINVAL;
    arg.grants = as_u64(list);
    arg.n_grants = *n;
    arg.grant_size = sizeof(*list);

    const int err = control(ctx, LITE_IOC_GRANTS, arg);
    if (!err)
        *n = arg.n_grants;
    return err;
}

struct lite_ioc_grant grant_of(uint32_t uid, uint32_t node, uint32_t rights) noexcept {
    struct lite_ioc_grant arg = {};
    arg.grant.uid = uid;
    arg.grant.node = node;
    arg.grant.rights = rights;
    return arg;
}

struct lite_ioc_setattr attributes(uint32_t uid, uint32_t gid, uint32_t mode) noexcept {
    struct lite_ioc_setattr arg = {};
    arg.uid = uid;
    arg.gid = gid;
    arg.mode = mode;
    return arg;
}

}  // namespace

int lite_grant_set(struct lite_ctx* ctx, lite_lh_t lh, uint32_t uid, uint32_t node,
                   uint32_t rights) noexcept {
    // The kernel takes 0 as "by name".
    if (!lh)
        return -EBADF;

    struct lite_ioc_grant arg = grant_of(uid, node, rights);
    arg.lh = lh;
    return control(ctx, LITE_IOC_GRANT, arg);
}

int lite_grant_set_name(struct lite_ctx* ctx, const char* name, uint32_t uid, uint32_t node,
                        uint32_t rights) noexcept {
    struct lite_ioc_grant arg = grant_of(uid, node, rights);
    const int err = copy_name(arg.name, name);
    return err ? err : control(ctx, LITE_IOC_GRANT, arg);
}

int lite_grants(struct lite_ctx* ctx, lite_lh_t lh, struct lite_grant* list, uint32_t* n) noexcept {
    if (!lh)
        return -EBADF;

    struct lite_ioc_grants arg = {};
    arg.lh = lh;
    return grants(ctx, arg, list, n);
}

int lite_grants_name(struct lite_ctx* ctx, const char* name, struct lite_grant* list,
                     uint32_t* n) noexcept {
    struct lite_ioc_grants arg = {};
    const int err = copy_name(arg.name, name);
    return err ? err : grants(ctx, arg, list, n);
}

int lite_setattr(struct lite_ctx* ctx, lite_lh_t lh, uint32_t uid, uint32_t gid,
                 uint32_t mode) noexcept {
    if (!lh)
        return -EBADF;

    struct lite_ioc_setattr arg = attributes(uid, gid, mode);
    arg.lh = lh;
    return control(ctx, LITE_IOC_SETATTR, arg);
}

int lite_setattr_name(struct lite_ctx* ctx, const char* name, uint32_t uid, uint32_t gid,
                      uint32_t mode) noexcept {
    struct lite_ioc_setattr arg = attributes(uid, gid, mode);
    const int err = copy_name(arg.name, name);
    return err ? err : control(ctx, LITE_IOC_SETATTR, arg);
}

int lite_chmod(struct lite_ctx* ctx, lite_lh_t lh, uint32_t mode) noexcept {
    return lite_setattr(ctx, lh, LITE_KEEP, LITE_KEEP, mode);
}

int lite_chmod_name(struct lite_ctx* ctx, const char* name, uint32_t mode) noexcept {
    return lite_setattr_name(ctx, name, LITE_KEEP, LITE_KEEP, mode);
}

int lite_chown(struct lite_ctx* ctx, lite_lh_t lh, uint32_t uid, uint32_t gid) noexcept {
    return lite_setattr(ctx, lh, uid, gid, LITE_KEEP);
}

int lite_chown_name(struct lite_ctx* ctx, const char* name, uint32_t uid, uint32_t gid) noexcept {
    return lite_setattr_name(ctx, name, uid, gid, LITE_KEEP);
}
