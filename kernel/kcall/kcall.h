/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Calls between kernels, by RDMA write-with-immediate into slots.
 *
 * Each side of a connection has LITE_SLOT_COUNT request slots, which the peer
 * writes requests into, and as many reply slots for replies. A caller owns a
 * slot number from before it writes the request until it has taken the reply.
 * So a slot is its own credit: nothing overflows, and there is always a receive
 * posted.
 *
 * Lanes (enum lite_lane) prevent deadlock: a handler waits only for calls,
 * handlers and operations of later lanes than its own, and each lane has its own
 * workqueue.
 *
 * When a caller has gone (killed, or timed out), its call keeps the slot until
 * the reply comes or the connection ends. @late of its descriptor is then
 * called to undo what was done.
 */
#ifndef _LITE_KCALL_H
#define _LITE_KCALL_H

#include "wire/imm.h"
#include "fabric/fabric.h"
#include "line.h"

#define LITE_CALL_MAX 96

struct lite_kcalls;
struct lite_call_slot;

/**
 * typedef lite_handler - serves one call
 * @priv: of lite_kcall_handle()
 * @conn: the caller's connection; NULL: the caller is this node
 * @req: payload, checked by lite_wire_request_check()
 * @len: its bytes
 * @reply: room for lite_call_payload_max() bytes, zeroed
 * @reply_len: set to the bytes of the reply; 0 unless changed
 *
 * Context: may sleep. Leaf calls must not call others.
 * Return: 0 or a negative errno, sent instead of a reply; -EBADMSG: the caller
 * violates the protocol and is disconnected.
 */
typedef int (*lite_handler)(void *priv, struct lite_conn *conn, const void *req,
			    u32 len, void *reply, u32 *reply_len);

struct lite_kcalls {
	struct {
		lite_handler fn;
		void *priv;
	} handler[LITE_CALL_MAX];
	struct lite_stats __percpu *stats;
	struct workqueue_struct *wq[LITE_LANES]; /* of handlers */
	unsigned long timeout;            /* jiffies, default of calls */
	atomic64_t seq;
};

/* As @slot_timeout: until a slot is free or the connection dies. */
#define LITE_SLOT_SURELY MAX_SCHEDULE_TIMEOUT

/**
 * struct lite_call_desc - a call to make
 * @call: enum lite_call
 * @req: payload
 * @len: its bytes
 * @reply: where the reply's payload goes
 * @reply_max: bytes there; a longer reply is -EPROTO
 * @reply_len: set to the bytes of the reply
 * @uid: user that the call is made for; 0: the caller
 * @life: incarnation of the peer that the call is meant for, else -ESTALE; 0:
 *	any
 * @timeout: jiffies; 0: the default
 * @deadline: jiffies, instead of @timeout, for slot and reply together; 0: none
 * @slot_timeout: jiffies to wait for a slot, killable; 0: as @timeout;
 *	LITE_SLOT_SURELY: without limit, not killable
 * @no_wait: do not wait for a slot
 * @killable: a fatal signal ends the wait
 * @sent: set to whether the peer may have got the request
 * @repeated: set by lite_cluster_call_patiently() to whether it may have got an
 *	earlier one, too
 * @late: called with a successful reply that came after the caller had gone; in
 *	a work item, may sleep and make calls; the connection may be dead
 * @late_ctx: for @late
 * @held: unless NULL, a reference is kept until the slot is free: also when the
 *	caller has gone, until the call has been served or never will be
 * @release: of @held; locks may be held
 * @slot: held between lite_kcall_begin() and lite_kcall_end()
 */
struct lite_call_desc {
	u16 call;
	const void *req;
	u32 len;
	void *reply;
	u32 reply_max;
	u32 reply_len;
	u32 uid;
	u64 life;
	unsigned long timeout;
	unsigned long deadline;
	unsigned long slot_timeout;
	bool no_wait;
	bool killable;
	bool sent;
	bool repeated;
	void (*late)(void *ctx, struct lite_conn *conn, const void *reply);
	void *late_ctx;
	struct kref *held;
	void (*release)(struct kref *held);
	struct lite_call_slot *slot;
};

int lite_kcall_init(struct lite_kcalls *rpc, struct lite_stats __percpu *stats,
		    unsigned long timeout);
void lite_kcall_exit(struct lite_kcalls *rpc);
void lite_kcall_flush(struct lite_kcalls *rpc);
void lite_kcall_handle(struct lite_kcalls *rpc, enum lite_call call,
		       lite_handler fn, void *priv);

int lite_kcall_conn_init(struct lite_kcalls *rpc, struct lite_conn *conn);
void lite_kcall_conn_release(struct lite_conn *conn);
void lite_kcall_conn_down(struct lite_conn *conn);
void lite_kcall_conn_gone(struct lite_conn *conn);
void lite_kcall_recv(struct lite_conn *conn, u32 imm);

int lite_kcall(struct lite_conn *conn, struct lite_call_desc *desc);
int lite_kcall_begin(struct lite_conn *conn, struct lite_call_desc *desc);
void lite_kcall_settle(struct lite_call_desc *desc);
int lite_kcall_end(struct lite_conn *conn, struct lite_call_desc *desc);
int lite_kcall_local(struct lite_kcalls *rpc, struct lite_call_desc *desc);

