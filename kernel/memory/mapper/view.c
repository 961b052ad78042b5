// SPDX-License-Identifier: GPL-2.0
/*
 * User mappings of LMRs (mmap).
 *
 * A page fault is an operation: it enters the mapping of the handle, looks up
 * the pages, inserts them into the page table, and leaves. It puts the view on
 * the mapping's list of views that have pages of it. When the mapping ends, for
 * any reason, lite_mapping_drain() first waits for the faults in flight; no
 * later one succeeds. Then it removes the pages of all listed views from page
 * tables, before the end of the mapping is reported. The next fault has to
 * renew the handle, and so finds the LMR's new place and the user's present
 * rights.
 *
 * Access through a page table entry is not checked again. So a page is inserted
 * only if the handle has all rights that mprotect(2) can give (VM_MAYWRITE).
 *
 * unmap_mapping_range() is enough: an entry through which a CPU has written is
 * flushed from all TLBs under the page table lock. fork() cannot hide a copy
 * from it, as the kernel inserts the child's VMA behind the parent's before it
 * copies entries.
 *
 * Each view has its own inode, so it can unmap the whole file. Each page has
 * its own reference count (store.c): a page that is pinned when the LMR is
 * freed is not reused before it is unpinned.
 */
#include <linux/fs.h>
#include <linux/mm.h>
#include <linux/sched/signal.h>
#include <linux/wait_bit.h>

#include "memory/handle/ctx.h"
#include "memory/home/home.h"
#include "memory/memory.h"
#include "memory/store/store.h"
#include "view.h"

/* Pages per vm_insert_pages(), on the stack. */
#define LITE_VIEW_BATCH 32

/**
 * lite_view_init - initialise a view without VMAs
 * @v: to fill
 * @mem: node's
 * @offset: in the LMR, a multiple of the page size
 * @length: bytes
 *
 * The caller sets @v->inode before the first page fault can happen.
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
 * Context: may sleep. @v and its inode are not used any more afterwards.
 */
void lite_view_exit(struct lite_view *v)
{
	spin_lock(&v->mem->views_lock);
	list_del_init(&v->list);
	v->m = NULL;
	spin_unlock(&v->mem->views_lock);
	/* lite_mapping_drain() may still be using the inode. */
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
		/* A handle gets a new mapping after the old one ended. */
		err = -EIO;
	}
	spin_unlock(&v->mem->views_lock);
	return err;
}

/*
 * The page at an offset; @n is set to the contiguous pages from there. A page
 * that is only partly in this extent cannot be mapped, except for the last one
 * of the LMR: the rest of that holds zeroes, or what users have written there.
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
 * Zero the rest of the last page, which users can write to, too, before the LMR
 * can grow.
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
 * lite_mapping_drain - wait until a mapping is unused, and unmap its pages
 * @m: mapping that has left ACTIVE; the caller keeps its memory
 *
 * Context: may sleep. On return no operation is in flight on it, and none of
 * its pages is in a page table.
 */
void lite_mapping_drain(struct lite_mapping *m)
{
	struct lite_memory *mem = m->mem;
	struct lite_view *v;

	wait_for_completion(&m->drained);
	/* A second caller must wait until the first has unmapped all views. */
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

/*
 * Registered user memory is in its owner's page table. It stays at its home, so
 * with another home it is not here.
 */
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
 * lite_view_check - check that all of a view can be mapped
 * @v: view
 * @a: its handle, and the right that is wanted
 *
 * Context: may sleep; killable.
 * Return: 0, -ERANGE, -EREMOTE, -EOPNOTSUPP, or see lite_access_enter().
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
	/* All pages of an extent are alike: check the first one. */
	for (at = v->offset; !err && at < end;) {
		u32 i = lite_extent_find(m->extents, m->n_extents, at);
		size_t n = 1;

		err = PTR_ERR_OR_ZERO(lite_view_page(m, at, &n));
		at = m->extents[i].start + m->extents[i].length;
		if (!err && at < end && !PAGE_ALIGNED(at))
			err = -EREMOTE;
		/* Fragmented memory has millions of extents. */
		if (!err && fatal_signal_pending(current))
			err = -EINTR;
		cond_resched();
	}
	lite_access_exit(m);
	return err;
}

/*
 * Insert the page at @addr, and what is available of the pages up to @end.
 * Fails only if the first page does.
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
			/* Inserted by another thread's fault. */
			if (err == -EBUSY) {
				err = 0;
				done++;
			}
		}
		if (err && first)
			return err;
		/* Skip a page that is not here. */
		if (err && !IS_ERR(page))
			break;
		first = false;
		addr += done << PAGE_SHIFT;
		offset += (u64)done << PAGE_SHIFT;
	}
	return 0;
}

/**
 * lite_view_fault - handle a page fault
 * @v: view of the VMA
 * @a: its handle, and the rights that mprotect(2) can give the VMA
 * @vmf: the fault
 *
 * Inserts the pages around the faulting one, too, within one page table.
 *
 * Context: mmap_lock is held; may sleep for memory only.
 * Return: 0; -EAGAIN: call lite_view_renew(), and try again; -ENOMEM; -EBADF,
 * -EACCES, -ERANGE, -EREMOTE, -ESTALE, -EOPNOTSUPP.
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

	/* userfaultfd's marker: no page can be inserted there. */
	if (vmf->flags & FAULT_FLAG_ORIG_PTE_VALID && !pte_none(vmf->orig_pte))
		return -EOPNOTSUPP;
	/* Allocate the page table before entering. */
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
 * lite_view_ask - renew the handle of a view, without waiting
 * @a: handle
 *
 * Context: may sleep; killable. Asks the home once.
 * Return: 0; -EBUSY: the LMR is being changed; or see lite_access_enter().
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
 * lite_view_renew - wait until the handle of a view is usable
 * @a: handle
 *
 * Asks the home, and waits for changes of the LMR to end; so mmap_lock should
 * not be held.
 *
 * Context: may sleep; killable.
 * Return: 0, or see lite_access_enter().
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
