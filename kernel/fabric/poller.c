// SPDX-License-Identifier: GPL-2.0
/*
 * The thread that serves completion queues, and the waiters that do its work.
 *
 * Normal operation: an event puts its CQ on the ready list (cq.c). A thread that waits for a peer's
 * message takes the CQ from there and runs the handlers itself, one of which ends its wait
 * (lite_poller_await()). It watches the list awake while that is worth it, then sleeps until an
 * event wakes it; so no other thread has to be woken. Without waiters the event wakes the poller's
 * thread.
 *
 * Recovery: a waiter, woken or awake, may not get a processor soon. So an event that relies on one
 * also sets a timer, which wakes the poller's thread if the list is not empty a moment later.
 *
 * A waiter that leaves while the list is not empty wakes another waiter or the poller's thread.
 */
#include <linux/kthread.h>
#include <linux/sched/clock.h>
#include <linux/sched/signal.h>

#include "fabric.h"

/* Batches before another CQ gets its turn. */
#define LITE_POLLER_STEP 4

/* Waiters that an event looks at to find one that sleeps. */
#define LITE_HAND_LOOKS 4

/* Jiffies until the poller's thread takes over: at least one whole jiffy. */
#define LITE_GUARD_DELAY 2

static bool lite_poller_empty(struct lite_poller *poller)
{
	return list_empty_careful(&poller->ready);
}

/*
 * Wake a waiter to take the completions of an event; with @sleepers, only if that counts a single
 * one. A waiter in the queue may be awake already, but without a processor: it looks for work when
 * it runs. There may be any number of these, so only a few are looked at, and taken out of the
 * queue. Any context. Return: was one woken?
 */
bool lite_poller_hand(wait_queue_head_t *wait, const atomic_t *sleepers)
{
	struct wait_queue_entry *first;
	unsigned long flags;
	bool handed = false;
	int looks = 0;

	spin_lock_irqsave(&wait->lock, flags);
	if (sleepers && atomic_read(sleepers) != 1)
		looks = LITE_HAND_LOOKS;
	/* Waiters enter and leave the queue under this lock. */
	for (; looks < LITE_HAND_LOOKS && !handed && waitqueue_active(wait); looks++) {
		first = list_first_entry(&wait->head, struct wait_queue_entry, entry);
		handed = first->func(first, TASK_NORMAL, 0, NULL);
		if (!handed)
			list_del_init_careful(&first->entry);
	}
	spin_unlock_irqrestore(&wait->lock, flags);
	return handed;
}

/* Let events wake the caller, before earlier sleepers: it is more likely to get a processor. */
static void lite_poller_sleep(struct lite_poller *poller, struct wait_queue_entry *wait,
			      unsigned int state)
{
	unsigned long flags;

	spin_lock_irqsave(&poller->asleep.lock, flags);
	__add_wait_queue_exclusive(&poller->asleep, wait);
	set_current_state(state);
	spin_unlock_irqrestore(&poller->asleep.lock, flags);
}

/* Make sure that a thread looks at the ready list. */
static void lite_poller_rouse(struct lite_poller *poller)
{
	if (!atomic_read(&poller->watchers) && !lite_poller_hand(&poller->asleep, NULL)) {
		wake_up_process(poller->task);
		return;
	}
	if (!timer_pending(&poller->guard))
		mod_timer(&poller->guard, jiffies + LITE_GUARD_DELAY);
}

static void lite_poller_guard(struct timer_list *timer)
{
	struct lite_poller *poller = from_timer(poller, timer, guard);

	/* Pairs with lite_cq_wake(): either that sets the timer anew, or its CQ is seen here. */
	smp_mb();
	if (!lite_poller_empty(poller))
		wake_up_process(poller->task);
}

/* Have the poller, or a waiter that does its work, poll a CQ. Any context, also interrupts. */
void lite_cq_wake(struct lite_cq *cq)
{
	struct lite_poller *poller = cq->poller;
	unsigned long flags;
	bool added;

	spin_lock_irqsave(&poller->lock, flags);
	added = !READ_ONCE(cq->closed) && list_empty(&cq->ready);
	if (added)
		list_add_tail(&cq->ready, &poller->ready);
	spin_unlock_irqrestore(&poller->lock, flags);
	if (!added)
		return;
	smp_mb(); /* pairs with lite_poller_unwatch(), _await() and _guard() */
	lite_poller_rouse(poller);
}

/*
 * Serve one CQ, if one is ready. Preemption is off for two reasons: a CQ that is neither listed nor
 * armed is served by this thread alone, which might not get the processor back soon; and
 * lite_cq_quiesce() waits for this thread. Return: false: no completions were handled.
 */
static bool lite_poller_step(struct lite_poller *poller)
{
	struct lite_cq *cq;
	int turns = 0;

	if (lite_poller_empty(poller))
		return false;
	preempt_disable();
	spin_lock_irq(&poller->lock);
	cq = list_first_entry_or_null(&poller->ready, struct lite_cq, ready);
	/* Events from here on list it again. */
	if (cq)
		list_del_init(&cq->ready);
	spin_unlock_irq(&poller->lock);
	if (cq) {
		while (turns < LITE_POLLER_STEP && lite_cq_poll(cq))
			turns++;
		if (turns == LITE_POLLER_STEP ||
		    ((cq->always || atomic_read(&cq->sleepers) ||
		      atomic_read(&poller->attending)) &&
		     lite_cq_notify(cq)))
			lite_cq_wake(cq);
	}
	preempt_enable();
	return turns > 0;
}

