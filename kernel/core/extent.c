// SPDX-License-Identifier: GPL-2.0
#include "extent.h"

u32 lite_extent_find(const struct lite_extent *table, u32 n, u64 offset)
{
	u32 lo = 0, hi = n;

	/* Invariant: table[lo].start <= offset < start of table[hi]. */
	while (hi - lo > 1) {
		u32 mid = lo + (hi - lo) / 2;

		if (table[mid].start <= offset)
			lo = mid;
		else
			hi = mid;
	}
	return lo;
}

int lite_extent_table_check(const struct lite_extent *table, u32 n, u64 length, u32 n_shares)
{
	u64 end = 0, last;
	u32 i;

	if (!n || !length)
		return -EPROTO;
	for (i = 0; i < n; i++) {
		const struct lite_extent *e = &table[i];

		if (e->start != end || !e->length || e->share >= n_shares ||
		    check_add_overflow(end, e->length, &end) ||
		    check_add_overflow(e->addr, e->length - 1, &last))
			return -EPROTO;
	}
	return end == length ? 0 : -EPROTO;
}

void lite_extent_append(struct lite_extent *table, u32 *n, u64 addr, u64 length, u32 share)
{
	struct lite_extent *last = *n ? &table[*n - 1] : NULL;

	if (last && last->share == share && last->addr + last->length == addr) {
		last->length += length;
		return;
	}
	table[*n] = (struct lite_extent){
		.start = last ? last->start + last->length : 0,
		.length = length,
		.addr = addr,
		.share = share,
	};
	(*n)++;
}
