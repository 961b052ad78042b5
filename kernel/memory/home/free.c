// SPDX-License-Identifier: GPL-2.0
/*
 * The end of an LMR at its home, and what causes it: Documentation/lifetime.rst, LMR. A dying LMR
 * gets no new mappers or changes, and a change in progress ends. A work item then sends REVOKE to
 * all mappers, fences those that do not answer, drops the name, and gives the parts back to their
 * stores, which first fence lost mappers. Callers wait for the work item, and so can be killed.
 */
#include "memory/memory.h"
#include "home.h"
#include "trace.h"

/*
 * UNMAP waits this long for the end of an anonymous LMR, so that its memory is usually free once
 * the handle is closed. Mappers may take longer, but a late reply to UNMAP would end the session.
 */
#define LITE_UNMAP_PATIENCE HZ

/* Let an LMR get no more mappers and changes. */
static void lite_home_doom(struct lite_lmr *lmr)
{
	spin_lock(&lmr->lock);
	lmr->dying = true;
	spin_unlock(&lmr->lock);
	lite_crowd_wake(&lmr->changed);
}

/* Free a dying LMR, unless another thread has begun that. */
static void lite_home_end(struct lite_lmr *lmr)
{
	struct lite_memory *mem = lmr->mem;
	bool first;

	/* A change in progress stops making parts when it sees @dying. */
	wait_event(lmr->changed.wait, !READ_ONCE(lmr->changing));
	/* The lock also makes the results of that change visible here. */
	spin_lock(&lmr->lock);
	first = !lmr->ending;
	lmr->ending = true;
	spin_unlock(&lmr->lock);
	if (!first)
		return;
	trace_lite_lmr_dying(lite_cluster_id(mem->cl), lmr->id, lmr->place->length);
	lite_mappers_tell(lmr, LITE_CALL_LMR_REVOKE);
	/* Not earlier: until REVOKE or fence, a node opens the LMR by name: handle/name_cache.c. */
	if (lmr->name[0])
		lite_name_drop(mem, lmr->name, lmr->id);
	if (lmr->unpinned)
		mem->rooms->unpinned_end(lmr->unpinned);
	lite_place_release(lmr, lmr->place, 0, lmr->place->n_parts);
	lite_mappers_drop(lmr, false);
	xa_erase(&mem->lmrs, lmr->id);
	mem->ops->lmr_cut(mem->priv, lmr->id, 0);
	lite_stat_dec(mem->stats, LITE_STAT_LMRS);
	trace_lite_lmr_free(lite_cluster_id(mem->cl), lmr->id, lmr->place->length);
	WRITE_ONCE(lmr->freed, true);
	lite_crowd_wake(&lmr->changed);
	lite_lmr_put(lmr);
}

void lite_reap_job(struct work_struct *work)
{
	struct lite_lmr *lmr = container_of(work, struct lite_lmr, reap.work);

	/* Waiters may not know that the LMR is dying. */
	lite_crowd_wake(&lmr->changed);
	lite_rename_end(lmr);
	/* Do not keep a worker waiting for a change: lite_change_end() queues this job again. */
	if (READ_ONCE(lmr->dying) && !READ_ONCE(lmr->changing))
		lite_home_end(lmr);
	lite_crew_done(&lmr->mem->reaps, &lmr->reap);
	lite_lmr_put(lmr);
}

/* Free a chunk now, unless that has begun. For work items. May sleep. */
void lite_home_finish(struct lite_lmr *lmr)
{
	lite_home_doom(lmr);
	lite_home_end(lmr);
}

/* Have a dying LMR freed, and wait for that. May sleep; killable. Return: <0: killed. */
static long lite_home_await(struct lite_lmr *lmr, long timeout)
{
	lite_home_reap(lmr);
	return lite_crowd_wait_timeout(&lmr->changed, READ_ONCE(lmr->freed), timeout);
}

/* Free an LMR of which the caller has a reference. Goes on if the caller is killed. May sleep. */
void lite_home_free(struct lite_lmr *lmr)
{
	lite_home_doom(lmr);
	lite_home_await(lmr, MAX_SCHEDULE_TIMEOUT);
}

/* Have a worker end a rename of an LMR, and free the LMR if it is dying. Context: any process. */
void lite_home_reap(struct lite_lmr *lmr)
{
	refcount_inc(&lmr->ref);
	if (!lite_crew_queue(&lmr->mem->reaps, &lmr->reap))
		lite_lmr_put(lmr);
}

