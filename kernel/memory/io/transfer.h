/* SPDX-License-Identifier: GPL-2.0 */
/* What transfer.c and transfer_large.c share. */
#ifndef _LITE_TRANSFER_H
#define _LITE_TRANSFER_H

#include "memory/handle/ctx.h"

/**
 * struct lite_piece_io - progress of a transfer
 * @a: handle and right
 * @write: direction
 * @begun: the LMR has been entered, so rights and bounds were valid
 * @offset: in the LMR
 * @left: bytes to go
 * @at: offset in the buffer
 * @tries: how often the current piece has failed
 * @large: how often of @tries it was posted as a large piece
 * @buf: caller's
 * @n: bytes of the current piece, if it is not a large one
 * @run: bytes of a large piece, all in one share of another node
 * @bounce: held for the current piece, or NULL
 */
struct lite_piece_io {
	const struct lite_access *a;
	bool write;
	bool begun;
	u64 offset;
	u64 left;
	u64 at;
	int tries;
	int large;
	const struct lite_buf *buf;
	size_t n;
	u64 run;
	struct lite_bounce *bounce;
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

int lite_piece_large(struct lite_piece_io *p);

#endif /* _LITE_TRANSFER_H */
