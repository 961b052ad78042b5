// SPDX-License-Identifier: GPL-2.0
/*
 * The monitor: heartbeats to peers that are up, connecting to those that are not.
 *
 * Any message of a peer is a sign of life. So are acknowledgements by its device, but only until
 * the peer has received a request (lite_conn_heard()): then its threads must answer. A peer that
 * has been silent for cl->dead is disconnected; a broken transport is usually noticed earlier, by
 * the first operation that fails.
 *
 * Heavy load must not look like death. When no message has come for more than a heartbeat, the
 * monitor checks whether the peer's threads run (beat.c): if so the peer is slow, and callers wait.
 * PING is served in the lane SHORT, where no handler waits for another. A PING may wait behind
 * operations as long as these are acknowledged; its answer is sent within the operation time-out.
 *
 * After this machine was suspended, or its host did not schedule it, all peers seem to have been
 * silent. The monitor detects that by its own delay, and allows that much more silence. The peers
 * may see it differently, and disconnect this node.
 */
#include "cluster.h"

/* Minimum time without an acknowledgement before a new session is tried. */
#define LITE_UNANSWERED_MIN (5 * HZ)
/* A suspect has become DOWN; lite_monitor_report() is to report it. */
#define LITE_PEER_REPORT XA_MARK_0

/* Jiffies that this node was away since the monitor last ran. */
static unsigned long lite_cluster_away(const struct lite_cluster *cl)
{
	unsigned long now = jiffies, due = cl->due;

	lockdep_assert_held(&cl->lock);
	/* On a busy machine the monitor may be late by up to a heartbeat. */
	return time_after(now, due + cl->heartbeat) ? now - due : 0;
}

/*
 * Has a peer been silent too long since @heard? Time in which this node did not run does not count.
 * cl->lock is held.
 */
bool lite_cluster_silent(const struct lite_cluster *cl, unsigned long heard)
{
	return time_after(jiffies, heard + cl->dead + lite_cluster_away(cl));
}

static void lite_monitor_excuse(struct lite_cluster *cl, struct lite_peer *peer, unsigned long away)
{
	struct lite_conn *conn;

	lockdep_assert_held(&cl->lock);
	peer->heard += min(away, jiffies - peer->heard);
	conn = lite_peer_conn_get(peer);
	if (!conn)
		return;
	lite_conn_excuse(conn, away);
	lite_beat_excuse(conn, away);
	lite_conn_put(conn);
}

int lite_serve_ping(void *priv, struct lite_conn *conn, u16 call, const void *req, void *reply)
{
	struct lite_wire_ping *r = reply;

	r->members = cpu_to_le64(lite_members_digest(priv));
	return sizeof(*r);
}

void lite_peer_ping_work(struct work_struct *work)
{
	struct lite_peer *peer = container_of(work, struct lite_peer, ping_work);
	struct lite_cluster *cl = peer->cl;
	struct lite_wire_ping req, reply;
	struct lite_call_desc d = {
		LITE_REQUEST(LITE_CALL_PING, req),
		LITE_REPLY(reply),
		.timeout = cl->dead,
	};
	struct lite_conn *conn = lite_peer_conn_get(peer);
	int err;

	if (!conn)
		return;
	req.members = cpu_to_le64(lite_members_digest(cl));
	/* The monitor deals with a PING that is not answered. */
	err = lite_kcall(conn, &d);
	/* A joiner also takes over reserved ids, which are not in the digest. */
	if (READ_ONCE(cl->state) == LITE_NODE_JOINING || (!err && reply.members != req.members))
		lite_members_pull(cl, conn, jiffies + LITE_PLACE_TIMEOUT);
	lite_conn_put(conn);
}

/* Jiffies of the last sign of life in a session. Any context. */
unsigned long lite_session_heard(const struct lite_conn *conn)
{
	return lite_latest(lite_conn_heard(conn), lite_beat_heard(conn));
}

/* As lite_cluster_silent(), but first takes messages that have arrived. cl->lock is held. */
static bool lite_session_silent(struct lite_cluster *cl, struct lite_conn *conn)
{
	if (!lite_cluster_silent(cl, lite_session_heard(conn)))
		return false;
	/* A message may have arrived, and the poller not run. A session has a receive CQ. */
	if (lite_conn_tryget(conn)) {
		lite_cq_poll(conn->rcq);
		lite_conn_put_live(conn);
	}
	return lite_cluster_silent(cl, lite_session_heard(conn));
}

static void lite_monitor_session(struct lite_cluster *cl,
				 struct lite_peer *peer, struct lite_conn *conn)
{
	unsigned long now = jiffies, since;
	/* A device may retry for ever (cm.c), and no thread waits for the read of beat.c. */
	unsigned long unanswered = max(cl->fab->op_timeout / 2, (unsigned long)LITE_UNANSWERED_MIN);

