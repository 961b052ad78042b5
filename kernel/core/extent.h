/* SPDX-License-Identifier: GPL-2.0 */
/* Where the bytes of an LMR are: a sorted table of contiguous pieces. */
#ifndef _LITE_CORE_EXTENT_H
#define _LITE_CORE_EXTENT_H

#include "types.h"

struct lite_extent {
	u64 start;  /* offset in the LMR */
	u64 length; /* bytes */
	u64 addr;   /* DMA address at its node */
	u32 share;  /* index into the LMR's table of nodes */
};

/* Index of the extent that holds @offset. The table covers @offset, from 0 on and without holes. */
u32 lite_extent_find(const struct lite_extent *table, u32 n, u64 offset);

/*
 * Check a table that came from a peer: it must cover @length bytes without holes, overlaps, empty
 * extents, wrapping addresses or unknown shares. Shares may come in any order, because parts of an
 * LMR may have been moved. Return: 0 or -EPROTO.
 */
int lite_extent_table_check(const struct lite_extent *table, u32 n, u64 length, u32 n_shares);

/* Append a piece of @length > 0 bytes to a table with room, or merge it with the last extent. */
void lite_extent_append(struct lite_extent *table, u32 *n, u64 addr, u64 length, u32 share);

#endif /* _LITE_CORE_EXTENT_H */
