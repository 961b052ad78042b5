/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Memory operations that a mapper carries out on bytes it holds, for other
 * mappers and for itself: memop_serve.c, memop_run.c, memop_two.c,
 * peer_mapping.c. memop.c requests them.
 */
#ifndef _LITE_MEMOP_H
#define _LITE_MEMOP_H

#include <linux/list.h>
#include <linux/workqueue.h>

#include "memory/mapper/mapping.h"

/* The name of an LMR on the wire. */
static inline void lite_range_fill(struct lite_wire_range *w,
				   const struct lite_mapping *m, u64 offset)
{
	w->id = cpu_to_le64(m->id);
	w->incarnation = cpu_to_le64(m->home_incarnation);
	w->generation = cpu_to_le64(m->generation);
	w->offset = cpu_to_le64(offset);
	w->home = cpu_to_le32(m->home);
	w->reserved = 0;
}

/* ---- mappings for others: peer_mapping.c --------------------------------- */

/**
 * struct lite_peer_mapping - mappings kept for memory operations of peers
 * @mappings: struct lite_mapping, under map_lock
 * @n: number of entries
 * @closed: keeps no more mappings; under map_lock
 * @work: drops idle mappings
 */
struct lite_peer_mapping {
	struct list_head mappings;
	u32 n;
	bool closed;
	struct delayed_work work;
};

struct lite_mapping *lite_mapping_enter(struct lite_memory *mem, u32 home,
					u64 id, u64 incarnation);
void lite_peer_mapping_init(struct lite_memory *mem);
struct lite_mapping *
lite_peer_mapping_enter(struct lite_memory *mem,
			const struct lite_wire_range *range, u64 offset,
			u64 length);
int lite_peer_mapping_prepare(struct lite_memory *mem,
			      const struct lite_wire_range *range);
void lite_peer_mapping_kick(struct lite_mapping *m);
void lite_peer_mapping_drop(struct lite_memory *mem);
void lite_peer_mapping_close(struct lite_memory *mem);

/* ---- operations for others: memop_run.c ---------------------------------- */

/* Time per call: then the caller leaves its LMRs, and calls again. */
#define LITE_MEMOP_EXEC_TIME max(HZ / 100, 1)
/* Bytes of local memory per entry. */
#define LITE_MEMOP_EXEC_BYTES (64UL << 10)
/* PREPARE waits for suspect nodes. */
#define LITE_PREPARE_TIMEOUT (30 * HZ)
/* Bytes at a time where large packets overtake each other, and get lost. */
#define LITE_MEMOP_EXEC_CAREFUL 1024UL

/**
 * struct lite_memop_exec - an operation that is being carried out
 * @list: in mem->work, from before @conn is looked at until it has ended
 * @mem: the node's memory
 * @conn: session of the caller; NULL: this node
 * @brief: once begun it does not sleep
 * @op: the request
 * @done: bytes done
 * @value: value of the reply
 * @status: status of the reply
 * @page: buffer for fetched bytes, allocated when first needed
 * @order: order of @page
 * @dma: DMA address of @page
 * @since: for lite_dma_unmap_page()
 */
struct lite_memop_exec {
	struct list_head list;
	struct lite_memory *mem;
	struct lite_conn *conn;
	bool brief;
	const struct lite_wire_op *op;
	u64 done;
	u64 value;
	u32 status;
	struct page *page;
	u32 order;
	u64 dma;
	u32 since;
};

/* A step of it. Returns bytes done, maybe 0, or a negative errno. */
typedef ssize_t (*lite_memop_exec_step)(struct lite_memop_exec *r);

#define LITE_MEMOPS 5

/**
 * struct lite_memop_served - a call for memory operations
 * @mem: the node's memory
 * @step: step function of the call
 */
struct lite_memop_served {
	struct lite_memory *mem;
	lite_memop_exec_step step;
};

/**
 * struct lite_memop_cursor - an entered part of an LMR
 * @m: mapping
 * @e: extent that contains all of it
 * @offset: in the LMR
 */
struct lite_memop_cursor {
	struct lite_mapping *m;
	const struct lite_extent *e;
	u64 offset;
};

static inline bool lite_memop_exec_is_backward(const struct lite_memop_exec *r)
{
	return le32_to_cpu(r->op->flags) & LITE_WIRE_OP_BACKWARD;
}

static inline u64 lite_memop_exec_packet(const struct lite_memop_exec *r,
					 u64 max)
{
	if (le32_to_cpu(r->op->flags) & LITE_WIRE_OP_CAREFUL)
		return LITE_MEMOP_EXEC_CAREFUL;
	return max;
}

static inline bool lite_memop_cursor_is_local(const struct lite_memop_cursor *p)
{
	return p->m->share[p->e->share].local;
}

static inline u64 lite_memop_cursor_dma(const struct lite_memop_cursor *p)
{
	return p->e->addr + (p->offset - p->e->start);
}

int lite_memop_exec_begin(struct lite_memop_exec *r);
void lite_memop_exec_end(struct lite_memop_exec *r);
int lite_memop_exec(struct lite_memop_exec *r, lite_memop_exec_step step);
void lite_memop_execs_conn_down(struct lite_memory *mem,
				struct lite_conn *conn);
int lite_memop_execs_settle(struct lite_memory *mem, struct lite_conn *conn);
int lite_memop_cursor_enter(struct lite_memop_exec *r,
			    struct lite_memop_cursor *p,
			    const struct lite_wire_range *range, u64 *n);
void lite_memop_cursor_place(struct lite_memop_exec *r,
			     struct lite_memop_cursor *p, u64 n);
void *lite_memop_cursor_address(const struct lite_memop_cursor *p, u64 *n);
void *lite_memop_cursor_local(struct lite_memop_exec *r,
			      struct lite_memop_cursor *p, u64 *n);

/* memop_two.c */
ssize_t lite_memop_exec_copy(struct lite_memop_exec *r);
ssize_t lite_memop_exec_compare(struct lite_memop_exec *r);

/* memop_serve.c */
void lite_memop_handlers(struct lite_memory *mem);

#endif /* _LITE_MEMOP_H */
