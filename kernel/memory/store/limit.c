// SPDX-License-Identifier: GPL-2.0
/*
 * Limits on a node's memory for LMRs: pages, at their stores, and metadata, at
 * stores, homes and directories. Charged is the uid that owns the LMR when the
 * memory is taken, whichever node made it; memory that is already charged stays
 * charged to that uid when the LMR changes owner.
 *
 * These limits are per node. What processes of this node take is also charged
 * to their memory cgroups.
 */
#include <linux/slab.h>

#include "limit.h"
#include "stats.h"

struct lite_uid_use {
	u64 bytes;
};

/* Initialise limits; see struct lite_limit. */
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

/* Undo lite_limit_init(). All bytes must have been given back. */
void lite_limit_exit(struct lite_limit *limit)
{
	WARN_ON_ONCE(limit->used || !xa_empty(&limit->uids));
	xa_destroy(&limit->uids);
}

/* Share of @all reserved for root and kernel clients: 1/16. */
#define LITE_LIMIT_RESERVE_SHIFT 4

/* Root has no limit of its own, as with disk quotas. */
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
 * lite_limit_room - check limits without taking anything
 * @limit: of the node
 * @uid: user to charge
 * @bytes: total wanted
 *
 * For callers that would otherwise zero many pieces before one does not fit.
 *
 * Context: may sleep.
 * Return: 0: it would fit now; -ENOSPC or -EDQUOT.
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

/* The entry of a uid, allocated if new; NULL: no memory. */
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
 * lite_limit_take - charge bytes
 * @limit: of the node
 * @uid: user to charge
 * @bytes: not 0
 *
 * Context: may sleep.
 * Return: 0, undone with lite_limit_give(); -ENOSPC, -EDQUOT, -ENOMEM.
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

/* Count uncharged bytes as quarantined, for good. May sleep. */
void lite_limit_lose(struct lite_limit *limit, u64 bytes)
{
	mutex_lock(&limit->lock);
	limit->lost += bytes;
	mutex_unlock(&limit->lock);
}

/**
 * lite_limit_give - uncharge bytes
 * @limit: of the node
 * @uid: user that was charged
 * @bytes: all or a part of what was taken; 0: does nothing
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
