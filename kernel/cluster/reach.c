// SPDX-License-Identifier: GPL-2.0
/*
 * Nodes by their ids, for the layers above: look up state, wait for, call,
 * fence.
 *
 * Sessions come and go meanwhile: a node's state is as of a moment ago. A call
 * belongs to the session that it was made in and ends with it.
 */
#include <linux/slab.h>

#include "cluster.h"

/* Sessions in which a call or flush is tried. */
#define LITE_PATIENT_TRIES 3
/* Handlers wait for suspects, too, while their callers wait for them. */
#define LITE_PATIENCE (10UL * HZ)
/* Nodes that lite_cluster_call_all() calls at the same time. */
#define LITE_CALLED_AT_ONCE 16

/* Is a node up, suspect, or this one? Any context. */
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

/* Are there other members, all down? Then this node may be the isolated one. */
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
 * lite_cluster_life_left - how long to wait for one life of a node
 * @cl: cluster
 * @node: its id
 * @incarnation: that life
 * @patience: jiffies since its last sign of life, after which it is given up
 *
 * Context: may sleep.
 * Return: jiffies; 0: that life is over, or given up; MAX_JIFFY_OFFSET: it is
 * not down.
 */
unsigned long lite_cluster_life_left(struct lite_cluster *cl, u32 node,
				     u64 incarnation, unsigned long patience)
{
	unsigned long left = MAX_JIFFY_OFFSET;
	struct lite_peer *peer;

	mutex_lock(&cl->lock);
	peer = xa_load(&cl->peers, node);
	/* A life newer than the one we know is about to be published. */
	if (!peer || peer->incarnation > incarnation ||
	    (peer->left && peer->incarnation == incarnation))
		left = 0;
	else if (peer->incarnation == incarnation && !lite_peer_is_live(peer))
		left = time_before(jiffies, peer->heard + patience) ?
			       peer->heard + patience - jiffies : 0;
	mutex_unlock(&cl->lock);
	return left;
}

/**
 * lite_cluster_session - the present session with another node
 * @cl: cluster
 * @node: its id
 * @incarnation: set to that of the node, if there is a session
 *
 * Context: any process.
 * Return: its number; 0: none, or @node is this node.
 */
