// SPDX-License-Identifier: GPL-2.0
/*
 * Lazy unmapping: blocks of arenas that a process has unmapped wait for its next arena, neither
 * unmapped for the device nor zeroed. Documentation/interfaces/arenas.rst, Lazy unmapping, says
 * which process a list is for, when a block is given out again and when it is freed.
 *
 * The shrinker runs wherever memory is allocated, but freeing a block takes locks under which
 * memory is allocated: so it leaves that to a work item.
 */
#include <linux/mm.h>
#include <linux/sched/mm.h>
#include <linux/shrinker.h>
#include <linux/slab.h>

#include "compat.h"
#include "memory/memory.h"
#include "memory/store/store.h"

#define LITE_BLOCK_PAGES (LITE_ARENA_BLOCK >> PAGE_SHIFT)
/* Open files looked at per hold of the lock. */
#define LITE_KEPT_LOOK 16

/* Context: may sleep. Return: for lite_kept_drop() and lite_kept_put(), or NULL. */
struct lite_kept *lite_kept_new(struct lite_memory *mem)
{
	struct lite_kept *kept = kzalloc(sizeof(*kept), GFP_KERNEL_ACCOUNT);

	if (!kept)
		return NULL;
	kept->mem = mem;
	refcount_set(&kept->ref, 1);
	INIT_LIST_HEAD(&kept->list);
	INIT_LIST_HEAD(&kept->blocks);
	return kept;
}

/* Drop a reference. Context: process. */
void lite_kept_put(struct lite_kept *kept)
{
	if (!refcount_dec_and_test(&kept->ref))
		return;
	if (kept->mm)
		mmdrop(kept->mm);
	kfree(kept);
}

static void lite_kept_remove(struct lite_kept *kept, struct lite_alloc *block, struct list_head *to)
{
	struct lite_arenas *all = &kept->mem->arenas;

	lockdep_assert_held(&all->lock);
	list_move_tail(&block->reg.list, to);
	WRITE_ONCE(kept->n, kept->n - 1);
	if (!kept->n)
		list_del_init(&kept->list);
	WRITE_ONCE(all->n_kept, all->n_kept - 1);
	lite_stat_add(kept->mem->stats, LITE_STAT_KEPT_PAGES, -(s64)LITE_BLOCK_PAGES);
}

/* The block unmapped longest ago; there is one. */
static struct lite_alloc *lite_kept_oldest(struct lite_kept *kept)
{
	return list_last_entry(&kept->blocks, struct lite_alloc, reg.list);
}

/* Move up to @max blocks to a list, the oldest first. Return: their number. */
static u32 lite_kept_move(struct lite_kept *kept, struct list_head *to, u32 max)
{
	u32 n;

	for (n = 0; n < max && kept->n; n++)
		lite_kept_remove(kept, lite_kept_oldest(kept), to);
	return n;
}

static void lite_blocks_free(struct list_head *blocks)
{
	struct lite_alloc *block, *next;

	list_for_each_entry_safe(block, next, blocks, reg.list) {
		list_del_init(&block->reg.list);
		lite_store_free(block);
		cond_resched();
	}
}

/*
 * Has the process ended, or does it run another program? Linux 6.1.192 closes files before
 * execve(2) replaces the mm. (That of a vfork(2) child has another user: its parent.)
 */
static bool lite_mm_over(const struct mm_struct *mm)
{
	int users = atomic_read(&mm->mm_users);

	return !users || (users == 1 && mm == current->mm && current->in_execve);
}

/*
 * The current process is going to make an arena: keep blocks for it from now on, unless they are
 * kept for another process that is still alive. May sleep.
 */
void lite_kept_use(struct lite_kept *kept)
{
	struct lite_arenas *all = &kept->mem->arenas;
	struct mm_struct *old = NULL;
	LIST_HEAD(blocks);

	spin_lock(&all->lock);
	if (!kept->mm || (kept->mm != current->mm && lite_mm_over(kept->mm))) {
		lite_kept_move(kept, &blocks, U32_MAX);
		old = kept->mm;
		kept->mm = current->mm;
		mmgrab(kept->mm);
	}
	spin_unlock(&all->lock);
	lite_blocks_free(&blocks);
	if (old)
		mmdrop(old);
}

