// SPDX-License-Identifier: GPL-2.0
/*
 * Memory that the device, and with it the peers, can reach; and what becomes of it
 * when that cannot be ended.
 *
 * Memory is given back behind a fence: the destruction of the queue pairs through
 * which it could be reached. A device can fail to destroy one, or give up waiting
 * for what it has under way (Soft-RoCE does after 50 s, and says that all is well).
 * Then nothing is known of what that queue pair may yet read and write. All that
 * was mapped by then goes into quarantine when it would be given back: it stays
 * mapped, belongs to nobody, and is counted. It is never used again, not even when
 * the module has gone. What is mapped afterwards the queue pair's peer has never
 * known the address of in its session.
 */
#include "fabric.h"

/**
 * lite_dma_map_page - let the device, and with it the peers, reach pages
 * @fab: fabric
 * @page: first of @size bytes of physically contiguous memory
 * @size: bytes, whole pages
 * @dma: set to the address to publish
 *
 * Context: may sleep.
 * Return: 0 or -ENOMEM.
 */
int lite_dma_map_page(struct lite_fabric *fab, struct page *page, size_t size,
		      u64 *dma)
{
	u64 addr = ib_dma_map_page(fab->dev, page, 0, size, DMA_BIDIRECTIONAL);

	if (ib_dma_mapping_error(fab->dev, addr))
		return -ENOMEM;
	lite_stat_add(fab->stats, LITE_STAT_DMA_PAGES, size >> PAGE_SHIFT);
	*dma = addr;
	return 0;
}

/**
 * lite_dma_unmap_page - the counterpart of lite_dma_map_page()
 * @fab: fabric
 * @dma: address
 * @size: bytes, as mapped
 * @since: lite_dma_since(), before it was mapped
 *
 * Context: may sleep. Whoever could still use the address has been fenced.
 * Return: true; false: a fence has failed, and the pages are in quarantine: they
 * stay mapped, and are not to be given back.
 */
bool lite_dma_unmap_page(struct lite_fabric *fab, u64 dma, size_t size,
			 u32 since)
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

/**
 * lite_dma_unfenced - a fence has failed
 * @fab: fabric
 *
 * To be called before anybody is told that the connection is fenced.
 *
 * Context: may sleep.
 */
void lite_dma_unfenced(struct lite_fabric *fab)
{
	if (atomic_inc_return(&fab->unfenced) == 1)
		dev_err(&fab->dev->dev,
			"lite: could not destroy a queue pair in time; memory that it may reach is not used again: see litectl stats\n");
	lite_stat_inc(fab->stats, LITE_STAT_FENCES_FAILED);
}
