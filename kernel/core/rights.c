// SPDX-License-Identifier: GPL-2.0
#include "rights.h"

bool lite_cred_in_group(const struct lite_cred *cred, u32 gid)
{
	u32 i;

	if (cred->gid == gid)
		return true;
	for (i = 0; i < cred->n_groups && i < LITE_CRED_GROUPS; i++) {
		if (cred->groups[i] == gid)
			return true;
	}
	return false;
}

bool lite_cred_equal(const struct lite_cred *a, const struct lite_cred *b)
{
	return a->uid == b->uid && a->gid == b->gid && a->n_groups == b->n_groups &&
	       !memcmp(a->groups, b->groups, a->n_groups * sizeof(a->groups[0]));
}

static u32 lite_rights_by_mode(const struct lite_cred *cred, const struct lite_acl *acl)
{
	u32 rights = 0;
	u32 bits;

	if (cred->uid == acl->uid) {
		bits = acl->mode >> 6;
		rights = LITE_RIGHT_MASTER | LITE_RIGHT_SHARE;
	} else if (lite_cred_in_group(cred, acl->gid)) {
		bits = acl->mode >> 3;
	} else if (cred->n_groups >= LITE_CRED_GROUPS) {
		/* The list of groups may be truncated: give what both group and others have. */
		bits = acl->mode & (acl->mode >> 3);
	} else {
		bits = acl->mode;
	}
	if (bits & 4)
		rights |= LITE_RIGHT_READ;
	if (bits & 2)
		rights |= LITE_RIGHT_WRITE | LITE_RIGHT_ATOMIC;
	return rights;
}

u32 lite_rights_of(const struct lite_cred *cred, u32 node, const struct lite_acl *acl, bool squash)
{
	const struct lite_cred none = { .uid = LITE_UID_NOBODY, .gid = LITE_UID_NOBODY };
	u32 rights;
	u32 i;

	if (!cred->uid && !squash)
		return LITE_RIGHTS_ALL;
	rights = lite_rights_by_mode(cred->uid ? cred : &none, acl);
	for (i = 0; i < acl->n_grants; i++) {
		const struct lite_grant *g = &acl->grants[i];

		if (g->uid == cred->uid && (!g->node || g->node == node))
			rights |= g->rights;
	}
	return rights;
}

u32 lite_grant_find(const struct lite_acl *acl, u32 uid, u32 node)
{
	u32 i;

	for (i = 0; i < acl->n_grants; i++) {
		if (acl->grants[i].uid == uid && acl->grants[i].node == node)
			break;
	}
	return i;
}

bool lite_grant_allowed(u32 own, u32 old, u32 new_rights)
{
	const u32 shared = LITE_RIGHT_READ | LITE_RIGHT_WRITE | LITE_RIGHT_ATOMIC;

	if (own & LITE_RIGHT_MASTER)
		return true;
	return own & LITE_RIGHT_SHARE && !(old & ~new_rights) &&
	       !(new_rights & ~old & ~(own & shared));
}
