// SPDX-License-Identifier: GPL-2.0
/*
 * Limits on a node's memory for LMRs: pages, at their stores, and metadata, at stores, homes and
 * directories. Memory is charged to the uid that then owns the LMR, whichever node made it, and
 * stays charged to that uid when the LMR changes owner. What processes of this node take is also
 * charged to their memory cgroups.
 */
#include <linux/slab.h>

#include "limit.h"
#include "stats.h"

/* Initialise limits, which are zeroed; see struct lite_limit. */
void lite_limit_init(struct lite_limit *limit, u64 all, u64 each, struct lite_stats __percpu *stats)
{
	spin_lock_init(&limit->lock);
	limit->all = all;
	limit->each = each;
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

static u64 lite_limit_used(struct lite_limit *limit, u32 uid)
{
	void *used = xa_load(&limit->uids, uid);

	return used ? xa_to_value(used) : 0;
}

/*
 * Do @bytes fit now? Root has no limit of its own, as with disk quotas. @over: set on failure to
 * the bytes that must be freed before they fit; U64_MAX: they never will.
 */
static int lite_limit_check(struct lite_limit *limit, u32 uid, u64 bytes, u64 *over)
{
	u64 used = lite_limit_used(limit, uid);
	u64 taken = limit->used + limit->lost;
	u64 all = limit->all;

	lockdep_assert_held(&limit->lock);
	*over = U64_MAX;
	if (uid)
		all -= all >> LITE_LIMIT_RESERVE_SHIFT;
	if (bytes > all)
		return -ENOSPC;
	if (uid && bytes > limit->each)
		return -EDQUOT;
	/* Check this first: others give up nothing for a user that is over its own limit. */
	if (uid && used > limit->each - bytes) {
		*over = used - (limit->each - bytes);
		return -EDQUOT;
	}
	if (taken > all - bytes) {
		*over = taken - (all - bytes);
		return -ENOSPC;
	}
	return 0;
}

/*
 * Check bytes, and if @take charge them. Memory for a new entry is allocated without the lock,
 * because its reclaim may wait for another thread, which needs the lock (memory/unpinned/).
 */
static int lite_limit_try(struct lite_limit *limit, u32 uid, u64 bytes, bool take, u64 *over)
{
	XA_STATE(xas, &limit->uids, uid);
	int err;

	do {
		spin_lock(&limit->lock);
		err = lite_limit_check(limit, uid, bytes, over);
		if (!err && take) {
			xas_lock(&xas);
			xas_store(&xas, xa_mk_value(lite_limit_used(limit, uid) + bytes));
			xas_unlock(&xas);
			err = xas_error(&xas);
		}
		if (!err && take) {
			limit->used += bytes;
			lite_stat_add(limit->stats, LITE_STAT_COUNTED_BYTES, bytes);
		}
		spin_unlock(&limit->lock);
	} while (xas_nomem(&xas, GFP_KERNEL));
	return err;
}

/* As lite_limit_try(). If a limit is met, free what is not in use, and try again. */
static int lite_limit_fit(struct lite_limit *limit, u32 uid, u64 bytes, bool take)
{
	/* One for each of the two limits. */
	int err, tries = 2;
	u64 over;

	do {
		err = lite_limit_try(limit, uid, bytes, take, &over);
	} while ((err == -ENOSPC || err == -EDQUOT) && limit->spare && tries-- &&
		 limit->spare(limit, uid, err == -ENOSPC, over));
	return err;
}

/*
 * Would @bytes fit now? For callers that would otherwise zero many pieces before one does not fit.
 * May sleep. Return: 0, -ENOSPC, -EDQUOT.
 */
int lite_limit_room(struct lite_limit *limit, u32 uid, u64 bytes)
{
	return lite_limit_fit(limit, uid, bytes, false);
}

/* Charge bytes, not 0. May sleep. Return: 0, for lite_limit_give(); -ENOSPC, -EDQUOT, -ENOMEM. */
int lite_limit_take(struct lite_limit *limit, u32 uid, u64 bytes)
{
	return lite_limit_fit(limit, uid, bytes, true);
}

/* Count bytes, no longer charged, as quarantined. May be called with spinlocks held. */
void lite_limit_lose(struct lite_limit *limit, u64 bytes)
{
	spin_lock(&limit->lock);
	limit->lost += bytes;
	spin_unlock(&limit->lock);
}

/* Uncharge all or a part of what was taken (0: nothing). May be called with spinlocks held. */
void lite_limit_give(struct lite_limit *limit, u32 uid, u64 bytes)
{
	u64 left;

	if (!bytes)
		return;
	spin_lock(&limit->lock);
	limit->used -= bytes;
	lite_stat_add(limit->stats, LITE_STAT_COUNTED_BYTES, -(s64)bytes);
	left = lite_limit_used(limit, uid) - bytes;
	/* Replacing an entry allocates nothing. */
	if (left)
		xa_store(&limit->uids, uid, xa_mk_value(left), GFP_NOWAIT);
	else
		xa_erase(&limit->uids, uid);
	spin_unlock(&limit->lock);
}

/*
 * Allocate @size bytes of metadata, and charge @bytes for it. May sleep. Return: zeroed memory, for
 * lite_limit_free(); ERR_PTR: -ENOSPC, -EDQUOT, -ENOMEM.
 */
void *lite_limit_alloc(struct lite_limit *limit, u32 uid, size_t size, u64 bytes)
{
	int err = lite_limit_take(limit, uid, bytes);
	void *p;

	if (err)
		return ERR_PTR(err);
	p = kvzalloc(size, GFP_KERNEL_ACCOUNT | __GFP_NOWARN);
	if (p)
		return p;
	lite_limit_give(limit, uid, bytes);
	return ERR_PTR(-ENOMEM);
}

/* Undo lite_limit_alloc(). May sleep. */
void lite_limit_free(struct lite_limit *limit, u32 uid, const void *p, u64 bytes)
{
	lite_limit_give(limit, uid, bytes);
	kvfree(p);
}