/* beat.c */
void lite_beat_ask(struct lite_conn *conn);
unsigned long lite_beat_heard(const struct lite_conn *conn);
bool lite_beat_unanswered(const struct lite_conn *conn, unsigned long *since);
void lite_beat_excuse(struct lite_conn *conn, unsigned long by);

/* ---- between the files of this layer ------------------------------------- */

/* One of the four slot areas: memory, and its DMA address. */
struct lite_slots {
	struct page *page;
	u64 dma;
	u32 since;
};

enum lite_slot_state {
	LITE_SLOT_FREE = 0,
	LITE_SLOT_WAITING,   /* the caller waits for the reply */
	LITE_SLOT_REPLIED,   /* the reply is here, or @error is set */
	LITE_SLOT_ABANDONED, /* the caller has gone */
};

/**
 * struct lite_call_slot - a call that we make
 * @rc: of the connection
 * @state: under rc->lock
 * @error: set if no reply will come
 * @uid: user that has it, if that counts in its lane; under rc->lock
 * @call: enum lite_call
 * @seq: number of this call; its reply has the same
 * @io: of the request
 * @begun: jiffies before it was posted
 * @posted: @io has not been waited for; used by the caller only
 * @done: completed by the reply or the end of the connection
 * @late: see struct lite_call_desc
 * @late_ctx: for @late
 * @held: see struct lite_call_desc
 * @release: of @held
 * @late_work: runs @late and frees the slot
 */
struct lite_call_slot {
	struct lite_kcall_conn *rc;
	enum lite_slot_state state;
	int error;
	u32 uid;
	u16 call;
	u64 seq;
	struct lite_io io;
	unsigned long begun;
	bool posted;
	struct completion done;
	void (*late)(void *ctx, struct lite_conn *conn, const void *reply);
	void *late_ctx;
	struct kref *held;
	void (*release)(struct kref *held);
	struct work_struct late_work;
};

/**
 * struct lite_serve_slot - a call that we serve
 * @rc: of the connection
 * @seq: number of the last request; used by the work item only
 * @work: runs the handler
 */
struct lite_serve_slot {
	struct lite_kcall_conn *rc;
	u64 seq;
	struct work_struct work;
};

/**
 * struct lite_beat - signs of life without messages: beat.c
 * @work: increments our counter, which the peer reads
 * @io: the read of the peer's counter
 * @qp: queue pair it was posted on
 * @asking: the read is in flight
 * @full: the last read was not posted: no free send slot
 * @asked: jiffies of the last read
 * @count: value last read
 * @changed: jiffies when @count was first read
 */
struct lite_beat {
	struct delayed_work work;
	struct lite_io io;
	struct lite_qp *qp;
	bool asking;
	bool full;
	unsigned long asked;
	u64 count;
	unsigned long changed;
};

/**
 * struct lite_kcall_conn - the slots of one connection
 * @rpc: of the node
 * @conn: connection
 * @beat: signs of life without messages
 * @lock: protects @dead, @waiters and the states of @call
 * @dead: no new calls
 * @waiters: of each lane, waiters for a slot, by uid
 * @req_in: requests, written by the peer
 * @rep_in: replies, written by the peer
 * @req_out: requests to the peer
 * @rep_out: replies to the peer
 * @call: calls that we make
 * @serve: calls that we serve
 */
struct lite_kcall_conn {
	struct lite_kcalls *rpc;
	struct lite_conn *conn;
	struct lite_beat beat;
	spinlock_t lock;
	bool dead;
	struct lite_line waiters[LITE_LANES];
	struct lite_slots req_in;
	struct lite_slots rep_in;
	struct lite_slots req_out;
	struct lite_slots rep_out;
	struct lite_call_slot call[LITE_SLOT_COUNT];
	struct lite_serve_slot serve[LITE_SLOT_COUNT];
};

static inline void *lite_slot_data(struct lite_slots *slots, u32 slot)
{
	return page_address(slots->page) + lite_slot_offset(slot);
}

int lite_kcall_post(struct lite_kcall_conn *rc, enum lite_imm_kind kind,
		    u32 slot, struct lite_io *io);
int lite_kcall_posted(struct lite_kcall_conn *rc, struct lite_io *io);
void lite_kcall_on_request(struct lite_kcall_conn *rc, u32 slot);
void lite_kcall_serve_init(struct lite_kcall_conn *rc);
void lite_kcall_on_reply(struct lite_kcall_conn *rc, u32 slot);
void lite_kcall_slots_init(struct lite_kcall_conn *rc);
void lite_beat_init(struct lite_kcall_conn *rc);
void lite_beat_start(struct lite_kcall_conn *rc);
void lite_beat_stop(struct lite_kcall_conn *rc);
int lite_kcall_dispatch(struct lite_kcalls *rpc, struct lite_conn *conn,
			u16 call, const void *req, u32 len, void *reply,
			u32 *reply_len);

#endif /* _LITE_KCALL_H */
