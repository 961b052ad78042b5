/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Calls of functions between processes (and kernel clients) of all nodes. Documentation/rpc.rst
 * describes functions, rings, records and slots. serve.h has the structures of the server's side,
 * call.h those of the client's.
 *
 * A node's calls to itself take the same path: the struct lite_rpc_peer has no connection, ring and
 * mirror are the same memory, and an immediate is a function call.
 *
 * Locking: svc->lock protects the server's side: functions, queues, waiters, states of requests.
 * rp->lock protects the client's side of a connection: its rings, slots, records, lines. Both are
 * spinlocks of process context, held briefly, and never nested in each other. Receive handlers take
 * both, one after the other, and within a node a post calls these handlers: so nothing is posted,
 * and no user memory is copied, with either held. The pools' locks nest inside both.
 */
#ifndef _LITE_FUNCTION_SERVICE_H
#define _LITE_FUNCTION_SERVICE_H

#include <linux/poll.h>

#include "wait.h"

#include "function/client/call.h"
#include "function/server/serve.h"

/* Limit of a node's rings and mirrors: its total memory divided by this, but at most BYTES_MAX. */
#define LITE_RINGS_SHARE 16
#define LITE_RINGS_BYTES_MAX (64UL << 20)
/* What is reserved for root in this pool and others: the pool's limit divided by this. */
#define LITE_SERVICE_RESERVE 8
#define LITE_FUNCTIONS_MAX 4096
/* Maximum number of open files that serve a function: each request may look at all of them. */
#define LITE_FUNC_SERVERS_MAX 256
/* Maximum number of functions that an open file has found by name. */
#define LITE_FOUND_MAX 262144U
/* Time after which an unused ring is unbound. */
#define LITE_CLIENT_RING_IDLE (10 * HZ)

/* Deadline, in jiffies, of a thread that serves or collects. */
static inline unsigned long lite_serve_deadline(s32 ms)
{
	unsigned long wait = lite_timeout_jiffies(ms, LITE_FOREVER);

	return jiffies + wait;
}

/*
 * Deadline of a call, in jiffies. LITE_NOWAIT concerns only room in the ring: it becomes a flag in
 * @flags, and the call itself has the default time-out.
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

/* Must a thread that serves or collects not wait? */
static inline bool lite_serve_nowait(u32 flags, s32 ms)
{
	return flags & LITE_RPC_NOWAIT || ms == LITE_NOWAIT;
}

/* What an open file serves, has taken, and has called. */
struct lite_rpc_file {
	struct lite_service *svc;
	refcount_t ref;			/* of the file, svc->files, @calls and @wake_work */
	struct list_head list;		/* in svc->files */
	bool shut;			/* under svc->lock, as the fields up to @waiters */
	struct list_head servers;	/* struct lite_server */
	u32 n_servers;
	u32 n_long;			/* servers with requests or replies too long for a ring */
	struct list_head taken;		/* struct lite_request */
	struct list_head waiters;	/* struct lite_recv_waiter, for any function */
	struct lite_pace pace;		/* of RECV; used by the waiter that is @watching */
	unsigned long watching;		/* bit 0: a waiter is awake, and does the poller's work */
	wait_queue_head_t wait;		/* for poll(2) */
	struct work_struct wake_work;	/* wakes all of @wait, with a reference to the file */
	spinlock_t lock;		/* the fields below; inside svc->lock and rp->lock */
	struct list_head calls;		/* struct lite_async */
	u32 n_calls;
	struct lite_line begun;		/* calls that have not ended, or are being collected */
	struct lite_line ended;		/* calls that have ended */
	struct lite_line collectors;	/* struct lite_collector, threads that wait in COLLECT */
	struct lite_pace collect_pace;	/* of COLLECT */
	struct xarray found;		/* cookies of functions found by name, by node and number */
	u32 n_found;
};

struct lite_rpc_file *lite_rpc_file_new(struct lite_service *svc);
void lite_rpc_file_put(struct lite_rpc_file *file);
void lite_rpc_file_wake(struct lite_rpc_file *file);
void lite_rpc_file_flush(struct lite_rpc_file *file, const void *owner);
void lite_rpc_file_shut(struct lite_rpc_file *file);
__poll_t lite_rpc_file_poll(struct lite_rpc_file *file, struct file *filp, poll_table *table);

int lite_user_fault_in(const struct lite_buf *buf, size_t from, size_t n, bool write);
int lite_user_copy(const struct lite_buf *buf, void *mem, size_t done, size_t n, bool in);
void lite_file_untake(struct lite_rpc_file *file, u64 token);
int lite_file_recv(struct lite_rpc_file *file, struct lite_ioc_rpc_recv *r, struct lite_gate *gate,
		   u8 prio);
