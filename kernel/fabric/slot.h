/* SPDX-License-Identifier: GPL-2.0 */
/* Slots of a send queue, and the queues of waiters. See slot.c. */
#ifndef _LITE_FABRIC_SLOT_H
#define _LITE_FABRIC_SLOT_H

#include "fabric.h"

/**
 * struct lite_turn - a poster that waits for a slot
 * @list: in lite_qp.line until a slot is granted
 * @kind: class of the slot
 * @task: the waiting thread
 * @post: called with the slot, with preemption off
 * @over: @post has returned
 */
struct lite_turn {
	struct list_head list;
	enum lite_slot_class kind;
	struct task_struct *task;
	void (*post)(struct lite_turn *turn, int slot);
	bool over;
};

/**
 * struct lite_qp_watch - does the device make progress with a queue pair?
 * @acked: lite_qp.acked when progress was last seen
 * @parts: checks since then
 */
struct lite_qp_watch {
	unsigned long acked;
	int parts;
};

/* Slots of a class, a bit each. */
static inline u64 lite_slots_of(enum lite_slot_class kind)
{
	const u64 small = BIT_ULL(LITE_SQ_SMALL) - 1;

	return kind == LITE_SLOT_BULK ? ~small : small;
}

/*
 * Take a slot: under lite_qp.lock, or after seeing that there are no waiters.
 */
static __always_inline int lite_slot_get(struct lite_qp *qp,
					 enum lite_slot_class kind)
{
	/* Slots of other classes count as busy. */
	const s64 others = ~lite_slots_of(kind);
	s64 busy = atomic64_read(&qp->busy);
	int slot;

	do {
		if ((busy | others) == -1)
			return -EAGAIN;
		slot = __ffs64(~(u64)(busy | others));
	} while (!atomic64_try_cmpxchg_acquire(&qp->busy, &busy,
					       busy | BIT_ULL(slot)));
	return slot;
}

/* Take a slot, or -EAGAIN: none is free, or there are waiters. Any context. */
static __always_inline int lite_slot_take(struct lite_qp *qp,
					  enum lite_slot_class kind)
{
	if (unlikely(READ_ONCE(qp->waiting[kind])))
		return -EAGAIN;
	return lite_slot_get(qp, kind);
}

u64 lite_slots_take(struct lite_qp *qp, int max, int spare);
void lite_slots_give(struct lite_qp *qp, u64 slots);
int lite_slot_wait(struct lite_qp *qp, enum lite_slot_class kind,
		   struct lite_turn *turn);
void lite_slots_wake(struct lite_qp *qp);
void lite_slots_init(struct lite_qp *qp);
void lite_qp_watch(const struct lite_qp *qp, struct lite_qp_watch *watch);
bool lite_qp_is_stuck(const struct lite_qp *qp, struct lite_qp_watch *watch);

#endif /* _LITE_FABRIC_SLOT_H */
