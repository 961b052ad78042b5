// SPDX-License-Identifier: GPL-2.0
/*
 * User mappings of LMRs (mmap): pages into page tables, and out of them in time.
 *
 * A page fault is an operation like any other: it enters the mapping of its
 * handle, looks where the bytes are, puts pages into the page table, and leaves.
 * What stays behind, the entries of the page table, is noted: the view is put on
 * the mapping's list of those that have pages of it. When the mapping ends,
 * whatever the reason, it is drained, so that no fault is under way and none
 * will succeed, and then all pages are taken out of the page tables of all
 * views on the list, before anybody is told that the mapping is over
 * (lite_mapping_drain()). The next fault has to renew the handle: it finds the
 * new place of the bytes, or that there is none any more, or not here; and what
 * its user may still do. For a page that is in a page table nobody asks again: so
 * one is put there only if the handle has all the rights that mprotect(2) can
 * give (VM_MAYWRITE).
 *
 * unmap_mapping_range() waits for what has to be waited for: an entry through
 * which a CPU has written is flushed from all TLBs under the lock of its page
 * table. fork() cannot hide a copy from it, as the kernel inserts the child's
 * VMA behind the parent's before it copies entries.
 *
 * Each view has an inode of its own, so that its range of the file is all of
 * it. Pages have a count each (store.c): one that somebody has pinned stays his
 * when the LMR is freed, and is nobody else's until he lets go.
 */
#include <linux/fs.h>
#include <linux/mm.h>
#include <linux/sched/signal.h>
#include <linux/wait_bit.h>

#include "memory.h"

/* Pages for one call of vm_insert_pages(), on the stack. */
#define LITE_VIEW_BATCH 32

/**
 * lite_view_init - a view of no VMA yet
 * @v: to fill
 * @mem: node's
 * @offset: in the LMR, a multiple of the page size
 * @length: bytes
 *
 * The caller sets @v->inode before anybody can have a page fault.
 *
 * Context: any.
 */
void lite_view_init(struct lite_view *v, struct lite_memory *mem, u64 offset,
		    u64 length)
{
	v->mem = mem;
	INIT_LIST_HEAD(&v->list);
	v->m = NULL;
	atomic_set(&v->zapping, 0);
	v->inode = NULL;
	v->offset = offset;
	v->length = length;
}

/**
 * lite_view_exit - the last VMA of a view is gone
 * @v: view
 *
 * Context: may sleep. Nobody looks at @v or its inode afterwards.
 */
void lite_view_exit(struct lite_view *v)
{
	spin_lock(&v->mem->views_lock);
	list_del_init(&v->list);
	v->m = NULL;
	spin_unlock(&v->mem->views_lock);
	/* Whoever has taken it off the list may be busy with its inode. */
	wait_var_event(&v->zapping, !atomic_read(&v->zapping));
}

/* Note that the view has pages of an entered mapping. */
static int lite_view_attach(struct lite_view *v, struct lite_mapping *m,
			    bool write)
{
	bool end = v->offset + PAGE_ALIGN(v->length) >= m->length;
	int err = 0;

	spin_lock(&v->mem->views_lock);
	if (!v->m) {
		v->m = m;
		list_add(&v->list, &m->views);
		m->tail |= write && end && !PAGE_ALIGNED(m->length);
	} else if (WARN_ON_ONCE(v->m != m)) {
		/* A handle never gets a new mapping before the old has ended. */
		err = -EIO;
	}
	spin_unlock(&v->mem->views_lock);
	return err;
}

/*
 * The page with the byte at an offset, and how many follow it in memory. Pages
 * that are only in part of this extent are nobody's to be mapped, but for the
 * last one of the LMR: what follows its end there is zero or the user's.
 */
static struct page *lite_view_page(const struct lite_mapping *m, u64 offset,
				   size_t *n)
{
	const struct lite_extent *e;
	size_t bytes = *n << PAGE_SHIFT;
	struct page *page;
	u64 in, left;

	if (offset >= m->length)
		return ERR_PTR(-ERANGE);
	e = &m->extents[lite_extent_find(m->extents, m->n_extents, offset)];
	if (!m->share[e->share].local)
		return ERR_PTR(m->share[e->share].lost ? -ESTALE : -EREMOTE);
	in = offset - e->start;
	left = e->length - in;
	if (offset + left == m->length)
		left = round_up(left, PAGE_SIZE);
	bytes = min_t(u64, bytes, round_down(left, PAGE_SIZE));
	if (!bytes)
		return ERR_PTR(-EREMOTE);
	page = lite_store_page(m->mem, e->addr + in, &bytes);
	if (!page)
		return ERR_PTR(-EOPNOTSUPP);
	*n = bytes >> PAGE_SHIFT;
	return page;
}

