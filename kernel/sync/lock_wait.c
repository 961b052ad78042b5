// SPDX-License-Identifier: GPL-2.0
/*
 * Waiting for locks, answering GRANT and PROBE, and releasing locks: see locks.rst.
 *
 * What runs concurrently: the waiter and the GRANT handlers. locks->lock decides: a GRANT that
 * finds the hold WAITING is accepted, whatever else ended the wait. A later GRANT is refused, and
 * the home passes the lock on.
 */
#include "lock.h"
#include "trace.h"
#include "wait.h"

/* Jiffies between attempts to release a LEFT claim while the home is up. */
#define LITE_LEFT_PERIOD HZ
/* Attempts per swap, across sessions. */
#define LITE_LOCK_BACK_TRIES 4

/*
 * Have the home end a claim. @again is set if an earlier attempt may have done it. May sleep;
 * killable. Return: 0; -ENOLCK: no such claim; -EALREADY: the barrier is complete; -EIDRM, -ESTALE,
 * -ERANGE; -EHOSTDOWN and others.
 */
static int lite_hold_tell(struct lite_hold *h, enum lite_lock_end end, bool *again)
{
	struct lite_wire_lock req = lite_lock_wire(&h->word, h->incarnation, h->ticket, end);
	struct lite_call_desc d = {
		LITE_REQUEST(LITE_CALL_LOCK_RELEASE, req),
		.killable = true,
		.life = h->word.incarnation,
		.by_worker = true, /* the handler takes home_lock */
		.uid = h->word.uid, /* this may be a worker */
	};
	int err = lite_cluster_call_patiently(h->locks->cl, h->word.home, &d);

	*again |= d.repeated || (err && err != -ENOLCK && d.sent);
	if (err == -ENOENT)
		err = lite_home_gone(h->locks->mem, h->word.home, h->word.incarnation);
	/* The home has left, which frees its LMRs. */
	if (err == -EHOSTUNREACH)
		err = -ESTALE;
	return err;
}

/*
 * Begin or end repeating an arrival. Meanwhile the GRANT for the first try is not accepted: else
 * the repeat would count for the next round. Return: false: GRANT came first, do not arrive.
 */
static bool lite_hold_arriving(struct lite_hold *h, bool arriving)
{
	bool waiting;

	spin_lock(&h->locks->lock);
	waiting = h->state == LITE_HOLD_WAITING;
	h->arriving = arriving && waiting;
	spin_unlock(&h->locks->lock);
	return waiting;
}

static int lite_lock_ask(struct lite_hold *h, struct lite_conn *conn, bool try, unsigned long left)
{
	struct lite_kcalls *kcalls = h->locks->cl->kcalls;
	struct lite_wire_lock req;
	struct lite_call_desc d = {
		LITE_REQUEST(LITE_CALL_LOCK_WAIT, req),
		.life = h->word.incarnation,
		.timeout = clamp(left, 1UL, kcalls->timeout),
		.killable = true,
		.by_worker = true,
	};
	u32 arg = (h->shared ? LITE_WIRE_LOCK_SHARED : 0) | (try ? LITE_WIRE_LOCK_TRY : 0);
	int err;

	if (h->n) {
		/* Do not abandon WAIT: served after RELEASE, it would enter a departed claim. */
		d.timeout = kcalls->timeout;
		d.slot_timeout = kcalls->timeout; /* killable: nothing is sent yet */
		d.killable = false;
		arg = h->entered ? LITE_WIRE_LOCK_AGAIN : 0;
	}
	req = lite_lock_wire(&h->word, h->incarnation, h->ticket, arg);
	/* Saves the home a swap. */
	req.value = cpu_to_le64(h->seen);
	req.n = cpu_to_le32(h->n);
	/* The verdict has arrived meanwhile. */
	if (!lite_hold_arriving(h, h->n && h->asked))
		return 0;
	h->asked = true;
	err = conn ? lite_kcall(conn, &d) : lite_kcall_local(kcalls, &d);
	if (h->n && conn && err == -ETIMEDOUT && d.sent)
		lite_conn_kill(conn, err);
	lite_hold_arriving(h, false);
	h->entered |= !err;
	return err;
}

