/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Counters of a node, one per CPU to avoid shared cache lines. Gauges show leaks: when nothing is
 * in use they must be 0, and dma_mapped_pages what bounce pages and connections take.
 */
#ifndef _LITE_STATS_H
#define _LITE_STATS_H

#include <linux/percpu.h>
#include <linux/types.h>

enum lite_stat {
#define STAT(id, name) LITE_STAT_##id,
#include "stats_list.h"
#undef STAT
	LITE_STAT_MAX,
};

struct lite_stats {
	s64 value[LITE_STAT_MAX];
};

static inline void lite_stat_add(struct lite_stats __percpu *stats, enum lite_stat which, s64 n)
{
	this_cpu_add(stats->value[which], n);
}

static inline void lite_stat_inc(struct lite_stats __percpu *stats, enum lite_stat which)
{
	lite_stat_add(stats, which, 1);
}

static inline void lite_stat_dec(struct lite_stats __percpu *stats, enum lite_stat which)
{
	lite_stat_add(stats, which, -1);
}

/* A snapshot: exact if nothing changes meanwhile. */
static inline s64 lite_stat_sum(struct lite_stats __percpu *stats, enum lite_stat which)
{
	s64 sum = 0;
	int cpu;

	for_each_possible_cpu(cpu)
		sum += READ_ONCE(per_cpu_ptr(stats, cpu)->value[which]);
	return sum;
}

#endif /* _LITE_STATS_H */
