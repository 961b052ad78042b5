// SPDX-License-Identifier: GPL-2.0
/*
 * Joining and leaving. (admit.c has the coordinator's side of joining.)
 *
 * The joiner connects as a guest to any member, which redirects it to the coordinator. The
 * coordinator gives it an id. The joiner takes over the member list, assumes its id, and connects
 * to all members that are up. If the coordinator does not answer, the joiner starts over at the
 * first member, until the coordinator answers or counts as down.
 */
#include <linux/sched/signal.h>
#include <linux/timekeeping.h>

#include "cluster.h"

/* Number of redirects before giving up. */
#define LITE_REDIRECTS_MAX 8
/* Time to connect to the coordinator, half as much more on each try, up to LITE_JOIN_ANSWER, ... */
#define LITE_JOIN_TRY (2 * HZ)
/* ... with a pause before the first member is asked again. */
#define LITE_JOIN_PAUSE (HZ / 4)
/* How often to ask the first member if the connection to it breaks. */
#define LITE_JOIN_TRIES 4
/* Time for a connected member to answer. */
#define LITE_JOIN_ANSWER (10UL * HZ)

/*
 * Ask the member at @addr, as a guest, to be admitted; connect within @max jiffies. @met is set if
 * it knows the secret. Return: 0: admitted @as; 1: redirected to @addr; a negative errno.
 */
static int lite_join_ask(struct lite_cluster *cl, struct lite_wire_addr *addr,
			 unsigned long deadline, unsigned long max, bool *met,
			 struct lite_ident *as)
{
	struct lite_wire_join req = {};
	struct lite_wire_join_reply reply;
	struct lite_call_desc d = {
		LITE_REQUEST(LITE_CALL_JOIN, req),
		LITE_REPLY(reply),
		.killable = true,
	};
	struct lite_conn *conn;
	long left = (long)(deadline - jiffies);
	int err;

	if (left <= 0)
		return -ETIMEDOUT;
	/* After that time the id that the member gives may be another node's. */
	if (left > LITE_PLACE_TIMEOUT)
		deadline = jiffies + LITE_PLACE_TIMEOUT;
	d.timeout = min_t(unsigned long, left, LITE_JOIN_ANSWER);
	max = min_t(unsigned long, left, max);
	err = lite_conn_connect(cl->fab, addr, max, &conn);
	if (err)
		return err;
	*met = true;
	req.addr = cl->fab->addr;
	req.node = cpu_to_le16(cl->wanted);
	req.incarnation = cpu_to_le64(cl->fab->self.incarnation);
	err = lite_cluster_attach(cl, conn);
	if (!err && !lite_conn_set_up(conn))
		err = -EHOSTDOWN;
	if (!err)
		err = lite_kcall(conn, &d);
	if (!err && reply.redirect.port) {
		*addr = reply.redirect;
		err = lite_addr_ok(addr) ? 1 : -EINVAL;
	} else if (!err) {
		as->node = le16_to_cpu(reply.node);
		as->incarnation = le64_to_cpu(reply.incarnation);
		err = as->node ? lite_members_pull(cl, conn, deadline) : -EPROTO;
	}
	lite_conn_kill(conn, -ENOTCONN);
	lite_conn_put(conn);
	return err;
}

/* Is the coordinator merely out of reach, so that a retry may succeed? */
static bool lite_join_again(int err)
{
	return err == -ETIMEDOUT || err == -EHOSTUNREACH || err == -EHOSTDOWN ||
	       err == -ECONNREFUSED || err == -ECONNABORTED || err == -ENOTCONN;
}

/* Find the coordinator, starting at the member at @addr, and get an id. */
static int lite_join_get_in(struct lite_cluster *cl, const struct lite_wire_addr *addr,
			    unsigned long deadline, struct lite_ident *as, const char **why)
{
	struct lite_wire_addr to = *addr;
	unsigned long max = LITE_JOIN_TRY;
	bool again = false, met = false;
	int redirects = 0, broken = 0;
	int err;

	for (;;) {
		err = lite_join_ask(cl, &to, deadline, redirects ? max : MAX_JIFFY_OFFSET, &met,
				    as);
		if (err > 0) {
			if (++redirects == LITE_REDIRECTS_MAX)
				return -ELOOP;
			continue;
		}
		/* The first member's answer is final; a connection that breaks is no answer. */
		if (!redirects &&
		    ((err != -ECONNABORTED && err != -EHOSTDOWN) || ++broken == LITE_JOIN_TRIES))
			break;
		if (!lite_join_again(err))
			break;
		schedule_timeout_killable(LITE_JOIN_PAUSE);
		if (fatal_signal_pending(current))
			return -EINTR;
		to = *addr;
		again |= redirects;
		redirects = 0;
		max = min(max + LITE_JOIN_TRY / 2, LITE_JOIN_ANSWER);
	}
	if (err == -ETIMEDOUT && again)
		*why = "the member that gives out ids does not answer, and is not down";
	else if (met && lite_join_again(err))
		*why = "a member is there, but has not let the node join";
	return err;
}

