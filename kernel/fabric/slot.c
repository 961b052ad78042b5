// SPDX-License-Identifier: GPL-2.0
/*
 * Send slots: the one place where slots are requested and granted.
 *
 * Normal operation: the poster takes a free slot of its class, without a lock,
 * and posts at once. If there is none it queues. While a class has waiters its
 * slots are granted FIFO; a later poster queues, or is refused if it must not
 * wait. The thread that gives a slot back posts the first waiter's work request
 * for it: a waiter that is seldom scheduled is not overtaken, and holds no idle
 * slot.
 *
 * Classes: work requests of more than LITE_BULK_BYTES have a few slots of their
 * own. That bounds the bytes in a send queue to LITE_SQ_BYTES_MAX, and so the
 * delay of small ones. Messages of calls between kernels need none of these
 * slots, see lite_conn_send().
 *
 * Recovery: nothing is granted when the connection is dead; waiters leave. A
 * device that completes nothing on a queue pair for the operation time-out,
 * with something in flight, is stuck: the waiter that notices ends the
 * connection. How long a single waiter has waited says nothing about the
 * device.
 *
 * Locking: lite_qp.lock protects lite_qp.line and lite_qp.waiting. Nothing is
 * posted under it.
 */
#include <linux/sched/clock.h>
#include <linux/sched/signal.h>

#include "slot.h"
#include "wait.h"

/* How long a waiter polls before it sleeps. */
#define LITE_ROOM_SPIN_NS (2 * NSEC_PER_MSEC)

/**
 * lite_slots_take - take several small slots, unless there are waiters
 * @qp: of a connection that the caller holds live
 * @max: at most this many
 * @spare: leave this many free
 *
 * Context: any.
 * Return: the slots, a bit each; may be 0.
 */
u64 lite_slots_take(struct lite_qp *qp, int max, int spare)
{
	s64 busy = atomic64_read(&qp->busy);
	u64 taken, free;
	int n;

	if (unlikely(READ_ONCE(qp->waiting[LITE_SLOT_SMALL])))
		return 0;
	do {
		free = ~(u64)busy & lite_slots_of(LITE_SLOT_SMALL);
		n = min(max, (int)hweight64(free) - spare);
		for (taken = 0; n > 0; n--) {
			taken |= free & -free;
			free &= free - 1;
		}
	} while (taken &&
		 !atomic64_try_cmpxchg_acquire(&qp->busy, &busy, busy | taken));
	return taken;
}

static void lite_turn_list(struct lite_qp *qp, struct lite_turn *turn,
			   enum lite_slot_class kind)
{
	turn->kind = kind;
	list_add_tail(&turn->list, &qp->line[kind]);
	WRITE_ONCE(qp->waiting[kind], qp->waiting[kind] + 1);
}

static void lite_turn_unlist(struct lite_qp *qp, struct lite_turn *turn)
{
	list_del_init(&turn->list);
	WRITE_ONCE(qp->waiting[turn->kind], qp->waiting[turn->kind] - 1);
}

/* Dequeue the first waiter for which there is a slot. */
static struct lite_turn *lite_slot_next(struct lite_qp *qp, int *slot)
{
	struct lite_turn *turn = NULL;
	int kind;

	spin_lock(&qp->lock);
	for (kind = 0; kind < LITE_SLOT_CLASSES && !turn; kind++) {
		turn = list_first_entry_or_null(&qp->line[kind],
						struct lite_turn, list);
		if (!turn)
			continue;
		*slot = lite_slot_get(qp, kind);
		if (*slot < 0)
			turn = NULL;
	}
	if (turn)
		lite_turn_unlist(qp, turn);
	spin_unlock(&qp->lock);
	return turn;
}

/* The waiter may return, and exit, once @over is set; RCU keeps its task. */
static void lite_turn_end(struct lite_turn *turn)
{
	struct task_struct *task = turn->task;

	rcu_read_lock();
	smp_store_release(&turn->over, true); /* with lite_slot_wait() */
	wake_up_process(task);
	rcu_read_unlock();
}

static void lite_slots_grant(struct lite_qp *qp)
{
	struct lite_turn *turn;
	int slot;

	do {
		/* A dequeued waiter depends on this thread. */
		preempt_disable();
		turn = NULL;
		/* This also ends the recursion from a post that fails. */
		if (!lite_conn_is_dead(qp->conn))
			turn = lite_slot_next(qp, &slot);
		if (turn) {
			turn->post(turn, slot);
			lite_turn_end(turn);
		}
		preempt_enable();
	} while (turn);
}

/*
 * Give slots back, a bit each, and grant them to waiters. Nothing is in flight
 * on the slots. Process context, preemptible or not.
 */
void lite_slots_give(struct lite_qp *qp, u64 slots)
{
	smp_mb__before_atomic(); /* Our accesses to the slots come first. */
	atomic64_andnot(slots, &qp->busy);
	smp_mb__after_atomic(); /* with lite_slot_wait() */
	if (unlikely(READ_ONCE(qp->waiting[LITE_SLOT_SMALL]) ||
		     READ_ONCE(qp->waiting[LITE_SLOT_BULK])))
		lite_slots_grant(qp);
}

/* Stop waiting. False: the slot has been, or is being, granted. */
static bool lite_turn_leave(struct lite_qp *qp, struct lite_turn *turn)
{
	bool left;

	spin_lock(&qp->lock);
	left = !list_empty(&turn->list);
	if (left)
		lite_turn_unlist(qp, turn);
	spin_unlock(&qp->lock);
	return left;
}

