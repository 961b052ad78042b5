/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Calls between kernels, by RDMA write-with-immediate into slots: Documentation/wire-protocol.rst
 * ("Slots and lanes"). A slot is its own credit: nothing overflows, and a receive is always posted.
 * Lanes (enum lite_lane) prevent deadlock: a handler waits only for calls, handlers and operations
 * of later lanes than its own, and each lane has its own workqueue.
 *
 * When a caller has gone (killed, or timed out), its call keeps the slot until the reply comes or
 * the connection ends. A late reply goes to @late of the descriptor, which undoes what was done.
 */
#ifndef _LITE_KCALL_H
#define _LITE_KCALL_H

#include <linux/kref.h>

#include "wire/imm.h"
#include "fabric/fabric.h"
#include "crew.h"

#define LITE_CALL_MAX 96

struct lite_kcalls;
struct lite_call_slot;

/*
 * Serve a call from @conn; NULL: from this node. @priv: of lite_kcall_handle(). @call: enum
 * lite_call. @req: payload, checked by lite_wire_request_check(). @reply: lite_call_payload_max()
 * bytes, zeroed. Context: may sleep; handlers of leaf calls make no calls. Return: bytes of the
 * reply, or a negative errno to send instead; -EBADMSG: disconnect the caller, which violates the
 * protocol.
 */
typedef int lite_handler(void *priv, struct lite_conn *conn, u16 call, const void *req,
			 void *reply);

struct lite_kcalls {
	struct {
		lite_handler *fn;
		void *priv;
	} handler[LITE_CALL_MAX];
	struct lite_stats __percpu *stats;
	struct workqueue_struct *wq[LITE_LANES];
	struct lite_crew local[LITE_LANES];       /* workers for calls of this node to itself */
	unsigned long timeout;                   /* jiffies, default of calls */
	atomic64_t seq;
};

/* A @slot_timeout: wait until a slot is free or the connection dies; not killable. */
#define LITE_SLOT_SURELY MAX_SCHEDULE_TIMEOUT

struct lite_call_desc {
	u16 call;                    /* enum lite_call */
	const void *req;             /* payload */
	u32 len;                     /* its bytes */
	void *reply;                 /* where the reply's payload goes */
	u32 reply_max;               /* bytes there; a longer reply is -EPROTO */
	u32 reply_len;               /* set to the bytes of the reply */
	u32 uid;                     /* user that the call is made for; 0: the caller */
	u64 life;                    /* the peer's incarnation must be this, else -ESTALE; 0: any */
	unsigned long timeout;       /* jiffies; 0: the default */
	unsigned long deadline;      /* jiffies, replaces @timeout, for slot and reply; 0: none */
	/* Jiffies to wait for a slot, killable; 0: as for the reply; or LITE_SLOT_SURELY. */
	unsigned long slot_timeout;
	bool no_wait;                /* do not wait for a slot */
	bool killable;               /* a fatal signal ends the wait */
	bool by_worker;              /* have a worker serve a local call, not this thread */
	bool once;                   /* lite_cluster_call_patiently(): serve it at most once */
	bool sent;                   /* set: the peer may have got the request */
	bool repeated;               /* set by call_patiently(): it may have got an earlier one */
	/*
	 * Called by a work item with a successful reply that came after the caller had gone; may
	 * sleep and make calls. The connection may be dead.
	 */
	void (*late)(void *ctx, struct lite_conn *conn, const void *reply);
	void *late_ctx;
	/*
	 * If set, the slot holds a reference until it is free: even if the caller has gone, until
	 * the call has been served or never will be.
	 */
	struct kref *held;
	void (*release)(struct kref *held); /* of @held; locks may be held */
	/* Between lite_kcall_begin() and lite_kcall_end(): */
	struct lite_call_slot *slot;
	struct lite_io io;           /* until the device is done with the request */
	struct completion done;      /* the reply has been copied, or will never come */
	int err;                     /* result of the call */
};

/* Initialisers for a descriptor: the payloads are variables of the right type. */
#define LITE_REQUEST(which, from) .call = which, .req = &(from), .len = sizeof(from)
#define LITE_REPLY(to) .reply = &(to), .reply_max = sizeof(to)

int lite_kcall_init(struct lite_kcalls *kcalls, struct lite_stats __percpu *stats,
		    unsigned long timeout);
void lite_kcall_exit(struct lite_kcalls *kcalls);
void lite_kcall_flush(struct lite_kcalls *kcalls);
void lite_kcall_handle(struct lite_kcalls *kcalls, enum lite_call call, lite_handler *fn,
		       void *priv);

int lite_kcall_conn_init(struct lite_kcalls *kcalls, struct lite_conn *conn);
void lite_kcall_conn_release(struct lite_conn *conn);
void lite_kcall_conn_down(struct lite_conn *conn);
void lite_kcall_conn_gone(struct lite_conn *conn);
void lite_kcall_recv(struct lite_conn *conn, u32 imm);