/* Free all LMRs homed here, when no new ones can be made. May sleep; makes leaf calls. */
void lite_home_free_all(struct lite_memory *mem)
{
	struct lite_lmr *lmr;
	unsigned long id;
	int wait;

	/* Queue all first, so that slow mappers are awaited together. */
	for (wait = 0; wait < 2; wait++) {
		id = 0;
		while ((lmr = lite_lmr_next(mem, &id))) {
			lite_home_doom(lmr);
			lite_home_reap(lmr);
			if (wait)
				wait_event(lmr->changed.wait, READ_ONCE(lmr->freed));
			lite_lmr_put(lmr);
		}
	}
	/* Chunks have ended with their LMRs, but work items may still be freeing them. */
	wait_var_event(&mem->n_chunks, !atomic_read(&mem->n_chunks));
}

/*
 * Return: jiffies until an anonymous LMR is an orphan; MAX_JIFFY_OFFSET: it may never be; 0: it is
 * one, and dying now. (A rename in progress has given it a name before that, or fails.)
 */
static unsigned long lite_orphan_left(struct lite_lmr *lmr)
{
	struct lite_memory *mem = lmr->mem;
	unsigned long left;
	bool anonymous;

	spin_lock(&lmr->lock);
	anonymous = !lmr->name[0] && !lmr->dying;
	spin_unlock(&lmr->lock);
	/* One that this node made is freed with its last handle. */
	if (!anonymous || !lmr->maker)
		return MAX_JIFFY_OFFSET;
	left = lite_cluster_life_left(mem->cl, lmr->maker, lmr->maker_incarnation, mem->orphan);
	if (left)
		return left;
	spin_lock(&lmr->lock);
	anonymous = !lmr->name[0];
	lmr->dying |= anonymous;
	spin_unlock(&lmr->lock);
	return anonymous ? 0 : MAX_JIFFY_OFFSET;
}

/* Free orphans, and run again when the next one is due. */
void lite_orphans_work(struct work_struct *work)
{
	struct lite_memory *mem = container_of(to_delayed_work(work), struct lite_memory, orphans);
	unsigned long next = MAX_JIFFY_OFFSET;
	struct lite_lmr *lmr;
	unsigned long id = 0;

	while ((lmr = lite_lmr_next(mem, &id))) {
		unsigned long left = lite_orphan_left(lmr);

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

int lite_serve_free(struct lite_lmr *lmr, struct lite_conn *conn, const void *req, void *reply)
{
	bool first;
	int err;

	spin_lock(&lmr->lock);
	err = lite_change_check_locked(lmr, conn, req);
	first = !err && !lmr->dying;
	lmr->dying |= !err;
	spin_unlock(&lmr->lock);
	if (err)
		return err;
	if (lite_home_await(lmr, MAX_SCHEDULE_TIMEOUT) < 0)
		return -EINTR;
	return first ? 0 : -ENOENT;
}

/* A node (@conn; NULL: this one) gives back MAPs. @patience: jiffies to wait for the LMR's end. */
static void lite_home_unmap_wait(struct lite_memory *mem, struct lite_conn *conn,
				 const struct lite_wire_unmap *u, long patience)
{
	struct lite_lmr *lmr = lite_lmr_get(mem, le64_to_cpu(u->id));

	/* It was freed, so nothing is mapped. */
	if (!lmr)
		return;
	if (lite_home_unmap(lmr, conn, le32_to_cpu(u->count), le32_to_cpu(u->flags)))
		lite_home_await(lmr, patience);
	if (lmr->of)
		mem->rooms->chunk_unused(lmr);
	lite_lmr_put(lmr);
}

/*
 * Give back this node's MAPs of an LMR homed here. If that ends the LMR, a process waits until it
 * is freed; a work item does not, as other threads may wait for it. May sleep; killable.
 */
void lite_home_unmap_own(struct lite_memory *mem, const struct lite_wire_unmap *u)
{
	lite_home_unmap_wait(mem, NULL, u,
			     current->flags & PF_KTHREAD ? 0 : MAX_SCHEDULE_TIMEOUT);
}

int lite_serve_unmap(struct lite_memory *mem, struct lite_conn *conn, const void *req, void *reply)
{
	const struct lite_wire_unmaps *r = req;
	u32 i;

	if (!conn)
		return -EBADMSG;
	for (i = 0; i < le32_to_cpu(r->count); i++) {
		/* Only the first may end its LMR: the others are chunks. */
		if (i && le32_to_cpu(r->unmap[i].flags) & LITE_UNMAP_LAST)
			return -EBADMSG;
		lite_home_unmap_wait(mem, conn, &r->unmap[i], i ? 0 : LITE_UNMAP_PATIENCE);
		cond_resched();
	}
	return 0;
}
