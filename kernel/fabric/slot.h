/* SPDX-License-Identifier: GPL-2.0 */
/* Slots of a send queue, and the queues of waiters. See slot.c. */
#ifndef _LITE_FABRIC_SLOT_H
#define _LITE_FABRIC_SLOT_H

#include "fabric.h"

/* Work requests to be posted on one queue pair. */
struct lite_post {
	struct lite_qp *qp;        /* of a connection that the poster holds live */
	struct lite_io *io;        /* of all of them */
	struct ib_send_wr *send;   /* first of those that have not been tried yet */
	u32 n;                     /* number of these */
	u32 posted;                /* number of those that the device may execute */
	enum lite_slot_class kind; /* of their slots; of several ones LITE_SLOT_SMALL */
	int err;                   /* ends posting */
	struct list_head list;     /* in lite_qp.line until a slot is granted */
	struct lite_io turn;       /* ends when another thread has posted one, or set @err */
};

static_assert(LITE_SQ_DEPTH == 64, "lite_qp.busy has a bit for each slot");

/* Slots of a class, a bit each. */
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

/* Take a slot, or -EAGAIN: none is free, or there are waiters. Any context. */
static __always_inline int lite_slot_take(struct lite_qp *qp, enum lite_slot_class kind)
{
	if (unlikely(READ_ONCE(qp->waiting[kind])))
		return -EAGAIN;
	return lite_slot_get(qp, kind);
}

void lite_slots_grant(struct lite_qp *qp);
void lite_slot_wait(struct lite_post *post);

/*
 * Give slots back, a bit each, and grant them to waiters. Nothing is in flight on the slots.
 * Process context, preemptible or not.
 */
static inline void lite_slots_give(struct lite_qp *qp, u64 slots)
{
	smp_mb__before_atomic(); /* Our accesses to the slots come first. */
	atomic64_andnot(slots, &qp->busy);
	smp_mb__after_atomic(); /* with lite_slot_wait() */
	if (unlikely(READ_ONCE(qp->waiting[LITE_SLOT_SMALL]) ||
		     READ_ONCE(qp->waiting[LITE_SLOT_BULK])))
		lite_slots_grant(qp);
}

/* qp.c */
void lite_post_with(struct lite_post *post, int slot);
int lite_qp_post_list(struct lite_post *post);

#endif /* _LITE_FABRIC_SLOT_H */
