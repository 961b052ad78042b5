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

/**
 * struct lite_acl - who may do what with an LMR
 * @uid: owner
 * @gid: group
 * @mode: permission bits
 * @n_grants: entries in @grants
 * @grants: rights beside those that owner, group and mode give
 */
struct lite_acl {
	u32 uid;
	u32 gid;
	u32 mode;
	u32 n_grants;
	struct lite_grant *grants;
};

/* Mode bits that an LMR may have. */
#define LITE_MODE_MASK 0666U

/* Who root of another node is when it is squashed, as with NFS. */
#define LITE_UID_NOBODY 65534U

/**
 * lite_rights_of - rights that a user has on an LMR
 * @cred: the user
 * @node: on which node
 * @acl: of the LMR
 * @squash: root is nobody in particular, and has what was granted to it
 *
 * As open(2) decides: exactly one of the three classes applies, the first that
 * fits. Its owner is a master and may share it. Root has everything. Grants to
 * the user are added to that.
 *
 * Return: LITE_RIGHT_* bits.
 */
u32 lite_rights_of(const struct lite_cred *cred, u32 node,
		   const struct lite_acl *acl, bool squash);

/**
 * lite_cred_in_group - is a user in a group?
 * @cred: the user
 * @gid: the group
 */
bool lite_cred_in_group(const struct lite_cred *cred, u32 gid);

/**
 * lite_cred_equal - are two users the same to every home?
 * @a: one
 * @b: the other
 */
bool lite_cred_equal(const struct lite_cred *a, const struct lite_cred *b);

/**
 * lite_grant_find - the grant to a user on a node
 * @acl: of the LMR
 * @uid: user
 * @node: node id, or 0: that on every node
 *
 * Return: its index; @acl->n_grants: there is none.
 */
u32 lite_grant_find(const struct lite_acl *acl, u32 uid, u32 node);

/**
 * lite_grant_allowed - may this be granted?
 * @own: rights of who grants
 * @old: rights granted to that user so far
 * @new_rights: rights to be
 *
 * A master grants and takes away what he likes. A sharer gives READ, WRITE and
 * ATOMIC as far as he has them, and takes nothing away.
 */
bool lite_grant_allowed(u32 own, u32 old, u32 new_rights);

#endif /* _LITE_CORE_RIGHTS_H */
