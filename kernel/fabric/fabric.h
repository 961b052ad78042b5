/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The RDMA device as the layers above see it: a protection domain with one key for all memory,
 * connections of K queue pairs to other nodes, one-sided operations on them, small messages
 * announced by immediate data, and a fence. The life of a connection: Documentation/lifetime.rst.
 *
 * Locking, outermost first: lite_conn.lock, conns.xa_lock, lite_cq.lock, lite_cq.wait,
 * lite_poller.lock, lite_poller.asleep; lite_turns.lock, lite_qp.lock; lite_auth.lock. No
 * spinlock is held while completion handlers run.
 */
#ifndef _LITE_FABRIC_H
#define _LITE_FABRIC_H

#include <linux/completion.h>
#include <linux/list.h>
#include <linux/sizes.h>
#include <linux/mutex.h>
#include <linux/percpu-refcount.h>
#include <linux/refcount.h>
#include <linux/string.h>
#include <linux/wait.h>
#include <linux/workqueue.h>
#include <linux/xarray.h>
#include <rdma/ib_verbs.h>
#include <rdma/rdma_cm.h>
#include <uapi/lite_netlink.h>

#include "core/sched.h"
#include "pool.h"
#include "qos.h"
#include "stats.h"
#include "wire/wire.h"
#include "pacing.h"

struct lite_conn;
struct lite_fabric;

/* Send slots of a QP: for work requests of up to LITE_BULK_BYTES, and for longer ones. */
#define LITE_SQ_DEPTH 64
#define LITE_SQ_SMALL 56
#define LITE_SQ_BULK (LITE_SQ_DEPTH - LITE_SQ_SMALL)
#define LITE_BULK_BYTES SZ_16K
/* Messages of calls between kernels: a request and a reply per slot. */
#define LITE_MESSAGES (2 * LITE_SLOT_COUNT)
/* Calls of functions that one side may have in flight: see kernel/function. */
#define LITE_RPC_WINDOW 256
/* Receives: one per request and reply that slots and windows of both sides allow, and spares. */
#define LITE_RQ_DEPTH (2 * LITE_SLOT_COUNT + 2 * LITE_RPC_WINDOW + 8)
/* Maximum SGEs of a work request, if the device supports as many. */
#define LITE_SGE_MAX 30
/* Maximum bytes of a work request: a QP that completes none within op_timeout is given up. */
#define LITE_WR_BYTES_MAX SZ_64K

/* The thread that serves the CQs of a node, and the waiters that do its work: poller.c. */
struct lite_poller {
	struct task_struct *task;
	spinlock_t lock;          /* protects @ready; taken in completion interrupts */
	struct list_head ready;   /* CQs that may have completions */
	atomic_t watchers;        /* awake threads that serve @ready */
	atomic_t attending;       /* lite_fabric_attend() calls not ended yet */
	wait_queue_head_t asleep; /* threads that serve @ready when woken: lite_poller_await() */
	struct timer_list guard;  /* wakes @task if these threads are late */
	u32 napi;                 /* for lite_poller_receive(): of the last connection; 0: none */
};

struct lite_cq {
	struct ib_cq *ib;
	struct lite_poller *poller;
	spinlock_t lock;        /* serialises polling against closing */
	bool closed;            /* no thread polls, arms or lists it any more */
	bool always;            /* receive CQ: always armed, handled in order */
	unsigned long busy;     /* bit 0: a thread handles completions of a receive CQ */
	/*
	 * Waiters that sleep, and calls of lite_cq_arm_sleeper(). While there are any, the CQ is
	 * armed, or a thread is about to arm it.
	 */
	atomic_t sleepers;
	wait_queue_head_t wait; /* sleepers that an event may wake to take completions */
	struct list_head ready; /* in poller->ready */
};

int lite_poller_start(struct lite_poller *poller, const char *name);
void lite_poller_stop(struct lite_poller *poller);
long lite_poller_await(struct lite_poller *poller, struct completion *done, u64 awake_ns,
		       unsigned int state, long timeout);
