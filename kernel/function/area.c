// SPDX-License-Identifier: GPL-2.0
/*
 * Kernel memory that peers read and write: chunks of contiguous pages.
 *
 * Rings and mirrors have chunks of equal size, and are always mapped for the device. Their last
 * reference is dropped only after the peer has promised to write no more, or is fenced.
 *
 * A bulk holds a request or a reply that is too long for a ring, in as few chunks as possible. It
 * is mapped only while RDMA needs it; its last user unmaps it. It is never mapped while its user
 * waits for user memory, so it can then be freed even if the node has been stopped. It is not
 * zeroed: readers see only bytes that a user or a peer's kernel has written.
 */
#include <linux/mm.h>
#include <linux/slab.h>
#include <linux/vmalloc.h>

#include "service.h"

/* Page order of the largest chunk of a bulk: 1 MB with 4 KB pages. */
#define LITE_BULK_ORDER 8
/* Bytes copied between two cond_resched(). */
#define LITE_BULK_COPY (64UL << 10)

static void lite_area_count(const struct lite_area *area, int sign)
{
	struct lite_stats __percpu *stats = area->svc->stats;
	bool ring = area->pool == LITE_POOL_RINGS;

	lite_stat_add(stats, ring ? LITE_STAT_RING_BYTES : LITE_STAT_BULK_BYTES,
		      sign * (s64)PAGE_ALIGN(area->bytes));
	if (ring)
		lite_stat_add(stats, LITE_STAT_RINGS, sign);
}

/* Make an area without chunks, but with room for @max of them. */
static struct lite_area *lite_area_new(struct lite_service *svc, enum lite_pool_number pool,
				       u32 uid, u32 bytes, u64 cost, u32 max, gfp_t gfp)
{
	struct lite_area *area = kvzalloc(struct_size(area, chunk, max), gfp);
	int err;

	if (!area)
		return ERR_PTR(-ENOMEM);
	err = lite_pool_take(&svc->pools[pool], uid, cost, GFP_KERNEL);
	if (err) {
		kvfree(area);
		return ERR_PTR(err);
	}
	kref_init(&area->ref);
	area->svc = svc;
	area->pool = pool;
	area->uid = uid;
	area->cost = cost;
	area->bytes = bytes;
	lite_area_count(area, 1);
	return area;
}

static void lite_area_release(struct kref *ref)
{
	struct lite_area *area = container_of(ref, struct lite_area, ref);
	u32 i;

	lite_bulk_unmap(area);
	for (i = 0; i < area->n && !area->lost; i++) {
		if (area->pool == LITE_POOL_RINGS)
			free_pages_exact(area->chunk[i].mem, area->chunk[i].bytes);
		else
			free_pages((unsigned long)area->chunk[i].mem,
				   get_order(area->chunk[i].bytes));
	}
	lite_pool_give(&area->svc->pools[area->pool], area->uid, area->cost);
	lite_area_count(area, -1);
	kvfree(area);
}

static void lite_area_put_work(struct work_struct *work)
{
	lite_area_release(&container_of(work, struct lite_area, put_work)->ref);
}

static void lite_area_release_later(struct kref *ref)
{
	struct lite_area *area = container_of(ref, struct lite_area, ref);

	INIT_WORK(&area->put_work, lite_area_put_work);
	queue_work(area->svc->wq[LITE_WQ_CALLS], &area->put_work);
}

/* Drop a reference; @area may be NULL. Process context, no lock; active on the node if mapped. */
void lite_area_put(struct lite_area *area)
{
	if (area)
		kref_put(&area->ref, lite_area_release);
}

/* As lite_area_put(), but a work item frees the area: for receive handlers, and with locks held. */
void lite_area_put_later(struct lite_area *area)
{
	if (area)
		kref_put(&area->ref, lite_area_release_later);
}

/*
 * Make zeroed memory of @n chunks for a ring or a mirror, mapped for the device if @mapped. It is
 * charged to @uid, the owner of the function. May sleep. Return: the area, with a reference, or
 * ERR_PTR: -ENOBUFS: the limit of the node or of the user is reached; -ENOMEM.
 */
