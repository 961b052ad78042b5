/* SPDX-License-Identifier: GPL-2.0 */
/*
 * LMRs: their memory, homes, names and handles, and the one-sided operations. A node can have all
 * three roles for one LMR:
 *
 *   store    gives memory (struct lite_alloc) to a home: store/
 *   home     keeps an LMR's metadata (struct lite_lmr): owner, placement, mappers: home/, names/
 *   mapper   has handles on an LMR (struct lite_mapping, shared by all handles of the node) and
 *            operates on its memory: the other rooms. A mapper that stores bytes also performs
 *            memory operations on them for nodes that have checked the rights: memop/
 *
 * Why no node accesses freed memory, or a changed LMR by its old layout or rights:
 * Documentation/memory-safety.rst, lifetime.rst.
 *
 * Locking, outermost first: mmap_lock (page faults of mapped LMRs), lite_ctx.renewing,
 * lite_ctx.lock, lite_lmr.lock, map_lock, lite_limit.lock. A thread that makes a call holds none of
 * them but those of lite_ctx and, rarely, mmap_lock. lite_arena.lock nests inside mmap_lock. Locks
 * of names, views_lock, runs_lock, arenas.lock and work_lock are innermost.
 */
#ifndef _LITE_MEMORY_H
#define _LITE_MEMORY_H

#include <linux/hashtable.h>
#include <linux/rbtree.h>

#include "cluster/cluster.h"
#include "crew.h"
#include "line.h"
#include "memory/store/limit.h"
#include "memory/arena/arena.h"
#include "memory/names/names.h"

#include <lite/kapi.h>

struct lite_memory_ops {
	/* An LMR homed here was cut to @length bytes (0: freed). May sleep; must make no calls. */
	void (*lmr_cut)(struct lite_node *node, u64 id, u64 length);
};

struct lite_memory_params {
	u64 mem_limit;
	u64 uid_limit;
	u32 handle_limit;
	bool root_squash;
	bool unpinned;
	unsigned long orphan;
};

struct lite_lmr;
struct lite_pack;
struct lite_unpinned;

/* Callbacks of store/ and home/ into higher rooms, which they must not call: memory.c */
struct lite_room_ops {
	/* Retire and drain all mappings that this node has of LMRs of @home. May sleep. */
	void (*retire_home)(struct lite_memory *mem, u32 home);
	/*
	 * End and drain this node's mapping of an LMR. @gone: the LMR may not be mapped again. May
	 * sleep. Return: 0, or -EUCLEAN: a store may still execute a failed operation on the LMR.
	 */
	int (*revoke)(struct lite_memory *mem, u32 home, u64 id, bool gone);
	/* The same for several chunks that are gone. May sleep; allocates nothing. */
	void (*end_chunks)(struct lite_memory *mem, u32 home, const struct lite_wire_ends *ends);
	/* @owner, an LMR that is not published yet, gets the memory. */
	void (*unpinned_begin)(struct lite_unpinned *u, struct lite_lmr *owner, u64 id);
	/* The LMR is changed: take all pages from all nodes; they may ask again. May sleep. */
	void (*unpinned_recall)(struct lite_unpinned *u);
	/* The LMR ends: take all pages from all nodes. Called once. May sleep. */
	void (*unpinned_end)(struct lite_unpinned *u);
	/* Free the memory, ending it first if it has not ended; NULL is ignored. May sleep. */
	void (*unpinned_free)(struct lite_unpinned *u);
	/* A chunk may have lost its last mapper. May sleep. */
	void (*chunk_unused)(struct lite_lmr *chunk);
};

/* Cache of mappings by name and user: handle/name_cache.c */
struct lite_name_cache {
	spinlock_t lock;
	DECLARE_HASHTABLE(names, 8); /* struct lite_cached_name by hash of its name */
	u32 salt;                    /* of the hash, as users choose the names */
	struct delayed_work work;    /* drops entries that were not used lately */
};

#define LITE_REVOKED_BITS 10

/* REVOKEs and RECALLs that have come; under map_lock: mapper/mapping.c */
struct lite_revoked {
	u64 salt;  /* of the hash of an LMR's key, so that users cannot choose collisions */
	u64 count;
	/*
	 * Number of the last one, by hash of the LMR. A MAP saves @count when it begins. If @last
	 * of its hash is greater when the reply comes, the MAP was overtaken, and is sent again. A
	 * collision of hashes costs one needless MAP.
	 */
	u64 last[1 << LITE_REVOKED_BITS];
};

/* Mappings kept for memory operations of peers: mapper/peer_mapping.c */
struct lite_peer_mapping {
	struct list_head list;     /* struct lite_mapping, under map_lock */
	u32 n;
	bool closed;               /* keeps no more mappings; under map_lock */
	struct delayed_work work;  /* drops idle mappings */
};

/* The small operations of a node in flight: batch/issue.c */
struct lite_issues {
	spinlock_t lock;           /* protects the other fields */
	struct list_head flight;   /* struct lite_issue, oldest first */
	u32 n;                     /* operations in @flight */
	struct delayed_work watch; /* ends connections of late operations */
	unsigned long due;         /* jiffies at which @watch is to run, if queued */
	bool excused;              /* @watch ran late and ended nothing; not twice in a row */
};

/* Messages of a node: batch/pack.c */
struct lite_packs {
	struct lite_pack *spare;    /* cached room for messages, or NULL */
	struct work_struct prepare; /* asks @node to map an LMR */
	unsigned long busy;         /* bit 0: @prepare is queued, and owns @node and @op */
	u32 node;
	struct lite_wire_op op;     /* request, which names the LMR */
};

