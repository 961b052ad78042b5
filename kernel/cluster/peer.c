// SPDX-License-Identifier: GPL-2.0
/*
 * The table of peers, and how a connection becomes a peer's session and stops being it.
 *
 * A peer object is made when its id is first heard of and stays until this node leaves the cluster
 * or stops, so its address and incarnation are known while it is down. If its id was only reserved,
 * it goes when the reservation expires.
 */
#include <linux/sched/mm.h>
#include <linux/slab.h>

#include "cluster.h"

/* Drop a reference to a peer. Any context. */
void lite_peer_put(struct lite_peer *peer)
{
	if (refcount_dec_and_test(&peer->ref))
		kfree_rcu(peer, rcu);
}

/* Look up another member by its id, with a reference; or NULL. Any context. */
struct lite_peer *lite_peer_find(struct lite_cluster *cl, u32 id)
{
	return lite_peer_look(cl, id, refcount_inc_not_zero(&__peer->ref) ? __peer : NULL, NULL);
}

/*
 * Make a peer and enter it into the table, which does not have @id. With the node's own id, the
 * peer stays outside the table. cl->lock is held; may sleep. Return: the peer, which the table
 * holds, or ERR_PTR(-ENOMEM).
 */
struct lite_peer *lite_peer_make(struct lite_cluster *cl, u32 id, u64 incarnation,
				 const struct lite_wire_addr *addr)
{
	struct lite_peer *peer;
	/* No reclaim: it may wait for a fence, which takes cl->lock (memory/unpinned/). */
	unsigned int noreclaim = memalloc_noreclaim_save();
	int err = -ENOMEM;

	peer = kzalloc(sizeof(*peer), GFP_KERNEL);
	if (!peer)
		goto out;
	peer->cl = cl;
	peer->id = id;
	peer->incarnation = incarnation;
	peer->addr = *addr;
	refcount_set(&peer->ref, 1);
	INIT_WORK(&peer->connect_work, lite_peer_connect_work);
	INIT_WORK(&peer->ping_work, lite_peer_ping_work);
	peer->next_try = jiffies;
	err = 0;
	if (id == lite_cluster_id(cl))
		goto out; /* this node: not in the table */
	lockdep_assert_held(&cl->lock);
	err = xa_err(xa_store(&cl->peers, id, peer, GFP_KERNEL));
	if (err)
		kfree(peer);
	else
		lite_stat_inc(cl->fab->stats, LITE_STAT_PEERS);
out:
	memalloc_noreclaim_restore(noreclaim);
	return err ? ERR_PTR(err) : peer;
}

/* Remove a peer without session and running work items from the table. cl->lock is held. */
void lite_peer_drop(struct lite_peer *peer)
{
	lockdep_assert_held(&peer->cl->lock);
	xa_erase(&peer->cl->peers, peer->id);
	lite_stat_dec(peer->cl->fab->stats, LITE_STAT_PEERS);
	lite_peer_put(peer);
}

bool lite_peer_is_up(struct lite_peer *peer)
{
	return rcu_access_pointer(peer->conn);
}

/*
 * Take a snapshot of the first peer with an id of at least @id. For threads of users: neither waits
 * for cl->lock nor delays threads that need it. Return: false: there is none.
 */
bool lite_peer_see(struct lite_cluster *cl, unsigned long id, struct lite_peer_seen *seen)
{
	struct lite_peer *peer;

	xa_lock(&cl->peers);
	peer = xa_find(&cl->peers, &id, ULONG_MAX, XA_PRESENT);
	if (peer) {
		seen->id = peer->id;
		seen->incarnation = peer->incarnation;
		seen->addr = peer->addr;
		seen->life = READ_ONCE(peer->life);
		seen->up = lite_peer_is_up(peer);
		smp_rmb(); /* with lite_cluster_conn_down() */
		if (READ_ONCE(peer->wait) == LITE_PEER_SUSPECT)
			seen->up = true;
	}
	xa_unlock(&cl->peers);
	return peer;
}

/* Connect to a peer without a session after @delay jiffies; 0: soon, with a new back-off. */
void lite_peer_retry(struct lite_peer *peer, unsigned long delay)
{
	struct lite_cluster *cl = peer->cl;

	lockdep_assert_held(&cl->lock);
	/* Both ends of a lost connection try, the lower id first to avoid a collision. */
	if (!delay)
		delay = lite_cluster_id(cl) < peer->id ? 1 : HZ / 4;
	peer->backoff = delay;
	peer->next_try = jiffies + delay;
	if (cl->state != LITE_NODE_STOPPED)
		lite_monitor_within(cl, min(delay, cl->heartbeat));
}

/*
 * Record a peer's incarnation, not older than the known one, and its address. cl->lock is held.
 * Return: has it replaced @old? Then the caller reports @old as lost after dropping cl->lock.
 */
bool lite_peer_renew(struct lite_peer *peer, u64 incarnation,
		     const struct lite_wire_addr *addr, u64 *old)
{
	lockdep_assert_held(&peer->cl->lock);
	*old = peer->incarnation;
	xa_lock(&peer->cl->peers);
	peer->incarnation = incarnation;
	peer->addr = *addr;
	xa_unlock(&peer->cl->peers);
	WRITE_ONCE(peer->life, LITE_PEER_MEMBER);
	return *old != incarnation;
}

