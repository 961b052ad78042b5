// SPDX-License-Identifier: GPL-2.0
/*
 * Waiting for a lock, and what the home sends meanwhile.
 *
 * Normal operation: send WAIT to the home, once per session; sleep until GRANT
 * says that the lock is ours, or why it never will be.
 *
 * Recovery: when a member or a session comes or goes, the waiter asks again if
 * the session in which it asked is gone. It keeps waiting while the home is
 * suspect.
 *
 * What runs concurrently: the waiter and the GRANT handlers. locks->lock
 * decides: a GRANT that finds the hold WAITING is accepted, whatever else ended
 * the wait. A later GRANT is refused, and the home passes the lock on.
 */

#include "memory/handle/ctx.h"
#include "lock.h"
#include "trace.h"
#include "wait.h"

void lite_lock_fill(struct lite_wire_lock *w, const struct lite_hold *h,
		    u32 arg)
{
	*w = (struct lite_wire_lock){
		.id = cpu_to_le64(h->word.id),
		.offset = cpu_to_le64(h->word.offset),
		.incarnation = cpu_to_le64(h->incarnation),
		.ticket = cpu_to_le32(h->ticket),
		.arg = cpu_to_le32(arg),
		.uid = cpu_to_le32(h->word.uid),
	};
}

/*
 * A repeated ARRIVE may meet the GRANT for the first one: if both took effect,
 * it would count for the next round. False: GRANT came first, do not ARRIVE.
 */
static bool lite_hold_arriving(struct lite_hold *h, bool arriving)
{
	bool waiting;

	spin_lock(&h->locks->lock);
	waiting = h->verdict == LITE_LOCK_PENDING;
	h->arriving = arriving && waiting;
	spin_unlock(&h->locks->lock);
	return waiting;
}

static int lite_lock_ask(struct lite_hold *h, struct lite_conn *conn,
			 bool try, unsigned long left)
{
	struct lite_kcalls *rpc = h->locks->cl->rpc;
	struct lite_wire_lock req;
	struct lite_call_desc d = {
		.call = LITE_CALL_LOCK_WAIT,
		.req = &req,
		.len = sizeof(req),
		.timeout = clamp(left, 1UL, rpc->timeout),
		.killable = true,
	};
	u32 arg = (h->shared ? LITE_WIRE_LOCK_SHARED : 0) |
		  (try ? LITE_WIRE_LOCK_TRY : 0);
	int err;

	if (h->n) {
		/*
		 * Not abandoned: an ARRIVE after our RELEASE would count a
		 * participant that has gone.
		 */
		d.call = LITE_CALL_BARRIER_ARRIVE;
		d.timeout = rpc->timeout;
		d.killable = false;
		arg = h->n | (h->entered ? LITE_WIRE_BARRIER_AGAIN : 0);
	}
	lite_lock_fill(&req, h, arg);
	/* Saves the home a swap. */
	req.value = cpu_to_le64(h->seen);
	/* The verdict has arrived meanwhile. */
	if (!lite_hold_arriving(h, h->n && h->asked))
		return 0;
	h->asked = true;
	err = conn ? lite_kcall(conn, &d) : lite_kcall_local(rpc, &d);
	if (h->n && conn && err == -ETIMEDOUT && d.sent)
		lite_conn_kill(conn, err);
	lite_hold_arriving(h, false);
	h->entered |= !err;
	return err;
}

/* What the answer to WAIT means. 0: wait for GRANT. */
static int lite_lock_asked(struct lite_hold *h, struct lite_conn *conn, int err)
{
	switch (err) {
	case -ENOENT:
		return lite_home_gone(h->locks->mem, h->word.home,
				      h->word.incarnation);
	case -EHOSTDOWN:
		/* In a live session: the home does not count it yet. */
		return conn && !lite_conn_is_dead(conn) ? -EAGAIN : 0;
	case -ETIMEDOUT:
		return -EAGAIN;
	case -ESHUTDOWN:
		/* The home stops, so the session will end. */
		return 0;
	default:
		return err;
	}
}

