/* SPDX-License-Identifier: GPL-2.0 */
/* The one place where an offset and a length meet the size of a region. */
#ifndef _LITE_CORE_BOUNDS_H
#define _LITE_CORE_BOUNDS_H

#include "types.h"

/**
 * lite_bounds_check - may [offset, offset + length) be touched?
 * @offset: first byte
 * @length: bytes
 * @size: of the region, bytes
 *
 * Return: 0; -EINVAL for no bytes at all; -ERANGE when the range ends beyond
 * the region or wraps.
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

/**
 * lite_atomic_check - may the 8-byte word at @offset be operated on?
 * @offset: of the word
 * @length: must be 8
 * @size: of the region, bytes
 *
 * Return: 0; -EINVAL for another length or a misaligned word; -ERANGE.
 */
static inline int lite_atomic_check(u64 offset, u64 length, u64 size)
{
	if (length != sizeof(u64) || offset % sizeof(u64))
		return -EINVAL;
	return lite_bounds_check(offset, length, size);
}

#endif /* _LITE_CORE_BOUNDS_H */
