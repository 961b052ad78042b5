// SPDX-License-Identifier: GPL-2.0
/*
 * Joining and leaving.
 *
 * The joiner connects as a guest to any member, which sends it on to the
 * coordinator: the lowest id that is up. That one gives it an id and keeps the
 * place (a tentative peer). The joiner takes over the member list, becomes
 * somebody, and connects to all who are up.
 */
#include <linux/slab.h>
#include <linux/timekeeping.h>

#include "cluster.h"

/* How long the coordinator keeps a place. */
#define LITE_PLACE_TIMEOUT (30 * HZ)
/* Members that may send us on before we give up. */
#define LITE_REDIRECTS_MAX 8

/* ---- coordinator --------------------------------------------------------- */

/* The lowest id that is up; 0: ourselves. Cluster locked. */
static struct lite_peer *lite_coordinator(struct lite_cluster *cl)
{
	struct lite_peer *peer;
	unsigned long id;

	xa_for_each(&cl->peers, id, peer) {
		if (id > lite_cluster_id(cl))
			break;
		if (lite_peer_is_up(peer))
			return peer;
	}
	return NULL;
}

/* Who has lived at this address and is not known to have left. */
static struct lite_peer *lite_peer_at(struct lite_cluster *cl,
				      const struct sockaddr_storage *addr)
{
	struct lite_peer *peer;
	unsigned long id;

	xa_for_each(&cl->peers, id, peer) {
		if (!peer->left && lite_addr_equal(&peer->addr, addr))
			return peer;
	}
	return NULL;
}

static u32 lite_lowest_free_id(struct lite_cluster *cl)
{
	u32 id;

	for (id = 1; id <= LITE_NODE_ID_MAX; id++) {
		struct lite_peer *peer = xa_load(&cl->peers, id);

		if (id != lite_cluster_id(cl) && (!peer || peer->left))
			return id;
	}
	return 0;
}

/* Find an id for a joiner and keep it. Cluster locked. */
static int lite_place_keep(struct lite_cluster *cl, u32 wanted,
			   u64 *incarnation,
			   const struct sockaddr_storage *addr,
			   struct lite_conn **old)
{
	struct lite_peer *peer = lite_peer_at(cl, addr);
	u32 id;

	/* One that crashed and came back gets the id that it had. */
	if (peer && wanted && wanted != peer->id)
		peer = NULL;
	id = peer ? peer->id : wanted ?: lite_lowest_free_id(cl);
	if (!id)
		return -ENOSPC;
	if (id == lite_cluster_id(cl))
		return -EEXIST;
	if (!peer) {
		peer = xa_load(&cl->peers, id);
		if (peer && !peer->left)
			return -EEXIST;
	}
	/* Clocks differ: later than the last life with that id. */
	if (peer && !peer->tentative)
		*incarnation = max(*incarnation, peer->incarnation + 1);
	if (!peer) {
		peer = lite_peer_make(cl, id, *incarnation, addr);
		if (IS_ERR(peer))
			return PTR_ERR(peer);
		peer->tentative = true;
	} else {
		/*
		 * Its incarnation changes when it attaches; until then its
		 * old life merely has no session any more.
		 */
		*old = lite_peer_conn_get(peer);
		if (peer->left || peer->tentative) {
			peer->left = false;
			peer->tentative = true;
		}
	}
	peer->expires = jiffies + LITE_PLACE_TIMEOUT;
	return id;
}

