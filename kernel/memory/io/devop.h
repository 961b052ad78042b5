/* SPDX-License-Identifier: GPL-2.0 */
/* Operations of a device on bytes of one extent. See devop.c. */
#ifndef _LITE_DEVOP_H
#define _LITE_DEVOP_H

#include "memory/handle/ctx.h"
#include "trace.h"

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

/**
 * struct lite_devop - an operation of a device
 * @m: mapping, entered by the caller, which exits it after the end
 * @e: extent of @m that has all the bytes
 * @opcode: LITE_OP_READ, _WRITE, _FETCH_ADD or _CMP_SWAP
 * @n: bytes
 * @offset: in the LMR
 * @dma: bytes of this node, in memory mapped for the device
 * @operand: of an atomic: addend, or the value expected
 * @swap: of LITE_OP_CMP_SWAP: the new value
 * @posted: set if it may have been done, even if it failed
 */
struct lite_devop {
	struct lite_mapping *m;
	const struct lite_extent *e;
	u32 opcode;
	u32 n;
	u64 offset;
	u64 dma;
	u64 operand;
	u64 swap;
	bool posted;
};

static inline const struct lite_map_share *
lite_devop_share(const struct lite_devop *d)
{
	return &d->m->share[d->e->share];
}

/* Where its bytes are, for the device of their node. */
static inline u64 lite_devop_raddr(const struct lite_devop *d)
{
	return d->e->addr + (d->offset - d->e->start);
}

/* Does it bring bytes back? */
static inline bool lite_devop_fetches(const struct lite_devop *d)
{
	return d->opcode != LITE_OP_WRITE;
}

int lite_devop_post(const struct lite_devop *d, struct lite_qp *qp,
		    struct lite_io *io, bool nowait);
int lite_devop_run(struct lite_devop *d, u32 packet);
int lite_atomic_run(struct lite_devop *d, struct lite_bounce *bounce);
int lite_atomic_connect(struct lite_memory *mem);

/*
 * Count and trace a transfer or an atomic that was carried out or tried. @done:
 * bytes that were transferred. Any context.
 */
static __always_inline void lite_op_count(struct lite_stats __percpu *stats,
					  const struct lite_op *op, u64 done,
					  int err)
{
	if (op->opcode == LITE_OP_READ) {
		lite_stat_inc(stats, LITE_STAT_READS);
		lite_stat_add(stats, LITE_STAT_READ_BYTES, done);
	} else if (op->opcode == LITE_OP_WRITE) {
		lite_stat_inc(stats, LITE_STAT_WRITES);
		lite_stat_add(stats, LITE_STAT_WRITE_BYTES, done);
	} else if (!err) {
		lite_stat_inc(stats, LITE_STAT_ATOMICS);
	}
	if (unlikely(err))
		lite_stat_inc(stats, LITE_STAT_OP_ERRORS);
	trace_lite_op(op->opcode, op->lh, op->offset, op->length, err);
}

#endif /* _LITE_DEVOP_H */
