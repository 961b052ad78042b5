/* SPDX-License-Identifier: GPL-2.0 */
/* What the files of one-sided operations share. */
#ifndef _LITE_TRANSFER_H
#define _LITE_TRANSFER_H

#include "memory/handle/ctx.h"

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

/* The right that an operation of a device needs; 0: it is not one. */
static inline u32 lite_op_right(u32 opcode)
{
	switch (opcode) {
	case LITE_OP_READ:
		return LITE_RIGHT_READ;
	case LITE_OP_WRITE:
		return LITE_RIGHT_WRITE;
	case LITE_OP_FETCH_ADD:
	case LITE_OP_CMP_SWAP:
		return LITE_RIGHT_ATOMIC;
	default:
		return 0;
	}
}

/* Else it is an atomic, of those that have a right. */
static inline bool lite_op_is_transfer(u32 opcode)
{
	return opcode == LITE_OP_READ || opcode == LITE_OP_WRITE;
}

/* What the device is to do for one that has a right. */
static inline enum ib_wr_opcode lite_op_wr(u32 opcode)
{
	switch (opcode) {
	case LITE_OP_READ:
		return IB_WR_RDMA_READ;
	case LITE_OP_WRITE:
		return IB_WR_RDMA_WRITE;
	case LITE_OP_FETCH_ADD:
		return IB_WR_ATOMIC_FETCH_AND_ADD;
	default:
		return IB_WR_ATOMIC_CMP_AND_SWP;
	}
}

void lite_op_count(struct lite_memory *mem, u32 opcode, u64 lh, u64 offset,
		   u64 length, int err);
u64 lite_share_run(const struct lite_mapping *m, u64 offset, u64 max);
int lite_piece_large(struct lite_piece_io *p, u64 run);

#endif /* _LITE_TRANSFER_H */