/*
 * Page tables give whole pages. What is behind the LMR's end in its last page
 * shall be zero before anybody makes the LMR longer.
 */
static void lite_mapping_wipe(struct lite_mapping *m)
{
	size_t in = offset_in_page(m->length), n = 1;
	struct page *page;

	lockdep_assert_held(&m->zap);
	if (!m->tail)
		return;
	m->tail = false;
	page = lite_view_page(m, m->length - in, &n);
	if (!IS_ERR(page))
		memset(page_address(page) + in, 0, PAGE_SIZE - in);
}

/**
 * lite_mapping_drain - wait until a mapping is used no more
 * @m: mapping that has left ACTIVE; the caller keeps its memory
 *
 * Context: may sleep. When it returns, no operation is in flight on it, and no
 * page of it is in a page table.
 */
void lite_mapping_drain(struct lite_mapping *m)
{
	struct lite_memory *mem = m->mem;
	struct lite_view *v;

	wait_for_completion(&m->drained);
	/* Whoever finds the list empty waits for who has emptied it. */
	mutex_lock(&m->zap);
	for (;;) {
		spin_lock(&mem->views_lock);
		v = list_first_entry_or_null(&m->views, struct lite_view, list);
		if (v) {
			list_del_init(&v->list);
			v->m = NULL;
			atomic_inc(&v->zapping);
		}
		spin_unlock(&mem->views_lock);
		if (!v)
			break;
		unmap_mapping_range(v->inode->i_mapping, 0, 0, 1);
		if (atomic_dec_and_test(&v->zapping))
			wake_up_var(&v->zapping);
	}
	lite_mapping_wipe(m);
	mutex_unlock(&m->zap);
}

/* It has an owner, in whose page table it is. Those of other homes are not here. */
static bool lite_view_registered(const struct lite_mapping *m)
{
	struct lite_lmr *lmr;
	bool registered;

	if (m->conn)
		return false;
	lmr = lite_lmr_get(m->mem, m->id);
	registered = lmr && lmr->registered;
	if (lmr)
		lite_lmr_put(lmr);
	return registered;
}

/**
 * lite_view_check - can all of a view be mapped?
 * @v: view
 * @a: its handle, and the right that is wanted
 *
 * Context: may sleep; killable.
 * Return: 0, -ERANGE, -EREMOTE, -EOPNOTSUPP, or as lite_access_enter().
 */
int lite_view_check(const struct lite_view *v, const struct lite_access *a)
{
	struct lite_mapping *m;
	u64 at, end = 0;
	int err;

	m = lite_access_enter(a);
	if (IS_ERR(m))
		return PTR_ERR(m);
	err = lite_bounds_check(v->offset, v->length, m->length);
	if (!err && lite_view_registered(m))
		err = -EOPNOTSUPP;
	if (!err)
		end = v->offset + v->length;
	/* Extents are whole pages, of one kind: one page of each will do. */
	for (at = v->offset; !err && at < end;) {
		u32 i = lite_extent_find(m->extents, m->n_extents, at);
		size_t n = 1;

		err = PTR_ERR_OR_ZERO(lite_view_page(m, at, &n));
		at = m->extents[i].start + m->extents[i].length;
		if (!err && at < end && !PAGE_ALIGNED(at))
			err = -EREMOTE;
		/* Fragmented memory has millions of them. */
		if (!err && fatal_signal_pending(current))
			err = -EINTR;
		cond_resched();
	}
	lite_access_exit(m);
	return err;
}

/*
 * Put the page at @addr, and what can be had of those up to @end, into the page
 * table; the error is that of the first.
 */