u64 lite_cluster_session(struct lite_cluster *cl, u32 node, u64 *incarnation)
{
	struct lite_peer *peer = lite_peer_find(cl, node);
	struct lite_conn *conn = peer ? lite_peer_conn_get(peer) : NULL;
	u64 session = 0;

	if (conn) {
		session = conn->session;
		*incarnation = conn->from.incarnation;
		lite_conn_put(conn);
	}
	if (peer)
		lite_peer_put(peer);
	return session;
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
 * lite_cluster_await_session - wait until a caller's connection is its session
 * @cl: cluster
 * @conn: the caller's. The responder uses a session before the initiator does,
 *	so its node may not be up here yet
 *
 * Context: may sleep, for a moment.
 * Return: 0; -EHOSTDOWN: the connection is dying, or does not become a session.
 */
int lite_cluster_await_session(struct lite_cluster *cl, struct lite_conn *conn)
{
	wait_event_timeout(cl->suspects,
			   lite_conn_is_session(cl, conn) ||
				   lite_conn_is_dead(conn),
			   HZ);
	return lite_conn_is_session(cl, conn) ? 0 : -EHOSTDOWN;
}

/*
 * lite_cluster_ready() for a peer's request: a joining node is up for others
 * before it is UP itself. May sleep; killable. 0, -ENOTCONN, -ENODEV or -EINTR.
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

/* Is this a connection of @node (0: of any other node), and not @but? */
static bool lite_conn_is_of(const struct lite_conn *conn, u32 node,
			    const struct lite_conn *but)
{
	return conn->from.node && (!node || conn->from.node == node) &&
	       conn != but && !conn->self;
}

/* Is this one end of the connection to ourselves that @self is an end of? */
static bool lite_conn_is_end(const struct lite_conn *conn, u32 node,
			     const struct lite_conn *self)
{
	return conn->self && conn->session >= self->session &&
	       conn->session <= self->other_end;
}

/*
 * Fence the matching connections begun by now, not later ones: a peer could
 * reconnect as fast as it is fenced.
 */
static int lite_conns_fence(struct lite_cluster *cl,
			    bool (*match)(const struct lite_conn *conn,
					  u32 node,
					  const struct lite_conn *other),
			    u32 node, const struct lite_conn *other)
{
	struct lite_fabric *fab = cl->fab;
	u64 last = atomic64_read(&fab->sessions);
	struct lite_conn *conn, *found;
	int err = 0;

	/* Kill all first, to end them in parallel. */
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
 * @node: its id. 0 (guests) and this node are not fenced; for the latter see
 *	lite_cluster_fence_self()
 * @but: spare this connection of it, in which nothing is in flight; or NULL
 *
 * The node may connect again, with another session.
 *
 * Context: may sleep; not by a poster.
 * Return: as lite_conn_fence().
 */
int lite_cluster_fence(struct lite_cluster *cl, u32 node,
		       const struct lite_conn *but)
{
	/*
	 * All connections, not just the session: an old one may be dying and
	 * not fenced yet, and the responder uses a new one before the initiator
	 * does.
	 */
	return node ? lite_conns_fence(cl, lite_conn_is_of, node, but) : 0;
}

/* lite_cluster_fence() for all other nodes; @but is spared, or NULL. */
int lite_cluster_fence_all(struct lite_cluster *cl,
			   const struct lite_conn *but)
{
	return lite_conns_fence(cl, lite_conn_is_of, 0, but);
}

/**
 * lite_cluster_fence_self - end all operations in flight to ourselves
 * @cl: cluster
 * @self: connection to ourselves in which an operation has failed; the caller
 *	has a reference, but does not hold it live
 *
 * Fences both ends: the other one may still process what was sent. Connections
 * made since are not affected.
 *
 * Context: may sleep; not by a poster.
 */
void lite_cluster_fence_self(struct lite_cluster *cl,
			     const struct lite_conn *self)
{
	lite_conns_fence(cl, lite_conn_is_end, self->from.node, self);
}

/**
 * lite_cluster_flush - wait until completed operations are in a node's memory
 * @cl: cluster
 * @node: its id; nothing to do for this node
 *
 * Context: may sleep; waiting for a suspect is killable.
 * Return: 0, also if the node is down or not a member; -EHOSTDOWN, -ETIMEDOUT:
 * its sessions keep breaking; -EINTR.
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

/* Is a node suspect, so that waiting for it may help? Context: any. */
bool lite_cluster_is_suspect(struct lite_cluster *cl, u32 node)
{
	struct lite_peer *peer = lite_peer_find(cl, node);
	bool suspect = peer && lite_peer_is_suspect(peer);

	if (peer)
		lite_peer_put(peer);
	return suspect;
}

/* lite_cluster_await_for() with the default time-out. */
int lite_cluster_await(struct lite_cluster *cl, u32 node)
{
	return lite_cluster_await_for(cl, node, LITE_PATIENCE);
}

/**
 * lite_cluster_await_for - wait while a node is suspect
 * @cl: cluster
 * @node: its id
 * @timeout: jiffies; cl->dead at most
 *
 * Context: may sleep; killable.
 * Return: 0: it is up, or this node; -EHOSTUNREACH: no such member; -EHOSTDOWN;
 * -EINTR.
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
 * @node: its id; for our own the handler runs in this thread
 * @d: what to call
 *
 * Context: may sleep.
 * Return: as lite_kcall(); -EHOSTUNREACH: no such member, or it has left;
 * -EHOSTDOWN: not up.
 */
int lite_cluster_call(struct lite_cluster *cl, u32 node,
		      struct lite_call_desc *d)
{
	struct lite_conn *conn;
	struct lite_peer *peer;
	int err;

	if (node == lite_cluster_id(cl))
		return lite_kcall_local(cl->rpc, d);
	peer = lite_peer_find(cl, node);
	if (!peer)
		return -EHOSTUNREACH;
	conn = lite_peer_conn_get(peer);
	if (conn) {
		err = lite_kcall(conn, d);
		lite_conn_put(conn);
	} else {
		err = READ_ONCE(peer->left) ? -EHOSTUNREACH : -EHOSTDOWN;
	}
	lite_peer_put(peer);
	return err;
}

/**
 * lite_cluster_call_patiently - call a node's kernel, waiting for a suspect
 * @cl: cluster
 * @node: its id
 * @d: what to call; may be served more than once
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
 * lite_cluster_call_once - call a node's kernel, waiting for a suspect, once
 * @cl: cluster
 * @node: its id
 * @d: what to call; served at most once
 *
 * Waits for the session of a suspect, but does not retry if the session breaks
 * after the node may have got the call.
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

/* One of the calls that lite_cluster_call_all() has in flight. */
struct lite_call_one {
	u32 node;
	int err;
	struct lite_conn *conn;
	struct lite_call_desc d;
	u8 reply[LITE_CALL_ALL_REPLY_MAX];
};

static void lite_call_one_begin(struct lite_cluster *cl,
				struct lite_call_one *one)
{
	struct lite_peer *peer = lite_peer_find(cl, one->node);

	one->conn = peer ? lite_peer_conn_get(peer) : NULL;
	one->err = one->conn ? lite_kcall_begin(one->conn, &one->d) :
			       -EHOSTDOWN;
	if (peer)
		lite_peer_put(peer);
}

static void lite_call_one_end(struct lite_call_one *one)
{
	if (!one->err)
		one->err = lite_kcall_end(one->conn, &one->d);
	if (one->conn)
		lite_conn_put(one->conn);
}

/**
 * lite_cluster_call_all - call all other live members, many at a time
 * @cl: cluster
 * @d: what to call; its reply has at most LITE_CALL_ALL_REPLY_MAX bytes
 * @done: told the result of each call, in order of ids, while none is in
 *	flight, so it may make calls; anything but 0 ends it all. NULL: nothing
 * @ctx: for @done
 *
 * Context: may sleep.
 * Return: 0, or what @done returned.
 */
int lite_cluster_call_all(struct lite_cluster *cl,
			  const struct lite_call_desc *d, lite_call_done done,
			  void *ctx)
{
	struct lite_call_one *all, *one;
	u32 node = 0;
	int err = 0;
	u32 i, n;

	all = kmalloc_array(LITE_CALLED_AT_ONCE, sizeof(*all),
			    GFP_KERNEL | __GFP_NOFAIL);
	do {
		n = 0;
		while (n < LITE_CALLED_AT_ONCE &&
		       (node = lite_cluster_next(cl, node))) {
			if (node == lite_cluster_id(cl))
				continue;
			one = &all[n++];
			*one = (struct lite_call_one){ .node = node, .d = *d };
			one->d.reply = one->reply;
			/* Waiting with other slots held could deadlock. */
			one->d.no_wait = true;
			lite_call_one_begin(cl, one);
		}
		for (i = 0; i < n; i++)
			lite_call_one_end(&all[i]);
		for (i = 0; i < n && !err; i++) {
			one = &all[i];
			one->d.no_wait = false;
			if (one->err == -EAGAIN)
				one->err = lite_cluster_call(cl, one->node,
							     &one->d);
			if (done)
				err = done(ctx, one->node, one->err,
					   one->reply);
		}
	} while (node && !err);
	kfree(all);
	return err;
}
