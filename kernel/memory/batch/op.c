// SPDX-License-Identifier: GPL-2.0
#include "memory/memop/memop.h"
#include "memory/memory.h"
#include "op.h"

/* lite_op_run() for all operations except reads and writes. */
int lite_op_run_other(const struct lite_access *a, struct lite_op *op)
{
	bool posted;

	op->result = 0;
	switch (op->opcode) {
	case LITE_OP_FETCH_ADD:
	case LITE_OP_CMP_SWAP:
		return lite_atomic(a, op, &posted);
	case LITE_OP_SWAP:
	case LITE_OP_FETCH_AND:
	case LITE_OP_FETCH_OR:
	case LITE_OP_SET:
	case LITE_OP_COPY:
	case LITE_OP_COMPARE:
	case LITE_OP_CHECKSUM:
		return lite_memop(a->ctx, op);
	case LITE_OP_FENCE:
		if (op->offset || op->length || op->buf || op->operand || op->swap)
			return -EINVAL;
		return lite_fence(a->ctx, op->lh);
	default:
		return -EOPNOTSUPP;
	}
}
