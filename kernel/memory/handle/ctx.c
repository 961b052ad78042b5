// SPDX-License-Identifier: GPL-2.0
/* Contexts: making, shutting; opening and closing their handles. */
#include <linux/mm.h>
#include <linux/random.h>
#include <linux/slab.h>

#include "memory/memory.h"
#include "memory/store/store.h"
#include "ctx.h"

/**
 * lite_ctx_new - make a context without handles
 * @mem: node's
 * @owner: for the layer above
 *
 * Context: may sleep.
 * Return: the context, for lite_ctx_shut() and then lite_ctx_put(), or NULL.
 */
struct lite_ctx *lite_ctx_new(struct lite_memory *mem, void *owner)
{
	struct lite_ctx *ctx = kzalloc(sizeof(*ctx), GFP_KERNEL_ACCOUNT);

	if (!ctx)
		return NULL;
	ctx->mem = mem;
	ctx->owner = owner;
	/* Random, so that handles of other files are not valid here. */
	atomic_set(&ctx->tags, get_random_u32());
	kref_init(&ctx->ref);
	kref_get(&ctx->ref); /* for the list */
	mutex_init(&ctx->lock);
	ida_init(&ctx->numbers);
	INIT_LIST_HEAD(&ctx->pinned);
	ctx->locks = RB_ROOT;
	spin_lock(&mem->ctxs_lock);
	list_add(&ctx->list, &mem->ctxs);
	spin_unlock(&mem->ctxs_lock);
	lite_stat_inc(mem->stats, LITE_STAT_CTXS);
	return ctx;
}

static void lite_ctx_release(struct kref *ref)
{
	struct lite_ctx *ctx = container_of(ref, struct lite_ctx, ref);

	lite_user_put(ctx->user);
	kvfree(rcu_dereference_protected(ctx->handles, 1));
	ida_destroy(&ctx->numbers);
	kvfree(ctx->vector);
	kfree(ctx);
}

/* Drop a reference. The context is shut before the last. Any context. */
void lite_ctx_put(struct lite_ctx *ctx)
{
	kref_put(&ctx->ref, lite_ctx_release);
}

/* Release a handle that has been removed from the table. */
static void lite_handle_free(struct lite_memory *mem, struct lite_handle *h)
{
	lite_mapping_put(rcu_dereference_protected(h->mapping, 1));
	lite_user_put(h->user);
	kfree_rcu(h, rcu);
	lite_stat_dec(mem->stats, LITE_STAT_HANDLES);
}

/*
 * Close all handles of a context, take no new ones, and free what was
 * registered through it. May be called twice. May sleep; calls homes.
 */
void lite_ctx_shut(struct lite_ctx *ctx)
{
	struct lite_memory *mem = ctx->mem;
	struct lite_handle *h;
	u32 index = 0;
	bool first;

	mutex_lock(&ctx->lock);
	first = !ctx->closed;
	if (first) {
		ctx->closed = true;
		while ((h = lite_handle_next(ctx, &index))) {
			lite_handle_remove(ctx, h);
			lite_handle_free(mem, h);
			cond_resched();
		}
		spin_lock(&mem->ctxs_lock);
		list_del_init(&ctx->list);
		spin_unlock(&mem->ctxs_lock);
		lite_stat_dec(mem->stats, LITE_STAT_CTXS);
	}
	mutex_unlock(&ctx->lock);
	if (!first)
		return;
	lite_ctx_unregister(ctx);
	lite_ctx_put(ctx);
}

/* lite_mapping_by_id(), but waits while the LMR is being changed. */
struct lite_mapping *lite_map_id(struct lite_memory *mem, u32 home, u64 id,
				 const char *name, const struct lite_cred *cred,
				 u32 rights, u32 *granted)
{
	struct lite_mapping *m;
	int err;

	for (;;) {
		m = lite_mapping_by_id(mem, home, id, name, cred, rights,
				       granted);
		if (m != ERR_PTR(-EBUSY))
			return m;
		err = lite_mapping_await(mem, home, id);
		if (err)
			return ERR_PTR(err);
	}
}

