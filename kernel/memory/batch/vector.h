/* SPDX-License-Identifier: GPL-2.0 */
/* Many operations in one call. vector.c */
#ifndef _LITE_VECTOR_H
#define _LITE_VECTOR_H

#include "memory/memory.h"

/* Operations of one vector that are in flight at a time. */
#define LITE_WAVE_OPS LITE_SQ_DEPTH

/* An operation that is in flight. */
struct lite_wave_op {
	struct lite_op *op;
	struct lite_mapping *m; /* its LMR, entered until its chain is done, or goes in messages */
	const struct lite_wire_range *range; /* the LMR's name on the wire */
	bool entered;           /* this operation entered @m; else one before it in the chain did */
	u16 to;                 /* index of its chain */
	u16 at;                 /* its position in the chain */
	void *data;             /* in a bounce page */
};

struct lite_ctx;
struct lite_gate;
struct lite_vector;

struct lite_vector *lite_vector_get(struct lite_ctx *ctx, struct lite_gate *gate, bool user);
void lite_vector_put(struct lite_vector *v);
struct lite_op *lite_vector_ops(struct lite_vector *v);
int lite_vector_run(struct lite_vector *v, struct lite_op *ops, u32 n, bool failed);

#endif /* _LITE_VECTOR_H */
