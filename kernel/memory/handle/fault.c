// SPDX-License-Identifier: GPL-2.0
/*
 * Page faults of user mappings of LMRs (mmap). Each is an operation: it enters the handle's
 * mapping, inserts pages into the page table, and leaves. mapper/view.c removes the pages again.
 * Access through a page table entry is not checked again, so a page is inserted only if the handle
 * has all rights that mprotect(2) can give (VM_MAYWRITE).
 */
#include <linux/mm.h>
#include <linux/sched/signal.h>

#include "memory/home/home.h"
#include "memory/memory.h"
#include "ctx.h"

/* Extents that are checked while the LMR is entered once. */
#define LITE_VIEW_EXTENTS 64

/* Is it memory that a process here registered, and so has mapped? It never leaves its home. */
static bool lite_view_registered(const struct lite_mapping *m)
{
	struct lite_lmr *lmr = m->conn ? NULL : lite_lmr_get(m->mem, m->id);
	bool registered = lmr && lmr->registered;

	if (lmr)
		lite_lmr_put(lmr);
	return registered;
}

/* Check that extents of a view can be mapped, from *@at on. */
static int lite_view_check_some(const struct lite_view *v, const struct lite_mapping *m, u64 *at)
{
	u64 end = v->offset + v->length;
	int i, err = lite_bounds_check(v->offset, v->length, m->length);

	if (!err && (m->chunked || lite_view_registered(m)))
		err = -EOPNOTSUPP;
	/* All pages of an extent are alike: check the first one. */
	for (i = 0; !err && *at < end && i < LITE_VIEW_EXTENTS; i++) {
		const struct lite_extent *e = lite_extent_at(m, *at);
		size_t n = 1;

		err = PTR_ERR_OR_ZERO(lite_view_page(m, *at, &n));
		*at = e->start + e->length;
		if (!err && *at < end && !PAGE_ALIGNED(*at))
			err = -EREMOTE;
	}
	return err;
}

/*
 * Can all of a view be mapped? @a: its handle, and the right that is wanted. May sleep; killable.
 * Return: 0, -ERANGE, -EREMOTE, -EOPNOTSUPP, or see lite_access_enter().
 */
int lite_view_check(const struct lite_view *v, const struct lite_access *a)
{
	u64 at = v->offset;
	int err;

	/*
	 * Fragmented memory has millions of extents, and a change of the LMR waits for the exit, so
	 * the thread reschedules outside. The LMR may change there: each fault checks again.
	 */
	do {
		struct lite_mapping *m = lite_access_enter(a);

		if (IS_ERR(m))
			return PTR_ERR(m);
		err = lite_view_check_some(v, m, &at);
		lite_access_exit(m);
		cond_resched();
		if (!err && fatal_signal_pending(current))
			err = -EINTR;
	} while (!err && at < v->offset + v->length);
	return err;
}

static struct page *lite_view_page_at(void *m, u64 offset, size_t *n)
{
	return lite_view_page(m, offset, n);
}

/*
 * Handle a page fault: insert the page, and those around it within one page table. @v: view of the
 * VMA. @a: its handle, and the rights that mprotect(2) can give the VMA. mmap_lock is held; may
 * sleep for memory only. Return: 0; -EAGAIN: call lite_view_renew(), and try again; -ENOMEM;
 * -EBADF, -EACCES, -ERANGE, -EREMOTE, -ESTALE, -EOPNOTSUPP.
 */
int lite_view_fault(struct lite_view *v, const struct lite_access *a, struct vm_fault *vmf)
{
	struct vm_area_struct *vma = vmf->vma;
	unsigned long addr = vmf->address & PAGE_MASK;
	unsigned long start = max(addr & PMD_MASK, vma->vm_start);
	unsigned long end = min((addr & PMD_MASK) + PMD_SIZE, vma->vm_end);
	u64 offset = v->offset + (addr - vma->vm_start) + ((u64)vma->vm_pgoff << PAGE_SHIFT);
	const struct lite_mapping *stale;
	struct lite_mapping *m;
	unsigned long none = 0;
	int err;

	/* userfaultfd's marker: no page can be inserted there. */
	if (vmf->flags & FAULT_FLAG_ORIG_PTE_VALID && !pte_none(vmf->orig_pte))
		return -EOPNOTSUPP;
	/* Allocate the page table before entering. -EFAULT: no memory for an upper level. */
	if (vm_insert_pages(vma, addr, NULL, &none))
		return -ENOMEM;
	m = lite_access_tryenter(a, &stale);
	if (IS_ERR(m))
		return PTR_ERR(m);
	err = lite_view_attach(v, m, a->right & LITE_RIGHT_WRITE);
	if (!err)
		err = lite_pages_insert(vma, addr, end, lite_view_page_at, m, offset);
	if (!err)
		lite_pages_insert(vma, start, addr, lite_view_page_at, m, offset - (addr - start));
	lite_access_exit(m);
	return err;
}

/*
 * Renew the handle of a view, without waiting: asks the home once. May sleep; killable. Return: 0;
 * -EBUSY: the LMR is being changed; or see lite_access_enter().
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

/*
 * Wait until the handle of a view is usable: asks the home, and waits for changes of the LMR to
 * end; so mmap_lock should not be held. May sleep; killable. Return: 0, or see lite_access_enter().
 */
int lite_view_renew(const struct lite_access *a)
{
	struct lite_mapping *m = lite_access_enter_patiently(a);

	if (IS_ERR(m))
		return PTR_ERR(m);
	lite_access_exit(m);
	return 0;
}
