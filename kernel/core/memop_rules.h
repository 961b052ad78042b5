/* SPDX-License-Identifier: GPL-2.0 */
/* The rules of memory operations: ranges that span nodes, patterns, overlapping copies, words. */
#ifndef _LITE_CORE_MEMOP_RULES_H
#define _LITE_CORE_MEMOP_RULES_H

#include "extent.h"
#include "types.h"

/* Longest pattern of a SET, bytes. */
#define LITE_PATTERN_MAX 8U

/*
 * Check the pattern of a SET, with the first byte lowest. Return: 0; -EINVAL: @length is 0 or more
 * than LITE_PATTERN_MAX, or bytes behind the pattern are not 0.
 */
int lite_pattern_check(u64 pattern, u64 length);

/* Rotate a pattern of 1..LITE_PATTERN_MAX bytes so that it continues at offset @at of the range. */
u64 lite_pattern_rotate(u64 pattern, u32 length, u64 at);

/* Fill @n bytes at @to, which is never read, with a pattern of 1..LITE_PATTERN_MAX bytes. */
void lite_pattern_fill(void *to, size_t n, u64 pattern, u32 length);

/* Bytes from @offset on, which the table covers, that are in one share. Return: 1..@max. */
u64 lite_extent_run(const struct lite_extent *table, u32 n, u64 offset, u64 max);

/* As lite_extent_run(), for the bytes before @end, which is not 0 and at most the table's end. */
u64 lite_extent_run_back(const struct lite_extent *table, u32 n, u64 end, u64 max);

/* Must a copy within one region begin at its end, as it would overwrite its source otherwise? */
static inline bool lite_copy_is_backward(u64 to, u64 from, u64 length)
{
	return to > from && to - from < length;
}

static inline bool lite_copy_overlaps(u64 a, u64 b, u64 length)
{
	return (a > b ? a - b : b - a) < length;
}

/* Compare memory that may change: each byte is read once. Return: number of equal leading bytes. */
size_t lite_first_difference(const void *a, const void *b, size_t n);

/* The result of LITE_OP_SWAP, LITE_OP_FETCH_AND or LITE_OP_FETCH_OR. */
u64 lite_atomic_result(u32 opcode, u64 old, u64 operand);

#endif /* _LITE_CORE_MEMOP_RULES_H */
