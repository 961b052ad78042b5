// SPDX-License-Identifier: GPL-2.0
/*
 * Completion queues.
 *
 * Normal operation: a thread that waits for its own operation polls the send
 * CQ of the QP it posted on (lite_io_wait()). When that takes long it arms the
 * CQ and sleeps (lite_cq_sleep()); the completion interrupt wakes it, and it
 * polls again. If a send CQ is armed but has no single sleeper of that kind,
 * and for receive CQs, the interrupt puts the CQ on the poller's list, and the
 * poller runs the handlers. Receive CQs are always armed, and one thread at a
 * time handles what is in one, so messages are handled in order.
 *
 * We use plain CQs with our own arming, as those of ib_alloc_cq() support only
 * one of the two ways.
 *
 * What runs concurrently: any number of waiters and the poller may poll one
 * CQ. cq->lock makes polling exclusive; the handlers run outside of it, so
 * handlers of one send CQ may run concurrently and out of order. They only
 * touch their own work request. For a receive CQ, cq->busy is held while
 * handlers run.
 *
 * Preemption is off from taking completions until their handlers have run, so
 * a preempted thread never holds the completions of others, nor cq->busy, and
 * an RCU grace period waits for all that polled before a CQ was closed.
 */
#include <linux/cpu.h>
#include <linux/interrupt.h>
#include <linux/rcupdate.h>

#include "compat.h"
#include "fabric.h"

/* Completions taken at a time; struct ib_wc is 64 bytes and on the stack. */
#define LITE_CQ_BATCH 8
/* Batches before the poller takes over. */
#define LITE_CQ_TURN 16

static void lite_cq_release(struct kref *ref)
{
	kfree(container_of(ref, struct lite_cq, ref));
}

/* Drop a reference to a CQ's memory. Any context. */
void lite_cq_put(struct lite_cq *cq)
{
	kref_put(&cq->ref, lite_cq_release);
}

/*
 * Have the poller, or a waiter that does its work, poll a queue. Any context.
 */
void lite_cq_wake(struct lite_cq *cq)
{
	if (test_and_set_bit(0, &cq->queued))
		return;
	kref_get(&cq->ref);
	lite_poller_queue(cq->poller, cq);
}

/*
 * Let the sleeper take its completions itself, so that no other thread has to
 * be woken. Only if it is the only one: it may be long before it gets a
 * processor, and the completions of others must not depend on that.
 */
static bool lite_cq_hand(struct lite_cq *cq)
{
	unsigned long flags;
	bool handed;

	spin_lock_irqsave(&cq->wait.lock, flags);
	/* Sleepers come and go under this lock. */
	handed = waitqueue_active(&cq->wait) && atomic_read(&cq->sleepers) == 1;
	if (handed) {
		WRITE_ONCE(cq->handed, 1);
		smp_mb(); /* pairs with the sleepers' increments */
		if (atomic_read(&cq->sleepers) != 1 && xchg(&cq->handed, 0))
			handed = false;
	}
	if (handed)
		wake_up_locked(&cq->wait);
	spin_unlock_irqrestore(&cq->wait.lock, flags);
	return handed;
}

static void lite_cq_event(struct ib_cq *ib, void *context)
{
	struct lite_cq *cq = context;

	if (cq->always || !lite_cq_hand(cq))
		lite_cq_wake(cq);
}

