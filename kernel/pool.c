// SPDX-License-Identifier: GPL-2.0
#include <linux/slab.h>

#include "line.h"
#include "pool.h"

/* Initialise an unused pool of @limit units, of which @reserve are for uid 0 only. */
void lite_pool_init(struct lite_pool *pool, u64 limit, u64 reserve)
{
	memset(pool, 0, sizeof(*pool)); /* so the tree is empty */
	spin_lock_init(&pool->lock);
	pool->rule.limit = limit;
	pool->rule.reserve = min(reserve, limit);
}

void lite_pool_exit(struct lite_pool *pool)
{
	WARN_ON_ONCE(pool->used || pool->root.holds || !RB_EMPTY_ROOT(&pool->parts));
}

LITE_TREE(lite_pool_tree, struct lite_pool_part, node, uid,
	  lite_order(*(const u32 *)key, *(const u32 *)has))

static struct lite_pool_part *lite_pool_find(struct lite_pool *pool, u32 uid)
{
	lockdep_assert_held(&pool->lock);
	return uid ? lite_pool_tree_find(&uid, &pool->parts) : &pool->root;
}

/* Unlink a part that is no longer in use. Return: the part, for kfree(), or NULL. */
static struct lite_pool_part *lite_pool_unused(struct lite_pool *pool, struct lite_pool_part *part)
{
	lockdep_assert_held(&pool->lock);
	if (part == &pool->root || part->holds || part->has)
		return NULL;
	rb_erase(&part->node, &pool->parts);
	return part;
}

/* Get or make, with @gfp, the part of a uid, until lite_pool_drop(). Return: NULL: no memory. */
struct lite_pool_part *lite_pool_hold(struct lite_pool *pool, u32 uid, gfp_t gfp)
{
	struct lite_pool_part *part, *new;

	spin_lock(&pool->lock);
	part = lite_pool_find(pool, uid);
	if (part)
		part->holds++;
	spin_unlock(&pool->lock);
	if (part)
		return part;
	new = kzalloc(sizeof(*new), gfp);
	if (!new)
		return NULL;
	new->uid = uid;
	spin_lock(&pool->lock);
	part = lite_pool_find(pool, uid);
	if (!part) {
		swap(part, new);
		rb_add(&part->node, &pool->parts, lite_pool_tree_less);
	}
	part->holds++;
	spin_unlock(&pool->lock);
	kfree(new);
	return part;
}

/* Undo lite_pool_hold(). Also with spinlocks held. */
void lite_pool_drop(struct lite_pool *pool, struct lite_pool_part *part)
{
	spin_lock(&pool->lock);
	part->holds--;
	part = lite_pool_unused(pool, part);
	spin_unlock(&pool->lock);
	kfree(part);
}

/*
 * Take @n units of a pool for a held part. Context: process, also with spinlocks held. Return: 0;
 * -ENOSPC: not enough is left; -EDQUOT: what is left is for others.
 */
int lite_pool_take_part(struct lite_pool *pool, struct lite_pool_part *part, u64 n)
{
	bool root = part == &pool->root;
	int err;

	spin_lock(&pool->lock);
	err = lite_pool_check(&pool->rule, pool->used, pool->by_users, part->has, root, n);
	if (!err) {
		part->has += n;
		pool->used += n;
		pool->by_users += root ? 0 : n;
	}
	spin_unlock(&pool->lock);
	return err;
}

static void lite_pool_give_locked(struct lite_pool *pool, struct lite_pool_part *part, u64 n)
{
	lockdep_assert_held(&pool->lock);
	part->has -= n;
	pool->used -= n;
	pool->by_users -= part == &pool->root ? 0 : n;
}

/* Give @n units of a held part back. Also with spinlocks held. */
void lite_pool_give_part(struct lite_pool *pool, struct lite_pool_part *part, u64 n)
{
	spin_lock(&pool->lock);
	lite_pool_give_locked(pool, part, n);
	spin_unlock(&pool->lock);
}

/* lite_pool_take_part() for a uid, with memory of @gfp; also -ENOMEM. */
int lite_pool_take(struct lite_pool *pool, u32 uid, u64 n, gfp_t gfp)
{
	struct lite_pool_part *part = lite_pool_hold(pool, uid, gfp);
	int err;

	if (!part)
		return -ENOMEM;
	err = lite_pool_take_part(pool, part, n);
	lite_pool_drop(pool, part);
	return err;
}

/* Give @n units of a uid back. Also with spinlocks held. */
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

u64 lite_pool_used(struct lite_pool *pool)
{
	u64 used;

	spin_lock(&pool->lock);
	used = pool->used;
	spin_unlock(&pool->lock);
	return used;
}
