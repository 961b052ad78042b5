/* SPDX-License-Identifier: MIT */
/*
 * liblite: administration of an LMR by its masters: grants, owner, name, length and place. Part of
 * <lite/lite.h>, with the same conventions.
 */
#ifndef LITE_MANAGE_H
#define LITE_MANAGE_H

#include <lite/lite.h>

#ifdef __cplusplus
extern "C" {
#endif

#pragma GCC visibility push(default)

/*
 * lite_grant_set - set the rights that a user has on the LMR behind a handle
 * @lh: handle with LITE_RIGHT_MASTER; or with LITE_RIGHT_SHARE: then @rights may be those of READ,
 *    WRITE and ATOMIC that the handle has, and nothing can be taken away
 * @uid: user, in the initial user namespace of its node
 * @node: id of the user's node; 0: every node
 * @rights: LITE_RIGHT_*; they replace what was granted to that uid on that node, 0 removes the
 *    grant
 *
 * Grants add to the rights of owner, group and mode; a uid's grants for all nodes and for one node
 * add up. On return no handle on any node holds a right that was taken away, and operations that
 * used it have ended.
 *
 * Return: 0, -EBADF, -EACCES (the handle has neither MASTER nor what sharing @rights needs),
 * -ENOSPC (there are LITE_GRANTS_MAX grants already, or the home's memory for LMRs is used up),
 * -EDQUOT (the share of it of the LMR's first owner is), -EINVAL (not a valid node id, or @uid is
 * LITE_KEEP), -EIDRM (freed), -ESTALE or -EHOSTDOWN (its home restarted, or is down), -EIO,
 * -EPROTO, or -ETIMEDOUT (it is unknown whether the rights have changed).
 */
int lite_grant_set(struct lite_ctx* ctx, lite_lh_t lh, uint32_t uid, uint32_t node,
                   uint32_t rights) LITE_NOEXCEPT;

/*
 * lite_grant_set_name - set the rights that a user has on an LMR
 * @name: its name
 * @uid, @node, @rights: as in lite_grant_set()
 *
 * As lite_grant_set(), with the rights of the caller instead of those of a handle.
 *
 * Return: 0, -ENOENT, -ENAMETOOLONG, or a negative errno as lite_grant_set().
 */
int lite_grant_set_name(struct lite_ctx* ctx, const char* name, uint32_t uid, uint32_t node,
                        uint32_t rights) LITE_NOEXCEPT;

/*
 * lite_grants - list the grants of the LMR behind a handle
 * @lh: handle; needs no particular right
 * @grants: room for the grants; may be NULL if *@n_grants is 0
 * @n_grants: in: room in @grants; out: number of grants, of which those that fit are in @grants.
 *    LITE_GRANTS_MAX is always enough.
 *
 * Return: 0, -EBADF, -EIDRM (freed), -ESTALE or -EHOSTDOWN (its home restarted, or is down),
 * -EINVAL (room without @grants, or no @n_grants), -EIO, -EPROTO or -ETIMEDOUT.
 */
int lite_grants(struct lite_ctx* ctx, lite_lh_t lh, struct lite_grant* grants,
                uint32_t* n_grants) LITE_NOEXCEPT;

/*
 * lite_grants_name - list the grants of an LMR
 * @name: its name
 * @grants, @n_grants: as in lite_grants()
 *
 * Needs no right on the LMR, as lite_stat_name().
 *
 * Return: 0, -ENOENT, -ENAMETOOLONG, -EINVAL, -EHOSTDOWN, -EIO, -EPROTO or -ETIMEDOUT.
 */
int lite_grants_name(struct lite_ctx* ctx, const char* name, struct lite_grant* grants,
                     uint32_t* n_grants) LITE_NOEXCEPT;

/*
 * lite_setattr - change owner, group and mode of the LMR behind a handle
 * @lh: handle with LITE_RIGHT_MASTER
 * @uid: the new owner, which only root may change, or LITE_KEEP
 * @gid: the new group, one that the caller is in unless it is root, or LITE_KEEP
 * @mode: the new permission bits, 0666 at most, or LITE_KEEP
 *
 * Changes everything or nothing. On return no handle on any node holds a right that its user lost
 * by this, and operations that used it have ended.
 *
 * Return: 0, -EBADF, -EACCES (no MASTER), -EPERM (another owner, and the caller is not root, or a
 * group that the caller is not in), -EINVAL (bits beyond 0666), -EIDRM (freed), -ESTALE or
 * -EHOSTDOWN (its home restarted, or is down), -EIO, -EPROTO, or -ETIMEDOUT (it is unknown whether
 * they have changed).
 */
int lite_setattr(struct lite_ctx* ctx, lite_lh_t lh, uint32_t uid, uint32_t gid,
                 uint32_t mode) LITE_NOEXCEPT;

/*
 * lite_setattr_name - change owner, group and mode of an LMR
 * @name: its name
 * @uid, @gid, @mode: as in lite_setattr()
 *
 * For its masters.
 *
 * Return: 0, -ENOENT, -ENAMETOOLONG, -EPERM (no master, or as lite_setattr()), or a negative errno
 * as lite_setattr().
 */
int lite_setattr_name(struct lite_ctx* ctx, const char* name, uint32_t uid, uint32_t gid,
                      uint32_t mode) LITE_NOEXCEPT;

/*
 * lite_chmod - change the mode of the LMR behind a handle
 * lite_chmod_name - change the mode of an LMR
 * lite_chown - change owner and group of the LMR behind a handle
 * lite_chown_name - change owner and group of an LMR
 *
 * As lite_setattr() and lite_setattr_name(), with LITE_KEEP for the rest.
 */
int lite_chmod(struct lite_ctx* ctx, lite_lh_t lh, uint32_t mode) LITE_NOEXCEPT;
int lite_chmod_name(struct lite_ctx* ctx, const char* name, uint32_t mode) LITE_NOEXCEPT;
int lite_chown(struct lite_ctx* ctx, lite_lh_t lh, uint32_t uid, uint32_t gid) LITE_NOEXCEPT;
int lite_chown_name(struct lite_ctx* ctx, const char* name, uint32_t uid,
                    uint32_t gid) LITE_NOEXCEPT;

/*
 * lite_rename - rename the LMR behind a handle
 * @lh: handle with LITE_RIGHT_MASTER
 * @to: the new name
 *
 * Handles stay valid. An anonymous LMR that gets a name outlives the context. Never replaces
 * another LMR.
 *
 * Return: 0, -EBADF, -EACCES (no MASTER), -EEXIST (another LMR is called @to), -EINVAL (a bad
 * @to), -ENAMETOOLONG, -ENOSPC or -EDQUOT (the memory for LMRs, or the first owner's share of it,
 * is used up at the home or at the node that keeps the new name), -EIDRM (freed), -ESTALE or
 * -EHOSTDOWN (its home restarted, or is down), -EIO, -EPROTO, or -ETIMEDOUT (it is unknown which
 * name it has).
 */
int lite_rename(struct lite_ctx* ctx, lite_lh_t lh, const char* to) LITE_NOEXCEPT;

/*
 * lite_rename_name - rename an LMR
 * @name: its name
 * @to: the new name
 *
 * As lite_rename(), for its masters.
 *
 * Return: 0, -ENOENT, -EPERM (no master), or a negative errno as lite_rename().
 */
int lite_rename_name(struct lite_ctx* ctx, const char* name, const char* to) LITE_NOEXCEPT;

/*
 * lite_resize - change the length of the LMR behind a handle
 * @lh: handle with LITE_RIGHT_MASTER
 * @length: bytes, 1..LITE_LMR_SIZE_MAX
 *
 * Added bytes are zero; the memory of what is cut off is free on return. Handles stay valid and
 * have the new length: beyond it, operations fail with -ERANGE.
 *
 * Return: 0, -EBADF, -EACCES (no MASTER), -EINVAL (@length is 0), -EFBIG, -ENOSPC or -EDQUOT (as
 * lite_alloc()), -EOPNOTSUPP (it is registered memory), -EIDRM (freed), -ESTALE or -EHOSTDOWN (a
 * node with its memory restarted, or is down), -EIO, -EPROTO, or -ETIMEDOUT (it is unknown which
 * length it has).
 */
int lite_resize(struct lite_ctx* ctx, lite_lh_t lh, uint64_t length) LITE_NOEXCEPT;

/*
 * lite_resize_name - change the length of an LMR
 * @name: its name
 * @length: bytes, 1..LITE_LMR_SIZE_MAX
 *
 * As lite_resize(), for its masters.
 *
 * Return: 0, -ENOENT, -ENAMETOOLONG, -EPERM (no master), or a negative errno as lite_resize().
 */
int lite_resize_name(struct lite_ctx* ctx, const char* name, uint64_t length) LITE_NOEXCEPT;

/*
 * lite_move - move a part of the LMR behind a handle to another node
 * @lh: handle with LITE_RIGHT_MASTER
 * @offset: start of the part, bytes; rounded down to a page
 * @length: bytes; the end is rounded up to a page; 0: everything from @offset on
 * @node: id of the node; 0: this one
 * @moved: set to the number of leading bytes moved, on failure too; may be NULL
 *
 * The LMR can be read and written meanwhile: handles stay valid, no write is lost. After a failure
 * all of the LMR is usable, and what was moved stays moved. The home, which keeps the metadata,
 * does not change.
 *
 * Return: 0, -EBADF, -EACCES (no MASTER), -ERANGE (beyond the end), -EINVAL (not a valid node id),
 * -EHOSTUNREACH (no such node), -EHOSTDOWN, -ENOSPC or -EDQUOT (as lite_alloc(), at @node or, for
 * the metadata, at the home; -ENOSPC also if the LMR would be on more than LITE_SPREAD_MAX nodes),
 * -EOPNOTSUPP (it is registered memory), -EIDRM (freed), -ESTALE (a node with its memory
 * restarted), -ETIMEDOUT, -EIO or -EPROTO.
 */
int lite_move(struct lite_ctx* ctx, lite_lh_t lh, uint64_t offset, uint64_t length, uint32_t node,
              uint64_t* moved) LITE_NOEXCEPT;

/*
 * lite_move_name - move a part of an LMR to another node
 * @name: its name
 * @offset, @length, @node, @moved: as in lite_move()
 *
 * As lite_move(), for its masters.
 *
 * Return: 0, -ENOENT, -ENAMETOOLONG, -EPERM (no master), or a negative errno as lite_move().
 */
int lite_move_name(struct lite_ctx* ctx, const char* name, uint64_t offset, uint64_t length,
                   uint32_t node, uint64_t* moved) LITE_NOEXCEPT;

#pragma GCC visibility pop

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* LITE_MANAGE_H */