int lite_serve_join(void *priv, struct lite_conn *conn, const void *req,
		    u32 len, void *reply, u32 *reply_len)
{
	struct lite_cluster *cl = priv;
	const struct lite_wire_join *j = req;
	struct lite_wire_join_reply *r = reply;
	struct lite_conn *old = NULL;
	struct lite_peer *coordinator;
	struct sockaddr_storage addr;
	u64 incarnation;
	int ret;

	if (!conn || conn->from.node)
		return -EBADMSG;
	ret = lite_addr_from_wire(&addr, &j->addr);
	if (ret)
		return ret;

	mutex_lock(&cl->lock);
	coordinator = lite_coordinator(cl);
	if (cl->state != LITE_NODE_UP) {
		ret = -ENOTCONN;
	} else if (coordinator) {
		lite_addr_to_wire(&r->redirect, &coordinator->addr);
	} else {
		incarnation = le64_to_cpu(j->incarnation);
		ret = lite_place_keep(cl, le16_to_cpu(j->node), &incarnation,
				      &addr, &old);
		if (ret > 0) {
			r->node = cpu_to_le16(ret);
			r->incarnation = cpu_to_le64(incarnation);
		}
	}
	mutex_unlock(&cl->lock);
	if (old) {
		lite_conn_kill(old, -EHOSTDOWN);
		lite_conn_put(old);
	}
	if (ret < 0)
		return ret;
	*reply_len = sizeof(*r);
	return 0;
}

/* ---- joiner -------------------------------------------------------------- */

/* As a guest of one member: 1: sent on to @addr; 0: in, with @id. */
static int lite_join_ask(struct lite_cluster *cl, struct sockaddr_storage *addr,
			 unsigned long deadline, u32 *id, u64 *incarnation)
{
	struct lite_wire_join req = {};
	struct lite_wire_join_reply reply;
	struct lite_call_desc d = {
		.call = LITE_CALL_JOIN,
		.req = &req,
		.len = sizeof(req),
		.reply = &reply,
		.reply_max = sizeof(reply),
		.killable = true,
	};
	struct lite_conn *conn;
	long left = (long)(deadline - jiffies);
	int err;

	if (left <= 0)
		return -ETIMEDOUT;
	err = lite_conn_connect(cl->fab, addr, left, &conn);
	if (err)
		return err;
	lite_addr_to_wire(&req.addr, &cl->fab->addr);
	req.node = cpu_to_le16(cl->wanted);
	req.incarnation = cpu_to_le64(cl->fab->self.incarnation);
	err = lite_cluster_attach(cl, conn);
	if (!err && !lite_conn_set_up(conn))
		err = -EHOSTDOWN;
	if (!err)
		err = lite_rpc_call(conn, &d);
	if (!err && reply.redirect.port) {
		err = lite_addr_from_wire(addr, &reply.redirect) ?: 1;
	} else if (!err) {
		*id = le16_to_cpu(reply.node);
		*incarnation = le64_to_cpu(reply.incarnation);
		err = *id ? lite_members_pull(cl, conn) : -EPROTO;
	}
	/* The guest leaves. */
	lite_conn_kill(conn, -ENOTCONN);
	lite_conn_put(conn);
	return err;
}

static void lite_join_connect_all(struct lite_cluster *cl)
{
	struct lite_peer *peer;
	unsigned long id;

	/* Peers of a joiner stay: only leaving drops them, and not now. */
	xa_for_each(&cl->peers, id, peer) {
		if (!peer->left)
			queue_work(cl->wq, &peer->connect_work);
	}
	xa_for_each(&cl->peers, id, peer)
		flush_work(&peer->connect_work);
}

/* Ask all whom we are connected to; that of some one fails is of no matter. */
static void lite_join_pull_all(struct lite_cluster *cl)
{
	struct lite_conn *conn;
	struct lite_peer *peer;
	unsigned long id;

	xa_for_each(&cl->peers, id, peer) {
		peer = lite_peer_find(cl, id);
		conn = peer ? lite_peer_conn_get(peer) : NULL;
		if (conn) {
			lite_members_pull(cl, conn);
			lite_conn_put(conn);
		}
		if (peer)
			lite_peer_put(peer);
	}
}

