/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The cluster as seen from one node: its peers, their states, calls to their kernels. See
 * Documentation/architecture.rst, Terms, for lives and sessions; lifetime.rst, Peer, for the states
 * of a peer; limits.rst for the lack of a quorum.
 *
 * Locking: cl->lock (a mutex) protects the table of peers, their fields except @conn, the state,
 * and fab->self. peer->conn is changed under it and read under RCU. Never hold cl->lock together
 * with a lite_conn.lock, or while making a call or waiting for the end of a connection.
 */
#ifndef _LITE_CLUSTER_H
#define _LITE_CLUSTER_H

#include <linux/xarray.h>
#include <uapi/lite.h>

#include "core/name.h"
#include "kcall/kcall.h"
#include "wait.h"

struct lite_cluster;

/* For lite_cluster_fence(): all other nodes. */
#define LITE_ALL_NODES U32_MAX
/* The longest wait for a suspect. Handlers wait, too, and so do their callers. */
#define LITE_PATIENCE (10UL * HZ)
/* The longest delay between attempts to connect to a peer, ... */
#define LITE_BACKOFF_MAX (8 * HZ)
/* ... if another node, or another life, has the peer's address. */
#define LITE_BACKOFF_MOVED (64 * HZ)
/* How long an id stays reserved for a joiner. */
#define LITE_PLACE_TIMEOUT (30 * HZ)

/* Do callers wait for a peer that has no session? */
enum lite_peer_wait {
	LITE_PEER_DOWN,    /* no */
	LITE_PEER_SUSPECT, /* yes: its session broke a short time ago */
	LITE_PEER_FRESH,   /* yes: a member has listed it; not connected yet */
};

/* What an id stands for. */
enum lite_peer_life {
	LITE_PEER_MEMBER,
	LITE_PEER_LEFT,     /* has announced that it leaves, for good */
	LITE_PEER_RESERVED, /* for a joiner, until lite_peer.expires */
	LITE_PEER_REUSED,   /* the same; the life in @incarnation has left */
};

/* Another node, as seen from here. */
struct lite_peer {
	struct lite_cluster *cl;
	u32 id;                          /* 1..LITE_NODE_ID_MAX */
	refcount_t ref;                  /* keeps the memory; freed after a grace period */
	struct rcu_head rcu;
	u64 incarnation;                 /* latest life known; changed under peers.xa_lock, too */
	struct lite_wire_addr addr;      /* where it listens; locked as @incarnation */
	struct lite_conn __rcu *conn;    /* its session, or NULL */
	unsigned long heard;             /* jiffies: heard in a session, listed, or accepting */
	enum lite_peer_wait wait;        /* meaningless while there is a session */
	bool attaching;                  /* this node exchanges ATTACH in a connection to it */
	enum lite_peer_life life;
	u64 promised;                    /* the incarnation given out with the reserved id */
	unsigned long expires;           /* jiffies, of a reservation */
	unsigned long next_try;          /* jiffies, when to connect again */
	unsigned long backoff;           /* jiffies between tries; if not DOWN also time-out */
	struct work_struct connect_work; /* connects */
	struct work_struct ping_work;    /* sends one heartbeat */
};

/* A snapshot of a peer: lite_peer_see(). */
struct lite_peer_seen {
	u32 id;
	u64 incarnation;
	struct lite_wire_addr addr;
	enum lite_peer_life life;
	bool up; /* or suspect */
};

/* Has the life in peer->incarnation left? The id may be reserved for the next life. */
static inline bool lite_peer_has_left(const struct lite_peer *peer)
{
	enum lite_peer_life life = READ_ONCE(peer->life);

	return life == LITE_PEER_LEFT || life == LITE_PEER_REUSED;
}

/* Events for the layer above. */
struct lite_cluster_ops {
	/* A member came up or went down; must not wait for calls. */
	void (*members_changed)(struct lite_node *node);
	/* A connection ended and its peer is fenced; may sleep, must not wait for calls. */
	void (*peer_gone)(struct lite_node *node, const struct lite_conn *conn);
	/* A life is over for good; the next may be up. May sleep, must not make calls. */
	void (*peer_lost)(struct lite_node *node, u32 id, u64 incarnation);
	/* For the administrator: node @id is now in @state. */
	void (*event)(struct lite_node *node, u32 id, enum lite_node_state state);
	/* For the administrator: a session ended, its peer is in @state, where UP means suspect. */
	void (*ended)(struct lite_node *node, const struct lite_conn *conn,
		      enum lite_node_state state);
};

