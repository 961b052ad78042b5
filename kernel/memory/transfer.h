/* SPDX-License-Identifier: GPL-2.0 */
/* What transfer.c and transfer_large.c share. */
#ifndef _LITE_TRANSFER_H
#define _LITE_TRANSFER_H

#include "ctx.h"

/**
 * struct lite_piece_io - progress of a transfer
 * @a: handle and right
 * @write: direction
 * @offset: in the LMR
 * @left: bytes to go
 * @at: offset in the buffer
 * @begun: the LMR has been entered, so rights and bounds were valid
 * @tries: how often the current piece has failed
 * @large: how often of @tries it was posted as a large piece
 * @buf: caller's
 */
struct lite_piece_io {
	const struct lite_access *a;
	bool write;
	u64 offset;
	u64 left;
	u64 at;
	bool begun;
	int tries;
	int large;
	const struct lite_buf *buf;
};

/* Note that @n bytes have been transferred. */
static inline void lite_piece_advance(struct lite_piece_io *p, size_t n)
{
	p->tries = 0;
	p->large = 0;
	p->left -= n;
	p->offset += n;
	p->at += n;
}

u64 lite_share_run(const struct lite_mapping *m, u64 offset, u64 max);
int lite_piece_large(struct lite_piece_io *p, u64 run);

#endif /* _LITE_TRANSFER_H */