int lite_kcall(struct lite_conn *conn, struct lite_call_desc *desc);
int lite_kcall_begin(struct lite_conn *conn, struct lite_call_desc *desc);
void lite_kcall_settle(struct lite_call_desc *desc);
int lite_kcall_end(struct lite_conn *conn, struct lite_call_desc *desc);

int lite_kcall_local(struct lite_kcalls *kcalls, struct lite_call_desc *desc);

void lite_beat_ask(struct lite_conn *conn);
unsigned long lite_beat_heard(const struct lite_conn *conn);
bool lite_beat_unanswered(const struct lite_conn *conn, unsigned long *since);
void lite_beat_excuse(struct lite_conn *conn, unsigned long by);

/* The rest is internal to kcall/. One of the four slot areas: memory, and its DMA address. */
struct lite_slots {
	struct page *page;
	u64 dma;
	u32 since;
};

enum lite_slot_state {
	LITE_SLOT_FREE = 0,
	LITE_SLOT_WAITING,   /* the caller waits for the reply */
	LITE_SLOT_ABANDONED, /* the caller has gone */
	LITE_SLOT_LATE,      /* the same, and the reply has come, for @late */
	LITE_SLOT_ENDED,     /* the reply is no longer needed */
};

/* A call that this node makes. */
struct lite_call_slot {
	struct lite_kcall_conn *rc;
	enum lite_slot_state state;   /* under rc->lock */
	u32 uid;                      /* of its user; under rc->lock */
	u16 call;                     /* enum lite_call */
	u64 seq;                      /* number of this call and of its reply */
	struct lite_call_desc *desc;  /* the caller's, while WAITING; under rc->lock */
	struct lite_io io;            /* of the request */
	struct lite_io *sender;       /* the caller's, told when @io has ended */
	bool sent;                    /* @io has ended; under rc->lock */
	bool counted;                 /* until then, among scq->sleepers; under rc->lock */
	unsigned long begun;          /* jiffies when it was about to be posted */
	void (*late)(void *ctx, struct lite_conn *conn, const void *reply);
	void *late_ctx;
	struct kref *held;            /* see struct lite_call_desc */
	void (*release)(struct kref *held);
	struct work_struct late_work; /* runs @late and frees the slot */
};

/* A call that this node serves. */
struct lite_serve_slot {
	struct lite_kcall_conn *rc;
	u64 seq;                 /* number of the last request; used by the work item only */
	struct work_struct work; /* runs the handler */
};

/* Signs of life without messages: beat.c */
struct lite_beat {
	struct delayed_work work; /* increments this node's counter, which the peer reads */
	struct lite_io io;        /* the read of the peer's counter */
	struct lite_qp *qp;       /* that the read was posted on */
	bool asking;              /* the read is in flight */
	bool full;                /* the last read was not posted: no free send slot */
	unsigned long asked;      /* jiffies of the last read */
	u64 count;                /* value last read */
	unsigned long changed;    /* jiffies when @count was first read */
};

/* Kinds of calls of which only one at a time has a slot: lite_lone[] */
#define LITE_LONE 2

struct lite_kcall_conn {
	struct lite_kcalls *kcalls;
	struct lite_conn *conn;
	struct lite_beat beat;
	spinlock_t lock;          /* protects @dead, @waiters and the states of @call */
	bool dead;                /* no new calls */
	struct lite_line waiters[LITE_LANES + LITE_LONE]; /* for a slot, by uid */
	struct lite_slots req_in; /* the peer writes this and @rep_in */
	struct lite_slots rep_in;
	struct lite_slots req_out;
	struct lite_slots rep_out;
	struct lite_call_slot call[LITE_SLOT_COUNT]; /* that this node makes */
	struct lite_serve_slot serve[LITE_SLOT_COUNT]; /* that it serves */
	/*
	 * Copies of requests, at the offsets of their slots. Allocated in advance: a node that
	 * reclaims memory may wait for a handler, which must not wait for memory then.
	 */
	void *requests;
};

static inline void *lite_slot_data(struct lite_slots *slots, u32 slot)
{
	return page_address(slots->page) + lite_slot_offset(slot);
}

int lite_kcall_post_live(struct lite_kcall_conn *rc, enum lite_imm_kind kind, u32 slot,
			 struct lite_io *io);
void lite_kcall_on_request(struct lite_kcall_conn *rc, u32 slot);
int lite_kcall_serve_init(struct lite_kcall_conn *rc);
void lite_kcall_on_reply(struct lite_kcall_conn *rc, u32 slot);
void lite_kcall_slots_init(struct lite_kcall_conn *rc);
void lite_beat_init(struct lite_kcall_conn *rc);
void lite_beat_start(struct lite_kcall_conn *rc);
int lite_kcall_dispatch(struct lite_kcalls *kcalls, struct lite_conn *conn, u16 call,
			const void *req, u32 len, void *reply);

#endif /* _LITE_KCALL_H */
