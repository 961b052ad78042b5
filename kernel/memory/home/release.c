// SPDX-License-Identifier: GPL-2.0
/*
 * Giving parts of LMRs back to their stores, when no node can reach them through this node any
 * more. Only the first request to a store tells it which nodes to fence from itself: a fence ends
 * sessions that all users share, and what is in flight in them fails or is redone, including calls
 * that free memory, which would make more zombies.
 *
 * Parts of a store that cannot be asked are zombies. The home asks again when members change, and
 * every few seconds, as the store may be up but have missed a time-out. All zombies of a store wait
 * together, with the nodes to fence, so that one fence does for all. A new incarnation of a store
 * has none of this memory.
 */
#include <linux/slab.h>

#include "memory/memory.h"
#include "memory/store/store.h"
#include "home.h"

/* Delay until stores that did not free parts are asked again. */
#define LITE_ZOMBIE_PAUSE (5 * HZ)

/* Parts that a store has to free. */
struct lite_zombies {
	struct list_head list;         /* in mem->zombies, unless a thread is asking the store */
	struct lite_share at;          /* the store */
	struct list_head parts;        /* struct lite_part */
	struct lite_wire_mem_free req; /* names nodes to fence, until the store has done that */
};

/* Have the store fence a node, whatever its incarnation. Each node is listed once. */
static void lite_zombies_fence(struct lite_zombies *z, __le32 node)
{
	u32 n = le32_to_cpu(z->req.n_fences);
	u32 i;

	for (i = 0; i < n; i++) {
		if (z->req.fence[i] == node)
			return;
	}
	if (z->req.fence_all || n == LITE_FENCES_MAX) {
		z->req.fence_all = cpu_to_le32(1);
		z->req.n_fences = 0;
		return;
	}
	z->req.fence[n] = node;
	z->req.n_fences = cpu_to_le32(n + 1);
}

/*
 * Take all parts at the store of the first one off a list. @lmr: the store is to fence its lost
 * mappers; NULL: no mapper was told of the parts. @fence: another node to fence; 0: none.
 */
static struct lite_zombies *lite_zombies_new(struct list_head *parts, struct lite_lmr *lmr,
					     u32 fence)
{
	struct lite_part *part, *tmp;
	struct lite_zombies *z;

	z = kzalloc(sizeof(*z) + LITE_FENCES_MAX * sizeof(z->req.fence[0]),
		    GFP_KERNEL | __GFP_NOFAIL);
	INIT_LIST_HEAD(&z->parts);
	z->at = list_first_entry(parts, struct lite_part, list)->at;
	list_for_each_entry_safe(part, tmp, parts, list) {
		if (lite_share_is(&part->at, &z->at))
			list_move_tail(&part->list, &z->parts);
	}
	if (lmr)
		lite_mappers_lost(lmr, &z->req, false);
	if (fence)
		lite_zombies_fence(z, cpu_to_le32(fence));
	return z;
}

static void lite_part_free(struct lite_part *part)
{
	list_del(&part->list);
	kfree(part);
}

/*
 * A store could not be asked to free parts: add them to its zombies. It is asked again after a
 * while, or when members change; @soon: at once, as it may have come up before they were added.
 */
static void lite_zombies_keep(struct lite_memory *mem, struct lite_zombies *new, bool soon)
{
	struct lite_zombies *z;
	u32 i;

	spin_lock(&mem->zombies_lock);
	list_for_each_entry(z, &mem->zombies, list) {
		if (!lite_share_is(&z->at, &new->at))
			continue;
		list_splice_tail_init(&new->parts, &z->parts);
		for (i = 0; i < le32_to_cpu(new->req.n_fences); i++)
			lite_zombies_fence(z, new->req.fence[i]);
		if (new->req.fence_all) {
			z->req.fence_all = new->req.fence_all;
			z->req.n_fences = 0;
		}
		break;
	}
	if (!list_empty(&new->parts)) {
		list_add_tail(&new->list, &mem->zombies);
		new = NULL;
	}
	spin_unlock(&mem->zombies_lock);
	kfree(new);
	if (soon)
		mod_delayed_work(mem->wq, &mem->zombie_work, 0);
	else
		queue_delayed_work(mem->wq, &mem->zombie_work, LITE_ZOMBIE_PAUSE);
}

