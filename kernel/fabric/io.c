// SPDX-License-Identifier: GPL-2.0
/*
 * Taking completions, and waiting for work requests.
 *
 * Normal operation: each work request in flight has a share of lite_io.pending, and so has the
 * waiter, which is done when only its own is left. It polls the CQ itself, awake, as long as that
 * is worth it, then sleeps (lite_cq_sleep()) until the thread that handles the last completion
 * wakes it.
 *
 * Recovery: if the queue pair completes nothing for the operation time-out, the waiter ends the
 * connection, which completes the work request with an error. The waiter never leaves earlier.
 *
 * What runs concurrently: any number of waiters and the poller may poll one CQ. cq->lock makes
 * polling exclusive, but the handlers run outside of it. So those of one send CQ may run
 * concurrently and out of order; they only touch their own work request. For a receive CQ, cq->busy
 * is held while handlers run.
 *
 * Preemption is off from taking completions until their handlers have run. So no preempted thread
 * holds completions of others, or cq->busy, and an RCU grace period waits for all threads that
 * polled before a CQ was closed.
 */
#include <linux/sched/clock.h>
#include <linux/sched/stat.h>

#include "compat.h"
#include "fabric.h"
#include "wait.h"

/* Completions taken at a time; struct ib_wc is 64 bytes and on the stack. */
#define LITE_CQ_BATCH 8
/* Batches before the poller takes over. */
#define LITE_CQ_TURN 16
/* Polls before the first look at the clock. */
#define LITE_SPIN_BLIND 4
/* Maximum number of work requests of a small operation. */
#define LITE_SMALL_WRS 4
/* Time between ticks. */
#define LITE_TICK (HZ / 8)

/* Subtract @n shares of a waited io. Return: true: only the waiter's is left; @io may be gone. */
static bool lite_io_subtract(struct lite_io *io, int n)
{
	int pending = atomic_read(&io->pending);

	if (!io->hooks)
		return atomic_sub_return(n, &io->pending) == 1;
	do {
		/* These are the last, so no other thread changes @pending. */
		if (pending == n + 1) {
			/* Others set @status before they subtracted theirs. */
			smp_acquire__after_ctrl_dep();
			io->hooks->ended(io);
		}
	} while (!atomic_try_cmpxchg(&io->pending, &pending, pending - n));
	return pending == n + 1;
}

/* @n work requests ended with @status; the caller must not touch @io any more. Any context. */
void lite_io_end(struct lite_io *io, int status, int n)
{
	struct task_struct *waiter = io->waiter;

	if (unlikely(status))
		cmpxchg(&io->status, 0, status);
	if (waiter == current && !(io->hooks && io->hooks->eager)) {
		atomic_sub(n, &io->pending);
	} else if (waiter) {
		/*
		 * The waiter may leave, and even exit, as soon as the shares are subtracted. RCU
		 * keeps the task until it has been woken.
		 */
		rcu_read_lock();
		if (lite_io_subtract(io, n))
			wake_up_process(waiter);
		rcu_read_unlock();
	} else {
		void (*end)(struct lite_io *io) = io->end;

		if (atomic_sub_and_test(n, &io->pending) && end)
			end(io);
	}
}

/* Take completions, unless another thread is doing that. */
static int lite_cq_take(struct lite_cq *cq, struct ib_wc *wc)
{
	int n = 0;

	if (!spin_trylock(&cq->lock))
		return 0;
	if (!cq->closed)
		n = ib_poll_cq(cq->ib, LITE_CQ_BATCH, wc);
	spin_unlock(&cq->lock);
	return n;
}

/*
 * Take completions and run their handlers, which do not sleep. Process context, preemptible or not.
 * Return: how many this thread has handled: at most LITE_CQ_BATCH; 0 while another one polls.
 */
int lite_cq_poll(struct lite_cq *cq)
{
	struct ib_wc wc[LITE_CQ_BATCH] LITE_UNINIT;
	int i, n;

	preempt_disable();
	if (cq->always && test_and_set_bit_lock(0, &cq->busy)) {
		preempt_enable();
		return 0;
	}
	n = lite_cq_take(cq, wc);
	for (i = 0; i < n; i++)
		wc[i].wr_cqe->done(cq->ib, &wc[i]);
	if (cq->always)
		clear_bit_unlock(0, &cq->busy);
	preempt_enable();
	return max(n, 0);
}

/* Take what is there and not another thread's. False: there may be more, so the poller goes on. */
static bool lite_cq_take_all(struct lite_cq *cq)
{
	int turns;

	for (turns = 0; turns < LITE_CQ_TURN; turns++) {
		if (lite_cq_poll(cq) < LITE_CQ_BATCH)
			return true;
	}
	lite_cq_wake(cq);
	return false;
}

/*
 * Sleep until @io has ended, at most for @timeout jiffies. Uninterruptible. The next event wakes
 * this thread if it is the only sleeper, else the poller; the woken thread takes the completions.
 * Each sleeper arms the CQ itself, as others may be slow to. Return: has @io ended?
 */
