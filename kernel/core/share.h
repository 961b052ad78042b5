/* SPDX-License-Identifier: GPL-2.0 */
/*
 * How much of a limited resource a user may have. A pool is divided by demand: a user gets more as
 * long as it then has no more than is left. A single user gets half; k users leave 1 / (k + 1) to
 * the next (dynamic thresholds: lite_window_has_room()). Root and kernel clients have a reserve.
 */
#ifndef _LITE_CORE_SHARE_H
#define _LITE_CORE_SHARE_H

#include "types.h"

struct lite_pool_rule {
	u64 limit;
	u64 reserve; /* the part that only root and kernel clients get */
};

/*
 * May a user with @has units of a pool have @n more? @used: units of all; @by_users: of all but
 * root and kernel clients; @root: the user is one of these, which only the pool's size limits.
 * Return: 0; -ENOSPC: not enough is left; -EDQUOT: enough is left, but for others.
 */
static inline int lite_pool_check(const struct lite_pool_rule *rule, u64 used,
				  u64 by_users, u64 has, bool root, u64 n)
{
	u64 left = used < rule->limit ? rule->limit - used : 0;
	u64 users = rule->limit - rule->reserve;

	if (n > left)
		return -ENOSPC;
	if (root)
		return 0;
	users = by_users < users ? users - by_users : 0;
	if (users < left)
		left = users;
	if (n > left)
		return -ENOSPC;
	return n <= left - n && has <= left - n - n ? 0 : -EDQUOT;
}

#endif /* _LITE_CORE_SHARE_H */
