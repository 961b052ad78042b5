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
 * Operations that make a message worthwhile; fewer are posted. A call, with the threads that make
 * and serve it, costs as much as five operations of 64 bytes, or six to seven of LITE_PACK_BYTES.
 */
#define LITE_PACK_MIN 8

/* Jiffies for which a context sends no messages in a session after some were in vain. */
#define LITE_PACK_PAUSE max(HZ / 20, 1)

/*
 * Jiffies in which a caller sends its messages; later, it posts. Answers may take three times as
 * long, so that all together takes no more than the operation time-out.
 */
static inline unsigned long lite_pack_time(const struct lite_fabric *fab)
{
	return max(fab->op_timeout / 4, 1UL);
}

/*
 * May an operation go in a message, in session @conn? Only to software devices: there the other
 * node's processor does the work either way, and a work request costs more than the rest.
 */
static inline bool lite_pack_may(const struct lite_ctx *ctx, const struct lite_conn *conn,
				 u32 opcode, u32 length)
{
	return lite_device_is_soft(ctx->mem->fab) && length <= LITE_PACK_BYTES &&
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
