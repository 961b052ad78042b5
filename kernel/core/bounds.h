/* SPDX-License-Identifier: GPL-2.0 */
/* Range checks: every offset and length is checked against a region here. */
#ifndef _LITE_CORE_BOUNDS_H
#define _LITE_CORE_BOUNDS_H

#include "types.h"

/*
 * Check that [@offset, @offset + @length) is in a region of @size bytes. Return: 0; -EINVAL:
 * @length is 0; -ERANGE: the range ends beyond the region, or wraps.
 */
static inline int lite_bounds_check(u64 offset, u64 length, u64 size)
{
	u64 end;

	if (!length)
		return -EINVAL;
	if (check_add_overflow(offset, length, &end) || end > size)
		return -ERANGE;
	return 0;
}

/* As lite_bounds_check(), for an atomic operation; -EINVAL also if it is no aligned 8-byte word. */
static inline int lite_atomic_check(u64 offset, u64 length, u64 size)
{
	if (length != sizeof(u64) || offset % sizeof(u64))
		return -EINVAL;
	return lite_bounds_check(offset, length, size);
}

#endif /* _LITE_CORE_BOUNDS_H */
