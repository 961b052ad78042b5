/* SPDX-License-Identifier: GPL-2.0 */
/* Memory operations: memop.c requests them, memop_serve.c carries them out where the bytes are. */
#ifndef _LITE_MEMOP_H
#define _LITE_MEMOP_H

#include <linux/list.h>

#include "memory/mapper/mapping.h"

struct lite_ctx;
struct lite_op;

/* Name an LMR on the wire. */
static inline void lite_range_fill(struct lite_wire_range *w, const struct lite_mapping *m,
				   u64 offset)
{
	w->id = cpu_to_le64(m->id);
	w->incarnation = cpu_to_le64(m->home_incarnation);
	w->generation = cpu_to_le64(m->generation);
	w->offset = cpu_to_le64(offset);
	w->home = cpu_to_le32(m->home);
	w->reserved = 0;
}

/* An operation that is being carried out. */
struct lite_memop_exec {
	struct list_head list;  /* in mem->work if @conn is set, from before @conn is checked */
	struct lite_memory *mem;
	struct lite_conn *conn; /* session of the caller; NULL: this node */
	bool brief;             /* once begun it does not sleep */
	const struct lite_wire_op *op;
	u64 done;               /* bytes done */
	u64 value;              /* of the reply */
	u32 status;             /* of the reply */
	struct page *page;      /* buffer for bytes fetched, allocated when first needed */
	u32 order;              /* of @page */
	u64 dma;                /* of @page */
	u32 since;              /* for lite_dma_unmap_page() */
};

int lite_memop_exec_begin(struct lite_memop_exec *r);
void lite_memop_exec_end(struct lite_memop_exec *r);
void lite_memop_execs_conn_down(struct lite_memory *mem, struct lite_conn *conn);
/* A step of an operation. Return: bytes done, maybe 0, or a negative errno. */
typedef ssize_t lite_memop_exec_step(struct lite_memop_exec *r);
lite_memop_exec_step lite_memop_exec_atomic, lite_memop_exec_checksum, lite_memop_exec_compare,
	lite_memop_exec_copy, lite_memop_exec_set;
int lite_serve_memop(struct lite_memory *mem, struct lite_conn *conn, lite_memop_exec_step *step,
		     const void *req, void *reply);

/* memop.c */
int lite_memop(struct lite_ctx *ctx, struct lite_op *op);
int lite_memop_prepare(struct lite_memory *mem, u32 node, const struct lite_wire_op *req);

#endif /* _LITE_MEMOP_H */
