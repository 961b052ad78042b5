// SPDX-License-Identifier: GPL-2.0
/*
 * From a connection to a session: admission, and the exchange of ATTACH. The responder uses the
 * session before it replies to ATTACH, the initiator when it has the reply.
 *
 * Two nodes may connect to each other at the same time, and requests may arrive late. Both must
 * agree on one connection: the node with the lower id decides, at ATTACH. While its
 * lite_peer.attaching is set, it has chosen its own. Documentation/wire-protocol.rst, ATTACH.
 */
#include "cluster.h"

#define LITE_CONNECT_TIMEOUT (5 * HZ)
/* The CM repeats a lost request after 4 s, too late for a suspect: time out and start over. */
#define LITE_CONNECT_TIMEOUT_MIN (HZ / 4)
#define LITE_CONNECT_TIMEOUT_FIRST HZ
#define LITE_CONNECT_TRIES 6
#define LITE_SELF_TRIES 3

/*
 * May the sender of @conn (conn->from), which knows the secret, connect? If it has begun a new
 * life, ends the session of the earlier one. May sleep. Return: 0; -ENOTCONN: this node is in no
 * cluster; -EEXIST: the sender claims this node's id; -ESTALE: the sender's life is over.
 */
int lite_cluster_admit(struct lite_cluster *cl, struct lite_conn *conn)
{
	const struct lite_ident *from = &conn->from;
	struct lite_conn *old = NULL;
	struct lite_peer *peer;
	int err = 0;

	mutex_lock(&cl->lock);
	if (!lite_cluster_id(cl) || !lite_cluster_connects(cl)) {
		err = -ENOTCONN;
	} else if (!from->node) {
		/* A guest: it will ask to join. */
	} else if (from->node == lite_cluster_id(cl)) {
		/* No other node may pass for this one: lite_conn.self is never fenced. */
		if (!conn->self || from->incarnation != cl->fab->self.incarnation)
			err = -EEXIST;
	} else if (conn->self) {
		/* This node began the connection in its last life. */
		err = -ESTALE;
	} else {
		peer = xa_load(&cl->peers, from->node);
		if (peer && (from->incarnation < peer->incarnation ||
			     (from->incarnation == peer->incarnation && lite_peer_has_left(peer))))
			err = -ESTALE;
		else if (peer && from->incarnation > peer->incarnation)
			old = lite_peer_conn_get(peer);
	}
	mutex_unlock(&cl->lock);

	lite_conn_replace(old, true);
	return err;
}

static void lite_attach_fill(struct lite_cluster *cl, struct lite_conn *conn,
			     struct lite_wire_attach *a)
{
	struct lite_fabric *fab = cl->fab;
	int i;

	memset(a, 0, sizeof(*a));
	a->addr = fab->addr;
	a->rkey = cpu_to_le32(fab->rkey);
	a->requests = cpu_to_le64(conn->slots_in.requests);
	a->replies = cpu_to_le64(conn->slots_in.replies);
	a->node = cpu_to_le16(fab->self.node);
	a->incarnation = cpu_to_le64(fab->self.incarnation);
	a->nqps = conn->nqps - 1;
	for (i = 1; i < conn->nqps; i++) {
		a->qp[i - 1].qpn = cpu_to_le32(conn->qp[i].qpn);
		a->qp[i - 1].psn = cpu_to_le32(conn->qp[i].psn);
	}
}

int lite_serve_attach(void *priv, struct lite_conn *conn, u16 call, const void *req, void *reply)
{
	struct lite_cluster *cl = priv;
	const struct lite_wire_attach *a = req;
	int err;

	if (!conn || !conn->passive || le16_to_cpu(a->node) != conn->from.node ||
	    le64_to_cpu(a->incarnation) != conn->from.incarnation ||
	    READ_ONCE(conn->state) != LITE_CONN_NEW)
		return -EBADMSG;
	if (!lite_addr_ok(&a->addr))
		return -EINVAL;
	conn->rkey = le32_to_cpu(a->rkey);
	conn->requests = le64_to_cpu(a->requests);
	conn->replies = le64_to_cpu(a->replies);
	lite_attach_fill(cl, conn, reply);
	err = lite_conn_add_qps(conn, a->qp, a->nqps);
	if (err)
		return err;

	/* Connections of guests, and of this node to itself, are not published. */
	if (!conn->from.node || conn->self)
		err = lite_conn_set_up(conn) ? 0 : -EHOSTDOWN;
	else
		err = lite_peer_publish(cl, conn, &a->addr) ? 0 : -EALREADY;
	return err ?: (int)sizeof(struct lite_wire_attach);
}

