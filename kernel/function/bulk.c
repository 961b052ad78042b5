// SPDX-License-Identifier: GPL-2.0
/*
 * Kernel memory for requests and replies that are too long for a ring: pages in
 * as few contiguous chunks as possible.
 *
 * A bulk is mapped for the device only while RDMA needs it, and only its last
 * user unmaps it. It is not mapped while its user waits for user memory, and
 * can then be freed whatever has become of the node.
 *
 * It is not zeroed. Readers see only the bytes that a user or a peer's kernel
 * has written.
 */
#include <linux/mm.h>
#include <linux/slab.h>
#include <linux/vmalloc.h>

#include "memory/handle/ctx.h"
#include "service.h"
#include "wait.h"

/* Largest chunk to try: 1 MB with 4 KB pages. */
#define LITE_BULK_ORDER 8
/* Bytes copied between two cond_resched(). */
#define LITE_BULK_COPY (64UL << 10)

static void lite_bulk_free(struct lite_bulk *bulk)
{
	u32 i;

	lite_bulk_unmap(bulk);
	for (i = 0; i < bulk->n && !bulk->lost; i++)
		__free_pages(bulk->chunk[i].page,
			     get_order(bulk->chunk[i].bytes));
	lite_pool_give(&bulk->svc->pools[LITE_POOL_BULK], bulk->uid,
		       PAGE_ALIGN(bulk->bytes));
	lite_stat_add(bulk->svc->stats, LITE_STAT_BULK_BYTES,
		      -(s64)PAGE_ALIGN(bulk->bytes));
	kvfree(bulk);
}

static void lite_bulk_release(struct kref *ref)
{
	lite_bulk_free(container_of(ref, struct lite_bulk, ref));
}

static void lite_bulk_put_work(struct work_struct *work)
{
	lite_bulk_free(container_of(work, struct lite_bulk, put_work));
}

static void lite_bulk_release_later(struct kref *ref)
{
	struct lite_bulk *bulk = container_of(ref, struct lite_bulk, ref);

	queue_work(bulk->svc->wq, &bulk->put_work);
}

/**
 * lite_bulk_put - drop a reference
 * @bulk: or NULL; if it is mapped, the caller is active on the node
 *
 * Context: process, no lock held.
 */
void lite_bulk_put(struct lite_bulk *bulk)
{
	if (bulk)
		kref_put(&bulk->ref, lite_bulk_release);
}

/**
 * lite_bulk_put_later - drop a reference, have a work item free the bulk
 * @bulk: or NULL; the node's service layer is alive
 *
 * Context: process; receive handlers; locks may be held.
 */
void lite_bulk_put_later(struct lite_bulk *bulk)
{
	if (bulk)
		kref_put(&bulk->ref, lite_bulk_release_later);
}

/* Allocate chunks for all of it, each as large as possible. */
static int lite_bulk_fill(struct lite_bulk *bulk, u32 max)
{
	unsigned int order = LITE_BULK_ORDER;
	size_t left = PAGE_ALIGN(bulk->bytes);

	while (left) {
		gfp_t gfp = GFP_KERNEL_ACCOUNT | __GFP_NOWARN;
		struct page *page;

		if (lite_given_up())
			return -EINTR;
		if (bulk->n == max)
			return -ENOMEM;
		while ((PAGE_SIZE << order) > left)
			order--;
		if (order)
			gfp |= __GFP_NORETRY;
		page = alloc_pages(gfp, order);
		if (!page && !order)
			return -ENOMEM;
		if (!page) {
			order--;
			continue;
		}
		bulk->chunk[bulk->n].page = page;
		bulk->chunk[bulk->n].bytes = PAGE_SIZE << order;
		bulk->n++;
		left -= PAGE_SIZE << order;
		cond_resched();
	}
	return 0;
}

/**
 * lite_bulk_make - allocate memory for a long request or reply
 * @svc: node's
 * @uid: user it counts for
 * @bytes: 1 to LITE_RPC_BULK_MAX
 *
 * Context: may sleep; killable. Charged to the caller's memory cgroup.
 * Return: the bulk, with a reference, or ERR_PTR: -ENOMEM: no memory, or the
 * limit of the node or of the user is reached; -EINTR.
 */
struct lite_bulk *lite_bulk_make(struct lite_service *svc, u32 uid, u32 bytes)
{
	u32 max = min_t(u32, DIV_ROUND_UP(bytes, PAGE_SIZE),
			LITE_RPC_BULK_CHUNKS_MAX);
	struct lite_bulk *bulk;
	int err;

	bulk = kvzalloc(struct_size(bulk, chunk, max), GFP_KERNEL_ACCOUNT);
	if (!bulk)
		return ERR_PTR(-ENOMEM);
	kref_init(&bulk->ref);
	bulk->svc = svc;
	bulk->uid = uid;
	bulk->bytes = bytes;
	INIT_WORK(&bulk->put_work, lite_bulk_put_work);
	err = lite_pool_take(&svc->pools[LITE_POOL_BULK], uid,
			     PAGE_ALIGN(bytes));
	if (err) {
		kvfree(bulk);
		return ERR_PTR(-ENOMEM);
	}
	lite_stat_add(svc->stats, LITE_STAT_BULK_BYTES, PAGE_ALIGN(bytes));
	err = lite_bulk_fill(bulk, max);
	if (!err)
		return bulk;
	lite_bulk_free(bulk);
	return ERR_PTR(err);
}

/* ---- mapping ------------------------------------------------------------- */

