/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The RDMA device as the layers above see it: a protection domain with one key
 * for all memory, connections of K queue pairs to other nodes, one-sided
 * operations on them, small messages announced by immediate data, and a fence.
 *
 * Lifetime of a connection (struct lite_conn)
 *
 *   lite_conn_connect(), or a request accepted by the listener, creates it.
 * Posters hold @live (a percpu_ref), from lite_conn_tryget() until the
 * operation has completed. Users that only need the memory hold @ref.
 *
 *   lite_conn_kill() ends it, from any context, once. A work item then marks
 * it dead for new posters, moves the QPs to the error state so that what is in
 * flight is flushed, and destroys the QPs. That is the fence: from then on the
 * peer cannot touch our memory through this connection or, if the device has
 * failed to destroy them, only memory in quarantine (dma.c). Then it completes
 * @fenced, waits for the last poster and frees everything.
 *
 * Locking, outermost first: lite_conn.lock, conns_lock, lite_cq.lock,
 * lite_cq.wait, lite_poller.lock, lite_poller.asleep; lite_qp.lock,
 * lite_fabric.bounce_lock. No spinlock is held while completion handlers run.
 */
#ifndef _LITE_FABRIC_H
#define _LITE_FABRIC_H

#include <linux/completion.h>
#include <linux/kref.h>
#include <linux/list.h>
#include <linux/sizes.h>
#include <linux/mutex.h>
#include <linux/percpu-refcount.h>
#include <linux/socket.h>
#include <linux/wait.h>
#include <linux/workqueue.h>
#include <rdma/ib_verbs.h>
#include <rdma/rdma_cm.h>
#include <uapi/lite_netlink.h>

#include "pool.h"
#include "stats.h"
#include "wire/wire.h"
#include "pace.h"
#include "quirks.h"

struct lite_conn;
struct lite_fabric;
struct lite_io;

/*
 * Work requests that one QP can have in flight, besides messages of calls: of
 * up to LITE_BULK_BYTES, and longer ones; and the bytes of all of them.
 */
#define LITE_SQ_DEPTH 64
#define LITE_SQ_SMALL 56
#define LITE_SQ_BULK (LITE_SQ_DEPTH - LITE_SQ_SMALL)
#define LITE_BULK_BYTES SZ_16K
#define LITE_SQ_BYTES_MAX                                                      \
	(LITE_SQ_SMALL * LITE_BULK_BYTES + LITE_SQ_BULK * LITE_WR_BYTES_MAX)
/* Messages of calls between kernels: a request and a reply per slot. */
#define LITE_MESSAGES (2 * LITE_SLOT_COUNT)
/* Calls of functions that one side may have in flight: see kernel/function. */
#define LITE_RPC_WINDOW 256
/*
 * Receives: one for every request and reply that the slots and windows of both
 * sides allow, and a few spare ones.
 */
#define LITE_RQ_DEPTH (2 * LITE_SLOT_COUNT + 2 * LITE_RPC_WINDOW + 8)
/* Maximum SGEs of a work request, if the device supports as many. */
#define LITE_SGE_MAX 30
/*
 * Maximum bytes of a work request: each has to complete within the operation
 * time-out.
 */
#define LITE_WR_BYTES_MAX SZ_128K

/* ---- completion queues and the poller ------------------------------------ */

/**
 * struct lite_poller - the thread that serves the CQs of a node
 * @task: the thread
 * @lock: protects @ready; taken in completion interrupts
 * @ready: CQs that may have completions
 * @watchers: threads that are awake and serve @ready meanwhile
 * @asleep: threads in lite_poller_await() that serve it when they are woken
 * @guard: wakes @task if such a thread is late
 * @napi: network queue that awake waiters take packets from, as of the last
 *	connection; 0: none
 */
struct lite_poller {
	struct task_struct *task;
	spinlock_t lock;
	struct list_head ready;
	atomic_t watchers;
	wait_queue_head_t asleep;
	struct timer_list guard;
	u32 napi;
};

/**
 * struct lite_cq - a completion queue
 * @ib: the device's CQ
 * @poller: the poller that serves it
 * @lock: serialises polling against closing
 * @closed: no more polling, not listed any more
 * @sleepers: waiters that sleep until another thread takes their completions;
 *	while there are any, the queue is armed, or a thread is about to arm it
 * @wait: those of them that take completions themselves when woken
 * @always: receive CQ: keep it armed even without sleepers, and have one
 *	thread at a time run its handlers, in order
 * @busy: bit 0: a thread runs the handlers
 * @ready: link in the poller's ready list
 */
