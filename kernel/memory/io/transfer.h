/* SPDX-License-Identifier: GPL-2.0 */
/* What transfer.c and transfer_large.c share. */
#ifndef _LITE_TRANSFER_H
#define _LITE_TRANSFER_H

#include "io.h"
#include "wait.h"

/* Progress of a transfer. */
struct lite_piece_io {
	const struct lite_access *a; /* handle and right */
	u16 opcode;                  /* LITE_OP_READ or _WRITE */
	u8 prio;                     /* of lite_op_prio() */
	bool begun;                  /* the LMR has been entered, so rights and bounds were valid */
	u64 offset;                  /* in the LMR */
	u64 left;                    /* bytes to go */
	u64 at;                      /* offset in the buffer */
	struct lite_mapping *m;      /* entered; NULL: left already */
	int tries;                   /* how often the current piece has failed */
	unsigned long until;         /* for lite_range_renew(), while @at is @until_at */
	u64 until_at;
	int large;                   /* how many of @tries were with a large piece */
	const struct lite_buf *buf;  /* caller's */
	size_t n;                    /* bytes of the current piece, if it is not a large one */
	u64 run;                     /* bytes of a large piece, all in one share of another node */
	bool chunked;                /* @run is in an unpinned LMR, so batches end with chunks */
	struct lite_bounce *bounce;  /* held for the current piece, or NULL; lite_piece() puts it */
};

static inline bool lite_piece_writes(const struct lite_piece_io *p)
{
	return p->opcode == LITE_OP_WRITE;
}

static inline bool lite_piece_given_up(const struct lite_piece_io *p)
{
	return lite_given_up_for(p->a->task);
}

static inline void lite_piece_advance(struct lite_piece_io *p, size_t n)
{
	p->tries = 0;
	p->large = 0;
	p->left -= n;
	p->offset += n;
	p->at += n;
}

/* lite_range_renew() for the next byte. Its time-out starts anew after progress. */
static inline int lite_piece_renew(struct lite_piece_io *p, const struct lite_mapping *stale)
{
	if (p->until_at != p->at)
		p->until = 0;
	p->until_at = p->at;
	return lite_range_renew(p->a, p->offset, stale, &p->until);
}

int lite_piece_large(struct lite_piece_io *p);

#endif /* _LITE_TRANSFER_H */