static int lite_view_insert(struct lite_view *v, struct lite_mapping *m,
			    struct vm_area_struct *vma, unsigned long addr,
			    unsigned long end)
{
	u64 offset = v->offset + (addr - vma->vm_start) +
		     ((u64)vma->vm_pgoff << PAGE_SHIFT);
	struct page *pages[LITE_VIEW_BATCH];
	bool first = true;

	while (addr < end) {
		size_t i, n = min_t(size_t, (end - addr) >> PAGE_SHIFT,
				    LITE_VIEW_BATCH);
		struct page *page = lite_view_page(m, offset, &n);
		unsigned long left, done = 1;
		int err = PTR_ERR_OR_ZERO(page);

		if (!err) {
			for (i = 0; i < n; i++)
				pages[i] = page + i;
			left = n;
			err = vm_insert_pages(vma, addr, pages, &left);
			done = n - left;
			/* There already: another thread's fault. */
			if (err == -EBUSY) {
				err = 0;
				done++;
			}
		}
		if (err && first)
			return err;
		/* A page that is elsewhere is passed over. */
		if (err && !IS_ERR(page))
			break;
		first = false;
		addr += done << PAGE_SHIFT;
		offset += (u64)done << PAGE_SHIFT;
	}
	return 0;
}

/**
 * lite_view_fault - a page that is not in the page table
 * @v: view of the VMA
 * @a: its handle, and the rights that the VMA may stand for, mprotect(2) included
 * @vmf: the fault
 *
 * Puts in not only that page, but all around it that one page table takes.
 *
 * Context: mmap_lock is held; waits for memory at most.
 * Return: 0; -EAGAIN: lite_view_renew() first; -ENOMEM; or why there is no such
 * page: -EBADF, -EACCES, -ERANGE, -EREMOTE, -EOPNOTSUPP.
 */
int lite_view_fault(struct lite_view *v, const struct lite_access *a,
		    struct vm_fault *vmf)
{
	struct vm_area_struct *vma = vmf->vma;
	unsigned long addr = vmf->address & PAGE_MASK;
	unsigned long start = max(addr & PMD_MASK, vma->vm_start);
	unsigned long end = min((addr & PMD_MASK) + PMD_SIZE, vma->vm_end);
	const struct lite_mapping *stale;
	struct lite_mapping *m;
	unsigned long none = 0;
	int err;

	/* A marker of userfaultfd's, where no page can be put. */
	if (vmf->flags & FAULT_FLAG_ORIG_PTE_VALID && !pte_none(vmf->orig_pte))
		return -EOPNOTSUPP;
	/* The page table, so that none is allocated while entered. */
	err = vm_insert_pages(vma, addr, NULL, &none);
	if (err)
		return err;
	m = lite_access_tryenter(a, &stale);
	if (IS_ERR(m))
		return PTR_ERR(m);
	err = lite_view_attach(v, m, a->right & LITE_RIGHT_WRITE);
	if (!err)
		err = lite_view_insert(v, m, vma, addr, end);
	if (!err && start < addr)
		lite_view_insert(v, m, vma, start, addr);
	lite_access_exit(m);
	return err;
}

/**
 * lite_view_ask - make the handle of a view usable again
 * @a: handle
 *
 * Context: may sleep; killable. Asks the home, once.
 * Return: 0; -EBUSY: the LMR is being changed; as lite_access_enter().
 */
int lite_view_ask(const struct lite_access *a)
{
	const struct lite_mapping *stale;
	struct lite_mapping *m;
	u32 home;
	u64 id;

	m = lite_access_tryenter(a, &stale);
	if (m == ERR_PTR(-EAGAIN))
		return lite_access_ask(a, stale, &home, &id);
	if (IS_ERR(m))
		return PTR_ERR(m);
	lite_access_exit(m);
	return 0;
}

/**
 * lite_view_renew - wait for the handle of a view to be usable
 * @a: handle
 *
 * Context: may sleep; killable. Better without mmap_lock: it asks the home, and
 * waits for changes of the LMR to end.
 * Return: 0, or as lite_access_enter().
 */
int lite_view_renew(const struct lite_access *a)
{
	struct lite_mapping *m;
	int err;

	do {
		m = lite_access_enter(a);
		err = PTR_ERR_OR_ZERO(m);
		if (!err)
			lite_access_exit(m);
		else if (err == -EHOSTDOWN)
			err = lite_access_await(a) ?: -EAGAIN;
	} while (err == -EAGAIN);
	return err;
}
