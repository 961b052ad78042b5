// SPDX-License-Identifier: GPL-2.0
/*
 * Giving parts of LMRs back to their stores.
 *
 * Normal operation: no node can reach the parts through this node any more, but
 * some may still reach other stores. With the first part that a store is asked
 * to free it is told which nodes to fence; the other parts follow without.
 *
 * Recovery: a store that cannot be asked keeps its parts ("zombies") until it
 * can. It is asked again when members change and every few seconds, as it may
 * be up but have missed a time-out. Zombies remember which nodes to fence; one
 * fence then does for all zombies of a store. A new incarnation of a store has
 * none of this memory, so there is nothing to ask.
 *
 * A fence ends sessions that all users share: what is in flight in them fails
 * or is redone, including calls that free memory. So fence only nodes that must
 * be, and not once per part: a thousand zombies must not make another thousand.
 */
#include <linux/refcount.h>
#include <linux/slab.h>

#include "memory/memory.h"
#include "memory/store/store.h"
#include "home.h"

/* Delay until stores that did not free our memory are asked again. */
#define LITE_ZOMBIE_PAUSE (5 * HZ)

/**
 * struct lite_fence_list - nodes that a store has to fence before it frees
 * @ref: of the zombies that wait for it, and of the code that makes them
 * @all: fence all nodes, as there are too many
 * @n: entries in @fence
 * @fence: the nodes
 */
struct lite_fence_list {
	refcount_t ref;
	bool all;
	u32 n;
	struct lite_wire_fence fence[];
};

/**
 * struct lite_zombie - a part that its store has to free
 * @list: in mem->zombies, or local to the thread that asks the store
 * @node: the store
 * @incarnation: of @node
 * @alloc: id there
 * @fence_list: nodes to fence first, with a reference; NULL: none, or done
 */
struct lite_zombie {
	struct list_head list;
	u32 node;
	u64 incarnation;
	u64 alloc;
	struct lite_fence_list *fence_list;
};

/* ---- nodes to fence ------------------------------------------------------ */

static void lite_fence_list_put(struct lite_fence_list *list)
{
	if (list && refcount_dec_and_test(&list->ref))
		kfree(list);
}

/* Lost mappers of an LMR, and node @fence; NULL: none. */
static struct lite_fence_list *lite_fence_list_get(struct lite_lmr *lmr,
						   u32 fence)
{
	struct lite_fence_list *list;

	list = kzalloc(struct_size(list, fence, LITE_FENCES_MAX),
		       GFP_KERNEL | __GFP_NOFAIL);
	refcount_set(&list->ref, 1);
	list->n = lite_mappers_lost(lmr, list->fence, LITE_FENCES_MAX - 1,
				    false);
	if (list->n >= LITE_FENCES_MAX) {
		list->all = true;
		list->n = 0;
	} else if (fence) {
		list->fence[list->n++].node = cpu_to_le32(fence);
	}
	if (list->n || list->all)
		return list;
	lite_fence_list_put(list);
	return NULL;
}

/* Fences are by node id, whatever the incarnation: one entry each. */
static void lite_whom_add(struct lite_wire_mem_free *req,
			  const struct lite_wire_fence *fence)
{
	u32 n = le32_to_cpu(req->n_fences);
	u32 i;

	for (i = 0; i < n; i++) {
		if (req->fence[i].node == fence->node)
			return;
	}
	if (n == LITE_FENCES_MAX) {
		req->fence_all = cpu_to_le32(1);
		return;
	}
	req->fence[n] = *fence;
	req->n_fences = cpu_to_le32(n + 1);
}