struct lite_area *lite_ring_area_make(struct lite_service *svc, bool mapped, u32 uid,
				      u32 chunk_bytes, u32 n)
{
	struct lite_area *area;
	void *mem;

	/* Charge the slots, too: they can take more than a small ring, and rings can be many. */
	area = lite_area_new(svc, LITE_POOL_RINGS, uid, n * chunk_bytes,
			     (u64)n * chunk_bytes + sizeof(struct lite_ring), n, GFP_KERNEL);
	if (IS_ERR(area))
		return area == ERR_PTR(-ENOMEM) ? area : ERR_PTR(-ENOBUFS);
	area->chunk_bytes = chunk_bytes;
	while (area->n < n) {
		mem = alloc_pages_exact(chunk_bytes, GFP_KERNEL | __GFP_ZERO | __GFP_NOWARN);
		if (!mem)
			goto err_free;
		area->chunk[area->n].mem = mem;
		area->chunk[area->n++].bytes = chunk_bytes;
	}
	if (!mapped || !lite_bulk_map(area))
		return area;
err_free:
	lite_area_put(area);
	return ERR_PTR(-ENOMEM);
}

/*
 * As lite_ring_area_make(), but with only LITE_RPC_RING_DEFAULT bytes, or three chunks if that is
 * more, when @n chunks cannot be had or rings would take more than a quarter of their limit. One
 * user can have less than half of the limit, which should leave room for many small rings.
 */
struct lite_area *lite_ring_area_ample(struct lite_service *svc, bool mapped, u32 uid,
				       u32 chunk_bytes, u32 n)
{
	struct lite_pool *pool = &svc->pools[LITE_POOL_RINGS];
	struct lite_area *area = ERR_PTR(-ENOBUFS);

	if (lite_pool_used(pool) + (u64)n * chunk_bytes <= pool->rule.limit / 4)
		area = lite_ring_area_make(svc, mapped, uid, chunk_bytes, n);
	if (!IS_ERR(area))
		return area;
	/* Three chunks, as lite_ring_limit() leaves one to other users. */
	n = min_t(u32, n, max(DIV_ROUND_UP(LITE_RPC_RING_DEFAULT, chunk_bytes), 3U));
	return lite_ring_area_make(svc, mapped, uid, chunk_bytes, n);
}

/* Allocate all chunks of a bulk, each as large as possible. */
static int lite_bulk_fill(struct lite_area *bulk, u32 max)
{
	unsigned int order = LITE_BULK_ORDER;
	size_t left = PAGE_ALIGN(bulk->bytes);

	while (left) {
		gfp_t gfp = GFP_KERNEL_ACCOUNT | __GFP_NOWARN;
		void *mem;

		if (lite_given_up())
			return -EINTR;
		if (bulk->n == max)
			return -ENOMEM;
		while ((PAGE_SIZE << order) > left)
			order--;
		if (order)
			gfp |= __GFP_NORETRY;
		mem = (void *)__get_free_pages(gfp, order);
		if (!mem && !order)
			return -ENOMEM;
		if (!mem) {
			order--;
			continue;
		}
		bulk->chunk[bulk->n].mem = mem;
		bulk->chunk[bulk->n++].bytes = PAGE_SIZE << order;
		left -= PAGE_SIZE << order;
		cond_resched();
	}
	return 0;
}

/*
 * Make memory for a long request or reply of 1 to LITE_RPC_BULK_MAX bytes. It counts for @uid, and
 * is charged to the caller's memory cgroup. May sleep; killable. Return: the bulk, with a
 * reference, or ERR_PTR: -ENOMEM: no memory, or a limit is reached; -EINTR.
 */
struct lite_area *lite_bulk_make(struct lite_service *svc, u32 uid, u32 bytes)
{
	u32 max = min_t(u32, DIV_ROUND_UP(bytes, PAGE_SIZE), LITE_RPC_BULK_CHUNKS_MAX);
	struct lite_area *bulk;
	int err;

	bulk = lite_area_new(svc, LITE_POOL_BULK, uid, bytes, PAGE_ALIGN(bytes), max,
			     GFP_KERNEL_ACCOUNT);
	if (IS_ERR(bulk))
		return ERR_PTR(-ENOMEM);
	err = lite_bulk_fill(bulk, max);
	if (!err)
		return bulk;
	lite_area_put(bulk);
	return ERR_PTR(err);
}

static void lite_bulk_unmap_first(struct lite_area *bulk, struct lite_fabric *fab, u32 n)
{
	while (n--)
		bulk->lost |= !lite_dma_unmap_page(fab, bulk->chunk[n].dma, bulk->chunk[n].bytes,
						   bulk->since);
}

/*
 * Map an area for the device, unless it is mapped. A bulk to be sent already has its bytes. May
 * sleep; active on the node; no other thread maps it. Return: 0 or -ENOMEM.
 */
