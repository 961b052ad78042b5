// SPDX-License-Identifier: GPL-2.0
#include "rights.h"

static bool lite_cred_in_group(const struct lite_cred *cred, u32 gid)
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

u32 lite_rights_of(const struct lite_cred *cred, u32 uid, u32 gid, u32 mode)
{
	u32 rights = 0;
	u32 bits;

	if (cred->uid == 0)
		return LITE_RIGHTS_ALL;
	if (cred->uid == uid) {
		bits = mode >> 6;
		rights |= LITE_RIGHT_MASTER;
	} else if (lite_cred_in_group(cred, gid)) {
		bits = mode >> 3;
	} else {
		bits = mode;
	}
	if (bits & 4)
		rights |= LITE_RIGHT_READ;
	if (bits & 2)
		rights |= LITE_RIGHT_WRITE | LITE_RIGHT_ATOMIC;
	return rights;
}
