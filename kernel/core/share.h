/* SPDX-License-Identifier: GPL-2.0 */
/*
 * How much of a limited resource one user may have.
 *
 * A pool is divided by demand: a user gets more while it then has no more than
 * is left to the others. One user alone gets half; k users leave 1 / (k + 1) to
 * the next. These are the dynamic thresholds of Choudhury and Hahne (IEEE/ACM
 * ToN 6(2), 1998), as in lite_window_has_room(). An administrator may set a
 * fixed limit per user instead. A reserve is kept for root and kernel clients.
 */
#ifndef _LITE_CORE_POOL_H
#define _LITE_CORE_POOL_H

#include "types.h"

/**
 * struct lite_pool_rule - how a pool is divided
 * @limit: of the whole pool
 * @reserve: part of @limit that only root and kernel clients get
 * @uid_limit: of one user; 0: as much as is left to the others
 */
struct lite_pool_rule {
	u64 limit;
	u64 reserve;
	u64 uid_limit;
};

/**
 * lite_pool_check - may a user have more of a pool?
 * @rule: of the pool
 * @used: by all
 * @by_users: part of @used that is not root's or kernel clients'
 * @has: part of @by_users that is this user's
 * @root: the user is root or a kernel client: only the pool is a limit
 * @n: additional amount
 *
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
	if (rule->uid_limit)
		return n <= rule->uid_limit && has <= rule->uid_limit - n ? 0 : -EDQUOT;
	return n <= left - n && has <= left - n - n ? 0 : -EDQUOT;
}

#endif /* _LITE_CORE_POOL_H */
