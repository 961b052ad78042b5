// SPDX-License-Identifier: GPL-2.0
/*
 * Completion queues, and the thread that serves them.
 *
 * Normal operation: whoever waits for an operation of its own polls the send
 * CQ of the QP it posted on (lite_io_wait()). When that takes long it arms the
 * CQ and sleeps; the completion interrupt then puts the CQ on the poller's
 * list, and the poller runs the handlers. Receive CQs are always armed, and
 * one thread at a time handles what is in one, so messages are handled in order.
 *
 * Whoever waits for a message of a peer does the poller's work meanwhile
 * (lite_poller_watch()): then nobody has to be woken to bring it.
 *
 * We use plain CQs with our own arming, not those of ib_alloc_cq(): they serve
 * only one of the two ways.
 *
 * What runs at the same time: any number of waiters and the poller may poll
 * one CQ. cq->lock makes polling exclusive, the handlers run outside of it, so
 * handlers of one send CQ may run side by side and out of order. They only
 * touch their own work request. Of a receive CQ, cq->busy is held while handlers
 * run. Closing waits for those who polled before.
 */
#include <linux/cpu.h>
#include <linux/interrupt.h>
#include <linux/kthread.h>
#include <linux/sched/clock.h>

#include "fabric.h"

/* Completions taken at a time; struct ib_wc is 64 bytes and on the stack. */
#define LITE_CQ_BATCH 8
/* Batches before another CQ gets its turn. */
#define LITE_CQ_TURN 16

#define LITE_SPIN_MAX_NS (50 * NSEC_PER_USEC)
#define LITE_SPIN_MIN_NS (2 * NSEC_PER_USEC)

static void lite_cq_release(struct kref *ref)
{
	kfree(container_of(ref, struct lite_cq, ref));
}

static void lite_cq_put(struct lite_cq *cq)
{
	kref_put(&cq->ref, lite_cq_release);
}

/* Any context, interrupts included. */
static void lite_cq_wake(struct lite_cq *cq)
{
	struct lite_poller *poller = cq->poller;
	unsigned long flags;

	if (test_and_set_bit(0, &cq->queued))
		return;
	kref_get(&cq->ref);
	spin_lock_irqsave(&poller->lock, flags);
	list_add_tail(&cq->ready, &poller->ready);
	spin_unlock_irqrestore(&poller->lock, flags);
	smp_mb(); /* with lite_poller_unwatch(): it is there, or they are */
	if (!atomic_read(&poller->watchers))
		wake_up_process(poller->task);
}

