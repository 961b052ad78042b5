// SPDX-License-Identifier: GPL-2.0
/*
 * Lazy unmapping: blocks of arenas that a process has unmapped wait for its next arena, neither
 * unmapped for the device nor zeroed.
 *
 * Blocks are kept per open file, and for one process (mm): what it left in them is its own. An open
 * file that several processes use keeps blocks for the first of them that is alive; the others'
 * are freed when unmapped.
 *
 * A kept block may still belong to an LMR, which has a reference to it until no node can reach it.
 * Such a block is not given out again, and freeing it here only drops a reference. Nothing takes a
 * new reference to a kept block, so one that was seen with no other stays so.
 *
 * Blocks leave when the list is full, when memory is short (the shrinker), when the process or the
 * open file ends, and when a fence has failed since they were mapped: then they are quarantined.
 * The shrinker runs wherever memory is allocated, and freeing a block takes locks under which
 * memory is allocated: so a work item frees them.
 */
#include <linux/mm.h>
#include <linux/sched/mm.h>
#include <linux/shrinker.h>
#include <linux/slab.h>

#include "compat.h"
#include "memory/memory.h"
#include "memory/store/store.h"

/* Pages of a block. */
#define LITE_BLOCK_PAGES (LITE_ARENA_BLOCK >> PAGE_SHIFT)

/* Context: may sleep. Return: for lite_kept_shut(), or NULL. */
struct lite_kept *lite_kept_new(struct lite_memory *mem)
{
	struct lite_kept *kept = kzalloc(sizeof(*kept), GFP_KERNEL_ACCOUNT);

	if (!kept)
		return NULL;
	kept->mem = mem;
	kref_init(&kept->ref);
	INIT_LIST_HEAD(&kept->list);
	INIT_LIST_HEAD(&kept->blocks);
	return kept;
}

static void lite_kept_release(struct kref *ref)
{
	struct lite_kept *kept = container_of(ref, struct lite_kept, ref);

	if (kept->mm)
		mmdrop(kept->mm);
	kfree(kept);
}

/* Drop a reference. Context: process. */
void lite_kept_put(struct lite_kept *kept)
{
	kref_put(&kept->ref, lite_kept_release);
}

/* Move up to @max blocks to a list. Return: their number. */
static u32 lite_kept_move(struct lite_kept *kept, struct list_head *to, u32 max)
{
	struct lite_arenas *all = &kept->mem->arenas;
	u32 n = 0;

	lockdep_assert_held(&all->lock);
	while (n < max && kept->n) {
		list_move_tail(kept->blocks.prev, to);
		kept->n--;
		n++;
	}
	if (!kept->n)
		list_del_init(&kept->list);
	WRITE_ONCE(all->n_kept, all->n_kept - n);
	lite_stat_add(kept->mem->stats, LITE_STAT_KEPT_PAGES, -(s64)(n * LITE_BLOCK_PAGES));
	return n;
}

static void lite_blocks_free(struct lite_memory *mem, struct list_head *blocks)
{
	struct lite_alloc *block, *next;

	list_for_each_entry_safe(block, next, blocks, list) {
		list_del_init(&block->list);
		lite_store_free(mem, block);
		cond_resched();
	}
}

/* Has the process ended, or does it run another program? */
static bool lite_mm_over(const struct mm_struct *mm)
{
	return !atomic_read(&mm->mm_users);
}

/*
 * The current process is going to make an arena: blocks are kept for it from now on, unless they
 * are kept for a process that is alive. May sleep.
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
	lite_blocks_free(kept->mem, &blocks);
	if (old)
		mmdrop(old);
}

/* A block for the current process, as it left it; or NULL. @uid: to be charged. Any context. */
struct lite_alloc *lite_kept_take(struct lite_kept *kept, u32 uid)
{
	struct lite_memory *mem = kept->mem;
	struct lite_arenas *all = &mem->arenas;
	struct lite_alloc *block, *found = NULL;

	spin_lock(&all->lock);
	if (kept->mm != current->mm)
		goto out;
	/* At most LITE_ARENA_KEPT_MAX. */
	list_for_each_entry(block, &kept->blocks, list) {
		if (kref_read(&block->ref) != 1 || block->uid != uid ||
		    block->since != lite_dma_since(mem->fab))
			continue;
		/* After all that the last user of the reference did. */
		smp_acquire__after_ctrl_dep();
		found = block;
		break;
	}
	if (found) {
		list_del_init(&found->list);
		if (!--kept->n)
			list_del_init(&kept->list);
		WRITE_ONCE(all->n_kept, all->n_kept - 1);
		lite_stat_add(mem->stats, LITE_STAT_KEPT_PAGES, -(s64)LITE_BLOCK_PAGES);
	}
out:
	spin_unlock(&all->lock);
	return found;
}