struct lite_cq {
	struct ib_cq *ib;
	struct lite_poller *poller;
	spinlock_t lock;
	bool closed;
	bool always;
	unsigned long busy;
	atomic_t sleepers;
	wait_queue_head_t wait;
	struct list_head ready;
};

u32 lite_napi_of(const struct rdma_cm_id *id);
void lite_napi_poll(u32 napi);

/* For a software device: once in each round of an awake wait. */
static inline void lite_poller_receive(const struct lite_poller *poller)
{
	u32 napi = READ_ONCE(poller->napi);

	if (napi)
		lite_napi_poll(napi);
}

int lite_poller_start(struct lite_poller *poller, const char *name);
void lite_poller_stop(struct lite_poller *poller);
long lite_poller_await(struct lite_poller *poller, struct completion *done,
		       u64 awake_ns, unsigned int state, long timeout);
struct lite_cq *lite_cq_create(struct lite_fabric *fab, int depth, bool always);
void lite_cq_close(struct lite_cq *cq);
void lite_cq_destroy(struct lite_cq *cq, bool stuck);
void lite_cq_barrier(void);
void lite_cq_quiesce(void);
int lite_cq_poll(struct lite_cq *cq);
void lite_cq_wake(struct lite_cq *cq);
bool lite_cq_notify(struct lite_cq *cq);
void lite_cq_arm(struct lite_cq *cq);
void lite_cq_arm_sleeper(struct lite_cq *cq);
void lite_cq_disarm_sleeper(struct lite_cq *cq);

/* ---- operations ---------------------------------------------------------- */

/**
 * struct lite_io - one or more work requests that are waited for together
 * @pending: work requests in flight, plus one for the poster
 * @status: first error; 0: none so far
 * @waiter: task to wake when only its own share is pending; or NULL
 * @end: without @waiter, if not NULL: called by the thread that handles the
 *	last completion; must not sleep; owns the io from then on
 *
 * If it is waited for it lives on the waiter's stack, and is not touched after
 * the last of its work requests has been taken off @pending.
 */
struct lite_io {
	atomic_t pending;
	int status;
	struct task_struct *waiter;
	void (*end)(struct lite_io *io);
};

/**
 * struct lite_wr - a slot of a QP's send queue
 * @cqe: leads from the completion to this slot
 * @qp: queue pair of the slot
 * @bit: its bit in lite_qp.busy; 0 for a message
 * @io: io to notify; NULL while free. The thread that swaps it for NULL
 *	completes it.
 * @before: bitmap of slots of unsignalled work requests posted with it, before
 *	it; they complete with it; 0 while it is free
 */
struct lite_wr {
	struct ib_cqe cqe;
	struct lite_qp *qp;
	u64 bit;
	struct lite_io *io;
	u64 before;
};

/* Classes of slots. */
enum lite_slot_class {
	LITE_SLOT_SMALL, /* up to LITE_BULK_BYTES */
	LITE_SLOT_BULK,
	LITE_SLOT_CLASSES,
};

/**
 * struct lite_qp - a reliable connected queue pair and its send slots
 * @ib: the device's QP; NULL if it does not exist
 * @conn: its connection
 * @scq: CQ of its sends
 * @busy: bitmap of slots of @wr in use
 * @stuck: the device has refused to destroy it
 * @lock: protects @line and @waiting
 * @line: per class, posters waiting for a slot (struct lite_post)
 * @waiting: per class, number of entries of @line
 * @acked: jiffies at which the peer's device last acknowledged something
 * @qpn: QP number
 * @psn: first packet sequence number to send with (random)
 * @pace: how long to wait awake
 * @wr: the slots
 */
struct lite_qp {
	struct ib_qp *ib;
	struct lite_conn *conn;
	struct lite_cq *scq;
	atomic64_t busy;
	bool stuck;
	int waiting[LITE_SLOT_CLASSES];
	unsigned long acked;
	struct list_head line[LITE_SLOT_CLASSES];
	spinlock_t lock;
	u32 qpn;
	u32 psn;
	struct lite_pace pace;
	struct lite_wr wr[LITE_SQ_DEPTH];
};

void lite_io_init(struct lite_io *io);
void lite_io_init_unwaited(struct lite_io *io, void (*end)(struct lite_io *io));
void lite_io_end(struct lite_io *io, int status, int n);
void lite_io_wait(struct lite_io *io, struct lite_qp *qp);
void lite_io_wait_long(struct lite_io *io, struct lite_qp *qp, u64 awake_ns);
void lite_io_leave(struct lite_io *io);