/* What the answer to WAIT means. Return: 0: wait for GRANT; -EAGAIN: ask again; other errnos. */
static int lite_lock_asked(struct lite_hold *h, struct lite_conn *conn, int err)
{
	switch (err) {
	case -ENOENT:
		return lite_home_gone(h->locks->mem, h->word.home, h->word.incarnation);
	case -EHOSTDOWN:
		/* The session is alive, so the home has not published it yet. */
		return conn && !lite_conn_is_dead(conn) ? -EAGAIN : 0;
	case -ETIMEDOUT:
		return -EAGAIN;
	case -ESHUTDOWN:
		/* The home is stopping, so the session will end. */
		return 0;
	case -ESTALE:
		/* Or this node has left and joined meanwhile. */
		return h->incarnation == h->locks->mem->fab->self.incarnation ? err : -ENOTCONN;
	default:
		return err;
	}
}

/*
 * Send WAIT unless done in this session. Return: 0: wait for a verdict or a change; -EAGAIN: try
 * again; other errnos.
 */
static int lite_lock_tell_home(struct lite_hold *h, bool try, unsigned long left, u64 *session)
{
	struct lite_cluster *cl = h->locks->cl;
	struct lite_conn *conn;
	u64 incarnation;
	int err;

	err = lite_cluster_ready(cl);
	if (err)
		return err;
	/* This node may have left, and joined another cluster. */
	if (h->incarnation != cl->fab->self.incarnation)
		return -ENOTCONN;
	if (h->word.home == lite_cluster_id(cl)) {
		if (*session)
			return 0;
		err = lite_lock_asked(h, NULL, lite_lock_ask(h, NULL, try, left));
		if (!err)
			*session = 1;
		return err;
	}
	incarnation = lite_cluster_incarnation(cl, h->word.home);
	if (incarnation && incarnation != h->word.incarnation)
		return -ESTALE;
	conn = lite_cluster_conn_get(cl, h->word.home);
	if (!conn || lite_conn_is_dead(conn)) {
		err = lite_cluster_is_suspect(cl, h->word.home) ? 0 : -EHOSTDOWN;
	} else if (conn->session != *session) {
		err = lite_lock_ask(h, conn, try, left);
		if (!err)
			*session = conn->session;
		err = lite_lock_asked(h, conn, err);
	}
	/* The home may have gone down and come up meanwhile. */
	if (err == -EHOSTDOWN && lite_cluster_is_live(cl, h->word.home))
		err = -EAGAIN;
	lite_conn_put(conn);
	return err;
}

static int lite_lock_wait_verdict(struct lite_hold *h, const struct lite_lock_args *args)
{
	struct lite_locks *locks = h->locks;
	unsigned long end = jiffies + args->timeout;
	unsigned long left = args->timeout;
	u64 session = 0;
	int seen, err;
	long ret;

	for (;;) {
		/* Changes from here on end the wait below. */
		seen = atomic_read(&locks->changes);
		smp_rmb(); /* pairs with lite_locks_changed() */
		err = lite_lock_tell_home(h, args->try, left, &session);
		if (err && err != -EAGAIN)
			return err;
		left = lite_jiffies_left(end);
		if (err == -EAGAIN) {
			if (lite_given_up())
				return -EINTR;
			if (!left)
				return -ETIMEDOUT;
			cond_resched();
			continue;
		}
		ret = lite_wait_event_timeout(h->wait,
					      READ_ONCE(h->state) != LITE_HOLD_WAITING ||
					      atomic_read(&locks->changes) != seen, left);
		if (READ_ONCE(h->state) != LITE_HOLD_WAITING)
			return 0;
		if (ret < 0)
			return -EINTR;
		if (!ret)
			return -ETIMEDOUT;
	}
}

/*
 * Withdraw from a barrier after a time-out. Return: 0: the round is complete, and the caller goes
 * on with the other participants (its GRANT may never come); -ETIMEDOUT: withdrawn; other errnos.
 */
