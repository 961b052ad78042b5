/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A handle (lh) is an index into the table of its open file, and a tag that counts up from a random
 * number. The tag catches mistakes (a stale handle, or one of another file). It is no secret,
 * because each file has a table of its own.
 */
#ifndef _LITE_CORE_HANDLE_H
#define _LITE_CORE_HANDLE_H

#include "types.h"

/* Never 0: @index starts at 1. */
static inline u64 lite_handle_make(u32 index, u32 tag)
{
	return ((u64)tag << 32) | index;
}

static inline u32 lite_handle_index(u64 lh)
{
	return (u32)lh;
}

/* An LMR's id at its home is between 1 and this. */
#define LITE_LMR_ID_MAX (BIT_ULL(48) - 1)

/* Key of an LMR in this node's tables: its home, and its id there. */
static inline unsigned long lite_mapping_key(u32 home, u64 id)
{
	return (unsigned long)home << 48 | (id & LITE_LMR_ID_MAX);
}

#endif /* _LITE_CORE_HANDLE_H */