/* Has everything posted completed? Then its status is final. */
static inline bool lite_io_ended(const struct lite_io *io)
{
	return atomic_read_acquire(&io->pending) == 1;
}

/* Count work requests about to be posted; negative if they were not. */
static inline void lite_io_expect(struct lite_io *io, int n)
{
	atomic_add(n, &io->pending);
}

int lite_qp_post(struct lite_qp *qp, struct lite_io *io,
		 struct ib_send_wr *send, bool nowait);
int lite_qp_rdma(struct lite_qp *qp, struct lite_io *io, enum ib_wr_opcode op,
		 struct ib_sge *sge, int n_sge, u64 raddr, u32 imm);
int lite_conn_send(struct lite_conn *conn, u32 n, struct lite_io *io,
		   struct ib_sge *sge, u64 raddr, u32 imm);
u64 lite_conn_scratch(const struct lite_conn *conn, struct ib_sge *sge);
int lite_qp_confirm(struct lite_qp *qp, struct lite_io *io);
int lite_qp_init(struct lite_qp *qp, struct lite_conn *conn, bool first);
void lite_qp_flush(struct lite_qp *qp);
bool lite_qp_destroy(struct lite_qp *qp);
void lite_qp_abort(struct lite_qp *qp);
void lite_qp_free(struct lite_qp *qp);

/* ---- bounce slots -------------------------------------------------------- */

#define LITE_BOUNCE_SIZE PAGE_SIZE

struct lite_bounce_pool;

/**
 * struct lite_bounce - a page that stays mapped for DMA
 * @list: for the current owner
 * @pool: its pool
 * @bit: its bit there
 * @data: LITE_BOUNCE_SIZE bytes
 * @dma: DMA address
 * @since: for lite_dma_unmap_page()
 */
struct lite_bounce {
	struct list_head list;
	struct lite_bounce_pool *pool;
	s64 bit;
	void *data;
	u64 dma;
	u32 since;
};

int lite_bounce_init(struct lite_fabric *fab);
void lite_bounce_exit(struct lite_fabric *fab);
struct lite_bounce *lite_bounce_tryget(struct lite_fabric *fab);
struct lite_bounce *lite_bounce_get(struct lite_fabric *fab);
void lite_bounce_put(struct lite_fabric *fab, struct lite_bounce *bounce);
void lite_bounce_failed(struct lite_fabric *fab, struct lite_bounce *bounce);

/* ---- authentication ------------------------------------------------------ */

#define LITE_NONCES_SEEN 256

/**
 * struct lite_auth - the cluster secret and what was done with it
 * @secret_tfm: HMAC-SHA-256 keyed with the cluster secret
 * @cookie_tfm: HMAC-SHA-256 with a random key of this node, from which the
 *	nonces of challenges are derived, so that a challenge costs no memory
 * @lock: protects @seen
 * @seen: nonces that have been used to connect, until their challenge expires
 * @insecure: there is no secret: the key of @secret_tfm is public
 */
struct lite_auth {
	struct crypto_shash *secret_tfm;
	struct crypto_shash *cookie_tfm;
	spinlock_t lock;
	struct {
		u8 nonce[LITE_NONCE_SIZE];
		u64 epoch;
	} seen[LITE_NONCES_SEEN];
	bool insecure;
};

int lite_auth_init(struct lite_auth *auth, const u8 *secret, size_t len);
void lite_auth_exit(struct lite_auth *auth);
int lite_auth_challenge(struct lite_auth *auth,
			const struct sockaddr_storage *responder,
			const struct lite_cm_hello *hello,
			struct lite_cm_challenge *out);
int lite_auth_check_connect(struct lite_auth *auth,
			    const struct sockaddr_storage *responder,
			    const struct lite_cm_connect *connect);
int lite_auth_challenge_mac(struct lite_auth *auth,
			    const struct sockaddr_storage *responder,
			    const struct lite_cm_hello *hello,
			    const struct lite_cm_challenge *ch, u8 *mac);
int lite_auth_proof(struct lite_auth *auth,
		    const struct sockaddr_storage *responder, const u8 *nonce,
		    const struct lite_cm_connect *connect, u8 *mac);
int lite_auth_accept_mac(struct lite_auth *auth,
			 const struct sockaddr_storage *responder,
			 const u8 *nonce, const struct lite_cm_accept *accept,
			 u8 *mac);