struct lite_cluster_params {
	u32 node;                 /* id wanted, 0: any */
	bool idle;                /* in no cluster until it joins, instead of in one of its own */
	unsigned long heartbeat;  /* jiffies */
	unsigned long dead;       /* jiffies of silence */
};

struct lite_cluster {
	struct lite_fabric *fab;
	struct lite_kcalls *kcalls;
	const struct lite_cluster_ops *ops;
	struct lite_node *priv;
	struct mutex lock;
	enum lite_node_state state;
	unsigned long life;       /* number of lives that this node has ended */
	u32 wanted;
	struct xarray peers;
	struct lite_peer *self;   /* this node, for the connection to itself */
	struct work_struct self_work; /* makes that connection */
	struct lite_crowd self_made;  /* threads that wait for the connection */
	unsigned long self_tries;     /* number of attempts that have ended */
	int self_err;                 /* of the last attempt */
	unsigned long heartbeat;
	unsigned long dead;
	struct lite_crowd suspects; /* woken when a peer or @state changes */
	struct workqueue_struct *wq;
	struct delayed_work monitor;
	unsigned long due; /* jiffies: @monitor should have run by then; under @lock */
	unsigned long next; /* jiffies: @monitor is queued for then; under @lock */
};

int lite_cluster_init(struct lite_cluster *cl, struct lite_fabric *fab, struct lite_kcalls *kcalls,
		      const struct lite_cluster_params *params, const struct lite_cluster_ops *ops,
		      struct lite_node *priv);
void lite_cluster_start(struct lite_cluster *cl);
void lite_cluster_stop(struct lite_cluster *cl);
void lite_cluster_exit(struct lite_cluster *cl);

int lite_cluster_begin_join(struct lite_cluster *cl, bool try, const char **why);
void lite_cluster_cancel_join(struct lite_cluster *cl);
int lite_cluster_join(struct lite_cluster *cl, const struct lite_wire_addr *addr,
		      unsigned long timeout, const char **why);
u32 lite_cluster_leave(struct lite_cluster *cl);
void lite_cluster_end_leave(struct lite_cluster *cl, u32 id);
void lite_peers_clear(struct lite_cluster *cl);
int lite_cluster_begin_leave(struct lite_cluster *cl);

/* For the layers above. */
int lite_cluster_ready(struct lite_cluster *cl);
int lite_cluster_recheck(struct lite_cluster *cl, unsigned long life);
u32 lite_cluster_directory(struct lite_cluster *cl, u64 hash);
u32 lite_cluster_up(struct lite_cluster *cl);
u32 lite_cluster_next(struct lite_cluster *cl, u32 after);
bool lite_cluster_is_live(struct lite_cluster *cl, u32 node);
bool lite_cluster_may_act(struct lite_cluster *cl, u32 node);
u64 lite_cluster_incarnation(struct lite_cluster *cl, u32 node);
bool lite_cluster_is_cut_off(struct lite_cluster *cl);
bool lite_cluster_life_is_over(struct lite_cluster *cl, u32 node, u64 incarnation);
unsigned long lite_cluster_life_left(struct lite_cluster *cl, u32 node,
				     u64 incarnation, unsigned long patience);
u64 lite_cluster_session(struct lite_cluster *cl, u32 node, u64 *incarnation);
int lite_cluster_await_session(struct lite_cluster *cl, struct lite_conn *conn);
int lite_cluster_flush(struct lite_cluster *cl, u32 node);
int lite_cluster_call(struct lite_cluster *cl, u32 node, struct lite_call_desc *d);
int lite_cluster_call_patiently(struct lite_cluster *cl, u32 node, struct lite_call_desc *d);
/* @err: result of the call to @node; if 0, @reply is valid. */
typedef int (*lite_call_done)(void *ctx, u32 node, int err, const void *reply);
int lite_cluster_call_all(struct lite_cluster *cl, u32 after, bool self,
			  const struct lite_call_desc *d, lite_call_done done, void *ctx);
