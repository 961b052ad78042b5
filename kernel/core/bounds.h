/* SPDX-License-Identifier: GPL-2.0 */
/* Range checks: every offset and length is checked against a region here. */
#ifndef _LITE_CORE_BOUNDS_H
#define _LITE_CORE_BOUNDS_H

#include "types.h"

/* Check that a range is within @size bytes. Return: 0; -EINVAL: empty; -ERANGE: not within. */
static inline int lite_bounds_check(u64 offset, u64 length, u64 size)
{
	u64 end;

	if (!length)
		return -EINVAL;
	if (check_add_overflow(offset, length, &end) || end > size)
		return -ERANGE;
	return 0;
}

/* The same for an atomic operation; -EINVAL also if the range is not an aligned 8-byte word. */
static inline int lite_atomic_check(u64 offset, u64 length, u64 size)
{
	if (length != sizeof(u64) || offset % sizeof(u64))
		return -EINVAL;
	return lite_bounds_check(offset, length, size);
}

#endif /* _LITE_CORE_BOUNDS_H */
