// SPDX-License-Identifier: GPL-2.0
#include "ring.h"

void lite_ring_map_init(struct lite_ring_map *map, u32 units, u32 chunk, unsigned long *bits)
{
	map->units = units;
	map->chunk = chunk;
	map->next = 0;
	map->used = 0;
	map->bits = bits;
}

/* Find @n consecutive free units of one chunk in [@from, @end). */
static u32 lite_ring_search(const struct lite_ring_map *map, u32 from, u32 end, u32 n)
{
	u32 at = LITE_RING_NONE;

	while (from < end && at == LITE_RING_NONE) {
		u32 chunk_end = (from / map->chunk + 1) * map->chunk, found;

		if (chunk_end > end)
			chunk_end = end;
		found = bitmap_find_next_zero_area(map->bits, chunk_end, from, n, 0);
		if (found + n <= chunk_end)
			at = found;
		from = chunk_end;
	}
	return at;
}

u32 lite_ring_take(struct lite_ring_map *map, u32 n, u32 end)
{
	u32 at, wrap;

	if (!n || n > map->chunk || n > map->units - map->used)
		return LITE_RING_NONE;
	at = lite_ring_search(map, map->next, end, n);
	if (at == LITE_RING_NONE) {
		/* A run that begins before @next may end behind it. */
		wrap = map->next + n - 1;
		at = lite_ring_search(map, 0, wrap < end ? wrap : end, n);
	}
	if (at == LITE_RING_NONE)
		return at;
	bitmap_set(map->bits, at, n);
	map->used += n;
	map->next = at + n < map->units ? at + n : 0;
	return at;
}

void lite_ring_give(struct lite_ring_map *map, u32 at, u32 n)
{
	bitmap_clear(map->bits, at, n);
	map->used -= n;
}

u32 lite_ring_limit(u32 units, u32 chunk, u32 most)
{
	u32 left = units / 8, fit;

	if (!most || most > chunk)
		return units;
	if (left < most)
		left = most;
	if (left > chunk)
		left = chunk;
	/* Longest records that fit in all chunks but the last, and in what is left of the last. */
	fit = (units / chunk - 1) * (chunk / most) + (chunk - left) / most;
	return fit < 2 ? units : units - left;
}

int lite_ring_record_check(u32 units, u32 chunk, u32 at, u64 bytes)
{
	u64 n = bytes / LITE_RING_UNIT + !!(bytes % LITE_RING_UNIT);

	return n && at < units && n <= chunk && at % chunk + n <= chunk ? 0 : -EPROTO;
}