bool lite_cluster_is_suspect(struct lite_cluster *cl, u32 node);
int lite_cluster_await_for(struct lite_cluster *cl, u32 node, unsigned long timeout);
int lite_cluster_await_ready(struct lite_cluster *cl);
struct lite_peer *lite_peer_find(struct lite_cluster *cl, u32 id);
bool lite_peer_see(struct lite_cluster *cl, unsigned long id, struct lite_peer_seen *seen);
struct lite_conn *lite_cluster_conn_get(struct lite_cluster *cl, u32 node);
struct lite_conn *lite_peer_conn_get(struct lite_peer *peer);
struct lite_conn *lite_cluster_self_conn(struct lite_cluster *cl);
struct lite_conn *lite_cluster_self_conn_tryget(struct lite_cluster *cl);
void lite_peer_put(struct lite_peer *peer);
bool lite_peer_is_suspect(struct lite_peer *peer);
u64 lite_peer_session(struct lite_peer *peer);
int lite_peer_await(struct lite_peer *peer);
int lite_cluster_fence(struct lite_cluster *cl, u32 node, const struct lite_conn *but);
int lite_cluster_fence_self(struct lite_cluster *cl, const struct lite_conn *self);

/* For the fabric (struct lite_fabric_ops). */
int lite_cluster_admit(struct lite_cluster *cl, struct lite_conn *conn);
void lite_cluster_conn_down(struct lite_cluster *cl, struct lite_conn *conn);
void lite_cluster_conn_gone(struct lite_cluster *cl, struct lite_conn *conn);

/* Between the files of this layer. */

/* The value of @expr, which uses __peer, the peer @node, under RCU; or @none. Any context. */
#define lite_peer_look(cl, node, expr, none)				\
({									\
	struct lite_peer *__peer;					\
	typeof(expr) __value = none;					\
									\
	rcu_read_lock();						\
	__peer = xa_load(&(cl)->peers, node);				\
	if (__peer)							\
		__value = expr;						\
	rcu_read_unlock();						\
	__value;							\
})

lite_handler lite_serve_attach, lite_serve_join, lite_serve_leave, lite_serve_members,
	lite_serve_ping;

struct lite_peer *lite_peer_make(struct lite_cluster *cl, u32 id, u64 incarnation,
				 const struct lite_wire_addr *addr);
bool lite_peer_renew(struct lite_peer *peer, u64 incarnation,
		     const struct lite_wire_addr *addr, u64 *old);
bool lite_peer_leave(struct lite_peer *peer, u64 incarnation);
void lite_conn_replace(struct lite_conn *conn, bool wait);
bool lite_peer_publish(struct lite_cluster *cl, struct lite_conn *conn,
		       const struct lite_wire_addr *addr);
void lite_peer_retry(struct lite_peer *peer, unsigned long delay);
void lite_peer_drop(struct lite_peer *peer);
bool lite_peer_is_up(struct lite_peer *peer);
bool lite_peer_is_live(struct lite_peer *peer);
struct lite_conn *lite_peer_unfenced(struct lite_peer *peer, const struct lite_conn *but);
int lite_peer_await_for(struct lite_peer *peer, unsigned long timeout);

void lite_peer_connect_work(struct work_struct *work);
void lite_self_connect_work(struct work_struct *work);
int lite_cluster_attach(struct lite_cluster *cl, struct lite_conn *conn);

void lite_monitor_work(struct work_struct *work);
void lite_monitor_within(struct lite_cluster *cl, unsigned long delay);
unsigned long lite_session_heard(const struct lite_conn *conn);
bool lite_cluster_silent(const struct lite_cluster *cl, unsigned long heard);
void lite_peer_ping_work(struct work_struct *work);

int lite_members_pull(struct lite_cluster *cl, struct lite_conn *conn, unsigned long deadline);
u64 lite_members_digest(struct lite_cluster *cl);

/* May this node have sessions? */
static inline bool lite_cluster_connects(const struct lite_cluster *cl)
{
	return cl->state == LITE_NODE_UP || cl->state == LITE_NODE_JOINING;
}

static inline u32 lite_cluster_id(struct lite_cluster *cl)
{
	return READ_ONCE(cl->fab->self.node);
}

/* Hold session @session live; lite_conn_put_live() undoes it. Any context. Return: NULL: over. */
static inline struct lite_conn *lite_peer_conn_tryget(struct lite_peer *peer, u64 session)
{
	struct lite_conn *conn;

	rcu_read_lock();
	conn = rcu_dereference(peer->conn);
	if (conn && (conn->session != session || !percpu_ref_tryget_live_rcu(&conn->live)))
		conn = NULL;
	rcu_read_unlock();
	return conn;
}

/* For lite_cluster_recheck(). */
static inline unsigned long lite_cluster_life(const struct lite_cluster *cl)
{
	/* The caller reads the state after it; with lite_cluster_recheck(). */
	return smp_load_acquire(&cl->life);
}

#endif /* _LITE_CLUSTER_H */
