/* SPDX-License-Identifier: GPL-2.0 */
/* Rights on an LMR: the rules of POSIX shared memory. */
#ifndef _LITE_CORE_RIGHTS_H
#define _LITE_CORE_RIGHTS_H

#include <uapi/lite.h>

#include "types.h"

/* Supplementary groups that travel with a request; further ones are dropped. */
#define LITE_CRED_GROUPS 32

/* Credentials of a request: effective ids, in the initial user namespace. */
struct lite_cred {
	u32 uid;
	u32 gid;
	u32 n_groups;
	u32 groups[LITE_CRED_GROUPS]; /* supplementary */
};

struct lite_acl {
	u32 uid;
	u32 gid;
	u32 mode;
	u32 n_grants;
	struct lite_grant *grants; /* in addition to those of owner, group and mode */
};

#define LITE_MODE_MASK 0666U /* mode bits that an LMR may have */
#define LITE_UID_NOBODY 65534U /* uid of another node's root when it is squashed, as with NFS */

/*
 * The LITE_RIGHT_* of a user of @node on an LMR. As with open(2), only the first class that fits
 * applies (owner, group, others). The owner is also a master and sharer. Root has all rights, or
 * with @squash those of LITE_UID_NOBODY. Grants to the user are added.
 */
u32 lite_rights_of(const struct lite_cred *cred, u32 node, const struct lite_acl *acl, bool squash);

/* The user that is charged for a request of @uid. @squash: as for lite_rights_of(). */
static inline u32 lite_uid_charged(u32 uid, bool squash)
{
	return uid || !squash ? uid : LITE_UID_NOBODY;
}

/* Is a user in a group? A list of LITE_CRED_GROUPS groups may be truncated. */
bool lite_cred_in_group(const struct lite_cred *cred, u32 gid);

/* Does every home treat two users alike? */
bool lite_cred_equal(const struct lite_cred *a, const struct lite_cred *b);

/* Index of the grant to @uid on @node (0: on all nodes), or @acl->n_grants if there is none. */
u32 lite_grant_find(const struct lite_acl *acl, u32 uid, u32 node);

/*
 * May a user with the rights @own replace the granted rights @old? A master may grant and take away
 * anything. A sharer may add READ, WRITE and ATOMIC as far as it has them, and take nothing away.
 */
bool lite_grant_allowed(u32 own, u32 old, u32 new_rights);

#endif /* _LITE_CORE_RIGHTS_H */
