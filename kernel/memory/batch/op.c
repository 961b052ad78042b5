// SPDX-License-Identifier: GPL-2.0
/* Dispatch of one operation by its opcode. */
#include "memory/handle/ctx.h"
#include "memory/io/transfer.h"
#include "memory/memory.h"
#include "trace.h"

/**
 * lite_op_count - count and trace an operation that a device has carried out
 * @mem: node's
 * @opcode: of those that lite_op_right() knows
 * @lh: handle
 * @offset: in the LMR
 * @length: bytes; none of them count when it has failed
 * @err: how it went
 *
 * Context: any.
 */
void lite_op_count(struct lite_memory *mem, u32 opcode, u64 lh, u64 offset,
		   u64 length, int err)
{
	u64 bytes = err ? 0 : length;

	if (opcode == LITE_OP_READ) {
		lite_stat_inc(mem->stats, LITE_STAT_READS);
		lite_stat_add(mem->stats, LITE_STAT_READ_BYTES, bytes);
	} else if (opcode == LITE_OP_WRITE) {
		lite_stat_inc(mem->stats, LITE_STAT_WRITES);
		lite_stat_add(mem->stats, LITE_STAT_WRITE_BYTES, bytes);
	} else if (!err) {
		lite_stat_inc(mem->stats, LITE_STAT_ATOMICS);
	}
	if (err)
		lite_stat_inc(mem->stats, LITE_STAT_OP_ERRORS);
	trace_lite_op(opcode, lh, offset, length, err);
}

/**
 * lite_op_run - carry out an operation
 * @ctx: context of its handles
 * @op: operation; its result is set, also on failure
 * @buf: caller's memory, for reads and writes
 *
 * Context: may sleep; a fatal signal ends it.
 * Return: 0 or a negative errno, see LITE_IOC_OP.
 */
int lite_op_run(struct lite_ctx *ctx, struct lite_op *op,
		const struct lite_buf *buf)
{
	struct lite_access a = { .ctx = ctx, .lh = op->lh };
	bool write = op->opcode == LITE_OP_WRITE;

	op->result = 0;
	if (likely(write || op->opcode == LITE_OP_READ)) {
		a.right = write ? LITE_RIGHT_WRITE : LITE_RIGHT_READ;
		return lite_transfer(&a, write, op->offset, op->length, buf,
				     &op->result);
	}
	switch (op->opcode) {
	case LITE_OP_FETCH_ADD:
	case LITE_OP_CMP_SWAP:
	case LITE_OP_SWAP:
	case LITE_OP_FETCH_AND:
	case LITE_OP_FETCH_OR:
		a.right = LITE_RIGHT_ATOMIC;
		return lite_atomic(&a, op->opcode, op->offset, op->length,
				   op->operand, op->swap, &op->result);
	case LITE_OP_SET:
	case LITE_OP_COPY:
	case LITE_OP_COMPARE:
	case LITE_OP_CHECKSUM:
		return lite_memop(ctx, op->opcode, op->lh, op->offset,
				  op->length, op->operand, op->swap,
				  &op->result);
	case LITE_OP_FENCE:
		if (op->offset || op->length || op->buf || op->operand ||
		    op->swap)
			return -EINVAL;
		return lite_fence(ctx, op->lh);
	default:
		return -EOPNOTSUPP;
	}
}
