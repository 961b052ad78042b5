/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Calls of functions between processes (and kernel clients) of all nodes.
 * Documentation/rpc.rst describes functions, rings, records and slots.
 *
 * server/
 *   func.c         functions: their servers, and requests waiting for a server
 *   kfunc.c        functions that kernel clients serve
 *   server_ring.c  server's side of a ring: requests come in, answers go out
 *   ring_call.c    BIND, UNBIND, CANCEL, FIND, served
 *   recv.c         taking requests and answering them
 *   serve_bulk.c   server's side of bulks
 * client/
 *   client_ring.c  client's side of a ring, from BIND to UNBIND
 *   ring_waiter.c  slots and records, and the calls that queue for them
 *   call.c         calls; end.c how they end
 *   async.c        calls that are collected later
 * area.c           memory of rings and mirrors, and of bulks: requests and
 *                  replies too long for a ring
 * function_file.c  what an open file serves, has taken, and has called
 * service.c        life of the layer, and of its part of a connection
 *
 * serve.h has the structures of the server's side, call.h those of the
 * client's.
 *
 * A node's calls to itself take the same path: the struct lite_rpc_peer has no
 * connection, ring and mirror are the same memory, and an immediate is a
 * function call.
 *
 * Locking: svc->lock protects the server's side: functions, queues, waiters,
 * states of requests. rp->lock protects the client's side of a connection: its
 * rings, slots, records, lines. Both are spinlocks of process context, held
 * briefly, and never nested in each other. Receive handlers take both, one
 * after the other; so nothing is posted, and no user memory is copied, with
 * one held. The pools' locks nest inside both.
 */
#ifndef _LITE_SERVICE_H
#define _LITE_SERVICE_H

#include <linux/poll.h>

#include "wait.h"

#include "function/client/call.h"
#include "function/server/serve.h"

/* Memory for the rings that a node serves: its total memory divided by this. */
#define LITE_RINGS_SHARE 16
#define LITE_RINGS_BYTES_MAX (64UL << 20)
/*
 * Reserve for root of that, and of the other pools: the limit divided by this.
 */
#define LITE_SERVICE_RESERVE 8
/* Maximum number of functions on a node. */
#define LITE_FUNCTIONS_MAX 4096
/* Maximum number of open files that serve a function: each request looks at all. */
#define LITE_FUNC_SERVERS_MAX 256
/* Maximum number of functions that an open file has found by name. */
#define LITE_FOUND_MAX 262144U
/* A ring that is unused for this long is unbound. */
#define LITE_CLIENT_RING_IDLE (10 * HZ)

/* Deadline, in jiffies, of a caller that serves or collects. */
static inline unsigned long lite_serve_deadline(s32 ms)
{
	unsigned long wait = lite_timeout_jiffies(ms, LITE_FOREVER);

	return jiffies + wait;
}

/*
 * Deadline of a call, in jiffies. LITE_NOWAIT only concerns room in the ring:
 * it sets that flag in @flags, and the call itself has the default time-out.
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

/* True if a caller that serves or collects does not want to wait. */
static inline bool lite_serve_nowait(u32 flags, s32 ms)
{
	return flags & LITE_RPC_NOWAIT || ms == LITE_NOWAIT;
}

static inline unsigned long lite_jiffies_left(unsigned long deadline)
{
	unsigned long now = jiffies;

	return time_before(now, deadline) ? deadline - now : 0;
}

/* ---- open files: function_file.c, recv.c, async.c ------------------------- */

