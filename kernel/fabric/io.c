// SPDX-License-Identifier: GPL-2.0
/*
 * Waiting for work requests.
 *
 * Normal operation: each work request in flight has a share of
 * lite_io.pending, and so has the waiter, which is done when only its own is
 * left. It polls the CQ itself, awake, as long as that is worth it, and then
 * sleeps (lite_cq_sleep()). The thread that handles the last completion wakes
 * it.
 *
 * Recovery: if a work request does not complete in time the waiter ends the
 * connection, which completes it with an error. The waiter never leaves
 * earlier.
 */
#include <linux/sched/clock.h>
#include <linux/sched/stat.h>

#include "slot.h"
#include "wait.h"

/* Polls before the first look at the clock. */
#define LITE_SPIN_BLIND 4
/* Maximum number of work requests of a small operation. */
#define LITE_SMALL_WRS 4

/* Prepare to post and to call lite_io_wait(); @io is on the caller's stack. */
void lite_io_init(struct lite_io *io)
{
	atomic_set(&io->pending, 1);
	io->status = 0;
	io->waiter = current;
	io->end = NULL;
}

/**
 * lite_io_init_unwaited - prepare to post without waiting
 * @io: stays until everything posted has completed
 * @end: called when all has completed, after lite_io_leave(); may be NULL
 */
void lite_io_init_unwaited(struct lite_io *io, void (*end)(struct lite_io *io))
{
	atomic_set(&io->pending, 1);
	io->status = 0;
	io->waiter = NULL;
	io->end = end;
}

/*
 * The waiter may leave as soon as our shares are subtracted. It may even exit:
 * RCU keeps the task until we have woken it.
 */
static void lite_io_end_for(struct lite_io *io, struct task_struct *waiter,
			    int n)
{
	rcu_read_lock();
	if (atomic_sub_return(n, &io->pending) == 1)
		wake_up_process(waiter);
	rcu_read_unlock();
}

/**
 * lite_io_end - work requests have completed
 * @io: notified; the caller must not touch it any more
 * @status: 0 or a negative errno
 * @n: number of work requests
 *
 * Context: any.
 */
void lite_io_end(struct lite_io *io, int status, int n)
{
	struct task_struct *waiter = io->waiter;

	if (unlikely(status))
		cmpxchg(&io->status, 0, status);
	if (waiter == current) {
		atomic_sub(n, &io->pending);
	} else if (waiter) {
		lite_io_end_for(io, waiter, n);
	} else {
		void (*end)(struct lite_io *io) = io->end;

		if (atomic_sub_and_test(n, &io->pending) && end)
			end(io);
	}
}

/*
 * Everything has been posted, without a waiter. @end may be called from here,
 * and may free @io. Process context.
 */
void lite_io_leave(struct lite_io *io)
{
	lite_io_end(io, 0, 1);
}

/*
 * Poll for the completion for a while. cond_resched() because on a single CPU
 * the thread that brings the completion may need this one. No cpu_relax():
 * polling takes its time, and PAUSE can cost a virtual CPU an exit.
 *
 * Stop when other tasks want this processor: they may be about to post, or do
 * the device's work. KVM stops polling for the same reason before it halts a
 * virtual CPU.
 */
static bool lite_io_spin(struct lite_io *io, struct lite_qp *qp,
			 struct lite_pace_wait *wait)
{
	struct lite_cq *cq = qp->scq;
	u64 end = 0;
	int i;

	for (i = 0; i < LITE_SPIN_BLIND; i++) {
		lite_cq_poll(cq);
		if (lite_io_ended(io))
			return true;
		cond_resched();
	}
	do {
		lite_poller_receive(cq->poller);
		lite_cq_poll(cq);
		if (lite_io_ended(io))
			return true;
		if (!end)
			end = local_clock() + wait->awake_ns;
		if (!single_task_running()) {
			lite_pace_disturb(wait);
			return false;
		}
		cond_resched();
	} while (local_clock() < end);
	return false;
}

static void lite_io_sleep(struct lite_io *io, struct lite_qp *qp)
{
	struct lite_cq *cq = qp->scq;
	unsigned long timeout = qp->conn->fab->op_timeout;
	unsigned long part = timeout / LITE_TIMEOUT_PARTS + 1;
	struct lite_qp_watch watch;

	/*
	 * While anything completes, also of others, the queue pair is slow,
	 * not stuck: it works in order.
	 */
	lite_qp_watch(qp, &watch);
	do {
		if (lite_cq_sleep(cq, io, part))
			return;
	} while (!lite_qp_is_stuck(qp, &watch));
	cmpxchg(&io->status, 0, -ETIMEDOUT);
	lite_conn_end(qp->conn, LITE_END_OP_TIMEOUT, jiffies_to_msecs(timeout),
		      -ETIMEDOUT);
	while (!lite_cq_sleep(cq, io, timeout))
		;
}

static noinline void lite_io_await(struct lite_io *io, struct lite_qp *qp)
{
	struct lite_pace_wait wait;

	if (atomic_read(&io->pending) > 1 + LITE_SMALL_WRS) {
		lite_io_wait_long(io, qp);
		return;
	}
	lite_pace_begin(&qp->pace, &wait, atomic_read(&qp->scq->sleepers));
	if (!wait.awake_ns || !lite_io_spin(io, qp, &wait))
		lite_io_sleep(io, qp);
	lite_pace_end(&qp->pace, &wait);
}

/**
 * lite_io_wait - wait until everything posted with an io has completed
 * @io: its status is final afterwards
 * @qp: queue pair that all of it was posted to
 *
 * Not even a fatal signal ends the wait, because the device may still write
 * the caller's memory; the time-out of the transport, or else the operation
 * time-out of the node, bounds it.
 *
 * Context: may sleep.
 */
void lite_io_wait(struct lite_io *io, struct lite_qp *qp)
{
	/* An emulated device may be done already. */
	lite_cq_poll(qp->scq);
	if (!lite_io_ended(io))
		lite_io_await(io, qp);
}

/*
 * Like lite_io_wait(), for a long operation: does not update the pace of small
 * ones.
 */
void lite_io_wait_long(struct lite_io *io, struct lite_qp *qp)
{
	struct lite_pace_wait wait = { .awake_ns = LITE_PACE_MIN_NS };

	if (!lite_io_ended(io) && !lite_io_spin(io, qp, &wait))
		lite_io_sleep(io, qp);
}
