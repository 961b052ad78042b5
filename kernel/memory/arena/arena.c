// SPDX-License-Identifier: GPL-2.0
/*
 * Arenas: memory of a process, in blocks of 2 MB that are allocated and mapped for the device once.
 * An LMR of a part of it only describes it (Documentation/interfaces/arenas.rst, In the kernel).
 *
 * A block is memory of the store that no home has (struct lite_alloc, not in the table). Its arena,
 * later struct lite_kept, has a reference to it, and so has each LMR with a part of it. The last
 * put frees it; LMRs put theirs when no node can reach the memory (home/free.c).
 *
 * Page faults fill in a block at a time. They do not enter the node: they hold the arena's lock,
 * which lite_arenas_exit() takes, and the file keeps the node's object.
 */
#include <linux/file.h>
#include <linux/mm.h>
#include <linux/sched/mm.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>

#include "memory/memory.h"
#include "memory/store/store.h"

/* Pages per vm_insert_pages(), on the stack. */
#define LITE_INSERT_PAGES 32

/* Drop a reference. Context: process. */
void lite_arena_put(struct lite_arena *arena)
{
	if (!refcount_dec_and_test(&arena->ref))
		return;
	mmdrop(arena->mm);
	lite_kept_put(arena->kept);
	kfree(arena);
}

/* Give up all blocks, once. @keep: keep them for the next arena, if possible. May sleep. */
static void lite_arena_detach(struct lite_arena *arena, bool keep)
{
	struct lite_alloc **blocks;
	u32 i;

	mutex_lock(&arena->lock);
	blocks = arena->blocks;
	arena->blocks = NULL;
	mutex_unlock(&arena->lock);
	if (!blocks)
		return;
	/* Blocks are taken from the list's front: the next arena gets them in their order here. */
	for (i = arena->n_blocks; i--;) {
		if (!keep || !lite_kept_add(arena->kept, blocks[i], arena->mm))
			lite_store_free(blocks[i]);
		cond_resched();
	}
	kvfree(blocks);
	lite_stat_dec(arena->kept->mem->stats, LITE_STAT_ARENAS);
}

/* No VMA has the arena any more. Active on the node; the caller keeps its reference. May sleep. */
void lite_arena_close(struct lite_arena *arena)
{
	struct lite_arenas *all = &arena->kept->mem->arenas;
	bool listed;

	spin_lock(&all->lock);
	listed = !list_empty(&arena->list);
	list_del_init(&arena->list);
	spin_unlock(&all->lock);
	/* Not listed: lite_arenas_exit() has taken it, with the list's reference. */
	if (!listed)
		return;
	lite_arena_detach(arena, !READ_ONCE(arena->eager));
	lite_arena_put(arena);
}

/* Refuse early what does not fit in addition to the blocks that are kept for the process. */
static int lite_arena_room(struct lite_kept *kept, u64 length, u32 uid)
{
	u64 own, new;
	int err;

	do {
		own = lite_kept_count(kept) * LITE_ARENA_BLOCK;
		new = length - min(length, own);
		/* Kept blocks are charged already. */
		if (!new)
			return 0;
		err = lite_limit_room(&kept->mem->limit, uid, new) ?:
		      lite_store_room(kept->mem, uid, new);
		/* Repeat if making room has freed kept blocks that @own counts. */
	} while (!err && lite_kept_count(kept) * LITE_ARENA_BLOCK < own);
	return err;
}

static int lite_arena_fill(struct lite_arena *arena, bool zero, u32 uid)
{
	struct lite_memory *mem = arena->kept->mem;
	u32 n = arena->length / LITE_ARENA_BLOCK;
	struct lite_alloc *block;

	while (arena->n_blocks < n) {
		if (fatal_signal_pending(current))
			return -EINTR;
		block = lite_kept_take(arena->kept, uid);
		if (block && zero)
			lite_store_zero(block);
		if (!block)
			block = lite_store_make(mem, lite_cluster_id(mem->cl),
						mem->fab->self.incarnation, LITE_ARENA_BLOCK, uid);
		if (IS_ERR(block))
			return PTR_ERR(block);
		arena->blocks[arena->n_blocks++] = block;
	}
	return 0;
}

