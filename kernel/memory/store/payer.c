// SPDX-License-Identifier: GPL-2.0
/*
 * Memory cgroups of processes that ask homes at other nodes for memory.
 *
 * Such a home may place memory at this node: a kernel thread serves its MEM_ALLOC. That thread
 * charges a process here that has asked the home, as if the home were here: one that is changing
 * the LMR; else one of the LMR's owner that is making an LMR there. If there is neither, only the
 * owner's limit is charged. (The owner LITE_UID_NOBODY may be root, squashed by the home.) A
 * process that has been killed pays, too: its call has a reference until the home has served it.
 */
#include <linux/memcontrol.h>
#include <linux/sched.h>
#include <linux/slab.h>

#include "compat.h"
#include "core/handle.h"
#include "memory/memory.h"
#include "store.h"

/*
 * The calling process asks a home for memory. @key: id of the LMR that it changes, or uid of the
 * owner of one that it makes; ids are greater than all uids. May sleep. Return: the payer, for the
 * call's @held and for lite_payer_end().
 */
struct lite_payer *lite_payer_begin(struct lite_memory *mem, u32 home, u64 key)
{
	struct lite_payer *p = kzalloc(sizeof(*p), GFP_KERNEL | __GFP_NOFAIL);

	p->mem = mem;
	kref_init(&p->ref);
	p->memcg = get_mem_cgroup_from_mm(current->mm);
	p->place.kind = lite_mapping_key(home, key);
	spin_lock(&mem->payers_lock);
	lite_line_enter(&mem->payers, &p->place, false);
	spin_unlock(&mem->payers_lock);
	return p;
}

/* The last reference has gone. Context: process. */
void lite_payer_release(struct kref *ref)
{
	struct lite_payer *p = container_of(ref, struct lite_payer, ref);

	spin_lock(&p->mem->payers_lock);
	lite_line_leave(&p->place);
	spin_unlock(&p->mem->payers_lock);
	mem_cgroup_put(p->memcg);
	kfree(p);
}

/*
 * Find the memory cgroup to charge for a home's request for an LMR of @uid. Context: process.
 * Return: the group, for mem_cgroup_put(), or NULL.
 */
struct mem_cgroup *lite_payer_find(struct lite_memory *mem, u32 home, u64 lmr, u32 uid)
{
	struct lite_line *line = &mem->payers;
	struct mem_cgroup *memcg = NULL;
	struct lite_line_place *found;

	spin_lock(&mem->payers_lock);
	found = lite_line_first(line, lite_mapping_key(home, lmr)) ?:
		lite_line_first(line, lite_mapping_key(home, uid));
	if (!found && uid == LITE_UID_NOBODY)
		found = lite_line_first(line, lite_mapping_key(home, 0));
	if (found)
		memcg = container_of(found, struct lite_payer, place)->memcg;
	if (memcg && !mem_cgroup_tryget(memcg))
		memcg = NULL;
	spin_unlock(&mem->payers_lock);
	return memcg;
}
