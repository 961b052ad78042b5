// SPDX-License-Identifier: GPL-2.0
/*
 * LMRs made of a process's memory: the store's part. handle/create.c makes the LMR.
 *
 * Pages are pinned long-term, as for a memory region of verbs, and accounted to the user in the
 * same counter as io_uring's: a per-process account would be multiplied by fork(2).
 *
 * Operations of this node, which have only the device address, look it up in the interval tree of
 * runs. A page may be registered many times, so runs may overlap. A run does not cross into another
 * large folio: hardened usercopy rejects copies that do.
 *
 * File system pages are refused, because unpinning dirty ones takes the page lock, which a file
 * system in user space may hold for ever. Driver mappings are refused, too (above all LITE's own):
 * a process may use them only as long as the driver allows. Pages are checked while pinned, so the
 * result stays valid.
 */
#include <linux/capability.h>
#include <linux/interval_tree_generic.h>
#include <linux/mm.h>
#include <linux/pagemap.h>
#include <linux/sched/mm.h>
#include <linux/sched/signal.h>
#include <linux/sched/user.h>
#include <linux/slab.h>

#include "memory/memory.h"
#include "store.h"

/* Longest run: the same 4 MB as the store's pieces. */
#define LITE_RUN_PAGES 1024U
/* Initial size of the table of runs. */
#define LITE_RUNS_FIRST 16
/* Metadata per run. */
#define LITE_RUN_COST (sizeof(struct lite_pinned_run) + sizeof(struct lite_extent))
/* Pages pinned per call. */
#define LITE_PIN_BATCH (PAGE_SIZE / sizeof(struct page *))

static u64 lite_run_start(const struct lite_pinned_run *run)
{
	return run->start;
}

static u64 lite_run_last(const struct lite_pinned_run *run)
{
	return run->last;
}

INTERVAL_TREE_DEFINE(struct lite_pinned_run, rb, u64, subtree_last, lite_run_start, lite_run_last,
		     static inline, lite_runs)

/* As lite_store_address(), but of registered memory only. Context: process. */
void *lite_pinned_address(struct lite_memory *mem, u64 dma, size_t *n)
{
	struct lite_pinned_run *run;
	void *addr = NULL;

	read_lock(&mem->runs_lock);
	run = lite_runs_iter_first(&mem->runs, dma, dma);
	if (run) {
		addr = page_address(run->page) + (dma - run->start);
		*n = min_t(u64, *n, run->last - dma + 1);
	}
	read_unlock(&mem->runs_lock);
	return addr;
}

/* How many pages the current process may have locked. */
unsigned long lite_locked_limit(void)
{
	return capable(CAP_IPC_LOCK) ? ULONG_MAX : rlimit(RLIMIT_MEMLOCK) >> PAGE_SHIFT;
}

/* Count pages as locked, unless the user would then have more than @limit. Context: any. */
bool lite_locked_charge(struct user_struct *user, struct mm_struct *mm, unsigned long limit,
			unsigned long n)
{
	long locked = atomic_long_read(&user->locked_vm);

	do {
		if (n > limit || (unsigned long)locked > limit - n)
			return false;
	} while (!atomic_long_try_cmpxchg(&user->locked_vm, &locked, locked + n));
	atomic64_add(n, &mm->pinned_vm);
	return true;
}

void lite_locked_uncharge(struct user_struct *user, struct mm_struct *mm, unsigned long n)
{
	atomic_long_sub(n, &user->locked_vm);
	atomic64_sub(n, &mm->pinned_vm);
}

/* Only anonymous, hugetlb and shmem memory may become an LMR. */
static bool lite_pinned_allowed(struct page *page)
{
	struct folio *folio = page_folio(page);

	if (folio_test_anon(folio) || PageHuge(page))
		return true;
	/* shmem is swap-backed. Driver pages and pages just truncated have no mapping. */
	return READ_ONCE(folio->mapping) && folio_test_swapbacked(folio);
}

static bool lite_run_continues(const struct lite_pinned *pin, const struct lite_pinned_run *run,
			       struct page *page)
{
	struct page *last = run->page + run->n - 1;

	if (page != last + 1 || page_to_pfn(page) != page_to_pfn(last) + 1 ||
	    run->n == min_t(size_t, LITE_RUN_PAGES, pin->mem->fab->map_max >> PAGE_SHIFT))
		return false;
	return page_folio(page) == page_folio(last) ||
	       (!PageCompound(page) && !PageCompound(last));
}

