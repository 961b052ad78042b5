// SPDX-License-Identifier: GPL-2.0
/*
 * Anonymous LMRs that this node has made at other nodes. It tells the home to free one when the
 * last mapping that its handles use, or have used, has ended (Documentation/lifetime.rst, LMR).
 */
#include <linux/slab.h>

#include "memory/memory.h"
#include "mapping.h"

struct lite_made {
	struct list_head list; /* in mem->made while the home has to be told that it is unused */
	u32 home;
	u64 incarnation;       /* of @home */
	u64 id;                /* there */
	u32 users;             /* mappings; under map_lock */
};

/* Record an anonymous LMR from its home's reply, for lite_made_use() or kfree(), or NULL. */
struct lite_made *lite_made_new(u32 home, const struct lite_wire_map_reply *r)
{
	struct lite_made *made = kzalloc(sizeof(*made), GFP_KERNEL_ACCOUNT);

	if (!made)
		return NULL;
	made->home = home;
	made->incarnation = le64_to_cpu(r->share[0].incarnation);
	made->id = le64_to_cpu(r->id);
	return made;
}

/*
 * A handle of the maker begins to use @m, to which the caller has a reference. *@made: record of a
 * new LMR, or of the handle's previous mapping, or NULL; not taken if @m has one. It is freed with
 * its last mapping. Context: any process.
 */
void lite_made_use(struct lite_mapping *m, struct lite_made **made)
{
	spin_lock(&m->mem->map_lock);
	if (*made && !m->made) {
		m->made = *made;
		m->made->users++;
	}
	spin_unlock(&m->mem->map_lock);
}

/*
 * Detach a mapping's record. Return: it, for lite_made_over(), if no mapping has it now; or NULL.
 */
struct lite_made *lite_made_detach(struct lite_mapping *m)
{
	struct lite_made *made = m->made;

	lockdep_assert_held(&m->mem->map_lock);
	m->made = NULL;
	return made && !--made->users ? made : NULL;
}

/*
 * No handle here has the LMR any more: free @made. Unless the home was @told, it is told first, in
 * the background. Context: any process.
 */
void lite_made_over(struct lite_memory *mem, struct lite_made *made, bool told)
{
	if (told) {
		kfree(made);
		return;
	}
	spin_lock(&mem->map_lock);
	list_add_tail(&made->list, &mem->made);
	spin_unlock(&mem->map_lock);
	/* Try at once, as there may be a new session with the home already. */
	queue_work(mem->wq, &mem->made_work);
}

/* Return: true: the home has been told, or does not have the LMR any more. */
static bool lite_made_tell(struct lite_memory *mem, const struct lite_made *made)
{
	struct lite_conn *conn = lite_cluster_conn_get(mem->cl, made->home);
	bool over;

	if (!conn)
		return made->home == lite_cluster_id(mem->cl) ||
		       lite_cluster_incarnation(mem->cl, made->home) != made->incarnation;
	over = conn->from.incarnation != made->incarnation ||
	       lite_mapping_give_back(mem, conn, made->id, 0, LITE_UNMAP_LAST);
	lite_conn_put(conn);
	return over;
}

/* Tell the homes of what is on the list. What stays there is tried again when members change. */
void lite_made_work(struct work_struct *work)
{
	struct lite_memory *mem = container_of(work, struct lite_memory, made_work);
	struct lite_made *made, *tmp;
	LIST_HEAD(todo);

	spin_lock(&mem->map_lock);
	list_splice_init(&mem->made, &todo);
	spin_unlock(&mem->map_lock);
	list_for_each_entry_safe(made, tmp, &todo, list) {
		if (lite_made_tell(mem, made)) {
			list_del(&made->list);
			kfree(made);
		}
		cond_resched();
	}
	spin_lock(&mem->map_lock);
	list_splice(&todo, &mem->made);
	spin_unlock(&mem->map_lock);
}

/* This node's incarnation is over: forget all. made_work does not run, and no session is left. */
void lite_made_drop(struct lite_memory *mem)
{
	struct lite_made *made, *tmp;
	LIST_HEAD(gone);

	/* A user may have any number of these, so free them without the lock. */
	spin_lock(&mem->map_lock);
	list_splice_init(&mem->made, &gone);
	spin_unlock(&mem->map_lock);
	list_for_each_entry_safe(made, tmp, &gone, list) {
		kfree(made);
		cond_resched();
	}
}