/* Connect to all peers or, if @pull, get their lists of members: single failures do not matter. */
static void lite_join_ask_all(struct lite_cluster *cl, bool pull)
{
	struct lite_peer *peer;
	unsigned long id;

	/* No peer is dropped while this node joins. */
	xa_for_each(&cl->peers, id, peer)
		queue_work(cl->wq, pull ? &peer->ping_work : &peer->connect_work);
	xa_for_each(&cl->peers, id, peer)
		flush_work(pull ? &peer->ping_work : &peer->connect_work);
}

/*
 * Drop all peers, after their work items have ended. The node makes no new ones: it is JOINING,
 * LEAVING or stopped, and its connections have ended. May sleep.
 */
void lite_peers_clear(struct lite_cluster *cl)
{
	struct lite_peer *peer;
	unsigned long id;

	/* Without cl->lock, which the work items take. */
	xa_for_each(&cl->peers, id, peer) {
		peer = lite_peer_find(cl, id);
		if (!peer)
			continue;
		cancel_work_sync(&peer->connect_work);
		cancel_work_sync(&peer->ping_work);
		lite_peer_put(peer);
	}
	mutex_lock(&cl->lock);
	xa_for_each(&cl->peers, id, peer)
		lite_peer_drop(peer);
	mutex_unlock(&cl->lock);
}

/* Return: 0; -EBUSY: this node is not the only member of its cluster. */
static int lite_join_check_alone(struct lite_cluster *cl, const char **why)
{
	struct lite_peer *peer;
	unsigned long id;

	lockdep_assert_held(&cl->lock);
	xa_for_each(&cl->peers, id, peer) {
		if (peer->life != LITE_PEER_LEFT) {
			*why = "the node is in a cluster already: leave that first";
			return -EBUSY;
		}
	}
	return 0;
}

/*
 * Enter JOINING, unless @try: no new objects of this life are made, but the life goes on until
 * lite_cluster_join(), as there may be some already. @why is set to a text where the errno says too
 * little. May sleep. Return: 0; -EBUSY: joining or leaving, or not alone; -ENODEV.
 */
int lite_cluster_begin_join(struct lite_cluster *cl, bool try, const char **why)
{
	int err;

	mutex_lock(&cl->lock);
	if (cl->state == LITE_NODE_STOPPED) {
		err = -ENODEV;
	} else if (cl->state != LITE_NODE_UP && cl->state != LITE_NODE_IDLE) {
		*why = "the node is joining or leaving";
		err = -EBUSY;
	} else {
		err = lite_join_check_alone(cl, why);
	}
	if (!err && !try)
		WRITE_ONCE(cl->state, LITE_NODE_JOINING);
	mutex_unlock(&cl->lock);
	smp_mb(); /* with lite_cluster_recheck() */
	return err;
}

/* End joining or leaving; a stopped node stays LITE_NODE_STOPPED. */
static void lite_cluster_become(struct lite_cluster *cl, enum lite_node_state state)
{
	mutex_lock(&cl->lock);
	if (cl->state != LITE_NODE_STOPPED) {
		WRITE_ONCE(cl->state, state);
		lite_monitor_within(cl, 1);
	}
	mutex_unlock(&cl->lock);
	lite_crowd_wake(&cl->suspects);
}

/* Undo lite_cluster_begin_join(). May sleep. */
void lite_cluster_cancel_join(struct lite_cluster *cl)
{
	lite_cluster_become(cl, lite_cluster_id(cl) ? LITE_NODE_UP : LITE_NODE_IDLE);
}

/* Begin a new life, as a guest without an id. */
static int lite_join_begin(struct lite_cluster *cl, struct lite_ident *was, const char **why)
{
	int err;

	mutex_lock(&cl->lock);
	/* Check again: other nodes could connect until now. */
	err = cl->state == LITE_NODE_STOPPED ? -ENODEV : lite_join_check_alone(cl, why);
	if (!err) {
		*was = cl->fab->self;
		WRITE_ONCE(cl->life, cl->life + 1);
		cl->fab->self.node = 0;
		cl->fab->self.incarnation = ktime_get_real_ns();
	}
	mutex_unlock(&cl->lock);
	return err;
}

/*
 * Join the cluster of the member at @addr, to be admitted within @timeout jiffies. The node is
 * JOINING since lite_cluster_begin_join(), and has no objects of this life. The caller reports the
 * result to the administrator. @why is set to a constant text where the errno says too little. May
 * sleep; killable. Return: as LITE_CMD_NODE_JOIN.
 */
