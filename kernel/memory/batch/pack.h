/* SPDX-License-Identifier: GPL-2.0 */
/* Small reads and writes, many in a message. pack.c, pack_serve.c */
#ifndef _LITE_PACK_H
#define _LITE_PACK_H

#include "wire/wire_pack.h"
#include "kcall/kcall.h"
#include "memory/handle/ctx.h"
#include "memory/memory.h"

struct lite_wave_op;

/*
 * Fewer operations are posted: a call, with the threads that make and serve it, costs as much as
 * five operations of 64 bytes, or six to seven of LITE_PACK_BYTES.
 */
#define LITE_PACK_MIN 8

/* Jiffies in which the user of a context sends none to a node after some were of no use. */
#define LITE_PACK_PAUSE max(HZ / 20, 1)

/*
 * Jiffies in which a caller sends its messages; later, it posts. Answers have three times as long,
 * so all together have the operation time-out.
 */
static inline unsigned long lite_pack_time(const struct lite_fabric *fab)
{
	return max(fab->op_timeout / 4, 1UL);
}

/*
 * May an operation go in a message, in session @conn? Only to software devices: there the other
 * node's processor carries it out either way, and a work request of Soft-RoCE costs more than the
 * rest of the operation.
 */
static inline bool lite_pack_may(const struct lite_ctx *ctx, const struct lite_conn *conn,
				 u32 opcode, u32 length)
{
	return ctx->mem->fab->quirks.soft && length <= LITE_PACK_BYTES &&
	       (opcode == LITE_OP_READ || opcode == LITE_OP_WRITE) &&
	       (READ_ONCE(ctx->pack_not) != conn->session ||
		!time_before(jiffies, READ_ONCE(ctx->pack_after)));
}

void lite_packs_init(struct lite_memory *mem);
void lite_packs_exit(struct lite_memory *mem);
int lite_pack_run(struct lite_memory *mem, struct lite_conn *conn, const struct lite_wave_op *w,
		  u32 n, u32 to, unsigned long deadline);
int lite_pack_settle(struct lite_memory *mem, u32 node);

#endif /* _LITE_PACK_H */
