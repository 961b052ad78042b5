/* SPDX-License-Identifier: GPL-2.0 */
/* Dispatch of one operation by its opcode. op.c has what is not a transfer. */
#ifndef _LITE_OP_H
#define _LITE_OP_H

#include "memory/io/devop.h"

int lite_op_run_other(const struct lite_access *a, struct lite_op *op);

/*
 * Carry out an operation; @buf is for reads and writes. @op's result is set, also on failure. May
 * sleep; a fatal signal ends it. Return: 0 or an errno, see LITE_IOC_OP.
 */
static inline int lite_op_run(struct lite_ctx *ctx, struct lite_op *op, const struct lite_buf *buf)
{
	const struct lite_access a = {
		.ctx = ctx,
		.lh = op->lh,
		.right = lite_op_right(op->opcode),
	};

	if (likely(lite_op_is_transfer(op->opcode)))
		return lite_transfer(&a, op, buf);
	return lite_op_run_other(&a, op);
}

#endif /* _LITE_OP_H */