/* Chunks of unpinned LMRs with pinned pages: store/lease.c */
struct lite_leases {
	spinlock_t lock;           /* protects the next two */
	struct list_head list;     /* struct lite_pinned, the oldest lease first */
	unsigned long n_pages;
	struct delayed_work work;  /* ends leases that are old */
	struct shrinker *shrinker;
};

struct lite_memory {
	struct lite_cluster *cl;
	struct lite_fabric *fab;
	struct lite_stats __percpu *stats;
	const struct lite_memory_ops *ops;
	struct lite_node *priv;
	const struct lite_room_ops *rooms;
	u32 handle_limit;
	bool root_squash;          /* root of other nodes is LITE_UID_NOBODY */
	bool may_unpin;            /* memory may be registered without being pinned */
	struct lite_limit limit;   /* of stores and homes */
	struct lite_limit names_limit; /* of the directory, for all homes */

	atomic64_t ids;            /* of LMRs and allocs */
	struct xarray allocs;
	spinlock_t split_lock;     /* serialises splitting of pieces */
	rwlock_t runs_lock;        /* protects @pieces, @runs and their lists */
	struct rb_root pieces;     /* by device address */
	struct rb_root_cached runs; /* of process memory; may overlap */
	struct lite_arenas arenas;
	struct lite_leases leases;
	struct xarray lmrs;
	atomic_t n_chunks;         /* chunks of unpinned LMRs that are not all freed */
	struct rb_root unpinned;   /* unpinned LMRs by process and address; under @runs_lock */
	struct lite_names local;   /* names of LMRs homed here */
	struct lite_names directory;
	struct delayed_work publish_work;
	atomic_t changes;          /* counts changes of members */

	spinlock_t map_lock;       /* protects the next three */
	struct xarray mappings;    /* by home and id; until drained */
	struct lite_line unclean;  /* drained mappings that are unclean, by the same key */
	struct lite_revoked revoked;
	struct lite_name_cache name_cache;
	struct work_struct retire_work; /* retires mappings of dead sessions */
	spinlock_t views_lock;     /* protects the lists of views */
	struct lite_peer_mapping peer_mappings;
	struct lite_issues issues;
	struct lite_packs packs;

	spinlock_t work_lock;
	struct list_head work;     /* memory operations run for peers */
	wait_queue_head_t work_wait;
	/* Serialises swap, fetch-and and fetch-or on local words; held while the device works. */
	struct mutex words_lock;

	spinlock_t payers_lock;
	struct lite_line payers;   /* requests for memory to other homes */

	spinlock_t zombies_lock;
	struct list_head zombies;  /* frees that a store did not answer */
	struct delayed_work zombie_work;
	/* Anonymous LMRs to release at their homes; under map_lock. */
	struct list_head made;
	struct work_struct made_work;
	unsigned long orphan;      /* jiffies for which LMRs stay if their maker is down */
	struct delayed_work orphans;

	spinlock_t ctxs_lock;
	struct list_head ctxs;
	struct workqueue_struct *wq;
	struct workqueue_struct *ends_wq;   /* items end chunks; reclaim may wait for them */
	struct workqueue_struct *takes_wq;  /* items take pages from nodes; they wait for ends_wq */
	struct workqueue_struct *file_wq;   /* items wait for the network for users */
	struct workqueue_struct *views_wq;  /* items remove pages from page tables */
	struct lite_crew reaps;    /* ends of LMRs, by the user charged */
	struct lite_crew revokes;  /* REVOKEs and RECALLs for these ends, and for changes */
};

/*
 * Serves a call. @conn: session with the caller; NULL: this node. @reply: zeroed. May sleep.
 * Return: see lite_handler.
 */
typedef int lite_mem_handler(struct lite_memory *mem, struct lite_conn *conn, const void *req,
			     void *reply);
/* The same for a call about @lmr; the request begins with its id. */
typedef int lite_lmr_handler(struct lite_lmr *lmr, struct lite_conn *conn, const void *req,
			     void *reply);

/* In the rooms; memory.c has the table of calls. */
lite_mem_handler lite_serve_chunk, lite_serve_create, lite_serve_ends, lite_serve_list,
	lite_serve_mem_alloc, lite_serve_mem_copy, lite_serve_mem_extents, lite_serve_mem_free,
	lite_serve_mem_session, lite_serve_name_drop, lite_serve_name_enter, lite_serve_name_find,
	lite_serve_name_probe, lite_serve_name_sync, lite_serve_open, lite_serve_pack,
	lite_serve_prepare, lite_serve_recall, lite_serve_revoke, lite_serve_unmap;
lite_lmr_handler lite_serve_await, lite_serve_extents, lite_serve_free, lite_serve_grant,
	lite_serve_grants, lite_serve_map, lite_serve_move, lite_serve_rename, lite_serve_resize,
	lite_serve_setattr, lite_serve_stat;

int lite_memory_init(struct lite_memory *mem, struct lite_cluster *cl,
		     struct lite_stats __percpu *stats, const struct lite_memory_params *params,
		     const struct lite_memory_ops *ops, struct lite_node *priv);
void lite_memory_give_up(struct lite_memory *mem);
void lite_memory_forget(struct lite_memory *mem);
void lite_memory_shut(struct lite_memory *mem);
void lite_memory_exit(struct lite_memory *mem);
bool lite_memory_idle(struct lite_memory *mem);
u64 lite_memory_used(struct lite_memory *mem);

/* Called by the cluster (struct lite_cluster_ops). */
void lite_memory_members_changed(struct lite_memory *mem);
void lite_memory_peer_gone(struct lite_memory *mem, const struct lite_conn *conn);
void lite_memory_peer_lost(struct lite_memory *mem, u32 id, u64 incarnation);

#endif /* _LITE_MEMORY_H */