int lite_bulk_map(struct lite_area *bulk)
{
	struct lite_fabric *fab = bulk->svc->fab;
	u32 i;

	if (bulk->fab)
		return 0;
	bulk->since = lite_dma_since(fab);
	for (i = 0; i < bulk->n; i++) {
		if (lite_dma_map_page(fab, virt_to_page(bulk->chunk[i].mem), bulk->chunk[i].bytes,
				      &bulk->chunk[i].dma)) {
			lite_bulk_unmap_first(bulk, fab, i);
			return -ENOMEM;
		}
	}
	bulk->fab = fab;
	return 0;
}

/*
 * Unmap an area, if it is mapped. It has no other user, and no peer uses its addresses any more.
 * Process context; active on the node if it is mapped.
 */
void lite_bulk_unmap(struct lite_area *bulk)
{
	if (bulk->fab)
		lite_bulk_unmap_first(bulk, bulk->fab, bulk->n);
	bulk->fab = NULL;
}

/*
 * Fault in a buffer of @n bytes from offset @from on, to be read if @write, else to be written. The
 * caller tries again if pages are reclaimed before it uses them. May sleep and fault, with the gate
 * left meanwhile; killable. Return: as lite_buf_fault_in(); -EINTR.
 */
int lite_user_fault_in(const struct lite_buf *buf, size_t from, size_t n, bool write)
{
	if (lite_given_up())
		return -EINTR;
	return lite_buf_fault_in(buf, from, n - from, write);
}

/* As lite_bulk_copy(), but from offset @done to @n, and between a buffer and @mem. */
int lite_user_copy(const struct lite_buf *buf, void *mem, size_t done, size_t n, bool in)
{
	int err = 0;

	while (!err) {
		done += lite_buf_copy_nofault(buf, done, mem + done, n - done, in);
		if (done == n)
			break;
		err = lite_user_fault_in(buf, done, n, in);
	}
	return err;
}

/* Address of byte @at; @n is set to the contiguous bytes from there. */
static void *lite_bulk_at(const struct lite_area *bulk, size_t at, size_t *n)
{
	u32 i = 0;

	while (at >= bulk->chunk[i].bytes)
		at -= bulk->chunk[i++].bytes;
	*n = bulk->chunk[i].bytes - at;
	return bulk->chunk[i].mem + at;
}

/*
 * Copy from offset @done to @n between a buffer and a bulk that is not mapped (@in: into the bulk).
 * May sleep, but does not fault. Return: @n, or the offset of the absent page at which it stopped.
 */
size_t lite_bulk_copy_nofault(const struct lite_area *bulk, const struct lite_buf *buf, size_t done,
			      size_t n, bool in)
{
	size_t piece, did;
	void *mem;

	while (done < n) {
		mem = lite_bulk_at(bulk, done, &piece);
		piece = min3(piece, n - done, LITE_BULK_COPY);
		did = lite_buf_copy_nofault(buf, done, mem, piece, in);
		done += did;
		if (did < piece)
			break;
		cond_resched();
	}
	return done;
}

/*
 * Copy @n bytes between a buffer and a bulk that is not mapped (@in: into the bulk), faulting pages
 * in. May sleep, and wait for user space; killable. The caller holds nothing of the node but the
 * gate, which is left meanwhile. Return: 0, -EFAULT, -EINTR; -ENODEV: the node was stopped.
 */
int lite_bulk_copy(const struct lite_area *bulk, const struct lite_buf *buf, size_t n, bool in)
{
	size_t done = 0;
	int err = 0;

	while (!err) {
		done = lite_bulk_copy_nofault(bulk, buf, done, n, in);
		if (done == n)
			break;
		/* On success at least one more byte is accessible. */
		err = lite_user_fault_in(buf, done, min(n, done + LITE_BULK_COPY), in);
	}
	return err;
}

/* Copy the first @n bytes between bulks, both not mapped. May sleep. */
void lite_bulk_move(struct lite_area *to, const struct lite_area *from, size_t n)
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

/*
 * Map a bulk, which is not mapped for the device, contiguously in kernel address space. May sleep.
 * Return: the address, for vunmap() before the bulk is put, or NULL: no memory.
 */
void *lite_bulk_view(const struct lite_area *bulk)
{
	u32 n = DIV_ROUND_UP(bulk->bytes, PAGE_SIZE), k = 0, i, j;
	struct page **pages;
	void *view;

	pages = kvmalloc_array(n, sizeof(*pages), GFP_KERNEL);
	if (!pages)
		return NULL;
	for (i = 0; i < bulk->n; i++) {
		for (j = 0; j < bulk->chunk[i].bytes >> PAGE_SHIFT; j++)
			pages[k++] = virt_to_page(bulk->chunk[i].mem) + j;
	}
	view = vmap(pages, n, VM_MAP, PAGE_KERNEL);
	kvfree(pages);
	return view;
}