/*
 * Exchange ATTACH, as the initiator, and connect all queue pairs of a NEW connection. May sleep;
 * killable. Return: 0 or a negative errno.
 */
int lite_cluster_attach(struct lite_cluster *cl, struct lite_conn *conn)
{
	struct lite_wire_attach mine, theirs;
	struct lite_call_desc d = {
		LITE_REQUEST(LITE_CALL_ATTACH, mine),
		LITE_REPLY(theirs),
		.timeout = LITE_CONNECT_TIMEOUT,
		.killable = true,
	};
	int err;

	lite_attach_fill(cl, conn, &mine);
	err = lite_kcall(conn, &d) ?: lite_conn_add_qps(conn, theirs.qp, theirs.nqps);
	if (!err)
		lite_conn_ready(conn);
	return err;
}

/*
 * Choose @conn, which this node made and the peer accepted, if the peer has no session. The peer
 * may use it before this node does, so earlier connections are fenced: what came in them must not
 * take effect any more. May sleep. Return: is it chosen? lite_peer_attached() must follow.
 */
static bool lite_peer_may_attach(struct lite_peer *peer, const struct lite_conn *conn)
{
	struct lite_cluster *cl = peer->cl;
	struct lite_conn *old = NULL;
	bool ok;

	do {
		lite_conn_replace(old, true);
		mutex_lock(&cl->lock);
		/* Leaving ends only the connections that are listed by then: make no more. */
		ok = lite_cluster_connects(cl) && !lite_peer_is_up(peer);
		old = ok ? lite_peer_unfenced(peer, conn) : NULL;
		WRITE_ONCE(peer->attaching, ok && !old); /* see lite_cluster_may_act() */
		/* Accepting is a sign of life, but must not prolong the wait for a suspect. */
		if (peer->attaching && peer->wait == LITE_PEER_DOWN)
			peer->heard = jiffies;
		mutex_unlock(&cl->lock);
	} while (old);
	return ok;
}

static void lite_peer_attached(struct lite_peer *peer)
{
	struct lite_cluster *cl = peer->cl;

	mutex_lock(&cl->lock);
	WRITE_ONCE(peer->attaching, false);
	mutex_unlock(&cl->lock);
	/* lite_cluster_may_act() has taken it for alive meanwhile: have its callers look again. */
	if (!lite_peer_is_live(peer))
		cl->ops->members_changed(cl->priv);
}

static int lite_peer_connect(struct lite_peer *peer, const struct lite_wire_addr *addr,
			     unsigned long timeout)
{
	struct lite_cluster *cl = peer->cl;
	struct lite_conn *conn;
	int err;

	err = lite_conn_connect(cl->fab, addr, timeout, &conn);
	if (err)
		return err;
	/* Another node, or a new life of the peer, may have the address: it joins by itself. */
	if (conn->from.node != peer->id || conn->from.incarnation != READ_ONCE(peer->incarnation))
		err = -ENXIO;
	if (!err && !lite_peer_may_attach(peer, conn))
		err = -EALREADY;
	if (!err) {
		err = lite_cluster_attach(cl, conn);
		if (!err && !lite_peer_publish(cl, conn, addr))
			err = -EALREADY;
		lite_peer_attached(peer);
	}
	if (err)
		lite_conn_kill(conn, err);
	lite_conn_put(conn);
	return err;
}

/* Connect to a peer that is not up. Queued by the monitor and by joining. */
void lite_peer_connect_work(struct work_struct *work)
{
	struct lite_peer *peer = container_of(work, struct lite_peer, connect_work);
	struct lite_cluster *cl = peer->cl;
	struct lite_wire_addr addr;
	unsigned long backoff, timeout;
	int err;

	mutex_lock(&cl->lock);
	/* A peer with this node's address was this node itself, with another id. */
	if (!lite_cluster_connects(cl) || lite_peer_is_up(peer) ||
	    peer->life != LITE_PEER_MEMBER || lite_addr_equal(&peer->addr, &cl->fab->addr)) {
		mutex_unlock(&cl->lock);
		return;
	}
	addr = peer->addr;
	/* The time-out doubles with each try, as the back-off does. */
	timeout = clamp_t(unsigned long, cl->dead / LITE_CONNECT_TRIES, LITE_CONNECT_TIMEOUT_MIN,
			  LITE_CONNECT_TIMEOUT_FIRST);
	timeout = clamp_t(unsigned long, peer->backoff, timeout, LITE_CONNECT_TIMEOUT);
	if (peer->wait == LITE_PEER_DOWN)
		timeout = LITE_CONNECT_TIMEOUT;
	mutex_unlock(&cl->lock);

	err = lite_peer_connect(peer, &addr, timeout);

	mutex_lock(&cl->lock);
	if (!lite_peer_is_up(peer) && !lite_peer_has_left(peer)) {
		backoff = clamp_t(unsigned long, peer->backoff * 2, HZ / 2,
				  err == -ENXIO ? LITE_BACKOFF_MOVED : LITE_BACKOFF_MAX);
		/* A try that timed out has waited long enough; one that was refused backs off. */
		if (err == -ETIMEDOUT && peer->wait != LITE_PEER_DOWN)
			lite_peer_retry(peer, 1);
		else
			lite_peer_retry(peer, backoff);
		peer->backoff = backoff;
	}
	mutex_unlock(&cl->lock);
}