/*
 * Make an arena of @length bytes (whole blocks, not 0) for the current process; @kept is its open
 * file's, @flags LITE_ARENA_*. Active on the node. May sleep; killable. Return: the arena, for
 * lite_arena_close() and lite_arena_put(); ERR_PTR: -ENOSPC, -EDQUOT, -ENOMEM, -EINTR.
 */
struct lite_arena *lite_arena_new(struct lite_kept *kept, u64 length, u32 flags, u32 uid)
{
	struct lite_memory *mem = kept->mem;
	struct lite_arena *arena;
	int err;

	lite_kept_use(kept);
	/* First, because this bounds the table, too. */
	err = lite_arena_room(kept, length, uid);
	if (err)
		return ERR_PTR(err);
	arena = kzalloc(sizeof(*arena), GFP_KERNEL_ACCOUNT);
	if (!arena)
		return ERR_PTR(-ENOMEM);
	refcount_set(&arena->ref, 1);
	INIT_LIST_HEAD(&arena->list);
	mutex_init(&arena->lock);
	refcount_inc(&kept->ref);
	arena->kept = kept;
	arena->mm = current->mm;
	mmgrab(arena->mm);
	arena->eager = flags & LITE_ARENA_EAGER;
	arena->length = length;
	arena->blocks = kvcalloc(length / LITE_ARENA_BLOCK, sizeof(*arena->blocks),
				 GFP_KERNEL_ACCOUNT | __GFP_NOWARN);
	err = -ENOMEM;
	if (!arena->blocks)
		goto err_put;
	lite_stat_inc(mem->stats, LITE_STAT_ARENAS);
	err = lite_arena_fill(arena, flags & LITE_ARENA_ZERO, uid);
	if (err)
		goto err_detach;
	spin_lock(&mem->arenas.lock);
	refcount_inc(&arena->ref);
	list_add(&arena->list, &mem->arenas.all);
	spin_unlock(&mem->arenas.lock);
	return arena;

err_detach:
	lite_arena_detach(arena, false);
err_put:
	lite_arena_put(arena);
	return ERR_PTR(err);
}

/*
 * Insert pages of @of, from @offset on, into a page table from @addr to @end. Pages that @page_at
 * does not find are skipped. Fails only if the first page does. Return: 0; -EFAULT: there is no
 * memory for an upper level of the page table; other errnos of vm_insert_pages() or @page_at.
 */
int lite_pages_insert(struct vm_area_struct *vma, unsigned long addr, unsigned long end,
		      lite_page_at page_at, void *of, u64 offset)
{
	struct page *pages[LITE_INSERT_PAGES];
	bool first = true;

	while (addr < end) {
		size_t i, n = min_t(size_t, (end - addr) >> PAGE_SHIFT, LITE_INSERT_PAGES);
		struct page *page = page_at(of, offset, &n);
		unsigned long left = n, done = 1;
		int err = PTR_ERR_OR_ZERO(page);

		if (!err) {
			for (i = 0; i < n; i++)
				pages[i] = page + i;
			err = vm_insert_pages(vma, addr, pages, &left);
			done = n - left;
			if (err == -EBUSY) { /* inserted by another thread's fault */
				done++;
				err = 0;
			}
		}
		if (err && first)
			return err;
		if (err && !IS_ERR(page))
			break;
		first = false;
		addr += done << PAGE_SHIFT;
		offset += (u64)done << PAGE_SHIFT;
	}
	return 0;
}

/* See lite_page_at. */
static struct page *lite_block_page(void *of, u64 offset, size_t *n)
{
	struct lite_alloc *block = of;
	size_t bytes = *n << PAGE_SHIFT;
	struct page *page;
	u32 i;

	for (i = 0; offset >= PAGE_SIZE << block->pieces[i].order; i++)
		offset -= PAGE_SIZE << block->pieces[i].order;
	page = lite_store_page(block->mem, block->pieces[i].dma + offset, &bytes);
	*n = bytes >> PAGE_SHIFT;
	return page;
}

