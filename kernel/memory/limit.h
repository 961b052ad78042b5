/* SPDX-License-Identifier: GPL-2.0 */
/* What a node gives to LMRs, of which its users have shares. limit.c */
#ifndef _LITE_LIMIT_H
#define _LITE_LIMIT_H

#include <linux/mutex.h>
#include <linux/types.h>
#include <linux/xarray.h>

struct lite_stats;

/* What an entry takes of the nodes of a tree, or the buckets of a table. */
#define LITE_INDEX_COST 64

/**
 * struct lite_limit - memory for LMRs, with what describes them
 * @lock: protects what changes
 * @all: bytes that all have together, at most
 * @each: bytes that a uid has, at most; root is not held to it
 * @used: bytes that all have
 * @lost: bytes in quarantine: of @all, for good
 * @uids: struct lite_uid_use of each uid that has any
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

#endif /* _LITE_LIMIT_H */