static int lite_barrier_leave(struct lite_hold *h)
{
	bool again = false;
	int err;

	do {
		err = lite_hold_tell(h, LITE_LOCK_UNUSED, &again);
		cond_resched();
	} while ((err == -EHOSTDOWN || err == -ETIMEDOUT) &&
		 lite_cluster_is_live(h->locks->cl, h->word.home));
	/* -ENOLCK otherwise means that the home has swept the claim. */
	if (!err || (err == -ENOLCK && (again || !h->entered))) {
		h->asked = false;
		return -ETIMEDOUT;
	}
	return err == -EALREADY ? 0 : err;
}

/*
 * Wait for a lock; @h is TAKING. May sleep; killable. Return: 0: the caller has the lock, and with
 * @h->died a previous owner died; else an errno, and @h->asked and @h->swapped say whether the home
 * or the word may have the claim.
 */
int lite_lock_wait(struct lite_hold *h, const struct lite_lock_args *args)
{
	struct lite_locks *locks = h->locks;
	int err;

	lite_stat_inc(locks->stats, LITE_STAT_LOCK_WAITS);
	spin_lock(&locks->lock);
	h->state = LITE_HOLD_WAITING;
	spin_unlock(&locks->lock);

	err = lite_lock_wait_verdict(h, args);
	if (err == -ETIMEDOUT && h->n && h->asked)
		err = lite_barrier_leave(h);

	spin_lock(&locks->lock);
	if (h->state == LITE_HOLD_HELD) {
		/* GRANT came before whatever ended the wait. */
		err = 0;
		h->managed = true;
		h->died = h->verdict == -EOWNERDEAD || (h->swapped && h->was_died);
	} else if (h->state == LITE_HOLD_ENDING) {
		/* The home has ended the claim. */
		err = h->verdict;
		h->asked = false;
	} else {
		h->state = LITE_HOLD_ENDING;
	}
	spin_unlock(&locks->lock);
	return err;
}

/*
 * Put the word back. @again: set if an earlier attempt may have done it. Return: 0; -EINPROGRESS:
 * MANAGED, ask the home; -ENOLCK; other errnos.
 */
static int lite_hold_swap_back(struct lite_hold *h, enum lite_lock_end end, bool *again)
{
	bool posted;
	int tries = 0;
	int err;
	u64 old;

	do {
		err = lite_word_cmp_swap(h->locks->mem, &h->word, h->value,
					 lite_lock_after(end), &old, &posted);
		*again |= err && posted;
	} while (err == -EHOSTDOWN && posted && ++tries < LITE_LOCK_BACK_TRIES);
	if (err || old == h->value)
		return err;
	return lite_lockword_kind(old) == LITE_LOCKWORD_MANAGED ? -EINPROGRESS : -ENOLCK;
}

/* After @err, is the claim still to be ended? */
static bool lite_hold_is_pending(struct lite_hold *h, int err)
{
	/* Not if it went with its home's life. A home that is just down may return. */
	return !lite_lock_is_final(err) &&
	       lite_cluster_incarnation(h->locks->cl, h->word.home) == h->word.incarnation;
}

/* Release a lock, if possible now. Return: 0; -ENOLCK: the holder had lost it; other errnos. */
static int lite_hold_release(struct lite_hold *h, enum lite_lock_end end)
{
	struct lite_locks *locks = h->locks;
	bool again = false;
	int err;

	if (h->incarnation != locks->mem->fab->self.incarnation)
		err = -ENOLCK;
	else if (h->swapped && !h->managed)
		err = lite_hold_swap_back(h, end, &again);
	else
		err = -EINPROGRESS;
	/* Even if the claim is not in the word, the home may have it. */
	if (err == -EINPROGRESS || (err == -ENOLCK && h->asked))
		err = lite_hold_tell(h, end, &again);
	if (err == -ENOLCK && again)
		err = 0;
	trace_lite_lock(LITE_TRACE_LOCK_BACK, h->word.id, h->word.offset,
			lite_cluster_id(locks->cl), h->ticket, err);
	return err;
}

