// SPDX-License-Identifier: GPL-2.0
/*
 * Waiting for a lock, and what the home says meanwhile.
 *
 * Normal operation: tell the home (WAIT), once in each session with it; sleep
 * until it says that the lock is ours, or why it never will be (GRANT).
 *
 * Recovery: whenever a member or a session comes or goes, who waits looks
 * whether the home still knows of him, that is, whether the session in which he
 * asked is still there. While the home is merely suspect he goes on waiting.
 *
 * What runs concurrently: who waits, and the handlers of GRANT. locks->lock
 * decides: a GRANT that comes while the hold is WAITING is accepted, and who
 * waits has the lock, whatever else has made him stop; one that comes later is
 * refused, and the home passes the lock on.
 */

#include "../trace.h"
#include "../wait.h"
#include "lock.h"

/**
 * lite_lock_fill - a claim as the home is told of it
 * @w: filled
 * @h: claim
 * @arg: of the call
 */
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
 * Who arrives at a barrier once more may be told to go on because he has arrived
 * before. He must not do both: that would count for the next round. False: he
 * has been told.
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
	struct lite_rpc *rpc = h->locks->cl->rpc;
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
		 * Not to be overtaken by our leaving: nobody would notice that
		 * he is not there who has arrived then.
		 */
		d.call = LITE_CALL_BARRIER_ARRIVE;
		d.timeout = rpc->timeout;
		d.killable = false;
		arg = h->n | (h->entered ? LITE_WIRE_BARRIER_AGAIN : 0);
	}
	lite_lock_fill(&req, h, arg);
	/* The home need not look before it swaps. */
	req.value = cpu_to_le64(h->seen);
	/* What there is to be said has been said. */
	if (!lite_hold_arriving(h, h->n && h->asked))
		return 0;
	h->asked = true;
	err = conn ? lite_rpc_call(conn, &d) : lite_rpc_call_local(rpc, &d);
	if (h->n && conn && err == -ETIMEDOUT && d.sent)
		lite_conn_kill(conn, err);
	lite_hold_arriving(h, false);
	h->entered |= !err;
	return err;
}

/* What the answer to WAIT means. 0: wait for what comes. */
static int lite_lock_asked(struct lite_hold *h, struct lite_conn *conn, int err)
{
	switch (err) {
	case -ENOENT:
		return lite_home_gone(h->locks->mem, h->word.home,
				      h->word.incarnation);
	case -EHOSTDOWN:
		/* Alive: it did not count the session as ours yet. */
		return conn && !lite_conn_is_dead(conn) ? -EAGAIN : 0;
	case -ETIMEDOUT:
		return -EAGAIN;
	case -ESHUTDOWN:
		/* It stops, so the session will end. */
		return 0;
	default:
		return err;
	}
}

/*
 * Have the home know of us, in the session that there is now. 0: wait for a
 * verdict, or for a change; -EAGAIN: try again.
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
	/* It may have left, and joined another cluster. */
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
	/* It may have gone down, and come up again, between two looks. */
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
		/* What changes after this ends the wait below. */
		seen = atomic_read(&locks->changes);
		smp_rmb(); /* with lite_locks_changed() */
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
 * Who arrived at a barrier in vain leaves it; but when all have come meanwhile
 * he goes with them. Which of both only the home can say. When it has, nothing
 * else is waited for: its GRANT may never come, should the home be gone.
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
	/* ENOLCK: he has gone already, or was swept, all having come or not. */
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
 * Return: 0: it is ours, h->died: who had it died; otherwise it is not, or is to
 * be given back: h->asked and h->swapped say whether anybody knows of it.
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
		/* Whatever has ended the wait: it came before that. */
		err = 0;
		h->managed = true;
		h->died = h->verdict == -EOWNERDEAD ||
			  (h->swapped && h->was_died);
	} else {
		if (h->verdict != LITE_LOCK_PENDING) {
			/* The home has forgotten us with that. */
			err = h->verdict;
			h->asked = false;
		}
		h->state = LITE_HOLD_ENDING;
	}
	spin_unlock(&locks->lock);
	return err;
}

/* ---- what homes say ------------------------------------------------------ */

/* The hold that a home means; NULL: it is over. */
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
		/* The home may have passed it on when that session was over. */
		err = -EHOSTDOWN;
	} else if (h && h->arriving) {
		/* Soon. */
		err = -EBUSY;
	} else if (h && h->state == LITE_HOLD_WAITING) {
		WRITE_ONCE(h->verdict, verdict);
		if (ours)
			h->state = LITE_HOLD_HELD;
		wake_up(&h->wait);
		err = 0;
	} else if (h && ours && (h->state == LITE_HOLD_HELD || h->managed)) {
		/*
		 * Said once more, because the answer was lost. Should it be on
		 * its way back: how it ends is for RELEASE to say.
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
	 * Of one that is LEFT nobody waits for what the home says to RELEASE;
	 * but that will come, and say how it ends, when the home has granted it.
	 * An arrival at a barrier is never in a word, whoever has written that.
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

void lite_lock_take_handlers(struct lite_locks *locks, struct lite_rpc *rpc)
{
	lite_rpc_handle(rpc, LITE_CALL_LOCK_GRANT, lite_serve_lock_grant, locks);
	lite_rpc_handle(rpc, LITE_CALL_LOCK_PROBE, lite_serve_lock_probe, locks);
}
