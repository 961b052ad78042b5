// SPDX-License-Identifier: GPL-2.0
/*
 * What LMRs take of a node's memory: their pages, at their stores, and what
 * describes them, at their stores, their homes and the directories of their names.
 * All of it is counted to the uid of the LMR's owner, wherever that made it, and
 * at the time at which it was made: who gives an LMR away has it counted on.
 *
 * That is the limit for a whole node. What this node's processes take is charged
 * to their memory cgroups as well.
 */
#include <linux/slab.h>

#include "../stats.h"
#include "limit.h"

struct lite_uid_use {
	u64 bytes;
};

/**
 * lite_limit_init - nothing is in use
 * @limit: to fill
 * @all: bytes that all have together, at most
 * @each: bytes that a uid but root's has, at most
 * @stats: of the node
 *
 * Context: any.
 */
void lite_limit_init(struct lite_limit *limit, u64 all, u64 each,
		     struct lite_stats __percpu *stats)
{
	mutex_init(&limit->lock);
	limit->all = all;
	limit->each = each;
	limit->used = 0;
	limit->lost = 0;
	xa_init(&limit->uids);
	limit->stats = stats;
}

/**
 * lite_limit_exit - the counterpart of lite_limit_init()
 * @limit: all has been given back
 *
 * Context: may sleep.
 */
void lite_limit_exit(struct lite_limit *limit)
{
	WARN_ON_ONCE(limit->used || !xa_empty(&limit->uids));
	xa_destroy(&limit->uids);
}

/* Of all, this part is root's and the kernel's clients': 1/16. */
#define LITE_LIMIT_RESERVE_SHIFT 4

/* Root can do without limits anyway; and shall, as with quotas of disks. */
static int lite_limit_check(const struct lite_limit *limit, u32 uid, u64 used,
			    u64 bytes)
{
	u64 taken = limit->used + limit->lost;
	u64 all = limit->all;

	lockdep_assert_held(&limit->lock);
	if (uid)
		all -= all >> LITE_LIMIT_RESERVE_SHIFT;
	if (bytes > all || taken > all - bytes)
		return -ENOSPC;
	if (uid && (bytes > limit->each || used > limit->each - bytes))
		return -EDQUOT;
	return 0;
}

/**
 * lite_limit_room - would the limits let somebody have so much?
 * @limit: node's
 * @uid: whom to charge
 * @bytes: how much, all in all
 *
 * Who asks before the first of many pieces need not zero them all to learn that
 * the last does not fit.
 *
 * Context: may sleep.
 * Return: 0: maybe; -ENOSPC or -EDQUOT.
 */
int lite_limit_room(struct lite_limit *limit, u32 uid, u64 bytes)
{
	const struct lite_uid_use *use;
	int err;

	mutex_lock(&limit->lock);
	use = xa_load(&limit->uids, uid);
	err = lite_limit_check(limit, uid, use ? use->bytes : 0, bytes);
	mutex_unlock(&limit->lock);
	return err;
}

/* The entry of a uid; a new one that has nothing yet, or NULL. */
static struct lite_uid_use *lite_uid_use_get(struct lite_limit *limit, u32 uid)
{
	struct lite_uid_use *use = xa_load(&limit->uids, uid);

	if (use)
		return use;
	use = kzalloc(sizeof(*use), GFP_KERNEL);
	if (use && xa_is_err(xa_store(&limit->uids, uid, use, GFP_KERNEL))) {
		kfree(use);
		use = NULL;
	}
	return use;
}

/**
 * lite_limit_take - somebody is to have memory
 * @limit: node's
 * @uid: whom to charge
 * @bytes: how much; not 0
 *
 * Context: may sleep.
 * Return: 0, then lite_limit_give() is to follow; -ENOSPC, -EDQUOT, -ENOMEM.
 */
int lite_limit_take(struct lite_limit *limit, u32 uid, u64 bytes)
{
	struct lite_uid_use *use;
	int err;

	mutex_lock(&limit->lock);
	use = xa_load(&limit->uids, uid);
	err = lite_limit_check(limit, uid, use ? use->bytes : 0, bytes);
	if (!err) {
		use = lite_uid_use_get(limit, uid);
		if (!use)
			err = -ENOMEM;
	}
	if (!err) {
		use->bytes += bytes;
		limit->used += bytes;
		lite_stat_add(limit->stats, LITE_STAT_COUNTED_BYTES, bytes);
	}
	mutex_unlock(&limit->lock);
	return err;
}

/**
 * lite_limit_lose - memory is in quarantine, and will never be had again
 * @limit: node's
 * @bytes: how much; the uid that it was charged to has been given it back
 *
 * Context: may sleep.
 */
void lite_limit_lose(struct lite_limit *limit, u64 bytes)
{
	mutex_lock(&limit->lock);
	limit->lost += bytes;
	mutex_unlock(&limit->lock);
}

/**
 * lite_limit_give - memory is given back
 * @limit: node's
 * @uid: who was charged
 * @bytes: as much as was taken, or a part of that; 0: nothing was taken
 *
 * Context: may sleep.
 */
void lite_limit_give(struct lite_limit *limit, u32 uid, u64 bytes)
{
	struct lite_uid_use *use;

	if (!bytes)
		return;
	mutex_lock(&limit->lock);
	limit->used -= bytes;
	lite_stat_add(limit->stats, LITE_STAT_COUNTED_BYTES, -(s64)bytes);
	use = xa_load(&limit->uids, uid);
	use->bytes -= bytes;
	if (!use->bytes) {
		xa_erase(&limit->uids, uid);
		kfree(use);
	}
	mutex_unlock(&limit->lock);
}