int lite_cluster_join(struct lite_cluster *cl, const struct lite_wire_addr *addr,
		      unsigned long timeout, const char **why)
{
	unsigned long deadline = jiffies + timeout;
	struct lite_ident was, as;
	struct lite_peer *peer;
	int err;

	err = lite_join_begin(cl, &was, why);
	if (err)
		goto err_cancel;
	/* Also this node's connection to itself. A node without an id admits no new ones. */
	lite_fabric_end_all(cl->fab, -ENOTCONN);
	/* Nodes that left the old cluster may be members of the new one. */
	lite_peers_clear(cl);
	as = cl->fab->self;
	err = lite_join_get_in(cl, addr, deadline, &as, why);

	/* While still JOINING, so that no new peers are made. */
	if (err)
		lite_peers_clear(cl);
	mutex_lock(&cl->lock);
	if (!err && cl->state == LITE_NODE_STOPPED)
		err = -ENODEV;
	if (err) {
		cl->fab->self = was;
	} else {
		cl->fab->self = as;
		cl->self->id = as.node;
		/* The list may contain an earlier life that had this node's new id. */
		peer = xa_load(&cl->peers, as.node);
		if (peer)
			lite_peer_drop(peer);
	}
	mutex_unlock(&cl->lock);
	if (err)
		goto err_cancel;

	lite_join_ask_all(cl, false);
	/* Of two nodes that join at once, the later one to attach learns of the other only now. */
	lite_join_ask_all(cl, true);
	lite_join_ask_all(cl, false);
	lite_cluster_become(cl, LITE_NODE_UP);
	cl->ops->members_changed(cl->priv);
	return 0;

err_cancel:
	lite_cluster_cancel_join(cl);
	return err;
}

int lite_serve_leave(void *priv, struct lite_conn *conn, u16 call, const void *req, void *reply)
{
	struct lite_cluster *cl = priv;
	const struct lite_wire_leave *l = req;
	struct lite_peer *peer;
	bool lost;
	u32 id;

	if (!conn || le16_to_cpu(l->node) != conn->from.node ||
	    le64_to_cpu(l->incarnation) != conn->from.incarnation)
		return -EBADMSG;
	id = conn->from.node;
	mutex_lock(&cl->lock);
	peer = xa_load(&cl->peers, id);
	lost = peer && lite_peer_leave(peer, conn->from.incarnation);
	mutex_unlock(&cl->lock);
	if (lost)
		cl->ops->peer_lost(cl->priv, id, conn->from.incarnation);
	return 0;
}

/* Let no thread wait for a peer any more; the caller wakes all waiters. cl->lock is held. */
static void lite_suspects_clear(struct lite_cluster *cl)
{
	struct lite_peer *peer;
	unsigned long id;

	xa_for_each(&cl->peers, id, peer)
		WRITE_ONCE(peer->wait, LITE_PEER_DOWN);
}

/* Enter LEAVING: take no new work, but serve. May sleep. Return: 0, -ENOTCONN (IDLE), -EBUSY. */
int lite_cluster_begin_leave(struct lite_cluster *cl)
{
	int err = 0;

	mutex_lock(&cl->lock);
	if (cl->state == LITE_NODE_IDLE)
		err = -ENOTCONN;
	else if (cl->state != LITE_NODE_UP)
		err = -EBUSY;
	if (!err) {
		cl->state = LITE_NODE_LEAVING;
		WRITE_ONCE(cl->life, cl->life + 1);
		lite_suspects_clear(cl);
	}
	mutex_unlock(&cl->lock);
	lite_crowd_wake(&cl->suspects);
	smp_mb(); /* with lite_cluster_recheck() */
	return err;
}

/*
 * Announce that this node leaves, and disconnect; its memory has been given up. It stays LEAVING
 * until lite_cluster_end_leave(). May sleep. Return: the id that it had.
 */
u32 lite_cluster_leave(struct lite_cluster *cl)
{
	u32 id = cl->fab->self.node;
	struct lite_wire_leave req = {
		.node = cpu_to_le16(id),
		.incarnation = cpu_to_le64(cl->fab->self.incarnation),
	};
	const struct lite_call_desc d = { LITE_REQUEST(LITE_CALL_LEAVE, req), .timeout = HZ };

	/* Members that miss it learn of it from others. */
	lite_cluster_call_all(cl, 0, false, &d, NULL, NULL);
	lite_fabric_end_all(cl->fab, -ENOTCONN);
	lite_peers_clear(cl);
	mutex_lock(&cl->lock);
	cl->fab->self.node = 0;
	cl->fab->self.incarnation = ktime_get_real_ns();
	mutex_unlock(&cl->lock);
	return id;
}

