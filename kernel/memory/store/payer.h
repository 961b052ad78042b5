/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _LITE_PAYER_H
#define _LITE_PAYER_H

#include <linux/list.h>
#include <linux/types.h>

struct lite_memory;
struct mem_cgroup;

/* A request for memory to a home at another node; in mem->payers. */
struct lite_payer {
	struct list_head list;
	u32 home;
	u64 lmr;
	u32 uid;
	struct mem_cgroup *memcg;
};

void lite_payer_begin(struct lite_memory *mem, struct lite_payer *p, u32 home,
		      u64 lmr, u32 uid);
void lite_payer_end(struct lite_memory *mem, struct lite_payer *p);
struct mem_cgroup *lite_payer_find(struct lite_memory *mem, u32 home, u64 lmr,
				   u32 uid);

#endif /* _LITE_PAYER_H */
