/* SPDX-License-Identifier: GPL-2.0 */
/* Slots of a send queue, and the queues of waiters. See slot.c. */
#ifndef _LITE_FABRIC_SLOT_H
#define _LITE_FABRIC_SLOT_H

#include "fabric.h"

/* How long a waiter for a slot or a turn polls before it sleeps. */
#define LITE_ROOM_SPIN_NS (2 * NSEC_PER_MSEC)

/* Work requests to be posted on one queue pair. */
struct lite_post {
	struct lite_qp *qp;        /* of a connection that the poster holds live */
	struct lite_io *io;        /* of all of them; counts all before the first is posted */
	struct ib_send_wr *send;   /* first that has not been tried yet */
	u32 n;                     /* number of work requests from @send on */
	u32 posted;                /* number of work requests that the device may execute */
	enum lite_slot_class kind; /* of their slots; LITE_SLOT_BULK if any of them is long */
	u8 prio;                   /* of LITE_POST_PRIO */
	int err;                   /* if set, posting has ended */
	struct list_head list;     /* in lite_qp.line while it waits for a slot */
	struct lite_sched_item item; /* while it waits for a turn; its .flight until it is posted */
	struct list_head line;       /* in lite_turns.line while it waits for a turn */
	bool (*stale)(const struct lite_io *io); /* hook of @io, while it waits for either */
	u32 turn_wrs;                /* work requests to be posted in its turn */
	struct lite_io turn;       /* ends when another thread has posted some, or set @err */
};

static_assert(LITE_SQ_DEPTH == 64, "lite_qp.busy has a bit for each slot");

static inline u32 lite_wr_bytes(const struct ib_send_wr *send)
{
	u32 bytes = 0;
	int i;

	for (i = 0; i < send->num_sge; i++)
		bytes += send->sg_list[i].length;
	return bytes;
}

/* Slots of a class, a bit each, as in lite_qp.busy. */
static inline u64 lite_slots_of(enum lite_slot_class kind)
{
	const u64 small = BIT_ULL(LITE_SQ_SMALL) - 1;

	return kind == LITE_SLOT_BULK ? ~small : small;
}

/* Take a slot: under lite_qp.lock, or after seeing that there are no waiters. */
static __always_inline int lite_slot_get(struct lite_qp *qp, enum lite_slot_class kind)
{
	/* Slots of other classes count as busy. */
	const s64 others = ~lite_slots_of(kind);
	s64 busy = atomic64_read(&qp->busy);
	int slot;

	do {
		if ((busy | others) == -1)
			return -EAGAIN;
		slot = __ffs64(~(u64)(busy | others));
	} while (!atomic64_try_cmpxchg_acquire(&qp->busy, &busy, busy | BIT_ULL(slot)));
	return slot;
}

/* Take a slot unless there are waiters for one. Process context. */
static inline int lite_slot_get_last(struct lite_qp *qp, enum lite_slot_class kind)
{
	return list_empty(&qp->line[kind]) ? lite_slot_get(qp, kind) : -EAGAIN;
}

bool lite_slots_grant(struct lite_qp *qp);
int lite_slot_try(struct lite_post *post);
void lite_slot_queue(struct lite_post *post);
bool lite_slot_leave(struct lite_post *post, bool killed);
void lite_slots_schedule(struct lite_qp *qp, bool on);
void lite_slot_wait(struct lite_post *post);

/* Give back slots that have nothing in flight; grant them to waiters. Process context. */
static inline void lite_slots_give(struct lite_qp *qp, u64 slots)
{
	smp_mb__before_atomic(); /* Accesses to the slots come first. */
	atomic64_andnot(slots, &qp->busy);
	smp_mb__after_atomic(); /* pairs with lite_slot_enter_line() */
	BUILD_BUG_ON(sizeof(qp->waiting) != sizeof(qp->any_waiting));
	/* On a scheduled connection @any_waiting is never 0. */
	if (unlikely(READ_ONCE(qp->any_waiting)) &&
	    !(list_empty(&qp->line[LITE_SLOT_SMALL]) && list_empty(&qp->line[LITE_SLOT_BULK])))
		lite_slots_grant(qp);
}

/* turn.c */

/* Work requests that are posted in one turn. */
#define LITE_TURN_WRS 8

/* NULL until the connection is first scheduled; set before lite_slots_schedule(). */
static inline struct lite_turns *lite_turns_of(const struct lite_conn *conn)
{
	return smp_load_acquire(&conn->turns); /* pairs with lite_turns_make() */
}

static inline bool lite_turns_on(const struct lite_conn *conn)
{
	const struct lite_turns *turns = lite_turns_of(conn);

	return turns && READ_ONCE(turns->on);
}

int lite_turn_take(struct lite_post *post);
bool lite_turn_wait(struct lite_post *post);
void lite_turn_done(struct ib_cq *cq, struct ib_wc *wc);
bool lite_turns_grant(struct lite_conn *conn);

/* qp.c */
void lite_send_done(struct ib_cq *cq, struct ib_wc *wc);
void lite_post_with(struct lite_post *post, int slot);
void lite_post_fail(struct lite_post *post, int err);
int lite_qp_post_list(struct lite_post *post, bool wait);

#endif /* _LITE_FABRIC_SLOT_H */
