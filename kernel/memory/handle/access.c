// SPDX-License-Identifier: GPL-2.0
/* Entering LMRs by handle, and renewing handles. */
#include "memory/memory.h"
#include "ctx.h"

/* Retries of an operation after a peer has come back. */
#define LITE_ACCESS_BACKS 4

/* Why a home lacks an LMR. Any context. Return: -EIDRM: freed; -ESTALE: @incarnation is over. */
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

/*
 * The mapping @old of a handle with @had rights is unusable: retire it and map the LMR again. The
 * caller has a reference to @old, and serialises renewals; the handle may be closed meanwhile.
 */
static int lite_handle_renew(struct lite_ctx *ctx, u64 lh, struct lite_mapping *old,
			     const struct lite_user *user, u32 had)
{
	struct lite_memory *mem = ctx->mem;
	struct lite_mapping *new;
	struct lite_handle *h;
	u32 rights;
	int err;

	lite_mapping_retire(old);
	if (READ_ONCE(old->state) == LITE_MAPPING_REVOKED)
		return -EIDRM;
	new = lite_mapping_by_id(mem, old->home, old->id, NULL, &user->cred, had, &rights);
	err = PTR_ERR_OR_ZERO(new);
	if (!err && new->home_incarnation != old->home_incarnation) {
		lite_mapping_put(new);
		err = -ESTALE;
	}
	if (err == -ENOENT)
		err = lite_home_gone(mem, old->home, old->home_incarnation);
	if (err)
		return err;
	lite_made_use(new, &old->made);
	mutex_lock(&ctx->lock);
	h = lite_handle_find(ctx, lh);
	if (h) {
		/* Before @new can be used. Rights that are lost once stay lost. */
		WRITE_ONCE(h->rights, had & rights);
		rcu_assign_pointer(h->mapping, new);
	}
	mutex_unlock(&ctx->lock);
	lite_mapping_put(h ? old : new);
	return h ? 0 : -EBADF;
}

/* As lite_access_renew(), but -EBUSY, with @home and @id set, if the LMR is being changed. */
int lite_access_ask(const struct lite_access *a, const struct lite_mapping *stale, u32 *home,
		    u64 *id)
{
	struct lite_ctx *ctx = a->ctx;
	struct lite_mapping *m = NULL;
	struct lite_user *user;
	struct lite_handle *h;
	int err = -EBADF;
	u32 rights;

	if (mutex_lock_killable(&ctx->renewing))
		return -EINTR;
	mutex_lock(&ctx->lock);
	h = lite_handle_find(ctx, a->lh);
	if (h) {
		m = rcu_dereference_protected(h->mapping, lockdep_is_held(&ctx->lock));
		refcount_inc(&m->ref);
		user = h->user;
		refcount_inc(&user->ref);
		rights = h->rights;
	}
	mutex_unlock(&ctx->lock);
	if (m) {
		*home = m->home;
		*id = m->id;
		/* Otherwise another thread has renewed it. */
		err = m == stale ? lite_cluster_ready(ctx->mem->cl) : 0;
		if (m == stale && !err)
			err = lite_handle_renew(ctx, a->lh, m, user, rights);
		lite_mapping_put(m);
		lite_user_put(user);
	}
	mutex_unlock(&ctx->renewing);
	return err;
}

/*
 * Make a handle usable again. @stale: its unusable mapping; only compared. May sleep; killable.
 * Return: 0: try again; -EBADF, -EIDRM, -ESTALE, -EHOSTDOWN, -EINTR, -LITE_EPUTOFF and others.
 */
int lite_access_renew(const struct lite_access *a, const struct lite_mapping *stale)
{
	u32 home;
	u64 id;
	int err;

	if (a->task)
		return -LITE_EPUTOFF;
	err = lite_access_ask(a, stale, &home, &id);
	/* Wait without ctx->renewing, which all other handles need. */
	if (err == -EBUSY)
		err = lite_mapping_await(a->ctx->mem, home, id);
	return err;
}

/* Try to enter, under RCU. Return: ERR_PTR(-EAGAIN): @stale is set, and has to be renewed. */
static inline struct lite_mapping *lite_access_try(const struct lite_access *a,
						   const struct lite_mapping **stale)
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
	if (likely(lite_ops_tryget(m))) {
		if (likely(lite_mapping_current(m)))
			return m;
		lite_ops_put(m);
	}
	*stale = m;
	return ERR_PTR(-EAGAIN);
}

/*
 * lite_access_enter() without blocking, for callers that hold what others wait for. Any process.
 * Return: ERR_PTR: -EBADF, -EACCES; -EAGAIN: try again after lite_access_renew() with @stale.
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

/*
 * Begin to operate on an LMR. Its memory stays until lite_access_exit(). A REVOKE waits for that,
 * so the caller must not wait for user space (a page fault, say) before it. May sleep; killable.
 * Return: the mapping; ERR_PTR: -EBADF, -EACCES, -EIDRM, -ESTALE, -EHOSTDOWN, -EINTR and others.
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

/*
 * Begin to operate on a range of an LMR, from its byte @at on. If it is unpinned, the mapping is
 * that of the chunk that has the byte, and its extents end with the chunk. Context: any process.
 * Return: as lite_access_tryenter(); -EINVAL, -ERANGE. -EAGAIN: call lite_range_renew() with
 * @stale.
 */
