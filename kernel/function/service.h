/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Calls of functions between processes (and kernel clients) of all nodes.
 * Documentation/rpc.rst tells the story: functions, rings, records, slots.
 *
 *   func.c     functions: who serves them, who waits for requests
 *   kfunc.c    those that kernel clients serve
 *   area.c     the memory of rings and mirrors
 *   ring.c     the server's side of a ring: requests come in, answers go out
 *   ring_call.c BIND, UNBIND, CANCEL, FIND, served
 *   client_ring.c     the client's side: from BIND to UNBIND
 *   ring_waiter.c     slots and records, and who waits for them
 *   call.c     calls
 *   end.c      how they end
 *   async.c    calls that are collected later, by collect.c
 *   bulk.c     memory for what is too long for a ring
 *   refer.c    the client's side of that; serve_bulk.c the server's
 *   file.c     what an open file has of all this
 *   recv.c     taking requests and answering them
 *   service.c  life of the layer, and of its part of a connection
 *
 * What the server's side is made of is in serve.h, the client's in call.h.
 *
 * A node's calls to itself take the same ways: its "connection" is a struct
 * lite_rpc_peer without one, ring and mirror are the same memory, and an immediate
 * is a function call.
 *
 * Locking: svc->lock protects all of the server's side: functions, queues, who
 * waits, states of requests. rp->lock protects the client's side of a connection:
 * its binds, slots, records, lines. They are spinlocks of process context, held
 * for moments, and not nested in each other. Receive handlers take both, one
 * after the other; so nothing is posted, and nobody's memory is copied, with one
 * held. Pools' locks are inside of both.
 */
#ifndef _LITE_SERVICE_H
#define _LITE_SERVICE_H

#include <linux/poll.h>

#include "wait.h"

#include "function/client/call.h"
#include "function/server/serve.h"

/* Memory for rings that a node gives, of all it has: one part in so many. */
#define LITE_RINGS_SHARE 16
#define LITE_RINGS_BYTES_MAX (64UL << 20)
/* What only root gets of that, and of the other pools: one part in so many. */
#define LITE_SERVICE_RESERVE 8
/* Functions of a node. */
#define LITE_FUNCTIONS_MAX 4096
/* Functions that an open file has found by name. */
#define LITE_FOUND_MAX 262144U
/* A ring that nobody uses for that long is given back. */
#define LITE_CLIENT_RING_IDLE (10 * HZ)

/* When the time-out of a caller that serves or collects is over, in jiffies. */
static inline unsigned long lite_serve_deadline(s32 ms)
{
	unsigned long wait = lite_timeout_jiffies(ms, LITE_FOREVER);

	return jiffies + wait;
}

/*
 * When the time-out of a call is over, in jiffies. LITE_NOWAIT is about room in the
 * ring, and sets that flag in @flags.
 */
static inline unsigned long lite_call_deadline(s32 ms, u32 *flags)
{
	unsigned long wait;

	if (ms == LITE_NOWAIT) {
		*flags |= LITE_RPC_NOWAIT;
		ms = LITE_TIMEOUT_DEFAULT;
	}
	wait = lite_timeout_jiffies(ms, LITE_RPC_TIMEOUT_DEFAULT);
	return jiffies + wait;
}

/* Does the caller that serves or collects not wait? */
static inline bool lite_serve_nowait(u32 flags, s32 ms)
{
	return flags & LITE_RPC_NOWAIT || ms == LITE_NOWAIT;
}

static inline unsigned long lite_jiffies_left(unsigned long deadline)
{
	unsigned long now = jiffies;

	return time_before(now, deadline) ? deadline - now : 0;
}

/* ---- open files: file.c, recv.c, async.c --------------------------------- */

/**
 * struct lite_rpc_file - what an open file serves, has taken, and has called
 * @svc: node's
 * @ref: the file's, and those of its asynchronous calls
 * @list: in svc->files
 * @shut: takes nothing any more; under svc->lock, as the next ones
 * @servers: struct lite_server
 * @n_servers: how many
 * @n_long: of them, take or give more than goes through a ring
 * @taken: requests
 * @waiters: struct lite_recv_waiter
 * @pace: how long RECV waits; of who is @watching
 * @watching: bit 0: one of @waiters is awake
 * @wait: for poll(2)
 * @lock: protects the next ones; inside of svc->lock and rp->lock
 * @calls: struct lite_async, under way
 * @ended: those that have ended
 * @n_calls: in both
 * @collectors: struct lite_collector, those who wait in COLLECT
 * @collect_pace: how long they wait
 * @found: functions that were found by name, by node and number: whose cookies
 * @n_found: in it
 * @expire: ends those that take too long
 * @expiring: it is to run, at
 * @expire_at: jiffies
 */
struct lite_rpc_file {
	struct lite_service *svc;
	struct kref ref;
	struct list_head list;
	bool shut;
	struct list_head servers;
	u32 n_servers;
	u32 n_long;
	struct list_head taken;
	struct list_head waiters;
	struct lite_pace pace;
	unsigned long watching;
	wait_queue_head_t wait;
	spinlock_t lock;
	struct list_head calls;
	struct list_head ended;
	u32 n_calls;
	struct list_head collectors;
	struct lite_pace collect_pace;
	struct xarray found;
	u32 n_found;
	struct delayed_work expire;
	bool expiring;
	unsigned long expire_at;
};

