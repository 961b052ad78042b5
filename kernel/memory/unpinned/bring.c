// SPDX-License-Identifier: GPL-2.0
/*
 * Bringing in pages of a process for a chunk of an unpinned LMR.
 *
 * hmm_range_fault() makes pages present as if the process had touched them, and returns them
 * without a reference: they are valid until an invalidation begins there, which struct lite_bring
 * records in a notifier of its own. The LMR's notifier changes with every invalidation in the LMR,
 * so with that one bringing in pages would never succeed under memory pressure.
 *
 * A fault must not wait for user space, because its caller has a slot of a call. So only anonymous
 * memory and tmpfs are brought in, no other file system. hmm_range_fault() fails rather than wait
 * for a userfaultfd. mmap_lock is only taken by trylock, because its holder may be waiting for
 * anything, even for the end of a chunk. Any fault waits for a thread that migrates the page and,
 * in tmpfs, for one that punches a hole there: lite_bring_locked() looks for one, but it may begin
 * right after. These threads may be throttled, so a user's faults have few workers and slots
 * (kcall.c, kcall_local.c).
 */
#include <linux/hmm.h>
#include <linux/hugetlb_inline.h>
#include <linux/magic.h>
#include <linux/mm.h>
#include <linux/sched/mm.h>
#include <linux/userfaultfd_k.h>

#include "compat.h"
#include "memory/memory.h"
#include "unpinned.h"

/* May this memory be unpinned? Return: 0 or -EOPNOTSUPP. */
static int lite_vma_check(const struct vm_area_struct *vma)
{
	struct inode *inode;

	/* Drivers (LITE, too) decide about their memory. Processes cannot write a shadow stack. */
	if (vma->vm_flags & (VM_IO | VM_PFNMAP | VM_MIXEDMAP | VM_SHADOW_STACK) ||
	    is_vm_hugetlb_page((struct vm_area_struct *)vma))
		return -EOPNOTSUPP;
	if (vma_is_anonymous((struct vm_area_struct *)vma))
		return 0;
	if (!vma->vm_file)
		return -EOPNOTSUPP;
	/* Not DAX, secretmem or a file system's; nor a device node in tmpfs. */
	inode = file_inode(vma->vm_file);
	return S_ISREG(inode->i_mode) && inode->i_sb->s_magic == TMPFS_MAGIC ? 0 : -EOPNOTSUPP;
}

/*
 * Is all of a range memory that may be unpinned? May sleep; killable. Return: 0; -EFAULT: not all
 * is mapped; -EOPNOTSUPP; -EINTR.
 */
int lite_unpinned_check(struct mm_struct *mm, unsigned long addr, unsigned long end)
{
	struct vm_area_struct *vma;
	int err = 0;

	if (mmap_read_lock_killable(mm))
		return -EINTR;
	while (addr < end && !err) {
		vma = vma_lookup(mm, addr);
		err = vma ? lite_vma_check(vma) : -EFAULT;
		if (vma)
			addr = vma->vm_end;
	}
	mmap_read_unlock(mm);
	return err;
}

/* Bring in pages from @b->first to @b->end, which are in @vma. */
static int lite_bring_range(struct lite_unpinned *u, struct lite_bring *b,
			    const struct vm_area_struct *vma)
{
	bool write = vma->vm_flags & VM_WRITE;
	struct hmm_range range = {
		.notifier = &b->still,
		.notifier_seq = 0,
		.start = u->addr + (b->first << PAGE_SHIFT),
		.end = u->addr + (b->end << PAGE_SHIFT),
		.hmm_pfns = b->pfn,
		.default_flags = HMM_PFN_REQ_FAULT | (write ? HMM_PFN_REQ_WRITE : 0),
	};
	int err = hmm_range_fault(&range);

	b->writable = write;
	/* An invalidation has begun meanwhile. */
	return err == -EBUSY ? -EAGAIN : err;
}

/* The caller holds mmap_lock. */
static int lite_bring_locked(struct lite_unpinned *u, struct lite_bring *b)
{
	struct vm_area_struct *vma = vma_lookup(u->mm, u->addr + (b->page << PAGE_SHIFT));
	int err = vma ? lite_vma_check(vma) : -EFAULT;

	/* Do not wait for user space. hmm_range_fault() fails, but complains on debug kernels. */
	if (!err && vma->vm_flags & __VM_UFFD_FLAGS)
		err = -EFAULT;
	if (!err && b->write && !(vma->vm_flags & VM_WRITE))
		err = -EFAULT;
	/* tmpfs: shmem_fault() may wait for a thread that is in fallocate(2). */
	if (!err && !vma_is_anonymous(vma) && READ_ONCE(file_inode(vma->vm_file)->i_private))
		err = -EAGAIN;
	if (err)
		return err;
	if (vma->vm_start > u->addr)
		WRITE_ONCE(b->first, max(b->first, (vma->vm_start - u->addr) >> PAGE_SHIFT));
	WRITE_ONCE(b->end, min(b->end, (vma->vm_end - u->addr) >> PAGE_SHIFT));
	err = lite_bring_range(u, b, vma);
	if (!err || err == -EAGAIN || b->end - b->first == 1)
		return err;
	/* A neighbour may be missing, beyond the end of a file, say: take the wanted page alone. */
	WRITE_ONCE(b->first, b->page);
	WRITE_ONCE(b->end, b->page + 1);
	return lite_bring_range(u, b, vma);
}

/*
 * Bring in the pages of @b, after lite_bring_begin(), and set @b to those brought in. May sleep.
 * Return: 0; -EAGAIN: try again later; -EFAULT: no such memory, or not writable; -EOPNOTSUPP.
 */
int lite_bring_pages(struct lite_unpinned *u, struct lite_bring *b)
{
	unsigned long i;
	int err = -EAGAIN;

	/* The process has ended. */
	if (!mmget_not_zero(u->mm))
		return -EFAULT;
	/* Do not wait for it: munmap(2), say, may hold it and wait for a chunk. */
	if (mmap_read_trylock(u->mm)) {
		err = lite_bring_locked(u, b);
		for (i = 0; !err && i < b->end - b->first; i++)
			b->pages[i] = hmm_pfn_to_page(b->pfn[i]);
		/* Only writable pages: pinning others may copy them (FAULT_FLAG_UNSHARE). */
		b->leased = !err && b->writable &&
			    lite_lease_pin(&u->lease, u->addr + (b->first << PAGE_SHIFT), b->pages,
					   b->end - b->first);
		mmap_read_unlock(u->mm);
	}
	/* If the mm has no other user, tearing it down here would hold up other calls. */
	mmput_async(u->mm);
	if (err && err != -EAGAIN && err != -EOPNOTSUPP)
		err = -EFAULT;
	return err;
}
