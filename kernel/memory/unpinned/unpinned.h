/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Unpinned LMRs at their home: unpinned.c (chunks, and their ends), enter.c (what may be one),
 * bring.c (pages), serve.c. At mappers: mapper/chunk.c.
 */
#ifndef _LITE_UNPINNED_H
#define _LITE_UNPINNED_H

#include <linux/kref.h>
#include <linux/mmu_notifier.h>
#include <linux/rbtree.h>
#include <linux/spinlock.h>
#include <linux/workqueue.h>
#include <linux/xarray.h>

#include "crew.h"
#include "memory/store/store.h"
#include "wire/wire.h"

struct lite_lmr;
struct lite_memory;

/* Most bytes of an LMR: 16384 chunks, so the kernel never waits for more of one LMR. */
#define LITE_UNPINNED_MAX (4ULL << 30)

/* Most LMRs with a part of one huge page of a process: the kernel takes it away as a whole. */
#define LITE_UNPINNED_EACH 8

/* Most ended LMRs that may still watch a process's memory when it registers another one. */
#define LITE_UNPINNED_PARTING 1024

/* An invalidation that may not be over: the pages that the kernel takes away. */
struct lite_upset {
	u64 number;
	unsigned long first;
	unsigned long last;
};

#define LITE_UPSETS 8

/* Process memory that is an LMR without being pinned. The LMR owns this object. */
struct lite_unpinned {
	struct kref ref;            /* of the owner, later @part; of @quiet while that is queued */
	struct mmu_interval_notifier notifier; /* of @mm and all of the range */
	struct lite_memory *mem;
	struct mm_struct *mm;       /* with a reference (mmgrab) */
	struct lite_lease_terms lease;
	struct lite_lmr *owner;     /* the LMR */
	struct lite_registered reg;
	struct rb_node node;        /* mem->unpinned, under mem->runs_lock */
	struct rb_node parting;     /* lite_partings.by_mm */
	unsigned long addr;         /* in @mm, whole pages, as is @n_pages */
	unsigned long n_pages;
	u32 uid;                    /* charged for chunks */
	spinlock_t lock;            /* protects what follows */
	struct xarray chunks;       /* struct lite_chunk by first page; do not overlap */
	struct list_head brings;    /* struct lite_bring: pages that are being brought in */
	struct lite_upset upset[LITE_UPSETS]; /* oldest first */
	u32 n_upsets;
	u64 upsets;                 /* number of the last invalidation */
	u64 quieted;                /* all invalidations up to this number are over */
	bool dying;                 /* takes no new chunks */
	struct lite_crew_job quiet; /* waits for the ends of invalidations */
	struct lite_crew_job part;  /* removes @notifier; the node may be gone */
};

/*
 * Neighbouring pages, within an aligned group of LITE_CHUNK_PAGES, that are an LMR of their own as
 * long as they stay where they are.
 */
struct lite_chunk {
	struct kref ref;           /* of @work, which frees it, and of threads that wait for it */
	struct lite_unpinned *u;
	struct lite_lmr *parent;   /* owner of @u, with a reference */
	struct lite_lmr *lmr;      /* with a reference */
	struct lite_alloc *alloc;  /* its memory, with a reference */
	unsigned long first;       /* page of @u */
	unsigned long n;           /* pages */
	bool writable;
	bool ending;               /* being taken from its mappers; under u->lock */
	struct completion ended;   /* no node can reach its pages; it is not in u->chunks */
	struct list_head list;     /* of the thread that ends it */
	struct work_struct work;   /* ends it if it has no mappers; then frees what it has */
};

/* Pages to bring in. */
struct lite_bring {
	struct list_head list;     /* u->brings, under u->lock */
	/*
	 * For hmm_range_fault(); never registered. Its sequence number becomes 1, under u->lock,
	 * when an invalidation of pages from @first to @end begins.
	 */
	struct mmu_interval_notifier still;
	unsigned long page;        /* the one that is wanted */
	unsigned long first;       /* pages that may come with it; reduced to those that do */
	unsigned long end;
	bool write;                /* it must be writable */
	bool writable;             /* out: all are */
	bool leased;               /* out: they are pinned, until lite_lease_begin() */
	unsigned long pfn[LITE_CHUNK_PAGES];
	struct page *pages[LITE_CHUNK_PAGES]; /* out: from @first on */
};

/* unpinned.c */
int lite_unpinned_init(void);
void lite_unpinned_exit(void);
struct lite_unpinned *lite_unpinned_new(struct lite_memory *mem, unsigned long addr, u64 length,
					bool leased);
void lite_unpinned_drop(struct lite_unpinned *u);
void lite_unpinned_begin(struct lite_unpinned *u, struct lite_lmr *owner, u64 id);
void lite_unpinned_recall(struct lite_unpinned *u);
void lite_unpinned_end(struct lite_unpinned *u);
void lite_unpinned_free(struct lite_unpinned *u);
void lite_unpinned_await(struct lite_unpinned *u);
struct lite_chunk *lite_chunk_at(struct lite_unpinned *u, unsigned long page);
int lite_bring_begin(struct lite_unpinned *u, struct lite_bring *b, bool alone);
void lite_bring_end(struct lite_unpinned *u, struct lite_bring *b);
int lite_chunk_add(struct lite_chunk *c, const struct lite_bring *b);
void lite_chunk_drop(struct lite_chunk *c);
void lite_chunk_uncount(struct lite_memory *mem);
void lite_chunk_unused(struct lite_lmr *lmr);

/* enter.c */
int lite_unpinned_enter(struct lite_unpinned *u, u32 uid, struct list_head *registered);

/* bring.c */
int lite_unpinned_check(struct mm_struct *mm, unsigned long addr, unsigned long end);
int lite_bring_pages(struct lite_unpinned *u, struct lite_bring *b);

#endif /* _LITE_UNPINNED_H */