/* Collect all nodes to fence for a list; false: none. */
static bool lite_whom_collect(struct lite_wire_mem_free *req,
			      const struct list_head *run)
{
	const struct lite_fence_list *last = NULL;
	const struct lite_zombie *z;
	u32 i;

	list_for_each_entry(z, run, list) {
		if (!z->fence_list || z->fence_list == last)
			continue;
		last = z->fence_list;
		if (last->all)
			req->fence_all = cpu_to_le32(1);
		for (i = 0; i < last->n; i++)
			lite_whom_add(req, &last->fence[i]);
	}
	if (req->fence_all)
		req->n_fences = 0;
	return last;
}

/* The store has done the fences that these zombies waited for. */
static void lite_whom_done(struct lite_wire_mem_free *req,
			   struct list_head *run)
{
	struct lite_zombie *z;

	req->fence_all = 0;
	req->n_fences = 0;
	list_for_each_entry(z, run, list) {
		lite_fence_list_put(z->fence_list);
		z->fence_list = NULL;
	}
}

/* ---- asking a store ------------------------------------------------------ */

static void lite_zombie_new(struct list_head *list,
			    const struct lite_part *part,
			    struct lite_fence_list *fence_list)
{
	struct lite_zombie *z = kzalloc(sizeof(*z), GFP_KERNEL | __GFP_NOFAIL);

	z->node = part->node;
	z->incarnation = part->incarnation;
	z->alloc = part->alloc;
	if (fence_list)
		refcount_inc(&fence_list->ref);
	z->fence_list = fence_list;
	list_add_tail(&z->list, list);
}

static void lite_zombie_drop(struct lite_zombie *z)
{
	list_del(&z->list);
	lite_fence_list_put(z->fence_list);
	kfree(z);
}

/*
 * If a store is asked again after it has freed the part, it fences again: it
 * cannot tell whether the first fence is complete.
 */
static int lite_store_call_free(struct lite_memory *mem,
				const struct lite_zombie *z,
				struct lite_wire_mem_free *req, bool patiently)
{
	struct lite_call_desc d = {
		.call = LITE_CALL_MEM_FREE,
		.req = req,
		.len = struct_size(req, fence, le32_to_cpu(req->n_fences)),
		.life = z->incarnation,
	};

	req->id = cpu_to_le64(z->alloc);
	return patiently ? lite_cluster_call_patiently(mem->cl, z->node, &d) :
			   lite_cluster_call(mem->cl, z->node, &d);
}

/*
 * Ask one incarnation of a store to free the parts on a list. Those that it
 * could not be asked to free stay on it.
 */
static void lite_store_release(struct lite_memory *mem, struct list_head *run,
			       bool patiently)
{
	struct lite_wire_mem_free *req;
	struct lite_zombie *z, *tmp;
	bool fence;
	int err;

	req = kzalloc(LITE_PAYLOAD_MAX, GFP_KERNEL | __GFP_NOFAIL);
	fence = lite_whom_collect(req, run);
	list_for_each_entry_safe(z, tmp, run, list) {
		err = lite_store_call_free(mem, z, req, patiently);
		/*
		 * A store that has left has freed all its memory; a new
		 * incarnation never had it.
		 */
		if (err && err != -EHOSTUNREACH && err != -ESTALE)
			break;
		lite_zombie_drop(z);
		if (fence)
			lite_whom_done(req, run);
		fence = false;
		cond_resched();
	}
	kfree(req);
}

/* Move all zombies at the store of the first one to @run. */
static void lite_zombies_cut(struct list_head *from, struct list_head *run)
{
	struct lite_zombie *z, *tmp;
	u64 incarnation;
	u32 node;

	z = list_first_entry(from, struct lite_zombie, list);
	node = z->node;
	incarnation = z->incarnation;
	list_for_each_entry_safe(z, tmp, from, list) {
		if (z->node == node && z->incarnation == incarnation)
			list_move_tail(&z->list, run);
	}
}

/* Store by store. Those that could not be asked for stay on the list. */
static void lite_zombies_release(struct lite_memory *mem,
				 struct list_head *list, bool patiently)
{
	LIST_HEAD(kept);
	LIST_HEAD(run);

