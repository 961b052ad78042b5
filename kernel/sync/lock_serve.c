// SPDX-License-Identifier: GPL-2.0
/*
 * Requests from takers to the home of a lock or barrier: WAIT, ARRIVE, RELEASE.
 * The handlers wait only for home_lock and, briefly, for their session.
 */
#include <linux/slab.h>

#include "memory/home/home.h"
#include "lock.h"
#include "trace.h"

/*
 * The calling node. -EBADMSG: wrong incarnation; -ESTALE: an earlier life of
 * this node.
 */
static int lite_lock_caller(struct lite_locks *locks, struct lite_conn *conn,
			    const struct lite_wire_lock *w, u32 *node)
{
	u64 incarnation = conn ? conn->from.incarnation :
				 locks->mem->fab->self.incarnation;

	*node = conn ? conn->from.node : lite_cluster_id(locks->cl);
	if (le64_to_cpu(w->incarnation) != incarnation)
		return conn ? -EBADMSG : -ESTALE;
	return *node ? 0 : -EBADMSG;
}

/*
 * Is the word there? lite_locks_lmr_cut() takes home_lock after a cut, and so
 * finds a claim entered before it.
 */
static int lite_lock_exists(struct lite_locks *locks, u64 id, u64 offset)
{
	struct lite_lmr *lmr = lite_lmr_get(locks->mem, id);
	int err;

	lockdep_assert_held(&locks->home_lock);
	if (!lmr)
		return -ENOENT;
	mutex_lock(&lmr->lock);
	err = lmr->dying ? -ENOENT :
			   lite_atomic_check(offset, sizeof(u64),
					     lmr->place->length);
	mutex_unlock(&lmr->lock);
	lite_lmr_put(lmr);
	return err;
}

/* Find or make the lock, or the barrier for @n. */
static struct lite_lock *lite_lock_meant(struct lite_locks *locks, u64 id,
					 u64 offset, u32 n, gfp_t gfp)
{
	struct lite_lock *l = lite_lock_find(locks, id, offset, n);

	if (!l) {
		l = lite_lock_make(locks, id, offset, n, gfp);
		if (!l)
			return ERR_PTR(-ENOMEM);
	}
	/* While claims are queued the number of participants is fixed. */
	if (l->n != n && !list_empty(&l->queue))
		return ERR_PTR(-EINVAL);
	l->n = n;
	return l;
}

static struct lite_lock_claim *
lite_lock_claim_named(struct lite_lock *l, u32 node,
		      const struct lite_wire_lock *w)
{
	return l ? lite_lock_claim_find(l, node, le64_to_cpu(w->incarnation),
				   le32_to_cpu(w->ticket)) : NULL;
}

static int lite_lock_enter(struct lite_locks *locks, u32 node,
			   const struct lite_wire_lock *w, bool barrier,
			   gfp_t gfp)
{
	u64 offset = le64_to_cpu(w->offset);
	u32 flags = le32_to_cpu(w->arg);
	u64 id = le64_to_cpu(w->id);
	struct lite_lock_claim *c;
	struct lite_lock *l;
	int err;

	lockdep_assert_held(&locks->home_lock);
	if (locks->closing)
		return -ESHUTDOWN;
	err = lite_lock_exists(locks, id, offset);
	if (err)
		return err;
	c = lite_lock_claim_named(lite_lock_find(locks, id, offset, barrier),
				  node, w);
	if (c && c->state == LITE_CLAIM_OWNER) {
		/*
		 * The taker may not have got the GRANT. The queue of a barrier
		 * may already be of a round with another number.
		 */
		lite_lock_claim_tell(c, c->status);
		return 0;
	}
	/* The claim was swept, maybe after its round was complete. */
	if (!c && barrier && flags & LITE_WIRE_BARRIER_AGAIN)
		return -ENOLCK;
	l = lite_lock_meant(locks, id, offset,
			    barrier ? flags & ~LITE_WIRE_BARRIER_AGAIN : 0,
			    gfp);
	if (IS_ERR(l))
		return PTR_ERR(l);
	if (!c) {
		c = lite_lock_claim_admit(l, node, w, gfp);
		if (IS_ERR(c)) {
			/* Removes a lock that was just made. */
			lite_lock_go_on(l);
			return PTR_ERR(c);
		}
		c->shared = barrier || flags & LITE_WIRE_LOCK_SHARED;
		c->try = !barrier && flags & LITE_WIRE_LOCK_TRY;
		lite_lock_claim_queue(c);
		l->seen = le64_to_cpu(w->value);
		lite_lock_claim_trace(c, LITE_TRACE_LOCK_QUEUE, c->shared);
	}
	lite_lock_go_on(l);
	return 0;
}

