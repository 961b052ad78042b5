/* SPDX-License-Identifier: GPL-2.0 */
/* Times waits, to do them awake or asleep: core/pace.h. */
#ifndef _LITE_FABRIC_PACING_H
#define _LITE_FABRIC_PACING_H

#include <linux/sched/clock.h>

#include "core/pace.h"

static inline void lite_pace_begin(struct lite_pace *pace, struct lite_pace_wait *wait,
				   bool crowded)
{
	wait->begun = lite_pace_plan(pace, wait, crowded) ? local_clock() : 0;
}

static inline void lite_pace_end(struct lite_pace *pace, const struct lite_pace_wait *wait)
{
	if (!wait->begun)
		return;
	/* The clocks of CPUs may differ: a negative time, as u64, counts as a very long one. */
	lite_pace_learn(pace, wait, local_clock() - wait->begun);
}

#endif /* _LITE_FABRIC_PACING_H */