int lite_file_call(struct lite_rpc_file *file, struct lite_ioc_rpc_call *c,
		   const struct lite_cred *cred, struct lite_gate *gate, u8 prio);
int lite_file_collect(struct lite_rpc_file *file, struct lite_ioc_rpc_collect *c,
		      struct lite_gate *gate);
int lite_async_begin(struct lite_rpc_file *file, struct lite_rcall *call,
		     const struct lite_ioc_rpc_call *c);
void lite_async_cancel(struct lite_rpc_file *file, const u32 *group, const void *owner);
void lite_async_stop(struct lite_rpc_file *file);
int lite_service_find(struct lite_service *svc, struct lite_ioc_rpc_find *f, u64 *cookie,
		      bool *here);
int lite_file_find(struct lite_rpc_file *file, struct lite_ioc_rpc_find *f);

/* Both sides of the calls on a connection, or of this node's calls to itself. */
struct lite_rpc_peer {
	struct lite_service *svc;
	struct lite_conn *conn;		/* NULL: this node */
	struct lite_io io;		/* for posts that are not waited for */
	struct xarray rings;		/* the server's side, by index; changed under svc->lock */
	bool down;			/* no new rings; under svc->lock */
	struct list_head answers;	/* requests, BUSY, for @answer_work; under svc->lock */
	struct work_struct answer_work;	/* answers them, waiting for room in the send queue */
	spinlock_t lock;		/* the client's side: the fields below */
	bool dead;			/* no new calls */
	u32 window;			/* calls that may still be started */
	struct lite_pool users;		/* the part of @window that non-root users may have */
	struct rb_root by_function;	/* struct lite_client_ring, NEW and LIVE ones */
	struct xarray by_index;		/* LIVE and CLOSING ones */
	struct list_head lines;		/* rings with calls in line, served in turn */
	u32 n_lines;
	u32 unlooked;			/* how many of these to look at: lite_lines_serve() */
	struct work_struct lines_work;	/* serves @lines if there are many */
	struct list_head cancels;	/* rings with calls that @cancel_work has to cancel */
	struct work_struct cancel_work;	/* cancels ABANDONED calls at the peer */
};

/* Workqueues in the order in which they are flushed, after @begins. */
enum lite_service_wq {
	/* Callers and servers wait for these. Only cancel_work and answer_work wait for a peer. */
	LITE_WQ_CALLS,
	/*
	 * UNBIND and GONE. A peer may delay an item for each of its rings, but no caller or server
	 * waits for these. Flushed last, as the end of a ring's last call queues its UNBIND.
	 */
	LITE_WQ_RINGS,
	LITE_SERVICE_WQS,
};

struct lite_service {
	struct lite_cluster *cl;
	struct lite_memory *mem;
	struct lite_fabric *fab;
	struct lite_stats __percpu *stats;
	struct lite_pool *pools;
	struct lite_rpc_peer local;	/* calls of this node to itself */
	atomic64_t cookies;		/* of functions; not reused after a restart of the node */
	atomic64_t seqs;		/* last sequence number of a call */
	spinlock_t lock;		/* the server's side */
	bool stopping;			/* the node stops: threads must not wait any more */
	struct xarray functions;	/* by number */
	struct rb_root names;		/* functions that have a name, by name */
	u32 next_function;		/* where to look for a free number */
	struct xarray rings;		/* by id */
	u32 requests;			/* number of requests so far */
	struct list_head files;		/* struct lite_rpc_file */
	struct lite_crew begins;	/* begins queued calls, which may have to bind rings */
	struct workqueue_struct *wq[LITE_SERVICE_WQS];
	atomic_t handlers;		/* work items of kernel clients' functions */
	struct delayed_work idle_work;	/* unbinds unused rings */
};

int lite_service_init(struct lite_service *svc, struct lite_memory *mem);
void lite_service_stop(struct lite_service *svc);
void lite_service_shut(struct lite_service *svc);
void lite_service_exit(struct lite_service *svc);

/* For the fabric (struct lite_fabric_ops). */
int lite_service_conn_init(struct lite_service *svc, struct lite_conn *conn);
void lite_service_conn_release(struct lite_conn *conn);
void lite_service_conn_down(struct lite_conn *conn);
void lite_service_conn_gone(struct lite_conn *conn);
void lite_service_recv(struct lite_conn *conn, u32 imm);

int lite_rpc_peer_post(struct lite_rpc_peer *rp, struct lite_area *area, u32 unit, u32 bytes,
		       u64 raddr, u32 imm, u32 how);
int lite_rpc_peer_call(struct lite_rpc_peer *rp, struct lite_call_desc *d);

static inline u32 lite_rpc_peer_node(const struct lite_rpc_peer *rp)
{
	return rp->conn ? rp->conn->from.node : lite_cluster_id(rp->svc->cl);
}

#endif /* _LITE_FUNCTION_SERVICE_H */