static int lite_serve_claim(struct lite_locks *locks, struct lite_conn *conn,
			    const struct lite_wire_lock *req, bool barrier)
{
	/* Charge a local process for its own request. */
	gfp_t gfp = conn ? GFP_KERNEL : GFP_KERNEL_ACCOUNT;
	u32 node;
	int err;

	err = lite_lock_caller(locks, conn, req, &node);
	/* A claim is swept only if this node also counts the session. */
	if (!err && conn)
		err = lite_cluster_await_session(locks->cl, conn);
	if (err)
		return err;
	mutex_lock(&locks->home_lock);
	/*
	 * While this session is not dead, no message of a later one has been
	 * handled. Afterwards the taker may have ended this claim already.
	 */
	err = conn && lite_conn_is_dead(conn) ?
		      -EHOSTDOWN :
		      lite_lock_enter(locks, node, req, barrier, gfp);
	mutex_unlock(&locks->home_lock);
	return err;
}

static int lite_serve_lock_wait(void *priv, struct lite_conn *conn,
				const void *req, u32 len, void *reply,
				u32 *reply_len)
{
	return lite_serve_claim(priv, conn, req, false);
}

static int lite_serve_barrier_arrive(void *priv, struct lite_conn *conn,
				     const void *req, u32 len, void *reply,
				     u32 *reply_len)
{
	return lite_serve_claim(priv, conn, req, true);
}

/*
 * End a claim of an owner or in the queue. A queued claim may also be in the
 * word, from a swap before it asked: while that is unknown, keep how it ended.
 */
static int lite_lock_end_known(struct lite_lock_claim *c,
			       const struct lite_wire_lock *w)
{
	struct lite_lock *l = c->lock;
	int err = 0;

	if (c->state == LITE_CLAIM_QUEUED && !l->n && (l->settling || l->maybe))
		err = lite_lock_keep_early(l, c->node, w);
	else
		lite_lock_claim_end(c, le32_to_cpu(w->arg));
	lite_lock_go_on(l);
	return err;
}

static int lite_serve_lock_release(void *priv, struct lite_conn *conn,
				   const void *req, u32 len, void *reply,
				   u32 *reply_len)
{
	const struct lite_wire_lock *w = req;
	u64 offset = le64_to_cpu(w->offset);
	struct lite_locks *locks = priv;
	u64 id = le64_to_cpu(w->id);
	struct lite_lock *l, *b;
	struct lite_lock_claim *c;
	u32 node;
	int err;

	err = lite_lock_caller(locks, conn, w, &node);
	if (err)
		return err;
	mutex_lock(&locks->home_lock);
	l = lite_lock_find(locks, id, offset, false);
	b = lite_lock_find(locks, id, offset, true);
	c = lite_lock_claim_named(l, node, w) ?:
						lite_lock_claim_named(b, node, w);
	if (c && c->lock == b && c->state == LITE_CLAIM_OWNER)
		err = -EALREADY;
	else if (c)
		err = lite_lock_end_known(c, w);
	else if (l && (l->settling || l->maybe))
		/* The word is being taken over: this claim may be in it. */
		err = lite_lock_keep_early(l, node, w);
	else
		err = lite_lock_exists(locks, id, offset) ?: -ENOLCK;
	mutex_unlock(&locks->home_lock);
	return err;
}

void lite_lock_home_handlers(struct lite_locks *locks, struct lite_kcalls *rpc)
{
	lite_kcall_handle(rpc, LITE_CALL_LOCK_WAIT, lite_serve_lock_wait,
			  locks);
	lite_kcall_handle(rpc, LITE_CALL_LOCK_RELEASE, lite_serve_lock_release,
			  locks);
	lite_kcall_handle(rpc, LITE_CALL_BARRIER_ARRIVE,
			  lite_serve_barrier_arrive, locks);
}
