/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _LITE_PAYER_H
#define _LITE_PAYER_H

#include <linux/kref.h>

#include "line.h"

struct lite_memory;
struct mem_cgroup;

/**
 * struct lite_payer - a request for memory to a home at another node
 * @mem: memory layer
 * @ref: held by the caller and, until it has been served, by the call
 * @place: in mem->payers; by home and, if it changes an LMR, id, else uid
 * @memcg: that of the process that asks
 */
struct lite_payer {
	struct lite_memory *mem;
	struct kref ref;
	struct lite_line_place place;
	struct mem_cgroup *memcg;
};

struct lite_payer *lite_payer_begin(struct lite_memory *mem, u32 home, u64 key);
void lite_payer_release(struct kref *ref);
struct mem_cgroup *lite_payer_find(struct lite_memory *mem, u32 home, u64 lmr,
				   u32 uid);

/* The caller has its answer, or does not wait for it any more. */
static inline void lite_payer_end(struct lite_payer *p)
{
	kref_put(&p->ref, lite_payer_release);
}

#endif /* _LITE_PAYER_H */
