// SPDX-License-Identifier: GPL-2.0
/* Dispatch of one operation by its opcode. */
#include "memory.h"

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
