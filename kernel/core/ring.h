/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The map of taken units in an RPC ring. A ring consists of chunks of contiguous memory, counted in
 * units of 64 bytes. A record never spans two chunks. Records are freed in any order. The search
 * for free units continues behind the last record taken (next-fit), so that free units gather
 * before it comes round.
 */
#ifndef _LITE_CORE_RING_H
#define _LITE_CORE_RING_H

#include "types.h"

#define LITE_RING_UNIT 64U
#define LITE_RING_UNITS_MAX 65536U /* immediate data has 16 bits for the number of a unit */
#define LITE_RING_NONE (~0U) /* no unit */

struct lite_ring_map {
	u32 units;
	u32 chunk; /* units per chunk */
	u32 next;  /* where the next search begins */
	u32 used;  /* number of units taken */
	unsigned long *bits; /* a bit per unit; set: taken */
};

static inline u32 lite_ring_units(u32 bytes)
{
	return (bytes + LITE_RING_UNIT - 1) / LITE_RING_UNIT;
}

/*
 * Initialize the map of an empty ring of 1..LITE_RING_UNITS_MAX units in chunks of @chunk units,
 * which divides @units. @bits: zeroed, BITS_TO_LONGS(@units) words.
 */
void lite_ring_map_init(struct lite_ring_map *map, u32 units, u32 chunk, unsigned long *bits);

/*
 * Take @n consecutive units of one chunk, before unit @end. Return: the first unit, or
 * LITE_RING_NONE: there is no room, or @n is 0 or more than a chunk.
 */
u32 lite_ring_take(struct lite_ring_map *map, u32 n, u32 end);

void lite_ring_give(struct lite_ring_map *map, u32 at, u32 n);

/*
 * First unit of the part of a ring that is kept for users without a call in it: an eighth, but at
 * least @most units (the longest record), and at most a chunk. Return: @units: no part is kept,
 * because the rest would not hold two of the longest records.
 */
u32 lite_ring_limit(u32 units, u32 chunk, u32 most);

/* Check a record named by a peer. Return: 0; -EPROTO: empty, outside the ring, or in two chunks. */
int lite_ring_record_check(u32 units, u32 chunk, u32 at, u64 bytes);

/*
 * May a ring with @has calls under way have one more? @left: free places of the window that all
 * rings share. A ring gets half as many places as are left, so k slow servers leave 2 / (k + 2) of
 * the window to others (dynamic thresholds: Choudhury and Hahne, IEEE/ACM ToN 6(2), 1998).
 */
static inline bool lite_window_has_room(u32 has, u32 left)
{
	return 2 * has < left;
}

#endif /* _LITE_CORE_RING_H */
