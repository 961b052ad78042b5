// SPDX-License-Identifier: GPL-2.0
/*
 * Contexts and their handles. A handle is made in two steps, so that no LMR is made without a
 * handle for it: reserve (not in the table), then publish. It is looked up under RCU and freed
 * after a grace period. The table is a flat array, for constant-time look-ups. It grows, replaced
 * under RCU, and does not shrink.
 */
#include <linux/mm.h>
#include <linux/random.h>
#include <linux/slab.h>

#include "memory/memory.h"
#include "ctx.h"

#define LITE_HANDLES_MIN 16

/* Bytes of a handle, and of its entry in a table that has doubled. */
#define LITE_HANDLE_COST (sizeof(struct lite_handle) + 2 * sizeof(void *))

/* Handles may take 1/LITE_HANDLE_SHARE of memory; of that, 1/LITE_HANDLE_RESERVE is root's. */
#define LITE_HANDLE_SHARE 16
#define LITE_HANDLE_RESERVE 8

/*
 * Make a context without handles, with the priority of the caller's tenant, for lite_ctx_shut() and
 * then lite_ctx_put(). May sleep. Return: it; NULL: no memory.
 */
struct lite_ctx *lite_ctx_new(struct lite_memory *mem)
{
	struct lite_ctx *ctx = kzalloc(sizeof(*ctx), GFP_KERNEL_ACCOUNT);

	if (!ctx)
		return NULL;
	ctx->kept = lite_kept_new(mem);
	if (!ctx->kept) {
		kfree(ctx);
		return NULL;
	}
	ctx->mem = mem;
	ctx->prio = lite_qos_prio(mem->fab->qos) | LITE_POST_BOUND;
	/* Random, so that handles of other files are not valid here. */
	atomic_set(&ctx->tags, get_random_u32());
	refcount_set(&ctx->ref, 2); /* one for the list */
	mutex_init(&ctx->renewing);
	mutex_init(&ctx->lock);
	ida_init(&ctx->numbers);
	INIT_LIST_HEAD(&ctx->registered);
	ctx->locks = RB_ROOT;
	spin_lock(&mem->ctxs_lock);
	list_add(&ctx->list, &mem->ctxs);
	spin_unlock(&mem->ctxs_lock);
	lite_stat_inc(mem->stats, LITE_STAT_CTXS);
	return ctx;
}

void lite_user_put(struct lite_user *user)
{
	/* lite_home_request_by_handle() reads it under RCU. */
	if (user && refcount_dec_and_test(&user->ref))
		kfree_rcu(user, rcu);
}

/* Drop a reference. The context is shut before the last one is dropped. May sleep. */
void lite_ctx_put(struct lite_ctx *ctx)
{
	if (!refcount_dec_and_test(&ctx->ref))
		return;
	lite_user_put(ctx->user);
	kvfree(rcu_dereference_protected(ctx->handles, 1));
	ida_destroy(&ctx->numbers);
	kvfree(ctx->vector);
	kfree(ctx);
}

static struct lite_handle_table *lite_handles_locked(struct lite_ctx *ctx)
{
	return rcu_dereference_protected(ctx->handles, lockdep_is_held(&ctx->lock));
}

static void lite_handle_remove(struct lite_ctx *ctx, const struct lite_handle *h)
{
	u32 index = lite_handle_index(h->lh);

	RCU_INIT_POINTER(lite_handles_locked(ctx)->slot[index], NULL);
	ida_free(&ctx->numbers, index);
}

static struct lite_pool *lite_handle_pool(struct lite_memory *mem)
{
	return &mem->fab->pools[LITE_POOL_HANDLES];
}

/* Limit the handles of all files of a node: see limits.rst. */
void lite_handle_pool_init(struct lite_memory *mem)
{
	u64 limit = (u64)totalram_pages() * PAGE_SIZE / LITE_HANDLE_SHARE / LITE_HANDLE_COST;

	lite_pool_init(lite_handle_pool(mem), limit, limit / LITE_HANDLE_RESERVE);
}

static void lite_handle_free(struct lite_memory *mem, struct lite_handle *h)
{
	lite_pool_give(lite_handle_pool(mem), h->uid, 1);
	lite_mapping_put(rcu_dereference_protected(h->mapping, 1));
	lite_user_put(h->user);
	kfree_rcu(h, rcu);
	lite_stat_dec(mem->stats, LITE_STAT_HANDLES);
}

static bool lite_ctx_within_ceiling(const struct lite_ctx *ctx, u32 prio)
{
	return !prio || prio - 1 >= lite_qos_ceiling(ctx->mem->fab->qos);
}

/*
 * May the caller's operations have @prio? As with nice(2), any user may lower it, and raise it up
 * to a ceiling; CAP_SYS_NICE goes beyond. Context: process. Return: 0, -EINVAL or -EPERM.
 */
int lite_ctx_may_prio(const struct lite_ctx *ctx, u32 prio)
{
	if (prio > LITE_SCHED_CLASSES)
		return -EINVAL;
	return lite_ctx_within_ceiling(ctx, prio) || capable(CAP_SYS_NICE) ? 0 : -EPERM;
}

/* Set the default priority of operations: as lite_ctx_may_prio(), but any if @kernel. */
int lite_ctx_set_prio(struct lite_ctx *ctx, u32 prio, bool kernel)
{
	bool bound;

	if (prio > LITE_SCHED_CLASSES)
		return -EINVAL;
	bound = !kernel && lite_ctx_within_ceiling(ctx, prio);
	if (!kernel && !bound && !capable(CAP_SYS_NICE))
		return -EPERM;
	WRITE_ONCE(ctx->prio, (prio ?: lite_qos_prio(ctx->mem->fab->qos)) |
				      (bound ? LITE_POST_BOUND : 0));
	return 0;
}

