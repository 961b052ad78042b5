// SPDX-License-Identifier: GPL-2.0
/*
 * Memory cgroups of processes that ask homes at other nodes for memory.
 *
 * Such a home may place memory at this node, in a MEM_ALLOC that a kernel thread serves. It is
 * charged to the process that is asking that home for it, as if the home were here: to one that is
 * changing that LMR, or else to one of the LMR's owner that is making an LMR there. (The home may
 * have mapped root to no user, so root is the last choice.) Requests of processes at other nodes
 * find none, and are charged to the owner's limit only.
 */
#include <linux/memcontrol.h>
#include <linux/sched.h>

#include "compat.h"
#include "memory/memory.h"
#include "store.h"

/*
 * The calling process asks a home for memory. @p: on its stack, until lite_payer_end(). @lmr: id of
 * the LMR that it changes; 0: it makes one, of which @uid is the owner.
 */
void lite_payer_begin(struct lite_memory *mem, struct lite_payer *p, u32 home, u64 lmr, u32 uid)
{
	p->home = home;
	p->lmr = lmr;
	p->uid = uid;
	p->memcg = get_mem_cgroup_from_mm(current->mm);
	spin_lock(&mem->payers_lock);
	list_add_tail(&p->list, &mem->payers);
	spin_unlock(&mem->payers_lock);
}

/* The home has answered. Context: process. */
void lite_payer_end(struct lite_memory *mem, struct lite_payer *p)
{
	spin_lock(&mem->payers_lock);
	list_del(&p->list);
	spin_unlock(&mem->payers_lock);
	mem_cgroup_put(p->memcg);
}

/*
 * The memory cgroup to charge for a home's request for an LMR of @uid, for mem_cgroup_put(); NULL:
 * none. Context: process.
 */
struct mem_cgroup *lite_payer_find(struct lite_memory *mem, u32 home, u64 lmr, u32 uid)
{
	struct mem_cgroup *memcg = NULL;
	struct lite_payer *p, *found = NULL;

	spin_lock(&mem->payers_lock);
	list_for_each_entry(p, &mem->payers, list) {
		if (p->home != home || (p->lmr && p->lmr != lmr))
			continue;
		if (p->lmr) {
			found = p;
			break;
		}
		if (p->uid == uid || (!p->uid && !found))
			found = p;
	}
	if (found && mem_cgroup_tryget(found->memcg))
		memcg = found->memcg;
	spin_unlock(&mem->payers_lock);
	return memcg;
}