struct lite_rpc_file *lite_rpc_file_new(struct lite_service *svc);
void lite_rpc_file_put(struct lite_rpc_file *file);
void lite_rpc_file_flush(struct lite_rpc_file *file, const void *owner);
void lite_rpc_file_shut(struct lite_rpc_file *file);
__poll_t lite_rpc_file_poll(struct lite_rpc_file *file, struct file *filp,
			    poll_table *table);

int lite_user_fault_in(const struct lite_buf *buf, size_t from, size_t n,
		       bool write);
void lite_file_untake(struct lite_rpc_file *file, u64 token);
int lite_file_recv(struct lite_rpc_file *file, struct lite_ioc_rpc_recv *r,
		   struct lite_gate *gate);
int lite_file_call(struct lite_rpc_file *file, struct lite_ioc_rpc_call *c,
		   const struct lite_cred *cred, struct lite_gate *gate);
int lite_file_collect(struct lite_rpc_file *file,
		      struct lite_ioc_rpc_collect *c, struct lite_gate *gate);
bool lite_async_ready(struct lite_rpc_file *file);
void lite_async_expire_work(struct work_struct *work);
void lite_async_flush(struct lite_rpc_file *file, const void *owner);
void lite_async_stop(struct lite_rpc_file *file);
void lite_async_shut(struct lite_rpc_file *file);
int lite_service_find(struct lite_service *svc, struct lite_ioc_rpc_find *f,
		      u64 *cookie);
int lite_file_find(struct lite_rpc_file *file, struct lite_ioc_rpc_find *f);
u64 lite_file_found(struct lite_rpc_file *file, u32 node, u32 function);

/* ---- the layer: service.c ------------------------------------------------ */

/**
 * struct lite_rpc_peer - both sides of a connection, or of this node to itself
 * @svc: node's
 * @conn: NULL: this node
 * @list: in svc->peers
 * @io: of what is posted and not waited for
 * @rings: the server's side, by index; changed under svc->lock
 * @down: no new rings; under svc->lock
 * @late: requests, BUSY, whose answers found no room in the send queue; likewise
 * @late_work: posts these
 * @lock: protects the client's side, the next ones
 * @dead: no new calls
 * @window: calls that may yet be under way
 * @users: the part of these that users may have who are not root
 * @client_rings: struct lite_client_ring, those that are not DEAD
 * @by_index: LIVE and CLOSING ones
 * @lines: struct lite_client_ring, those with somebody in line; in turns
 * @cancel_work: tells the peer of ABANDONED calls
 */
struct lite_rpc_peer {
	struct lite_service *svc;
	struct lite_conn *conn;
	struct list_head list;
	struct lite_io io;
	struct xarray rings;
	bool down;
	struct list_head late;
	struct work_struct late_work;
	spinlock_t lock;
	bool dead;
	u32 window;
	struct lite_pool users;
	struct list_head client_rings;
	struct xarray by_index;
	struct list_head lines;
	struct work_struct cancel_work;
};

/**
 * struct lite_service - the services of a node
 * @cl: node's
 * @mem: node's
 * @fab: node's
 * @stats: node's
 * @pools: node's
 * @local: calls of this node to itself
 * @cookies: of functions; differ from life to life
 * @seqs: of calls
 * @lock: protects the server's side
 * @stopping: nobody waits any more
 * @functions: by number
 * @next_function: where to look for a number that is free
 * @rings: by id
 * @taken: requests, so far
 * @files: struct lite_rpc_file
 * @answers: requests to be answered by @answer_work
 * @wq: workqueue: cancels, answers, all that is done for callers and servers; of
 *	what waits for a peer there is one item for each, at most
 * @ring_wq: giving back rings: as many items as a peer has rings may wait for it,
 *	and callers and servers for none
 * @begin_wq: beginning calls whose callers do not wait for that: binds rings
 * @kwq: handlers of kernel clients
 * @idle_work: gives back what nobody uses
 * @peers_lock: protects the next one
 * @peers: struct lite_rpc_peer
 */
struct lite_service {
	struct lite_cluster *cl;
	struct lite_memory *mem;
	struct lite_fabric *fab;
	struct lite_stats __percpu *stats;
	struct lite_pool *pools;
	struct lite_rpc_peer local;
	atomic64_t cookies;
	atomic64_t seqs;
	spinlock_t lock;
	bool stopping;
	struct xarray functions;
	u32 next_function;
	struct xarray rings;
	u32 taken;
	struct list_head files;
	struct list_head answers;
	struct work_struct answer_work;
	struct workqueue_struct *wq;
	struct workqueue_struct *ring_wq;
	struct workqueue_struct *begin_wq;
	struct workqueue_struct *kwq;
	struct delayed_work idle_work;
	spinlock_t peers_lock;
	struct list_head peers;
};

int lite_service_init(struct lite_service *svc, struct lite_memory *mem,
		      struct lite_kcalls *rpc);
void lite_service_stop(struct lite_service *svc);
void lite_service_shut(struct lite_service *svc);
void lite_service_exit(struct lite_service *svc);

/* For the fabric (struct lite_fabric_ops). */
int lite_service_conn_init(struct lite_service *svc, struct lite_conn *conn);
void lite_service_conn_release(struct lite_conn *conn);
void lite_service_conn_down(struct lite_conn *conn);
void lite_service_conn_gone(struct lite_conn *conn);
void lite_service_recv(struct lite_conn *conn, u32 imm);

int lite_rpc_peer_post(struct lite_rpc_peer *rp, struct lite_area *area,
		       u32 unit, u32 bytes, u64 raddr, u32 imm, bool nowait);

#endif /* _LITE_SERVICE_H */