/* Become IDLE, once nothing of the old cluster is left: the node may join again. May sleep. */
void lite_cluster_end_leave(struct lite_cluster *cl, u32 id)
{
	lite_cluster_become(cl, LITE_NODE_IDLE);
	cl->ops->event(cl->priv, id, LITE_NODE_IDLE);
}

/* Become a cluster of one, or in none. @cl is zeroed. May sleep. Return: 0 or -ENOMEM. */
int lite_cluster_init(struct lite_cluster *cl, struct lite_fabric *fab, struct lite_kcalls *kcalls,
		      const struct lite_cluster_params *params, const struct lite_cluster_ops *ops,
		      struct lite_node *priv)
{
	cl->fab = fab;
	cl->kcalls = kcalls;
	cl->ops = ops;
	cl->priv = priv;
	cl->wanted = params->node;
	cl->heartbeat = params->heartbeat;
	cl->dead = params->dead;
	mutex_init(&cl->lock);
	INIT_WORK(&cl->self_work, lite_self_connect_work);
	lite_crowd_init(&cl->self_made);
	lite_crowd_init(&cl->suspects);
	xa_init(&cl->peers);
	INIT_DELAYED_WORK(&cl->monitor, lite_monitor_work);
	cl->wq = alloc_workqueue("lite-cluster", WQ_UNBOUND, 0);
	if (!cl->wq)
		return -ENOMEM;
	fab->self.node = params->idle ? 0 : params->node ?: 1;
	fab->self.incarnation = ktime_get_real_ns();
	cl->self = lite_peer_make(cl, fab->self.node, fab->self.incarnation, &fab->addr);
	if (IS_ERR(cl->self)) {
		destroy_workqueue(cl->wq);
		return PTR_ERR(cl->self);
	}
	lite_kcall_handle(kcalls, LITE_CALL_PING, lite_serve_ping, cl);
	lite_kcall_handle(kcalls, LITE_CALL_ATTACH, lite_serve_attach, cl);
	lite_kcall_handle(kcalls, LITE_CALL_JOIN, lite_serve_join, cl);
	lite_kcall_handle(kcalls, LITE_CALL_MEMBERS, lite_serve_members, cl);
	lite_kcall_handle(kcalls, LITE_CALL_LEAVE, lite_serve_leave, cl);
	return 0;
}

/* Become UP or IDLE and start the monitor, before the fabric listens. May sleep. */
void lite_cluster_start(struct lite_cluster *cl)
{
	mutex_lock(&cl->lock);
	cl->state = lite_cluster_id(cl) ? LITE_NODE_UP : LITE_NODE_IDLE;
	cl->due = jiffies + cl->heartbeat;
	lite_monitor_within(cl, cl->heartbeat);
	mutex_unlock(&cl->lock);
}

/* Stop the monitor, and make no new sessions. The fabric is shut down next. May sleep. */
void lite_cluster_stop(struct lite_cluster *cl)
{
	mutex_lock(&cl->lock);
	cl->state = LITE_NODE_STOPPED;
	lite_suspects_clear(cl);
	mutex_unlock(&cl->lock);
	lite_crowd_wake(&cl->suspects);
	cancel_delayed_work_sync(&cl->monitor);
}

/* Undo lite_cluster_init(), after the fabric is shut down. May sleep. */
void lite_cluster_exit(struct lite_cluster *cl)
{
	cancel_work_sync(&cl->self_work);
	lite_peers_clear(cl);
	destroy_workqueue(cl->wq);
	xa_destroy(&cl->peers);
	lite_peer_put(cl->self);
}

/* May users work with LMRs? Any context. Return: 0: yes; -ENOTCONN; -ENODEV. */
int lite_cluster_ready(struct lite_cluster *cl)
{
	enum lite_node_state state = READ_ONCE(cl->state);

	if (state == LITE_NODE_UP)
		return 0;
	return state == LITE_NODE_STOPPED ? -ENODEV : -ENOTCONN;
}

/*
 * lite_cluster_ready(), for a caller that has published an object. @life: lite_cluster_life(), read
 * before the first lite_cluster_ready(). Joining and leaving change the state first and then look
 * for objects: either they see the object, or this fails and the caller takes it back, even if the
 * join or leave is over already. Any context. Return: 0, -ENOTCONN or -ENODEV.
 */
int lite_cluster_recheck(struct lite_cluster *cl, unsigned long life)
{
	int err;

	smp_mb(); /* with lite_cluster_begin_join() and _begin_leave() */
	err = lite_cluster_ready(cl);
	if (err)
		return err;
	smp_rmb(); /* The life is counted before the node is UP in it. */
	return READ_ONCE(cl->life) == life ? 0 : -ENOTCONN;
}