/*
 * Close all handles of a context, take no new ones, and free what was registered through it. May be
 * called twice. May sleep; calls homes.
 */
void lite_ctx_shut(struct lite_ctx *ctx)
{
	struct lite_memory *mem = ctx->mem;
	struct lite_handle_table *t;
	struct lite_handle *h;
	bool first;
	u32 i;

	mutex_lock(&ctx->renewing);
	mutex_lock(&ctx->lock);
	first = !ctx->closed;
	if (first) {
		ctx->closed = true;
		t = lite_handles_locked(ctx);
		for (i = 0; t && i < t->n; i++) {
			h = rcu_dereference_protected(t->slot[i], lockdep_is_held(&ctx->lock));
			if (!h)
				continue;
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
	mutex_unlock(&ctx->renewing);
	if (!first)
		return;
	lite_ctx_unregister(ctx);
	/* No arena can be made any more. */
	lite_kept_drop(ctx->kept, true);
	lite_kept_put(ctx->kept);
	lite_ctx_put(ctx);
}

/* Grow the table to have @index. @ctx is locked. May sleep. Return: false: no memory. */
static bool lite_handles_grow(struct lite_ctx *ctx, u32 index)
{
	u32 n = max_t(u32, LITE_HANDLES_MIN, roundup_pow_of_two(index + 1));
	struct lite_handle_table *old = lite_handles_locked(ctx), *new;

	if (old && index < old->n)
		return true;
	new = kvzalloc(struct_size(new, slot, n), GFP_KERNEL_ACCOUNT);
	if (!new)
		return false;
	new->n = n;
	if (old)
		memcpy(new->slot, old->slot, old->n * sizeof(old->slot[0]));
	rcu_assign_pointer(ctx->handles, new);
	if (old)
		kvfree_rcu(old, rcu);
	return true;
}

/*
 * Get the user that opens a handle: the last handle's, if the credentials are equal. @ctx is
 * locked. May sleep. Return: the user, with a reference, or NULL.
 */
static struct lite_user *lite_user_get(struct lite_ctx *ctx, const struct lite_cred *cred)
{
	struct lite_user *user = ctx->user;

	if (!user || !lite_cred_equal(&user->cred, cred)) {
		user = kmalloc(sizeof(*user), GFP_KERNEL_ACCOUNT);
		if (user) {
			refcount_set(&user->ref, 1);
			user->cred = *cred;
			lite_user_put(ctx->user);
			ctx->user = user;
		}
	}
	if (user)
		refcount_inc(&user->ref);
	return user;
}

static void lite_handle_cancel(struct lite_ctx *ctx, struct lite_handle *h)
{
	ida_free(&ctx->numbers, lite_handle_index(h->lh));
	lite_pool_give(lite_handle_pool(ctx->mem), h->uid, 1);
	lite_user_put(h->user);
	kfree(h);
}

/*
 * Reserve a number for a handle that a user opens. May sleep. Return: the handle, for
 * lite_handle_publish(); ERR_PTR: -EMFILE: the context or the user has too many; -ENOMEM.
 */
struct lite_handle *lite_handle_reserve(struct lite_ctx *ctx, const struct lite_cred *cred)
{
	struct lite_pool *pool = lite_handle_pool(ctx->mem);
	struct lite_handle *h;
	int index;

	index = lite_pool_take(pool, cred->uid, 1, GFP_KERNEL_ACCOUNT);
	if (index)
		return ERR_PTR(index == -ENOMEM ? index : -EMFILE);
	h = kzalloc(sizeof(*h), GFP_KERNEL_ACCOUNT);
	index = h ? ida_alloc_range(&ctx->numbers, 1, ctx->mem->handle_limit, GFP_KERNEL_ACCOUNT) :
		    -ENOMEM;
	if (index < 0) {
		lite_pool_give(pool, cred->uid, 1);
		kfree(h);
		return ERR_PTR(index == -ENOSPC ? -EMFILE : index);
	}
	h->uid = cred->uid;
	/* The tag tells it from earlier handles with this index. */
	h->lh = lite_handle_make(index, atomic_inc_return(&ctx->tags));
	mutex_lock(&ctx->lock);
	if (lite_handles_grow(ctx, index))
		h->user = lite_user_get(ctx, cred);
	mutex_unlock(&ctx->lock);
	if (h->user)
		return h;
	lite_handle_cancel(ctx, h);
	return ERR_PTR(-ENOMEM);
}

/*
 * Publish a reserved handle, or cancel it on failure. @m: mapping of its LMR, with a reference that
 * is consumed, also on failure; or an ERR_PTR, with which to fail. @lh: set to the handle's number.
 * May sleep. Return: 0; the error in @m; -ENODEV: the context was shut.
 */
int lite_handle_publish(struct lite_ctx *ctx, struct lite_handle *h, struct lite_mapping *m,
			u32 rights, u64 *lh)
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

/* Close a handle. May sleep; closing the last one of an LMR calls its home. Return: 0 or -EBADF. */
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

/*
 * Open a handle in @ctx on the LMR of @from, a handle of another context, with all the rights that
 * @from names or none. @lh: set to the new handle. May sleep; killable. Return: 0, -EBADF, -EACCES,
 * -EMFILE, -ENOMEM, -ENODEV, -EINTR.
 */
int lite_ctx_share(struct lite_ctx *ctx, const struct lite_access *from, u64 *lh)
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
		/* If it is retired, the first use of the new handle renews it. */
		m = rcu_dereference_protected(old->mapping, lockdep_is_held(&from->ctx->lock));
		refcount_inc(&m->ref);
		user = old->user;
		refcount_inc(&user->ref);
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