/* Map an LMR by name: as the cache of names knows it, or by asking. */
static struct lite_mapping *lite_map_name(struct lite_memory *mem,
					  const char *name,
					  struct lite_user *user, u32 rights)
{
	struct lite_name_search at = { .name = name };
	struct lite_mapping *m = NULL;
	int err = lite_cluster_ready(mem->cl);

	if (err)
		return ERR_PTR(err);
	m = lite_name_cache_find(mem, name, user, rights);
	if (m)
		return m;
	while (lite_name_search(mem, &at)) {
		m = lite_map_id(mem, at.home, at.id, name, &user->cred, rights,
				NULL);
		at.err = PTR_ERR_OR_ZERO(m);
	}
	if (at.err)
		return ERR_PTR(at.err);
	lite_name_cache_add(mem, name, user, rights, m);
	return m;
}

/**
 * lite_ctx_map - open an LMR by name
 * @ctx: context
 * @cred: user that asks
 * @name: checked
 * @rights: LITE_RIGHT_* wanted, at least one
 * @lh: set to the handle
 * @length: set to the LMR's bytes
 *
 * Context: may sleep; killable.
 * Return: 0 or a negative errno, see LITE_IOC_MAP.
 */
int lite_ctx_map(struct lite_ctx *ctx, const struct lite_cred *cred,
		 const char *name, u32 rights, u64 *lh, u64 *length)
{
	struct lite_mapping *m;
	struct lite_handle *h;

	if (!rights)
		return -EINVAL;
	if (rights & ~LITE_RIGHTS_ALL)
		return -EOPNOTSUPP;
	h = lite_handle_reserve(ctx, cred);
	if (IS_ERR(h))
		return PTR_ERR(h);
	m = lite_map_name(ctx->mem, name, h->user, rights);
	if (!IS_ERR(m))
		*length = m->length;
	return lite_handle_publish(ctx, h, m, rights, lh);
}

/* Close a handle. 0 or -EBADF. May sleep; the last of an LMR calls its home. */
int lite_ctx_unmap(struct lite_ctx *ctx, u64 lh)
{
	struct lite_handle *h;

	mutex_lock(&ctx->lock);
	h = lite_handle_find(ctx, lh);
	if (h)
		lite_handle_remove(ctx, h);
	mutex_unlock(&ctx->lock);
	if (!h)
		return -EBADF;
	lite_handle_free(ctx->mem, h);
	return 0;
}

/**
 * lite_ctx_share - open a handle on the LMR of another context's handle
 * @ctx: context that gets it
 * @from: the other context's handle, and the rights to have, all or none
 * @lh: set to the new handle
 *
 * Context: may sleep; killable.
 * Return: 0, -EBADF, -EACCES, -EMFILE, -ENOMEM, -ENODEV, -EINTR.
 */
int lite_ctx_share(struct lite_ctx *ctx, const struct lite_access *from,
		   u64 *lh)
{
	struct lite_mapping *m = NULL;
	struct lite_handle *h, *old;
	struct lite_user *user;
	int err = 0;

	if (mutex_lock_killable(&from->ctx->lock))
		return -EINTR;
	old = lite_handle_find(from->ctx, from->lh);
	if (!old) {
		err = -EBADF;
	} else if (from->right & ~old->rights) {
		err = -EACCES;
	} else {
		/* If retired, the new handle's first use renews it. */
		m = rcu_dereference_protected(
			old->mapping, lockdep_is_held(&from->ctx->lock));
		kref_get(&m->ref);
		user = old->user;
		kref_get(&user->ref);
	}
	mutex_unlock(&from->ctx->lock);
	if (err)
		return err;
	h = lite_handle_reserve(ctx, &user->cred);
	lite_user_put(user);
	if (!IS_ERR(h))
		return lite_handle_publish(ctx, h, m, from->right, lh);
	lite_mapping_put(m);
	return PTR_ERR(h);
}
