/* SPDX-License-Identifier: GPL-2.0 */
/*
 * How much of a limited resource one user may have. A pool is divided by demand: a user gets more
 * while it then has no more than is left to the others. One user alone gets half; k users leave
 * 1 / (k + 1) to the next (dynamic thresholds, see lite_window_has_room()). A reserve is kept for
 * root and kernel clients.
 */
#ifndef _LITE_CORE_SHARE_H
#define _LITE_CORE_SHARE_H

#include "types.h"

struct lite_pool_rule {
	u64 limit;   /* of the whole pool */
	u64 reserve; /* part of it that only root and kernel clients get */
};

/*
 * May a user that has @has units of a pool have @n more? All have @used; users but root and kernel
 * clients have @by_users. Only the pool limits a user that is one of these (@root). Return: 0;
 * -ENOSPC: not enough is left; -EDQUOT: enough is left, but for others.
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