static bool lite_cq_sleep(struct lite_cq *cq, const struct lite_io *io, unsigned long timeout)
{
	DEFINE_WAIT(wait);

	atomic_inc(&cq->sleepers);
	for (;;) {
		bool all = lite_cq_take_all(cq);

		if (lite_io_ended(io) || !timeout)
			break;
		prepare_to_wait_exclusive(&cq->wait, &wait, TASK_UNINTERRUPTIBLE);
		/* Completions that came earlier raise no event. */
		if (!(all && lite_cq_notify(cq)) && !lite_io_ended(io))
			timeout = schedule_timeout(timeout);
		finish_wait(&cq->wait, &wait);
		if (lite_io_ended(io))
			break;
	}
	atomic_dec(&cq->sleepers);
	return lite_io_ended(io);
}

/*
 * Poll for the completion for a while. cond_resched() because on a single CPU the thread that
 * brings the completion may need this one. No cpu_relax(): polling is slow enough, and PAUSE can
 * cost a virtual CPU an exit. Stop when other tasks want this processor: they may be about to post,
 * or do the device's work. KVM stops polling for that reason before it halts a virtual CPU.
 */
static bool lite_io_spin(struct lite_io *io, struct lite_qp *qp, struct lite_pace_wait *wait)
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
			wait->begun = 0; /* not as planned: do not time it */
			return false;
		}
		cond_resched();
	} while (local_clock() < end);
	return false;
}

/* Is anything in flight at the device? Any context. */
bool lite_qp_in_flight(const struct lite_qp *qp)
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

/*
 * The device is stuck if it completes nothing on the queue pair for the operation time-out, with
 * something in flight. While anything completes, for whichever thread, it is only slow, because it
 * works in order. A slot has an io only while its work request is at the device. So if two checks
 * find one, and nothing has completed in between, it is the device that holds up the waiter.
 */
static void lite_io_sleep(struct lite_io *io, struct lite_qp *qp, void (*tick)(struct lite_io *io))
{
	unsigned long timeout = qp->conn->fab->op_timeout;
	unsigned long part = timeout / LITE_TIMEOUT_PARTS + 1;
	unsigned long acked = READ_ONCE(qp->acked);
	unsigned int parts = 0;

	if (tick)
		part = min_t(unsigned long, part, LITE_TICK);
	while (!lite_cq_sleep(qp->scq, io, part)) {
		unsigned long last = acked;

		if (tick)
			tick(io);
		acked = READ_ONCE(qp->acked);
		if (acked != last || !lite_qp_in_flight(qp)) {
			parts = 0;
		} else if (++parts == DIV_ROUND_UP(timeout, part)) {
			cmpxchg(&io->status, 0, -ETIMEDOUT);
			lite_conn_end(qp->conn, LITE_END_OP_TIMEOUT,
				      jiffies_to_msecs(timeout), -ETIMEDOUT);
		}
	}
}

static noinline void lite_io_await(struct lite_io *io, struct lite_qp *qp, bool large)
{
	struct lite_pace *pace = large ? &qp->large_pace : &qp->pace;
	struct lite_pace_wait wait;

	lite_pace_begin(pace, &wait, atomic_read(&qp->scq->sleepers));
	if (!wait.awake_ns || !lite_io_spin(io, qp, &wait))
		lite_io_sleep(io, qp, NULL);
	lite_pace_end(pace, &wait);
}

/*
 * Wait until everything posted with @io, all of it on @qp, has completed; its status is final then.
 * May sleep. Not even a fatal signal ends the wait, because the device may still write the caller's
 * memory; the time-out of the transport, or else the node's operation time-out, bounds it.
 */
void lite_io_wait(struct lite_io *io, struct lite_qp *qp)
{
	/* An emulated device may be done already. */
	lite_cq_poll(qp->scq);
	if (!lite_io_ended(io))
		lite_io_await(io, qp, atomic_read(&io->pending) > 1 + LITE_SMALL_WRS);
}

/* As lite_io_wait(), for more than a page: does not change the pace of small operations. */
void lite_io_wait_large(struct lite_io *io, struct lite_qp *qp)
{
	if (!lite_io_ended(io))
		lite_io_await(io, qp, true);
}

/*
 * As lite_io_wait(), but awake for up to @awake_ns, whatever the pace. While asleep the waiter
 * calls @tick, which may be NULL, several times a second. @tick may sleep, and may end the io.
 */
void lite_io_wait_ticking(struct lite_io *io, struct lite_qp *qp, u64 awake_ns,
			  void (*tick)(struct lite_io *io))
{
	struct lite_pace_wait wait = { .awake_ns = awake_ns };

	if (!lite_io_ended(io) && !lite_io_spin(io, qp, &wait))
		lite_io_sleep(io, qp, tick);
}