bool lite_poller_hand(wait_queue_head_t *wait, const atomic_t *sleepers);
struct lite_cq *lite_cq_create(struct lite_fabric *fab, int depth, bool always);
void lite_cq_close(struct lite_cq *cq);
void lite_cq_destroy(struct lite_cq *cq, bool stuck);
void lite_cq_quiesce(void);
int lite_cq_poll(struct lite_cq *cq);
void lite_cq_wake(struct lite_cq *cq);
bool lite_cq_notify(struct lite_cq *cq);
void lite_cq_arm(struct lite_cq *cq);
void lite_cq_arm_sleeper(struct lite_cq *cq);
void lite_fabric_attend(struct lite_fabric *fab);
void lite_fabric_attend_end(struct lite_fabric *fab);
void lite_conn_attend(struct lite_conn *conn);

/* The counterpart of lite_cq_arm_sleeper(). Any context. */
static inline void lite_cq_disarm_sleeper(struct lite_cq *cq)
{
	atomic_dec(&cq->sleepers);
}

/*
 * One or more work requests that are waited for together. With a waiter it is the waiter's, mostly
 * on the stack: no thread touches it after subtracting the last work request from @pending.
 */
struct lite_io;

/* Callbacks of an io that has a waiter. */
struct lite_io_hooks {
	/*
	 * Should the waiter stop waiting for slots and turns? If so, posting ends with -EAGAIN.
	 * Called by the waiter while something is not posted yet; must not sleep.
	 */
	bool (*stale)(const struct lite_io *io);
	/*
	 * All has completed. Called by the thread that handles the last completion, before it wakes
	 * the waiter, which may get no processor for long. If that thread is the waiter itself,
	 * called only with @eager. Must not sleep.
	 */
	void (*ended)(struct lite_io *io);
	bool eager; /* the waiter may be waiting for another io when this one completes */
};

struct lite_io {
	atomic_t pending;            /* work requests in flight, plus one for the poster */
	int status;                  /* first error; 0: none so far */
	struct task_struct *waiter;  /* woken when only its own share is pending; may be NULL */
	union {
		/*
		 * Without @waiter; may be NULL. Called by the thread that handles the last
		 * completion; owns the io from then on; must not sleep.
		 */
		void (*end)(struct lite_io *io);
		/*
		 * With @waiter; may be NULL. The poster counts all work requests (lite_io_expect())
		 * before it posts the first, or @ended may be called several times.
		 */
		const struct lite_io_hooks *hooks;
	};
};

/* A send slot of a QP, or an entry of lite_conn.message. */
struct lite_wr {
	struct ib_cqe cqe;
	struct lite_qp *qp;
	u64 bit;            /* bit in lite_qp.busy; 0 for a message */
	struct lite_io *io; /* NULL: free. The thread that swaps it for NULL completes the slot. */
	u64 before;         /* slots of unsignalled WRs that complete with it; 0 while it is free */
	struct lite_sched_flight flight; /* of its turn, if it had one, until it completes */
};

enum lite_slot_class {
	LITE_SLOT_SMALL, /* up to LITE_BULK_BYTES */
	LITE_SLOT_BULK,
	LITE_SLOT_CLASSES,
};

/* A reliable connected queue pair and its send slots. */
struct lite_qp {
	struct ib_qp *ib;       /* NULL if it does not exist */
	struct lite_conn *conn;
	struct lite_cq *scq;    /* CQ of its sends */
	atomic64_t busy;        /* bitmap of slots of @wr in use */
	bool stuck;             /* the device has refused to destroy it */
	union {
		int waiting[LITE_SLOT_CLASSES]; /* entries of @line, plus 1 if posters need turns */
		u64 any_waiting;
	};
	u32 inline_max;         /* maximum bytes of a write in the work request itself; 0: none */
	unsigned long acked;    /* jiffies when the peer's device last acknowledged something */
	struct list_head line[LITE_SLOT_CLASSES]; /* waiters for a slot (struct lite_post) */
	spinlock_t lock;        /* protects @line and @waiting */
	u32 qpn;
	u32 psn;                /* first packet sequence number to send with (random) */
	struct lite_pace pace;       /* of waits for small operations */
	struct lite_pace large_pace; /* of waits for others */
	struct lite_wr wr[LITE_SQ_DEPTH];
};

