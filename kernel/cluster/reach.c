// SPDX-License-Identifier: GPL-2.0
/*
 * Nodes by their ids, for the layers above: are they there, wait for them, call
 * their kernels, fence them.
 *
 * Sessions come and go meanwhile. What is said of a node was so a moment ago; a
 * call belongs to the session that it was made in, and ends with it.
 */
#include "cluster.h"

/* Sessions in which a call is tried. */
#define LITE_PATIENT_TRIES 3
/* Handlers call patiently, and their callers do not wait for ever. */
#define LITE_PATIENCE (10UL * HZ)

/**
 * lite_cluster_is_live - is a node a member that is not down?
 * @cl: cluster
 * @node: its id
 *
 * Context: any.
 * Return: true if it is up or suspect, or this node.
 */
bool lite_cluster_is_live(struct lite_cluster *cl, u32 node)
{
	struct lite_peer *peer;
	bool live;

	if (node == lite_cluster_id(cl))
		return true;
	rcu_read_lock();
	peer = xa_load(&cl->peers, node);
	live = peer && lite_peer_is_live(peer);
	rcu_read_unlock();
	return live;
}

/**
 * lite_cluster_is_cut_off - are there other members, and all of them down?
 * @cl: cluster
 *
 * Context: any process.
 * Return: true if so: they may be fine, and this node isolated.
 */
bool lite_cluster_is_cut_off(struct lite_cluster *cl)
{
	struct lite_peer *peer;
	bool down = false;
	bool live = false;
	unsigned long id;

	rcu_read_lock();
	xa_for_each(&cl->peers, id, peer) {
		if (READ_ONCE(peer->left) || READ_ONCE(peer->tentative))
			continue;
		down = true;
		live = lite_peer_is_live(peer);
		if (live)
			break;
	}
	rcu_read_unlock();
	return down && !live;
}

/**
 * lite_cluster_life_left - how long is a node in one of its lives waited for?
 * @cl: cluster
 * @node: its id
 * @incarnation: that life
 * @patience: jiffies, since it was heard last, after which it is given up
 *
 * Context: may sleep.
 * Return: 0: that life is over, or given up; jiffies; MAX_JIFFY_OFFSET: it is not
 * down.
 */
unsigned long lite_cluster_life_left(struct lite_cluster *cl, u32 node,
				     u64 incarnation, unsigned long patience)
{
	unsigned long left = MAX_JIFFY_OFFSET;
	struct lite_peer *peer;

	mutex_lock(&cl->lock);
	peer = xa_load(&cl->peers, node);
	/* One that is newer than we know is about to be our peer. */
	if (!peer || peer->incarnation > incarnation ||
	    (peer->left && peer->incarnation == incarnation))
		left = 0;
	else if (peer->incarnation == incarnation && !lite_peer_is_live(peer))
		left = time_before(jiffies, peer->heard + patience) ?
			       peer->heard + patience - jiffies : 0;
	mutex_unlock(&cl->lock);
	return left;
}

static bool lite_conn_is_session(struct lite_cluster *cl,
				 struct lite_conn *conn)
{
	struct lite_peer *peer;
	bool is;

	rcu_read_lock();
	peer = xa_load(&cl->peers, conn->from.node);
	is = peer && rcu_access_pointer(peer->conn) == conn;
	rcu_read_unlock();
	return is;
}

/**
 * lite_cluster_await_session - is a caller in the session that we use as well?
 * @cl: cluster
 * @conn: the caller's
 *
 * The responder uses a session before the initiator does: a call can come from
 * a node that this one does not count as up yet. It is about to.
 *
 * Context: may sleep, for a moment.
 * Return: 0; -EHOSTDOWN: the connection is dying, or will be nobody's session.
 */
int lite_cluster_await_session(struct lite_cluster *cl, struct lite_conn *conn)
{
	wait_event_timeout(cl->suspects,
			   lite_conn_is_session(cl, conn) ||
				   lite_conn_is_dead(conn),
			   HZ);
	return lite_conn_is_session(cl, conn) ? 0 : -EHOSTDOWN;
}

/**
 * lite_cluster_await_ready - as lite_cluster_ready(), for what a peer asks for
 * @cl: cluster
 *
 * A node has sessions, and is up for others, before it has joined altogether.
 *
 * Context: may sleep, while the node is joining; killable.
 * Return: 0, -ENOTCONN, -ENODEV or -EINTR.
 */
int lite_cluster_await_ready(struct lite_cluster *cl)
{
	if (wait_event_killable_timeout(cl->suspects,
					READ_ONCE(cl->state) !=
						LITE_NODE_JOINING,
					LITE_PATIENCE) < 0)
		return -EINTR;
	return lite_cluster_ready(cl);
}

