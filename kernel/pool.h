/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Pools: what a node gives to all its users, and how much of it each uid of the initial user
 * namespace has. core/share.h divides pools, limits.rst lists them. Uid 0 (root, and clients in the
 * kernel) may use the reserve; only the pool's size limits it.
 *
 *	err = lite_pool_take(pool, uid, n, gfp);	for rare use
 *	lite_pool_give(pool, uid, n);
 *
 * A caller that takes and gives often, or with a spinlock held, keeps the uid's part:
 *	part = lite_pool_hold(pool, uid, gfp);
 *	err = lite_pool_take_part(pool, part, n);
 *	lite_pool_give_part(pool, part, n);
 *	lite_pool_drop(pool, part);
 *
 * A part exists while it is held or has units, so units may be given back by uid after the drop.
 */
#ifndef _LITE_POOL_H
#define _LITE_POOL_H

#include <linux/cred.h>
#include <linux/rbtree.h>
#include <linux/spinlock.h>

#include "core/share.h"

/* The layer that gives from a pool initialises it. */
enum lite_pool_number {
	LITE_POOL_FUNCTIONS,
	LITE_POOL_RINGS, /* bytes of rings and mirrors */
	LITE_POOL_BULK, /* bytes of long requests and replies */
	LITE_POOL_LOCKS,       /* locks that processes hold or wait for */
	LITE_POOL_LOCK_CLAIMS, /* claims that a home keeps for all nodes */
	LITE_POOL_FILE_PAGES,  /* pages that are sent or received, memory/file/ */
	LITE_POOL_HANDLES,
	LITE_POOL_CACHED_NAMES, /* memory/handle/name_cache.c */
	LITE_POOLS,
};

/* What a uid has of a pool. */
struct lite_pool_part {
	struct rb_node node; /* in the pool's tree; root's is not */
	u32 uid;
	u32 holds; /* lite_pool_hold() calls not dropped yet */
	u64 has;   /* units taken */
};

struct lite_pool {
	spinlock_t lock; /* protects the rest; innermost, process context only */
	struct lite_pool_rule rule; /* how it is divided; constant */
	u64 used; /* units that all have taken */
	u64 by_users; /* the part of @used that uid 0 does not have */
	struct lite_pool_part root; /* uid 0's part */
	struct rb_root parts; /* of other uids, by uid */
};

/* The uid of the calling thread, as pools count it. */
static inline u32 lite_current_uid(void)
{
	return from_kuid(&init_user_ns, current_euid());
}

void lite_pool_init(struct lite_pool *pool, u64 limit, u64 reserve);
void lite_pool_exit(struct lite_pool *pool);
int lite_pool_take(struct lite_pool *pool, u32 uid, u64 n, gfp_t gfp);
void lite_pool_give(struct lite_pool *pool, u32 uid, u64 n);
u64 lite_pool_used(struct lite_pool *pool);
struct lite_pool_part *lite_pool_hold(struct lite_pool *pool, u32 uid, gfp_t gfp);
void lite_pool_drop(struct lite_pool *pool, struct lite_pool_part *part);
int lite_pool_take_part(struct lite_pool *pool, struct lite_pool_part *part, u64 n);
void lite_pool_give_part(struct lite_pool *pool, struct lite_pool_part *part, u64 n);

#endif /* _LITE_POOL_H */
