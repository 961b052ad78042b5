/* SPDX-License-Identifier: GPL-2.0 */
/* Who may do what with an LMR: the rules of POSIX shared memory. */
#ifndef _LITE_CORE_RIGHTS_H
#define _LITE_CORE_RIGHTS_H

#include "types.h"
#ifdef __KERNEL__
#include <uapi/lite.h>
#else
#include "../../include/uapi/lite.h"
#endif

/* Supplementary groups that travel with a request; further ones are ignored. */
#define LITE_CRED_GROUPS 32

/**
 * struct lite_cred - on whose behalf something is asked
 * @uid: effective user id, in the initial user namespace
 * @gid: effective group id, likewise
 * @n_groups: entries in @groups
 * @groups: supplementary group ids
 */
struct lite_cred {
	u32 uid;
	u32 gid;
	u32 n_groups;
	u32 groups[LITE_CRED_GROUPS];
};

/* Mode bits that an LMR may have. */
#define LITE_MODE_MASK 0666U

/**
 * lite_rights_of - rights that a user has on an LMR
 * @cred: the user
 * @uid: owner
 * @gid: group
 * @mode: permission bits
 *
 * As open(2) decides: exactly one of the three classes applies, the first that
 * fits. Root has everything.
 *
 * Return: LITE_RIGHT_* bits.
 */
u32 lite_rights_of(const struct lite_cred *cred, u32 uid, u32 gid, u32 mode);

#endif /* _LITE_CORE_RIGHTS_H */
