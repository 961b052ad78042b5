/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A running median in one number. Each figure above the median raises it by a step, and each one
 * below lowers it by a step, so it settles where there are as many above as below (stochastic
 * approximation: Robbins and Monro, 1951). Unlike an average, it ignores the few very long times of
 * a busy machine.
 */
#ifndef _LITE_CORE_MEDIAN_H
#define _LITE_CORE_MEDIAN_H

#include "types.h"

/* A step is the median divided by this, plus one. */
#define LITE_MEDIAN_STEP 32
/* It is this many times as long for a figure above twice or below half of the median. */
#define LITE_MEDIAN_FAR 4

/* The median, 0 at first, after one more figure, which is at most U64_MAX / 2. */
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

#endif /* _LITE_CORE_MEDIAN_H */