/* End a claim in the background. Takes over @h. Context: process. */
void lite_hold_leave(struct lite_hold *h, enum lite_lock_end end)
{
	struct lite_locks *locks = h->locks;
	bool closing;

	spin_lock(&locks->lock);
	closing = locks->closing;
	if (!closing) {
		h->state = LITE_HOLD_LEFT;
		h->end = end;
		h->ctx = NULL;
		if (h->n)
			lite_hold_add(&locks->left_barriers, h);
		lite_crew_queue(&locks->lefts, &h->job);
	}
	spin_unlock(&locks->lock);
	/* This node has left its cluster: the homes have ended its claims. */
	if (closing)
		lite_hold_free(h);
}

void lite_hold_left_due(struct work_struct *work)
{
	struct lite_hold *h = container_of(to_delayed_work(work), struct lite_hold, timer);

	lite_crew_queue(&h->locks->lefts, &h->job);
}

void lite_hold_left_job(struct work_struct *work)
{
	struct lite_hold *h = container_of(work, struct lite_hold, job.work);
	struct lite_locks *locks = h->locks;
	bool pending = lite_hold_is_pending(h, lite_hold_release(h, h->end));
	bool arrival = h->n;

	spin_lock(&locks->lock);
	if (pending && !locks->closing) {
		/* While the home is down only a change, such as its return, queues the job. */
		if (lite_cluster_is_live(locks->cl, h->word.home))
			queue_delayed_work(locks->lefts.wq, &h->timer, LITE_LEFT_PERIOD);
		spin_unlock(&locks->lock);
		lite_crew_done(&locks->lefts, &h->job);
		return;
	}
	h->state = LITE_HOLD_ENDING;
	if (h->n)
		rb_erase(&h->node, &locks->left_barriers);
	spin_unlock(&locks->lock);
	/* A change may have queued the job just before the claim ceased to be LEFT. */
	cancel_delayed_work_sync(&h->timer);
	lite_crew_cancel(&locks->lefts, &h->job);
	lite_crew_done(&locks->lefts, &h->job);
	lite_hold_free(h);
	if (arrival)
		lite_crowd_wake(&locks->left_wait);
}

/*
 * Unpublish, for its release, the lock that @owner of @ctx has on @word or, if @word is NULL, any
 * lock of @ctx. Return: it, or NULL: there is none.
 */
static struct lite_hold *lite_hold_unpublish(struct lite_locks *locks, struct lite_ctx *ctx,
					     const struct lite_word *word, u64 owner)
{
	struct lite_hold *h;

	spin_lock(&locks->lock);
	h = word ? lite_hold_in(&ctx->locks, word, owner) :
		   rb_entry_safe(rb_first(&ctx->locks), struct lite_hold, node);
	if (h) {
		h->state = LITE_HOLD_ENDING;
		rb_erase(&h->node, &ctx->locks);
		ctx->n_locks--;
	}
	spin_unlock(&locks->lock);
	return h;
}

/*
 * Release a lock, even if the handle has lost its rights. Whatever is returned, the holder no
 * longer has it. May sleep; killable. Return: 0; -EPERM: not its holder; else as LITE_IOC_UNLOCK.
 */
int lite_lock_release(struct lite_locks *locks, struct lite_ctx *ctx, u64 lh, u64 offset, u64 owner)
{
	enum lite_lock_end end = LITE_LOCK_CLEAN;
	struct lite_word word;
	struct lite_hold *h;
	int err;

	err = lite_word_of(ctx, lh, offset, &word);
	if (err)
		return err;
	h = lite_hold_unpublish(locks, ctx, &word, owner);
	if (!h)
		return -EPERM;
	/* Only an exclusive owner has to make the lock consistent. */
	if (h->died && !h->shared)
		end = LITE_LOCK_BROKEN;
	err = lite_hold_release(h, end);
	if (lite_hold_is_pending(h, err))
		lite_hold_leave(h, end);
	else
		lite_hold_free(h);
	return err;
}

/*
 * Mark a lock as consistent after an owner's death. Context: process. Return: 0; -EBADF; -EPERM:
 * the holder does not have it, or shares it; -EINVAL: it is consistent.
 */