/*
 * Send WAIT or ARRIVE unless done in this session.
 *
 * Return: 0: wait for a verdict or a change; -EAGAIN: try again; other errnos.
 */
static int lite_lock_tell_home(struct lite_hold *h, bool try,
			       unsigned long left, u64 *session)
{
	struct lite_cluster *cl = h->locks->cl;
	struct lite_conn *conn = NULL;
	struct lite_peer *peer;
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
		err = lite_lock_asked(h, NULL,
				      lite_lock_ask(h, NULL, try, left));
		if (!err)
			*session = 1;
		return err;
	}
	peer = lite_peer_find(cl, h->word.home);
	if (!peer)
		return -EHOSTDOWN;
	if (READ_ONCE(peer->incarnation) != h->word.incarnation) {
		err = -ESTALE;
		goto out;
	}
	conn = lite_peer_conn_get(peer);
	if (!conn || lite_conn_is_dead(conn)) {
		err = lite_peer_is_suspect(peer) ? 0 : -EHOSTDOWN;
	} else if (conn->session != *session) {
		err = lite_lock_ask(h, conn, try, left);
		if (!err)
			*session = conn->session;
		err = lite_lock_asked(h, conn, err);
	}
	/* The home may have gone down and come up meanwhile. */
	if (err == -EHOSTDOWN && lite_peer_is_live(peer))
		err = -EAGAIN;
out:
	if (conn)
		lite_conn_put(conn);
	lite_peer_put(peer);
	return err;
}

static bool lite_hold_has_news(const struct lite_hold *h, int seen)
{
	return READ_ONCE(h->verdict) != LITE_LOCK_PENDING ||
	       atomic_read(&h->locks->changes) != seen;
}

static int lite_lock_wait_verdict(struct lite_hold *h,
				  const struct lite_lock_args *args)
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
		left = time_before(jiffies, end) ? end - jiffies : 0;
		if (err == -EAGAIN) {
			if (lite_given_up())
				return -EINTR;
			if (!left)
				return -ETIMEDOUT;
			cond_resched();
			continue;
		}
		ret = lite_wait_is_command() ?
			      wait_event_interruptible_timeout(
				      h->wait, lite_hold_has_news(h, seen),
				      left) :
			      wait_event_killable_timeout(
				      h->wait, lite_hold_has_news(h, seen),
				      left);
		if (READ_ONCE(h->verdict) != LITE_LOCK_PENDING)
			return 0;
		if (ret < 0)
			return -EINTR;
		if (!ret)
			return -ETIMEDOUT;
	}
}

/*
 * Take an arrival back after a time-out, unless the round is complete: then the
 * caller goes on with the others. The home's answer is enough, as its GRANT may
 * never come.
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
	/* Else ENOLCK: swept, maybe after the round was complete. */
	if (!err || (err == -ENOLCK && (again || !h->entered))) {
		h->asked = false;
		return -ETIMEDOUT;
	}
	return err == -EALREADY ? 0 : err;
}

/**
 * lite_lock_wait - wait for a lock
 * @h: TAKING
 * @args: of the caller
 *
 * Context: may sleep; killable.
 * Return: 0: the lock is ours, @h->died: a previous owner died; else an errno:
 * @h->asked and @h->swapped say whether the home or the word may have the
 * claim.
 */
