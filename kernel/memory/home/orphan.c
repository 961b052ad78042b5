// SPDX-License-Identifier: GPL-2.0
/*
 * Anonymous LMRs that have lost their maker, at their home.
 *
 * An anonymous LMR belongs to an incarnation of its maker, not to a session:
 * two nodes may lose sight of each other and both live on. It is freed when its
 * maker asks for it (made.c); when the maker never learned of it
 * (lite_home_session_gone()); and, here, when the maker has left, has a new
 * incarnation, or has been down for the orphan time. As with any free, all
 * mappers first let go or are fenced.
 */
#include <linux/slab.h>

#include "memory/memory.h"
#include "home.h"

/* Jiffies until an LMR is an orphan; MAX_JIFFY_OFFSET: not to be expected. */
static unsigned long lite_orphan_left(struct lite_memory *mem,
				      struct lite_lmr *lmr)
{
	bool anonymous;

	mutex_lock(&lmr->lock);
	anonymous = !lmr->name[0] && !lmr->dying;
	mutex_unlock(&lmr->lock);
	/* Our own is freed with its last handle. */
	if (!anonymous || !lmr->maker)
		return MAX_JIFFY_OFFSET;
	return lite_cluster_life_left(mem->cl, lmr->maker,
				      lmr->maker_incarnation, mem->orphan);
}

/* Free orphans, and come back when the next one is due. */
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
