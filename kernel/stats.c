// SPDX-License-Identifier: GPL-2.0
#include "stats.h"

/* Part of the interface of "litectl stats": append, never rename. */
const char *const lite_stat_names[LITE_STAT_MAX] = {
	[LITE_STAT_FILES] = "files",
	[LITE_STAT_PEERS] = "peers",
	[LITE_STAT_CTXS] = "ctxs",
	[LITE_STAT_HANDLES] = "handles",
	[LITE_STAT_MAPPINGS] = "mappings",
	[LITE_STAT_LMRS] = "lmrs",
	[LITE_STAT_LMR_BYTES] = "lmr_bytes",
	[LITE_STAT_ALLOCS] = "allocs",
	[LITE_STAT_NAMES] = "names",
	[LITE_STAT_DMA_PAGES] = "dma_mapped_pages",
	[LITE_STAT_PINNED_PAGES] = "pinned_pages",
	[LITE_STAT_OPS_INFLIGHT] = "ops_inflight",
	[LITE_STAT_SLOTS_BUSY] = "slots_busy",
	[LITE_STAT_CALLS_INFLIGHT] = "calls_inflight",
	[LITE_STAT_CONNS] = "conns",
	[LITE_STAT_MMAPS] = "mmaps",
	[LITE_STAT_READS] = "reads",
	[LITE_STAT_WRITES] = "writes",
	[LITE_STAT_ATOMICS] = "atomics",
	[LITE_STAT_READ_BYTES] = "read_bytes",
	[LITE_STAT_WRITE_BYTES] = "write_bytes",
	[LITE_STAT_OP_ERRORS] = "op_errors",
	[LITE_STAT_CALLS] = "calls",
	[LITE_STAT_CALLS_SERVED] = "calls_served",
	[LITE_STAT_REVOKES] = "revokes",
	[LITE_STAT_FENCES] = "fences",
	[LITE_STAT_CONNECTS] = "connects",
	[LITE_STAT_REFUSED] = "refused",
};
