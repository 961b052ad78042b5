// SPDX-License-Identifier: GPL-2.0
/*
 * Which rings a process sees through its inbox, and when not any more.
 *
 * Normal operation: with the first request from a ring it gets a slot in the
 * process's range, which it has for as long as it lives. Page faults put its
 * pages into the page table; no page but those of rings in slots, and of the
 * control, ever gets there.
 *
 * The end: when no request will come from the ring any more - it was given back,
 * its connection has died, or the inbox is shut - and the process has given back
 * those it had, a work item takes the pages out of the page table, and only then
 * is the slot free for another ring. The ring's memory is kept by the slot until
 * then; and a page that the process has pinned (O_DIRECT, a pipe) is its own until
 * it lets it go, since each has a count (alloc_pages_exact()): nobody else's memory
 * is ever seen.
 *
 * There is always a slot: rings of one function are of one size, all rings of a
 * node have no more bytes than LITE_POOL_RINGS, slots that are taken are of
 * memory that counts, and there are as many as rings fit into that.
 *
 * What runs concurrently: faults, which look for the slot and put pages in under
 * inbox->map, against the work item, which marks the slot and takes pages out under
 * it. Requests come and go under svc->lock.
 */
#include <linux/fs.h>
#include <linux/mm.h>
#include <linux/slab.h>

#include "inbox.h"

static void lite_inbox_zap(struct lite_inbox *inbox)
{
	lockdep_assert_held(&inbox->file->svc->lock);
	kref_get(&inbox->ref);
	if (!queue_work(inbox->file->svc->wq, &inbox->zap_work))
		lite_inbox_put_ref(inbox);
}

/**
 * lite_inbox_view - a ring in an inbox
 * @inbox: not shut; svc->lock is held
 * @ring: has a request for it
 *
 * Context: process; receive handlers.
 * Return: it, with a slot, or NULL: there is no memory.
 */
struct lite_inbox_view *lite_inbox_view(struct lite_inbox *inbox,
					struct lite_ring *ring)
{
	struct lite_inbox_view *view;

	lockdep_assert_held(&inbox->file->svc->lock);
	list_for_each_entry(view, &ring->views, of_ring) {
		if (view->inbox == inbox)
			return view;
	}
	/* Those of the function have one size (lite_ring_func()). */
	if (WARN_ON_ONCE(ring->area->n * ring->area->chunk_bytes !=
			 inbox->ring_bytes))
		return NULL;
	view = kzalloc(sizeof(*view), GFP_ATOMIC | __GFP_NOWARN);
	if (!view)
		return NULL;
	view->inbox = inbox;
	view->area = ring->area;
	/*
	 * From here on a fault finds it, without svc->lock; which keeps inbox and
	 * area until it has references of its own.
	 */
	if (xa_alloc(&inbox->views, &view->slot, view,
		     XA_LIMIT(0, inbox->slots - 1),
		     GFP_ATOMIC | __GFP_NOWARN)) {
		kfree(view);
		return NULL;
	}
	kref_get(&inbox->ref);
	kref_get(&ring->area->ref);
	list_add(&view->of_ring, &ring->views);
	return view;
}

/**
 * lite_inbox_view_leave - a request was given back
 * @view: of its ring; svc->lock is held
 */
void lite_inbox_view_leave(struct lite_inbox_view *view)
{
	if (!--view->held && view->ended)
		lite_inbox_zap(view->inbox);
}

/**
 * lite_inbox_view_end - no requests come from a ring any more
 * @view: of it; maybe ended; svc->lock is held
 */
void lite_inbox_view_end(struct lite_inbox_view *view)
{
	if (view->ended)
		return;
	view->ended = true;
	list_del(&view->of_ring);
	if (!view->held)
		lite_inbox_zap(view->inbox);
}

/**
 * lite_inbox_ring_end - likewise, in all inboxes
 * @ring: gone; svc->lock is held
 */
void lite_inbox_ring_end(struct lite_ring *ring)
{
	struct lite_inbox_view *view, *tmp;

	list_for_each_entry_safe(view, tmp, &ring->views, of_ring)
		lite_inbox_view_end(view);
}

/* One that nobody uses any more, or NULL. */
static struct lite_inbox_view *lite_inbox_ended(struct lite_inbox *inbox)
{
	struct lite_inbox_view *view;
	unsigned long i;

	lockdep_assert_held(&inbox->map);
	spin_lock(&inbox->file->svc->lock);
	xa_for_each(&inbox->views, i, view) {
		if (view->ended && !view->held)
			break;
	}
	spin_unlock(&inbox->file->svc->lock);
	return view;
}

/**
 * lite_inbox_zap_work - take rings that have ended out of page tables
 * @work: of an inbox, with a reference
 */