/*
 * A life of a peer has announced that it leaves. cl->lock is held. Return: is that news? Then the
 * caller reports the life as lost after dropping cl->lock.
 */
bool lite_peer_leave(struct lite_peer *peer, u64 incarnation)
{
	lockdep_assert_held(&peer->cl->lock);
	if (peer->incarnation != incarnation || lite_peer_has_left(peer))
		return false;
	WRITE_ONCE(peer->life, LITE_PEER_LEFT);
	return true;
}

/* End @conn, if not NULL, and put it; with @wait, wait until its peer is fenced. May sleep. */
void lite_conn_replace(struct lite_conn *conn, bool wait)
{
	if (!conn)
		return;
	lite_conn_end(conn, LITE_END_REPLACED, 0, -EHOSTDOWN);
	if (wait)
		wait_for_completion(&conn->fenced);
	lite_conn_put(conn);
}

/* Is another connection preferred to the attached @conn (connect.c)? Else the caller ends @old. */
static bool lite_peer_prefers(struct lite_peer *peer, struct lite_conn *conn, struct lite_conn *old)
{
	struct lite_cluster *cl = peer->cl;

	lockdep_assert_held(&cl->lock);
	/* This node had no session when it sent ATTACH, so @old is newer. */
	if (!conn->passive)
		return old;
	if (conn->from.incarnation != peer->incarnation || lite_cluster_id(cl) > peer->id)
		return false;
	if (!old || lite_conn_is_dead(old))
		return peer->attaching;
	/* The peer began without a session, after @old was up at both ends: it has lost @old. */
	if (conn->session > old->up_before)
		return false;
	/* The peer may have begun before it had @old, or have lost @old since: ask it. */
	queue_work(cl->wq, &peer->ping_work);
	return true;
}

/*
 * Find a connection of the peer, not @but, that is not fenced yet: its operations must not take
 * effect after those of the next session. One that this node made counts even if never published:
 * the responder uses it before it replies to ATTACH. Return: it, with a reference, or NULL.
 */
struct lite_conn *lite_peer_unfenced(struct lite_peer *peer, const struct lite_conn *but)
{
	struct lite_conn *conn = NULL;

	lockdep_assert_held(&peer->cl->lock);
	while ((conn = lite_conn_next(peer->cl->fab, conn))) {
		if (conn != but &&
		    (conn->peer == peer || (!conn->passive && conn->from.node == peer->id)) &&
		    !completion_done(&conn->fenced))
			break;
	}
	return conn;
}

/*
 * Make an attached connection the session of its peer, conn->from, which listens on @addr. May
 * sleep: waits until earlier sessions of the peer are fenced. Return: false: the connection is of
 * no use: dead, of a life that is over, or another one is preferred.
 */
bool lite_peer_publish(struct lite_cluster *cl, struct lite_conn *conn,
		       const struct lite_wire_addr *addr)
{
	struct lite_conn *old_conn;
	struct lite_peer *peer;
	bool ok = false;
	u64 old;

again:
	mutex_lock(&cl->lock);
	/* This may be a late handler of a connection of this node's last life. */
	if (!lite_cluster_connects(cl) || !lite_cluster_id(cl) || lite_conn_is_dead(conn))
		goto out;
	peer = xa_load(&cl->peers, conn->from.node);
	if (!peer) {
		peer = lite_peer_make(cl, conn->from.node, conn->from.incarnation, addr);
		if (IS_ERR(peer))
			goto out;
	}
	if (conn->from.incarnation < peer->incarnation ||
	    (lite_peer_has_left(peer) && conn->from.incarnation == peer->incarnation))
		goto out;
	old_conn = rcu_dereference_protected(peer->conn, lockdep_is_held(&cl->lock));
	if (lite_peer_prefers(peer, conn, old_conn))
		goto out;
	/* Also one that this node is still making: the new one replaces it. */
	old_conn = lite_peer_unfenced(peer, conn);
	if (old_conn) {
		mutex_unlock(&cl->lock);
		lite_conn_replace(old_conn, true);
		goto again;
	}
	if (lite_peer_renew(peer, conn->from.incarnation, addr, &old)) {
		/* Clean up after the old life. Another connection may be published meanwhile. */
		mutex_unlock(&cl->lock);
		cl->ops->peer_lost(cl->priv, conn->from.node, old);
		goto again;
	}
	/* If @conn dies from here on, conn_down() waits for cl->lock and finds the peer. */
	ok = lite_conn_set_up(conn);
	if (ok) {
		refcount_inc(&peer->ref); /* dropped by conn_gone */
		conn->peer = peer;
		rcu_assign_pointer(peer->conn, conn);
		smp_wmb(); /* always up or suspect: lite_peer_is_live() */
		WRITE_ONCE(peer->wait, LITE_PEER_DOWN);
	}
out:
	mutex_unlock(&cl->lock);
	lite_crowd_wake(&cl->suspects);
	if (ok) {
		cl->ops->event(cl->priv, conn->from.node, LITE_NODE_UP);
		cl->ops->members_changed(cl->priv);
	}
	return ok;
}

