// SPDX-License-Identifier: GPL-2.0
/*
 * The end of an LMR at its home.
 *
 *   1. Mark it dying: no new mappers, no new changes. Drop its name.
 *   2. REVOKE at all mappers at once. Each answers when it has no operation in
 *      flight and will start none.
 *   3. A mapper that does not answer is fenced from us: its session is ended.
 *   4. Parts go back to their stores. These first fence the mappers of 3, and
 *      those lost earlier, from themselves.
 *
 * A work item does it, so that callers, which wait, can be killed. A change in
 * progress ends before 2: it makes no more parts, and releases those that it has
 * made.
 */
#include <linux/slab.h>

#include "memory/memory.h"
#include "home.h"
#include "trace.h"

/*
 * UNMAP waits this long for the end of an anonymous LMR, so that its memory is
 * mostly free when the handle is closed. Not as long as mappers may take: a
 * late reply would end the session.
 */
#define LITE_UNMAP_PATIENCE HZ

/* No MAPs and changes from now on. Return: true for the first caller. */
static bool lite_home_doom(struct lite_lmr *lmr)
{
	bool first;

	mutex_lock(&lmr->lock);
	first = !lmr->dying;
	lmr->dying = true;
	mutex_unlock(&lmr->lock);
	if (first)
		wake_up_all(&lmr->changed);
	return first;
}

/* Do the rest, once. */
static void lite_home_end(struct lite_lmr *lmr)
{
	struct lite_memory *mem = lmr->mem;
	bool first;

	/* A change in progress stops making parts when it sees @dying. */
	wait_event(lmr->changed, !READ_ONCE(lmr->changing));
	/* The lock also makes its results visible here. */
	mutex_lock(&lmr->lock);
	first = !lmr->ending;
	lmr->ending = true;
	mutex_unlock(&lmr->lock);
	if (!first)
		return;
	trace_lite_lmr_dying(lite_cluster_id(mem->cl), lmr->id,
			     lmr->place->length);
	if (lmr->name[0])
		lite_name_drop(mem, lmr->name, lmr->id);
	lite_mappers_tell(lmr, LITE_CALL_LMR_REVOKE);
	lite_place_release(lmr, lmr->place, 0, lmr->place->n_parts);
	lite_mappers_drop(lmr, false);
	xa_erase(&mem->lmrs, lmr->id);
	mem->ops->lmr_cut(mem->priv, lmr->id, 0);
	lite_stat_dec(mem->stats, LITE_STAT_LMRS);
	trace_lite_lmr_free(lite_cluster_id(mem->cl), lmr->id,
			    lmr->place->length);
	complete_all(&lmr->freed);
	lite_lmr_put(lmr);
}

void lite_reap_work(struct work_struct *work)
{
	struct lite_lmr *lmr = container_of(work, struct lite_lmr, reap_work);

	lite_home_doom(lmr);
	lite_home_end(lmr);
	lite_lmr_put(lmr);
}

/**
 * lite_home_free - free an LMR
 * @lmr: caller has a reference
 *
 * Context: may sleep; killable.
 * Return: 0: freed; -ENOENT: freed by another caller; -EINTR: killed, and it is
 * freed in the background.
 */
int lite_home_free(struct lite_lmr *lmr)
{
	bool first = lite_home_doom(lmr);

	lite_home_reap(lmr);
	if (wait_for_completion_killable(&lmr->freed))
		return -EINTR;
	return first ? 0 : -ENOENT;
}

/* Free an LMR in the background. Context: any process. */
void lite_home_reap(struct lite_lmr *lmr)
{
	kref_get(&lmr->ref);
	if (!queue_work(lmr->mem->wq, &lmr->reap_work))
		lite_lmr_put(lmr);
}

/*
 * Free all LMRs homed here, when no new ones can be made. May sleep; makes leaf
 * calls.
 */
void lite_home_free_all(struct lite_memory *mem)
{
	struct lite_lmr *lmr;
	unsigned long id;
	int wait;

	/* Queue all first, so that slow mappers are awaited together. */
	for (wait = 0; wait < 2; wait++) {
		xa_for_each(&mem->lmrs, id, lmr) {
			lmr = lite_lmr_get(mem, id);
			if (!lmr)
				continue;
			lite_home_reap(lmr);
			if (wait)
				wait_for_completion(&lmr->freed);
			lite_lmr_put(lmr);
		}
	}
}

/* ---- for others ---------------------------------------------------------- */

static int lite_serve_free(struct lite_lmr *lmr, struct lite_conn *conn,
			   const void *req, void *reply, u32 *reply_len)
{
	return lite_change_check(lmr, conn, req) ?: lite_home_free(lmr);
}

/* Give back MAPs. Return: the LMR with a reference if it must be freed. */
static struct lite_lmr *lite_home_unmap_id(struct lite_memory *mem, u64 id,
					   const struct lite_conn *conn,
					   u32 count, u32 flags)
{
	struct lite_lmr *lmr = lite_lmr_get(mem, id);
	bool over;

	/* Freed, so nothing is mapped. */
	if (!lmr)
		return NULL;
	over = lite_home_unmap(lmr, conn ? conn->session : 0, count,
			       flags & LITE_UNMAP_UNCLEAN);
	/* The maker's session may be a later one than @creator. */
	if (conn)
		over = flags & LITE_UNMAP_LAST &&
		       lmr->maker == conn->from.node &&
		       lmr->maker_incarnation == conn->from.incarnation;
	else
		over &= !lmr->maker;
	mutex_lock(&lmr->lock);
	over &= !lmr->name[0];
	mutex_unlock(&lmr->lock);
	if (over)
		return lmr;
	lite_lmr_put(lmr);
	return NULL;
}

/*
 * This node gives back @count MAPs of an LMR homed here. May sleep; makes leaf
 * calls.
 */
void lite_home_unmap_own(struct lite_memory *mem, u64 id, u32 count, u32 flags)
{
	struct lite_lmr *lmr = lite_home_unmap_id(mem, id, NULL, count, flags);

	if (!lmr)
		return;
	lite_home_free(lmr);
	lite_lmr_put(lmr);
}

static int lite_serve_unmap(void *priv, struct lite_conn *conn, const void *req,
			    u32 len, void *reply, u32 *reply_len)
{
	const struct lite_wire_unmap *u = req;
	struct lite_lmr *lmr;

	if (!conn)
		return -EBADMSG;
	lmr = lite_home_unmap_id(priv, le64_to_cpu(u->id), conn,
				 le32_to_cpu(u->count), le32_to_cpu(u->flags));
	if (lmr) {
		lite_home_reap(lmr);
		wait_for_completion_timeout(&lmr->freed, LITE_UNMAP_PATIENCE);
		lite_lmr_put(lmr);
	}
	return 0;
}

void lite_free_handlers(struct lite_memory *mem)
{
	lite_lmr_handle(mem, LITE_CALL_LMR_FREE, lite_serve_free);
	lite_kcall_handle(mem->cl->rpc, LITE_CALL_LMR_UNMAP, lite_serve_unmap,
			  mem);
}
