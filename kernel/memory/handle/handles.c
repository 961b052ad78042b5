// SPDX-License-Identifier: GPL-2.0
/*
 * The handles of a context.
 *
 * A handle is made in two steps, so that nothing is made that no handle can be
 * had for: reserve (not in the table), then publish or cancel. It is looked up
 * under RCU and freed after a grace period.
 *
 * The table is a flat array, for constant-time look-ups. It grows, replaced
 * under RCU, and does not shrink.
 */
#include <linux/mm.h>
#include <linux/slab.h>

#include "memory/memory.h"
#include "ctx.h"

#define LITE_HANDLES_MIN 16

static struct lite_handle_table *lite_handles_locked(struct lite_ctx *ctx)
{
	return rcu_dereference_protected(ctx->handles,
					 lockdep_is_held(&ctx->lock));
}

/* Make sure that the table has an entry for @index. */
static int lite_handles_grow(struct lite_ctx *ctx, u32 index)
{
	struct lite_handle_table *old, *new;
	u32 n = max_t(u32, LITE_HANDLES_MIN, roundup_pow_of_two(index + 1));
	bool room;
	int err = 0;

	/* Usually it has. Avoids the lock, which may be held during calls. */
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

/* Remove a published handle from the table. */
void lite_handle_remove(struct lite_ctx *ctx, const struct lite_handle *h)
{
	u32 index = lite_handle_index(h->lh);

	RCU_INIT_POINTER(lite_handles_locked(ctx)->slot[index], NULL);
	ida_free(&ctx->numbers, index);
}

/* The next published handle; NULL: the end. @index: 0 at first. */
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

static void lite_user_release(struct kref *ref)
{
	/* Requests are filled in from it under RCU. */
	kfree_rcu(container_of(ref, struct lite_user, ref), rcu);
}

/* Drop a reference. Any context. */
void lite_user_put(struct lite_user *user)
{
	if (user)
		kref_put(&user->ref, lite_user_release);
}

/*
 * The user to open a handle as, with a reference, or NULL. It is the last
 * handle's if the credentials are equal. May sleep.
 */
static struct lite_user *lite_user_get(struct lite_ctx *ctx,
				       const struct lite_cred *cred)
{
	struct lite_user *user;

	mutex_lock(&ctx->lock);
	user = ctx->user;
	if (!user || !lite_cred_equal(&user->cred, cred)) {
		user = kmalloc(sizeof(*user), GFP_KERNEL_ACCOUNT);
		if (user) {
			kref_init(&user->ref);
			user->cred = *cred;
			lite_user_put(ctx->user);
			ctx->user = user;
		}
	}
	if (user)
		kref_get(&user->ref);
	mutex_unlock(&ctx->lock);
	return user;
}

/* Free a handle that was reserved but not published. Any process. */
void lite_handle_cancel(struct lite_ctx *ctx, struct lite_handle *h)
{
	ida_free(&ctx->numbers, lite_handle_index(h->lh));
	lite_user_put(h->user);
	kfree(h);
}

/**
 * lite_handle_reserve - reserve a number for a handle
 * @ctx: context
 * @cred: user that opens it
 *
 * Context: may sleep.
 * Return: the handle, for lite_handle_publish() or lite_handle_cancel();
 * ERR_PTR: -EMFILE: there are too many; -ENOMEM.
 */
struct lite_handle *lite_handle_reserve(struct lite_ctx *ctx,
					const struct lite_cred *cred)
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
	/* The tag tells it from earlier handles with this index. */
	h->lh = lite_handle_make(index, atomic_inc_return(&ctx->tags));
	err = lite_handles_grow(ctx, index);
	if (!err) {
		h->user = lite_user_get(ctx, cred);
		if (h->user)
			return h;
		err = -ENOMEM;
	}
	lite_handle_cancel(ctx, h);
	return ERR_PTR(err);
}

/**
 * lite_handle_publish - make a reserved handle work
 * @ctx: context
 * @h: reserved; cancelled on failure
 * @m: mapping of its LMR; the reference is consumed, also on failure. ERR_PTR:
 *	there is none, and this is why
 * @rights: LITE_RIGHT_*
 * @lh: set to its number
 *
 * Context: may sleep.
 * Return: 0; the error in @m; -ENODEV: the context was shut.
 */
int lite_handle_publish(struct lite_ctx *ctx, struct lite_handle *h,
			struct lite_mapping *m, u32 rights, u64 *lh)
{
	struct lite_handle_table *t;
	int err = 0;

	if (IS_ERR(m)) {
		lite_handle_cancel(ctx, h);
		return PTR_ERR(m);
	}
	h->rights = rights;
	RCU_INIT_POINTER(h->mapping, m);
	mutex_lock(&ctx->lock);
	if (ctx->closed) {
		err = -ENODEV;
	} else {
		*lh = h->lh;
		/* lite_handle_reserve() has made room. */
		t = lite_handles_locked(ctx);
		rcu_assign_pointer(t->slot[lite_handle_index(h->lh)], h);
		lite_stat_inc(ctx->mem->stats, LITE_STAT_HANDLES);
	}
	mutex_unlock(&ctx->lock);
	if (err) {
		lite_mapping_put(m);
		lite_handle_cancel(ctx, h);
	}
	return err;
}
