/* SPDX-License-Identifier: GPL-2.0 */
/*
 * How long to wait awake before going to sleep.
 *
 * It is the ski rental problem: to sleep and to be woken costs a few microseconds,
 * so who has waited awake for as long has lost no more than twice of what it had
 * to. What is known to take much longer is slept for at once: awake, one only keeps
 * from the processor those who bring it, on a machine with few, or where the
 * device is emulated. What is typical is learnt from one wait in so many, which is
 * awake for longer, as sleeping adds to what it is about.
 *
 * What several threads write at the same time may be lost.
 */
#ifndef _LITE_FABRIC_PACE_H
#define _LITE_FABRIC_PACE_H

#include <linux/sched/clock.h>

/* What typically takes longer is slept for. */
#define LITE_PACE_WORTH_NS (30 * NSEC_PER_USEC)
/* The least that is waited awake for what is quick. */
#define LITE_PACE_MIN_NS (10 * NSEC_PER_USEC)
/* And the most. */
#define LITE_PACE_MAX_NS (4 * LITE_PACE_WORTH_NS)
/* One wait in so many is timed. */
#define LITE_PACE_SAMPLE 16

/**
 * struct lite_pace - how long waits of a kind take
 * @typical_ns: lately
 * @count: of waits
 */
struct lite_pace {
	u64 typical_ns;
	u32 count;
};

/**
 * struct lite_pace_wait - a wait
 * @awake_ns: for so long awake
 * @begun: local_clock(), of those that are timed; else 0
 */
struct lite_pace_wait {
	u64 awake_ns;
	u64 begun;
};

/* At first it is taken for quick. */
static inline void lite_pace_init(struct lite_pace *pace)
{
	pace->typical_ns = LITE_PACE_MIN_NS;
	pace->count = 0;
}

static inline void lite_pace_begin(struct lite_pace *pace,
				   struct lite_pace_wait *wait)
{
	u64 typical = READ_ONCE(pace->typical_ns);
	u32 count = READ_ONCE(pace->count) + 1;

	WRITE_ONCE(pace->count, count);
	wait->begun = 0;
	wait->awake_ns = 0;
	if (unlikely(!(count % LITE_PACE_SAMPLE))) {
		wait->begun = local_clock();
		wait->awake_ns = LITE_PACE_MAX_NS;
	} else if (typical <= LITE_PACE_WORTH_NS) {
		wait->awake_ns = max_t(u64, 4 * typical, LITE_PACE_MIN_NS);
	}
}

static inline void lite_pace_end(struct lite_pace *pace,
				 const struct lite_pace_wait *wait)
{
	u64 typical, took;

	if (likely(!wait->begun))
		return;
	typical = READ_ONCE(pace->typical_ns);
	/* One alone does not count for ever; and clocks of CPUs may differ. */
	took = min_t(u64, local_clock() - wait->begun, 2 * LITE_PACE_MAX_NS);
	WRITE_ONCE(pace->typical_ns, typical - typical / 4 + took / 4);
}

#endif /* _LITE_FABRIC_PACE_H */
