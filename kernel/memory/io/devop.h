/* SPDX-License-Identifier: GPL-2.0 */
/* Operations: what they need, and how a device performs them on bytes of one extent. devop.c */
#ifndef _LITE_DEVOP_H
#define _LITE_DEVOP_H

#include "core/bounds.h"
#include "io.h"
#include "trace.h"

/* The right that an opcode needs; 0: no device performs it. */
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

/* A read or a write. Any other opcode with a lite_op_right() is an atomic. */
static inline bool lite_op_is_transfer(u32 opcode)
{
	return opcode == LITE_OP_READ || opcode == LITE_OP_WRITE;
}

/* The work request for an opcode with a lite_op_right(). */
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

/* Check size, flags and reserved fields, but not @reserved1, which a vector uses for output. */
static inline int lite_op_check(const struct lite_op *op)
{
	if (op->size != sizeof(*op))
		return -EINVAL;
	return op->flags || op->reserved0 ? -EOPNOTSUPP : 0;
}

/*
 * May the caller use the operation's priority? Context: process. Return: 0; -EINVAL: there is no
 * such priority; -EPERM: not for this user.
 */
static inline int lite_op_check_prio(const struct lite_ctx *ctx, const struct lite_op *op)
{
	return unlikely(op->priority) ? lite_ctx_may_prio(ctx, op->priority) : 0;
}

/* The priority to post @op with: its own, or else its context's. */
static inline u8 lite_op_prio(const struct lite_ctx *ctx, const struct lite_op *op)
{
	return op->priority ?: READ_ONCE(ctx->prio);
}

/* The right that @op needs, if it is small and, as far as its fields show, valid; else 0. */
static inline u32 lite_op_small_right(const struct lite_op *op)
{
	u32 right = lite_op_right(op->opcode);

	if (right == LITE_RIGHT_ATOMIC)
		return lite_atomic_check(op->offset, op->length, U64_MAX) ? 0 : right;
	return op->length && op->length <= LITE_BOUNCE_SIZE ? right : 0;
}

/* An operation of a device. */
struct lite_devop {
	/* Entered by the caller; lite_devop_exit() leaves it. NULL: the completion handler has. */
	struct lite_mapping *m;
	const struct lite_mapping *also; /* another LMR that is entered, with @stays; or NULL */
	const struct lite_extent *e; /* extent of @m that has all the bytes */
	u16 opcode;                  /* LITE_OP_READ, _WRITE, _FETCH_ADD or _CMP_SWAP */
	u8 prio;                     /* of lite_op_prio(); set by the caller of lite_devop_of() */
	u32 n;                       /* bytes */
	u64 offset;                  /* in the LMR */
	u64 dma;                     /* this node's bytes, mapped for the device */
	const void *data;            /* kernel address of @dma; NULL: not known */
	u64 operand;                 /* of an atomic: addend, or the value expected */
	u64 swap;                    /* of LITE_OP_CMP_SWAP: the new value */
	struct task_struct *task;    /* the operation is for this task, not current; or NULL */
	bool stays;                  /* only the caller leaves the LMR */
	bool posted;                 /* set if it may have been done, even if it failed */
};

static inline const struct lite_map_share *lite_devop_share(const struct lite_devop *d)
{
	return &d->m->share[d->e->share];
}

/* The devop for @op in @m, which has been entered. The caller sets @prio and @dma. */
static __always_inline struct lite_devop lite_devop_of(const struct lite_op *op,
						       struct lite_mapping *m)
{
	return (struct lite_devop){
		.m = m,
		.e = lite_extent_at(m, op->offset),
		.opcode = op->opcode,
		.n = op->length,
		.offset = op->offset,
		.operand = op->operand,
		.swap = op->swap,
	};
}

static inline bool lite_devop_fits(const struct lite_devop *d)
{
	return d->n <= d->e->length - (d->offset - d->e->start);
}

/* Is one work request enough? Not for a read that has to be confirmed. */
static inline bool lite_devop_is_single(const struct lite_devop *d, const struct lite_conn *conn)
{
	return d->opcode != LITE_OP_READ || !lite_must_confirm(conn, d->n);
}

static inline bool lite_devop_fetches(const struct lite_devop *d)
{
	return d->opcode != LITE_OP_WRITE;
}

/* Leave the LMR after lite_devop_run(), unless the completion handler has. */
static __always_inline void lite_devop_exit(const struct lite_devop *d)
{
	if (likely(d->m))
		lite_access_exit(d->m);
}

struct lite_chain;
struct lite_link;

int lite_devop_post(const struct lite_devop *d, struct lite_qp *qp, struct lite_io *io);
void lite_devop_link(const struct lite_devop *d, struct lite_chain *chain, struct lite_link *link);
int lite_devop_run(struct lite_devop *d, u32 packet);
int lite_atomic_run(struct lite_devop *d, struct lite_bounce *bounce);
int lite_atomic_connect(struct lite_memory *mem);

/* Count and trace a transfer or an atomic that was tried. @done: bytes transferred. Any context. */
static __always_inline void lite_op_count(struct lite_stats __percpu *stats,
					  const struct lite_op *op, u64 done, int err)
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