	if (lite_session_silent(cl, conn)) {
		since = lite_session_heard(conn);
		lite_conn_end(conn, LITE_END_SILENCE, jiffies_to_msecs(now - since), -ETIMEDOUT);
		return;
	}
	if (lite_beat_unanswered(conn, &since) && time_after(now, since + unanswered)) {
		lite_conn_end(conn, LITE_END_TRANSPORT, jiffies_to_msecs(now - since), -EHOSTDOWN);
		return;
	}
	/* The answer to a PING is late. */
	if (time_after(now, READ_ONCE(conn->heard) + 3 * cl->heartbeat / 2))
		lite_beat_ask(conn);
	queue_work(cl->wq, &peer->ping_work);
}

/* Return: has the peer gone down? Then the caller wakes its waiters. */
static bool lite_monitor_peer(struct lite_cluster *cl, struct lite_peer *peer)
{
	bool down = false;
	struct lite_conn *conn;

	lockdep_assert_held(&cl->lock);
	conn = lite_peer_conn_get(peer);
	if (conn) {
		lite_monitor_session(cl, peer, conn);
		lite_conn_put(conn);
		return false;
	}
	if (peer->wait != LITE_PEER_DOWN &&
	    (lite_peer_has_left(peer) || cl->state != LITE_NODE_UP ||
	     lite_cluster_silent(cl, peer->heard))) {
		if (peer->wait == LITE_PEER_SUSPECT)
			xa_set_mark(&cl->peers, peer->id, LITE_PEER_REPORT);
		WRITE_ONCE(peer->wait, LITE_PEER_DOWN);
		down = true;
	}
	if (cl->state != LITE_NODE_UP)
		return down;
	if (peer->life == LITE_PEER_MEMBER) {
		if (time_after_eq(jiffies, peer->next_try)) {
			/* The end of the attempt sets the time of the next one. */
			peer->next_try = jiffies + LITE_BACKOFF_MAX;
			queue_work(cl->wq, &peer->connect_work);
		}
	} else if (time_after(jiffies, peer->expires)) {
		/* Keep a REUSED peer: the id's next life must be later than the last. */
		if (peer->life == LITE_PEER_REUSED)
			WRITE_ONCE(peer->life, LITE_PEER_LEFT);
		else if (peer->life == LITE_PEER_RESERVED)
			lite_peer_drop(peer);
	}
	return down;
}

/*
 * Report the suspects that have gone down. Not under cl->lock: reporting takes long and may wait
 * for memory, and reclaim may wait for a fence, which takes cl->lock.
 */
static void lite_monitor_report(struct lite_cluster *cl)
{
	struct lite_peer *peer;
	unsigned long id;

	lockdep_assert_not_held(&cl->lock);
	xa_for_each_marked(&cl->peers, id, peer, LITE_PEER_REPORT) {
		xa_clear_mark(&cl->peers, id, LITE_PEER_REPORT);
		/* If it has come back meanwhile, its return has been reported. */
		if (!lite_cluster_is_live(cl, id))
			cl->ops->event(cl->priv, id, LITE_NODE_DOWN);
	}
}

/* Have the monitor run in @delay jiffies at the latest. cl->lock is held. */
void lite_monitor_within(struct lite_cluster *cl, unsigned long delay)
{
	unsigned long at = jiffies + delay;

	lockdep_assert_held(&cl->lock);
	if (delayed_work_pending(&cl->monitor) && !time_before(at, cl->next))
		return;
	cl->next = at;
	mod_delayed_work(cl->wq, &cl->monitor, delay);
}

void lite_monitor_work(struct work_struct *work)
{
	struct lite_cluster *cl = container_of(work, struct lite_cluster, monitor.work);
	unsigned long next = cl->heartbeat;
	struct lite_peer *peer;
	bool down = false;
	unsigned long away;
	unsigned long id;

	mutex_lock(&cl->lock);
	away = lite_cluster_away(cl);
	if (away)
		xa_for_each(&cl->peers, id, peer)
			lite_monitor_excuse(cl, peer, away);
	/* The time away is accounted for. */
	cl->due = jiffies + cl->heartbeat;
	xa_for_each(&cl->peers, id, peer) {
		if (cl->state != LITE_NODE_UP && cl->state != LITE_NODE_LEAVING)
			break;
		if (!lite_peer_is_up(peer) && peer->life == LITE_PEER_MEMBER &&
		    time_before(jiffies, peer->next_try))
			next = min(next, peer->next_try - jiffies);
		/* Waiters must learn at once that the peer is down. */
		if (peer->wait != LITE_PEER_DOWN && !lite_peer_is_up(peer) &&
		    time_before_eq(jiffies, peer->heard + cl->dead))
			next = min(next, peer->heard + cl->dead + 1 - jiffies);
		down |= lite_monitor_peer(cl, peer);
	}
	if (cl->state != LITE_NODE_STOPPED)
		lite_monitor_within(cl, max(next, 1UL));
	mutex_unlock(&cl->lock);
	if (down) {
		lite_crowd_wake(&cl->suspects);
		/* No session has changed, so nothing else reports this. */
		cl->ops->members_changed(cl->priv);
	}
	lite_monitor_report(cl);
}