static vm_fault_t lite_arena_fault(struct vm_fault *vmf)
{
	struct vm_area_struct *vma = vmf->vma;
	struct lite_arena *arena = vma->vm_private_data;
	unsigned long addr = vmf->address & PAGE_MASK;
	u64 offset = (u64)vmf->pgoff << PAGE_SHIFT;
	u64 in = offset % LITE_ARENA_BLOCK;
	/* Bytes of the block that the VMA has before @addr, and from there on. */
	u64 before = min_t(u64, in, addr - vma->vm_start);
	u64 after = min_t(u64, LITE_ARENA_BLOCK - in, vma->vm_end - addr);
	int err = -ENXIO;

	/* userfaultfd's marker: no page can be inserted there. */
	if (vmf->flags & FAULT_FLAG_ORIG_PTE_VALID && !pte_none(vmf->orig_pte))
		return VM_FAULT_SIGBUS;
	mutex_lock(&arena->lock);
	if (arena->blocks && offset < arena->length) {
		struct lite_alloc *block = arena->blocks[offset / LITE_ARENA_BLOCK];

		err = lite_pages_insert(vma, addr, addr + after, lite_block_page, block, in);
		if (!err)
			lite_pages_insert(vma, addr - before, addr, lite_block_page, block,
					  in - before);
	}
	mutex_unlock(&arena->lock);
	if (!err)
		return VM_FAULT_NOPAGE;
	return err == -ENXIO ? VM_FAULT_SIGBUS : VM_FAULT_OOM;
}

/* A VMA was split, or copied to a child (MADV_DOFORK), which may use blocks longer: keep none. */
static void lite_arena_copied(struct vm_area_struct *vma)
{
	struct lite_arena *arena = vma->vm_private_data;

	if (vma->vm_mm != arena->mm)
		WRITE_ONCE(arena->eager, true);
}

const struct vm_operations_struct lite_arena_vm_ops = {
	.open = lite_arena_copied,
	.fault = lite_arena_fault,
};

/* Are @length bytes, from @addr in @vma on, a writable and contiguous part of one arena? */
static bool lite_arena_covers(struct vm_area_struct *vma, unsigned long addr, u64 length)
{
	const struct vm_area_struct *first = vma;

	/* VMAs of an arena that were split (mprotect(2), madvise(2)) do not merge again. */
	while (vma && vma->vm_ops == &lite_arena_vm_ops && vma->vm_file == first->vm_file &&
	       vma->vm_flags & VM_WRITE &&
	       vma->vm_pgoff - first->vm_pgoff == (vma->vm_start - first->vm_start) >> PAGE_SHIFT) {
		if (length <= vma->vm_end - addr)
			return true;
		vma = vma_lookup(vma->vm_mm, vma->vm_end);
	}
	return false;
}

/*
 * Is memory of the current process a writable part of one arena of this node? Takes mmap_lock, and
 * its holder may be waiting for user space: call this outside the gate. Killable. Return: 0, and
 * @range->file is NULL if it is not; lite_arena_range_put() must follow in both cases; -EINTR.
 */
int lite_arena_find(struct lite_memory *mem, unsigned long addr, u64 length,
		    struct lite_arena_range *range)
{
	struct mm_struct *mm = current->mm;
	struct vm_area_struct *vma;

	*range = (struct lite_arena_range){ .length = length };
	if (mmap_read_lock_killable(mm))
		return -EINTR;
	vma = vma_lookup(mm, addr);
	if (lite_arena_covers(vma, addr, length)) {
		struct lite_arena *arena = vma->vm_private_data;
		u64 offset = ((u64)vma->vm_pgoff << PAGE_SHIFT) + (addr - vma->vm_start);

		if (arena->kept->mem == mem && offset + length <= arena->length) {
			range->file = get_file(vma->vm_file);
			range->arena = arena;
			range->offset = offset;
		}
	}
	mmap_read_unlock(mm);
	return 0;
}

/* Undo lite_arena_find(). May sleep. */
void lite_arena_range_put(struct lite_arena_range *range)
{
	if (range->file)
		fput(range->file);
}

