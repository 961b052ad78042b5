/* SPDX-License-Identifier: GPL-2.0 */
/*
 * How long to wait awake before going to sleep.
 *
 * To sleep and to be woken costs a few microseconds. What takes about as long is
 * waited for awake. What takes much longer may be quicker either way: awake, one
 * is there at once; but on a machine with few processors, or a busy one, one keeps
 * from them those who bring it. So both are tried: one wait in sixteen is timed
 * awake, and one asleep, and the others sleep if that has been clearly quicker
 * lately. What takes very long is slept for.
 *
 * What several threads write at the same time may be lost.
 */
#ifndef _LITE_FABRIC_PACE_H
#define _LITE_FABRIC_PACE_H

#include <linux/sched/clock.h>

/* What is quicker is always waited for awake. */
#define LITE_PACE_QUICK_NS (30 * NSEC_PER_USEC)
/* What takes longer is not worth a processor. */
#define LITE_PACE_WORTH_NS (700 * NSEC_PER_USEC)
/* The least that is waited awake for what is quick. */
#define LITE_PACE_MIN_NS (10 * NSEC_PER_USEC)
/* And the most for anything. */
#define LITE_PACE_MAX_NS (2 * NSEC_PER_MSEC)
/* One wait in so many is timed awake. */
#define LITE_PACE_SAMPLE 16

/**
 * struct lite_pace - how long waits of a kind take
 * @awake_ns: lately, awake
 * @asleep_ns: lately, asleep
 * @count: of waits
 */
struct lite_pace {
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
static inline void lite_pace_init(struct lite_pace *pace)
{
	pace->awake_ns = LITE_PACE_MIN_NS;
	pace->asleep_ns = 0;
	pace->count = 0;
}

static inline void lite_pace_begin(struct lite_pace *pace,
				   struct lite_pace_wait *wait)
{
	u64 awake = READ_ONCE(pace->awake_ns);
	u32 count = READ_ONCE(pace->count) + 1;

	WRITE_ONCE(pace->count, count);
	wait->begun = 0;
	wait->awake_ns = 0;
	if (unlikely(!(count % LITE_PACE_SAMPLE))) {
		wait->begun = local_clock();
		wait->awake_ns = LITE_PACE_MAX_NS;
	} else if (awake <= LITE_PACE_QUICK_NS) {
		wait->awake_ns = max_t(u64, 4 * awake, LITE_PACE_MIN_NS);
	} else if (!(count % (LITE_PACE_SAMPLE / 2))) {
		wait->begun = local_clock();
	} else if (awake <= LITE_PACE_WORTH_NS &&
		   awake - awake / 8 <= READ_ONCE(pace->asleep_ns)) {
		wait->awake_ns = min_t(u64, 4 * awake, LITE_PACE_MAX_NS);
	}
}

static inline void lite_pace_end(struct lite_pace *pace,
				 const struct lite_pace_wait *wait)
{
	u64 *average = wait->awake_ns ? &pace->awake_ns : &pace->asleep_ns;
	u64 lately, took;

	if (likely(!wait->begun))
		return;
	lately = READ_ONCE(*average);
	/* One alone does not count for ever; and clocks of CPUs may differ. */
	took = min_t(u64, local_clock() - wait->begun, 2 * LITE_PACE_MAX_NS);
	/* The first one counts in full. */
	WRITE_ONCE(*average, lately ? lately - lately / 8 + took / 8 : took);
}

#endif /* _LITE_FABRIC_PACE_H */