/*
 * Keep a block that process @mm has unmapped. Any context. Return: whether it is kept, with the
 * caller's reference.
 */
bool lite_kept_add(struct lite_kept *kept, struct lite_alloc *block, const struct mm_struct *mm)
{
	struct lite_memory *mem = kept->mem;
	struct lite_arenas *all = &mem->arenas;
	bool keep;

	spin_lock(&all->lock);
	keep = !kept->closed && kept->mm == mm && !lite_mm_over(mm) &&
	       kept->n < LITE_ARENA_KEPT_MAX && block->since == lite_dma_since(mem->fab);
	if (keep) {
		list_add(&block->list, &kept->blocks);
		if (!kept->n++)
			list_add_tail(&kept->list, &all->keepers);
		WRITE_ONCE(all->n_kept, all->n_kept + 1);
		lite_stat_add(mem->stats, LITE_STAT_KEPT_PAGES, LITE_BLOCK_PAGES);
	}
	spin_unlock(&all->lock);
	return keep;
}

static void lite_kept_drop(struct lite_kept *kept, bool close)
{
	struct lite_arenas *all = &kept->mem->arenas;
	LIST_HEAD(blocks);

	spin_lock(&all->lock);
	kept->closed |= close;
	if (close || (kept->mm && lite_mm_over(kept->mm)))
		lite_kept_move(kept, &blocks, U32_MAX);
	spin_unlock(&all->lock);
	lite_blocks_free(kept->mem, &blocks);
}

/* A process closes the open file: if it has ended, free what was kept for it. May sleep. */
void lite_kept_flush(struct lite_kept *kept)
{
	lite_kept_drop(kept, false);
}

/* The open file is closed, or the node stops: keep nothing. Drops a reference. May sleep. */
void lite_kept_shut(struct lite_kept *kept)
{
	lite_kept_drop(kept, true);
	lite_kept_put(kept);
}

/* ---- shortage of memory -------------------------------------------------- */

static void lite_leaving_work(struct work_struct *work)
{
	struct lite_memory *mem = container_of(work, struct lite_memory, arenas.work);
	LIST_HEAD(blocks);

	spin_lock(&mem->arenas.lock);
	list_splice_init(&mem->arenas.leaving, &blocks);
	spin_unlock(&mem->arenas.lock);
	lite_blocks_free(mem, &blocks);
}

static unsigned long lite_kept_count(struct shrinker *shrinker, struct shrink_control *sc)
{
	struct lite_memory *mem = lite_shrinker_data(shrinker);
	u32 n = READ_ONCE(mem->arenas.n_kept);

	return n ? n * LITE_BLOCK_PAGES : SHRINK_EMPTY;
}

/* Give away the blocks unmapped longest ago, of each open file in turn. */
static unsigned long lite_kept_scan(struct shrinker *shrinker, struct shrink_control *sc)
{
	struct lite_memory *mem = lite_shrinker_data(shrinker);
	u32 want = DIV_ROUND_UP(sc->nr_to_scan, LITE_BLOCK_PAGES);
	struct lite_arenas *all = &mem->arenas;
	struct lite_kept *kept;
	u32 n = 0;

	spin_lock(&all->lock);
	while (n < want && !list_empty(&all->keepers)) {
		kept = list_first_entry(&all->keepers, struct lite_kept, list);
		list_move_tail(&kept->list, &all->keepers);
		n += lite_kept_move(kept, &all->leaving, 1);
	}
	spin_unlock(&all->lock);
	if (!n)
		return SHRINK_STOP;
	queue_work(mem->wq, &all->work);
	sc->nr_scanned = n * LITE_BLOCK_PAGES;
	return n * LITE_BLOCK_PAGES;
}

/* Context: may sleep. Return: 0, for lite_kept_exit(), or -ENOMEM. */
int lite_kept_init(struct lite_memory *mem)
{
	struct lite_arenas *all = &mem->arenas;

	INIT_LIST_HEAD(&all->keepers);
	INIT_LIST_HEAD(&all->leaving);
	INIT_WORK(&all->work, lite_leaving_work);
	all->shrinker = lite_shrinker_new(lite_kept_count, lite_kept_scan, mem);
	return all->shrinker ? 0 : -ENOMEM;
}

/* All contexts are shut. Context: may sleep. */
void lite_kept_exit(struct lite_memory *mem)
{
	lite_shrinker_free(mem->arenas.shrinker);
	flush_work(&mem->arenas.work);
	WARN_ON_ONCE(mem->arenas.n_kept);
}
