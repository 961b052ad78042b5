/* SPDX-License-Identifier: GPL-2.0 */
/* Words of LMRs that the kernel itself operates on. word.c */
#ifndef _LITE_WORD_H
#define _LITE_WORD_H

#include <linux/types.h>

struct lite_ctx;
struct lite_memory;

/* An 8-byte word of an LMR. */
struct lite_word {
	u32 home;        /* of the LMR */
	u32 uid;         /* of the user that opened the handle that named it */
	u64 incarnation; /* of the home */
	u64 id;          /* of the LMR */
	u64 offset;      /* in the LMR, a multiple of 8 */
};

int lite_word_of(struct lite_ctx *ctx, u64 lh, u64 offset, struct lite_word *word);
int lite_word_cmp_swap(struct lite_memory *mem, const struct lite_word *word, u64 expected,
		       u64 desired, u64 *old, bool *posted);

#endif /* _LITE_WORD_H */