static void lite_bulk_unmap_first(struct lite_bulk *bulk,
				  struct lite_fabric *fab, u32 n)
{
	while (n--)
		bulk->lost |= !lite_dma_unmap_page(fab, bulk->chunk[n].dma,
						   bulk->chunk[n].bytes,
						   bulk->since);
}

/**
 * lite_bulk_map - map a bulk for the device
 * @bulk: may be mapped already; holds what is to be sent
 *
 * Context: may sleep; the caller is active on the node. No other thread maps
 * it.
 * Return: 0 or -ENOMEM.
 */
int lite_bulk_map(struct lite_bulk *bulk)
{
	struct lite_fabric *fab = bulk->svc->fab;
	u32 i;

	if (bulk->fab)
		return 0;
	bulk->since = lite_dma_since(fab);
	for (i = 0; i < bulk->n; i++) {
		if (lite_dma_map_page(fab, bulk->chunk[i].page,
				      bulk->chunk[i].bytes,
				      &bulk->chunk[i].dma)) {
			lite_bulk_unmap_first(bulk, fab, i);
			return -ENOMEM;
		}
	}
	bulk->fab = fab;
	return 0;
}

/**
 * lite_bulk_unmap - unmap a bulk
 * @bulk: has no other user, and no peer has its addresses; may be unmapped
 *
 * Context: process; the caller is active on the node.
 */
void lite_bulk_unmap(struct lite_bulk *bulk)
{
	if (bulk->fab)
		lite_bulk_unmap_first(bulk, bulk->fab, bulk->n);
	bulk->fab = NULL;
}

/* ---- copying ------------------------------------------------------------- */

/* Address of byte @at; @n is set to the contiguous bytes from there. */
static void *lite_bulk_at(const struct lite_bulk *bulk, size_t at, size_t *n)
{
	u32 i = 0;

	while (at >= bulk->chunk[i].bytes)
		at -= bulk->chunk[i++].bytes;
	*n = bulk->chunk[i].bytes - at;
	return page_address(bulk->chunk[i].page) + at;
}

/**
 * lite_bulk_copy_nofault - copy between a bulk and a caller's buffer
 * @bulk: not mapped
 * @buf: the buffer
 * @at: offset in both
 * @n: bytes
 * @in: into the bulk, else out of it
 *
 * Context: may sleep, but does not fault: stops at an absent page.
 * Return: bytes copied, from the start.
 */
size_t lite_bulk_copy_nofault(const struct lite_bulk *bulk,
			      const struct lite_buf *buf, size_t at, size_t n,
			      bool in)
{
	size_t done = 0, piece, did;
	void *mem;

	while (done < n) {
		mem = lite_bulk_at(bulk, at + done, &piece);
		piece = min3(piece, n - done, LITE_BULK_COPY);
		did = lite_buf_copy_nofault(buf, at + done, mem, piece, in);
		done += did;
		if (did < piece)
			break;
		cond_resched();
	}
	return done;
}

/**
 * lite_bulk_copy - copy between a bulk and a caller's buffer, faulting pages in
 * @bulk: not mapped
 * @buf: the buffer
 * @at: offset in both
 * @n: bytes
 * @in: into the bulk, else out of it
 *
 * Context: may sleep, and wait for user space; killable. The caller holds
 * nothing of the node but the gate, which is left meanwhile.
 * Return: 0, -EFAULT, -EINTR; -ENODEV: the node was stopped meanwhile.
 */
int lite_bulk_copy(const struct lite_bulk *bulk, const struct lite_buf *buf,
		   size_t at, size_t n, bool in)
{
	size_t done = 0;
	int err;

	for (;;) {
		done += lite_bulk_copy_nofault(bulk, buf, at + done, n - done,
					       in);
		if (done == n)
			return 0;
		if (lite_given_up())
			return -EINTR;
		/* On success at least the first byte is accessible. */
		err = lite_buf_fault_in(buf, at + done,
					min(n - done, LITE_BULK_COPY), in);
		if (err)
			return err;
	}
}

/* Copy the first @n bytes between bulks, both not mapped. May sleep. */
void lite_bulk_move(struct lite_bulk *to, const struct lite_bulk *from,
		    size_t n)
{
	size_t done, here, there;

	for (done = 0; done < n; done += here) {
		void *a = lite_bulk_at(to, done, &here);
		void *b = lite_bulk_at(from, done, &there);

		here = min3(here, there, n - done);
		memcpy(a, b, here);
		cond_resched();
	}
}

/**
 * lite_bulk_view - map a bulk contiguously in kernel address space
 * @bulk: not mapped for the device; must outlive the view
 *
 * Context: may sleep.
 * Return: the address, for lite_bulk_unview(), or NULL: no memory.
 */
void *lite_bulk_view(const struct lite_bulk *bulk)
{
	u32 n = DIV_ROUND_UP(bulk->bytes, PAGE_SIZE), k = 0, i, j;
	struct page **pages;
	void *view;

	pages = kvmalloc_array(n, sizeof(*pages), GFP_KERNEL);
	if (!pages)
		return NULL;
	for (i = 0; i < bulk->n; i++) {
		for (j = 0; j < bulk->chunk[i].bytes >> PAGE_SHIFT; j++)
			pages[k++] = bulk->chunk[i].page + j;
	}
	view = vmap(pages, n, VM_MAP, PAGE_KERNEL);
	kvfree(pages);
	return view;
}

/* Undo lite_bulk_view(). May sleep. */
void lite_bulk_unview(void *view)
{
	vunmap(view);
}
