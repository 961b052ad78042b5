// SPDX-License-Identifier: GPL-2.0
/*
 * Nodes by their ids, for the layers above: look up state, wait for, call, fence.
 *
 * Sessions come and go meanwhile: a state that is returned may be out of date. A call belongs to
 * the session in which it was made, and ends with it.
 */
#include <linux/slab.h>

#include "cluster.h"

/* Number of sessions in which a call or flush is tried. */
#define LITE_PATIENT_TRIES 3
/* Number of nodes that lite_cluster_call_all() calls at the same time. */
#define LITE_CALLED_AT_ONCE 16
/* Minimum bytes for a reply: all calls then need more than a page, so kvmalloc() can vmalloc(). */
#define LITE_CALLED_REPLY 256U

/* Is a node up, suspect, or this one? Any context. */
bool lite_cluster_is_live(struct lite_cluster *cl, u32 node)
{
	return node == lite_cluster_id(cl) ||
	       lite_peer_look(cl, node, lite_peer_is_live(__peer), false);
}

/*
 * Is a node live, or may it use a connection that is not its session here yet? A responder uses a
 * session before the initiator, this node, does. Any context.
 */
bool lite_cluster_may_act(struct lite_cluster *cl, u32 node)
{
	bool attaching = lite_peer_look(cl, node, READ_ONCE(__peer->attaching), false);

	smp_rmb(); /* with lite_peer_connect(): up before it ceases to attach */
	return attaching || lite_cluster_is_live(cl, node);
}

/* The known life of a member; 0: not a member, or it has left. Any context. */
u64 lite_cluster_incarnation(struct lite_cluster *cl, u32 node)
{
	if (node == lite_cluster_id(cl))
		return cl->fab->self.incarnation;
	return lite_peer_look(cl, node, READ_ONCE(__peer->life) == LITE_PEER_MEMBER ?
					READ_ONCE(__peer->incarnation) : 0, 0);
}

/* Are there other members, all down? Then this node may be the isolated one. */
bool lite_cluster_is_cut_off(struct lite_cluster *cl)
{
	struct lite_peer *peer;
	bool cut_off = false;
	unsigned long id;

	rcu_read_lock();
	xa_for_each(&cl->peers, id, peer) {
		if (READ_ONCE(peer->life) != LITE_PEER_MEMBER)
			continue;
		cut_off = !lite_peer_is_live(peer);
		if (!cut_off)
			break;
	}
	rcu_read_unlock();
	return cut_off;
}

/* Is a life over: the member has left, or is in a newer one? cl->lock is held. */
static bool lite_peer_is_past(struct lite_peer *peer, u64 incarnation)
{
	return peer->incarnation > incarnation ||
	       (lite_peer_has_left(peer) && peer->incarnation == incarnation);
}

/* Is a life known to be over? If newer than the known one, it is being published. May sleep. */
bool lite_cluster_life_is_over(struct lite_cluster *cl, u32 node, u64 incarnation)
{
	struct lite_peer *peer;
	bool over;

	mutex_lock(&cl->lock);
	peer = xa_load(&cl->peers, node);
	over = peer && lite_peer_is_past(peer, incarnation);
	mutex_unlock(&cl->lock);
	return over;
}

/*
 * How long to wait for one life of a node, which is given up @patience jiffies after its last sign
 * of life. May sleep. Return: jiffies; 0: over, or given up; MAX_JIFFY_OFFSET: it is not down.
 */
unsigned long lite_cluster_life_left(struct lite_cluster *cl, u32 node,
				     u64 incarnation, unsigned long patience)
{
	unsigned long left = MAX_JIFFY_OFFSET;
	struct lite_peer *peer;

	mutex_lock(&cl->lock);
	peer = xa_load(&cl->peers, node);
	if (!peer || lite_peer_is_past(peer, incarnation))
		left = 0;
	else if (peer->incarnation == incarnation && !lite_peer_is_live(peer))
		/* While this node attaches to it, the peer may be at work. */
		left = peer->attaching ? cl->heartbeat :
					 lite_jiffies_left(peer->heard + patience);
	mutex_unlock(&cl->lock);
	return left;
}

/*
 * The number of the session with another node; 0: none, or it is this node. @incarnation is set to
 * that node's. Context: process, also with spinlocks held.
 */
u64 lite_cluster_session(struct lite_cluster *cl, u32 node, u64 *incarnation)
{
	struct lite_conn *conn;
	struct lite_peer *peer;
	u64 session = 0;

	/* A connection is freed a grace period after conn_down, which ends the session. */
	rcu_read_lock();
	peer = xa_load(&cl->peers, node);
	conn = peer ? rcu_dereference(peer->conn) : NULL;
	if (conn) {
		session = conn->session;
		*incarnation = conn->from.incarnation;
	}
	rcu_read_unlock();
	return session;
}

/*
 * For handlers: wait until @conn, in which a call came, is the session here, too. The responder
 * uses a session before the initiator does. May sleep, up to a second. Return: 0; -EHOSTDOWN: the
 * connection is dying, or does not become a session.
 */
