// SPDX-License-Identifier: GPL-2.0
/*
 * Memory of the kernel's for requests and replies that are too long for a ring:
 * pages in as few contiguous chunks as can be had.
 *
 * A bulk is plain memory until it is mapped for the device, and again when it is
 * unmapped, which only its last user may do. While user memory is waited for, it is
 * plain: it can be freed then whatever has become of the node.
 *
 * It is not zeroed. Nobody sees more of it than was written to it: by a user, or by
 * a peer's kernel, which says how much that was.
 */
#include <linux/mm.h>
#include <linux/slab.h>
#include <linux/vmalloc.h>

#include "../wait.h"
#include "service.h"

/* 1 MB at a time, if there is so much in one piece. */
#define LITE_BULK_ORDER 8
/* Bytes copied before others get a turn. */
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
 * lite_bulk_put - give a reference back
 * @bulk: or NULL; if it is mapped, the caller is active on the node
 *
 * Context: process; nothing is locked.
 */
void lite_bulk_put(struct lite_bulk *bulk)
{
	if (bulk)
		kref_put(&bulk->ref, lite_bulk_release);
}

/**
 * lite_bulk_put_later - likewise, for those who hold locks
 * @bulk: or NULL; the node's layer is alive
 *
 * Context: any process; receive handlers.
 */
void lite_bulk_put_later(struct lite_bulk *bulk)
{
	if (bulk)
		kref_put(&bulk->ref, lite_bulk_release_later);
}

/* Chunks for all of it, each as large as there is. */
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
 * lite_bulk_make - memory for a long request or reply
 * @svc: node's
 * @uid: for whom it is counted
 * @bytes: at least 1, at most LITE_RPC_BULK_MAX
 *
 * Context: may sleep; killable. Charged to whom the caller belongs to.
 * Return: it, with a reference, or ERR_PTR: -ENOMEM: there is none, or this node
 * gives no more, or not to that user; -EINTR.
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
 * lite_bulk_map - let the device reach it
 * @bulk: may be mapped already; what is to be sent is in it
 *
 * Context: may sleep; the caller is active on the node, and others do not map it.
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
 * lite_bulk_unmap - no device reaches it any more
 * @bulk: nobody else uses it, no peer has its addresses; may be not mapped
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

/* Where byte @at is, and how many follow in one piece. */
static void *lite_bulk_at(const struct lite_bulk *bulk, size_t at, size_t *n)
{
	u32 i = 0;

	while (at >= bulk->chunk[i].bytes)
		at -= bulk->chunk[i++].bytes;
	*n = bulk->chunk[i].bytes - at;
	return page_address(bulk->chunk[i].page) + at;
}

/**
 * lite_bulk_copy_nofault - copy between it and somebody's memory
 * @bulk: not mapped
 * @buf: the memory; byte 0 there is byte 0 here
 * @at: where to begin
 * @n: bytes
 * @in: into the bulk, else out of it
 *
 * Context: may sleep, but does not fault: what is not there is not copied.
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
 * lite_bulk_copy - likewise, all of it
 * @bulk: not mapped
 * @buf: likewise
 * @at: likewise
 * @n: likewise
 * @in: likewise
 *
 * Context: may sleep, and wait for user space; killable. The caller holds nothing
 * of the node but the gate.
 * Return: 0, -EFAULT, -EINTR; -ENODEV: the node has been stopped meanwhile.
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
		/* At least what comes first is there then. */
		err = lite_buf_fault_in(buf, at + done,
					min(n - done, LITE_BULK_COPY), in);
		if (err)
			return err;
	}
}

/**
 * lite_bulk_move - copy from one to another
 * @to: not mapped
 * @from: not mapped
 * @n: bytes, from the start
 *
 * Context: may sleep.
 */
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
 * lite_bulk_view - all of it in one piece
 * @bulk: not mapped; stays until lite_bulk_unview()
 *
 * Context: may sleep.
 * Return: its address, or NULL: there is no memory for that.
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

/**
 * lite_bulk_unview - the counterpart of lite_bulk_view()
 * @view: from it
 *
 * Context: may sleep.
 */
void lite_bulk_unview(void *view)
{
	vunmap(view);
}