int lite_lock_consistent(struct lite_locks *locks, struct lite_ctx *ctx, u64 lh,
			 u64 offset, u64 owner)
{
	struct lite_word word;
	struct lite_hold *h;
	int err;

	err = lite_word_of(ctx, lh, offset, &word);
	if (err)
		return err;
	spin_lock(&locks->lock);
	h = lite_hold_in(&ctx->locks, &word, owner);
	if (!h || h->shared)
		err = -EPERM;
	else if (!h->died)
		err = -EINVAL;
	else
		h->died = false;
	spin_unlock(&locks->lock);
	return err;
}

/* Release all locks of a context on which no call is under way. May sleep. */
void lite_locks_ctx_gone(struct lite_locks *locks, struct lite_ctx *ctx)
{
	enum lite_lock_end end;
	struct lite_hold *h;
	bool slow = false;

	while ((h = lite_hold_unpublish(locks, ctx, NULL, 0))) {
		end = h->shared ? LITE_LOCK_CLEAN : LITE_LOCK_DEAD;
		/* Leave the rest to the background if one is slow or would wait for its home. */
		slow = slow || lite_cluster_is_suspect(locks->cl, h->word.home) ||
		       lite_hold_is_pending(h, lite_hold_release(h, end));
		if (slow)
			lite_hold_leave(h, end);
		else
			lite_hold_free(h);
	}
}

/* Find the hold that a home names, or NULL: it is over. */
static struct lite_hold *lite_hold_named(struct lite_locks *locks, struct lite_conn *conn,
					 const struct lite_wire_lock *w)
{
	u32 home = conn ? conn->from.node : lite_cluster_id(locks->cl);
	struct lite_hold *h;

	lockdep_assert_held(&locks->lock);
	h = xa_load(&locks->tickets, le32_to_cpu(w->ticket));
	if (!h || h->incarnation != le64_to_cpu(w->incarnation) || h->word.home != home ||
	    h->word.id != le64_to_cpu(w->id) || h->word.offset != le64_to_cpu(w->offset))
		return NULL;
	return h;
}

int lite_serve_lock_grant(void *priv, struct lite_conn *conn, u16 call, const void *req,
			  void *reply)
{
	const struct lite_wire_lock *w = req;
	int verdict = lite_wire_error(le32_to_cpu(w->arg));
	bool ours = !verdict || verdict == -EOWNERDEAD;
	struct lite_locks *locks = priv;
	struct lite_hold *h;
	int err = -ENOENT;

	spin_lock(&locks->lock);
	h = lite_hold_named(locks, conn, w);
	if (conn && lite_conn_is_dead(conn)) {
		/* The home may have passed the lock on after that session. */
		err = -EHOSTDOWN;
	} else if (h && h->arriving) {
		/* lite_hold_arriving() decides soon. */
		err = -EBUSY;
	} else if (h && h->state == LITE_HOLD_WAITING) {
		h->verdict = verdict;
		WRITE_ONCE(h->state, ours ? LITE_HOLD_HELD : LITE_HOLD_ENDING);
		wake_up(&h->wait);
		err = 0;
	} else if (h && ours && (h->state == LITE_HOLD_HELD || h->managed)) {
		/* The answer was lost. If the lock is being released, RELEASE says how it ends. */
		err = 0;
	}
	spin_unlock(&locks->lock);
	return err;
}

int lite_serve_lock_probe(void *priv, struct lite_conn *conn, u16 call, const void *req,
			  void *reply)
{
	struct lite_wire_lock_probe_reply *r = reply;
	enum lite_lock_end end = LITE_LOCK_UNUSED;
	struct lite_locks *locks = priv;
	struct lite_hold *h;

	spin_lock(&locks->lock);
	h = lite_hold_named(locks, conn, req);
	/*
	 * A LEFT claim that the home has not granted ends with this answer; otherwise a RELEASE
	 * will follow and say how it ends. Arrivals at barriers are never in a word, whatever a
	 * program wrote there.
	 */
	if (h && !h->n && (h->state != LITE_HOLD_LEFT || h->managed))
		end = 0;
	else if (h && !h->n && h->end)
		end = h->end;
	spin_unlock(&locks->lock);
	r->end = cpu_to_le32(end);
	return sizeof(*r);
}
