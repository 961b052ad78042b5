/* SPDX-License-Identifier: GPL-2.0 */
/*
 * How long to wait awake before going to sleep.
 *
 * Sleeping and being woken costs a few microseconds, so short waits are done awake. For longer ones
 * either may be quicker: a waiter that is awake reacts at once, but may keep the processor from the
 * thread that brings the completion. So now and then a wait is done the other way, and compared
 * with the one before, as two waits in a row are mostly for the same. The way that has won more of
 * these comparisons lately is the usual one. A clear win counts more: some waits awake are quick
 * while others, for which the host had no processor, take many times as long. But it counts the
 * same however clear it is, because a few waits take very long either way. Waits too long to spend
 * a processor on are done asleep.
 *
 * Updates are not locked; some may be lost.
 */
#ifndef _LITE_CORE_PACE_H
#define _LITE_CORE_PACE_H

#include "types.h"

/* Shorter waits are always awake. */
#define LITE_PACE_QUICK_NS (30 * 1000ULL)
/* Minimum and maximum time to wait awake: longer waits are not worth a processor. */
#define LITE_PACE_MIN_NS (10 * 1000ULL)
#define LITE_PACE_MAX_NS (2 * 1000 * 1000ULL)
/* Time to wait awake to find out whether waits are quick. */
#define LITE_PACE_LOOK_NS (4 * LITE_PACE_QUICK_NS)
/* What a comparison counts if one way took twice as long as the other, or more; otherwise 1. */
#define LITE_PACE_FAR 4
/* Sleeping is the usual way while it has a larger lead than this. */
#define LITE_PACE_CLEAR 8
/*
 * One wait in so many is done the other way; fewer once one way has the largest lead. These are
 * primes: if two kinds of waits alternate, the tries do not always hit the same kind.
 */
#define LITE_PACE_SURE 16
#define LITE_PACE_TRY 17
#define LITE_PACE_TRY_SURE 127

/* A step of the median is the median divided by this, plus one. */
#define LITE_MEDIAN_STEP 32
/* It is this many times as long for a figure above twice or below half of the median. */
#define LITE_MEDIAN_FAR 4

/* How waits of a kind are done. Zeroed at first. */
struct lite_pace {
	u64 awake_ns; /* median of waits awake; 0: there was none */
	u64 usual_ns; /* time that the last comparable wait took, if done the usual way; else 0 */
	s32 lead;     /* what sleeping has won less what it has lost, limited */
	u32 left;     /* waits until one is timed (if quick or crowded) or done the other way */
};

struct lite_pace_wait {
	u64 awake_ns; /* time to wait awake; 0: sleep at once */
	u64 usual_ns; /* done the other way, to be compared with this; 0: done the usual way */
	bool apart;   /* quick, or in a crowd: there is nothing to compare */
	u64 begun;    /* start, if it is timed; 0: it is not, or not any more */
};

/*
 * A running median in one number, 0 at first, after one more figure, which is at most U64_MAX / 2.
 * Each figure above the median raises it by a step, and each one below lowers it by a step, so it
 * settles where there are as many above as below (stochastic approximation: Robbins and Monro,
 * 1951). Unlike an average, it ignores the few very long times of a busy machine.
 */
static inline u64 lite_median_next(u64 median, u64 figure)
{
	u64 step = median / LITE_MEDIAN_STEP + 1;

	if (!median)
		return figure;
	if (figure > 2 * median || figure < median / 2)
		step *= LITE_MEDIAN_FAR;
	if (figure > median)
		return figure - median < step ? figure : median + step;
	return median - figure < step ? figure : median - step;
}

/*
 * Decide how to do the next wait. @crowded: other threads sleep in waits of this kind. A waiter
 * that stays awake keeps the processor from these threads, which need it to post their next
 * operations. So it sleeps, untimed, unless waits are quick. One wait in LITE_PACE_TRY_SURE finds
 * out whether they are. Return: must the wait be timed?
 */
static inline bool lite_pace_plan(struct lite_pace *pace, struct lite_pace_wait *wait, bool crowded)
{
	u64 awake_ns = READ_ONCE(pace->awake_ns);
	u64 usual_ns = READ_ONCE(pace->usual_ns);
	s32 lead = READ_ONCE(pace->lead);
	u32 left = READ_ONCE(pace->left);
	u64 most = 4 * awake_ns;
	bool asleep, sure;

	wait->usual_ns = 0;
	wait->apart = true;
	if (awake_ns && awake_ns <= LITE_PACE_QUICK_NS) {
		wait->awake_ns = most > LITE_PACE_MIN_NS ? most : LITE_PACE_MIN_NS;
		WRITE_ONCE(pace->left, left ? left - 1 : LITE_PACE_TRY - 1);
		return !left;
	}
	wait->awake_ns = 0;
	if (crowded && awake_ns) {
		WRITE_ONCE(pace->left, left ? left - 1 : LITE_PACE_TRY_SURE - 1);
		if (!left)
			wait->awake_ns = LITE_PACE_LOOK_NS;
		return !left;
	}
	wait->apart = false;
	if (left) {
		WRITE_ONCE(pace->left, left - 1);
	} else if (usual_ns) {
		sure = lead == LITE_PACE_SURE || lead == -LITE_PACE_SURE;
		WRITE_ONCE(pace->left, sure ? LITE_PACE_TRY_SURE - 1 : LITE_PACE_TRY - 1);
		wait->usual_ns = usual_ns;
	}
	WRITE_ONCE(pace->usual_ns, 0);
	asleep = lead > LITE_PACE_CLEAR;
	if (asleep != !!wait->usual_ns)
		return true;
	wait->awake_ns = most;
	if (!awake_ns)
		wait->awake_ns = LITE_PACE_LOOK_NS;
	else if (wait->usual_ns || most > LITE_PACE_MAX_NS)
		wait->awake_ns = LITE_PACE_MAX_NS;
	return true;
}

/* A timed wait has taken @took ns. */
static inline void lite_pace_learn(struct lite_pace *pace, const struct lite_pace_wait *wait,
				   u64 took)
{
	u64 median = READ_ONCE(pace->awake_ns);
	s32 lead = READ_ONCE(pace->lead);
	u64 awake = wait->awake_ns ? took : wait->usual_ns;
	u64 asleep = wait->awake_ns ? wait->usual_ns : took;

	if (wait->awake_ns) {
		/* Limit both: an outlier, above all the first figure, would last for long. */
		u64 limit = median ? 2 * LITE_PACE_MAX_NS : LITE_PACE_QUICK_NS;

		median = lite_median_next(median, took < limit ? took : limit);
		WRITE_ONCE(pace->awake_ns, median ?: 1); /* a coarse clock may say 0 */
	}
	if (wait->apart)
		return;
	if (!wait->usual_ns) {
		WRITE_ONCE(pace->usual_ns, took);
		return;
	}
	if (awake > LITE_PACE_MAX_NS || asleep < awake / 2)
		lead += LITE_PACE_FAR;
	else if (asleep < awake - awake / 8)
		lead++;
	else if (asleep < 2 * awake)
		lead--;
	else
		lead -= LITE_PACE_FAR;
	if (lead > LITE_PACE_SURE)
		lead = LITE_PACE_SURE;
	if (lead < -LITE_PACE_SURE)
		lead = -LITE_PACE_SURE;
	WRITE_ONCE(pace->lead, lead);
}

#endif /* _LITE_CORE_PACE_H */