/* Prepare to post and to call lite_io_wait(); @io is the caller's, mostly on its stack. */
static inline void lite_io_init(struct lite_io *io)
{
	*io = (struct lite_io){ .pending = ATOMIC_INIT(1), .waiter = current };
}

/*
 * Prepare to post without waiting. The caller keeps @io until everything posted has completed.
 * @end, which may be NULL, is called after that and lite_io_leave().
 */
static inline void lite_io_init_unwaited(struct lite_io *io, void (*end)(struct lite_io *io))
{
	*io = (struct lite_io){ .pending = ATOMIC_INIT(1), .end = end };
}

void lite_io_end(struct lite_io *io, int status, int n);
void lite_io_wait(struct lite_io *io, struct lite_qp *qp);
void lite_io_wait_large(struct lite_io *io, struct lite_qp *qp);
void lite_io_wait_ticking(struct lite_io *io, struct lite_qp *qp, u64 awake_ns,
			  void (*tick)(struct lite_io *io));

/* All has been posted, without a waiter. May call @end, which may free @io. Process context. */
static inline void lite_io_leave(struct lite_io *io)
{
	lite_io_end(io, 0, 1);
}

/* Has everything posted completed? If so, @io->status is final. */
static inline bool lite_io_ended(const struct lite_io *io)
{
	return atomic_read_acquire(&io->pending) == 1;
}

/* Count work requests about to be posted. */
static inline void lite_io_expect(struct lite_io *io, int n)
{
	atomic_add(n, &io->pending);
}

/*
 * How to post: flags, and a priority: 0 (the default), a class plus 1, or LITE_POST_UNSCHEDULED
 * (without a turn, for short messages that must not wait for others).
 */
#define LITE_POST_PRIO 0xffU
#define LITE_POST_UNSCHEDULED 0xffU
#define LITE_POST_NOWAIT BIT(8)

/* A power of two, more than there are priorities. */
#define LITE_PRIOS 16

/* Flag of a priority set without CAP_SYS_NICE: the present ceiling of its tenant applies. */
#define LITE_POST_BOUND LITE_PRIOS

int lite_qp_post(struct lite_qp *qp, struct lite_io *io, struct ib_send_wr *send, u32 how);
int lite_conn_send(struct lite_conn *conn, u32 n, struct lite_io *io, struct ib_sge *sge,
		   u64 raddr, u32 imm);
u64 lite_conn_scratch(const struct lite_conn *conn, struct ib_sge *sge);
int lite_qp_touch(struct lite_qp *qp, struct lite_io *io, enum ib_wr_opcode op, u32 prio);
int lite_qp_init(struct lite_qp *qp, struct lite_conn *conn, bool first);
void lite_qp_flush(struct lite_qp *qp);
bool lite_qp_in_flight(const struct lite_qp *qp);
bool lite_qp_destroy(struct lite_qp *qp);
void lite_qp_abort(struct lite_qp *qp);

#define LITE_BOUNCE_SIZE PAGE_SIZE

struct lite_bounce_pool;

/* A page that stays mapped for DMA. */
struct lite_bounce {
	struct lite_bounce_pool *pool;
	s64 bit;                       /* its bit in @pool->free; 0: never free again */
	void *data;                    /* LITE_BOUNCE_SIZE bytes */
	u64 dma;
	u32 since;                     /* for lite_dma_unmap_page() */
};

int lite_bounce_init(struct lite_fabric *fab);
void lite_bounce_exit(struct lite_fabric *fab);
struct lite_bounce *lite_bounce_tryget(struct lite_fabric *fab);
struct lite_bounce *lite_bounce_get(struct lite_fabric *fab);
struct lite_bounce *lite_bounce_get_nowait(struct lite_fabric *fab);
void lite_bounce_put(struct lite_fabric *fab, struct lite_bounce *bounce);
void lite_bounce_failed(struct lite_fabric *fab, struct lite_bounce *bounce);

#define LITE_NONCES_SEEN 256

/* The cluster secret, and the nonces that were used with it. */
struct lite_auth {
	struct crypto_shash *secret_tfm; /* HMAC-SHA-256 keyed with the cluster secret */
	struct crypto_shash *cookie_tfm; /* the same with a random key, to derive nonces */
	spinlock_t lock;                 /* protects @seen */
	struct {
		u8 nonce[LITE_NONCE_SIZE];
		u64 epoch;
	} seen[LITE_NONCES_SEEN];        /* nonces used to connect, until they expire */
	bool insecure;                   /* no secret: the key of @secret_tfm is public */
};

