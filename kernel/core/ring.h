/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Which parts of an RPC ring are taken. A ring is made of chunks of contiguous
 * memory, and is counted in units of 64 bytes; what is taken, a record, is never
 * across two chunks. Records come free in any order.
 *
 * Taking goes on behind the last one taken (next-fit), so that free units
 * gather before it gets there again.
 */
#ifndef _LITE_CORE_RING_H
#define _LITE_CORE_RING_H

#include "types.h"

#define LITE_RING_UNIT 64U
/* As immediates have it: 16 bits for the number of a unit. */
#define LITE_RING_UNITS_MAX 65536U
/* No unit */
#define LITE_RING_NONE (~0U)

/**
 * struct lite_ring_map - the units of a ring
 * @units: how many
 * @chunk: of them, in each chunk; divides @units
 * @next: where to look first
 * @used: of them, are taken
 * @bits: a bit for each, LITE_RING_MAP_WORDS() words; set: it is taken
 */
struct lite_ring_map {
	u32 units;
	u32 chunk;
	u32 next;
	u32 used;
	u64 *bits;
};

#define LITE_RING_MAP_WORDS(units) (((units) + 63) / 64)

/* Units that so many bytes take. */
static inline u32 lite_ring_units(u32 bytes)
{
	return (bytes + LITE_RING_UNIT - 1) / LITE_RING_UNIT;
}

/**
 * lite_ring_map_init - a ring of which nothing is taken
 * @map: to fill
 * @units: of the ring, 1..LITE_RING_UNITS_MAX
 * @chunk: units of a chunk; divides @units
 * @bits: zeroed, LITE_RING_MAP_WORDS(@units) words
 */
void lite_ring_map_init(struct lite_ring_map *map, u32 units, u32 chunk,
			u64 *bits);

/**
 * lite_ring_take - take units that follow each other in one chunk
 * @map: ring
 * @n: how many
 *
 * Return: the first of them, or LITE_RING_NONE: there is no room. Never room if
 * @n is 0, or more than a chunk has.
 */
u32 lite_ring_take(struct lite_ring_map *map, u32 n);

/**
 * lite_ring_give - give back what was taken
 * @map: ring
 * @at: as lite_ring_take() said
 * @n: likewise
 */
void lite_ring_give(struct lite_ring_map *map, u32 at, u32 n);

/**
 * lite_ring_record_check - can this be a record?
 * @units: of the ring
 * @chunk: of a chunk
 * @at: first unit, from a peer
 * @bytes: of the record, from a peer
 *
 * Return: 0, or -EPROTO: it begins or ends outside of the ring, or is across two
 * chunks.
 */
int lite_ring_record_check(u32 units, u32 chunk, u32 at, u64 bytes);

/**
 * lite_window_has_room - may a ring have one more call under way?
 * @has: calls of it that are
 * @left: places in the window that it shares with others
 *
 * A ring gets half as many as are left, so that something is left for those whose
 * server is not slow: k slow ones leave 2 / (k + 2) of the window. These are the
 * dynamic thresholds of Choudhury and Hahne (IEEE/ACM ToN 6(2), 1998).
 */
static inline bool lite_window_has_room(u32 has, u32 left)
{
	return 2 * has < left;
}

#endif /* _LITE_CORE_RING_H */