/*
 * Ask a store to free parts, with fences until it has answered once. (A store fences again for a
 * repeated request, even if the part is gone, as it cannot tell whether the first fence is
 * complete.) @first: it was not asked before, so wait for a suspect.
 */
static void lite_zombies_free(struct lite_memory *mem, struct lite_zombies *z, bool first)
{
	struct lite_call_desc d = {
		.call = LITE_CALL_MEM_FREE,
		.req = &z->req,
		.life = z->at.incarnation,
	};
	struct lite_part *part, *tmp;
	int err;

	list_for_each_entry_safe(part, tmp, &z->parts, list) {
		d.len = struct_size(&z->req, fence, le32_to_cpu(z->req.n_fences));
		z->req.id = cpu_to_le64(part->alloc);
		err = first ? lite_cluster_call_patiently(mem->cl, z->at.node, &d) :
			      lite_cluster_call(mem->cl, z->at.node, &d);
		/* A store that has left has freed the part; a new incarnation never had it. */
		if (err && err != -EHOSTUNREACH && err != -ESTALE) {
			lite_zombies_keep(mem, z, first);
			return;
		}
		lite_part_free(part);
		z->req.fence_all = 0;
		z->req.n_fences = 0;
		cond_resched();
	}
	kfree(z);
}

/* Ask stores again to free zombies. Makes leaf calls. */
void lite_zombies_work(struct work_struct *work)
{
	struct lite_memory *mem = container_of(work, struct lite_memory, zombie_work.work);
	struct lite_zombies *z, *tmp;
	LIST_HEAD(todo);

	spin_lock(&mem->zombies_lock);
	list_splice_init(&mem->zombies, &todo);
	spin_unlock(&mem->zombies_lock);
	list_for_each_entry_safe(z, tmp, &todo, list)
		lite_zombies_free(mem, z, false);
}

/* Drop the zombies of an incarnation of a store that is over; @at NULL: all. May sleep. */
void lite_zombies_lost(struct lite_memory *mem, const struct lite_share *at)
{
	struct lite_zombies *z, *next;
	struct lite_part *part, *tmp;
	LIST_HEAD(lost);

	spin_lock(&mem->zombies_lock);
	list_for_each_entry_safe(z, next, &mem->zombies, list) {
		if (!at || lite_share_is(&z->at, at))
			list_move(&z->list, &lost);
	}
	spin_unlock(&mem->zombies_lock);
	list_for_each_entry_safe(z, next, &lost, list) {
		list_for_each_entry_safe(part, tmp, &z->parts, list) {
			lite_part_free(part);
			cond_resched();
		}
		kfree(z);
	}
}

/*
 * Give parts back to their stores, and free them. @lmr: stores first fence its lost mappers; NULL:
 * no mapper was told of the parts. @fence: a node that may still be copying into them, and is
 * fenced first; 0: none. May sleep, also while stores are suspect; makes leaf calls.
 */
void lite_parts_release(struct lite_memory *mem, struct lite_lmr *lmr, struct list_head *parts,
			u32 fence)
{
	struct lite_part *part, *tmp;
	bool fenced = false;

	list_for_each_entry_safe(part, tmp, parts, list) {
		kvfree(part->extents);
		if (part->alloc && !part->local)
			continue;
		if (part->local && !fenced) {
			lite_cluster_fence(mem->cl, fence, NULL);
			fenced = true;
		}
		lite_store_free(lite_store_get(mem, part->alloc, part->at.node, true));
		lite_part_free(part);
		cond_resched();
	}
	while (!list_empty(parts))
		lite_zombies_free(mem, lite_zombies_new(parts, lmr, fence), true);
}

/* Release @n parts of a place, from @first on, which no node can reach through this node. */
void lite_place_release(struct lite_lmr *lmr, const struct lite_place *place, u32 first, u32 n)
{
	LIST_HEAD(parts);
	u32 i;

	for (i = first; i < first + n; i++)
		list_add_tail(&place->part[i]->list, &parts);
	lite_parts_release(lmr->mem, lmr, &parts, 0);
}

/* Give back one part at another node that no mapper was told of. May sleep; makes leaf calls. */
void lite_part_release(struct lite_memory *mem, struct lite_part *part)
{
	LIST_HEAD(parts);

	list_add(&part->list, &parts);
	lite_zombies_free(mem, lite_zombies_new(&parts, NULL, 0), false);
}
