/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The median of what is measured again and again, kept up with in one number.
 *
 * Where an average follows the few that take very long, as on a machine that has
 * something else to do at times, this one takes a step up for each figure above
 * it and a step down for each below, and so stays where there are as many of
 * either (stochastic approximation: Robbins and Monro, 1951).
 */
#ifndef _LITE_CORE_MEDIAN_H
#define _LITE_CORE_MEDIAN_H

#include "types.h"

/* A step is such a part of it, plus one, */
#define LITE_MEDIAN_STEP 32
/* and so many times as long towards what is far away: twice, or half, as much. */
#define LITE_MEDIAN_FAR 4

/**
 * lite_median_next - a median, with one more figure
 * @median: as it was; 0 if there has been no figure yet
 * @figure: the new one, at most U64_MAX / 2
 *
 * Return: as it is now.
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

#endif /* _LITE_CORE_MEDIAN_H */