static void lite_peers_clear(struct lite_cluster *cl)
{
	struct lite_peer *peer;
	unsigned long id;

	/* Work items of peers take cl->lock: first let them end. */
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

static int lite_join_begin(struct lite_cluster *cl, struct lite_ident *was,
			   const char **why)
{
	struct lite_peer *peer;
	unsigned long id;
	int err = 0;

	mutex_lock(&cl->lock);
	if (cl->stopping) {
		err = -ENODEV;
	} else if (cl->state != LITE_NODE_UP && cl->state != LITE_NODE_IDLE) {
		*why = "the node is joining or leaving";
		err = -EBUSY;
	} else {
		xa_for_each(&cl->peers, id, peer) {
			if (!peer->left) {
				*why = "the node is in a cluster already: leave that first";
				err = -EBUSY;
			}
		}
	}
	if (!err) {
		*was = cl->fab->self;
		cl->state = LITE_NODE_JOINING;
		cl->fab->self.node = 0;
		cl->fab->self.incarnation = ktime_get_real_ns();
	}
	mutex_unlock(&cl->lock);
	return err;
}

/**
 * lite_cluster_join - join the cluster that some node is in
 * @cl: alone, or in no cluster
 * @addr: of a member
 * @timeout: jiffies, for getting in
 * @why: set to a text where an errno says too little
 *
 * Context: may sleep; killable.
 * Return: 0 or a negative errno, as documented for LITE_CMD_NODE_JOIN.
 */
int lite_cluster_join(struct lite_cluster *cl,
		      const struct sockaddr_storage *addr,
		      unsigned long timeout, const char **why)
{
	unsigned long deadline = jiffies + timeout;
	struct sockaddr_storage to = *addr;
	struct lite_ident was;
	struct lite_conn *self;
	struct lite_peer *peer;
	int redirects = 0;
	u64 incarnation = 0;
	u32 id = 0;
	int err;

	if (lite_addr_equal(addr, &cl->fab->addr)) {
		*why = "that is the address of this node itself";
		return -EINVAL;
	}
	err = lite_join_begin(cl, &was, why);
	if (err)
		return err;
	/* Those who left the last cluster may be members of the next. */
	lite_peers_clear(cl);
	/* The connection to ourselves is one of the old life. */
	self = lite_peer_conn_get(cl->self);
	if (self) {
		lite_conn_kill(self, -ENOTCONN);
		wait_for_completion(&self->gone);
		lite_conn_put(self);
	}
	do {
		err = lite_join_ask(cl, &to, deadline, &id, &incarnation);
	} while (err > 0 && ++redirects < LITE_REDIRECTS_MAX);
	if (err > 0)
		err = -ELOOP;

	/* While we are still JOINING, so that nobody makes new ones. */
	if (err)
		lite_peers_clear(cl);
	mutex_lock(&cl->lock);
	if (!err && cl->stopping)
		err = -ENODEV;
	if (err) {
		cl->fab->self = was;
		if (!cl->stopping)
			cl->state = was.node ? LITE_NODE_UP : LITE_NODE_IDLE;
	} else {
		cl->fab->self.node = id;
		cl->fab->self.incarnation = incarnation;
		cl->self->id = id;
		/* The list that we were given has us in it, or our past. */
		peer = xa_load(&cl->peers, id);
		if (peer)
			lite_peer_drop(peer);
	}
	mutex_unlock(&cl->lock);
	if (err)
		return err;

	lite_join_connect_all(cl);
	/*
	 * Who joined at the same time was nobody yet when we were told of the
	 * members: the one of us that attached later is told of the other now.
	 */
	lite_join_pull_all(cl);
	lite_join_connect_all(cl);
	mutex_lock(&cl->lock);
	if (!cl->stopping) {
		cl->state = LITE_NODE_UP;
		mod_delayed_work(cl->wq, &cl->monitor, 1);
	}
	mutex_unlock(&cl->lock);
	wake_up_all(&cl->suspects);
	cl->ops->event(cl->priv, id, LITE_NODE_UP);
	cl->ops->members_changed(cl->priv);
	return 0;
}

/* ---- leaving ------------------------------------------------------------- */

int lite_serve_leave(void *priv, struct lite_conn *conn, const void *req,
		     u32 len, void *reply, u32 *reply_len)
{
	struct lite_cluster *cl = priv;
	const struct lite_wire_leave *l = req;
	struct lite_peer *peer;
	bool lost = false;
	u32 id;

	if (!conn || le16_to_cpu(l->node) != conn->from.node ||
	    le64_to_cpu(l->incarnation) != conn->from.incarnation)
		return -EBADMSG;
	id = conn->from.node;
	mutex_lock(&cl->lock);
	peer = xa_load(&cl->peers, id);
	if (peer && peer->incarnation == conn->from.incarnation &&
	    !peer->left) {
		peer->left = true;
		lost = true;
	}
	mutex_unlock(&cl->lock);
	if (lost)
		cl->ops->peer_lost(cl->priv, id, conn->from.incarnation);
	return 0;
}

/* Tell everybody; who does not hear it will learn it from the others. */
static void lite_leave_tell(struct lite_cluster *cl)
{
	struct lite_wire_leave req = {
		.node = cpu_to_le16(cl->fab->self.node),
		.incarnation = cpu_to_le64(cl->fab->self.incarnation),
	};
	struct lite_peer *peer;
	unsigned long id;

	xa_for_each(&cl->peers, id, peer) {
		struct lite_call_desc d = {
			.call = LITE_CALL_LEAVE,
			.req = &req,
			.len = sizeof(req),
			.timeout = HZ,
		};
		struct lite_conn *conn;

		peer = lite_peer_find(cl, id);
		if (!peer)
			continue;
		conn = lite_peer_conn_get(peer);
		lite_peer_put(peer);
		if (!conn)
			continue;
		lite_rpc_call(conn, &d);
		lite_conn_put(conn);
	}
}

/* Nobody waits any more for those who may come back. Cluster locked. */
static void lite_suspects_clear(struct lite_cluster *cl)
{
	struct lite_peer *peer;
	unsigned long id;

	xa_for_each(&cl->peers, id, peer) {
		WRITE_ONCE(peer->suspect, false);
		WRITE_ONCE(peer->fresh, false);
	}
	wake_up_all(&cl->suspects);
}

/**
 * lite_cluster_begin_leave - take no new work, but go on serving
 * @cl: cluster
 *
 * Context: may sleep.
 * Return: 0; -ENOTCONN: in no cluster; -EBUSY: joining or leaving.
 */
int lite_cluster_begin_leave(struct lite_cluster *cl)
{
	int err = 0;

	mutex_lock(&cl->lock);
	if (cl->state == LITE_NODE_IDLE)
		err = -ENOTCONN;
	else if (cl->state != LITE_NODE_UP)
		err = -EBUSY;
	else
		cl->state = LITE_NODE_LEAVING;
	if (!err)
		lite_suspects_clear(cl);
	mutex_unlock(&cl->lock);
	return err;
}

/**
 * lite_cluster_leave - the rest of leaving, when the memory is given up
 * @cl: LEAVING
 *
 * Context: may sleep.
 * Return: 0.
 */
int lite_cluster_leave(struct lite_cluster *cl)
{
	u32 id = cl->fab->self.node;

	lite_leave_tell(cl);
	lite_fabric_end_all(cl->fab, -ENOTCONN);
	lite_peers_clear(cl);
	mutex_lock(&cl->lock);
	cl->fab->self.node = 0;
	cl->fab->self.incarnation = ktime_get_real_ns();
	if (!cl->stopping)
		cl->state = LITE_NODE_IDLE;
	mutex_unlock(&cl->lock);
	cl->ops->event(cl->priv, id, LITE_NODE_IDLE);
	return 0;
}

/* ---- life ---------------------------------------------------------------- */

static void lite_cluster_handlers(struct lite_cluster *cl)
{
	lite_rpc_handle(cl->rpc, LITE_CALL_PING, lite_serve_ping, cl);
	lite_rpc_handle(cl->rpc, LITE_CALL_ATTACH, lite_serve_attach, cl);
	lite_rpc_handle(cl->rpc, LITE_CALL_JOIN, lite_serve_join, cl);
	lite_rpc_handle(cl->rpc, LITE_CALL_MEMBERS, lite_serve_members, cl);
	lite_rpc_handle(cl->rpc, LITE_CALL_LEAVE, lite_serve_leave, cl);
}

/**
 * lite_cluster_init - be a cluster of one
 * @cl: to fill; zeroed
 * @fab: of the node
 * @rpc: of the node
 * @params: settings
 * @ops: news for the layer above
 * @priv: for @ops
 *
 * Context: may sleep.
 * Return: 0 or -ENOMEM.
 */
int lite_cluster_init(struct lite_cluster *cl, struct lite_fabric *fab,
		      struct lite_rpc *rpc,
		      const struct lite_cluster_params *params,
		      const struct lite_cluster_ops *ops, void *priv)
{
	cl->fab = fab;
	cl->rpc = rpc;
	cl->ops = ops;
	cl->priv = priv;
	cl->wanted = params->node;
	cl->heartbeat = params->heartbeat;
	cl->dead = params->dead;
	mutex_init(&cl->lock);
	mutex_init(&cl->self_lock);
	init_waitqueue_head(&cl->suspects);
	xa_init(&cl->peers);
	INIT_DELAYED_WORK(&cl->monitor, lite_monitor_work);
	cl->wq = alloc_workqueue("lite-cluster", WQ_UNBOUND, 0);
	if (!cl->wq)
		return -ENOMEM;
	fab->self.node = params->node ?: 1;
	fab->self.incarnation = ktime_get_real_ns();
	cl->self = lite_peer_make(cl, fab->self.node, fab->self.incarnation,
				  &fab->addr);
	if (IS_ERR(cl->self)) {
		destroy_workqueue(cl->wq);
		return PTR_ERR(cl->self);
	}
	lite_cluster_handlers(cl);
	return 0;
}

/**
 * lite_cluster_start - watch peers, once the fabric listens
 * @cl: cluster
 *
 * Context: may sleep.
 * Return: 0.
 */
int lite_cluster_start(struct lite_cluster *cl)
{
	mutex_lock(&cl->lock);
	cl->state = LITE_NODE_UP;
	cl->due = jiffies + cl->heartbeat;
	queue_delayed_work(cl->wq, &cl->monitor, cl->heartbeat);
	mutex_unlock(&cl->lock);
	return 0;
}

/**
 * lite_cluster_stop - no new sessions, no more watching
 * @cl: cluster; its fabric is to be shut down next
 *
 * Context: may sleep.
 */
void lite_cluster_stop(struct lite_cluster *cl)
{
	mutex_lock(&cl->lock);
	cl->stopping = true;
	cl->state = LITE_NODE_STOPPED;
	lite_suspects_clear(cl);
	mutex_unlock(&cl->lock);
	cancel_delayed_work_sync(&cl->monitor);
}

/**
 * lite_cluster_exit - forget the peers
 * @cl: stopped, its fabric shut down
 *
 * Context: may sleep.
 */
void lite_cluster_exit(struct lite_cluster *cl)
{
	lite_peers_clear(cl);
	destroy_workqueue(cl->wq);
	xa_destroy(&cl->peers);
	lite_peer_put(cl->self);
}

/**
 * lite_cluster_ready - may users work with this node's LMRs?
 * @cl: cluster
 *
 * Context: any.
 * Return: 0, -ENOTCONN or -ENODEV.
 */
int lite_cluster_ready(struct lite_cluster *cl)
{
	switch (READ_ONCE(cl->state)) {
	case LITE_NODE_UP:
		return 0;
	case LITE_NODE_STOPPED:
		return -ENODEV;
	default:
		return -ENOTCONN;
	}
}