int lite_auth_init(struct lite_auth *auth, const u8 *secret, size_t len);
void lite_auth_exit(struct lite_auth *auth);
int lite_auth_challenge(struct lite_auth *auth, const struct lite_wire_addr *responder,
			const struct lite_cm_hello *hello, struct lite_cm_challenge *out);
int lite_auth_check_connect(struct lite_auth *auth, const struct lite_wire_addr *responder,
			    const struct lite_cm_connect *connect);
int lite_auth_challenge_mac(struct lite_auth *auth, const struct lite_wire_addr *responder,
			    const struct lite_cm_hello *hello,
			    const struct lite_cm_challenge *ch, u8 *mac);
int lite_auth_proof(struct lite_auth *auth, const struct lite_wire_addr *responder,
		    const u8 *nonce, const struct lite_cm_connect *connect, u8 *mac);
int lite_auth_accept_mac(struct lite_auth *auth, const struct lite_wire_addr *responder,
			 const u8 *nonce, const struct lite_cm_accept *accept, u8 *mac);
int lite_auth_compare(const u8 *mac, const u8 *got, size_t size);

/* Can this, received from a peer, be the address of a node? */
static inline bool lite_addr_ok(const struct lite_wire_addr *a)
{
	return a->port && !a->reserved && memchr_inv(a->ip, 0, sizeof(a->ip));
}

static inline bool lite_addr_equal(const struct lite_wire_addr *a, const struct lite_wire_addr *b)
{
	return !memcmp(a, b, sizeof(*a));
}

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

/* Tenants of a connection, besides root's, with a share of their own. */
#define LITE_TENANTS_MAX 64

/* Scheduler of what goes to a peer: turn.c. */
struct lite_turns {
	spinlock_t lock;               /* protects the others */
	bool on;                       /* posters need turns; read without the lock */
	struct lite_sched sched;       /* its .room changes without the lock */
	u32 n_tenants;                 /* entries of @tenants; at most LITE_TENANTS_MAX */
	struct list_head tenants;      /* of struct lite_turn_tenant */
	struct list_head line;         /* of waiters: struct lite_post */
	struct lite_sched_tenant root; /* LITE_QOS_ROOT */
	struct lite_sched_tenant rest; /* tenants without a place in @tenants */
};

/* What has waited for its turn, on all connections of a node. */
struct lite_turn_count {
	int class;  /* in this class; -1: of @tenant */
	u64 tenant;
	struct lite_sched_stats sum;
};