int lite_cluster_await_session(struct lite_cluster *cl, struct lite_conn *conn)
{
	u32 node = conn->from.node;
	u64 life;

	wait_event_timeout(cl->suspects.wait,
			   lite_cluster_session(cl, node, &life) == conn->session ||
			   lite_conn_is_dead(conn), HZ);
	return lite_cluster_session(cl, node, &life) == conn->session ? 0 : -EHOSTDOWN;
}

/*
 * lite_cluster_ready() for a peer's request: a joining node is up for others before it is UP
 * itself. May sleep; killable. Return: 0, -ENOTCONN, -ENODEV or -EINTR.
 */
int lite_cluster_await_ready(struct lite_cluster *cl)
{
	if (wait_event_killable_timeout(cl->suspects.wait,
					READ_ONCE(cl->state) != LITE_NODE_JOINING,
					LITE_PATIENCE) < 0)
		return -EINTR;
	return lite_cluster_ready(cl);
}

/*
 * With @self, a connection that this node made to itself: is @conn one of its two ends? Without: is
 * it a connection of @node, which may be LITE_ALL_NODES, other than @but?
 */
static bool lite_conn_is_of(const struct lite_conn *conn, u32 node, const struct lite_conn *but,
			    const struct lite_conn *self)
{
	if (self)
		return conn->self && conn->session >= self->session &&
		       conn->session <= self->other_end;
	return conn->from.node && !conn->self && conn != but &&
	       (node == LITE_ALL_NODES || conn->from.node == node);
}

/* Fence the matching connections begun by now: a peer may begin more as fast as they end. */
static int lite_conns_fence(struct lite_cluster *cl, u32 node, const struct lite_conn *but,
			    const struct lite_conn *self)
{
	struct lite_fabric *fab = cl->fab;
	u64 last = atomic64_read(&fab->sessions);
	struct lite_conn *conn = NULL;
	int round, err = 0;

	for (round = 0; round < 2; round++) {
		while ((conn = lite_conn_next(fab, conn))) {
			if (conn->session > last || !lite_conn_is_of(conn, node, but, self))
				continue;
			/* The first round ends all of them, so that they die in parallel. */
			lite_conn_end(conn, LITE_END_FENCE, 0, -EHOSTDOWN);
			if (round)
				err = lite_conn_fence(conn, -EHOSTDOWN) ?: err;
		}
	}
	return err;
}

/*
 * Make sure that node @node (LITE_ALL_NODES: any other) cannot reach this node's memory. Guests (0)
 * and this node are not fenced. @but, if not NULL, is spared: a connection in which nothing is in
 * flight. All other connections are ended, not just the session: an old one may be dying and not
 * fenced yet, and the responder uses a new one before the initiator does. The node may connect
 * again, with another session. May sleep; not by a poster. Return: as lite_conn_fence().
 */
int lite_cluster_fence(struct lite_cluster *cl, u32 node, const struct lite_conn *but)
{
	return lite_conns_fence(cl, node, but, NULL);
}

/*
 * End all operations in flight in @self, a connection of this node to itself in which one has
 * failed. Both ends are fenced: the other one may still process what was sent. The caller has a
 * reference, but does not hold it live. May sleep; not by a poster. Return: as lite_conn_fence().
 */
int lite_cluster_fence_self(struct lite_cluster *cl, const struct lite_conn *self)
{
	return lite_conns_fence(cl, 0, NULL, self);
}

/*
 * Wait until completed operations are in a node's memory. May sleep; waiting for a suspect is
 * killable. Return: 0, also if the node is this one, down or not a member; -EHOSTDOWN, -ETIMEDOUT:
 * its sessions keep breaking; -EINTR.
 */
int lite_cluster_flush(struct lite_cluster *cl, u32 node)
{
	struct lite_conn *conn;
	int tries = 0;
	int err;

	if (node == lite_cluster_id(cl))
		return 0;
	for (;;) {
		conn = lite_cluster_conn_get(cl, node);
		err = -EHOSTDOWN;
		if (conn && lite_conn_tryget(conn)) {
			err = lite_conn_flush(conn);
			lite_conn_put_live(conn);
		}
		if (conn)
			lite_conn_put(conn);
		if (!err || !lite_cluster_is_live(cl, node))
			return 0;
		if ((err != -EHOSTDOWN && err != -ETIMEDOUT) || ++tries == LITE_PATIENT_TRIES)
			return err;
		if (lite_cluster_await_for(cl, node, LITE_PATIENCE) == -EINTR)
			return -EINTR;
	}
}

/* Is a node suspect, so that waiting for it may help? Any context. */
bool lite_cluster_is_suspect(struct lite_cluster *cl, u32 node)
{
	return lite_peer_look(cl, node, lite_peer_is_suspect(__peer), false);
}

