/* SPDX-License-Identifier: GPL-2.0 */
/* Words of LMRs that the kernel itself operates on. word.c */
#ifndef _LITE_WORD_H
#define _LITE_WORD_H

#include <linux/types.h>

struct lite_ctx;
struct lite_memory;

/**
 * struct lite_word - an 8-byte word of an LMR
 * @home: of the LMR
 * @uid: of the user that opened the handle that named it
 * @incarnation: of the home
 * @id: of the LMR
 * @offset: in the LMR, a multiple of 8
 */
struct lite_word {
	u32 home;
	u32 uid;
	u64 incarnation;
	u64 id;
	u64 offset;
};

int lite_word_of(struct lite_ctx *ctx, u64 lh, u64 offset,
		 struct lite_word *word);
int lite_word_cmp_swap(struct lite_memory *mem, const struct lite_word *word,
		       u64 expected, u64 desired, u64 *old, bool *posted);

#endif /* _LITE_WORD_H */
