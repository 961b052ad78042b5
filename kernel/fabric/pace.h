/* SPDX-License-Identifier: GPL-2.0 */
/*
 * How long to wait awake before going to sleep.
 *
 * Sleeping and being woken costs a few microseconds, so short waits are done awake. For longer ones
 * either may be quicker: a waiter that is awake reacts at once, but may keep the processor from the
 * thread that brings the completion. So one wait in 16 is timed, one in 128 is done the other way,
 * and waiters sleep if that was clearly quicker lately. Medians are used because a few waits take
 * very long either way. Waits too long to spend a processor on are done asleep.
 *
 * Updates are not locked; some may be lost.
 */
#ifndef _LITE_FABRIC_PACE_H
#define _LITE_FABRIC_PACE_H

#include <linux/sched/clock.h>

#include "core/median.h"

/* Shorter waits are always awake. */
#define LITE_PACE_QUICK_NS (30 * NSEC_PER_USEC)
/* Minimum and maximum time to wait awake: longer waits are not worth a processor. */
#define LITE_PACE_MIN_NS (10 * NSEC_PER_USEC)
#define LITE_PACE_MAX_NS (2 * NSEC_PER_MSEC)
/* One wait in this many is timed. */
#define LITE_PACE_SAMPLE 16
/* One wait in this many is done the other way; a multiple of LITE_PACE_SAMPLE. */
#define LITE_PACE_TRY (8 * LITE_PACE_SAMPLE)

/* How long waits of a kind take. Zeroed at first: waits are assumed to be quick. */
struct lite_pace {
	u64 awake_ns;  /* median of waits awake */
	u64 asleep_ns; /* median of waits asleep */
	u32 count;     /* number of waits */
};

struct lite_pace_wait {
	u64 awake_ns; /* time to wait awake; 0: sleep at once */
	u64 begun;    /* local_clock() if it is timed; 0: it is not, or not any more */
};

/*
 * @crowded: other threads sleep in waits of this kind. A waiter that stays awake keeps the
 * processor from them, which they need to post their next operations. So it sleeps, untimed, unless
 * waits are quick.
 */
static inline void lite_pace_begin(struct lite_pace *pace, struct lite_pace_wait *wait,
				   bool crowded)
{
	u64 awake_ns = READ_ONCE(pace->awake_ns);
	u32 count = READ_ONCE(pace->count) + 1;
	bool quick = awake_ns <= LITE_PACE_QUICK_NS;
	bool awake = quick ||
		     (awake_ns <= LITE_PACE_MAX_NS &&
		      awake_ns - awake_ns / 8 <= READ_ONCE(pace->asleep_ns));

	wait->begun = 0;
	if (unlikely(crowded && !quick)) {
		wait->awake_ns = 0;
		return;
	}
	WRITE_ONCE(pace->count, count);
	if (unlikely(!(count % LITE_PACE_SAMPLE))) {
		if (!(count % LITE_PACE_TRY) && !quick)
			awake = !awake;
		wait->begun = local_clock();
		wait->awake_ns = awake ? LITE_PACE_MAX_NS : 0;
	} else {
		wait->awake_ns = awake ? clamp_t(u64, 4 * awake_ns, LITE_PACE_MIN_NS,
						 LITE_PACE_MAX_NS) : 0;
	}
}

static inline void lite_pace_end(struct lite_pace *pace, const struct lite_pace_wait *wait)
{
	u64 *median = wait->awake_ns ? &pace->awake_ns : &pace->asleep_ns;
	u64 took;

	if (likely(!wait->begun))
		return;
	/* The clocks of CPUs may differ, so this may be negative. */
	took = min_t(u64, local_clock() - wait->begun, 2 * LITE_PACE_MAX_NS);
	/* Limit the first sample: an outlier would distort the median for long. */
	if (!READ_ONCE(*median))
		took = min_t(u64, took, 2 * LITE_PACE_QUICK_NS);
	WRITE_ONCE(*median, lite_median_next(READ_ONCE(*median), took));
}

#endif /* _LITE_FABRIC_PACE_H */
