/* SPDX-License-Identifier: GPL-2.0 */
/* Memory of rings, mirrors, long requests and long replies: area.c */
#ifndef _LITE_FUNCTION_AREA_H
#define _LITE_FUNCTION_AREA_H

#include <linux/kref.h>
#include <linux/workqueue.h>

#include "core/ring.h"
#include "fabric/fabric.h"
#include "wire/wire_rpc.h"

struct lite_buf;

/* 1/LITE_BULK_SHARE of the machine's memory is the limit for bulks. */
#define LITE_BULK_SHARE 4

struct lite_area {
	struct kref ref;		/* of calls, slots, requests, rings (local: of both ends) */
	struct lite_service *svc;
	enum lite_pool_number pool;	/* RINGS: ring or mirror; BULK: long request or reply */
	u32 uid;			/* charged with @cost; for rings the function's owner */
	u64 cost;			/* units taken from @pool */
	struct lite_fabric *fab;	/* maps it for its device; NULL: not mapped */
	u32 since;			/* for lite_dma_unmap_page() */
	bool lost;			/* unmapping failed: its pages are never freed */
	u32 bytes;			/* usable size */
	u32 chunk_bytes;		/* ring, mirror: size of each chunk */
	struct work_struct put_work;	/* for lite_area_put_later() */
	u32 n;				/* chunks */
	struct {
		void *mem;
		u32 bytes;
		u64 dma;
	} chunk[];			/* contiguous pages, and their DMA address */
};

void lite_area_put(struct lite_area *area);
void lite_area_put_later(struct lite_area *area);
struct lite_area *lite_ring_area_make(struct lite_service *svc, bool mapped, u32 uid,
				      u32 chunk_bytes, u32 n);
struct lite_area *lite_ring_area_ample(struct lite_service *svc, bool mapped, u32 uid,
				       u32 chunk_bytes, u32 n);

struct lite_area *lite_bulk_make(struct lite_service *svc, u32 uid, u32 bytes);
int lite_bulk_map(struct lite_area *bulk);
void lite_bulk_unmap(struct lite_area *bulk);
size_t lite_bulk_copy_nofault(const struct lite_area *bulk, const struct lite_buf *buf, size_t done,
			      size_t n, bool in);
int lite_bulk_copy(const struct lite_area *bulk, const struct lite_buf *buf, size_t n, bool in);
void lite_bulk_move(struct lite_area *to, const struct lite_area *from, size_t n);
void *lite_bulk_view(const struct lite_area *bulk);

static inline u32 lite_area_units(const struct lite_area *area)
{
	return area->chunk_bytes / LITE_RING_UNIT * area->n;
}

/* The chunk that contains a unit; @offset is set to the unit's offset in it. */
static inline u32 lite_area_chunk(const struct lite_area *area, u32 unit, u32 *offset)
{
	u32 per = area->chunk_bytes / LITE_RING_UNIT;

	*offset = unit % per * LITE_RING_UNIT;
	return unit / per;
}

static inline void *lite_area_at(const struct lite_area *area, u32 unit)
{
	u32 offset, chunk = lite_area_chunk(area, unit, &offset);

	return area->chunk[chunk].mem + offset;
}

static inline u64 lite_area_dma(const struct lite_area *area, u32 unit)
{
	u32 offset, chunk = lite_area_chunk(area, unit, &offset);

	return area->chunk[chunk].dma + offset;
}

/* What follows the header of a record. */
static inline void *lite_area_body(const struct lite_area *area, u32 unit)
{
	return lite_area_at(area, unit) + LITE_RPC_HEADER;
}

/* Copy a header before it is checked: the peer can still change the record. */
static inline void lite_area_header(const struct lite_area *area, u32 unit, struct lite_wire_rpc *h)
{
	memcpy(h, lite_area_at(area, unit), sizeof(*h));
}

#endif /* _LITE_FUNCTION_AREA_H */
