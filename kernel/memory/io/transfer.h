/* SPDX-License-Identifier: GPL-2.0 */
/* What transfer.c and transfer_large.c share. */
#ifndef _LITE_TRANSFER_H
#define _LITE_TRANSFER_H

#include "memory/handle/ctx.h"

/* Progress of a transfer. */
struct lite_piece_io {
	const struct lite_access *a; /* handle and right */
	u16 opcode;                  /* LITE_OP_READ or _WRITE */
	u8 prio;                     /* of lite_op_prio() */
	bool begun;                  /* the LMR has been entered, so rights and bounds were valid */
	u64 offset;                  /* in the LMR */
	u64 left;                    /* bytes to go */
	u64 at;                      /* offset in the buffer */
	int tries;                   /* how often the current piece has failed */
	unsigned long until;         /* for lite_range_renew() */
	int large;                   /* how often of @tries it was posted as a large piece */
	const struct lite_buf *buf;  /* caller's */
	size_t n;                    /* bytes of the current piece, if it is not a large one */
	u64 run;                     /* bytes of a large piece, all in one share of another node */
	bool chunked;                /* ... of an unpinned LMR, so batches end with chunks */
	struct lite_bounce *bounce;  /* held for the current piece, or NULL */
};

static inline bool lite_piece_writes(const struct lite_piece_io *p)
{
	return p->opcode == LITE_OP_WRITE;
}

/* Note that @n bytes have been transferred. */
static inline void lite_piece_advance(struct lite_piece_io *p, size_t n)
{
	p->tries = 0;
	p->until = 0;
	p->large = 0;
	p->left -= n;
	p->offset += n;
	p->at += n;
}

int lite_piece_large(struct lite_piece_io *p);

#endif /* _LITE_TRANSFER_H */