/* Blocks that the current process can probably have. Any context. */
u32 lite_kept_count(const struct lite_kept *kept)
{
	return READ_ONCE(kept->mm) == current->mm ? READ_ONCE(kept->n) : 0;
}

/* Is a block that was on the list in no other use, so that its process can have it again? */
static bool lite_block_alone(const struct lite_alloc *block)
{
	if (refcount_read(&block->ref) != 1)
		return false;
	/*
	 * Order after all that an LMR's last user did, also counting a failed fence. Pairs with the
	 * release in lite_store_free().
	 */
	smp_acquire__after_ctrl_dep();
	return block->since == lite_dma_since(block->mem->fab) && lite_store_unpinned(block);
}

/* Take the block that the current process unmapped last; or NULL. */
static struct lite_alloc *lite_kept_pop(struct lite_kept *kept)
{
	struct lite_arenas *all = &kept->mem->arenas;
	struct lite_alloc *block = NULL;
	LIST_HEAD(found);

	spin_lock(&all->lock);
	if (kept->n && kept->mm == current->mm) {
		block = list_first_entry(&kept->blocks, struct lite_alloc, reg.list);
		lite_kept_remove(kept, block, &found);
		list_del_init(&block->reg.list);
	}
	spin_unlock(&all->lock);
	return block;
}

/*
 * Take a kept block for the current process, with the contents that the process left there, and
 * drop those that it cannot have. @uid: to be charged. May sleep. Return: the block, or NULL.
 */
struct lite_alloc *lite_kept_take(struct lite_kept *kept, u32 uid)
{
	struct lite_alloc *block;

	while ((block = lite_kept_pop(kept))) {
		if (block->uid == uid && lite_block_alone(block))
			break;
		lite_store_free(block);
	}
	return block;
}

/*
 * Keep a block that process @mm has unmapped; if too many are kept, free the oldest one. May sleep.
 * Return: whether it is kept, with the caller's reference.
 */
bool lite_kept_add(struct lite_kept *kept, struct lite_alloc *block, const struct mm_struct *mm)
{
	struct lite_memory *mem = kept->mem;
	struct lite_arenas *all = &mem->arenas;
	LIST_HEAD(out);
	bool keep;

	spin_lock(&all->lock);
	keep = !kept->closed && kept->mm == mm && !lite_mm_over(mm) &&
	       block->since == lite_dma_since(mem->fab);
	if (keep) {
		if (kept->n == LITE_ARENA_KEPT_MAX)
			lite_kept_move(kept, &out, 1);
		list_add(&block->reg.list, &kept->blocks);
		if (!kept->n)
			list_add_tail(&kept->list, &all->keepers);
		WRITE_ONCE(kept->n, kept->n + 1);
		WRITE_ONCE(all->n_kept, all->n_kept + 1);
		lite_stat_add(mem->stats, LITE_STAT_KEPT_PAGES, LITE_BLOCK_PAGES);
	}
	spin_unlock(&all->lock);
	lite_blocks_free(&out);
	return keep;
}

/*
 * A process closes the open file: free the kept blocks if the process that they are for has ended.
 * @close: the file has no user any more, or the node stops: free all, and keep no more. May sleep.
 */
void lite_kept_drop(struct lite_kept *kept, bool close)
{
	struct lite_arenas *all = &kept->mem->arenas;
	LIST_HEAD(blocks);

	spin_lock(&all->lock);
	kept->closed |= close;
	if (close || (kept->mm && lite_mm_over(kept->mm)))
		lite_kept_move(kept, &blocks, U32_MAX);
	spin_unlock(&all->lock);
	lite_blocks_free(&blocks);
}

static void lite_leaving_work(struct work_struct *work)
{
	struct lite_memory *mem = container_of(work, struct lite_memory, arenas.work);
	LIST_HEAD(blocks);

	spin_lock(&mem->arenas.lock);
	list_splice_init(&mem->arenas.leaving, &blocks);
	spin_unlock(&mem->arenas.lock);
	lite_blocks_free(&blocks);
}