/* From here on events wake no thread, because the caller keeps looking at the list. */
static void lite_poller_watch(struct lite_poller *poller)
{
	atomic_inc(&poller->watchers);
	smp_mb__after_atomic(); /* with lite_poller_rouse() */
}

/* Must be called before the caller gives up the processor. */
static void lite_poller_unwatch(struct lite_poller *poller)
{
	/* A full barrier; pairs with lite_cq_wake(). */
	if (atomic_dec_and_test(&poller->watchers) && !lite_poller_empty(poller))
		lite_poller_rouse(poller);
}

/* Other threads have to serve the list while this one is scheduled out. */
static void lite_poller_resched(struct lite_poller *poller)
{
	if (likely(!need_resched()))
		return;
	lite_poller_unwatch(poller);
	cond_resched();
	lite_poller_watch(poller);
}

/*
 * Do the poller's work until @done or a signal: awake until local_clock() is @awake_end or, if 0,
 * until the list is empty or jiffies is @end. Return: false: another thread has what was ready.
 */
static bool lite_poller_work(struct lite_poller *poller, struct completion *done,
			     unsigned int state, u64 awake_end, unsigned long end)
{
	bool got = true;

	lite_poller_watch(poller);
	while (!completion_done(done)) {
		if (awake_end)
			lite_poller_receive(poller);
		else if (!got || lite_poller_empty(poller))
			break;
		got = lite_poller_step(poller);
		if (awake_end ? local_clock() >= awake_end : time_after_eq(jiffies, end))
			break;
		if (signal_pending_state(state, current))
			break;
		lite_poller_resched(poller);
	}
	lite_poller_unwatch(poller);
	return got;
}

/*
 * Wait for @done, which is not consumed, for at most @timeout jiffies, and do the poller's work
 * meanwhile: awake for @awake_ns, then asleep in @state (TASK_UNINTERRUPTIBLE, TASK_KILLABLE or
 * TASK_INTERRUPTIBLE). May sleep, and runs handlers: no lock may be held. Return: the jiffies left,
 * at least 1, if @done was completed; 0: timed out; -ERESTARTSYS: a signal.
 */
long lite_poller_await(struct lite_poller *poller, struct completion *done, u64 awake_ns,
		       unsigned int state, long timeout)
{
	unsigned long end = jiffies + timeout, now;
	DECLARE_SWAITQUEUE(ended);
	DEFINE_WAIT(wait);
	bool got = true;
	long ret;

	if (awake_ns)
		lite_poller_work(poller, done, state, local_clock() + awake_ns, 0);
	if (completion_done(done))
		return max(timeout, 1L);
	for (;;) {
		/* Woken by complete(@done) or by an event. */
		ret = prepare_to_swait_event(&done->wait, &ended, state);
		lite_poller_sleep(poller, &wait, state);
		now = jiffies;
		timeout = time_before(now, end) ? end - now : 0;
		if (completion_done(done))
			ret = max(timeout, 1L);
		if (ret || !timeout)
			break;
		if (!got) {
			/* Other threads are serving the list, or get no processor for it. */
			wake_up_process(poller->task);
			schedule_timeout(1);
		} else if (lite_poller_empty(poller)) {
			schedule_timeout(timeout);
		}
		finish_wait(&poller->asleep, &wait);
		finish_swait(&done->wait, &ended);
		got = lite_poller_work(poller, done, state, 0, end);
	}
	finish_wait(&poller->asleep, &wait);
	finish_swait(&done->wait, &ended);
	/* An event may have woken this thread to serve the list. */
	if (!lite_poller_empty(poller))
		lite_poller_rouse(poller);
	return ret;
}

static int lite_poller_thread(void *arg)
{
	struct lite_poller *poller = arg;

	while (!kthread_should_stop()) {
		while (lite_poller_step(poller))
			cond_resched();
		set_current_state(TASK_IDLE);
		if (lite_poller_empty(poller) && !kthread_should_stop())
			schedule();
		__set_current_state(TASK_RUNNING);
		/* The list may hold a CQ that another thread is polling. */
		cond_resched();
	}
	return 0;
}

/* Start the thread; @name is for ps(1). May sleep. Return: 0 or -errno. */
int lite_poller_start(struct lite_poller *poller, const char *name)
{
	spin_lock_init(&poller->lock);
	INIT_LIST_HEAD(&poller->ready);
	atomic_set(&poller->watchers, 0);
	init_waitqueue_head(&poller->asleep);
	timer_setup(&poller->guard, lite_poller_guard, 0);
	poller->task = kthread_run(lite_poller_thread, poller, "lite-poll/%s", name);
	return PTR_ERR_OR_ZERO(poller->task);
}

/* Stop the thread, if it was started; all its CQs have been destroyed. May sleep. */
void lite_poller_stop(struct lite_poller *poller)
{
	if (IS_ERR_OR_NULL(poller->task))
		return;
	del_timer_sync(&poller->guard);
	kthread_stop(poller->task);
}