static void lite_cq_error(struct ib_event *event, void *context)
{
	pr_warn_ratelimited("lite: CQ error %s\n", ib_event_msg(event->event));
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

/**
 * lite_cq_poll - take completions and run their handlers
 * @cq: queue
 *
 * Context: process, preemptible or not; the handlers do not sleep.
 * Return: number of completions handled, at most LITE_CQ_BATCH; also 0 if
 * another thread is polling.
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

/**
 * lite_cq_notify - request an event for the next completion
 * @cq: queue
 *
 * Context: process.
 * Return: true if completions may have come before, which raise no event.
 */
bool lite_cq_notify(struct lite_cq *cq)
{
	bool missed = false;

	/* Closing comes before the device's queue is destroyed. */
	spin_lock(&cq->lock);
	if (!cq->closed)
		missed = ib_req_notify_cq(cq->ib,
					  IB_CQ_NEXT_COMP |
						  IB_CQ_REPORT_MISSED_EVENTS) >
			 0;
	spin_unlock(&cq->lock);
	return missed;
}

/* Arm a queue before sleeping, counted in @sleepers. Process context. */
void lite_cq_arm(struct lite_cq *cq)
{
	/* A completion that came before arming would raise no event. */
	if (lite_cq_notify(cq))
		lite_cq_wake(cq);
}

/**
 * lite_cq_arm_sleeper - have the poller handle completions without a waiter
 * @cq: queue; call lite_cq_disarm_sleeper() when they have come
 *
 * Call before posting. While there is a sleeper the queue is armed, or is
 * about to be, or the poller has it; so only the first one has to arm it.
 *
 * Context: process.
 */
void lite_cq_arm_sleeper(struct lite_cq *cq)
{
	if (atomic_inc_return(&cq->sleepers) == 1 || READ_ONCE(cq->handed))
		lite_cq_arm(cq);
}

/* The counterpart of lite_cq_arm_sleeper(). Any context. */
void lite_cq_disarm_sleeper(struct lite_cq *cq)
{
	atomic_dec(&cq->sleepers);
}

/* Empty the queue; false: it did not run empty, so the poller goes on. */
static bool lite_cq_empty(struct lite_cq *cq)
{
	int turns;

	for (turns = 0; turns < LITE_CQ_TURN; turns++) {
		if (lite_cq_poll(cq) < LITE_CQ_BATCH)
			return true;
	}
	lite_cq_wake(cq);
	return false;
}

/**
 * lite_cq_sleep - sleep until work requests have completed
 * @cq: send queue
 * @io: the caller's, posted to queue pairs that complete here
 * @timeout: jiffies
 *
 * The next event wakes the only sleeper, if it sleeps here, else the poller.
 * The thread that is woken takes the completions. If others have gone to sleep
 * meanwhile, it arms the queue again for them.
 *
 * Context: may sleep; uninterruptible.
 * Return: true if they have completed.
 */
bool lite_cq_sleep(struct lite_cq *cq, const struct lite_io *io,
		   unsigned long timeout)
{
	/*
	 * The first sleeper arms it itself. Later ones cannot rely on its
	 * being quick, and have the poller do it.
	 */
	bool ours = atomic_inc_return(&cq->sleepers) == 1;
	DEFINE_WAIT(wait);

	if (!ours)
		lite_cq_arm(cq);
	for (;;) {
		if (xchg(&cq->handed, 0))
			ours = true;
		if (ours) {
			ours = lite_cq_empty(cq);
			if (lite_io_ended(io))
				break;
			if (ours && lite_cq_notify(cq))
				continue;
			ours = false;
		}
		prepare_to_wait_exclusive(&cq->wait, &wait,
					  TASK_UNINTERRUPTIBLE);
		if (!lite_io_ended(io) && !READ_ONCE(cq->handed))
			timeout = schedule_timeout(timeout);
		finish_wait(&cq->wait, &wait);
		if (lite_io_ended(io) || !timeout)
			break;
	}
	/* A sleeper that leaves passes on what it was woken to do. */
	if (READ_ONCE(cq->handed) && xchg(&cq->handed, 0))
		ours = true;
	/* It may be long since this thread or another one has polled. */
	if (!lite_io_ended(io))
		lite_cq_empty(cq);
	if (atomic_dec_return(&cq->sleepers) && ours && lite_cq_notify(cq))
		lite_cq_wake(cq);
	return lite_io_ended(io);
}

/**
 * lite_cq_create - create a completion queue
 * @poller: the poller to serve it
 * @dev: RDMA device
 * @depth: number of completions it must hold
 * @always: keep it armed
 *
 * Context: may sleep.
 * Return: the CQ, to be destroyed by lite_cq_destroy(), or ERR_PTR.
 */
struct lite_cq *lite_cq_create(struct lite_poller *poller,
			       struct ib_device *dev, int depth, bool always)
{
	struct ib_cq_init_attr attr = { .cqe = depth };
	struct lite_cq *cq;
	int err;

	cq = kzalloc(sizeof(*cq), GFP_KERNEL);
	if (!cq)
		return ERR_PTR(-ENOMEM);
	cq->poller = poller;
	cq->always = always;
	spin_lock_init(&cq->lock);
	init_waitqueue_head(&cq->wait);
	kref_init(&cq->ref);
	/* Spread interrupts over the device's vectors. */
	if (dev->num_comp_vectors > 1)
		attr.comp_vector = raw_smp_processor_id() %
				   dev->num_comp_vectors;
	cq->ib = ib_create_cq(dev, lite_cq_event, lite_cq_error, cq, &attr);
	if (IS_ERR(cq->ib)) {
		err = PTR_ERR(cq->ib);
		kfree(cq);
		return ERR_PTR(err);
	}
	if (always)
		lite_cq_arm(cq);
	return cq;
}

static void lite_cq_barrier_tasklet(struct tasklet_struct *t)
{
}

/* Runs in an interrupt, at the end of which tasklets run. */
static void lite_cq_barrier_ipi(void *tasklet)
{
	tasklet_schedule(tasklet);
}

/**
 * lite_cq_barrier - wait until pending completion events have been delivered
 *
 * For devices with the quirk tasklets. The tasklets of a CPU run in order, so
 * one of ours, scheduled behind a CQ's, waits for it. But a tasklet that is
 * found running on another CPU is requeued behind ours, and runs later. In the
 * second round it runs before ours: it cannot be running elsewhere any more,
 * as the first round has waited for that CPU, too.
 *
 * An interrupt schedules our tasklet, which runs at its end. That needs no
 * thread on the other CPU, which a real-time thread may occupy for good.
 *
 * Context: may sleep; no more completions come on the CQs in question.
 */
void lite_cq_barrier(void)
{
	struct tasklet_struct t;
	int round, cpu;

	tasklet_setup(&t, lite_cq_barrier_tasklet);
	cpus_read_lock();
	for (round = 0; round < 2; round++) {
		for_each_online_cpu(cpu) {
			/* On this CPU local_bh_enable() runs it. */
			local_bh_disable();
			smp_call_function_single(cpu, lite_cq_barrier_ipi, &t,
						 true);
			local_bh_enable();
			tasklet_kill(&t);
		}
	}
	cpus_read_unlock();
}

/*
 * Let no more completions be taken. Handlers may be running until
 * lite_cq_quiesce() has returned. Process context.
 */
void lite_cq_close(struct lite_cq *cq)
{
	spin_lock(&cq->lock);
	WRITE_ONCE(cq->closed, true);
	spin_unlock(&cq->lock);
}

/*
 * Wait for the handlers of closed CQs: they run with preemption off, so a
 * grace period waits for them. May sleep.
 */
void lite_cq_quiesce(void)
{
	synchronize_rcu_expedited();
}

static void lite_cq_nothing(struct ib_cq *ib, void *context)
{
}

/*
 * Give up a CQ that cannot be destroyed, as a QP that the device has kept
 * still uses it. It leaks, and pins the module. May sleep.
 */
void lite_cq_abandon(struct lite_cq *cq)
{
	lite_cq_close(cq);
	WRITE_ONCE(cq->ib->comp_handler, lite_cq_nothing);
	/* Wait for calls of the old handler. */
	synchronize_rcu();
}

/* Destroy a CQ that no QP uses; closes it first if needed. May sleep. */
void lite_cq_destroy(struct lite_cq *cq)
{
	if (!cq->closed) {
		lite_cq_close(cq);
		lite_cq_quiesce();
	}
	ib_destroy_cq(cq->ib);
	lite_cq_put(cq);
}