/* Of a certain node, 0: of any, but not one of our own, nor @but. */
static bool lite_conn_is_of(const struct lite_conn *conn, u32 node,
			    const struct lite_conn *but)
{
	return conn->from.node && (!node || conn->from.node == node) &&
	       conn != but && !conn->self;
}

/* One end of a connection of a node, ourselves, to itself. */
static bool lite_conn_is_end(const struct lite_conn *conn, u32 node,
			     const struct lite_conn *self)
{
	return conn->self && conn->session >= self->session &&
	       conn->session <= self->other_end;
}

/*
 * Fence those that are not fenced yet, of sessions that have begun by now: later
 * ones are no matter of the caller's, or this would never end where a peer
 * connects again as fast as it is fenced.
 */
static int lite_conns_fence(struct lite_cluster *cl,
			    bool (*match)(const struct lite_conn *conn, u32 node,
					  const struct lite_conn *other),
			    u32 node, const struct lite_conn *other)
{
	struct lite_fabric *fab = cl->fab;
	u64 last = atomic64_read(&fab->sessions);
	struct lite_conn *conn, *found;
	int err = 0;

	/* All come to their ends at the same time. */
	spin_lock(&fab->conns_lock);
	list_for_each_entry(conn, &fab->conns, list) {
		if (conn->session <= last && match(conn, node, other))
			lite_conn_end(conn, LITE_END_FENCE, 0, -EHOSTDOWN);
	}
	spin_unlock(&fab->conns_lock);
	do {
		found = NULL;
		spin_lock(&fab->conns_lock);
		list_for_each_entry(conn, &fab->conns, list) {
			if (conn->session > last || !match(conn, node, other))
				continue;
			if (completion_done(&conn->fenced)) {
				if (READ_ONCE(conn->unfenced))
					err = -EIO;
			} else if (kref_get_unless_zero(&conn->ref)) {
				found = conn;
				break;
			}
		}
		spin_unlock(&fab->conns_lock);
		if (found) {
			err = lite_conn_fence(found, -EHOSTDOWN) ?: err;
			lite_conn_put(found);
		}
	} while (found);
	return err;
}

/**
 * lite_cluster_fence - make sure that a node cannot reach our memory
 * @cl: cluster
 * @node: its id; strangers cannot anyway, and what we do in our connection to
 *	ourselves is nobody else's matter: lite_cluster_fence_self()
 * @but: spare this connection of it, in which nothing is under way; or NULL
 *
 * It may connect again, as another session.
 *
 * Context: may sleep; not by a poster.
 * Return: as lite_conn_fence().
 */
int lite_cluster_fence(struct lite_cluster *cl, u32 node,
		       const struct lite_conn *but)
{
	/*
	 * All of them: an old one may be dying, and not fenced yet; a new one
	 * is in use at the responder before it is UP at the initiator.
	 */
	return node ? lite_conns_fence(cl, lite_conn_is_of, node, but) : 0;
}

/**
 * lite_cluster_fence_all - make sure that no other node can reach our memory
 * @cl: cluster
 * @but: spare this connection; or NULL
 *
 * Context: may sleep; not by a poster.
 * Return: as lite_conn_fence().
 */
int lite_cluster_fence_all(struct lite_cluster *cl,
			   const struct lite_conn *but)
{
	return lite_conns_fence(cl, lite_conn_is_of, 0, but);
}

/**
 * lite_cluster_fence_self - make sure that nothing is under way to ourselves
 * @cl: cluster
 * @self: connection to ourselves that an operation has failed in; the caller has
 *	a reference, but does not hold it live
 *
 * Both ends: that which we posted at fails first, and the other may have what
 * was sent before it yet. A connection that was made since is not concerned.
 *
 * Context: may sleep; not by a poster.
 */
void lite_cluster_fence_self(struct lite_cluster *cl,
			     const struct lite_conn *self)
{
	lite_conns_fence(cl, lite_conn_is_end, self->from.node, self);
}

/**
 * lite_cluster_flush - wait until what has completed is in a node's memory
 * @cl: cluster
 * @node: its id; of this node there is nothing to do
 *
 * Context: may sleep; waiting for a suspect is killable.
 * Return: 0, also of a node that is down, and of one that is none; -EHOSTDOWN,
 * -ETIMEDOUT: its sessions break; -EINTR.
 */
