/* SPDX-License-Identifier: GPL-2.0 */
/* How an LMR is cut into shares, one for each node that it is spread over. */
#ifndef _LITE_CORE_SPREAD_H
#define _LITE_CORE_SPREAD_H

#include "types.h"

/*
 * Bytes in share @i of @n of an LMR of @length bytes. Shares are contiguous, equal, and whole
 * pages, except at the end of the LMR; the last shares of a small LMR may be empty.
 */
static inline u64 lite_spread_share(u64 length, u32 n, u32 i)
{
	u64 pages = (length + LITE_PAGE_SIZE - 1) >> LITE_PAGE_SHIFT;
	u64 each = ((pages + n - 1) / n) << LITE_PAGE_SHIFT;
	u64 start = each * i;

	if (start >= length)
		return 0;
	return length - start < each ? length - start : each;
}

#endif /* _LITE_CORE_SPREAD_H */