void lite_inbox_zap_work(struct work_struct *work)
{
	struct lite_inbox *inbox = container_of(work, struct lite_inbox,
						zap_work);
	struct lite_service *svc = inbox->file->svc;
	struct lite_inbox_view *view;

	mutex_lock(&inbox->map);
	while ((view = lite_inbox_ended(inbox))) {
		view->zapped = true;
		if (inbox->inode)
			unmap_mapping_range(inbox->inode->i_mapping,
					    LITE_INBOX_RINGS +
						    (u64)view->slot *
							    inbox->ring_bytes,
					    inbox->ring_bytes, 1);
		/* The slot before the memory: then there is always one. */
		spin_lock(&svc->lock);
		xa_erase(&inbox->views, view->slot);
		spin_unlock(&svc->lock);
		lite_area_put(view->area);
		lite_inbox_put_ref(inbox);
		kfree(view);
		cond_resched();
	}
	mutex_unlock(&inbox->map);
	lite_inbox_put_ref(inbox);
}

/**
 * lite_inbox_mapped - page tables will have pages of an inbox
 * @inbox: not mapped yet
 * @inode: what they are found by, until lite_inbox_unmapped()
 *
 * Context: may sleep.
 */
void lite_inbox_mapped(struct lite_inbox *inbox, struct inode *inode)
{
	mutex_lock(&inbox->map);
	inbox->inode = inode;
	mutex_unlock(&inbox->map);
}

/**
 * lite_inbox_unmapped - the last mapping of an inbox is gone
 * @inbox: with a reference, which is put; nobody looks at its inode afterwards
 * @exited: so is its address space
 *
 * Context: may sleep.
 */
void lite_inbox_unmapped(struct lite_inbox *inbox, bool exited)
{
	struct lite_service *svc = inbox->file->svc;

	spin_lock(&svc->lock);
	lite_inbox_shut(inbox, -ENOENT);
	lite_inbox_unsee(inbox, exited);
	spin_unlock(&svc->lock);
	mutex_lock(&inbox->map);
	inbox->inode = NULL;
	mutex_unlock(&inbox->map);
	lite_inbox_put_ref(inbox);
}

/* ---- page faults --------------------------------------------------------- */

/* The page at an offset of the file, and how many follow it in memory, or NULL. */
static struct page *lite_inbox_page(struct lite_inbox *inbox, u64 offset,
				    size_t *n)
{
	u32 control = lite_inbox_control_bytes(inbox->queue.entries);
	struct lite_inbox_view *view;
	u64 slot;
	u32 in;

	lockdep_assert_held(&inbox->map);
	if (offset < control) {
		*n = (control - offset) >> PAGE_SHIFT;
		return virt_to_page((void *)inbox->queue.control + offset);
	}
	if (offset < LITE_INBOX_RINGS)
		return NULL;
	slot = div_u64_rem(offset - LITE_INBOX_RINGS, inbox->ring_bytes, &in);
	/* With the mutex it is not freed. */
	view = slot < inbox->slots ? xa_load(&inbox->views, slot) : NULL;
	if (!view || view->zapped)
		return NULL;
	*n = (view->area->chunk_bytes - in % view->area->chunk_bytes) >>
	     PAGE_SHIFT;
	return virt_to_page(lite_area_at(view->area, in / LITE_RING_UNIT));
}

/**
 * lite_inbox_fault - a page that is not in the page table
 * @inbox: mapped
 * @vmf: the fault
 *
 * Puts in what follows it, too.
 *
 * Context: may sleep; mmap_lock is held, or that of the VMA.
 * Return: 0; -ENOMEM; -EFAULT: there is no such page (now).
 */
int lite_inbox_fault(struct lite_inbox *inbox, struct vm_fault *vmf)
{
	struct vm_area_struct *vma = vmf->vma;
	unsigned long addr = vmf->address & PAGE_MASK;
	unsigned long end = vma->vm_end;
	struct page *page;
	size_t n, i;
	int err = -EFAULT;

	/* A marker, where no page can be put. */
	if (vmf->flags & FAULT_FLAG_ORIG_PTE_VALID && !pte_none(vmf->orig_pte))
		return -EFAULT;
	mutex_lock(&inbox->map);
	page = lite_inbox_page(inbox, (u64)vmf->pgoff << PAGE_SHIFT, &n);
	for (i = 0; page && i < n && addr + i * PAGE_SIZE < end; i++) {
		err = vm_insert_page(vma, addr + i * PAGE_SIZE, page + i);
		/* There already: another thread's fault. */
		if (err == -EBUSY)
			err = 0;
		if (err)
			break;
	}
	mutex_unlock(&inbox->map);
	return i ? 0 : err;
}
