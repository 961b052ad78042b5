/* SPDX-License-Identifier: GPL-2.0 */
/* Many operations in one call. vector.c */
#ifndef _LITE_VECTOR_H
#define _LITE_VECTOR_H

#include "memory/memory.h"

/* Operations of one vector that are in flight at a time. */
#define LITE_WAVE_OPS LITE_SQ_DEPTH

/**
 * struct lite_wave_op - an operation that is in flight
 * @op: operation
 * @m: its LMR, entered until the wave is done
 * @entered: this operation entered @m; else one before it did
 * @to: index of its chain
 * @at: its position in the chain
 * @data: in a bounce page
 */
struct lite_wave_op {
	struct lite_op *op;
	struct lite_mapping *m;
	bool entered;
	u16 to;
	u16 at;
	void *data;
};

struct lite_vector;

struct lite_vector *lite_vector_get(struct lite_ctx *ctx,
				    struct lite_gate *gate, bool user);
void lite_vector_put(struct lite_vector *v);
struct lite_op *lite_vector_ops(struct lite_vector *v);
int lite_vector_run(struct lite_vector *v, struct lite_op *ops, u32 n,
		    bool failed);

#endif /* _LITE_VECTOR_H */