int lite_lock_wait(struct lite_hold *h, const struct lite_lock_args *args)
{
	struct lite_locks *locks = h->locks;
	int err;

	lite_stat_inc(locks->stats, LITE_STAT_LOCK_WAITS);
	spin_lock(&locks->lock);
	h->verdict = LITE_LOCK_PENDING;
	h->state = LITE_HOLD_WAITING;
	h->kicked = atomic_read(&locks->changes);
	list_add_tail(&h->list, &locks->waiting);
	spin_unlock(&locks->lock);

	err = lite_lock_wait_verdict(h, args);
	if (err == -ETIMEDOUT && h->n && h->asked)
		err = lite_barrier_leave(h);

	spin_lock(&locks->lock);
	list_del_init(&h->list);
	if (h->state == LITE_HOLD_HELD) {
		/* GRANT came before whatever ended the wait. */
		err = 0;
		h->managed = true;
		h->died = h->verdict == -EOWNERDEAD ||
			  (h->swapped && h->was_died);
	} else {
		if (h->verdict != LITE_LOCK_PENDING) {
			/* The home has ended the claim. */
			err = h->verdict;
			h->asked = false;
		}
		h->state = LITE_HOLD_ENDING;
	}
	spin_unlock(&locks->lock);
	return err;
}

/* ---- requests from homes ------------------------------------------------- */

/* Find the hold that a home names; NULL: it is over. */
static struct lite_hold *lite_hold_named(struct lite_locks *locks,
					 struct lite_conn *conn,
					 const struct lite_wire_lock *w)
{
	u32 home = conn ? conn->from.node : lite_cluster_id(locks->cl);
	struct lite_hold *h;

	lockdep_assert_held(&locks->lock);
	h = xa_load(&locks->tickets, le32_to_cpu(w->ticket));
	if (!h || h->incarnation != le64_to_cpu(w->incarnation) ||
	    h->word.home != home || h->word.id != le64_to_cpu(w->id) ||
	    h->word.offset != le64_to_cpu(w->offset))
		return NULL;
	return h;
}

static int lite_serve_lock_grant(void *priv, struct lite_conn *conn,
				 const void *req, u32 len, void *reply,
				 u32 *reply_len)
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
		WRITE_ONCE(h->verdict, verdict);
		if (ours)
			h->state = LITE_HOLD_HELD;
		wake_up(&h->wait);
		err = 0;
	} else if (h && ours && (h->state == LITE_HOLD_HELD || h->managed)) {
		/*
		 * Our answer was lost. If the lock is being released, RELEASE
		 * says how it ends.
		 */
		err = 0;
	}
	spin_unlock(&locks->lock);
	return err;
}

static int lite_serve_lock_probe(void *priv, struct lite_conn *conn,
				 const void *req, u32 len, void *reply,
				 u32 *reply_len)
{
	struct lite_wire_lock_probe_reply *r = reply;
	u32 state = LITE_WIRE_LOCK_GONE;
	struct lite_locks *locks = priv;
	struct lite_hold *h;

	spin_lock(&locks->lock);
	h = lite_hold_named(locks, conn, req);
	/*
	 * A LEFT claim that the home has not granted ends with this answer;
	 * otherwise RELEASE is to come and says how it ends. Arrivals at
	 * barriers are never in a word, whatever was written there.
	 */
	if (h && h->n)
		state = LITE_WIRE_LOCK_GONE;
	else if (h && (h->state != LITE_HOLD_LEFT || h->managed))
		state = LITE_WIRE_LOCK_HELD;
	else if (h && h->end == LITE_LOCK_DEAD)
		state = LITE_WIRE_LOCK_DEAD;
	else if (h && h->end == LITE_LOCK_BROKEN)
		state = LITE_WIRE_LOCK_BROKEN;
	spin_unlock(&locks->lock);
	r->state = cpu_to_le32(state);
	*reply_len = sizeof(*r);
	return 0;
}

void lite_lock_take_handlers(struct lite_locks *locks, struct lite_kcalls *rpc)
{
	lite_kcall_handle(rpc, LITE_CALL_LOCK_GRANT, lite_serve_lock_grant,
			  locks);
	lite_kcall_handle(rpc, LITE_CALL_LOCK_PROBE, lite_serve_lock_probe,
			  locks);
}