static void lite_cq_event(struct ib_cq *ib, void *context)
{
	lite_cq_wake(context);
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
 * Context: process; the handlers do not sleep.
 * Return: completions handled; 0 also when somebody else is polling.
 */
int lite_cq_poll(struct lite_cq *cq)
{
	struct ib_wc wc[LITE_CQ_BATCH];
	int i, n;

	if (cq->always && test_and_set_bit_lock(0, &cq->busy))
		return 0;
	atomic_inc(&cq->users);
	n = lite_cq_take(cq, wc);
	for (i = 0; i < n; i++)
		wc[i].wr_cqe->done(cq->ib, &wc[i]);
	if (cq->always)
		clear_bit_unlock(0, &cq->busy);
	if (atomic_dec_and_test(&cq->users))
		wake_up_var(&cq->users);
	return max(n, 0);
}

/*
 * Ask for an interrupt with the next completion; true when there may be some
 * already. Under the lock because the device's CQ goes away in close.
 */
static bool lite_cq_notify(struct lite_cq *cq)
{
	bool missed = false;

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
 * lite_cq_heed - have the poller bring completions that nobody waits for
 * @cq: queue; lite_cq_unheed() is to follow
 *
 * Before posting. As long as there is a sleeper, the queue is armed, or is about
 * to be, or the poller has it: so only the first one has to.
 *
 * Context: process.
 */
void lite_cq_heed(struct lite_cq *cq)
{
	if (atomic_inc_return(&cq->sleepers) == 1)
		lite_cq_arm(cq);
}

/**
 * lite_cq_unheed - the counterpart of lite_cq_heed()
 * @cq: queue
 *
 * Context: any.
 */
void lite_cq_unheed(struct lite_cq *cq)
{
	atomic_dec(&cq->sleepers);
}

/* Serve one CQ until it is empty, or has had its turn: then true. */
static bool lite_poller_serve(struct lite_poller *poller, struct lite_cq *cq)
{
	u64 deadline = 0;
	int turns = 0;
	bool found = false;

	for (;;) {
		if (lite_cq_poll(cq)) {
			found = deadline != 0;
			deadline = 0;
			if (++turns >= LITE_CQ_TURN)
				return true;
			continue;
		}
		if (!cq->always)
			break;
		if (!deadline)
			deadline = local_clock() + poller->spin_ns;
		if (local_clock() >= deadline || need_resched() ||
		    atomic_read(&poller->watchers) ||
		    !list_empty_careful(&poller->ready))
			break;
		cpu_relax();
	}
	/* Watching longer pays if it found something this time. */
	if (poller->spin_ns) {
		if (found)
			poller->spin_ns = min_t(u64, poller->spin_ns * 2,
						LITE_SPIN_MAX_NS);
		else
			poller->spin_ns = max_t(u64, poller->spin_ns / 2,
						LITE_SPIN_MIN_NS);
	}
	if (!cq->always && !atomic_read(&cq->sleepers))
		return false;
	return lite_cq_notify(cq);
}

static struct lite_cq *lite_poller_pop(struct lite_poller *poller)
{
	struct lite_cq *cq;

	spin_lock_irq(&poller->lock);
	cq = list_first_entry_or_null(&poller->ready, struct lite_cq, ready);
	if (cq) {
		list_del(&cq->ready);
		/* Events from here on queue it again. */
		clear_bit(0, &cq->queued);
	}
	spin_unlock_irq(&poller->lock);
	return cq;
}

/**
 * lite_poller_watch - do the poller's work for a while
 * @poller: it
 *
 * From here to lite_poller_unwatch() events do not wake the poller's thread: the
 * caller calls lite_poller_step() all the time, and leaves off before it gives
 * the processor away.
 *
 * Context: process.
 */
void lite_poller_watch(struct lite_poller *poller)
{
	atomic_inc(&poller->watchers);
}

/**
 * lite_poller_unwatch - the counterpart of lite_poller_watch()
 * @poller: it
 *
 * Context: process.
 */
void lite_poller_unwatch(struct lite_poller *poller)
{
	/* A full barrier: with lite_cq_wake(). */
	if (atomic_dec_and_test(&poller->watchers) &&
	    !list_empty_careful(&poller->ready))
		wake_up_process(poller->task);
}

/**
 * lite_poller_step - serve one CQ, if one is ready
 * @poller: watched by the caller
 *
 * Context: process, where handlers may run: nothing is locked. Does not sleep.
 */
void lite_poller_step(struct lite_poller *poller)
{
	struct lite_cq *cq;
	int turns = 0;

	if (list_empty_careful(&poller->ready))
		return;
	cq = lite_poller_pop(poller);
	if (!cq)
		return;
	while (lite_cq_poll(cq)) {
		if (++turns >= LITE_CQ_TURN)
			break;
	}
	if (turns >= LITE_CQ_TURN ||
	    ((cq->always || atomic_read(&cq->sleepers)) && lite_cq_notify(cq)))
		lite_cq_wake(cq);
	lite_cq_put(cq);
}

static int lite_poller_thread(void *arg)
{
	struct lite_poller *poller = arg;
	struct lite_cq *cq;

	while (!kthread_should_stop()) {
		cq = lite_poller_pop(poller);
		if (cq) {
			if (lite_poller_serve(poller, cq))
				lite_cq_wake(cq);
			lite_cq_put(cq);
			cond_resched();
			continue;
		}
		set_current_state(TASK_IDLE);
		if (list_empty_careful(&poller->ready) &&
		    !kthread_should_stop())
			schedule();
		__set_current_state(TASK_RUNNING);
	}
	/* CQs are destroyed before the poller stops; drop what they left. */
	while ((cq = lite_poller_pop(poller)))
		lite_cq_put(cq);
	return 0;
}

/**
 * lite_poller_start - start the thread that serves CQs
 * @poller: to start
 * @name: for ps(1)
 *
 * Context: may sleep.
 * Return: 0 or a negative errno.
 */
int lite_poller_start(struct lite_poller *poller, const char *name)
{
	struct task_struct *task;

	spin_lock_init(&poller->lock);
	INIT_LIST_HEAD(&poller->ready);
	atomic_set(&poller->watchers, 0);
	poller->spin_ns = num_online_cpus() > 1 ? LITE_SPIN_MIN_NS : 0;
	task = kthread_create(lite_poller_thread, poller, "lite-poll/%s", name);
	if (IS_ERR(task))
		return PTR_ERR(task);
	poller->task = task;
	wake_up_process(task);
	return 0;
}

/**
 * lite_poller_stop - stop the thread
 * @poller: all its CQs have been destroyed
 *
 * Context: may sleep.
 */
void lite_poller_stop(struct lite_poller *poller)
{
	kthread_stop(poller->task);
	poller->task = NULL;
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

static void lite_cq_barrier_work(struct work_struct *work)
{
	struct tasklet_struct t;

	tasklet_setup(&t, lite_cq_barrier_tasklet);
	tasklet_schedule(&t);
	tasklet_kill(&t); /* waits for it, and so for those before it */
}

/**
 * lite_cq_barrier - wait until completion events under way have been delivered
 * @wq: with threads for each CPU
 *
 * Soft-RoCE on 6.1 delivers them from a tasklet of the CQ that it does not wait
 * for when the CQ is destroyed. Tasklets of a CPU run in order: one of ours,
 * scheduled behind it, waits for it.
 *
 * Context: may sleep; nothing completes on the CQs in question any more.
 */
void lite_cq_barrier(struct workqueue_struct *wq)
{
	struct work_struct work;
	int cpu;

	INIT_WORK_ONSTACK(&work, lite_cq_barrier_work);
	cpus_read_lock();
	for_each_online_cpu(cpu) {
		queue_work_on(cpu, wq, &work);
		flush_work(&work);
	}
	cpus_read_unlock();
	destroy_work_on_stack(&work);
}

/**
 * lite_cq_close - let no completion handler run from now on
 * @cq: queue
 *
 * Context: may sleep; waits for handlers that are running.
 */
void lite_cq_close(struct lite_cq *cq)
{
	spin_lock(&cq->lock);
	cq->closed = true;
	spin_unlock(&cq->lock);
	wait_var_event(&cq->users, !atomic_read(&cq->users));
}

/**
 * lite_cq_destroy - give back a completion queue
 * @cq: no QP uses it any more; closed here if it was not
 *
 * Context: may sleep.
 */
void lite_cq_destroy(struct lite_cq *cq)
{
	lite_cq_close(cq);
	ib_destroy_cq(cq->ib);
	lite_cq_put(cq);
}