/* Add a page to the runs, and take over its pin, if any; on failure the caller keeps that. */
static int lite_pinned_add(struct lite_pinned *pin, struct page *page, u32 *room)
{
	struct lite_pinned_run *runs;

	if (!pin->borrowed && !lite_pinned_allowed(page))
		return -EOPNOTSUPP;
	if (pin->n_runs && lite_run_continues(pin, &pin->runs[pin->n_runs - 1], page)) {
		pin->runs[pin->n_runs - 1].n++;
		return 0;
	}
	runs = lite_table_grow(pin->runs, sizeof(*runs), pin->n_runs, room, LITE_RUNS_FIRST);
	if (!runs)
		return -ENOMEM;
	pin->runs = runs;
	pin->runs[pin->n_runs++] = (struct lite_pinned_run){ .page = page, .n = 1 };
	return 0;
}

/* Pin up to @want pages. Return: their number, or a negative errno. */
static int lite_pinned_batch(struct lite_pinned *pin, unsigned long addr, unsigned long want,
			     struct page **pages, u32 *room)
{
	int n, i, err = 0;

	n = pin_user_pages_fast(addr, min(want, LITE_PIN_BATCH), FOLL_WRITE | FOLL_LONGTERM, pages);
	if (n <= 0)
		return n == -ERESTARTSYS ? -EINTR : n ?: -EFAULT;
	for (i = 0; i < n && !err; i++)
		err = lite_pinned_add(pin, pages[i], room);
	if (!err)
		return n;
	i--;
	unpin_user_pages(&pages[i], n - i);
	return err;
}

static int lite_pinned_pin(struct lite_pinned *pin, unsigned long addr)
{
	unsigned long left = pin->n_pages;
	struct page **pages;
	u32 room = 0;
	int ret = 0;

	if (!access_ok((void __user *)addr, left << PAGE_SHIFT))
		return -EFAULT;
	pages = (struct page **)__get_free_page(GFP_KERNEL);
	if (!pages)
		return -ENOMEM;
	while (left) {
		if (fatal_signal_pending(current)) {
			ret = -EINTR;
			break;
		}
		ret = lite_pinned_batch(pin, addr, left, pages, &room);
		if (ret < 0)
			break;
		left -= ret;
		addr += (unsigned long)ret << PAGE_SHIFT;
		cond_resched();
	}
	free_page((unsigned long)pages);
	return min(ret, 0);
}

/* Unpin and unaccount memory that is not mapped for the device any more. May sleep. */
void lite_pinned_release(struct lite_pinned *pin)
{
	u32 i;

	for (i = 0; i < pin->n_runs && !pin->borrowed; i++) {
		/* Any page may have been written, by peers too. */
		unpin_user_page_range_dirty_lock(pin->runs[i].page, pin->runs[i].n, true);
		cond_resched();
	}
	kvfree(pin->runs);
	if (!pin->borrowed) {
		lite_locked_uncharge(pin->user, pin->mm, pin->n_pages);
		free_uid(pin->user);
		mmdrop(pin->mm);
	}
	kfree(pin);
}

/*
 * Pin whole pages of the current process. May wait for user space (page faults), so call it outside
 * the gate; killable. Return: the memory, for lite_pinned_adopt() or lite_pinned_release();
 * ERR_PTR: -EDQUOT, -EFAULT, -EOPNOTSUPP, -ENOMEM, -EINTR.
 */
struct lite_pinned *lite_pinned_new(struct lite_memory *mem, unsigned long addr, u64 length)
{
	struct lite_pinned *pin = kzalloc(sizeof(*pin), GFP_KERNEL_ACCOUNT);
	int err;

	if (!pin)
		return ERR_PTR(-ENOMEM);
	pin->mem = mem;
	pin->user = current_user();
	pin->mm = current->mm;
	pin->n_pages = length >> PAGE_SHIFT;
	if (!lite_locked_charge(pin->user, pin->mm, lite_locked_limit(), pin->n_pages)) {
		kfree(pin);
		return ERR_PTR(-EDQUOT);
	}
	get_uid(pin->user);
	mmgrab(pin->mm);
	err = lite_pinned_pin(pin, addr);
	if (err) {
		lite_pinned_release(pin);
		return ERR_PTR(err);
	}
	return pin;
}

/*
 * As lite_pinned_new(), but for the pages of a chunk, without references to them. The process may
 * have lost them already: lite_chunk_add() checks that, and the mmu notifier tells later. @write:
 * peers may write to them. May sleep. Return: for lite_pinned_adopt(); ERR_PTR(-ENOMEM).
 */
struct lite_pinned *lite_pinned_borrow(struct lite_memory *mem, struct page **pages, u32 n,
				       bool write)
{
	struct lite_pinned *pin = kzalloc(sizeof(*pin), GFP_KERNEL_ACCOUNT);
	u32 room = 0, i;
	int err = 0;

	if (!pin)
		return ERR_PTR(-ENOMEM);
	pin->mem = mem;
	pin->n_pages = n;
	pin->borrowed = true;
	INIT_LIST_HEAD(&pin->lease);
	pin->written = write;
	for (i = 0; i < n && !err; i++)
		err = lite_pinned_add(pin, pages[i], &room);
	if (!err)
		return pin;
	lite_pinned_release(pin);
	return ERR_PTR(err);
}

