/* SPDX-License-Identifier: GPL-2.0 */
/* The store: memory given to homes. store.c, copy.c, lease.c, pinned.c, payer.c */
#ifndef _LITE_STORE_H
#define _LITE_STORE_H

#include <linux/kref.h>
#include <linux/list.h>
#include <linux/rbtree.h>

#include "core/extent.h"
#include "line.h"
#include "wire/wire.h"

struct lite_memory;
struct mem_cgroup;
struct mm_struct;
struct user_struct;

struct lite_piece {
	struct rb_node rb; /* in mem->pieces */
	struct page *page;
	u64 dma;
	u32 order;
};

/* Physically contiguous memory of a process. */
struct lite_pinned_run {
	struct rb_node rb; /* in the node's interval tree */
	u64 start;         /* device address of the first byte */
	u64 last;          /* of the last byte */
	u64 subtree_last;  /* largest @last in the subtree */
	struct page *page; /* the first one */
	u32 n;             /* pages; 0: quarantined */
};

/* Links an LMR made of process memory to its context: in struct lite_alloc and lite_unpinned. */
struct lite_registered {
	struct list_head list;        /* ctx->registered, until shut; under mem->runs_lock */
	u64 lmr;                      /* its id */
};

/* Memory of a process that is an LMR. */
struct lite_pinned {
	struct lite_memory *mem;
	/* A chunk of an unpinned LMR: only a lease pins its pages, and sets @user and @mm. */
	bool borrowed;
	bool exposed;                 /* if @borrowed: peers may know where the pages are */
	bool written;                 /* if @borrowed: peers may write to the pages */
	struct user_struct *user;     /* charged for RLIMIT_MEMLOCK */
	struct mm_struct *mm;         /* its VmPin counts the pages */
	unsigned long n_pages;        /* pinned and accounted */
	u32 n_mapped;                 /* leading runs mapped for the device and in the tree */
	u32 n_runs;
	struct lite_pinned_run *runs; /* the pages, in order */
	struct list_head lease;       /* if @borrowed: in lite_leases.list; empty: no lease */
	unsigned long lease_end;      /* jiffies */
};

/* How long the pages of a chunk with a lease stay pinned. */
#define LITE_LEASE_MS 10000

/* Which leases the chunks of an unpinned LMR get. */
struct lite_lease_terms {
	struct mm_struct *mm;
	struct user_struct *user;     /* charged; with a reference, unless @max is 0 */
	unsigned long max;            /* pages that @user may have locked in all; 0: no leases */
};

/* Memory given to a home. */
struct lite_alloc {
	refcount_t ref;              /* of the table or its remover, of copies; see also arena.c */
	struct lite_memory *mem;
	u64 id;                      /* unique on this node */
	u32 home;                    /* node that it was given to */
	u64 home_incarnation;
	u64 session;                 /* of the request; 0: this node is the home */
	bool confirmed;              /* the home has read all extents: it knows of the memory */
	u32 uid;                     /* charged user */
	u64 bytes;                   /* whole pages */
	u32 since;                   /* lite_dma_since() before it was mapped */
	u64 charged;                 /* bytes: metadata and, if of @pieces, the pages */
	u32 n_pieces;
	struct lite_piece *pieces;
	u32 n_extents;
	struct lite_extent *extents; /* pieces or runs, merged, as published; share is 0 */
	struct lite_pinned *pinned;  /* instead of @pieces: process memory of this home; or NULL */
	struct lite_alloc **blocks;  /* instead of @pieces: has parts of these, and references */
	u32 n_blocks;
	/* Of process memory; or of a kept block: in lite_kept.blocks, under lite_arenas.lock. */
	struct lite_registered reg;
};

/* A process of this node that asks a home at another node for memory; in mem->payers. */
struct lite_payer {
	struct lite_memory *mem;
	struct kref ref;              /* of the asking thread and, until served, of the call */
	struct lite_line_place place; /* by home and LMR id or, if it makes an LMR, home and uid */
	struct mem_cgroup *memcg;     /* of the process that asks */
};

