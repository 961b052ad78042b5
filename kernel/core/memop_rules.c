// SPDX-License-Identifier: GPL-2.0
#include "memop_rules.h"
#include "rights.h" /* includes the ABI */

/* Bytes copied at a time, before this is rounded down to whole patterns. */
#define LITE_PATTERN_BLOCK 256U

int lite_pattern_check(u64 pattern, u64 length)
{
	if (!length || length > LITE_PATTERN_MAX ||
	    (length < LITE_PATTERN_MAX && pattern >> (8 * length)))
		return -EINVAL;
	return 0;
}

u64 lite_pattern_rotate(u64 pattern, u32 length, u64 at)
{
	u32 by = 8 * (u32)(at % length);

	if (!by)
		return pattern;
	/* The bytes before @at go to the end. */
	return pattern >> by | (pattern & ((1ULL << by) - 1)) << (8 * length - by);
}

void lite_pattern_fill(void *to, size_t n, u64 pattern, u32 length)
{
	u8 block[LITE_PATTERN_BLOCK];
	size_t size = LITE_PATTERN_BLOCK - LITE_PATTERN_BLOCK % length;
	size_t i;

	if (length == 1) {
		memset(to, (int)pattern, n);
		return;
	}
	for (i = 0; i < size; i++)
		block[i] = (u8)(pattern >> (8 * (i % length)));
	for (; n >= size; n -= size, to = (u8 *)to + size)
		memcpy(to, block, size);
	memcpy(to, block, n);
}

u64 lite_extent_run(const struct lite_extent *table, u32 n, u64 offset, u64 max)
{
	u32 i = lite_extent_find(table, n, offset);
	u32 share = table[i].share;
	u64 run;

	do {
		run = table[i].start + table[i].length - offset;
	} while (run < max && ++i < n && table[i].share == share);
	return run < max ? run : max;
}

u64 lite_extent_run_back(const struct lite_extent *table, u32 n, u64 end, u64 max)
{
	u32 i = lite_extent_find(table, n, end - 1);
	u32 share = table[i].share;
	u64 run;

	do {
		run = end - table[i].start;
	} while (run < max && i-- && table[i].share == share);
	return run < max ? run : max;
}

size_t lite_first_difference(const void *a, const void *b, size_t n)
{
	const u8 *x = a, *y = b;
	__le64 v, w;
	size_t i = 0;
	u64 bits;

	for (; n - i >= sizeof(u64); i += sizeof(u64)) {
		/* Copy, then compare: both may change. Neither is aligned. */
		memcpy(&v, x + i, sizeof(v));
		memcpy(&w, y + i, sizeof(w));
		bits = le64_to_cpu(v) ^ le64_to_cpu(w);
		if (!bits)
			continue;
		for (; !(bits & 0xff); bits >>= 8)
			i++;
		return i;
	}
	while (i < n && x[i] == y[i])
		i++;
	return i;
}

u64 lite_atomic_result(u32 opcode, u64 old, u64 operand)
{
	if (opcode == LITE_OP_FETCH_AND)
		return old & operand;
	return opcode == LITE_OP_FETCH_OR ? old | operand : operand;
}
