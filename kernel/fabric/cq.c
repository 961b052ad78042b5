// SPDX-License-Identifier: GPL-2.0
/*
 * Completion queues.
 *
 * Normal operation: whoever waits for an operation of its own polls the send
 * CQ of the QP it posted on (lite_io_wait()). When that takes long it arms the
 * CQ and sleeps (lite_cq_sleep()); the completion interrupt wakes it, and it polls
 * again. Of a send CQ that is armed but has nobody who sleeps like that, and of
 * receive CQs, the interrupt puts the CQ on the poller's list, and the poller
 * runs the handlers. Receive CQs are always armed, and one thread at a time
 * handles what is in one, so messages are handled in order.
 *
 * We use plain CQs with our own arming, not those of ib_alloc_cq(): they serve
 * only one of the two ways.
 *
 * What runs at the same time: any number of waiters and the poller may poll
 * one CQ. cq->lock makes polling exclusive, the handlers run outside of it, so
 * handlers of one send CQ may run side by side and out of order. They only
 * touch their own work request. Of a receive CQ, cq->busy is held while handlers
 * run. Preemption is off from taking completions until their handlers have run:
 * a thread without a processor never has the completions of others, nor cq->busy.
 * And so an RCU grace period waits for those who polled before a CQ was closed.
 */
#include <linux/cpu.h>
#include <linux/interrupt.h>
#include <linux/rcupdate.h>

#include "compat.h"
#include "fabric.h"

/* Completions taken at a time; struct ib_wc is 64 bytes and on the stack. */
#define LITE_CQ_BATCH 8
/* Batches before others get a turn. */
#define LITE_CQ_TURN 16

static void lite_cq_release(struct kref *ref)
{
	kfree(container_of(ref, struct lite_cq, ref));
}

/**
 * lite_cq_put - give a reference to the memory back
 * @cq: queue
 *
 * Context: any.
 */
void lite_cq_put(struct lite_cq *cq)
{
	kref_put(&cq->ref, lite_cq_release);
}

/**
 * lite_cq_wake - have the poller, or who does its work, look at a queue
 * @cq: queue
 *
 * Context: any, interrupts included.
 */
void lite_cq_wake(struct lite_cq *cq)
{
	if (test_and_set_bit(0, &cq->queued))
		return;
	kref_get(&cq->ref);
	lite_poller_queue(cq->poller, cq);
}

/*
 * Have the one who waits for completions take them itself: nobody else has to be
 * woken. Not one of several, for it may be long before it gets a processor, and
 * the others' are not to depend on that.
 */
