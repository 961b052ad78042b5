/* SPDX-License-Identifier: GPL-2.0 */
/* Where the bytes of an LMR are: a sorted table of contiguous pieces. */
#ifndef _LITE_CORE_EXTENT_H
#define _LITE_CORE_EXTENT_H

#include "types.h"

/**
 * struct lite_extent - one contiguous piece of an LMR
 * @start: offset in the LMR of its first byte
 * @length: bytes
 * @addr: what the RDMA device of its node calls the first byte
 * @share: index into the LMR's table of nodes
 */
struct lite_extent {
	u64 start;
	u64 length;
	u64 addr;
	u32 share;
};

/**
 * lite_extent_find - the extent that holds an offset
 * @table: sorted, without holes, starting at 0
 * @n: entries, at least 1
 * @offset: less than the end of the last extent
 *
 * Return: index into @table.
 */
u32 lite_extent_find(const struct lite_extent *table, u32 n, u64 offset);

/**
 * lite_extent_table_check - is a table that came from a peer sound?
 * @table: to check, every @start set
 * @n: entries
 * @length: bytes the table has to cover
 * @n_shares: entries in the table of nodes
 *
 * Sound means: no holes, no overlap, no empty piece, no address that wraps,
 * every share known, exactly @length bytes. Shares may come in any order: parts
 * of an LMR may have been moved.
 *
 * Return: 0 or -EPROTO.
 */
int lite_extent_table_check(const struct lite_extent *table, u32 n, u64 length,
			    u32 n_shares);

/**
 * lite_extent_append - add a piece to a table, merging it with its neighbour
 * @table: has room for one more
 * @n: entries so far, updated
 * @addr: of the piece
 * @length: bytes, not 0
 * @share: index into the table of nodes
 */
void lite_extent_append(struct lite_extent *table, u32 *n, u64 addr, u64 length,
			u32 share);

#endif /* _LITE_CORE_EXTENT_H */