int lite_auth_compare(const u8 *mac, const u8 *got, size_t size);

/* ---- addresses ----------------------------------------------------------- */

void lite_addr_to_wire(struct lite_wire_addr *w,
		       const struct sockaddr_storage *addr);
int lite_addr_from_wire(struct sockaddr_storage *addr,
			const struct lite_wire_addr *w);
bool lite_addr_equal(const struct sockaddr_storage *a,
		     const struct sockaddr_storage *b);

/* ---- connections --------------------------------------------------------- */

/* Identity of a node, as claimed by a peer that knows the cluster secret. */
struct lite_ident {
	u32 node;
	u64 incarnation;
	u16 port;
};

enum lite_conn_state {
	LITE_CONN_NEW,    /* not yet usable by the layers above */
	LITE_CONN_UP,
	LITE_CONN_DEAD,
};

/*
 * A range of a connection's queue pairs. The fields change while it comes up;
 * any mix of old and new values is valid.
 */
struct lite_qp_range {
	u8 first;
	u8 n;
};

/**
 * struct lite_conn - one session with one peer
 * @fab: the fabric
 * @ref: keeps the memory
 * @live: held by posters; killed with the connection
 * @list: in fab->conns
 * @lock: held while the device's objects are created or destroyed
 * @state: enum lite_conn_state; changes by cmpxchg
 * @reason: errno that killed it
 * @cause: why it ended, if it was UP: enum lite_end_cause; final when @state is
 *	DEAD and its work item runs
 * @figure: number that goes with @cause; see enum lite_end_cause
 * @passive: the peer connected to us
 * @self: the peer is this node, as proven by the nonce
 * @session: number of this connection, never reused on this node
 * @up_before: connections with a higher number were begun when it was UP
 * @other_end: of a connection to ourselves that we have made: its other end is
 *	a session up to this number; else 0
 * @id: CM identifier of the first QP
 * @cm_done: completed by the next event of the CM, and when the connection
 *	dies
 * @cm_status: result of that event
 * @cm_reply: private data that came with it
 * @from: the peer's identity
 * @nonce: nonce of the handshake
 * @repeats: the quirk, of the peer's device or ours
 * @nqps: number of queue pairs made
 * @n_connected: number of queue pairs connected
 * @n_up: number of queue pairs that the peer has connected, too
 * @use: queue pairs for operations that fetch bytes [1] and for others [0]
 * @rd_atom: negotiated number of outstanding reads and atomics per QP
 * @read_trusted: longer RDMA reads have to be confirmed: lite_qp_confirm()
 * @qp: the queue pairs
 * @message: work requests of messages, on the first queue pair
 * @rcq: CQ of the first QP's receives
 * @rkey: the peer's
 * @requests: address of the peer's slots for our requests
 * @replies: address of the peer's slots for our replies
 * @slots_in: addresses of our slots, set by the layer above
 * @rpc: state of the layer above
 * @service: state of the services layer
 * @peer: the cluster layer's, under its rules
 * @heard: jiffies at which the peer's last message came
 * @asked: jiffies at which the peer had got the first request since @heard; if
 *	not after @heard, it owes us no reply
 * @drained: completed when @live has dropped to zero
 * @fenced: completed when the peer can no longer touch our memory, or
 *	@unfenced is set
 * @unfenced: the device has failed to fence the peer
 * @stuck: the device has kept a queue pair
 * @gone: completed when the device has nothing of it any more
 */
struct lite_conn {
	struct lite_fabric *fab;
	struct kref ref;
	struct percpu_ref live;
	struct list_head list;
	struct mutex lock;
	int state;
	int reason;
	enum lite_end_cause cause;
	u64 figure;
	bool passive;
	bool self;
	u64 session;
	u64 up_before;
	u64 other_end;
	struct rdma_cm_id *id;
	struct completion cm_done;
	int cm_status;
	union {
		struct lite_cm_hdr hdr;
		struct lite_cm_challenge challenge;
		struct lite_cm_refuse refuse;
		struct lite_cm_accept accept;
	} cm_reply;
	struct lite_ident from;
	u8 nonce[LITE_NONCE_SIZE];
	bool repeats;
	u8 nqps;
	u8 n_connected;
	u8 n_up;
	struct lite_qp_range use[2];
	u8 rd_atom;
	u32 read_trusted;
	struct lite_qp qp[LITE_QPS_MAX];
	struct lite_wr message[LITE_MESSAGES];
	struct lite_cq *rcq;
	struct ib_cqe recv_cqe;
	u32 rkey;
	u64 requests;
	u64 replies;
	struct {
		u64 requests;
		u64 replies;
	} slots_in;
	void *rpc;
	void *service;
	void *peer;
	unsigned long heard;
	unsigned long asked;
	struct work_struct accept_work;
	struct work_struct kill_work;
	struct delayed_work deadline;
	struct completion drained;
	struct completion fenced;
	bool unfenced;
	bool stuck;
	struct completion gone;
};

