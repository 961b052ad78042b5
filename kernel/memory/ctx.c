// SPDX-License-Identifier: GPL-2.0
/*
 * Contexts: what their handles are opened, closed and entered for. (handles.c has
 * their table.)
 */
#include <linux/mm.h>
#include <linux/random.h>
#include <linux/slab.h>

#include "memory.h"

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
	/* Not that of another file either. */
	atomic_set(&ctx->tags, get_random_u32());
	kref_init(&ctx->ref);
	kref_get(&ctx->ref); /* the list's */
	mutex_init(&ctx->lock);
	ida_init(&ctx->numbers);
	spin_lock_init(&ctx->pinned_lock);
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

/**
 * lite_user_put - a handle less
 * @user: may be NULL
 *
 * Context: any.
 */
void lite_user_put(struct lite_user *user)
{
	if (user)
		kref_put(&user->ref, lite_user_release);
}

/**
 * lite_user_get - who opens a handle: mostly who has opened the one before
 * @ctx: context
 * @cred: who it is
 *
 * Context: may sleep.
 * Return: the user with a reference for a handle, or NULL.
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

/**
 * lite_ctx_put - give a reference to a context's memory back
 * @ctx: context; the last reference goes after it was shut
 *
 * Context: any.
 */
void lite_ctx_put(struct lite_ctx *ctx)
{
	kref_put(&ctx->ref, lite_ctx_release);
}

/* The handle is out of the table: what it held goes. */
static void lite_handle_free(struct lite_memory *mem, struct lite_handle *h)
{
	lite_mapping_put(rcu_dereference_protected(h->mapping, 1));
	lite_user_put(h->user);
	kfree_rcu(h, rcu);
	lite_stat_dec(mem->stats, LITE_STAT_HANDLES);
}

/**
 * lite_ctx_shut - close all handles of a context, and take no new ones; free
 * what was registered through it
 * @ctx: context; may be shut twice
 *
 * Context: may sleep; calls homes.
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
 * lite_map_id - map an LMR, when it is not being changed
 * @mem: node's
 * @home: its home
 * @id: its id there
 * @name: name that it must have; NULL: grant what there is of the rights
 * @cred: for whom
 * @rights: wanted
 * @granted: set to the rights granted; may be NULL
 *
 * Context: may sleep; killable.
 * Return: as lite_mapping_by_id(), but -EBUSY.
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

	/* The directory may be behind: then ask all homes. */
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
 * @cred: who asks
 * @name: checked
 * @rights: wanted, at least one
 * @h: reserved handle, which becomes it
 * @length: set to the LMR's bytes
 *
 * Context: may sleep; killable.
 * Return: 0 or a negative errno as LITE_IOC_MAP; then @h is still reserved.
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
	m = lite_known_find(mem, name, user, rights);
	if (!m) {
		err = lite_map_name(mem, cred, name, rights, &m);
		if (err)
			goto fail;
		lite_known_add(mem, name, user, rights, m);
	}
	*length = m->length;
	return lite_handle_publish(ctx, h, user, m, rights);
fail:
	lite_user_put(user);
	return err;
}

/**
 * lite_ctx_unmap - close a handle
 * @ctx: context
 * @lh: handle
 *
 * Context: may sleep; the last handle of an LMR calls its home.
 * Return: 0 or -EBADF.
 */
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
 * lite_ctx_share - a handle on what another context has a handle on
 * @ctx: context that gets it
 * @from: handle of the other, and the rights to have, no more and no less
 * @lh: set to the new handle
 *
 * Context: may sleep; killable.
 * Return: 0, -EBADF, -EACCES, -EMFILE, -ENOMEM, -ENODEV, -EINTR.
 */
int lite_ctx_share(struct lite_ctx *ctx, const struct lite_access *from, u64 *lh)
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
		/* Be it retired: whoever uses the new handle renews it. */
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

/**
 * lite_home_gone - a home does not know an LMR any more
 * @mem: node's
 * @home: its id
 * @incarnation: in which life it had the LMR
 *
 * Context: any.
 * Return: -EIDRM: it was freed; -ESTALE: the home lives anew.
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

/* ---- operations come in here --------------------------------------------- */