static bool lite_cq_hand(struct lite_cq *cq)
{
	unsigned long flags;
	bool handed;

	spin_lock_irqsave(&cq->wait.lock, flags);
	/* Under the lock under which they come and go. */
	handed = waitqueue_active(&cq->wait) && atomic_read(&cq->sleepers) == 1;
	if (handed) {
		WRITE_ONCE(cq->handed, 1);
		smp_mb(); /* with those who come: they see it, or we see them */
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

/* Take completions, unless somebody else is just doing that. */
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
 * Return: completions handled, LITE_CQ_BATCH at most; 0 also when another thread
 * is polling.
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
 * lite_cq_notify - ask for an event with the next completion
 * @cq: queue
 *
 * Context: process.
 * Return: true when there may be some already, for which none may come.
 */
bool lite_cq_notify(struct lite_cq *cq)
{
	bool missed = false;

	/* The device's queue goes away in close. */
	spin_lock(&cq->lock);
	if (!cq->closed)
		missed = ib_req_notify_cq(cq->ib, IB_CQ_NEXT_COMP |
						  IB_CQ_REPORT_MISSED_EVENTS) > 0;
	spin_unlock(&cq->lock);
	return missed;
}

/**
 * lite_cq_arm - before going to sleep: have the poller look at the next event
 * @cq: queue; the caller has counted itself in @sleepers
 *
 * Context: process.
 */
void lite_cq_arm(struct lite_cq *cq)
{
	/* A completion that came before arming would raise no event. */
	if (lite_cq_notify(cq))
		lite_cq_wake(cq);
}

/**
 * lite_cq_arm_sleeper - have the poller bring completions that nobody waits for
 * @cq: queue; lite_cq_disarm_sleeper() is to follow
 *
 * Before posting. As long as there is a sleeper, the queue is armed, or is about
 * to be, or the poller has it: so only the first one has to.
 *
 * Context: process.
 */
void lite_cq_arm_sleeper(struct lite_cq *cq)
{
	if (atomic_inc_return(&cq->sleepers) == 1 || READ_ONCE(cq->handed))
		lite_cq_arm(cq);
}

/**
 * lite_cq_disarm_sleeper - the counterpart of lite_cq_arm_sleeper()
 * @cq: queue
 *
 * Context: any.
 */
void lite_cq_disarm_sleeper(struct lite_cq *cq)
{
	atomic_dec(&cq->sleepers);
}

/* Take all there is; false: there was no end of it, and the poller goes on. */
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
 * @cq: queue of sends
 * @io: the caller's, posted to queue pairs that complete here
 * @timeout: jiffies
 *
 * The next event wakes the only one who sleeps, if it sleeps here, else the
 * poller. Whoever it wakes takes the completions; should others have come to
 * sleep meanwhile, the first of them does, or has the queue armed again for them.
 *
 * Context: may sleep; uninterruptibly.
 * Return: whether they have.
 */
bool lite_cq_sleep(struct lite_cq *cq, const struct lite_io *io,
		   unsigned long timeout)
{
	/* The first one has to arm it, the others not to rely on its being quick. */
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
	/* What we were woken to do, others may need to be done. */
	if (READ_ONCE(cq->handed) && xchg(&cq->handed, 0))
		ours = true;
	/* That may be long ago, and then nobody else has looked since. */
	if (!lite_io_ended(io))
		lite_cq_empty(cq);
	if (atomic_dec_return(&cq->sleepers) && ours && lite_cq_notify(cq))
		lite_cq_wake(cq);
	return lite_io_ended(io);
}

/**
 * lite_cq_create - make a completion queue
 * @poller: serves it
 * @dev: RDMA device
 * @depth: completions it has to hold
 * @always: keep it armed
 *
 * Context: may sleep.
 * Return: the CQ, to be given back by lite_cq_destroy(), or ERR_PTR.
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

/* From an interrupt, at the end of which tasklets run. */
static void lite_cq_barrier_ipi(void *tasklet)
{
	tasklet_schedule(tasklet);
}

/**
 * lite_cq_barrier - wait until completion events under way have been delivered
 *
 * For devices with the quirk tasklets. Tasklets of a CPU run in order: one of
 * ours, scheduled behind a CQ's, waits for it. But one that is found running at
 * another CPU is put behind ours, to run later. In the second round it is not
 * running any more, for the first has waited at that CPU, too, and it runs before
 * ours.
 *
 * Ours is scheduled by an interrupt, and runs at its end: that needs no thread of
 * the other CPU, which may be occupied for good by one of a real-time policy.
 *
 * Context: may sleep; nothing completes on the CQs in question any more.
 */
void lite_cq_barrier(void)
{
	struct tasklet_struct t;
	int round, cpu;

	tasklet_setup(&t, lite_cq_barrier_tasklet);
	cpus_read_lock();
	for (round = 0; round < 2; round++) {
		for_each_online_cpu(cpu) {
			/* If it is this one: enabling runs it. */
			local_bh_disable();
			smp_call_function_single(cpu, lite_cq_barrier_ipi, &t,
						 true);
			local_bh_enable();
			tasklet_kill(&t);
		}
	}
	cpus_read_unlock();
}

/**
 * lite_cq_close - let no completion be taken from now on
 * @cq: queue
 *
 * Handlers may be running until lite_cq_quiesce() has returned.
 *
 * Context: process.
 */
void lite_cq_close(struct lite_cq *cq)
{
	spin_lock(&cq->lock);
	WRITE_ONCE(cq->closed, true);
	spin_unlock(&cq->lock);
}

/**
 * lite_cq_quiesce - wait for the handlers of completion queues that were closed
 *
 * They run with preemption off, which a grace period waits for.
 *
 * Context: may sleep.
 */
void lite_cq_quiesce(void)
{
	synchronize_rcu_expedited();
}

static void lite_cq_nothing(struct ib_cq *ib, void *context)
{
}

/**
 * lite_cq_abandon - let go of a completion queue that cannot be destroyed
 * @cq: a QP uses it that the device has kept; it stays, and the module, too
 *
 * Context: may sleep.
 */
void lite_cq_abandon(struct lite_cq *cq)
{
	lite_cq_close(cq);
	WRITE_ONCE(cq->ib->comp_handler, lite_cq_nothing);
	/* Who saw the other has called it by then. */
	synchronize_rcu();
}

/**
 * lite_cq_destroy - give back a completion queue
 * @cq: no QP uses it any more; closed here if it was not
 *
 * Context: may sleep.
 */
void lite_cq_destroy(struct lite_cq *cq)
{
	if (!cq->closed) {
		lite_cq_close(cq);
		lite_cq_quiesce();
	}
	ib_destroy_cq(cq->ib);
	lite_cq_put(cq);
}
