/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Replacing parts of an LMR, at its home: what growing, shrinking and moving
 * share.
 */
#ifndef _LITE_REPLACE_H
#define _LITE_REPLACE_H

#include "memory/memory.h"

/**
 * struct lite_replace - parts that replace other parts
 * @lmr: LMR, with a change begun
 * @first: first part to go
 * @gone: number of parts to go
 * @widen: bytes added to the part before @first
 * @parts: new parts
 * @n: entries in @parts
 * @copying: bytes may have been copied into @parts
 */
struct lite_replace {
	struct lite_lmr *lmr;
	u32 first;
	u32 gone;
	u64 widen;
	struct lite_part *parts;
	u32 n;
	bool copying;
};

int lite_part_check(struct lite_lmr *lmr, const struct lite_part *part);
int lite_replace_apply(struct lite_replace *r, u64 keep);
void lite_replace_fail(struct lite_replace *r);
int lite_change_error(const struct lite_lmr *lmr, int err);

#endif /* _LITE_REPLACE_H */
