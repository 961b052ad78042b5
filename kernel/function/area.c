// SPDX-License-Identifier: GPL-2.0
/*
 * The memory of rings and mirrors: chunks of contiguous pages, which a peer's
 * device writes. The last reference frees it. It is dropped only after the peer
 * has promised not to write any more, or is fenced.
 */
#include <linux/slab.h>

#include "service.h"

/*
 * Counts the slots, too: they can be larger than a small ring, and rings can be
 * many.
 */
static u64 lite_area_cost(const struct lite_area *area)
{
	return (u64)area->n * area->chunk_bytes + sizeof(struct lite_ring);
}

static void lite_area_free(struct lite_area *area)
{
	u32 i;

	for (i = 0; i < area->n && area->chunk[i].mem; i++) {
		if (area->fab &&
		    !lite_dma_unmap_page(area->fab, area->chunk[i].dma,
					 area->chunk_bytes, area->since))
			continue;
		free_pages_exact(area->chunk[i].mem, area->chunk_bytes);
	}
	lite_pool_give(&area->svc->pools[LITE_POOL_RINGS], area->uid,
		       lite_area_cost(area));
	lite_stat_add(area->svc->stats, LITE_STAT_RING_BYTES,
		      -(s64)area->n * area->chunk_bytes);
	lite_stat_dec(area->svc->stats, LITE_STAT_RINGS);
	kfree(area);
}

static void lite_area_release(struct kref *ref)
{
	lite_area_free(container_of(ref, struct lite_area, ref));
}

/* Drop a reference. Context: process. */
void lite_area_put(struct lite_area *area)
{
	kref_put(&area->ref, lite_area_release);
}

static int lite_area_fill(struct lite_area *area, u32 i)
{
	void *mem = alloc_pages_exact(area->chunk_bytes,
				      GFP_KERNEL | __GFP_ZERO | __GFP_NOWARN);

	if (!mem)
		return -ENOMEM;
	if (area->fab &&
	    lite_dma_map_page(area->fab, virt_to_page(mem), area->chunk_bytes,
			      &area->chunk[i].dma)) {
		free_pages_exact(mem, area->chunk_bytes);
		return -ENOMEM;
	}
	area->chunk[i].mem = mem;
	return 0;
}

/**
 * lite_area_make - zeroed memory for a ring or a mirror
 * @svc: node's
 * @fab: map it for this fabric's device; NULL: not mapped
 * @uid: user it counts for: the owner of the function
 * @chunk_bytes: multiple of the page size
 * @n: chunks
 *
 * Context: may sleep.
 * Return: the area, with a reference, or ERR_PTR: -ENOBUFS: the limit of the
 * node or of the user is reached; -ENOMEM.
 */
struct lite_area *lite_area_make(struct lite_service *svc,
				 struct lite_fabric *fab, u32 uid,
				 u32 chunk_bytes, u32 n)
{
	struct lite_area *area;
	int err;
	u32 i;

	area = kzalloc(struct_size(area, chunk, n), GFP_KERNEL);
	if (!area)
		return ERR_PTR(-ENOMEM);
	kref_init(&area->ref);
	area->svc = svc;
	area->fab = fab;
	area->uid = uid;
	area->since = fab ? lite_dma_since(fab) : 0;
	area->chunk_bytes = chunk_bytes;
	area->n = n;
	err = lite_pool_take(&svc->pools[LITE_POOL_RINGS], uid,
			     lite_area_cost(area));
	if (err) {
		kfree(area);
		return ERR_PTR(err == -ENOMEM ? err : -ENOBUFS);
	}
	lite_stat_inc(svc->stats, LITE_STAT_RINGS);
	lite_stat_add(svc->stats, LITE_STAT_RING_BYTES, (s64)n * chunk_bytes);
	for (i = 0; i < n; i++) {
		if (lite_area_fill(area, i)) {
			lite_area_free(area);
			return ERR_PTR(-ENOMEM);
		}
	}
	return area;
}
