/* SPDX-License-Identifier: GPL-2.0 */
/*
 * How much of something limited one user may have.
 *
 * A pool is divided by its users' needs, not beforehand: a user gets more as long as
 * it has, then, no more than is left to the others. Alone it gets half, k users
 * leave 1 / (k + 1) to the one who comes next. These are the dynamic thresholds of
 * Choudhury and Hahne (IEEE/ACM ToN 6(2), 1998), as in lite_window_has_room(). An
 * administrator may set another limit for each instead. A part of the pool is
 * reserved: root and clients in the kernel get it, no other user does.
 */
#ifndef _LITE_CORE_POOL_H
#define _LITE_CORE_POOL_H

#include "types.h"

/**
 * struct lite_pool_rule - how a pool is divided
 * @limit: of all there is
 * @reserve: of it, not for users; at most @limit
 * @uid_limit: of one user's part; 0: as much as is left to the others
 */
struct lite_pool_rule {
	u64 limit;
	u64 reserve;
	u64 uid_limit;
};

/**
 * lite_pool_check - may somebody have more of a pool?
 * @rule: of the pool
 * @used: of it, by all
 * @by_users: of @used, not by root or clients in the kernel
 * @has: of @by_users, the one who asks
 * @root: this is root, or a client in the kernel, whose part has no limit
 * @n: so much more
 *
 * Return: 0; -ENOSPC: there is not so much left; -EDQUOT: there is, for others.
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
		return n <= rule->uid_limit && has <= rule->uid_limit - n ?
			       0 :
			       -EDQUOT;
	return n <= left - n && has <= left - n - n ? 0 : -EDQUOT;
}

#endif /* _LITE_CORE_POOL_H */
