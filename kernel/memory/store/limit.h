/* SPDX-License-Identifier: GPL-2.0 */
/* Memory that a node gives to LMRs, limited per uid. limit.c */
#ifndef _LITE_LIMIT_H
#define _LITE_LIMIT_H

#include <linux/spinlock.h>
#include <linux/types.h>
#include <linux/xarray.h>

struct lite_stats;

/* Bytes charged for an entry's share of tree nodes or hash buckets. */
#define LITE_INDEX_COST 64

/* Limits on memory for LMRs and its metadata, bytes. */
struct lite_limit {
	spinlock_t lock;     /* protects @used, @lost and @uids; process context only */
	u64 all;             /* for all uids together */
	u64 each;            /* for each uid but root */
	u64 used;            /* charged */
	u64 lost;            /* quarantined: count against @all for good */
	struct xarray uids;  /* charged to each uid that has any, as values */
	struct lite_stats __percpu *stats;
	/*
	 * Frees @over bytes that are not in use: of @uid or, if @all_users, of all. May be NULL.
	 * Called without @lock, but under the locks of lite_limit_take()'s callers. May sleep.
	 * Return: were any freed?
	 */
	bool (*spare)(struct lite_limit *limit, u32 uid, bool all_users, u64 over);
};

void lite_limit_init(struct lite_limit *limit, u64 all, u64 each,
		     struct lite_stats __percpu *stats);
void lite_limit_exit(struct lite_limit *limit);
int lite_limit_room(struct lite_limit *limit, u32 uid, u64 bytes);
int lite_limit_take(struct lite_limit *limit, u32 uid, u64 bytes);
void lite_limit_lose(struct lite_limit *limit, u64 bytes);
void lite_limit_give(struct lite_limit *limit, u32 uid, u64 bytes);
void *lite_limit_alloc(struct lite_limit *limit, u32 uid, size_t size, u64 bytes);
void lite_limit_free(struct lite_limit *limit, u32 uid, const void *p, u64 bytes);

#endif /* _LITE_LIMIT_H */
