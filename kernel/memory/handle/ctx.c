// SPDX-License-Identifier: GPL-2.0
/* Contexts: opening, closing, renewing and entering handles. */
#include <linux/mm.h>
#include <linux/random.h>
#include <linux/slab.h>

#include "memory/memory.h"
#include "memory/store/pinned.h"
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
struct lite_user *lite_user_get(struct lite_ctx *ctx,
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

/**
 * lite_map_id - map an LMR, waiting while it is being changed
 * @mem: node's
 * @home: its home
 * @id: its id there
 * @name: name that it must have; NULL: any, and grant what the user has of
 *	@rights
 * @cred: user to map it for
 * @rights: LITE_RIGHT_* wanted
 * @granted: set to the rights granted if @name is NULL; may be NULL
 *
 * Context: may sleep; killable.
 * Return: see lite_mapping_by_id(), but never -EBUSY.
 */
struct lite_mapping *lite_map_id(struct lite_memory *mem, u32 home, u64 id,
				 const char *name, const struct lite_cred *cred,
				 u32 rights, u32 *granted)
{
	struct lite_mapping *m;
	int err;

	for (;;) {
		m = name ? lite_mapping_by_name(mem, home, id, name, cred,
						rights) :
			   lite_mapping_by_id(mem, home, id, cred, rights, true,
					      granted);
		if (m != ERR_PTR(-EBUSY))
			return m;
		err = lite_mapping_await(mem, home, id);
		if (err)
			return ERR_PTR(err);
	}
}

static int lite_map_name(struct lite_memory *mem, const struct lite_cred *cred,
			 const char *name, u32 rights, struct lite_mapping **m)
{
	bool ask_all = false;
	u32 home;
	u64 id;
	int err;

	/* The directory may be stale: then ask all homes. */
	do {
		err = lite_name_lookup(mem, name, ask_all, &home, &id);
		if (err)
			return err;
		*m = lite_map_id(mem, home, id, name, cred, rights, NULL);
		err = PTR_ERR_OR_ZERO(*m);
		ask_all = !ask_all;
	} while (ask_all && (err == -ENOENT || err == -EHOSTUNREACH));
	return err == -EHOSTUNREACH ? -ENOENT : err;
}

/**
 * lite_ctx_map - open an LMR by name
 * @ctx: context
 * @cred: user that asks
 * @name: checked
 * @rights: LITE_RIGHT_* wanted, at least one
 * @h: reserved handle to publish
 * @length: set to the LMR's bytes
 *
 * Context: may sleep; killable.
 * Return: 0 or a negative errno, see LITE_IOC_MAP; then @h is still reserved.
 */
int lite_ctx_map(struct lite_ctx *ctx, const struct lite_cred *cred,
		 const char *name, u32 rights, struct lite_handle *h,
		 u64 *length)
{
	struct lite_memory *mem = ctx->mem;
	struct lite_mapping *m;
	struct lite_user *user;
	int err;

	if (!rights)
		return -EINVAL;
	if (rights & ~LITE_RIGHTS_ALL)
		return -EOPNOTSUPP;
	user = lite_user_get(ctx, cred);
	if (!user)
		return -ENOMEM;
	err = lite_cluster_ready(mem->cl);
	if (err)
		goto fail;
	m = lite_name_cache_find(mem, name, user, rights);
	if (!m) {
		err = lite_map_name(mem, cred, name, rights, &m);
		if (err)
			goto fail;
		lite_name_cache_add(mem, name, user, rights, m);
	}
	*length = m->length;
	return lite_handle_publish(ctx, h, user, m, rights);
fail:
	lite_user_put(user);
	return err;
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
	struct lite_handle *h = lite_handle_reserve(ctx), *old;
	struct lite_mapping *m = NULL;
	struct lite_user *user = NULL;
	int err = 0;

	if (IS_ERR(h))
		return PTR_ERR(h);
	*lh = h->lh;
	if (mutex_lock_killable(&from->ctx->lock)) {
		err = -EINTR;
		goto err_cancel;
	}
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
	if (!err)
		err = lite_handle_publish(ctx, h, user, m, from->right);
	if (!err)
		return 0;
err_cancel:
	lite_handle_cancel(ctx, h);
	return err;
}

/*
 * Why a home does not know an LMR of its @incarnation: -EIDRM: it was freed;
 * -ESTALE: the home has a new incarnation. Any context.
 */
int lite_home_gone(struct lite_memory *mem, u32 home, u64 incarnation)
{
	struct lite_peer *peer = lite_peer_find(mem->cl, home);
	int err = -EIDRM;

	if (peer && peer->incarnation != incarnation)
		err = -ESTALE;
	if (peer)
		lite_peer_put(peer);
	return err;
}

/* ---- entering ------------------------------------------------------------ */

/* The handle's mapping is unusable: retire it and map the LMR again. */
static int lite_handle_renew(struct lite_ctx *ctx, struct lite_handle *h,
			     struct lite_mapping *old)
{
	struct lite_memory *mem = ctx->mem;
	struct lite_mapping *new;
	u32 rights;
	int err;

	lite_mapping_retire(old);
	if (READ_ONCE(old->state) == LITE_MAPPING_REVOKED)
		return -EIDRM;
	new = lite_mapping_by_id(mem, old->home, old->id, &h->user->cred,
				 h->rights, true, &rights);
	err = PTR_ERR_OR_ZERO(new);
	if (!err && new->home_incarnation != old->home_incarnation) {
		lite_mapping_put(new);
		err = -ESTALE;
	}
	if (err == -ENOENT)
		err = lite_home_gone(mem, old->home, old->home_incarnation);
	if (err)
		return err;
	lite_made_inherit(new, old);
	/* Before @new can be used. Rights that are lost once stay lost. */
	WRITE_ONCE(h->rights, h->rights & rights);
	rcu_assign_pointer(h->mapping, new);
	lite_mapping_put(old);
	return 0;
}

/**
 * lite_access_ask - renew a handle, without waiting for a change to end
 * @a: the handle
 * @stale: its mapping that was found to be unusable; only compared
 * @home: set, with -EBUSY, to what to pass to lite_mapping_await()
 * @id: see @home
 *
 * Context: may sleep; killable.
 * Return: see lite_access_renew(); -EBUSY: the LMR is being changed.
 */
int lite_access_ask(const struct lite_access *a,
		    const struct lite_mapping *stale, u32 *home, u64 *id)
{
	struct lite_ctx *ctx = a->ctx;
	struct lite_mapping *m;
	struct lite_handle *h;
	int err = 0;

	if (mutex_lock_killable(&ctx->lock))
		return -EINTR;
	h = lite_handle_find(ctx, a->lh);
	if (!h) {
		err = -EBADF;
	} else {
		m = rcu_dereference_protected(h->mapping,
					      lockdep_is_held(&ctx->lock));
		*home = m->home;
		*id = m->id;
		/* Otherwise another thread has renewed it. */
		if (m == stale)
			err = lite_cluster_ready(ctx->mem->cl) ?:
			      lite_handle_renew(ctx, h, m);
	}
	mutex_unlock(&ctx->lock);
	return err;
}

/**
 * lite_access_renew - make a handle usable again
 * @a: the handle
 * @stale: its mapping that was found to be unusable; only compared
 *
 * Context: may sleep; killable.
 * Return: 0: try again; -EBADF, -EIDRM, -ESTALE, -EHOSTDOWN, -EINTR and others.
 */
int lite_access_renew(const struct lite_access *a,
		      const struct lite_mapping *stale)
{
	u32 home;
	u64 id;
	int err;

	err = lite_access_ask(a, stale, &home, &id);
	/* Without ctx->lock, which all other handles need. */
	if (err == -EBUSY)
		err = lite_mapping_await(a->ctx->mem, home, id);
	return err;
}

/* Try to enter, under RCU. -EAGAIN: @stale is set and has to be renewed. */
static inline struct lite_mapping *
lite_access_try(const struct lite_access *a, const struct lite_mapping **stale)
{
	struct lite_handle *h = lite_handle_find(a->ctx, a->lh);
	struct lite_mapping *m;

	if (unlikely(!h))
		return ERR_PTR(-EBADF);
	/* Rights are set before the mapping they belong to. */
	m = rcu_dereference(h->mapping);
	smp_rmb(); /* with lite_handle_renew() */
	if (unlikely(a->right & ~READ_ONCE(h->rights)))
		return ERR_PTR(-EACCES);
	if (likely(percpu_ref_tryget_live_rcu(&m->ops))) {
		if (likely(lite_mapping_current(m)))
			return m;
		percpu_ref_put(&m->ops);
	}
	*stale = m;
	return ERR_PTR(-EAGAIN);
}

/*
 * lite_access_enter() without blocking, for callers that hold what others wait
 * for. ERR_PTR: -EBADF, -EACCES; -EAGAIN: pass @stale to lite_access_renew(),
 * and try again. Any process.
 */
struct lite_mapping *lite_access_tryenter(const struct lite_access *a,
					  const struct lite_mapping **stale)
{
	struct lite_mapping *m;

	rcu_read_lock();
	m = lite_access_try(a, stale);
	rcu_read_unlock();
	return m;
}

/**
 * lite_access_enter - begin to operate on an LMR
 * @a: handle and right
 *
 * The LMR's memory stays until lite_access_exit(). REVOKE waits for that, so
 * the caller must not wait for user space (a page fault, say) in between.
 *
 * Context: may sleep; killable.
 * Return: the mapping, or ERR_PTR: -EBADF, -EACCES, -EIDRM, -ESTALE,
 * -EHOSTDOWN, -EINTR and others.
 */
struct lite_mapping *lite_access_enter(const struct lite_access *a)
{
	const struct lite_mapping *stale;
	struct lite_mapping *m;
	int err;

	for (;;) {
		m = lite_access_tryenter(a, &stale);
		if (m != ERR_PTR(-EAGAIN))
			return m;
		err = lite_access_renew(a, stale);
		if (err)
			return ERR_PTR(err);
	}
}

/* Check the bounds of a range; on failure, leave the LMR. */
static inline struct lite_mapping *lite_entered(struct lite_mapping *m,
						u64 offset, u64 length)
{
	int err;

	if (IS_ERR(m))
		return m;
	err = lite_bounds_check(offset, length, m->length);
	if (!err)
		return m;
	lite_access_exit(m);
	return ERR_PTR(err);
}

/**
 * lite_enter_range - begin to operate on a range of an LMR
 * @a: handle and right
 * @offset: in the LMR, bytes
 * @length: bytes
 *
 * Bounds are checked at each entry: handle and LMR may have changed in between.
 *
 * Context: may sleep; killable.
 * Return: see lite_access_enter(); -EINVAL, -ERANGE.
 */
struct lite_mapping *lite_enter_range(const struct lite_access *a, u64 offset,
				      u64 length)
{
	const struct lite_mapping *stale;
	struct lite_mapping *m;

	rcu_read_lock();
	m = lite_access_try(a, &stale);
	rcu_read_unlock();
	if (unlikely(m == ERR_PTR(-EAGAIN)))
		m = lite_access_enter(a);
	return lite_entered(m, offset, length);
}

/*
 * lite_enter_range() without blocking: -EAGAIN sets @stale. For callers that
 * hold a bounce page or have entered another LMR; they release that, and then
 * renew.
 */
struct lite_mapping *lite_tryenter_range(const struct lite_access *a,
					 u64 offset, u64 length,
					 const struct lite_mapping **stale)
{
	return lite_entered(lite_access_tryenter(a, stale), offset, length);
}

/**
 * lite_access_conn - the session in which to operate on a share
 * @m: mapping, entered
 * @share: of another node
 *
 * Context: any.
 * Return: its connection, held live; ERR_PTR: -EHOSTDOWN; -ESTALE: the node has
 * lost the memory; -EAGAIN: renew the handle, there is a newer session.
 */
struct lite_conn *lite_access_conn(struct lite_mapping *m, u32 share)
{
	struct lite_map_share *s = &m->share[share];
	struct lite_conn *conn = NULL;

	if (s->lost)
		return ERR_PTR(-ESTALE);
	if (s->session)
		conn = lite_peer_conn_tryget(s->peer, s->session);
	if (conn)
		return conn;
	return ERR_PTR(rcu_access_pointer(s->peer->conn) ? -EAGAIN :
							   -EHOSTDOWN);
}

/* The first suspect node of a handle's LMR, with a reference, or NULL. */
static struct lite_peer *lite_access_suspect(const struct lite_access *a)
{
	struct lite_peer *peer = NULL;
	struct lite_mapping *m;
	struct lite_handle *h;
	u32 i;

	rcu_read_lock();
	h = lite_handle_find(a->ctx, a->lh);
	m = h ? rcu_dereference(h->mapping) : NULL;
	for (i = 0; m && i < m->n_shares && !peer; i++) {
		/* Lost memory does not come back with its node. */
		if (m->share[i].lost)
			continue;
		peer = m->share[i].peer;
		if (peer && !lite_peer_is_suspect(peer))
			peer = NULL;
	}
	/* Safe: @m holds a reference, and is freed after a grace period. */
	if (peer)
		kref_get(&peer->ref);
	rcu_read_unlock();
	return peer;
}

/*
 * Wait for a suspect node of an LMR. 0: try again; -EHOSTDOWN: it is down, or
 * there is none; -EINTR. May sleep; killable.
 */
int lite_access_await(const struct lite_access *a)
{
	struct lite_peer *peer = lite_access_suspect(a);
	int err;

	if (!peer)
		return -EHOSTDOWN;
	err = lite_peer_await(peer);
	lite_peer_put(peer);
	return err;
}
