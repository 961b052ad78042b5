// SPDX-License-Identifier: GPL-2.0
/*
 * The handles of a context.
 *
 * A handle is made in two steps, so that its number can be given to the user
 * before it works: reserve (an entry that nobody finds), then publish, or
 * cancel. It is looked up under RCU and freed after a grace period.
 *
 * The table is flat: to find one of a hundred thousand takes what it takes to find
 * one of ten. It grows, by being replaced under RCU, and does not shrink.
 */
#include <linux/mm.h>
#include <linux/slab.h>

#include "memory.h"

#define LITE_HANDLES_MIN 16

static struct lite_handle_table *lite_handles_locked(struct lite_ctx *ctx)
{
	return rcu_dereference_protected(ctx->handles,
					 lockdep_is_held(&ctx->lock));
}

/* See to it that there is an entry for @index. */
static int lite_handles_grow(struct lite_ctx *ctx, u32 index)
{
	struct lite_handle_table *old, *new;
	u32 n = max_t(u32, LITE_HANDLES_MIN, roundup_pow_of_two(index + 1));
	bool room;
	int err = 0;

	/* Mostly there is, and the lock may be held while a home is asked. */
	rcu_read_lock();
	old = rcu_dereference(ctx->handles);
	room = old && index < old->n;
	rcu_read_unlock();
	if (room)
		return 0;
	mutex_lock(&ctx->lock);
	old = lite_handles_locked(ctx);
	if (old && index < old->n)
		goto out;
	new = kvzalloc(struct_size(new, slot, n), GFP_KERNEL_ACCOUNT);
	if (!new) {
		err = -ENOMEM;
		goto out;
	}
	new->n = n;
	if (old)
		memcpy(new->slot, old->slot, old->n * sizeof(old->slot[0]));
	rcu_assign_pointer(ctx->handles, new);
	if (old)
		kvfree_rcu(old, rcu);
out:
	mutex_unlock(&ctx->lock);
	return err;
}

/**
 * lite_handle_remove - nobody finds a handle any more
 * @ctx: context, locked
 * @h: published
 */
void lite_handle_remove(struct lite_ctx *ctx, const struct lite_handle *h)
{
	u32 index = lite_handle_index(h->lh);

	RCU_INIT_POINTER(lite_handles_locked(ctx)->slot[index], NULL);
	ida_free(&ctx->numbers, index);
}

/**
 * lite_handle_next - one handle after the other
 * @ctx: context, locked
 * @index: 0 at first
 *
 * Return: a published handle, or NULL: there are no more.
 */
struct lite_handle *lite_handle_next(struct lite_ctx *ctx, u32 *index)
{
	struct lite_handle_table *t = lite_handles_locked(ctx);
	struct lite_handle *h;

	while (t && *index < t->n) {
		h = rcu_dereference_protected(t->slot[(*index)++],
					      lockdep_is_held(&ctx->lock));
		if (h)
			return h;
	}
	return NULL;
}

/**
 * lite_handle_reserve - a number for a handle to be
 * @ctx: context
 *
 * Context: may sleep.
 * Return: the handle, for lite_ctx_create(), lite_ctx_map() or
 * lite_handle_cancel(); -EMFILE: there are too many; -ENOMEM.
 */
struct lite_handle *lite_handle_reserve(struct lite_ctx *ctx)
{
	struct lite_handle *h = kzalloc(sizeof(*h), GFP_KERNEL_ACCOUNT);
	int index, err;

	if (!h)
		return ERR_PTR(-ENOMEM);
	index = ida_alloc_range(&ctx->numbers, 1, ctx->mem->handle_limit,
				GFP_KERNEL);
	if (index < 0) {
		kfree(h);
		return ERR_PTR(index == -ENOSPC ? -EMFILE : index);
	}
	err = lite_handles_grow(ctx, index);
	if (err) {
		ida_free(&ctx->numbers, index);
		kfree(h);
		return ERR_PTR(err);
	}
	/* Not the number of any handle before it, for very long. */
	h->lh = lite_handle_make(index, atomic_inc_return(&ctx->tags));
	return h;
}

/**
 * lite_handle_cancel - give a reserved handle up
 * @ctx: context
 * @h: reserved, not published
 *
 * Context: any process.
 */
void lite_handle_cancel(struct lite_ctx *ctx, struct lite_handle *h)
{
	ida_free(&ctx->numbers, lite_handle_index(h->lh));
	kfree(h);
}

/**
 * lite_handle_publish - from here on the handle works
 * @ctx: context
 * @h: reserved
 * @user: who opened it; the reference is taken over, come what may
 * @m: what it is a handle of; likewise
 * @rights: LITE_RIGHT_*
 *
 * Context: may sleep.
 * Return: 0, or -ENODEV: the context was shut; then @h is still reserved.
 */
int lite_handle_publish(struct lite_ctx *ctx, struct lite_handle *h,
			struct lite_user *user, struct lite_mapping *m,
			u32 rights)
{
	struct lite_handle_table *t;
	int err = 0;

	h->rights = rights;
	h->user = user;
	RCU_INIT_POINTER(h->mapping, m);
	mutex_lock(&ctx->lock);
	if (ctx->closed)
		err = -ENODEV;
	if (!err) {
		/* There has been room since it was reserved. */
		t = lite_handles_locked(ctx);
		rcu_assign_pointer(t->slot[lite_handle_index(h->lh)], h);
		lite_stat_inc(ctx->mem->stats, LITE_STAT_HANDLES);
	}
	mutex_unlock(&ctx->lock);
	if (err) {
		lite_mapping_put(m);
		lite_user_put(user);
	}
	return err;
}
