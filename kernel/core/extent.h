/* SPDX-License-Identifier: GPL-2.0 */
/* Where the bytes of an LMR are: a sorted table of contiguous pieces. */
#ifndef _LITE_CORE_EXTENT_H
#define _LITE_CORE_EXTENT_H

#include "types.h"

/**
 * struct lite_extent - one contiguous piece of an LMR
 * @start: offset of its first byte in the LMR
 * @length: bytes
 * @addr: address of its first byte, for the RDMA device of its node
 * @share: index into the LMR's table of nodes
 */
struct lite_extent {
	u64 start;
	u64 length;
	u64 addr;
	u32 share;
};

/**
 * lite_extent_find - find the extent that holds an offset
 * @table: sorted, without holes, starting at 0
 * @n: entries, at least 1
 * @offset: less than the end of the last extent
 *
 * Return: index into @table.
 */
u32 lite_extent_find(const struct lite_extent *table, u32 n, u64 offset);

/**
 * lite_extent_table_check - check a table that came from a peer
 * @table: table; every @start is set
 * @n: entries
 * @length: bytes that the table must cover
 * @n_shares: entries in the table of nodes
 *
 * No holes, overlaps, empty extents, wrapping addresses or unknown shares are
 * allowed. Shares may come in any order: parts of an LMR may have been moved.
 *
 * Return: 0 or -EPROTO.
 */
int lite_extent_table_check(const struct lite_extent *table, u32 n, u64 length, u32 n_shares);

/*
 * Append a piece of @length bytes, not 0, to a table with room for it, or merge
 * it with the last one. @n: entries so far, updated.
 */
void lite_extent_append(struct lite_extent *table, u32 *n, u64 addr, u64 length, u32 share);

#endif /* _LITE_CORE_EXTENT_H */