static unsigned long lite_shrink_count(struct shrinker *shrinker, struct shrink_control *sc)
{
	struct lite_memory *mem = lite_shrinker_data(shrinker);
	u32 n = READ_ONCE(mem->arenas.n_kept);

	return n ? n * LITE_BLOCK_PAGES : SHRINK_EMPTY;
}

/* Queue for freeing the blocks unmapped longest ago, of each open file in turn. */
static unsigned long lite_shrink_scan(struct shrinker *shrinker, struct shrink_control *sc)
{
	struct lite_memory *mem = lite_shrinker_data(shrinker);
	u32 want = DIV_ROUND_UP(sc->nr_to_scan, LITE_BLOCK_PAGES);
	struct lite_arenas *all = &mem->arenas;
	struct lite_kept *kept;
	u32 n = 0, freed = 0;

	spin_lock(&all->lock);
	while (n < want && !list_empty(&all->keepers)) {
		kept = list_first_entry(&all->keepers, struct lite_kept, list);
		list_move_tail(&kept->list, &all->keepers);
		/* A block that an LMR has, too, stays until the LMR is freed. */
		freed += refcount_read(&lite_kept_oldest(kept)->ref) == 1;
		n += lite_kept_move(kept, &all->leaving, 1);
	}
	spin_unlock(&all->lock);
	if (!n)
		return SHRINK_STOP;
	queue_work(all->wq, &all->work);
	sc->nr_scanned = n * LITE_BLOCK_PAGES;
	return freed * LITE_BLOCK_PAGES;
}

/*
 * A limit is exceeded by @bytes: free that much of the kept blocks of @uid or, if @all_users, of
 * all users; but nothing if all kept blocks have less. May sleep. Return: were any freed?
 */
static bool lite_kept_spare(struct lite_limit *limit, u32 uid, bool all_users, u64 bytes)
{
	struct lite_memory *mem = container_of(limit, struct lite_memory, limit);
	struct lite_arenas *all = &mem->arenas;
	u32 left = READ_ONCE(all->n_kept);
	struct lite_kept *kept;
	LIST_HEAD(blocks);
	u32 i, want, n = 0;

	if (bytes > left * LITE_ARENA_BLOCK)
		return false;
	want = DIV_ROUND_UP_ULL(bytes, LITE_ARENA_BLOCK);
	/* @left bounds the search: there are no more open files with blocks than blocks. */
	while (left && n < want) {
		spin_lock(&all->lock);
		if (list_empty(&all->keepers))
			left = 0;
		for (i = 0; i < LITE_KEPT_LOOK && left && n < want; i++, left--) {
			kept = list_first_entry_or_null(&all->keepers, struct lite_kept, list);
			if (!kept)
				break;
			list_move_tail(&kept->list, &all->keepers);
			if (all_users || lite_kept_oldest(kept)->uid == uid)
				n += lite_kept_move(kept, &blocks, want - n);
		}
		spin_unlock(&all->lock);
		cond_resched();
	}
	lite_blocks_free(&blocks);
	return n;
}

/* Context: may sleep. Return: 0, for lite_kept_exit(), or -ENOMEM. */
int lite_kept_init(struct lite_memory *mem)
{
	struct lite_arenas *all = &mem->arenas;

	INIT_LIST_HEAD(&all->keepers);
	INIT_LIST_HEAD(&all->leaving);
	INIT_WORK(&all->work, lite_leaving_work);
	/* Its own workqueue, because freeing memory must not wait for LMRs. */
	all->wq = alloc_workqueue("lite-arena", WQ_UNBOUND | WQ_MEM_RECLAIM, 1);
	if (!all->wq)
		return -ENOMEM;
	all->shrinker = lite_shrinker_new(lite_shrink_count, lite_shrink_scan, mem);
	if (!all->shrinker) {
		destroy_workqueue(all->wq);
		return -ENOMEM;
	}
	mem->limit.spare = lite_kept_spare;
	return 0;
}

/* All contexts are shut. Context: may sleep. */
void lite_kept_exit(struct lite_memory *mem)
{
	lite_shrinker_free(mem->arenas.shrinker);
	/* Runs what is queued. */
	destroy_workqueue(mem->arenas.wq);
	WARN_ON_ONCE(mem->arenas.n_kept);
}
