// SPDX-License-Identifier: GPL-2.0
/*
 * Anonymous LMRs whose makers are gone, at their home.
 *
 * An anonymous LMR belongs to the life of the node that made it, not to a
 * session: two nodes that lose sight of each other for a while both live on. It is
 * freed when its maker says so (made.c); when the maker has not learned that it
 * was made (lite_home_session_gone()); and, here, when the maker's life is over:
 * it has left, lives anew, or has been down for the orphan time. As every free
 * that waits for all mappers, or for their fence.
 */
#include <linux/slab.h>

#include "memory.h"

/* How long is an LMR kept for its maker yet? MAX_JIFFY_OFFSET: for good. */
static unsigned long lite_orphan_left(struct lite_memory *mem,
				      struct lite_lmr *lmr)
{
	bool anonymous;

	/* Our own goes with its handle, or with us. */
	if (!lmr->maker)
		return MAX_JIFFY_OFFSET;
	mutex_lock(&lmr->lock);
	anonymous = !lmr->name[0] && !lmr->dying;
	mutex_unlock(&lmr->lock);
	return anonymous ? lite_cluster_life_left(mem->cl, lmr->maker,
						  lmr->maker_incarnation,
						  mem->orphan) :
			   MAX_JIFFY_OFFSET;
}

/* Frees orphans, and comes back when there may be another one. */
void lite_orphans_work(struct work_struct *work)
{
	struct lite_memory *mem = container_of(to_delayed_work(work),
					       struct lite_memory, orphans);
	unsigned long next = MAX_JIFFY_OFFSET;
	struct lite_lmr *lmr;
	unsigned long id;

	xa_for_each(&mem->lmrs, id, lmr) {
		unsigned long left;

		lmr = lite_lmr_get(mem, id);
		if (!lmr)
			continue;
		left = lite_orphan_left(mem, lmr);
		if (!left)
			lite_home_reap(lmr);
		else
			next = min(next, left);
		lite_lmr_put(lmr);
		cond_resched();
	}
	if (next != MAX_JIFFY_OFFSET)
		queue_delayed_work(mem->wq, &mem->orphans, next + 1);
}

/**
 * lite_orphans_look - a node may be gone for good, or is down
 * @mem: node's
 *
 * Context: any process; the work is done in the background.
 */
void lite_orphans_look(struct lite_memory *mem)
{
	mod_delayed_work(mem->wq, &mem->orphans, 0);
}