/*
 * Wait while a node is suspect, for @timeout jiffies, cl->dead at most. May sleep; killable.
 * Return: 0: it is up, or this node; -EHOSTUNREACH: no such member; -EHOSTDOWN; -EINTR.
 */
int lite_cluster_await_for(struct lite_cluster *cl, u32 node, unsigned long timeout)
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

/*
 * Call the kernel of a node; for this one the handler runs in this thread. May sleep. Return: as
 * lite_kcall(); -EHOSTUNREACH: no such member, or it has left; -EHOSTDOWN: not up.
 */
int lite_cluster_call(struct lite_cluster *cl, u32 node, struct lite_call_desc *d)
{
	struct lite_conn *conn;
	int err;

	if (node == lite_cluster_id(cl)) {
		if (d->life && d->life != cl->fab->self.incarnation)
			return -ESTALE;
		return lite_kcall_local(cl->kcalls, d);
	}
	conn = lite_cluster_conn_get(cl, node);
	if (!conn)
		return lite_cluster_incarnation(cl, node) ? -EHOSTDOWN : -EHOSTUNREACH;
	err = lite_kcall(conn, d);
	lite_conn_put(conn);
	return err;
}

/*
 * Call a node's kernel, waiting for a suspect. d->repeated is set if the node may have got an
 * earlier request; with d->once the call is not repeated then. May sleep; waiting for a suspect is
 * killable. Return: as lite_cluster_call(); -EINTR.
 */
int lite_cluster_call_patiently(struct lite_cluster *cl, u32 node, struct lite_call_desc *d)
{
	int tries = 0;
	int err;

	d->repeated = false;
	for (;;) {
		d->sent = false;
		err = lite_cluster_call(cl, node, d);
		if (err != -EHOSTDOWN || (d->once && d->sent) || ++tries == LITE_PATIENT_TRIES)
			return err;
		d->repeated |= d->sent;
		err = lite_cluster_await_for(cl, node, LITE_PATIENCE);
		if (err)
			return err;
	}
}

/* One of the calls that lite_cluster_call_all() has in flight. */
struct lite_call_one {
	u32 node;
	int err;
	struct lite_conn *conn;
	struct lite_call_desc d;
	u64 reply[];
};

/*
 * Make call @d to all live members with higher ids than @after, many at a time; with @self also to
 * this node. Each call gets a buffer for its reply. @done, if not NULL, gets each result, in order
 * of ids, while no call is in flight, so it may make calls; if it does not return 0, no more
 * follow. May sleep. Return: 0, or what @done returned.
 */
int lite_cluster_call_all(struct lite_cluster *cl, u32 after, bool self,
			  const struct lite_call_desc *d, lite_call_done done, void *ctx)
{
	struct lite_call_one *one;
	const size_t size =
		struct_size(one, reply, DIV_ROUND_UP(max(d->reply_max, LITE_CALLED_REPLY), 8));
	void *all;
	unsigned long deadline;
	u32 node = after;
	bool local;
	int err = 0;
	u32 i, n, at_once = LITE_CALLED_AT_ONCE;

	all = kvmalloc(at_once * size, GFP_KERNEL | __GFP_NOFAIL);
	if (unlikely(!all)) {
		/* Before Linux 6.9, vmalloc() fails if the thread is killed. */
		at_once = 1;
		all = kmalloc(size, GFP_KERNEL | __GFP_NOFAIL);
	}
	do {
		n = 0;
		deadline = jiffies + (d->timeout ?: cl->kcalls->timeout);
		while (n < at_once && (node = lite_cluster_next(cl, node))) {
			local = node == lite_cluster_id(cl);
			if (local && !self)
				continue;
			one = all + n++ * size;
			*one = (struct lite_call_one){ .node = node, .d = *d };
			one->d.reply = one->reply;
			/* One deadline for all: the time-outs of silent members must not add up. */
			one->d.deadline = deadline;
			/* Waiting for a slot with others held could deadlock. */
			one->d.no_wait = true;
			one->conn = lite_cluster_conn_get(cl, node);
			/* A local call is made below, when no call is in flight. */
			one->err = one->conn ? lite_kcall_begin(one->conn, &one->d) :
				   local ? -EAGAIN : -EHOSTDOWN;
		}
		/* First settle all: a slow member must not delay the fence of a stuck one. */
		for (i = 0; i < n; i++) {
			one = all + i * size;
			if (!one->err)
				lite_kcall_settle(&one->d);
		}
		for (i = 0; i < n; i++) {
			one = all + i * size;
			if (!one->err)
				one->err = lite_kcall_end(one->conn, &one->d);
			if (one->conn)
				lite_conn_put(one->conn);
		}
		for (i = 0; i < n && !err; i++) {
			one = all + i * size;
			one->d.no_wait = false;
			one->d.deadline = 0;
			if (one->err == -EAGAIN)
				one->err = lite_cluster_call(cl, one->node, &one->d);
			if (done)
				err = done(ctx, one->node, one->err, one->reply);
		}
	} while (node && !err);
	kvfree(all);
	return err;
}
