// SPDX-License-Identifier: GPL-2.0
#include "ring.h"

void lite_ring_map_init(struct lite_ring_map *map, u32 units, u32 chunk, u64 *bits)
{
	map->units = units;
	map->chunk = chunk;
	map->next = 0;
	map->used = 0;
	map->bits = bits;
}

/* Find the first of @n free units in [@from, @end), which is in one chunk. */
static u32 lite_ring_find(const struct lite_ring_map *map, u32 from, u32 end, u32 n)
{
	u32 i = from;
	u32 run = 0; /* free units before @i */

	while (i < end && end - i >= n - run) {
		u64 word = map->bits[i / 64] >> i % 64;
		u32 left = end - i < 64 - i % 64 ? end - i : 64 - i % 64;
		u32 free = word ? __builtin_ctzll(word) : 64;

		if (free >= left)
			free = left;
		run += free;
		if (run >= n)
			return i + free - run;
		i += free;
		if (free == left)
			continue;
		/* Skip the taken units behind them. */
		word = ~(word >> free);
		i += word ? __builtin_ctzll(word) : 64;
		run = 0;
	}
	return LITE_RING_NONE;
}

static void lite_ring_mark(struct lite_ring_map *map, u32 at, u32 n, bool taken)
{
	u32 end = at + n;

	while (at < end) {
		u32 bit = at % 64;
		u32 here = end - at < 64 - bit ? end - at : 64 - bit;
		u64 mask = ~0ULL >> (64 - here) << bit;

		if (taken)
			map->bits[at / 64] |= mask;
		else
			map->bits[at / 64] &= ~mask;
		at += here;
	}
}

/* Find @n free units in [@from, @end), chunk by chunk. */
static u32 lite_ring_search(const struct lite_ring_map *map, u32 from, u32 end, u32 n)
{
	u32 at = LITE_RING_NONE;

	while (from < end && at == LITE_RING_NONE) {
		u32 chunk_end = (from / map->chunk + 1) * map->chunk;

		if (chunk_end > end)
			chunk_end = end;
		at = lite_ring_find(map, from, chunk_end, n);
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
		/* A run from before @next may end behind it. */
		wrap = map->next + n - 1;
		at = lite_ring_search(map, 0, wrap < end ? wrap : end, n);
	}
	if (at == LITE_RING_NONE)
		return at;
	lite_ring_mark(map, at, n, true);
	map->used += n;
	map->next = at + n < map->units ? at + n : 0;
	return at;
}

void lite_ring_give(struct lite_ring_map *map, u32 at, u32 n)
{
	lite_ring_mark(map, at, n, false);
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
	/* In all chunks but the last one, and in the rest of that. */
	fit = (units / chunk - 1) * (chunk / most) + (chunk - left) / most;
	return fit < 2 ? units : units - left;
}

int lite_ring_record_check(u32 units, u32 chunk, u32 at, u64 bytes)
{
	u64 n = bytes / LITE_RING_UNIT + !!(bytes % LITE_RING_UNIT);

	return n && at < units && n <= chunk && at % chunk + n <= chunk ? 0 : -EPROTO;
}