/**
 * struct lite_rpc_file - what an open file serves, has taken, and has called
 * @svc: the node's services
 * @ref: held by the file and by its asynchronous calls
 * @list: in svc->files
 * @shut: takes no more requests; under svc->lock, as the fields up to @waiters
 * @servers: struct lite_server
 * @n_servers: entries of @servers
 * @n_long: servers with requests or replies too long for a ring
 * @taken: requests
 * @waiters: struct lite_recv_waiter, of any function; the others are their
 *	servers'
 * @pace: how long RECV waits; used by the waiter that is @watching
 * @watching: bit 0: one of @waiters is awake
 * @wait: for poll(2)
 * @wake_work: wakes them all, with a reference
 * @lock: protects the fields below; nests inside svc->lock and rp->lock
 * @calls: struct lite_async
 * @n_calls: entries of @calls
 * @begun: those that have not ended, or are being collected
 * @ended: those that have ended
 * @collectors: struct lite_collector, threads that wait in COLLECT
 * @collect_pace: how long COLLECT waits
 * @found: cookies of functions found by name, by node and number
 * @n_found: entries of @found
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
	struct work_struct wake_work;
	spinlock_t lock;
	struct list_head calls;
	u32 n_calls;
	struct lite_line begun;
	struct lite_line ended;
	struct lite_line collectors;
	struct lite_pace collect_pace;
	struct xarray found;
	u32 n_found;
};

struct lite_rpc_file *lite_rpc_file_new(struct lite_service *svc);
void lite_rpc_file_put(struct lite_rpc_file *file);
void lite_rpc_file_wake(struct lite_rpc_file *file);
void lite_rpc_file_flush(struct lite_rpc_file *file, const void *owner);
void lite_rpc_file_shut(struct lite_rpc_file *file);
__poll_t lite_rpc_file_poll(struct lite_rpc_file *file, struct file *filp,
			    poll_table *table);

int lite_user_fault_in(const struct lite_buf *buf, size_t from, size_t n,
		       bool write);
int lite_user_copy(const struct lite_buf *buf, void *mem, size_t done, size_t n,
		   bool in);
void lite_file_untake(struct lite_rpc_file *file, u64 token);
int lite_file_recv(struct lite_rpc_file *file, struct lite_ioc_rpc_recv *r,
		   struct lite_gate *gate);
int lite_file_call(struct lite_rpc_file *file, struct lite_ioc_rpc_call *c,
		   const struct lite_cred *cred, struct lite_gate *gate);
int lite_file_collect(struct lite_rpc_file *file,
		      struct lite_ioc_rpc_collect *c, struct lite_gate *gate);
bool lite_async_ready(struct lite_rpc_file *file);
int lite_async_begin(struct lite_rpc_file *file, struct lite_rcall *call,
		     const struct lite_ioc_rpc_call *c);
void lite_async_cancel(struct lite_rpc_file *file, const u32 *group,
		       const void *owner);
void lite_async_stop(struct lite_rpc_file *file);
int lite_service_find(struct lite_service *svc, struct lite_ioc_rpc_find *f,
		      u64 *cookie);
int lite_file_find(struct lite_rpc_file *file, struct lite_ioc_rpc_find *f);
u64 lite_file_found(struct lite_rpc_file *file, u32 node, u32 function);

/* ---- the layer: service.c ------------------------------------------------ */

/**
 * struct lite_rpc_peer - both sides of a connection, or of this node to itself
 * @svc: the node's services
 * @conn: the connection; NULL: this node
 * @list: in svc->peers
 * @io: for posts that are not waited for
 * @rings: the server's side, by index; changed under svc->lock
 * @down: no new rings; under svc->lock
 * @answers: requests, BUSY, to be answered by @answer_work; under svc->lock
 * @answer_work: answers them, waiting for room in the send queue
 * @lock: protects the client's side: the fields below
 * @dead: no new calls
 * @window: calls that may still be started
 * @users: the part of @window that non-root users may have
 * @client_rings: struct lite_client_ring, those that are not DEAD
 * @by_index: LIVE and CLOSING ones
 * @lines: struct lite_client_ring with calls in line; served in turn
 * @cancel_work: cancels ABANDONED calls at the peer
 */
struct lite_rpc_peer {
	struct lite_service *svc;
	struct lite_conn *conn;
	struct list_head list;
	struct lite_io io;
	struct xarray rings;
	bool down;
	struct list_head answers;
	struct work_struct answer_work;
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
 * enum lite_service_wq - workqueues, in the order in which they are flushed
 * @LITE_WQ_BEGIN: begins queued calls, which may have to bind rings
 * @LITE_WQ_HANDLERS: runs handlers of kernel clients
 * @LITE_WQ_CALLS: cancels, answers, and whatever else callers and servers wait
 *	for; of work that waits for a peer there is at most one item per peer
 * @LITE_WQ_RINGS: unbinds rings: a peer may delay an item for each of its
 *	rings, and neither callers nor servers wait for these. Last, as ending
 *	the last call of a ring closes it.
 */
enum lite_service_wq {
	LITE_WQ_BEGIN,
	LITE_WQ_HANDLERS,
	LITE_WQ_CALLS,
	LITE_WQ_RINGS,
	LITE_SERVICE_WQS,
};

/**
 * struct lite_service - the services of a node
 * @cl: the node's cluster
 * @mem: the node's memory
 * @fab: the node's fabric
 * @stats: the node's
 * @pools: the node's
 * @local: calls of this node to itself
 * @cookies: next cookie of a function; not reused after a restart of the node
 * @seqs: last sequence number of a call
 * @lock: protects the server's side
 * @stopping: the node stops: no more waiting
 * @functions: by number
 * @next_function: where to start looking for a free number
 * @rings: by id
 * @requests: number of requests so far
 * @files: struct lite_rpc_file
 * @wq: enum lite_service_wq
 * @idle_work: unbinds unused rings
 * @peers_lock: protects @peers
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
	u32 requests;
	struct list_head files;
	struct workqueue_struct *wq[LITE_SERVICE_WQS];
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