/* The node's connection to itself, held live, or NULL. Any context. */
struct lite_conn *lite_cluster_self_conn_tryget(struct lite_cluster *cl)
{
	struct lite_conn *conn;

	rcu_read_lock();
	conn = rcu_dereference(cl->self->conn);
	if (conn && !lite_conn_tryget(conn))
		conn = NULL;
	rcu_read_unlock();
	return conn;
}

static int lite_self_connect(struct lite_cluster *cl)
{
	struct lite_peer *self = cl->self;
	struct lite_conn *conn;
	int err;

	err = lite_conn_connect(cl->fab, &cl->fab->addr, LITE_CONNECT_TIMEOUT, &conn);
	/* This node has left or is stopped. */
	if (err && lite_cluster_ready(cl))
		return -EHOSTDOWN;
	/* Users are not told why this node cannot reach itself. */
	if (err)
		return err == -ENOMEM ? err : -EIO;
	err = lite_cluster_attach(cl, conn);
	/* Such connections are made one at a time, so the other end's number is at most this. */
	conn->other_end = atomic64_read(&cl->fab->sessions);
	if (!err) {
		mutex_lock(&cl->lock);
		/* The previous connection may still be dying. */
		if (lite_peer_is_up(self) || cl->state == LITE_NODE_STOPPED ||
		    !lite_conn_set_up(conn)) {
			err = -EHOSTDOWN;
		} else {
			refcount_inc(&self->ref);
			conn->peer = self;
			rcu_assign_pointer(self->conn, conn);
		}
		mutex_unlock(&cl->lock);
	}
	if (err)
		lite_conn_kill(conn, err);
	lite_conn_put(conn);
	return err;
}

void lite_self_connect_work(struct work_struct *work)
{
	struct lite_cluster *cl = container_of(work, struct lite_cluster, self_work);
	struct lite_conn *conn = lite_cluster_self_conn_tryget(cl);

	if (conn)
		lite_conn_put_live(conn);
	WRITE_ONCE(cl->self_err, conn ? 0 : lite_self_connect(cl));
	smp_store_release(&cl->self_tries, cl->self_tries + 1); /* after the error */
	lite_crowd_wake(&cl->self_made);
}

/*
 * The node's connection to itself, made on first use: remote atomics are atomic towards each other
 * only if the device executes all of them, including those on local memory. A work item makes it,
 * as other threads wait, too, and the caller may get no processor for long. May sleep; killable.
 * Return: the connection, held live, or ERR_PTR: -ENOMEM, -EINTR, -EHOSTDOWN, -EIO.
 */
struct lite_conn *lite_cluster_self_conn(struct lite_cluster *cl)
{
	struct lite_conn *conn;
	unsigned long tries;
	int i, err;

	/* Try again if the connection ended before this thread could hold it. */
	for (i = 0; i < LITE_SELF_TRIES; i++) {
		tries = READ_ONCE(cl->self_tries);
		conn = lite_cluster_self_conn_tryget(cl);
		if (conn)
			return conn;
		queue_work(system_unbound_wq, &cl->self_work);
		if (lite_crowd_wait_timeout(&cl->self_made, READ_ONCE(cl->self_tries) != tries,
					    MAX_SCHEDULE_TIMEOUT) < 0)
			return ERR_PTR(-EINTR);
		smp_rmb(); /* with lite_self_connect_work() */
		err = READ_ONCE(cl->self_err);
		if (err)
			return ERR_PTR(err);
	}
	return lite_cluster_self_conn_tryget(cl) ?: ERR_PTR(-EHOSTDOWN);
}
