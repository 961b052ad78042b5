// SPDX-License-Identifier: GPL-2.0
/* The caller's memory: a user's, a kernel client's, or pages (of a file: memory/file/). */
#include <linux/mm.h>
#include <linux/pagemap.h>
#include <linux/uaccess.h>
#include <linux/vmalloc.h>

#include "memory/memory.h"
#include "io.h"
#include "compat.h"

/* Up to this many bytes are copied inline as words, without usercopy checks. */
#define LITE_COPY_WORDS 256

/* Copy a few words; @write: from the user. Return: false: a fault: the caller copies again. */
static __always_inline bool lite_words_copy(u64 *k, u64 __user *u, size_t n, bool write)
{
	size_t i;
	u64 word;

	if (!user_access_begin(u, n))
		return false;
#pragma GCC unroll 8
	for (i = 0; i < n / sizeof(u64); i++) {
		if (write) {
			/* Not straight into @k: without asm goto with outputs, a fault stores 0. */
			unsafe_get_user(word, &u[i], fault);
			k[i] = word;
		} else {
			unsafe_put_user(k[i], &u[i], fault);
		}
	}
	user_access_end();
	return true;
fault:
	user_access_end();
	return false;
}

static void lite_pages_copy(const struct lite_buf *buf, u64 at, void *mem, size_t n, bool write)
{
	for (at += buf->u; n;) {
		struct page *page = buf->pages[at >> PAGE_SHIFT];
		size_t in = offset_in_page(at), len = min(n, PAGE_SIZE - in);

		if (write)
			memcpy_from_page(mem, page, in, len);
		else
			memcpy_to_page(page, in, mem, len);
		at += len;
		mem += len;
		n -= len;
	}
}

/*
 * Copy @n bytes between the caller's buffer, from offset @at on, and @mem (memory of an LMR, or a
 * bounce page); @write: to @mem. Page faults are off, so the copy stops at an absent page. Context:
 * any process. Return: the number of leading bytes copied.
 */
size_t lite_buf_copy_nofault(const struct lite_buf *buf, u64 at, void *mem, size_t n, bool write)
{
	void __user *u = (void __user *)(buf->u + at);
	size_t left;

	if (!buf->user) {
		if (buf->pages)
			lite_pages_copy(buf, at, mem, n, write);
		else if (write)
			memcpy(mem, buf->k + at, n);
		else
			memcpy(buf->k + at, mem, n);
		return n;
	}
	pagefault_disable();
	if (n <= LITE_COPY_WORDS && !(n % sizeof(u64)) &&
	    (write ? lite_words_copy(mem, u, n, true) : lite_words_copy(mem, u, n, false)))
		left = 0;
	else if (access_ok(u, n))
		left = write ? __copy_from_user_inatomic(mem, u, n) :
			       __copy_to_user_inatomic(u, mem, n);
	else
		left = n;
	pagefault_enable();
	return n - left;
}

/*
 * Fault in @n bytes of a buffer, at least one, from offset @at on: for reading if @write (to an
 * LMR), else for writing. May sleep and fault, with the gate left. Return: 0: at least the first
 * byte is accessible; -EFAULT; -ENODEV: the node was stopped meanwhile.
 */
int lite_buf_fault_in(const struct lite_buf *buf, u64 at, size_t n, bool write)
{
	char __user *u = (char __user *)(buf->u + at);
	size_t left;

	if (!buf->user)
		return 0;
	/* Copying beyond the end of user space fails as a whole; faulting in does not check it. */
	if (!access_ok(u, n))
		return -EFAULT;
	lite_gate_leave(buf->gate);
	left = write ? fault_in_readable(u, n) : fault_in_safe_writeable(u, n);
	if (!lite_gate_enter(buf->gate))
		return -ENODEV;
	return left == n ? -EFAULT : 0;
}

/* Pin user pages, faulting them in. Return: their number or an errno. */
static int lite_buf_pin_user(const struct lite_buf *buf, unsigned long addr, int want, bool write,
			     struct page **pages)
{
	int have;

