// SPDX-License-Identifier: GPL-2.0
/*
 * Memory that the device, and through it the peers, can reach; and the quarantine for memory that a
 * fence did not protect (Documentation/memory-safety.rst, A fence that fails), because the device
 * did not destroy a queue pair. Such memory stays mapped, is counted, and is never used again, not
 * even after the module is unloaded.
 */
#include <linux/dma-map-ops.h>

#include "fabric.h"

/* Largest mapping that cannot be split: function/area.c, kcall_slots.c. */
#define LITE_DMA_LEAST SZ_1M

/*
 * Does the device work on copies (swiotlb), so that it and the processors do not see each other's
 * writes at once? If so, unmapping copies the old contents back.
 */
static int lite_dma_copies(struct ib_device *dev, bool *copies)
{
	struct page *page = alloc_page(GFP_KERNEL | __GFP_ZERO);
	u64 *word, addr;

	if (!page)
		return -ENOMEM;
	word = page_address(page);
	addr = ib_dma_map_page(dev, page, 0, PAGE_SIZE, DMA_BIDIRECTIONAL);
	if (ib_dma_mapping_error(dev, addr)) {
		__free_page(page);
		return -ENOMEM;
	}
	WRITE_ONCE(*word, U64_MAX);
	ib_dma_unmap_page(dev, addr, PAGE_SIZE, DMA_BIDIRECTIONAL);
	*copies = READ_ONCE(*word) != U64_MAX;
	__free_page(page);
	return 0;
}

/*
 * Can memory be mapped once and shared with the device? Processors and the device use LMRs at the
 * same time, which rules out swiotlb, and caches that are not coherent with the device. So mapped
 * memory never needs ib_dma_sync_single_*(). @fab->dev is known. Sets @fab->map_max, and @why to a
 * text for the administrator. May sleep. Return: 0, -EOPNOTSUPP or -ENOMEM.
 */
int lite_dma_check(struct lite_fabric *fab, const char **why)
{
	struct device *dma = fab->dev->dma_device;
	bool copies = false;

	fab->map_max = SIZE_MAX;
	/* The device uses kernel addresses. */
	if (ib_uses_virt_dma(fab->dev))
		return 0;
	fab->map_max = dma_max_mapping_size(dma);
	if (dma_addressing_limited(dma) || !dev_is_dma_coherent(dma))
		*why = "the device does not reach all memory as processors see it";
	else if (lite_dma_copies(fab->dev, &copies))
		return -ENOMEM;
	else if (copies)
		*why = "the device works on copies of memory (swiotlb), not on memory";
	else if (fab->map_max < LITE_DMA_LEAST)
		*why = "the device maps too little memory at a time";
	else
		return 0;
	return -EOPNOTSUPP;
}

/*
 * Let the device, and through it the peers, reach @size bytes of physically contiguous memory from
 * @page on: whole pages, at most @map_max. Sets @dma to the address to publish. Does not sleep.
 * Return: 0; -ENOMEM: a smaller size may succeed.
 */
int lite_dma_map_page(struct lite_fabric *fab, struct page *page, size_t size, u64 *dma)
{
	u64 addr = ib_dma_map_page(fab->dev, page, 0, size, DMA_BIDIRECTIONAL);

	if (ib_dma_mapping_error(fab->dev, addr))
		return -ENOMEM;
	lite_stat_add(fab->stats, LITE_STAT_DMA_PAGES, size >> PAGE_SHIFT);
	*dma = addr;
	return 0;
}

/*
 * Undo lite_dma_map_page(). @since: lite_dma_since() from before it. All users of the address have
 * been fenced. Does not sleep. Return: false: a fence has failed, and the pages are in quarantine:
 * they stay mapped and must not be freed.
 */
bool lite_dma_unmap_page(struct lite_fabric *fab, u64 dma, size_t size, u32 since)
{
	s64 pages = size >> PAGE_SHIFT;

	lite_stat_add(fab->stats, LITE_STAT_DMA_PAGES, -pages);
	if (unlikely(since != lite_dma_since(fab))) {
		lite_stat_add(fab->stats, LITE_STAT_QUARANTINED, pages);
		return false;
	}
	ib_dma_unmap_page(fab->dev, dma, size, DMA_BIDIRECTIONAL);
	return true;
}

/* Record that a fence has failed, before its waiters are woken. May sleep. */
void lite_dma_unfenced(struct lite_fabric *fab)
{
	if (atomic_inc_return(&fab->unfenced) == 1)
		dev_err(&fab->dev->dev,
			"lite: could not destroy a queue pair in time; memory that it may reach is not used again: see litectl stats\n");
	lite_stat_inc(fab->stats, LITE_STAT_FENCES_FAILED);
}