/* Take references to the blocks of a range. Return: the number of their extents, or -EFAULT. */
static int lite_arena_take(struct lite_alloc *alloc, const struct lite_arena_range *range,
			   u64 n_blocks)
{
	struct lite_arena *arena = range->arena;
	u64 first = range->offset / LITE_ARENA_BLOCK;
	u64 end = first + n_blocks;
	int n = 0;
	u64 i;

	mutex_lock(&arena->lock);
	for (i = first; i < end && arena->blocks; i++) {
		struct lite_alloc *block = arena->blocks[i];

		refcount_inc(&block->ref);
		alloc->blocks[alloc->n_blocks++] = block;
		n += block->n_extents;
	}
	mutex_unlock(&arena->lock);
	return n ?: -EFAULT;
}

/* Append the extents of a part of a block, from @from to @to. */
static void lite_arena_describe(struct lite_alloc *alloc, const struct lite_alloc *block, u64 from,
				u64 to)
{
	u32 i;

	for (i = 0; i < block->n_extents; i++) {
		const struct lite_extent *e = &block->extents[i];
		u64 start = max(from, e->start);
		u64 end = min(to, e->start + e->length);

		if (start < end)
			lite_extent_append(alloc->extents, &alloc->n_extents,
					   e->addr + (start - e->start), end - start, 0);
	}
}

/*
 * Make a part of an arena (lite_arena_find()) an allocation of the store, in its table; @uid, the
 * owner of the LMR, is charged for metadata. Active on the node; may sleep. Return: the allocation,
 * with a reference for lite_store_free(); ERR_PTR: -ENOSPC, -EDQUOT, -ENOMEM, -EFAULT.
 */
struct lite_alloc *lite_arena_adopt(struct lite_memory *mem, const struct lite_arena_range *range,
				    u32 uid)
{
	u64 in = range->offset % LITE_ARENA_BLOCK;
	u64 n_blocks = DIV_ROUND_UP_ULL(in + range->length, LITE_ARENA_BLOCK);
	struct lite_alloc **blocks, *alloc;
	u64 at = 0;
	int err;
	u32 i;

	blocks = kvcalloc(n_blocks, sizeof(*blocks), GFP_KERNEL_ACCOUNT | __GFP_NOWARN);
	if (!blocks)
		return ERR_PTR(-ENOMEM);
	alloc = lite_store_new(mem, lite_cluster_id(mem->cl), mem->fab->self.incarnation,
			       range->length, 0, uid);
	if (IS_ERR(alloc)) {
		kvfree(blocks);
		return alloc;
	}
	alloc->blocks = blocks;
	err = lite_arena_take(alloc, range, n_blocks);
	if (err > 0)
		err = lite_store_extents(alloc, err, sizeof(struct lite_extent));
	for (i = 0; !err && i < alloc->n_blocks; i++) {
		u64 n = min(LITE_ARENA_BLOCK - in, range->length - at);

		lite_arena_describe(alloc, alloc->blocks[i], in, in + n);
		at += n;
		in = 0;
	}
	return lite_store_enter(alloc, err);
}

/* Context: may sleep. Return: 0, for lite_arenas_exit(), or -ENOMEM. */
int lite_arenas_init(struct lite_memory *mem)
{
	spin_lock_init(&mem->arenas.lock);
	INIT_LIST_HEAD(&mem->arenas.all);
	return lite_kept_init(mem);
}

/*
 * No LMR is left, all contexts are shut, and the node has no users: take back all blocks. Processes
 * keep the pages that are in their page tables. May sleep.
 */
void lite_arenas_exit(struct lite_memory *mem)
{
	struct lite_arenas *all = &mem->arenas;
	struct lite_arena *arena;

	lite_kept_exit(mem);
	for (;;) {
		spin_lock(&all->lock);
		arena = list_first_entry_or_null(&all->all, struct lite_arena, list);
		if (arena)
			list_del_init(&arena->list);
		spin_unlock(&all->lock);
		if (!arena)
			return;
		lite_arena_detach(arena, false);
		lite_arena_put(arena);
	}
}
