/* SPDX-License-Identifier: GPL-2.0 */
/* Arenas: memory of processes that is mapped for the device for good. arena.c, kept.c */
#ifndef _LITE_ARENA_H
#define _LITE_ARENA_H

#include <linux/list.h>
#include <linux/mm.h>
#include <linux/mutex.h>
#include <linux/refcount.h>
#include <linux/spinlock.h>
#include <linux/workqueue.h>

struct file;
struct lite_alloc;
struct lite_memory;
struct shrinker;

/* The blocks that a process has unmapped, kept for its next arena of the same open file. */
struct lite_kept {
	struct lite_memory *mem;
	refcount_t ref;          /* of the context, and of its arenas */
	struct list_head list;   /* in lite_arenas.keepers, while there are blocks */
	struct mm_struct *mm;    /* that they are kept for; mmgrab() */
	struct list_head blocks; /* the last one unmapped first */
	u32 n;
	bool closed;             /* keep no more */
};

/* The arenas of a node. */
struct lite_arenas {
	spinlock_t lock;          /* protects all lists, and all of struct lite_kept but @ref */
	struct list_head all;     /* struct lite_arena, with a reference each */
	struct list_head keepers; /* struct lite_kept with blocks */
	u32 n_kept;               /* blocks */
	struct list_head leaving; /* blocks to be freed by @work */
	struct workqueue_struct *wq;
	struct work_struct work;
	struct shrinker *shrinker;
};

struct lite_arena {
	refcount_t ref;           /* of its file; of lite_arenas.all */
	struct list_head list;
	struct lite_kept *kept;   /* of the open file that made it */
	struct mm_struct *mm;     /* that made it; mmgrab() */
	bool eager;
	u64 length;
	struct mutex lock;        /* protects @blocks; nests inside mmap_lock */
	u32 n_blocks;
	struct lite_alloc **blocks; /* with a reference each; NULL: the node was stopped */
};

/* A part of an arena that the current process has mapped. */
struct lite_arena_range {
	struct file *file; /* of the arena, with a reference; NULL: not memory of an arena */
	struct lite_arena *arena;
	u64 offset;
	u64 length;
};

/* The page at an offset of @of, or ERR_PTR. @n: pages wanted, reduced to contiguous ones. */
typedef struct page *(*lite_page_at)(void *of, u64 offset, size_t *n);

/* arena.c */
int lite_pages_insert(struct vm_area_struct *vma, unsigned long addr, unsigned long end,
		      lite_page_at page_at, void *of, u64 offset);
extern const struct vm_operations_struct lite_arena_vm_ops;
struct lite_arena *lite_arena_new(struct lite_kept *kept, u64 length, u32 flags, u32 uid);
void lite_arena_close(struct lite_arena *arena);
void lite_arena_put(struct lite_arena *arena);
int lite_arena_find(struct lite_memory *mem, unsigned long addr, u64 length,
		    struct lite_arena_range *range);
void lite_arena_range_put(struct lite_arena_range *range);
struct lite_alloc *lite_arena_adopt(struct lite_memory *mem, const struct lite_arena_range *range,
				    u32 uid);
int lite_arenas_init(struct lite_memory *mem);
void lite_arenas_exit(struct lite_memory *mem);

/* kept.c */
struct lite_kept *lite_kept_new(struct lite_memory *mem);
void lite_kept_put(struct lite_kept *kept);
void lite_kept_use(struct lite_kept *kept);
u32 lite_kept_count(const struct lite_kept *kept);
struct lite_alloc *lite_kept_take(struct lite_kept *kept, u32 uid);
bool lite_kept_add(struct lite_kept *kept, struct lite_alloc *block, const struct mm_struct *mm);
void lite_kept_drop(struct lite_kept *kept, bool close);
int lite_kept_init(struct lite_memory *mem);
void lite_kept_exit(struct lite_memory *mem);

#endif /* _LITE_ARENA_H */