static inline bool lite_turn_is_over(const struct lite_turn *turn)
{
	return smp_load_acquire(&turn->over); /* with lite_turn_end() */
}

/* Poll for completions, which free slots, for a bounded time. */
static void lite_turn_spin(struct lite_qp *qp, const struct lite_turn *turn)
{
	u64 end = local_clock() + LITE_ROOM_SPIN_NS;

	do {
		lite_cq_poll(qp->scq);
		if (lite_turn_is_over(turn))
			return;
		cond_resched();
	} while (local_clock() < end);
}

/* True if it has slept for a part of the operation time-out. */
static bool lite_turn_sleep(struct lite_qp *qp, const struct lite_turn *turn)
{
	long left = 1;

	/*
	 * The poller takes completions. Arm even if another sleeper has done
	 * so: do not depend on it.
	 */
	atomic_inc(&qp->scq->sleepers);
	lite_cq_arm(qp->scq);
	set_current_state(TASK_IDLE);
	if (!lite_turn_is_over(turn) && !lite_conn_is_dead(qp->conn))
		left = schedule_timeout(
			qp->conn->fab->op_timeout / LITE_TIMEOUT_PARTS + 1);
	__set_current_state(TASK_RUNNING);
	atomic_dec(&qp->scq->sleepers);
	return !left;
}

/**
 * lite_slot_wait - wait for a slot
 * @qp: of a connection that the caller holds live
 * @kind: class of the work request
 * @turn: its @post is called with the slot, by this or another thread, with
 *	preemption off
 *
 * Uninterruptible: slots come free as fast as the device works, and the wait
 * ends when the connection dies.
 *
 * Context: may sleep.
 * Return: 0 when @turn->post has been called; -EHOSTDOWN: it has not.
 */
int lite_slot_wait(struct lite_qp *qp, enum lite_slot_class kind,
		   struct lite_turn *turn)
{
	struct lite_qp_watch watch;
	bool late;

	turn->task = current;
	turn->over = false;
	spin_lock(&qp->lock);
	lite_turn_list(qp, turn, kind);
	spin_unlock(&qp->lock);
	smp_mb(); /* with lite_slots_give() */
	lite_slots_grant(qp);
	lite_turn_spin(qp, turn);
	lite_qp_watch(qp, &watch);
	while (!lite_turn_is_over(turn)) {
		/* Completions of other queue pairs may wake it earlier. */
		late = lite_turn_sleep(qp, turn);
		/* The poller may not have been scheduled. */
		lite_cq_poll(qp->scq);
		if (lite_turn_is_over(turn))
			break;
		if (late && lite_qp_is_stuck(qp, &watch))
			lite_conn_end(
				qp->conn, LITE_END_OP_TIMEOUT,
				jiffies_to_msecs(qp->conn->fab->op_timeout),
				-ETIMEDOUT);
		if (lite_conn_is_dead(qp->conn) && lite_turn_leave(qp, turn))
			return -EHOSTDOWN;
	}
	return 0;
}

/* Wake waiters, to see that the connection is dead. Process context. */
void lite_slots_wake(struct lite_qp *qp)
{
	struct lite_turn *turn;
	int kind;

	spin_lock(&qp->lock);
	for (kind = 0; kind < LITE_SLOT_CLASSES; kind++)
		list_for_each_entry(turn, &qp->line[kind], list)
			wake_up_process(turn->task);
	spin_unlock(&qp->lock);
}

/* Initialise: all slots are free, and there are no waiters. */
void lite_slots_init(struct lite_qp *qp)
{
	int kind;

	BUILD_BUG_ON(LITE_SQ_DEPTH != 64);
	atomic64_set(&qp->busy, 0);
	spin_lock_init(&qp->lock);
	for (kind = 0; kind < LITE_SLOT_CLASSES; kind++) {
		INIT_LIST_HEAD(&qp->line[kind]);
		qp->waiting[kind] = 0;
	}
}

/* ---- is the device stuck? ------------------------------------------------ */

static bool lite_qp_in_flight(const struct lite_qp *qp)
{
	int i;

	for (i = 0; i < LITE_SQ_DEPTH; i++)
		if (READ_ONCE(qp->wr[i].io))
			return true;
	for (i = 0; qp == qp->conn->qp && i < LITE_MESSAGES; i++)
		if (READ_ONCE(qp->conn->message[i].io))
			return true;
	return false;
}

/* Begin to watch for progress of a queue pair. Any context. */
void lite_qp_watch(const struct lite_qp *qp, struct lite_qp_watch *watch)
{
	watch->acked = READ_ONCE(qp->acked);
	watch->parts = 0;
}

/**
 * lite_qp_is_stuck - check for progress of a queue pair
 * @qp: queue pair
 * @watch: begun by lite_qp_watch()
 *
 * To be called at intervals of the operation time-out / LITE_TIMEOUT_PARTS, or
 * longer. What is in flight at two checks without a completion in between is
 * with the device: a slot has an io only while its work request is with the
 * device.
 *
 * Context: any.
 * Return: true if nothing has completed for the operation time-out, with
 * something in flight.
 */
bool lite_qp_is_stuck(const struct lite_qp *qp, struct lite_qp_watch *watch)
{
	unsigned long acked = READ_ONCE(qp->acked);

	if (acked != watch->acked || !lite_qp_in_flight(qp)) {
		watch->acked = acked;
		watch->parts = 0;
		return false;
	}
	return ++watch->parts >= LITE_TIMEOUT_PARTS;
}