/* One session with one peer. */
struct lite_conn {
	struct lite_fabric *fab;
	refcount_t ref;               /* keeps the memory */
	struct percpu_ref live;       /* held by posters; killed with the connection */
	struct mutex lock;            /* held while objects of the device are made or destroyed */
	int state;                    /* enum lite_conn_state; changes atomically */
	int reason;                   /* errno that killed it */
	enum lite_end_cause cause;    /* of the end, if it was UP; set before kill_work runs */
	u64 figure;                   /* goes with @cause */
	bool passive;                 /* the peer has made the connection */
	bool self;                    /* the peer is this node, as proven by the nonce */
	u64 session;                  /* number, never reused on this node */
	u64 up_before;                /* sessions above this number began when it was UP */
	/* Set if this node connected to itself: the other end has at most this session number. */
	u64 other_end;
	struct rdma_cm_id *id;        /* CM identifier of the first QP */
	struct completion cm_done;    /* completed by each CM event, and for good when it dies */
	int cm_status;                /* result of that event */
	union {
		struct lite_cm_hdr hdr;
		struct lite_cm_challenge challenge;
		struct lite_cm_refuse refuse;
		struct lite_cm_accept accept;
	} cm_reply;                   /* private data of that event */
	struct lite_ident from;
	u8 nonce[LITE_NONCE_SIZE];    /* of the handshake */
	u8 quirks;                    /* of this device, and what the peer tells of its own */
	u8 nqps;                      /* queue pairs made */
	u8 n_connected;               /* queue pairs connected */
	u8 n_up;                      /* queue pairs that the peer has connected, too; only grows */
	/* By priority, by kind (1: fetches), and by CPU: lite_conn_qp(). */
	struct lite_qp *use[LITE_PRIOS][2][LITE_QPS_MAX];
	u8 rd_atom;                   /* negotiated outstanding reads and atomics per QP */
	u32 read_trusted;             /* bytes: see lite_must_confirm() */
	struct lite_turns *turns;     /* NULL until the node schedules operations; then permanent */
	struct lite_qp qp[LITE_QPS_MAX];
	struct lite_wr message[LITE_MESSAGES]; /* for messages, on the first QP */
	struct lite_cq *rcq;          /* CQ of the first QP's receives */
	struct ib_cqe recv_cqe;
	u32 rkey;                     /* the peer's */
	u64 requests;                 /* address of the peer's slots for requests from here */
	u64 replies;                  /* address of the peer's slots for replies from here */
	struct {
		u64 requests;
		u64 replies;
	} slots_in;                   /* addresses of the slots here, set by the layer above */
	void *kcall;                  /* of the kcall layer */
	void *service;                /* of the function layer */
	void *peer;                   /* of the cluster layer, under its lock */
	bool joined;                  /* this guest has asked for an id; locked as @peer */
	unsigned long heard;          /* jiffies when the peer's last message came */
	/*
	 * Jiffies when the first request since @heard was in the peer's memory. If not later than
	 * @heard, no reply of the peer is due.
	 */
	unsigned long asked;
	struct work_struct accept_work;
	struct work_struct kill_work;
	struct work_struct gone_work;
	struct delayed_work deadline;
	struct completion drained;    /* @live has dropped to zero */
	struct completion fenced;     /* the peer cannot reach memory here, or @unfenced is set */
	bool unfenced;                /* the device has failed to fence the peer */
	bool stuck;                   /* the device has kept a queue pair */
	struct completion gone;       /* no object of it is left at the device */
};

struct lite_node;

/* Callbacks to the layers above; Documentation/locking.rst has their contexts. */
struct lite_fabric_ops {
	/* Is @dev not being removed, and will its removal wait for this node? */
	bool (*stays)(struct lite_node *node, struct ib_device *dev);
	/* Allocate message slots; free them, once the device can no longer reach them. */
	int (*conn_init)(struct lite_node *node, struct lite_conn *conn);
	void (*conn_release)(struct lite_node *node, struct lite_conn *conn);
	/* A message has come, with immediate data @imm. */
	void (*recv)(struct lite_node *node, struct lite_conn *conn, u32 imm);
	/* Admit a peer that knows the secret? Return: 0 or -errno. */
	int (*admit)(struct lite_node *node, struct lite_conn *conn);
	/* The connection is dying. Must not wait for operations: some wait for its fence. */
	void (*conn_down)(struct lite_node *node, struct lite_conn *conn);
	/* The peer is fenced, and all posters have left. */
	void (*conn_gone)(struct lite_node *node, struct lite_conn *conn);
};

/* What a node asks of its device. */
struct lite_fabric_params {
	char dev[IB_DEVICE_NAME_MAX]; /* empty: the one that has @addr */
	struct lite_wire_addr addr;   /* address and port to listen on */
	u8 nqps;                      /* queue pairs per peer, 1..LITE_QPS_MAX */
	unsigned long op_timeout;     /* jiffies in which a busy QP has to complete something */
	unsigned long dead;           /* jiffies for which a peer may be silent */
	const u8 *secret;             /* cluster secret, @secret_len bytes; may be empty */
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
	u8 quirks;                  /* enum lite_quirk */
	size_t map_max;             /* maximum bytes of a mapping */
	unsigned long op_timeout;
	u8 ack_timeout;             /* a packet is resent after 4.096 us << this */
	u32 inline_max;             /* maximum bytes of a write in its work request; 0: none */
	struct ib_pd *pd;
	struct ib_mr *mr;
	u32 lkey;
	u32 rkey;
	struct lite_wire_addr addr;
	struct lite_ident self;     /* changes under lite_cluster.lock, between lives */
	struct rdma_cm_id *listener;
	struct lite_auth auth;
	struct lite_poller poller;
	struct lite_bounce_pool __percpu *bounce;
	struct lite_stats __percpu *stats;
	struct lite_pool *pools;    /* of the node: enum lite_pool_number */
	struct lite_qos *qos;       /* of the node */
	struct workqueue_struct *wq;        /* ends connections, up to the fence */
	struct workqueue_struct *gone_wq;   /* the rest of their ends */
	struct workqueue_struct *accept_wq; /* accepts connections; waits for ends */
	const struct lite_fabric_ops *ops;
	struct lite_node *priv;
	atomic64_t sessions;
	struct xarray conns;        /* by session; its lock also protects closing, lite_conn.use */
	bool closing;
	wait_queue_head_t conns_wait;
	atomic_t unfenced;          /* fences that have failed */
	bool stuck;                 /* the device has kept queue pairs */
};