/* A connection is dying: its peer becomes suspect or, after too long a silence, DOWN. May sleep. */
void lite_cluster_conn_down(struct lite_cluster *cl, struct lite_conn *conn)
{
	struct lite_peer *peer;
	bool was_up = false;
	bool down = false;

	mutex_lock(&cl->lock);
	peer = conn->peer;
	if (peer && rcu_access_pointer(peer->conn) == conn) {
		was_up = true;
		peer->heard = lite_session_heard(conn);
		if (!lite_peer_has_left(peer) && peer != cl->self) {
			if (cl->state == LITE_NODE_UP && !lite_cluster_silent(cl, peer->heard))
				WRITE_ONCE(peer->wait, LITE_PEER_SUSPECT);
			lite_peer_retry(peer, 0);
		}
		smp_wmb(); /* always up or suspect: lite_peer_is_live() */
		RCU_INIT_POINTER(peer->conn, NULL);
		down = peer->wait != LITE_PEER_SUSPECT;
	}
	mutex_unlock(&cl->lock);
	lite_crowd_wake(&cl->suspects);
	if (was_up && peer != cl->self) {
		cl->ops->ended(cl->priv, conn, down ? LITE_NODE_DOWN : LITE_NODE_UP);
		cl->ops->members_changed(cl->priv);
	}
}

/* The peer of a dead connection, maybe never published, is fenced. May sleep. */
void lite_cluster_conn_gone(struct lite_cluster *cl, struct lite_conn *conn)
{
	struct lite_peer *peer;

	mutex_lock(&cl->lock);
	peer = conn->peer;
	conn->peer = NULL;
	mutex_unlock(&cl->lock);
	/* Even if it was never published: it may have served calls. */
	if (conn->from.node && peer != cl->self)
		cl->ops->peer_gone(cl->priv, conn);
	if (peer)
		lite_peer_put(peer);
}

/* Is a peer worth waiting for: session dying, or without session but not down? Any context. */
bool lite_peer_is_suspect(struct lite_peer *peer)
{
	struct lite_conn *conn;
	bool suspect;

	rcu_read_lock();
	conn = rcu_dereference(peer->conn);
	suspect = conn ? lite_conn_is_dead(conn) : READ_ONCE(peer->wait) != LITE_PEER_DOWN;
	rcu_read_unlock();
	return suspect;
}

/* Number of the session with a peer that is up; 0: it is not. Any context. */
u64 lite_peer_session(struct lite_peer *peer)
{
	struct lite_conn *conn;
	u64 session;

	rcu_read_lock();
	conn = rcu_dereference(peer->conn);
	session = conn && !lite_conn_is_dead(conn) ? conn->session : 0;
	rcu_read_unlock();
	return session;
}

/* Is a peer up, suspect or fresh? Any context. */
bool lite_peer_is_live(struct lite_peer *peer)
{
	if (lite_peer_is_up(peer))
		return true;
	smp_rmb(); /* with conn_down: suspect before it ceases to be up */
	if (READ_ONCE(peer->wait) != LITE_PEER_DOWN)
		return true;
	smp_rmb(); /* with publish: up before it ceases to be suspect */
	return lite_peer_is_up(peer);
}

/* Wait while a peer is suspect; killable. Return: 0: it is up; -EHOSTDOWN: it is not; -EINTR. */
int lite_peer_await_for(struct lite_peer *peer, unsigned long timeout)
{
	int part;
	long left;

	for (part = 0; part < LITE_TIMEOUT_PARTS; part++) {
		left = lite_crowd_wait_timeout(&peer->cl->suspects, !lite_peer_is_suspect(peer),
					       timeout / LITE_TIMEOUT_PARTS + 1);
		if (left < 0)
			return -EINTR;
		if (left)
			break;
	}
	return lite_peer_is_up(peer) ? 0 : -EHOSTDOWN;
}

/* As lite_peer_await_for(), until the peer is up or down. */
int lite_peer_await(struct lite_peer *peer)
{
	struct lite_cluster *cl = peer->cl;

	/* The monitor ends the wait, later if the node was away; the time-out bounds its delay. */
	return lite_peer_await_for(peer, 2 * (cl->dead + cl->heartbeat));
}

/* The session of a peer, with a reference to its memory, or NULL. Any context. */
struct lite_conn *lite_peer_conn_get(struct lite_peer *peer)
{
	struct lite_conn *conn;

	rcu_read_lock();
	conn = rcu_dereference(peer->conn);
	if (conn && !refcount_inc_not_zero(&conn->ref))
		conn = NULL;
	rcu_read_unlock();
	return conn;
}

/* As lite_peer_conn_get(), for the node with id @node. NULL for this node. */
struct lite_conn *lite_cluster_conn_get(struct lite_cluster *cl, u32 node)
{
	return lite_peer_look(cl, node, lite_peer_conn_get(__peer), NULL);
}