struct lite_mapping *lite_tryenter_at(const struct lite_access *a, u64 offset, u64 length, u64 at,
				      const struct lite_mapping **stale)
{
	struct lite_mapping *m, *chunk;
	int err;

	rcu_read_lock();
	m = lite_access_try(a, stale);
	rcu_read_unlock();
	if (IS_ERR(m))
		return m;
	err = lite_bounds_check(offset, length, m->length);
	if (likely(!err && !m->chunked))
		return m;
	if (!err && at >= m->length)
		err = -ERANGE;
	chunk = err ? ERR_PTR(err) : lite_chunk_enter(m, at, a->right & ~LITE_RIGHT_READ);
	*stale = m;
	lite_access_exit(m);
	return chunk;
}

/*
 * Make a byte of an LMR accessible again: calls lite_access_renew(), unless only a chunk of an
 * unpinned LMR is missing. @at: offset of the byte; was in bounds. @stale: mapping that
 * lite_tryenter_at() found unusable; only compared. @until: 0 at first, after progress and with a
 * new mapping; set to the jiffies by which there must be progress. May sleep; killable; nothing is
 * entered. Return: as lite_access_renew(); -EFAULT: the process that registered the memory has none
 * there, or none that can be written; -ETIMEDOUT: it has been changing its memory there for the
 * time-out of an operation; and others of LITE_CALL_LMR_CHUNK.
 */
int lite_range_renew(const struct lite_access *a, u64 at, const struct lite_mapping *stale,
		     unsigned long *until)
{
	unsigned long timeout = a->ctx->mem->fab->op_timeout, now = jiffies;
	struct lite_mapping *m;
	struct lite_handle *h;
	int err;

	if (a->task)
		return -LITE_EPUTOFF;
	rcu_read_lock();
	h = lite_handle_find(a->ctx, a->lh);
	m = h ? rcu_dereference(h->mapping) : NULL;
	if (m && !(m->chunked && READ_ONCE(m->state) == LITE_MAPPING_ACTIVE &&
		   lite_mapping_current(m) && refcount_inc_not_zero(&m->ref)))
		m = NULL;
	rcu_read_unlock();
	if (!m) {
		/* A new mapping, of a new session for instance, is a new start. */
		*until = 0;
		return lite_access_renew(a, stale);
	}
	if (!*until)
		*until = (now + timeout) | 1;
	/* Each pause is longer: a quarter of the time waited so far. */
	err = time_after(now, *until) ?
		      -ETIMEDOUT :
		      lite_chunk_reach(m, at, a->right & ~LITE_RIGHT_READ, stale,
				       clamp((long)(now + timeout - *until) / 4, 1L, HZ / 10L));
	/* The LMR was freed or is being changed, or the session is over. */
	if (err == -ENOENT)
		err = lite_access_renew(a, m);
	lite_mapping_put(m);
	return err;
}

/*
 * The first suspect node of a handle's LMR, with a reference. If NULL, @back tells whether a node
 * is up in another session than that of the mapping.
 */
static struct lite_peer *lite_access_suspect(const struct lite_access *a, bool *back)
{
	const struct lite_map_share *s;
	struct lite_peer *peer = NULL;
	struct lite_mapping *m;
	struct lite_handle *h;
	u64 session;
	u32 i;

	*back = false;
	rcu_read_lock();
	h = lite_handle_find(a->ctx, a->lh);
	m = h ? rcu_dereference(h->mapping) : NULL;
	for (i = 0; m && i < m->n_shares && !peer; i++) {
		s = &m->share[i];
		/* Lost memory does not come back with its node. */
		if (!s->peer || s->lost)
			continue;
		if (lite_peer_is_suspect(s->peer))
			peer = s->peer;
		session = lite_peer_session(s->peer);
		*back |= session && session != s->session;
	}
	/* The mapping has a reference to it, and is freed after a grace period. */
	if (peer)
		refcount_inc(&peer->ref);
	rcu_read_unlock();
	return peer;
}

/*
 * Wait for a suspect node of an LMR. If one has just come back, try again, but only a few times: a
 * node that leaves answers -EHOSTDOWN in its session. @backs counts these tries, from 0; NULL: do
 * not try again. May sleep; killable. Return: 0: try again; -EHOSTDOWN: it is down, or there is
 * none; -EINTR; -LITE_EPUTOFF.
 */
int lite_access_await(const struct lite_access *a, int *backs)
{
	struct lite_peer *peer;
	bool back;
	int err;

	if (a->task)
		return -LITE_EPUTOFF;
	peer = lite_access_suspect(a, &back);
	if (!peer)
		return back && backs && ++*backs < LITE_ACCESS_BACKS ? 0 : -EHOSTDOWN;
	err = lite_peer_await(peer);
	lite_peer_put(peer);
	return err;
}

/* lite_access_enter(), but waits for suspect nodes of the LMR. */
struct lite_mapping *lite_access_enter_patiently(const struct lite_access *a)
{
	struct lite_mapping *m;
	int err, backs = 0;

	do {
		m = lite_access_enter(a);
		if (m != ERR_PTR(-EHOSTDOWN))
			return m;
		err = lite_access_await(a, &backs);
	} while (!err);
	return ERR_PTR(err);
}