int lite_fabric_init(struct lite_fabric *fab, const struct lite_fabric_params *params,
		     const struct lite_fabric_ops *ops, struct lite_node *priv,
		     const char **why);
int lite_fabric_listen(struct lite_fabric *fab);
void lite_fabric_end_all(struct lite_fabric *fab, int reason);
void lite_fabric_shutdown(struct lite_fabric *fab);
void lite_fabric_exit(struct lite_fabric *fab);

int lite_dma_map_page(struct lite_fabric *fab, struct page *page, size_t size, u64 *dma);
int lite_dma_check(struct lite_fabric *fab, const char **why);
bool lite_dma_unmap_page(struct lite_fabric *fab, u64 dma, size_t size, u32 since);
void lite_dma_unfenced(struct lite_fabric *fab);

/* Number of failed fences so far, for lite_dma_unmap_page(). Any context. */
static inline u32 lite_dma_since(const struct lite_fabric *fab)
{
	return atomic_read(&fab->unfenced);
}

struct lite_conn *lite_conn_alloc(struct lite_fabric *fab);
int lite_conn_setup(struct lite_conn *conn);
int lite_conn_add_qps(struct lite_conn *conn, const struct lite_wire_qp *remote, u8 n);
int lite_conn_register(struct lite_conn *conn);
bool lite_conn_is_own(const struct lite_conn *conn);
void lite_conn_ready(struct lite_conn *conn);
void lite_conn_share_qps(struct lite_conn *conn);
bool lite_conn_set_up(struct lite_conn *conn);
void lite_conn_kill(struct lite_conn *conn, int reason);
void lite_conn_end(struct lite_conn *conn, enum lite_end_cause cause, u64 figure, int reason);
int lite_conn_fence(struct lite_conn *conn, int reason);
void lite_conn_put(struct lite_conn *conn);
struct lite_conn *lite_conn_next(struct lite_fabric *fab, struct lite_conn *conn);
struct lite_conn *lite_conn_find(struct lite_fabric *fab, u64 session);
bool lite_conns_are_kept(void);
void lite_conn_asked(struct lite_conn *conn, unsigned long begun);
unsigned long lite_conn_acked(const struct lite_conn *conn);
unsigned long lite_conn_heard(const struct lite_conn *conn);
void lite_conn_excuse(struct lite_conn *conn, unsigned long by);
void lite_turns_exit(struct lite_conn *conn);
int lite_turns_make(struct lite_conn *conn);
int lite_turns_update(struct lite_conn *conn);
bool lite_turns_pass(const struct lite_conn *conn, u32 bytes);
int lite_fabric_schedule(struct lite_fabric *fab);
bool lite_turns_count_class(struct lite_fabric *fab, u32 class, struct lite_turn_count *count);
bool lite_turns_count_tenant(struct lite_fabric *fab, u64 from, struct lite_turn_count *count);
int lite_conn_flush(struct lite_conn *conn);

int lite_cm_bind(struct lite_fabric *fab);
void lite_cm_unlisten(struct lite_fabric *fab);
int lite_conn_connect(struct lite_fabric *fab, const struct lite_wire_addr *dst,
		      unsigned long timeout, struct lite_conn **out);

static inline void lite_conn_get(struct lite_conn *conn)
{
	if (conn)
		refcount_inc(&conn->ref);
}

