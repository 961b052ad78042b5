/* SPDX-License-Identifier: GPL-2.0 */
/*
 * LMRs: their memory, their homes, their names, the handles on them, and the
 * one-sided operations.
 *
 * Three roles, which one node may play at once for one LMR:
 *
 *   store    gives memory (struct lite_alloc) to a home. store.c
 *   home     keeps an LMR's metadata: who owns it, where its parts are, which
 *            nodes have it mapped (struct lite_lmr). lmr.c, place.c, release.c,
 *            mappers.c, free.c, change.c, resize.c, and for names claim.c,
 *            directory.c, names.c
 *   mapper   has handles on it (struct lite_mapping, shared by all handles of
 *            the node) and operates on its memory. map.c, mapping.c, ctx.c,
 *            transfer.c, atomic.c, buf.c, look.c, known.c. One that holds bytes
 *            does memory operations on them for other mappers, who have checked
 *            the rights. memop.c, memop_serve.c, memop_run.c, memop_two.c,
 *            lent.c
 *
 * Why nobody touches memory that was freed
 *
 *   A home frees memory only when every mapper has acknowledged REVOKE, that
 *   is, has no operation in flight and will start none; or is fenced: its
 *   session with the home is over, and so is, before they free, its session
 *   with every store of the LMR.
 *
 *   A mapping is bound to sessions: that with the home in which it was made,
 *   and those with the stores, which were noted before the home confirmed
 *   (LMR_EXTENTS) that this node is still a mapper. An operation uses these
 *   sessions or none: when one of them is over, the mapping is retired and the
 *   home is asked again. So a mapper that was fenced while it slept cannot
 *   come back with what it knew.
 *
 *   Nobody works on memory for somebody else: a node that does memory
 *   operations for a peer is a mapper itself, and is revoked like any other.
 *
 * Why nobody uses what has changed
 *
 *   A change of an LMR (where its bytes are, how many, who may use them) first
 *   closes it: the home grants no MAP, and every mapper answers RECALL, as
 *   REVOKE, when it has no operation in flight; or is fenced, from all stores.
 *   Only then is anything changed, and the LMR opened again. Handles stay: they
 *   map anew, and their rights are checked anew, with their next operation.
 *   Each change gives the LMR another generation, and what a mapper asks a store
 *   to do is done only in the generation in which it asked.
 *
 *   What is in the page tables of processes (mmap, view.c) is no operation in
 *   flight; it is taken out of them before a mapping counts as drained.
 *
 * Locking, outermost first: mmap_lock (page faults of mapped LMRs),
 * lite_ctx.lock, lite_lmr.lock, map_lock, names locks, lite_limit.lock. No call is
 * made with any of them held but mmap_lock, rarely, and lite_ctx.lock. Below
 * lite_ctx.lock also lite_mapping.zap, and under that i_mmap_rwsem. views_lock,
 * pinned_lock, runs_lock and work_lock are innermost.
 */
#ifndef _LITE_MEMORY_H
#define _LITE_MEMORY_H

#include <linux/maple_tree.h>
#include <linux/rbtree.h>

#include "../cluster/cluster.h"
#include "../core/bounds.h"
#include "../core/extent.h"
#include "../core/handle.h"
#include "../core/spread.h"
#include "limit.h"
#include "store.h"
#include "names.h"
#include "home.h"
#include "mapping.h"
#include "ctx.h"
#include "issue.h"
#include "known.h"
#include "memop.h"
#include "pack.h"
#include "pinned.h"
#include "view.h"
#include "word.h"

#include <lite/kapi.h>

/**
 * struct lite_memory_ops - news for the layer above
 * @lmr_cut: an LMR that is at home here has, or had, no bytes from @length on;
 *	0: it is gone; may sleep, must not call
 */
struct lite_memory_ops {
	void (*lmr_cut)(void *priv, u64 id, u64 length);
};

struct lite_memory_params {
	u64 mem_limit;
	u64 uid_limit;
	u32 handle_limit;
	bool root_squash;
	unsigned long orphan;
};

struct lite_memory {
	struct lite_cluster *cl;
	struct lite_fabric *fab;
	struct lite_stats __percpu *stats;
	const struct lite_memory_ops *ops;
	void *priv;
	u32 handle_limit;
	bool root_squash;          /* root of other nodes is nobody here */
	struct lite_limit limit;   /* of stores and homes */
	struct lite_limit names_limit; /* of the directory, for all homes */

	atomic64_t ids;            /* of LMRs and allocs */
	struct xarray allocs;
	struct maple_tree by_dma;  /* kernel addresses of pieces */
	spinlock_t split_lock;     /* pieces are split once */
	rwlock_t runs_lock;        /* protects the next one */
	struct rb_root_cached runs; /* of processes' memory; may overlap */
	struct xarray lmrs;
	struct lite_names local;   /* names of LMRs homed here */
	struct lite_names directory;
	struct work_struct publish_work;
	atomic_t changes;          /* of members */

	spinlock_t map_lock;       /* protects the next four */
	struct xarray mappings;    /* by home and id; ACTIVE ones */
	struct rb_root unclean;    /* mappings that left it so, by the same key */
	struct lite_revoked revoked;
	struct lite_known_table known;
	struct work_struct retire_work; /* of sessions that are over */
	spinlock_t views_lock;     /* protects the lists of views */
	struct lite_lent lent;
	struct lite_issues issues;
	struct lite_packs packs;

	spinlock_t work_lock;      /* protects the next one */
	struct list_head work;     /* memory operations that we carry out */
	wait_queue_head_t work_wait;
	struct mutex word_lock;    /* one at a time: swap, fetch-and, -or */
	struct lite_memop_served memops[LITE_MEMOPS];

	spinlock_t zombies_lock;
	struct list_head zombies;  /* memory at nodes that did not answer */
	struct delayed_work zombie_work;
	/* Anonymous LMRs of ours whose homes are to hear that we let go; map_lock. */
	struct list_head made;
	struct work_struct made_work;
	unsigned long orphan;      /* jiffies: so long those of who is down stay */
	struct delayed_work orphans;

	spinlock_t ctxs_lock;
	struct list_head ctxs;
	struct workqueue_struct *wq;
	struct workqueue_struct *revoke_wq; /* waited for by items of wq */
};

int lite_memory_init(struct lite_memory *mem, struct lite_cluster *cl,
		     struct lite_rpc *rpc, struct lite_stats __percpu *stats,
		     const struct lite_memory_params *params,
		     const struct lite_memory_ops *ops, void *priv);
void lite_memory_give_up(struct lite_memory *mem);
void lite_memory_forget(struct lite_memory *mem);
void lite_memory_shut(struct lite_memory *mem);
void lite_memory_exit(struct lite_memory *mem);
bool lite_memory_idle(struct lite_memory *mem);
u64 lite_memory_used(struct lite_memory *mem);

/* For the cluster (struct lite_cluster_ops). */
void lite_memory_members_changed(struct lite_memory *mem);
void lite_memory_peer_gone(struct lite_memory *mem, u64 session);
void lite_memory_peer_lost(struct lite_memory *mem, u32 id, u64 incarnation);

#endif /* _LITE_MEMORY_H */