int lite_cluster_flush(struct lite_cluster *cl, u32 node)
{
	struct lite_peer *peer = lite_peer_find(cl, node);
	int tries = 0;
	int err = 0;

	if (!peer)
		return 0;
	do {
		struct lite_conn *conn = lite_peer_conn_get(peer);

		if (conn && lite_conn_tryget(conn)) {
			err = lite_conn_flush(conn);
			lite_conn_put_live(conn);
		} else {
			err = -EHOSTDOWN;
		}
		if (conn)
			lite_conn_put(conn);
		if (!err)
			break;
		if (!lite_peer_is_live(peer))
			err = 0;
		else if (lite_cluster_await(cl, node) == -EINTR)
			err = -EINTR;
	} while ((err == -EHOSTDOWN || err == -ETIMEDOUT) &&
		 ++tries < LITE_PATIENT_TRIES);
	lite_peer_put(peer);
	return err;
}

/**
 * lite_cluster_is_suspect - is it worth while to wait for a node?
 * @cl: cluster
 * @node: its id
 *
 * Context: any.
 */
bool lite_cluster_is_suspect(struct lite_cluster *cl, u32 node)
{
	struct lite_peer *peer = lite_peer_find(cl, node);
	bool suspect = peer && lite_peer_is_suspect(peer);

	if (peer)
		lite_peer_put(peer);
	return suspect;
}

/**
 * lite_cluster_await - wait while a node is suspect
 * @cl: cluster
 * @node: its id
 *
 * Context: may sleep; killable.
 * Return: 0: it is up, or this node; -EHOSTUNREACH: no such member; -EHOSTDOWN;
 * -EINTR.
 */
int lite_cluster_await(struct lite_cluster *cl, u32 node)
{
	return lite_cluster_await_for(cl, node, LITE_PATIENCE);
}

/**
 * lite_cluster_await_for - likewise, but not longer than that
 * @cl: cluster
 * @node: its id
 * @timeout: jiffies
 *
 * Context: may sleep; killable.
 * Return: as lite_cluster_await().
 */
int lite_cluster_await_for(struct lite_cluster *cl, u32 node,
			   unsigned long timeout)
{
	struct lite_peer *peer;
	int err;

	if (node == lite_cluster_id(cl))
		return 0;
	peer = lite_peer_find(cl, node);
	if (!peer)
		return -EHOSTUNREACH;
	err = lite_peer_await_for(peer, min(cl->dead, timeout));
	lite_peer_put(peer);
	return err;
}

/**
 * lite_cluster_call - call the kernel of a node
 * @cl: cluster
 * @node: its id; our own: the handler runs here and now
 * @d: what to call
 *
 * Context: may sleep.
 * Return: as lite_rpc_call(), or -EHOSTUNREACH: no such member; -EHOSTDOWN.
 */
int lite_cluster_call(struct lite_cluster *cl, u32 node,
		      struct lite_call_desc *d)
{
	struct lite_conn *conn;
	struct lite_peer *peer;
	int err;

	if (node == lite_cluster_id(cl))
		return lite_rpc_call_local(cl->rpc, d);
	peer = lite_peer_find(cl, node);
	if (!peer)
		return -EHOSTUNREACH;
	conn = lite_peer_conn_get(peer);
	if (conn) {
		err = lite_rpc_call(conn, d);
		lite_conn_put(conn);
	} else {
		err = READ_ONCE(peer->left) ? -EHOSTUNREACH : -EHOSTDOWN;
	}
	lite_peer_put(peer);
	return err;
}

/**
 * lite_cluster_call_patiently - call the kernel of a node, also if it is suspect
 * @cl: cluster
 * @node: its id
 * @d: what to call; may be called twice
 *
 * Context: may sleep; waiting for a suspect is killable.
 * Return: as lite_cluster_call(); -EINTR.
 */
int lite_cluster_call_patiently(struct lite_cluster *cl, u32 node,
				struct lite_call_desc *d)
{
	int tries = 0;
	int err, up;

	for (;;) {
		err = lite_cluster_call(cl, node, d);
		if (err != -EHOSTDOWN || ++tries == LITE_PATIENT_TRIES)
			return err;
		up = lite_cluster_await(cl, node);
		if (up)
			return up;
	}
}

/**
 * lite_cluster_call_once - likewise, for what must not be done twice
 * @cl: cluster
 * @node: its id
 * @d: what to call
 *
 * Waits for the session of a suspect, but not for another one when that has
 * broken and the node may have got the call.
 *
 * Context: may sleep; waiting for a suspect is killable.
 * Return: as lite_cluster_call(); -EINTR.
 */
int lite_cluster_call_once(struct lite_cluster *cl, u32 node,
			   struct lite_call_desc *d)
{
	int tries = 0;
	int err;

	do {
		d->sent = false;
		err = lite_cluster_await(cl, node);
		if (!err || err == -EHOSTDOWN)
			err = lite_cluster_call(cl, node, d);
	} while (err == -EHOSTDOWN && !d->sent &&
		 lite_cluster_is_live(cl, node) &&
		 ++tries < LITE_PATIENT_TRIES);
	return err;
}
