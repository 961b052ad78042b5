/* SPDX-License-Identifier: GPL-2.0 */
/* Memory that a node gives to LMRs, limited per uid. limit.c */
#ifndef _LITE_LIMIT_H
#define _LITE_LIMIT_H

#include <linux/mutex.h>
#include <linux/types.h>
#include <linux/xarray.h>

struct lite_stats;

/* Share of an entry in tree nodes or hash buckets. */
#define LITE_INDEX_COST 64

/**
 * struct lite_limit - limits on memory for LMRs and its metadata
 * @lock: protects @used, @lost and @uids
 * @all: limit for all uids together, bytes
 * @each: limit for each uid but root, bytes
 * @used: charged bytes
 * @lost: quarantined bytes, which count against @all for good
 * @uids: charged bytes of each uid that has any, as values
 * @stats: of the node
 */
struct lite_limit {
	struct mutex lock;
	u64 all;
	u64 each;
	u64 used;
	u64 lost;
	struct xarray uids;
	struct lite_stats __percpu *stats;
};

void lite_limit_init(struct lite_limit *limit, u64 all, u64 each,
		     struct lite_stats __percpu *stats);
void lite_limit_exit(struct lite_limit *limit);
int lite_limit_room(struct lite_limit *limit, u32 uid, u64 bytes);
int lite_limit_take(struct lite_limit *limit, u32 uid, u64 bytes);
void lite_limit_lose(struct lite_limit *limit, u64 bytes);
void lite_limit_give(struct lite_limit *limit, u32 uid, u64 bytes);
void *lite_limit_alloc(struct lite_limit *limit, u32 uid, size_t size,
		       u64 bytes);
void lite_limit_free(struct lite_limit *limit, u32 uid, const void *p,
		     u64 bytes);

#endif /* _LITE_LIMIT_H */
