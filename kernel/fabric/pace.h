/* SPDX-License-Identifier: GPL-2.0 */
/*
 * How long to wait awake before going to sleep.
 *
 * To sleep and be woken costs a few microseconds: what takes about as long is
 * waited for awake. For what takes longer either way may be quicker: a waiter that
 * is awake is there at once, but may keep the processor from who brings the
 * completion. So one wait in sixteen is timed, one in 128 is done the other way,
 * and waiters sleep if that has been clearly quicker lately. Medians, because a few
 * waits take very long either way. What takes longer than is worth a processor is
 * slept for.
 *
 * What several threads write at the same time may be lost.
 */
#ifndef _LITE_FABRIC_PACE_H
#define _LITE_FABRIC_PACE_H

#include <linux/sched/clock.h>

#include "core/median.h"

/* What is quicker is always waited for awake. */
#define LITE_PACE_QUICK_NS (30 * NSEC_PER_USEC)
/*
 * What is worth a processor: of what a device does, and of what programs do,
 * which may be work that takes its time.
 */
#define LITE_PACE_WORTH_DEVICE_NS (2 * NSEC_PER_MSEC)
#define LITE_PACE_WORTH_PROGRAM_NS (700 * NSEC_PER_USEC)
/* The least that is waited awake for what is quick. */
#define LITE_PACE_MIN_NS (10 * NSEC_PER_USEC)
/* And the most for anything. */
#define LITE_PACE_MAX_NS (2 * NSEC_PER_MSEC)
/* One wait in so many is timed, */
#define LITE_PACE_SAMPLE 16
/* and one in so many is done the other way, a multiple of them. */
#define LITE_PACE_TRY (8 * LITE_PACE_SAMPLE)

/**
 * struct lite_pace - how long waits of a kind take
 * @worth_ns: what typically takes longer is not worth a processor
 * @awake_ns: the median, awake
 * @asleep_ns: the median, asleep
 * @count: of waits
 */
struct lite_pace {
	u64 worth_ns;
	u64 awake_ns;
	u64 asleep_ns;
	u32 count;
};

/**
 * struct lite_pace_wait - a wait
 * @awake_ns: for so long awake; 0: asleep from the beginning
 * @begun: local_clock(), of those that are timed; else 0
 */
struct lite_pace_wait {
	u64 awake_ns;
	u64 begun;
};

/* At first it is taken for quick. */
static inline void lite_pace_init(struct lite_pace *pace, u64 worth_ns)
{
	pace->worth_ns = worth_ns;
	pace->awake_ns = 0;
	pace->asleep_ns = 0;
	pace->count = 0;
}

/*
 * @crowded: others sleep until the same is done. To be awake among them is quick
 * for oneself, and keeps from them the processor that they would post the next
 * with: what is not quick anyway is slept for, then, and tells nothing.
 */
static inline void lite_pace_begin(struct lite_pace *pace,
				   struct lite_pace_wait *wait, bool crowded)
{
	u64 awake_ns = READ_ONCE(pace->awake_ns);
	u32 count = READ_ONCE(pace->count) + 1;
	bool quick = awake_ns <= LITE_PACE_QUICK_NS;
	bool awake = quick ||
		     (awake_ns <= pace->worth_ns &&
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
		wait->awake_ns = awake ? clamp_t(u64, 4 * awake_ns,
						 LITE_PACE_MIN_NS,
						 LITE_PACE_MAX_NS) : 0;
	}
}

/* It has not been as it was begun, so it tells nothing. */
static inline void lite_pace_disturb(struct lite_pace_wait *wait)
{
	wait->begun = 0;
}

static inline void lite_pace_end(struct lite_pace *pace,
				 const struct lite_pace_wait *wait)
{
	u64 *median = wait->awake_ns ? &pace->awake_ns : &pace->asleep_ns;
	u64 took;

	if (likely(!wait->begun))
		return;
	/* Clocks of CPUs may differ. */
	took = min_t(u64, local_clock() - wait->begun, 2 * LITE_PACE_MAX_NS);
	/* The first one may be out of the ordinary, which is hard to get over. */
	if (!READ_ONCE(*median))
		took = min_t(u64, took, 2 * LITE_PACE_QUICK_NS);
	WRITE_ONCE(*median, lite_median_next(READ_ONCE(*median), took));
}

#endif /* _LITE_FABRIC_PACE_H */
