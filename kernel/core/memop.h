/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The rules of memory operations: which part of a range is one node's, how a
 * pattern goes on in the middle of a range, in which order overlapping ranges
 * are copied, what an atomic operation makes of a word.
 */
#ifndef _LITE_CORE_MEMOP_H
#define _LITE_CORE_MEMOP_H

#include "extent.h"
#include "types.h"

/* Longest pattern of a SET, bytes. */
#define LITE_PATTERN_MAX 8U

/**
 * lite_pattern_check - may a SET have this pattern?
 * @pattern: its bytes, the first one lowest
 * @length: how many
 *
 * Return: 0, or -EINVAL: no bytes, more than LITE_PATTERN_MAX, or something
 * behind them.
 */
int lite_pattern_check(u64 pattern, u64 length);

/**
 * lite_pattern_rotate - a pattern as it is seen from a later byte on
 * @pattern: its bytes, the first one lowest
 * @length: how many, 1..LITE_PATTERN_MAX
 * @at: bytes after the beginning of a range that is filled with it
 *
 * Return: the pattern that begins there.
 */
u64 lite_pattern_rotate(u64 pattern, u32 length, u64 at);

/**
 * lite_pattern_fill - fill memory with a pattern
 * @to: memory; it is never read
 * @n: bytes
 * @pattern: its bytes, the first one lowest
 * @length: how many, 1..LITE_PATTERN_MAX
 */
void lite_pattern_fill(void *to, size_t n, u64 pattern, u32 length);

/**
 * lite_extent_run - bytes from an offset on that are in one share
 * @table: sorted, without holes, starting at 0
 * @n: entries, at least 1
 * @offset: less than the end of the last extent
 * @max: at most so many bytes, not 0
 *
 * Return: bytes, at least 1.
 */
u64 lite_extent_run(const struct lite_extent *table, u32 n, u64 offset,
		    u64 max);

/**
 * lite_extent_run_back - bytes before an offset that are in one share
 * @table: sorted, without holes, starting at 0
 * @n: entries, at least 1
 * @end: not 0, at most the end of the last extent
 * @max: at most so many bytes, not 0
 *
 * Return: bytes, at least 1.
 */
u64 lite_extent_run_back(const struct lite_extent *table, u32 n, u64 end,
			 u64 max);

/**
 * lite_copy_is_backward - must a copy within one region begin at its end?
 * @to: offset of the destination
 * @from: offset of the source
 * @length: bytes
 */
static inline bool lite_copy_is_backward(u64 to, u64 from, u64 length)
{
	return to > from && to - from < length;
}

/**
 * lite_copy_overlaps - do two ranges of one region have bytes in common?
 * @a: offset of the one
 * @b: offset of the other
 * @length: bytes of each
 */
static inline bool lite_copy_overlaps(u64 a, u64 b, u64 length)
{
	return (a > b ? a - b : b - a) < length;
}

/**
 * lite_first_difference - compare memory that others may be changing
 * @a: one
 * @b: other
 * @n: bytes
 *
 * Each byte is looked at once.
 *
 * Return: how many leading bytes are equal.
 */
size_t lite_first_difference(const void *a, const void *b, size_t n);

/**
 * lite_atomic_result - what an atomic operation makes of a word
 * @opcode: LITE_OP_SWAP, LITE_OP_FETCH_AND or LITE_OP_FETCH_OR
 * @old: value of the word
 * @operand: of the operation
 */
u64 lite_atomic_result(u32 opcode, u64 old, u64 operand);

#endif /* _LITE_CORE_MEMOP_H */