struct lite_alloc *lite_store_new(struct lite_memory *mem, u32 home, u64 home_incarnation,
				  u64 bytes, u64 charged, u32 uid);
void *lite_table_grow(void *table, size_t size, u32 n, u32 *room, u32 first);
int lite_store_extents(struct lite_alloc *alloc, u32 n, size_t cost);
int lite_store_room(struct lite_memory *mem, u32 uid, u64 bytes);
struct lite_alloc *lite_store_make(struct lite_memory *mem, u32 home, u64 home_incarnation,
				   u64 bytes, u32 uid);
struct lite_alloc *lite_store_alloc(struct lite_memory *mem, u32 home, u64 home_incarnation,
				    u64 session, u64 length, u32 uid);
struct lite_alloc *lite_store_enter(struct lite_alloc *alloc, int err);
void lite_store_free(struct lite_alloc *alloc);
struct lite_alloc *lite_store_get(struct lite_memory *mem, u64 id, u32 home, bool take);
void lite_store_lost(struct lite_memory *mem, u32 home, u64 incarnation);
void lite_store_session_gone(struct lite_memory *mem, u64 session);
void *lite_store_address(struct lite_memory *mem, u64 dma, size_t *n);
void *lite_store_whole(struct lite_memory *mem, u64 dma, size_t *n);
struct page *lite_store_page(struct lite_memory *mem, u64 dma, size_t *n);
bool lite_store_unpinned(const struct lite_alloc *alloc);
void lite_store_zero(const struct lite_alloc *alloc);
void lite_store_exit(struct lite_memory *mem);
void lite_extents_copy(struct lite_wire_extent *to, const struct lite_extent *from, u32 n);
u32 lite_extents_put(struct lite_wire_extents_reply *r, const struct lite_extent *table, u32 n,
		     u32 first);
int lite_extents_take(struct lite_extent *table, u32 *n, u32 max,
		      const struct lite_wire_extent *told, u32 count);

/* pinned.c */
struct lite_pinned *lite_pinned_new(struct lite_memory *mem, unsigned long addr, u64 length);
struct lite_pinned *lite_pinned_borrow(struct lite_memory *mem, struct page **pages, u32 n,
				       bool write);
void lite_pinned_unmap(struct lite_memory *mem, struct lite_pinned *pin, u32 since);
void lite_pinned_release(struct lite_pinned *pin);
struct lite_alloc *lite_pinned_adopt(struct lite_memory *mem, struct lite_pinned *pin, u32 uid);
void lite_pinned_free(struct lite_memory *mem, struct lite_pinned *pin, u32 since);
void *lite_pinned_address(struct lite_memory *mem, u64 dma, size_t *n);
unsigned long lite_locked_limit(void);
bool lite_locked_charge(struct user_struct *user, struct mm_struct *mm, unsigned long limit,
			unsigned long n);
void lite_locked_uncharge(struct user_struct *user, struct mm_struct *mm, unsigned long n);

/* lease.c */
int lite_leases_init(struct lite_memory *mem);
void lite_leases_exit(struct lite_memory *mem);
bool lite_lease_pin(const struct lite_lease_terms *terms, unsigned long addr, struct page **pages,
		    unsigned long n);
void lite_lease_unpin(const struct lite_lease_terms *terms, struct page **pages, unsigned long n);
void lite_lease_begin(struct lite_pinned *pin, const struct lite_lease_terms *terms);
void lite_lease_end(struct lite_pinned *pin);

/* payer.c */
struct lite_payer *lite_payer_begin(struct lite_memory *mem, u32 home, u64 key);
void lite_payer_release(struct kref *ref);
struct mem_cgroup *lite_payer_find(struct lite_memory *mem, u32 home, u64 lmr, u32 uid);

/* The asking thread has its answer, or no longer waits for it. */
static inline void lite_payer_end(struct lite_payer *p)
{
	kref_put(&p->ref, lite_payer_release);
}

#endif /* _LITE_STORE_H */