/**
 * struct lite_fabric_ops - callbacks to the layers above
 * @stays: is a device that was found not about to be removed, and will its
 *	removal wait for the caller?
 * @conn_init: allocate message slots; may sleep
 * @conn_release: free them; the device cannot reach them any more
 * @recv: a message was announced; called by the poller, must not sleep
 * @admit: a peer that knows the secret wants to connect: 0 or -errno; may
 *	sleep
 * @conn_down: the connection is dying; may sleep, but must not wait for
 *	operations that do
 * @conn_gone: the peer is fenced; may sleep
 */
struct lite_fabric_ops {
	bool (*stays)(void *priv, struct ib_device *dev);
	int (*conn_init)(void *priv, struct lite_conn *conn);
	void (*conn_release)(void *priv, struct lite_conn *conn);
	void (*recv)(void *priv, struct lite_conn *conn, u32 imm);
	int (*admit)(void *priv, struct lite_conn *conn);
	void (*conn_down)(void *priv, struct lite_conn *conn);
	void (*conn_gone)(void *priv, struct lite_conn *conn);
};

/**
 * struct lite_fabric_params - what a node wants of its device
 * @dev: name of the RDMA device; empty: the one that has @addr
 * @addr: address and port to listen on
 * @nqps: queue pairs per peer, 1..LITE_QPS_MAX
 * @op_timeout: jiffies within which a work request has to complete
 * @secret: cluster secret
 * @secret_len: bytes, may be 0
 */
struct lite_fabric_params {
	char dev[IB_DEVICE_NAME_MAX];
	struct sockaddr_storage addr;
	u8 nqps;
	unsigned long op_timeout;
	const u8 *secret;
	size_t secret_len;
};

struct lite_fabric {
	struct ib_device *dev;
	u8 port_num;
	u8 nqps;
	u16 max_sge;
	u16 max_sge_rd;
	u8 rd_atom;
	bool atomics;
	struct lite_quirks quirks;
	size_t map_max;             /* bytes mapped at a time */
	unsigned long op_timeout;
	struct ib_pd *pd;
	struct ib_mr *mr;
	u32 lkey;
	u32 rkey;
	struct sockaddr_storage addr;
	struct lite_ident self;     /* changes only without concurrency */
	struct rdma_cm_id *listener;
	struct lite_auth auth;
	struct lite_poller poller;
	struct lite_bounce_pool __percpu *bounce;
	spinlock_t bounce_lock;     /* protects the next two */
	struct list_head bounce_line; /* threads waiting for a page */
	int bounce_waiting;         /* entries of bounce_line */
	struct lite_stats __percpu *stats;
	struct lite_pool *pools; /* of the node: enum lite_pool_number */
	struct workqueue_struct *wq;        /* ends connections */
	struct workqueue_struct *accept_wq; /* accepts; waits for ends */
	const struct lite_fabric_ops *ops;
	void *priv;
	atomic64_t sessions;
	spinlock_t conns_lock;      /* protects conns and closing */
	struct list_head conns;
	bool closing;
	wait_queue_head_t conns_wait;
	atomic_t unfenced;          /* fences that have failed */
	bool stuck;                 /* the device has kept queue pairs */
};

int lite_fabric_init(struct lite_fabric *fab,
		     const struct lite_fabric_params *params,
		     const struct lite_fabric_ops *ops, void *priv,
		     const char **why);
int lite_fabric_listen(struct lite_fabric *fab);
void lite_fabric_end_all(struct lite_fabric *fab, int reason);
void lite_fabric_shutdown(struct lite_fabric *fab);
void lite_fabric_exit(struct lite_fabric *fab);

int lite_dma_map_page(struct lite_fabric *fab, struct page *page, size_t size,
		      u64 *dma);
int lite_dma_check(struct lite_fabric *fab, const char **why);
bool lite_dma_unmap_page(struct lite_fabric *fab, u64 dma, size_t size,
			 u32 since);
