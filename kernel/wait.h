/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Waiting for what may take as long as it likes, until nobody wants it any more.
 *
 * A thread of a process waits until it is killed. A worker of io_uring works for
 * a command, which can be cancelled: then the worker is sent a notification
 * (TIF_NOTIFY_SIGNAL) which wakes only those who sleep interruptibly, and which
 * stays until the worker is done with the command. No handler of a signal ever
 * runs there; but one that stops the process ends the wait, too.
 */
#ifndef _LITE_WAIT_H
#define _LITE_WAIT_H

#include <linux/completion.h>
#include <linux/jiffies.h>
#include <linux/sched/signal.h>
#include <linux/timekeeping.h>
#include <uapi/lite.h>

/*
 * For how many jiffies from now to wait so that @ms are over for sure. Of the
 * present jiffy a part is over; and a virtual machine that was kept from its
 * processors has not counted them all yet: then the coarse clock, which is
 * advanced together with jiffies, is late as well. To be called before jiffies
 * are read.
 */
static inline unsigned long lite_ms_to_jiffies(u32 ms)
{
	u64 counted = ktime_get_coarse_ns();

	return nsecs_to_jiffies(ktime_get_ns() - counted) +
	       msecs_to_jiffies(ms) + 1;
}

/* Is that a time-out as <uapi/lite.h> has them? */
static inline bool lite_timeout_ok(s32 ms)
{
	return ms >= LITE_TIMEOUT_DEFAULT && ms <= LITE_TIMEOUT_MAX;
}

/*
 * How many jiffies from now a time-out lasts. @standard: what LITE_TIMEOUT_DEFAULT
 * stands for. LITE_FOREVER is MAX_JIFFY_OFFSET, which may be added to jiffies.
 */
static inline unsigned long lite_timeout_jiffies(s32 ms, s32 standard)
{
	if (ms == LITE_TIMEOUT_DEFAULT)
		ms = standard;
	return ms == LITE_FOREVER ? MAX_JIFFY_OFFSET : lite_ms_to_jiffies(ms);
}

/*
 * A time-out after which something is given up that cannot be had back is waited
 * for in so many parts. If the machine is stopped for a while, or its host has
 * no time for it, only one part of it is over afterwards.
 */
#define LITE_TIMEOUT_PARTS 4

/* Then a wait is to be interruptible, else killable. */
static inline bool lite_wait_is_command(void)
{
	return current->flags & PF_IO_WORKER;
}

/* Does nobody want any more what the caller is at? */
static inline bool lite_given_up(void)
{
	return lite_wait_is_command() ? signal_pending(current) :
					fatal_signal_pending(current);
}

static inline unsigned int lite_wait_state(void)
{
	return lite_wait_is_command() ? TASK_INTERRUPTIBLE : TASK_KILLABLE;
}

/* As wait_for_completion_killable_timeout(). */
static inline long lite_wait_done_timeout(struct completion *done,
					  unsigned long timeout)
{
	if (lite_wait_is_command())
		return wait_for_completion_interruptible_timeout(done, timeout);
	return wait_for_completion_killable_timeout(done, timeout);
}

#endif /* _LITE_WAIT_H */
