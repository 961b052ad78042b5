/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Counters of a node, as sums over CPUs, so that counting costs no shared cache
 * line. Gauges must return to 0 when nothing is in use, and dma_mapped_pages to
 * what bounce pages and connections take: that shows leaks.
 */
#ifndef _LITE_STATS_H
#define _LITE_STATS_H

#include <linux/percpu.h>
#include <linux/types.h>

enum lite_stat {
	/* gauges */
	LITE_STAT_FILES,
	LITE_STAT_PEERS,
	LITE_STAT_CTXS,
	LITE_STAT_HANDLES,
	LITE_STAT_MAPPINGS,
	LITE_STAT_LMRS,
	LITE_STAT_LMR_BYTES,
	LITE_STAT_COUNTED_BYTES,
	LITE_STAT_ALLOCS,
	LITE_STAT_NAMES,
	LITE_STAT_DMA_PAGES,
	LITE_STAT_PINNED_PAGES,
	LITE_STAT_OPS_INFLIGHT,
	LITE_STAT_SLOTS_BUSY,
	LITE_STAT_CALLS_INFLIGHT,
	LITE_STAT_CONNS,
	LITE_STAT_MMAPS,
	LITE_STAT_LOCKS,
	LITE_STAT_LOCK_CLAIMS,
	/* counters */
	LITE_STAT_READS,
	LITE_STAT_WRITES,
	LITE_STAT_ATOMICS,
	LITE_STAT_READ_BYTES,
	LITE_STAT_WRITE_BYTES,
	LITE_STAT_OP_ERRORS,
	LITE_STAT_CALLS,
	LITE_STAT_CALLS_SERVED,
	LITE_STAT_REVOKES,
	LITE_STAT_FENCES,
	LITE_STAT_CONNECTS,
	LITE_STAT_REFUSED,
	LITE_STAT_MEMOPS,
	LITE_STAT_MEMOP_BYTES,
	LITE_STAT_PACKED,
	/* of functions: gauges, then counters */
	LITE_STAT_FUNCTIONS,
	LITE_STAT_RINGS,
	LITE_STAT_RING_BYTES,
	LITE_STAT_RPCS_INFLIGHT,
	LITE_STAT_REQUESTS,
	LITE_STAT_RPCS,
	LITE_STAT_RPCS_SERVED,
	LITE_STAT_RPC_CANCELS,
	LITE_STAT_LOCKS_TAKEN,
	LITE_STAT_LOCK_WAITS,
	LITE_STAT_LOCK_GRANTS,
	LITE_STAT_BULK_BYTES, /* gauge */
	/* ends of sessions, in the order of enum lite_end_cause */
	LITE_STAT_ENDS_SILENCE,
	LITE_STAT_ENDS_OP_TIMEOUT,
	LITE_STAT_ENDS_TRANSPORT,
	LITE_STAT_ENDS_REVOKE,
	LITE_STAT_ENDS_CALL,
	LITE_STAT_ENDS_MESSAGE,
	LITE_STAT_ENDS_DEVICE,
	LITE_STAT_ENDS_PEER,
	LITE_STAT_ENDS_FENCE,
	LITE_STAT_ENDS_REPLACED,
	LITE_STAT_ENDS_LEAVE,
	LITE_STAT_FLUSHES,
	LITE_STAT_FENCES_FAILED,
	LITE_STAT_QUARANTINED, /* gauge that never goes down */
	LITE_STAT_MAX,
};

struct lite_stats {
	s64 value[LITE_STAT_MAX];
};

static inline void lite_stat_add(struct lite_stats __percpu *stats,
				 enum lite_stat which, s64 n)
{
	this_cpu_add(stats->value[which], n);
}

static inline void lite_stat_inc(struct lite_stats __percpu *stats,
				 enum lite_stat which)
{
	lite_stat_add(stats, which, 1);
}

static inline void lite_stat_dec(struct lite_stats __percpu *stats,
				 enum lite_stat which)
{
	lite_stat_add(stats, which, -1);
}

/* A snapshot: exact if nothing changes meanwhile. */
static inline s64 lite_stat_sum(struct lite_stats __percpu *stats,
				enum lite_stat which)
{
	s64 sum = 0;
	int cpu;

	for_each_possible_cpu(cpu)
		sum += READ_ONCE(per_cpu_ptr(stats, cpu)->value[which]);
	return sum;
}

extern const char *const lite_stat_names[LITE_STAT_MAX];

#endif /* _LITE_STATS_H */
