// SPDX-License-Identifier: GPL-2.0
/* The caller's memory: a user's, or a kernel client's. */
#include <linux/mm.h>
#include <linux/pagemap.h>
#include <linux/uaccess.h>
#include <linux/vmalloc.h>

#include "memory.h"

/**
 * lite_buf_copy_nofault - copy between the caller's buffer and an LMR
 * @buf: buffer
 * @at: offset in it
 * @mem: memory of an LMR, or bounced
 * @n: bytes
 * @write: to the LMR, else from it
 *
 * Context: does not fault: what is not there is not copied.
 * Return: bytes copied, from the start.
 */
size_t lite_buf_copy_nofault(const struct lite_buf *buf, u64 at, void *mem,
			     size_t n, bool write)
{
	void __user *u = (void __user *)(buf->u + at);
	size_t left;

	if (!buf->user) {
		if (write)
			memcpy(mem, buf->k + at, n);
		else
			memcpy(buf->k + at, mem, n);
		return n;
	}
	if (!access_ok(u, n))
		return 0;
	pagefault_disable();
	left = write ? __copy_from_user_inatomic(mem, u, n) :
		       __copy_to_user_inatomic(u, mem, n);
	pagefault_enable();
	return n - left;
}

/**
 * lite_buf_fault_in - make a buffer's pages present
 * @buf: buffer
 * @at: offset in it
 * @n: bytes
 * @write: it will be read (for a write to an LMR), else written
 *
 * Context: may sleep, and fault.
 * Return: 0 when at least the first byte can be touched; -EFAULT; -ENODEV: the
 * node has been stopped meanwhile.
 */
int lite_buf_fault_in(const struct lite_buf *buf, u64 at, size_t n, bool write)
{
	char __user *u = (char __user *)(buf->u + at);
	size_t left;

	if (!buf->user)
		return 0;
	lite_gate_leave(buf->gate);
	left = write ? fault_in_readable(u, n) : fault_in_safe_writeable(u, n);
	if (!lite_gate_enter(buf->gate))
		return -ENODEV;
	return left == n ? -EFAULT : 0;
}

/**
 * lite_buf_pin - hold the pages of a part of a buffer
 * @buf: buffer
 * @at: offset in it
 * @n: bytes
 * @write: they will be read (for a write to an LMR), else written
 * @pages: set
 * @max: room in @pages
 * @offset: set to where in the first page the part begins
 * @got: set to the bytes that are held: at least 1, maybe fewer than @n
 *
 * Context: may sleep, and fault.
 * Return: number of pages; -EFAULT and others; -ENODEV: the node has been
 * stopped meanwhile.
 */
int lite_buf_pin(const struct lite_buf *buf, u64 at, size_t n, bool write,
		 struct page **pages, int max, size_t *offset, size_t *got)
{
	unsigned long addr = buf->u + at;
	int want, have, i;

	*offset = offset_in_page(addr);
	want = min_t(size_t, max, DIV_ROUND_UP(*offset + n, PAGE_SIZE));
	if (buf->user) {
		if (!access_ok((void __user *)addr, n))
			return -EFAULT;
		lite_gate_leave(buf->gate);
		have = pin_user_pages_fast(addr & PAGE_MASK, want,
					   write ? 0 : FOLL_WRITE, pages);
		if (!lite_gate_enter(buf->gate)) {
			if (have > 0)
				unpin_user_pages(pages, have);
			return -ENODEV;
		}
		if (have <= 0)
			return have ?: -EFAULT;
	} else {
		for (i = 0; i < want; i++) {
			void *k = (void *)(addr & PAGE_MASK) + i * PAGE_SIZE;

			/* Else vmalloc, or a module's own data. */
			pages[i] = virt_addr_valid(k) ? virt_to_page(k) :
							vmalloc_to_page(k);
		}
		have = want;
	}
	*got = min_t(size_t, n, have * PAGE_SIZE - *offset);
	return have;
}

/**
 * lite_buf_unpin - let go of pages
 * @buf: buffer
 * @pages: from lite_buf_pin()
 * @n: their number
 * @dirty: they have been written
 *
 * Context: may sleep.
 */
void lite_buf_unpin(const struct lite_buf *buf, struct page **pages, int n,
		    bool dirty)
{
	if (buf->user)
		unpin_user_pages_dirty_lock(pages, n, dirty);
}