	lite_gate_leave(buf->gate);
	have = pin_user_pages_fast(addr, want, write ? 0 : FOLL_WRITE, pages);
	if (!lite_gate_enter(buf->gate)) {
		if (have > 0)
			unpin_user_pages(pages, have);
		return -ENODEV;
	}
	return have ?: -EFAULT;
}

/* Pin user pages that are present, without waiting for a lock. */
static int lite_buf_pin_present(unsigned long addr, int want, bool write, struct page **pages)
{
	int have;

	if (!mmap_read_trylock(current->mm))
		return -EAGAIN;
	have = pin_user_pages(addr, want, FOLL_NOFAULT | (write ? 0 : FOLL_WRITE), pages);
	mmap_read_unlock(current->mm);
	/* The caller tries again where it may wait, and gets the error then. */
	return have > 0 ? have : -EAGAIN;
}

/*
 * Pin at most @max pages of a buffer: @n bytes from offset @at on, to be read if @write (to an
 * LMR), else written. With @wait it may sleep and fault, with the gate left meanwhile; else it
 * takes only present pages and does not block. Sets @skip to the offset in the first page, and @got
 * to the bytes that are pinned: at least 1, maybe fewer than @n. Return: the number of @pages;
 * -EAGAIN: impossible without @wait; -ENODEV: the node was stopped meanwhile; -EFAULT and others.
 */
int lite_buf_pin(const struct lite_buf *buf, u64 at, size_t n, bool write, bool wait,
		 struct page **pages, int max, size_t *skip, size_t *got)
{
	unsigned long addr = buf->u + at;
	int want, have, i;

	*skip = offset_in_page(addr);
	want = min_t(size_t, max, DIV_ROUND_UP(*skip + n, PAGE_SIZE));
	if (buf->user) {
		if (!access_ok((void __user *)addr, n))
			return -EFAULT;
		have = wait ? lite_buf_pin_user(buf, addr & PAGE_MASK, want, write, pages) :
			      lite_buf_pin_present(addr & PAGE_MASK, want, write, pages);
		if (have < 0)
			return have;
	} else if (buf->pages) {
		memcpy(pages, buf->pages + (addr >> PAGE_SHIFT), want * sizeof(*pages));
		have = want;
	} else {
		for (i = 0; i < want; i++) {
			void *k = (void *)(addr & PAGE_MASK) + i * PAGE_SIZE;

			/* Else it is vmalloc's, or a module's own data. */
			pages[i] = virt_addr_valid(k) ? virt_to_page(k) : vmalloc_to_page(k);
			if (!pages[i])
				return -EFAULT;
		}
		have = want;
	}
	*got = min_t(size_t, n, have * PAGE_SIZE - *skip);
	return have;
}

/* Mark a page dirty as unpin_user_pages_dirty_lock() does, if that needs no waiting. */
static bool lite_page_trydirty(struct page *page)
{
	struct folio *folio = page_folio(page);

	if (folio_test_dirty(folio))
		return true;
	if (!folio_trylock(folio))
		return false;
	folio_mark_dirty(folio);
	folio_unlock(folio);
	return true;
}

/* Unpin pages without blocking. Return: false: one to be dirtied is locked; none was unpinned. */
bool lite_buf_tryunpin(const struct lite_buf *buf, struct page **pages, int n, bool dirty)
{
	int i;

	if (!buf->user)
		return true;
	for (i = 0; dirty && i < n; i++) {
		if (!lite_page_trydirty(pages[i]))
			return false;
	}
	unpin_user_pages(pages, n);
	return true;
}

/* Unpin pages. If @dirty, may wait for user space that locks a page (FUSE). */
void lite_buf_unpin(const struct lite_buf *buf, struct page **pages, int n, bool dirty)
{
	if (buf->user)
		unpin_user_pages_dirty_lock(pages, n, dirty);
}

/* Keep pages that the device may still access from ever being reused; user pages stay pinned. */
void lite_buf_keep(const struct lite_buf *buf, struct page **pages, int n)
{
	int i;

	for (i = 0; !buf->user && buf->pages && i < n; i++)
		get_page(pages[i]);
}