/*
 * Give borrowed pages back. @lost: they are in quarantine, where a reference keeps them for good.
 * Pages that were never exposed may be in other use by now: leave them alone.
 */
static void lite_run_return(const struct lite_pinned *pin, const struct lite_pinned_run *run,
			    bool lost)
{
	u32 i;

	if (!pin->exposed)
		return;
	if (lost)
		lite_limit_lose(&pin->mem->limit, (u64)run->n << PAGE_SHIFT);
	for (i = 0; i < run->n; i++) {
		if (lost)
			get_page(run->page + i);
		/* The page tables do not show writes of the device. */
		if (pin->written)
			set_page_dirty(run->page + i);
	}
}

/*
 * Unmap the memory of an LMR, which no node can reach, for the device. @since: lite_dma_since()
 * before it was mapped. Allocates nothing. May sleep.
 */
void lite_pinned_unmap(struct lite_memory *mem, struct lite_pinned *pin, u32 since)
{
	u32 i;

	/* The lease may end first: the process keeps the pages while nodes can reach them. */
	if (pin->borrowed)
		lite_lease_end(pin);
	for (i = 0; i < pin->n_mapped; i++) {
		struct lite_pinned_run *run = &pin->runs[i];
		bool lost;

		write_lock(&mem->runs_lock);
		lite_runs_remove(run, &mem->runs);
		write_unlock(&mem->runs_lock);
		lost = !lite_dma_unmap_page(mem->fab, run->start, (size_t)run->n << PAGE_SHIFT,
					    since);
		if (pin->borrowed)
			lite_run_return(pin, run, lost);
		if (lost) {
			pin->n_pages -= run->n;
			run->n = 0;
		}
		cond_resched();
	}
	pin->n_mapped = 0;
}

/* Unmap, unless that was done, and unpin. Quarantined pages stay pinned, accounted. May sleep. */
void lite_pinned_free(struct lite_memory *mem, struct lite_pinned *pin, u32 since)
{
	u32 n_pages = pin->borrowed ? 0 : pin->n_pages;

	lite_pinned_unmap(mem, pin, since);
	lite_pinned_release(pin);
	lite_stat_add(mem->stats, LITE_STAT_PINNED_PAGES, -(s64)n_pages);
}

static int lite_pinned_map(struct lite_memory *mem, struct lite_pinned *pin)
{
	int err;

	while (pin->n_mapped < pin->n_runs) {
		struct lite_pinned_run *run = &pin->runs[pin->n_mapped];
		size_t size = (size_t)run->n << PAGE_SHIFT;

		err = lite_dma_map_page(mem->fab, run->page, size, &run->start);
		if (err)
			return err;
		run->last = run->start + size - 1;
		write_lock(&mem->runs_lock);
		lite_runs_insert(run, &mem->runs);
		write_unlock(&mem->runs_lock);
		pin->n_mapped++;
		cond_resched();
	}
	return 0;
}

/*
 * Make pinned memory an allocation of the store, in its table. @pin: consumed, also on failure;
 * @uid: owner of the LMR, charged for metadata. May sleep. Return: the memory, with a reference for
 * lite_store_free(); ERR_PTR: -ENOSPC, -EDQUOT, -ENOMEM.
 */
struct lite_alloc *lite_pinned_adopt(struct lite_memory *mem, struct lite_pinned *pin, u32 uid)
{
	struct lite_alloc *alloc;
	int err;
	u32 i;

	if (!pin->borrowed)
		lite_stat_add(mem->stats, LITE_STAT_PINNED_PAGES, pin->n_pages);
	alloc = lite_store_new(mem, lite_cluster_id(mem->cl), mem->fab->self.incarnation,
			       (u64)pin->n_pages << PAGE_SHIFT, 0, uid);
	if (IS_ERR(alloc)) {
		lite_pinned_free(mem, pin, 0);
		return alloc;
	}
	alloc->pinned = pin;
	alloc->since = lite_dma_since(mem->fab);
	err = lite_store_extents(alloc, pin->n_runs, LITE_RUN_COST) ?: lite_pinned_map(mem, pin);
	for (i = 0; i < pin->n_runs && !err; i++)
		lite_extent_append(alloc->extents, &alloc->n_extents, pin->runs[i].start,
				   (u64)pin->runs[i].n << PAGE_SHIFT, 0);
	return lite_store_enter(alloc, err);
}
