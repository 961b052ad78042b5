// SPDX-License-Identifier: GPL-2.0
#include <linux/hash.h>
#include <linux/slab.h>

#include "pool.h"

/**
 * lite_pool_init - initialise an unused pool
 * @pool: to fill
 * @limit: units in all
 * @reserve: of these, for uid 0 only
 * @uid_limit: limit of each other uid; 0: dynamic, see core/pool.h
 */
void lite_pool_init(struct lite_pool *pool, u64 limit, u64 reserve,
		    u64 uid_limit)
{
	u32 i;

	memset(pool, 0, sizeof(*pool));
	spin_lock_init(&pool->lock);
	pool->rule = (struct lite_pool_rule){
		.limit = limit,
		.reserve = min(reserve, limit),
		.uid_limit = uid_limit,
	};
	for (i = 0; i < LITE_POOL_BUCKETS; i++)
		INIT_HLIST_HEAD(&pool->parts[i]);
}

/**
 * lite_pool_exit - check that all has been given back
 * @pool: pool
 */
void lite_pool_exit(struct lite_pool *pool)
{
	u32 i;

	WARN_ON_ONCE(pool->used || pool->root.holds);
	for (i = 0; i < LITE_POOL_BUCKETS; i++)
		WARN_ON_ONCE(!hlist_empty(&pool->parts[i]));
}

static struct hlist_head *lite_pool_bucket(struct lite_pool *pool, u32 uid)
{
	return &pool->parts[hash_32(uid, ilog2(LITE_POOL_BUCKETS))];
}

static struct lite_pool_part *lite_pool_find(struct lite_pool *pool, u32 uid)
{
	struct lite_pool_part *part;

	lockdep_assert_held(&pool->lock);
	if (!uid)
		return &pool->root;
	hlist_for_each_entry(part, lite_pool_bucket(pool, uid), node) {
		if (part->uid == uid)
			return part;
	}
	return NULL;
}

/* Unlink a part that nothing refers to any more, for kfree(); or NULL. */
static struct lite_pool_part *lite_pool_unused(struct lite_pool *pool,
					       struct lite_pool_part *part)
{
	lockdep_assert_held(&pool->lock);
	if (part == &pool->root || part->holds || part->has)
		return NULL;
	hlist_del(&part->node);
	return part;
}

/**
 * lite_pool_hold - look up, or make, the part of a uid
 * @pool: pool
 * @uid: uid
 *
 * Context: may sleep.
 * Return: the part, for lite_pool_drop(), or NULL: no memory.
 */
struct lite_pool_part *lite_pool_hold(struct lite_pool *pool, u32 uid)
{
	struct lite_pool_part *part, *new;

	spin_lock(&pool->lock);
	part = lite_pool_find(pool, uid);
	if (part)
		part->holds++;
	spin_unlock(&pool->lock);
	if (part)
		return part;
	new = kzalloc(sizeof(*new), GFP_KERNEL);
	if (!new)
		return NULL;
	new->uid = uid;
	spin_lock(&pool->lock);
	part = lite_pool_find(pool, uid);
	if (!part) {
		part = new;
		new = NULL;
		hlist_add_head(&part->node, lite_pool_bucket(pool, uid));
	}
	part->holds++;
	spin_unlock(&pool->lock);
	kfree(new);
	return part;
}

/**
 * lite_pool_drop - undo lite_pool_hold()
 * @pool: pool
 * @part: part of @pool
 *
 * Context: any process, also with spinlocks held.
 */
void lite_pool_drop(struct lite_pool *pool, struct lite_pool_part *part)
{
	spin_lock(&pool->lock);
	part->holds--;
	part = lite_pool_unused(pool, part);
	spin_unlock(&pool->lock);
	kfree(part);
}

/**
 * lite_pool_take_part - take units of a pool
 * @pool: pool
 * @part: held part they are counted for
 * @n: units
 *
 * Context: any process, also with spinlocks held.
 * Return: 0; -ENOSPC: not enough left; -EDQUOT: what is left is for others.
 */
int lite_pool_take_part(struct lite_pool *pool, struct lite_pool_part *part,
			u64 n)
{
	bool root = part == &pool->root;
	int err;

	spin_lock(&pool->lock);
	err = lite_pool_check(&pool->rule, pool->used, pool->by_users,
			      part->has, root, n);
	if (!err) {
		part->has += n;
		pool->used += n;
		pool->by_users += root ? 0 : n;
	}
	spin_unlock(&pool->lock);
	return err;
}

static void lite_pool_give_locked(struct lite_pool *pool,
				  struct lite_pool_part *part, u64 n)
{
	lockdep_assert_held(&pool->lock);
	part->has -= n;
	pool->used -= n;
	pool->by_users -= part == &pool->root ? 0 : n;
}

/**
 * lite_pool_give_part - give units back
 * @pool: pool
 * @part: held part they were taken for
 * @n: units
 *
 * Context: any process, also with spinlocks held.
 */
void lite_pool_give_part(struct lite_pool *pool, struct lite_pool_part *part,
			 u64 n)
{
	spin_lock(&pool->lock);
	lite_pool_give_locked(pool, part, n);
	spin_unlock(&pool->lock);
}

/**
 * lite_pool_take - take units of a pool
 * @pool: pool
 * @uid: uid they are counted for
 * @n: units
 *
 * Context: may sleep.
 * Return: as lite_pool_take_part(); -ENOMEM.
 */
int lite_pool_take(struct lite_pool *pool, u32 uid, u64 n)
{
	struct lite_pool_part *part = lite_pool_hold(pool, uid);
	int err;

	if (!part)
		return -ENOMEM;
	err = lite_pool_take_part(pool, part, n);
	lite_pool_drop(pool, part);
	return err;
}

/**
 * lite_pool_give - give units back
 * @pool: pool
 * @uid: uid they were taken for
 * @n: units
 *
 * Context: any process, also with spinlocks held.
 */
void lite_pool_give(struct lite_pool *pool, u32 uid, u64 n)
{
	struct lite_pool_part *part;

	if (!n)
		return;
	spin_lock(&pool->lock);
	part = lite_pool_find(pool, uid);
	lite_pool_give_locked(pool, part, n);
	part = lite_pool_unused(pool, part);
	spin_unlock(&pool->lock);
	kfree(part);
}

/**
 * lite_pool_room - could units be taken at this moment?
 * @pool: pool
 * @uid: uid they would be counted for
 * @n: units
 *
 * Context: any process.
 * Return: as lite_pool_take_part().
 */
int lite_pool_room(struct lite_pool *pool, u32 uid, u64 n)
{
	struct lite_pool_part *part;
	int err;

	spin_lock(&pool->lock);
	part = lite_pool_find(pool, uid);
	err = lite_pool_check(&pool->rule, pool->used, pool->by_users,
			      part ? part->has : 0, !uid, n);
	spin_unlock(&pool->lock);
	return err;
}

/* Units taken of a pool. Context: any process. */
u64 lite_pool_used(struct lite_pool *pool)
{
	u64 used;

	spin_lock(&pool->lock);
	used = pool->used;
	spin_unlock(&pool->lock);
	return used;
}
