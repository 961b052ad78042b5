/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Unbounded waits that end when the result is no longer wanted. A thread of a process waits until
 * it is killed. An io_uring worker waits until its command is cancelled: then TIF_NOTIFY_SIGNAL is
 * set, until the command is done, and wakes interruptible sleepers only. A signal that stops the
 * process ends that wait, too.
 */
#ifndef _LITE_WAIT_H
#define _LITE_WAIT_H

#include <linux/atomic.h>
#include <linux/completion.h>
#include <linux/jiffies.h>
#include <linux/sched.h>
#include <linux/sched/signal.h>
#include <linux/timekeeping.h>
#include <linux/wait.h>
#include <uapi/lite.h>

/*
 * Jiffies from now that last at least @ms: part of the present jiffy is over, and in a virtual
 * machine that was not scheduled, jiffies lag as the coarse clock does. Read jiffies after this.
 */
static inline unsigned long lite_ms_to_jiffies(u32 ms)
{
	u64 counted = ktime_get_coarse_ns();

	return nsecs_to_jiffies(ktime_get_ns() - counted) + msecs_to_jiffies(ms) + 1;
}

/* A stamp in jiffies, moved by @by, but not into the future. */
static inline unsigned long lite_later(unsigned long then, unsigned long by)
{
	unsigned long now = jiffies;

	return time_after(then + by, now) ? now : then + by;
}

static inline unsigned long lite_latest(unsigned long a, unsigned long b)
{
	return time_after(b, a) ? b : a;
}

static inline bool lite_timeout_ok(s32 ms)
{
	return ms >= LITE_TIMEOUT_DEFAULT && ms <= LITE_TIMEOUT_MAX;
}

/*
 * Jiffies from now that a time-out lasts. @standard replaces LITE_TIMEOUT_DEFAULT. LITE_FOREVER
 * becomes MAX_JIFFY_OFFSET, which may be added to jiffies.
 */
static inline unsigned long lite_timeout_jiffies(s32 ms, s32 standard)
{
	if (ms == LITE_TIMEOUT_DEFAULT)
		ms = standard;
	return ms == LITE_FOREVER ? MAX_JIFFY_OFFSET : lite_ms_to_jiffies(ms);
}

/* Parts of an irreversible time-out: only one expires while the (virtual) machine does not run. */
#define LITE_TIMEOUT_PARTS 4

/*
 * Is @task an io_uring worker with a command? A signal then means that the command is cancelled.
 * The SQPOLL thread has the flag as well, but is no worker: any completion is a signal to it.
 */
static inline bool lite_is_command(const struct task_struct *task)
{
	return task->flags & PF_IO_WORKER && task->worker_private;
}

/* Waits for commands are interruptible, all others are killable. */
static inline bool lite_wait_is_command(void)
{
	return lite_is_command(current);
}

/* Is the result of what a task does, or waits for, no longer wanted? */
static inline bool lite_is_given_up(struct task_struct *task)
{
	return lite_is_command(task) ? signal_pending(task) : fatal_signal_pending(task);
}

static inline bool lite_given_up(void)
{
	return lite_is_given_up(current);
}

/* The same for this thread, or for @task, for which this thread works, if not NULL. */
static inline bool lite_given_up_for(struct task_struct *task)
{
	return lite_given_up() || (task && lite_is_given_up(task));
}

static inline unsigned int lite_wait_state(void)
{
	return lite_wait_is_command() ? TASK_INTERRUPTIBLE : TASK_KILLABLE;
}

/* As wait_event_killable_timeout(), or for commands the interruptible one. */
#define lite_wait_event_timeout(wq, condition, timeout)			\
	___wait_event(wq, ___wait_cond_timeout(condition),		\
		      lite_wait_state(), 0, timeout,			\
		      __ret = schedule_timeout(__ret))

/* Threads that wait for the same event; users may have any number of them. */
struct lite_crowd {
	wait_queue_head_t wait;
	atomic_t n;
};

static inline void lite_crowd_init(struct lite_crowd *crowd)
{
	init_waitqueue_head(&crowd->wait);
	atomic_set(&crowd->n, 0);
}

/* As lite_wait_event_timeout(); lite_crowd_wake() wakes it. */
#define lite_crowd_wait_timeout(crowd, condition, timeout)		\
({									\
	struct lite_crowd *__crowd = (crowd);				\
	long __left;							\
									\
	atomic_inc(&__crowd->n);					\
	smp_mb__after_atomic(); /* pairs with lite_crowd_wake() */	\
	__left = ___wait_event(__crowd->wait, ___wait_cond_timeout(condition), \
			       lite_wait_state(), 1, timeout,		\
			       __ret = schedule_timeout(__ret));	\
	atomic_dec(&__crowd->n);					\
	__left;								\
})

/*
 * Wake all threads after the condition has changed: a few at a time, as interrupts are off
 * meanwhile. A thread that waits again queues behind those not woken yet. May sleep.
 */
static inline void lite_crowd_wake(struct lite_crowd *crowd)
{
	const int some = 64;
	int n;

	smp_mb(); /* the condition before @n; pairs with lite_crowd_wait_timeout() */
	n = atomic_read(&crowd->n);
	do {
		wake_up_nr(&crowd->wait, some);
		cond_resched();
		n -= some;
	} while (n > 0);
}

/* Jiffies until a deadline; 0 if it has passed. */
static inline unsigned long lite_jiffies_left(unsigned long deadline)
{
	unsigned long now = jiffies;

	return time_before(now, deadline) ? deadline - now : 0;
}

/* As wait_for_completion_killable_timeout(), or for commands the interruptible one. */
static inline long lite_wait_done_timeout(struct completion *done, unsigned long timeout)
{
	if (lite_wait_is_command())
		return wait_for_completion_interruptible_timeout(done, timeout);
	return wait_for_completion_killable_timeout(done, timeout);
}

#endif /* _LITE_WAIT_H */