/* Become a poster. Return: false: the connection is dying. */
static inline bool lite_conn_tryget(struct lite_conn *conn)
{
	return percpu_ref_tryget_live(&conn->live);
}

static inline void lite_conn_put_live(struct lite_conn *conn)
{
	percpu_ref_put(&conn->live);
}

static inline bool lite_conn_is_dead(const struct lite_conn *conn)
{
	return READ_ONCE(conn->state) == LITE_CONN_DEAD;
}

/* Set the fields that posting does not; one by one, because clearing the whole takes longer. */
static __always_inline void lite_wr_set(struct ib_send_wr *wr, enum ib_wr_opcode op,
					struct ib_sge *sge, int n_sge, u32 imm)
{
	wr->next = NULL;
	wr->sg_list = sge;
	wr->num_sge = n_sge;
	wr->opcode = op;
	wr->send_flags = 0;
	wr->ex.imm_data = cpu_to_be32(imm);
}

/* Make a work request for lite_qp_post(): an RDMA read or write. @imm is in host order. */
static __always_inline void lite_rdma_wr(struct ib_rdma_wr *rdma, const struct lite_qp *qp,
					 enum ib_wr_opcode op, struct ib_sge *sge, int n_sge,
					 u64 raddr, u32 imm)
{
	lite_wr_set(&rdma->wr, op, sge, n_sge, imm);
	rdma->remote_addr = raddr;
	rdma->rkey = qp->conn->rkey;
}

/*
 * The same for an atomic operation on 8 bytes at @raddr, a multiple of 8. @sge is for the old
 * value; @operand is the addend, or the expected value.
 */
static __always_inline void lite_atomic_wr(struct ib_atomic_wr *atomic, const struct lite_qp *qp,
					   enum ib_wr_opcode op, struct ib_sge *sge, u64 raddr,
					   u64 operand, u64 swap)
{
	lite_wr_set(&atomic->wr, op, sge, 1, 0);
	atomic->remote_addr = raddr;
	atomic->compare_add = operand;
	atomic->swap = swap;
	atomic->compare_add_mask = 0;
	atomic->swap_mask = 0;
	atomic->rkey = qp->conn->rkey;
}

/*
 * Post an RDMA read or write as lite_qp_post() does, waiting for a slot. @sge has the node's lkey
 * and at most as many entries as the device supports. The caller has checked @raddr, because the
 * key covers all memory. @prio: see LITE_POST_PRIO.
 */
static inline int lite_qp_rdma(struct lite_qp *qp, struct lite_io *io, enum ib_wr_opcode op,
			       struct ib_sge *sge, int n_sge, u64 raddr, u32 prio)
{
	struct ib_rdma_wr rdma;

	lite_rdma_wr(&rdma, qp, op, sge, n_sge, raddr, 0);
	return lite_qp_post(qp, io, &rdma.wr, prio);
}

/*
 * The queue pairs of a live connection for operations of priority @prio (LITE_POST_PRIO): a table
 * of LITE_QPS_MAX entries, in which they repeat in turn. @fetch: for reads and atomics, which may
 * have a queue pair to themselves: lite_conn_apart(). Any context.
 */
static inline struct lite_qp *const *lite_conn_qps(const struct lite_conn *conn, bool fetch,
						   u8 prio)
{
	return conn->use[prio % LITE_PRIOS][fetch];
}

/* A queue pair for the present CPU: see lite_conn_qps(). */
static inline struct lite_qp *lite_conn_qp(const struct lite_conn *conn, bool fetch, u8 prio)
{
	u32 cpu = raw_smp_processor_id();

	return READ_ONCE(lite_conn_qps(conn, fetch, prio)[cpu % LITE_QPS_MAX]);
}

/* soft.c */
void lite_quirks_init(struct lite_fabric *fab, const struct lite_fabric_params *params);
void lite_quirks_agree(struct lite_conn *conn, u8 told);
int lite_quirks_connected(struct lite_conn *conn);
void lite_napi_poll(u32 napi);
void lite_cq_barrier(const struct lite_fabric *fab);

#include "quirks.h"

#endif /* _LITE_FABRIC_H */
