// SPDX-License-Identifier: GPL-2.0
/*
 * Which memory may be unpinned LMRs at the same time.
 *
 * When the kernel takes a page away, it tells one LMR after the other, so its waits add up.
 * Therefore no page of a process is in two unpinned LMRs of a node, and few have parts of one huge
 * page.
 */
#include "memory/memory.h"
#include "unpinned.h"

static bool lite_unpinned_same_mm(const struct rb_node *node, const struct lite_unpinned *u)
{
	return node && rb_entry(node, struct lite_unpinned, node)->mm == u->mm;
}

/* Sort by process, then by address. Return: 0: they overlap. */
static int lite_unpinned_cmp(struct rb_node *node, const struct rb_node *with)
{
	const struct lite_unpinned *a = rb_entry(node, struct lite_unpinned, node);
	const struct lite_unpinned *b = rb_entry(with, struct lite_unpinned, node);

	if (a->mm != b->mm)
		return a->mm < b->mm ? -1 : 1;
	if (a->addr + (a->n_pages << PAGE_SHIFT) <= b->addr)
		return -1;
	return b->addr + (b->n_pages << PAGE_SHIFT) <= a->addr;
}

/* Have more than LITE_UNPINNED_EACH LMRs, with this new one, a part of one huge page? */
static bool lite_unpinned_crowded(const struct lite_unpinned *u)
{
	unsigned long first = u->addr >> PMD_SHIFT;
	unsigned long last = (u->addr + (u->n_pages << PAGE_SHIFT) - 1) >> PMD_SHIFT;
	struct rb_node *node;
	u32 n = 0;

	/* Count those in the first huge page, then those in the last one. */
	for (node = rb_prev(&u->node); lite_unpinned_same_mm(node, u); node = rb_prev(node)) {
		const struct lite_unpinned *o = rb_entry(node, struct lite_unpinned, node);

		if ((o->addr + (o->n_pages << PAGE_SHIFT) - 1) >> PMD_SHIFT < first)
			break;
		if (++n >= LITE_UNPINNED_EACH)
			return true;
	}
	if (first != last)
		n = 0;
	for (node = rb_next(&u->node); lite_unpinned_same_mm(node, u); node = rb_next(node)) {
		if (rb_entry(node, struct lite_unpinned, node)->addr >> PMD_SHIFT > last)
			break;
		if (++n >= LITE_UNPINNED_EACH)
			return true;
	}
	return false;
}

/*
 * Charge @uid for metadata, and enter @u in @registered, the list of a context. Inside the gate;
 * may sleep. Return: 0: @u is for lite_home_create() or lite_unpinned_free(). On failure @u is for
 * lite_unpinned_drop(): -EEXIST: a part is an unpinned LMR already; -EBUSY: too many LMRs have
 * parts of a huge page; -EDQUOT, -ENOSPC, -ENOMEM.
 */
int lite_unpinned_enter(struct lite_unpinned *u, u32 uid, struct list_head *registered)
{
	struct lite_memory *mem = u->mem;
	int err = lite_limit_take(&mem->limit, uid, sizeof(*u));

	if (err)
		return err;
	u->uid = uid;
	write_lock(&mem->runs_lock);
	if (rb_find_add(&u->node, &mem->unpinned, lite_unpinned_cmp)) {
		err = -EEXIST;
	} else if (lite_unpinned_crowded(u)) {
		rb_erase(&u->node, &mem->unpinned);
		err = -EBUSY;
	} else {
		list_add(&u->reg.list, registered);
	}
	write_unlock(&mem->runs_lock);
	if (err)
		lite_limit_give(&mem->limit, uid, sizeof(*u));
	return err;
}
