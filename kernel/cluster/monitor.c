// SPDX-License-Identifier: GPL-2.0
/*
 * The watch over peers: heartbeats to those that are up, connecting to those
 * that are not.
 *
 * Anything heard from a peer counts as a sign of life (conn->heard). A peer
 * that has been silent for cl->dead is disconnected; a broken transport is
 * usually noticed earlier, by the first operation that fails.
 */
#include "cluster.h"

int lite_serve_ping(void *priv, struct lite_conn *conn, const void *req,
		    u32 len, void *reply, u32 *reply_len)
{
	struct lite_wire_ping *r = reply;

	r->members = cpu_to_le64(lite_members_digest(priv));
	*reply_len = sizeof(*r);
	return 0;
}

void lite_peer_ping_work(struct work_struct *work)
{
	struct lite_peer *peer = container_of(work, struct lite_peer,
					      ping_work);
	struct lite_cluster *cl = peer->cl;
	struct lite_wire_ping req, reply;
	struct lite_call_desc d = {
		.call = LITE_CALL_PING,
		.req = &req,
		.len = sizeof(req),
		.reply = &reply,
		.reply_max = sizeof(reply),
		.timeout = cl->dead,
	};
	struct lite_conn *conn = lite_peer_conn_get(peer);

	if (!conn)
		return;
	req.members = cpu_to_le64(lite_members_digest(cl));
	if (!lite_rpc_call(conn, &d) && reply.members != req.members)
		lite_members_pull(cl, conn);
	lite_conn_put(conn);
}

static void lite_monitor_peer(struct lite_cluster *cl, struct lite_peer *peer)
{
	struct lite_conn *conn;

	lockdep_assert_held(&cl->lock);
	conn = lite_peer_conn_get(peer);
	if (conn) {
		if (time_after(jiffies, READ_ONCE(conn->heard) + cl->dead))
			lite_conn_kill(conn, -ETIMEDOUT);
		else
			queue_work(cl->wq, &peer->ping_work);
		lite_conn_put(conn);
		return;
	}
	if (peer->suspect && (peer->left || cl->state != LITE_NODE_UP ||
			      time_after(jiffies, peer->heard + cl->dead))) {
		WRITE_ONCE(peer->suspect, false);
		wake_up_all(&cl->suspects);
		cl->ops->event(cl->priv, peer->id, LITE_NODE_DOWN);
	}
	if (peer->fresh && (peer->left ||
			    time_after(jiffies, peer->heard + cl->dead))) {
		WRITE_ONCE(peer->fresh, false);
		wake_up_all(&cl->suspects);
	}
	if (cl->state != LITE_NODE_UP)
		return;
	if (peer->tentative && time_after(jiffies, peer->expires)) {
		lite_peer_drop(peer);
		return;
	}
	if (!peer->left && !peer->tentative &&
	    time_after_eq(jiffies, peer->next_try))
		queue_work(cl->wq, &peer->connect_work);
}

void lite_monitor_work(struct work_struct *work)
{
	struct lite_cluster *cl = container_of(work, struct lite_cluster,
					       monitor.work);
	unsigned long next = cl->heartbeat;
	struct lite_peer *peer;
	unsigned long id;

	mutex_lock(&cl->lock);
	xa_for_each(&cl->peers, id, peer) {
		if (cl->state != LITE_NODE_UP && cl->state != LITE_NODE_LEAVING)
			break;
		if (!lite_peer_is_up(peer) && !peer->left && !peer->tentative &&
		    time_before(jiffies, peer->next_try))
			next = min(next, peer->next_try - jiffies);
		/* As soon as it is down, whoever waits shall know. */
		if ((peer->suspect || peer->fresh) && !lite_peer_is_up(peer) &&
		    time_before(jiffies, peer->heard + cl->dead))
			next = min(next, peer->heard + cl->dead + 1 - jiffies);
		lite_monitor_peer(cl, peer);
	}
	if (!cl->stopping)
		mod_delayed_work(cl->wq, &cl->monitor, max(next, 1UL));
	mutex_unlock(&cl->lock);
}