	while (!list_empty(list)) {
		lite_zombies_cut(list, &run);
		lite_store_release(mem, &run, patiently);
		list_splice_tail_init(&run, &kept);
		cond_resched();
	}
	list_splice(&kept, list);
}

/* Ask again after a while, or when members change. */
static void lite_zombies_keep(struct lite_memory *mem, struct list_head *list)
{
	if (list_empty(list))
		return;
	spin_lock(&mem->zombies_lock);
	list_splice_tail(list, &mem->zombies);
	spin_unlock(&mem->zombies_lock);
	queue_delayed_work(mem->wq, &mem->zombie_work, LITE_ZOMBIE_PAUSE);
}

/* Ask stores again to free zombies. May sleep; makes leaf calls. */
void lite_zombies_retry(struct lite_memory *mem)
{
	LIST_HEAD(todo);

	spin_lock(&mem->zombies_lock);
	list_splice_init(&mem->zombies, &todo);
	spin_unlock(&mem->zombies_lock);
	lite_zombies_release(mem, &todo, false);
	lite_zombies_keep(mem, &todo);
}

/*
 * A store's incarnation is over, and our memory there: drop its zombies. @node
 * 0: those of all stores. May sleep.
 */
void lite_zombies_lost(struct lite_memory *mem, u32 node, u64 incarnation)
{
	struct lite_zombie *z, *tmp;

	spin_lock(&mem->zombies_lock);
	list_for_each_entry_safe(z, tmp, &mem->zombies, list) {
		if (!node ||
		    (z->node == node && z->incarnation == incarnation))
			lite_zombie_drop(z);
	}
	spin_unlock(&mem->zombies_lock);
}

/* ---- giving parts back --------------------------------------------------- */

static void lite_part_release_local(struct lite_memory *mem,
				    const struct lite_part *part)
{
	struct lite_alloc *a = lite_store_take(mem, part->alloc, part->node);

	if (a)
		lite_store_free(mem, a);
}

/**
 * lite_parts_release - give parts back to their stores
 * @lmr: LMR; no node can reach these parts through this node
 * @parts: parts that the LMR no longer has, or that end with it
 * @n: entries; what they own is freed, the array is not
 * @fence: a node that may have a copy to them in flight; 0: none
 *
 * The stores first fence nodes that are fenced only from us.
 *
 * Context: may sleep, also while stores are suspect; makes leaf calls.
 */
void lite_parts_release(struct lite_lmr *lmr, struct lite_part *parts, u32 n,
			u32 fence)
{
	struct lite_fence_list *fence_list = lite_fence_list_get(lmr, fence);
	struct lite_memory *mem = lmr->mem;
	LIST_HEAD(list);
	u32 i;

	for (i = 0; i < n; i++) {
		struct lite_part *part = &parts[i];

		if (part->local && fence) {
			lite_cluster_fence(mem->cl, fence, NULL);
			fence = 0;
		}
		kvfree(part->extents);
		part->extents = NULL;
		if (part->alloc && part->local)
			lite_part_release_local(mem, part);
		else if (part->alloc)
			lite_zombie_new(&list, part, fence_list);
		part->alloc = 0;
		cond_resched();
	}
	lite_fence_list_put(fence_list);
	lite_zombies_release(mem, &list, true);
	if (list_empty(&list))
		return;
	lite_zombies_keep(mem, &list);
	/* A store may have come up before the zombies were on the list. */
	mod_delayed_work(mem->wq, &mem->zombie_work, 0);
}

/*
 * Give back one part at another node that no mapper was told of. May sleep;
 * makes leaf calls.
 */
void lite_part_release(struct lite_memory *mem, const struct lite_part *part)
{
	LIST_HEAD(list);

	lite_zombie_new(&list, part, NULL);
	lite_zombies_release(mem, &list, false);
	lite_zombies_keep(mem, &list);
}