void lite_dma_unfenced(struct lite_fabric *fab);

/* Number of fences that have failed so far, for lite_dma_unmap_page(). */
static inline u32 lite_dma_since(const struct lite_fabric *fab)
{
	return atomic_read(&fab->unfenced);
}

struct lite_conn *lite_conn_alloc(struct lite_fabric *fab);
int lite_conn_setup(struct lite_conn *conn);
int lite_conn_add_qps(struct lite_conn *conn, const struct lite_wire_qp *remote,
		      u8 n);
int lite_conn_register(struct lite_conn *conn);
bool lite_conn_is_own(const struct lite_conn *conn);
void lite_conn_ready(struct lite_conn *conn);
bool lite_conn_set_up(struct lite_conn *conn);
void lite_conn_arm_deadline(struct lite_conn *conn);
void lite_conn_kill(struct lite_conn *conn, int reason);
void lite_conn_end(struct lite_conn *conn, enum lite_end_cause cause,
		   u64 figure, int reason);
int lite_conn_fence(struct lite_conn *conn, int reason);
void lite_conn_put(struct lite_conn *conn);
void lite_conn_asked(struct lite_conn *conn, unsigned long begun);
unsigned long lite_conn_acked(const struct lite_conn *conn);
unsigned long lite_conn_heard(const struct lite_conn *conn);
void lite_conn_excuse(struct lite_conn *conn, unsigned long by);
void lite_conn_listen(struct lite_conn *conn);
int lite_conn_flush(struct lite_conn *conn);

int lite_cm_bind(struct lite_fabric *fab);
void lite_cm_unlisten(struct lite_fabric *fab);
int lite_conn_connect(struct lite_fabric *fab,
		      const struct sockaddr_storage *dst, unsigned long timeout,
		      struct lite_conn **out);

static inline void lite_conn_get(struct lite_conn *conn)
{
	kref_get(&conn->ref);
}

/* Become a poster; false: the connection is dying. */
static inline bool lite_conn_tryget(struct lite_conn *conn)
{
	return percpu_ref_tryget_live(&conn->live);
}

static inline void lite_conn_put_live(struct lite_conn *conn)
{
	percpu_ref_put(&conn->live);
}

static inline bool lite_conn_is_dead(struct lite_conn *conn)
{
	return READ_ONCE(conn->state) == LITE_CONN_DEAD;
}

/* A work request for lite_qp_post(): an RDMA read or write. */
static __always_inline struct ib_rdma_wr
lite_rdma_wr(const struct lite_qp *qp, enum ib_wr_opcode op, struct ib_sge *sge,
	     int n_sge, u64 raddr, u32 imm)
{
	return (struct ib_rdma_wr){
		.wr.opcode = op,
		.wr.sg_list = sge,
		.wr.num_sge = n_sge,
		.wr.ex.imm_data = cpu_to_be32(imm),
		.remote_addr = raddr,
		.rkey = qp->conn->rkey,
	};
}

/*
 * Or an atomic operation on 8 bytes. @sge is for the old value, @raddr is a
 * multiple of 8, @operand is the addend, or the value expected.
 */
static __always_inline struct ib_atomic_wr
lite_atomic_wr(const struct lite_qp *qp, enum ib_wr_opcode op,
	       struct ib_sge *sge, u64 raddr, u64 operand, u64 swap)
{
	return (struct ib_atomic_wr){
		.wr.opcode = op,
		.wr.sg_list = sge,
		.wr.num_sge = 1,
		.remote_addr = raddr,
		.compare_add = operand,
		.swap = swap,
		.rkey = qp->conn->rkey,
	};
}

/*
 * The queue pairs of a live connection for a kind of operations: @fetch, those
 * that bring bytes back (reads and atomics), or others. With the quirk
 * fetch_apart the former have the last queue pair, and the others the rest. Sets
 * @first; returns how many there are. Any context.
 */
static inline u8 lite_conn_qps(struct lite_conn *conn, bool fetch,
			       struct lite_qp **first)
{
	const struct lite_qp_range *r = &conn->use[fetch];

	*first = &conn->qp[READ_ONCE(r->first)];
	return READ_ONCE(r->n);
}

/* Choose a queue pair by processor. */
static inline struct lite_qp *lite_conn_qp(struct lite_conn *conn, bool fetch)
{
	struct lite_qp *first;
	u8 n = lite_conn_qps(conn, fetch, &first);

	return &first[raw_smp_processor_id() % n];
}

#endif /* _LITE_FABRIC_H */