/* A handle's mapping is bound to what is over: ask the home again. */
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
	/* Before it can be used: what its user has lost is lost for good. */
	WRITE_ONCE(h->rights, h->rights & rights);
	rcu_assign_pointer(h->mapping, new);
	lite_mapping_put(old);
	return 0;
}

/**
 * lite_access_ask - make a handle usable again, unless that takes a while
 * @a: the handle
 * @stale: its mapping that was found to be of no use; only compared
 * @home: set, with -EBUSY, to what lite_mapping_await() is to be told
 * @id: likewise
 *
 * Context: may sleep; killable.
 * Return: as lite_access_renew(); -EBUSY: the LMR is being changed.
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
		/* Otherwise somebody else has renewed it. */
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
 * @stale: its mapping that was found to be of no use; only compared
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
	/* Without keeping all other handles waiting as well. */
	if (err == -EBUSY)
		err = lite_mapping_await(a->ctx->mem, home, id);
	return err;
}

/* One try; under RCU. ERR_PTR(-EAGAIN): @stale is to be renewed. */
static inline struct lite_mapping *
lite_access_try(const struct lite_access *a, const struct lite_mapping **stale)
{
	struct lite_handle *h = lite_handle_find(a->ctx, a->lh);
	struct lite_mapping *m;

	if (unlikely(!h))
		return ERR_PTR(-EBADF);
	/* Rights are set before the mapping that goes with them. */
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

/**
 * lite_access_tryenter - begin to operate on an LMR, unless that takes a while
 * @a: handle and right
 * @stale: set to what lite_access_renew() is to be told, after -EAGAIN
 *
 * For those who have in hand what others wait for. As lite_access_enter().
 *
 * Context: any process.
 * Return: the mapping, or ERR_PTR: -EBADF, -EACCES, -EAGAIN: renew, try again.
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
 * Until lite_access_exit() the LMR's memory stays; REVOKE waits for that, so
 * nothing in between may wait for user space (a page fault, say).
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

/* Entered, or an ERR_PTR: is the part within the LMR? */
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
 * lite_enter_range - enter for a part of an LMR
 * @a: handle and right
 * @offset: in the LMR, bytes
 * @length: bytes
 *
 * Between two entries the handle may have been closed, and its number may even
 * name another LMR by now: the bounds are checked each time.
 *
 * Context: may sleep; killable.
 * Return: as lite_access_enter(); -EINVAL, -ERANGE.
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

/**
 * lite_tryenter_range - enter for a part of an LMR, unless that takes a while
 * @a: handle and right
 * @offset: in the LMR, bytes
 * @length: bytes
 * @stale: set to what lite_access_renew() is to be told, after -EAGAIN
 *
 * For those who have a bounce page in hand, or are in another LMR already:
 * after -EAGAIN they give that back, and renew.
 *
 * Context: any process.
 * Return: as lite_access_tryenter(); -EINVAL, -ERANGE.
 */
struct lite_mapping *lite_tryenter_range(const struct lite_access *a,
					 u64 offset, u64 length,
					 const struct lite_mapping **stale)
{
	return lite_entered(lite_access_tryenter(a, stale), offset, length);
}

/**
 * lite_access_conn - the session to operate on a share in
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

/* The first peer of a mapping that is suspect, with a reference. */
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
		/* What is lost does not come back with its node. */
		if (m->share[i].lost)
			continue;
		peer = m->share[i].peer;
		if (peer && !lite_peer_is_suspect(peer))
			peer = NULL;
	}
	/* The mapping, which has one, is freed after a grace period. */
	if (peer)
		kref_get(&peer->ref);
	rcu_read_unlock();
	return peer;
}

/**
 * lite_access_await - an operation found a node of an LMR out of reach
 * @a: handle
 *
 * Context: may sleep; killable.
 * Return: 0: try again; -EHOSTDOWN: none of its nodes is merely suspect; -EINTR.
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
