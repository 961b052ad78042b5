// SPDX-License-Identifier: GPL-2.0
/*
 * The mappers of an LMR, at its home: counting, revoking and recalling them. MAPs are counted, by
 * session, so that a node remains a mapper if its UNMAP of two MAPs overtakes a third MAP.
 *
 * REVOKE ends an LMR: a node that has answered is no longer a mapper. After RECALL it still is one,
 * and gives its MAPs back when its handles are closed, but it must map anew before its next
 * operation. A mapper that does not answer is fenced from this node, and stays in the list as lost
 * until the LMR's other stores have fenced it, too.
 */
#include <linux/sched/mm.h>
#include <linux/slab.h>

#include "memory/memory.h"
#include "home.h"

/* A mapper is fenced if it has not answered this long after its operations must have ended. */
#define LITE_REVOKE_GRACE (5 * HZ)

/* Time-out of a MEM_FREE that only fences; a fence may take nearly that long. */
#define LITE_RECALL_FENCE_TIMEOUT (60 * HZ)

/* A REVOKE or RECALL to one mapper. */
struct lite_revoke {
	struct lite_crew_job job;
	struct lite_tell *tell;
	u64 session;
	struct lite_conn *conn;
	int err;
};

/* REVOKEs or RECALLs to all mappers. */
struct lite_tell {
	struct lite_lmr *lmr;        /* with a reference */
	struct kref ref;             /* of each work item, and of the thread that waits for them */
	u16 call;
	u32 left;                    /* mappers without an answer; under @lmr->lock, as @err */
	int err;                     /* -EIO: a fence by this node has failed */
	struct completion done;      /* when all have answered */
	struct lite_revoke revoke[]; /* one for each mapper */
};

/*
 * Tells a mapper that a chunk ends. The first entry of a session heads a list of the session's
 * other chunks. The thread that waits owns all of them.
 */
struct lite_end {
	struct list_head list;  /* in the list of first entries, or in @more of one */
	struct list_head more;
	struct work_struct work;
	struct completion done; /* for all of @more, too; the work item's last access */
	struct lite_lmr *lmr;   /* the waiting thread has a reference */
	u64 session;            /* 0: this node */
	struct lite_conn *conn;
};

static struct lite_mapper *lite_mapper_find(struct lite_lmr *lmr, u64 session)
{
	struct lite_mapper *m;

	lockdep_assert_held(&lmr->lock);
	list_for_each_entry(m, &lmr->mappers, list) {
		if (!m->lost && m->session == session)
			return m;
	}
	return NULL;
}

/*
 * Grant a MAP to a node (@conn; NULL: this one) and count it. @granted: set to its rights. The
 * LMR's state, name and rights are checked under the lock that enters the mapper, so a free or
 * change that begins later finds it. May sleep. Return: 0; -ENOENT: dying, or renamed; -EBUSY:
 * closed, retry after AWAIT; -EACCES; -ENOMEM.
 */
int lite_mapper_add(struct lite_lmr *lmr, struct lite_conn *conn,
		    const struct lite_wire_map *map, u32 *granted)
{
	u32 wanted = le32_to_cpu(map->rights);
	u64 session = conn ? conn->session : 0;
	struct lite_mapper *m, *new = kzalloc(sizeof(*new), GFP_KERNEL_ACCOUNT);
	int err = 0;

	if (new && lmr->of)
		new->end = kzalloc(sizeof(*new->end), GFP_KERNEL_ACCOUNT);
	spin_lock(&lmr->lock);
	*granted = lite_lmr_rights(lmr, conn, &map->cred);
	if (lmr->dying)
		err = -ENOENT;
	else if (lmr->closed)
		err = -EBUSY;
	else if (map->name[0] && strcmp(map->name, lmr->name))
		err = -ENOENT;
	else if (wanted & ~*granted && !map->renew)
		err = -EACCES;
	if (err)
		goto out;
	*granted &= wanted;
	m = lite_mapper_find(lmr, session);
	if (!m) {
		if (!new || (lmr->of && !new->end)) {
			err = -ENOMEM;
			goto out;
		}
		m = new;
		new = NULL;
		m->session = session;
		m->node = conn ? conn->from.node : lite_cluster_id(lmr->mem->cl);
		list_add(&m->list, &lmr->mappers);
	}
	m->count++;
out:
	spin_unlock(&lmr->lock);
	if (new)
		kfree(new->end);
	kfree(new);
	return err;
}

/* May a node (@conn; NULL: this one) be told where a locked LMR is? */
bool lite_mapper_known(struct lite_lmr *lmr, struct lite_conn *conn)
{
	lockdep_assert_held(&lmr->lock);
	return !lmr->dying && lite_mapper_find(lmr, conn ? conn->session : 0);
}

static void lite_mapper_drop(struct lite_mapper *m)
{
	list_del(&m->list);
	kfree(m->end);
	kfree(m);
}

/* Drop all mappers or, if @lost, only lost ones, and mark the others clean. May sleep. */
void lite_mappers_drop(struct lite_lmr *lmr, bool lost)
{
	struct lite_mapper *m, *tmp;

	spin_lock(&lmr->lock);
	list_for_each_entry_safe(m, tmp, &lmr->mappers, list) {
		if (m->lost || !lost)
			lite_mapper_drop(m);
		else
			m->unclean = false;
	}
	spin_unlock(&lmr->lock);
}

/* A node is no longer a mapper. If other stores have to fence it, keep one lost entry for it. */
static void lite_mapper_lose(struct lite_lmr *lmr, struct lite_mapper *m)
{
	struct lite_mapper *other;
	bool keep = lmr->place->n_shares > 1;

	lockdep_assert_held(&lmr->lock);
	list_for_each_entry(other, &lmr->mappers, list) {
		if (other != m && other->lost && other->node == m->node)
			keep = false;
	}
	if (!keep) {
		lite_mapper_drop(m);
		return;
	}
	m->lost = true;
	m->session = 0;
}

/*
 * A node (@conn; NULL: this one) gives back @count MAPs. @flags: enum lite_wire_unmap_flags. May
 * sleep. Return: true if the LMR is anonymous and its maker has no handle on it any more: it is
 * dying now, and the caller frees it.
 */
bool lite_home_unmap(struct lite_lmr *lmr, const struct lite_conn *conn, u32 count, u32 flags)
{
	struct lite_mapper *m;
	bool over = false;

	spin_lock(&lmr->lock);
	m = lite_mapper_find(lmr, conn ? conn->session : 0);
	if (m) {
		m->count -= min_t(u64, count, m->count);
		m->unclean |= flags & LITE_UNMAP_UNCLEAN;
		over = !m->count;
		if (over && m->unclean)
			lite_mapper_lose(lmr, m);
		else if (over)
			lite_mapper_drop(m);
	}
	/* The maker may have a later session than @creator. A chunk ends with its pages. */
	if (lmr->of)
		over = false;
	else if (conn)
		over = flags & LITE_UNMAP_LAST && lmr->maker == conn->from.node &&
		       lmr->maker_incarnation == conn->from.incarnation;
	else
		over &= !lmr->maker;
	over &= !lmr->name[0];
	/* Still under the lock, as a rename may give it a name. */
	lmr->dying |= over;
	spin_unlock(&lmr->lock);
	return over;
}

/*
 * Drop the mappers of a session that has ended; its peer is fenced from this node. Also free an
 * anonymous LMR that the peer made but never learned of, and so makes again. May sleep.
 */
void lite_home_session_gone(struct lite_memory *mem, u64 session)
{
	struct lite_mapper *m;
	struct lite_lmr *lmr;
	unsigned long id;
	bool orphan;

	xa_for_each(&mem->lmrs, id, lmr) {
		lmr = lite_lmr_get(mem, id);
		if (!lmr)
			continue;
		spin_lock(&lmr->lock);
		m = lite_mapper_find(lmr, session);
		if (m)
			lite_mapper_lose(lmr, m);
		orphan = !lmr->name[0] && !lmr->confirmed && lmr->creator == session;
		lmr->dying |= orphan;
		spin_unlock(&lmr->lock);
		if (orphan)
			lite_home_reap(lmr);
		else if (lmr->of)
			mem->rooms->chunk_unused(lmr);
		lite_lmr_put(lmr);
		cond_resched();
	}
}

/*
 * Check the session of a mapper (@conn; NULL: this node) that was just added: the session's end may
 * have been handled before that. May sleep. Return: 0; -EHOSTDOWN: not a mapper any more.
 */
int lite_mapper_recheck(struct lite_lmr *lmr, struct lite_conn *conn)
{
	if (!conn || !lite_conn_is_dead(conn))
		return 0;
	/* A dead connection may not be fenced yet: the mapper may still reach the memory. */
	lite_conn_fence(conn, -EHOSTDOWN);
	lite_home_session_gone(lmr->mem, conn->session);
	return -EHOSTDOWN;
}

static void lite_mapper_answered(struct lite_lmr *lmr, const struct lite_revoke *r)
{
	struct lite_mapper *m = lite_mapper_find(lmr, r->session);

	if (!m)
		return;
	m->unclean |= r->err == -EUCLEAN;
	if ((r->err && r->err != -EUCLEAN) ||
	    (r->tell->call == LITE_CALL_LMR_REVOKE && m->unclean))
		lite_mapper_lose(lmr, m);
	else if (r->tell->call == LITE_CALL_LMR_REVOKE)
		lite_mapper_drop(m);
}

static void lite_tell_release(struct kref *ref)
{
	struct lite_tell *t = container_of(ref, struct lite_tell, ref);

	lite_lmr_put(t->lmr);
	kvfree(t);
}

static void lite_revoke_put(struct lite_revoke *r)
{
	lite_conn_put(r->conn);
	kref_put(&r->tell->ref, lite_tell_release);
}

static void lite_revoke_work(struct work_struct *work)
{
	struct lite_revoke *r = container_of(work, struct lite_revoke, job.work);
	struct lite_tell *t = r->tell;
	struct lite_lmr *lmr = t->lmr;
	struct lite_wire_id req = { .id = cpu_to_le64(lmr->id) };
	struct lite_memory *mem = lmr->mem;
	unsigned long begun = jiffies;
	struct lite_call_desc d = {
		LITE_REQUEST(t->call, req),
		.deadline = begun + mem->fab->op_timeout + LITE_REVOKE_GRACE,
	};
	int unfenced = 0;

	lite_stat_inc(mem->stats, LITE_STAT_REVOKES);
	/* This node is not called: revoking here cannot fail. */
	if (!r->session)
		r->err = mem->rooms->revoke(mem, lite_cluster_id(mem->cl), lmr->id,
					    t->call == LITE_CALL_LMR_REVOKE);
	else if (r->conn)
		r->err = lite_kcall(r->conn, &d);
	else
		r->err = -EHOSTDOWN;
	/*
	 * EUCLEAN: the mapper has let go, but a failed operation may be in flight to other stores.
	 * Any other error: no answer came in time, or the session is dying. Wait for its fence.
	 */
	if (r->err && r->err != -EUCLEAN && r->conn) {
		lite_conn_end(r->conn, LITE_END_REVOKE, jiffies_to_msecs(jiffies - begun),
			      -ETIMEDOUT);
		unfenced = lite_conn_fence(r->conn, -ETIMEDOUT);
	}
	spin_lock(&lmr->lock);
	lite_mapper_answered(lmr, r);
	t->err = unfenced ?: t->err;
	if (!--t->left)
		complete(&t->done);
	spin_unlock(&lmr->lock);
	lite_crew_done(&mem->revokes, &r->job);
	lite_revoke_put(r);
}

/*
 * Prepare to tell all mappers. Return: NULL: there are none; ERR_PTR(-EINTR): this thread was
 * killed. (No work item ever is. Before Linux 6.9, vmalloc() then fails despite __GFP_NOFAIL.)
 */
static struct lite_tell *lite_tell_new(struct lite_lmr *lmr, u16 call)
{
	struct lite_mapper *m;
	struct lite_tell *t;
	u32 n = 0;

	spin_lock(&lmr->lock);
	list_for_each_entry(m, &lmr->mappers, list)
		n += !m->lost;
	spin_unlock(&lmr->lock);
	if (!n)
		return NULL;
	t = kvzalloc(struct_size(t, revoke, n), GFP_KERNEL | __GFP_NOFAIL);
	if (!t)
		return ERR_PTR(-EINTR);
	t->lmr = lmr;
	refcount_inc(&lmr->ref);
	kref_init(&t->ref);
	t->call = call;
	init_completion(&t->done);
	/* Copy the sessions: mappers may unmap and be freed. Their number can only have shrunk. */
	spin_lock(&lmr->lock);
	list_for_each_entry(m, &lmr->mappers, list) {
		if (!m->lost && !WARN_ON_ONCE(t->left == n))
			t->revoke[t->left++].session = m->session;
	}
	spin_unlock(&lmr->lock);
	return t;
}

/*
 * End all operations of all mappers on an LMR that is dying (for REVOKE) or closed (for RECALL), so
 * that no mapper is added. Afterwards only lost mappers remain and, with RECALL, those that have
 * answered. Mappers are told at the same time, as far as the LMR's first owner has workers; the
 * others wait for a worker. A mapper that unmaps meanwhile finds nothing to revoke.
 *
 * May sleep; killable, but not in a work item; makes leaf calls. Return: 0; -EIO: a fence by this
 * node has failed; -EINTR: killed: some mappers are not told, or answer later.
 */
int lite_mappers_tell(struct lite_lmr *lmr, u16 call)
{
	struct lite_crew *crew = &lmr->mem->revokes;
	struct lite_tell *t;
	int err;
	u32 i, n;

	t = lite_tell_new(lmr, call);
	if (IS_ERR_OR_NULL(t))
		return PTR_ERR_OR_ZERO(t);
	/* Read it now: answers lower @left. */
	n = t->left;
	if (!n)
		complete(&t->done);
	for (i = 0; i < n; i++) {
		struct lite_revoke *r = &t->revoke[i];

		r->tell = t;
		if (r->session)
			r->conn = lite_conn_find(lmr->mem->fab, r->session);
		r->job.place.kind = lmr->tellers->uid;
		r->job.part = lmr->tellers;
		INIT_WORK(&r->job.work, lite_revoke_work);
		kref_get(&t->ref);
		lite_crew_queue(crew, &r->job);
	}
	err = lite_wait_done_timeout(&t->done, MAX_SCHEDULE_TIMEOUT) < 0 ? -EINTR : t->err;
	/* If killed, tell no more mappers: a user may have any number of killed changes. */
	for (i = 0; err == -EINTR && i < n; i++) {
		if (lite_crew_cancel(crew, &t->revoke[i].job))
			lite_revoke_put(&t->revoke[i]);
	}
	kref_put(&t->ref, lite_tell_release);
	return err;
}

/* Send a mapper ENDS for all its chunks. Return: 0: it has let go; an errno: fence it. */
static int lite_ends_call(struct lite_memory *mem, struct lite_end *first)
{
	struct {
		struct lite_wire_ends head;
		__le64 chunk[LITE_ENDS_PER_CALL];
	} req = {};
	struct lite_call_desc d = {
		.call = LITE_CALL_LMR_ENDS,
		.req = &req,
		.deadline = jiffies + mem->fab->op_timeout + LITE_REVOKE_GRACE,
	};
	struct lite_end *e = first;
	int err = 0;
	u32 n = 0;

	if (first->session && !first->conn)
		return -EHOSTDOWN;
	do {
		req.chunk[n++] = cpu_to_le64(e->lmr->id);
		e = e == first ? list_first_entry(&first->more, struct lite_end, list) :
				 list_next_entry(e, list);
		if (n < LITE_ENDS_PER_CALL && !list_entry_is_head(e, &first->more, list))
			continue;
		req.head.count = cpu_to_le32(n);
		d.len = struct_size(&req.head, chunk, n);
		n = 0;
		if (first->session)
			err = lite_kcall(first->conn, &d);
		else
			mem->rooms->end_chunks(mem, lite_cluster_id(mem->cl), &req.head);
	} while (!err && !list_entry_is_head(e, &first->more, list));
	return err;
}

/* A mapper has let go of a chunk, or was fenced. */
static void lite_end_note(const struct lite_end *e)
{
	struct lite_mapper *m;

	spin_lock(&e->lmr->lock);
	m = lite_mapper_find(e->lmr, e->session);
	/* The home is the only store of a chunk, so it keeps no mapper as lost. */
	if (m)
		lite_mapper_drop(m);
	spin_unlock(&e->lmr->lock);
}

static void lite_ends_work(struct work_struct *work)
{
	struct lite_end *first = container_of(work, struct lite_end, work), *e;
	struct lite_memory *mem = first->lmr->mem;
	/* Reclaim may be waiting for this, so allocations here must not reclaim. */
	unsigned int noreclaim = memalloc_noreclaim_save();
	unsigned long begun = jiffies;
	int err = lite_ends_call(mem, first);

	lite_stat_inc(mem->stats, LITE_STAT_REVOKES);
	if (err && first->conn) {
		lite_conn_end(first->conn, LITE_END_REVOKE, jiffies_to_msecs(jiffies - begun),
			      -ETIMEDOUT);
		lite_conn_fence(first->conn, -ETIMEDOUT);
	}
	lite_end_note(first);
	list_for_each_entry(e, &first->more, list)
		lite_end_note(e);
	if (first->conn)
		lite_conn_put(first->conn);
	complete(&first->done);
	memalloc_noreclaim_restore(noreclaim);
}

static void lite_end_add(struct lite_end *e, struct list_head *ends)
{
	struct lite_end *first;

	list_for_each_entry(first, ends, list) {
		if (first->session == e->session) {
			list_add_tail(&e->list, &first->more);
			return;
		}
	}
	INIT_LIST_HEAD(&e->more);
	INIT_WORK(&e->work, lite_ends_work);
	init_completion(&e->done);
	list_add_tail(&e->list, ends);
}

/*
 * Let a chunk get no more mappers, and add its mappers to @ends. The caller has a reference to the
 * chunk until lite_ends_tell() has returned. May sleep; allocates nothing, and waits for nothing
 * that does.
 */
void lite_chunk_close(struct lite_lmr *lmr, struct list_head *ends)
{
	struct lite_mapper *m;
	struct lite_end *e;

	spin_lock(&lmr->lock);
	lmr->dying = true;
	list_for_each_entry(m, &lmr->mappers, list) {
		e = m->end;
		m->end = NULL;
		e->lmr = lmr;
		e->session = m->session;
		lite_end_add(e, ends);
	}
	spin_unlock(&lmr->lock);
}

/* If a chunk has no mapper, let it get none. Return: has it none? Spinlocks may be held. */
bool lite_chunk_close_unused(struct lite_lmr *lmr)
{
	bool unused;

	spin_lock(&lmr->lock);
	unused = list_empty(&lmr->mappers);
	lmr->dying |= unused;
	spin_unlock(&lmr->lock);
	return unused;
}

/*
 * Tell mappers that chunks end, all mappers at the same time, each of all its chunks. Wait until
 * they have let go, or were fenced, and empty the list. May sleep, for the time-out of an
 * operation, LITE_REVOKE_GRACE and the fence; not killable. Allocates nothing.
 */
void lite_ends_tell(struct lite_memory *mem, struct list_head *ends)
{
	struct lite_end *e, *tmp, *more, *next;

	list_for_each_entry(e, ends, list) {
		if (e->session)
			e->conn = lite_conn_find(mem->fab, e->session);
		queue_work(mem->ends_wq, &e->work);
	}
	list_for_each_entry_safe(e, tmp, ends, list) {
		wait_for_completion(&e->done);
		list_del(&e->list);
		list_for_each_entry_safe(more, next, &e->more, list)
			kfree(more);
		kfree(e);
	}
}

/*
 * List in @req, to be fenced, lost mappers, which may still reach other stores; with @unclean also
 * mappers that have a session, but may have failed operations in flight. One pass under the lock,
 * as an unclean mapper may become a lost one. Return: are there any?
 */
bool lite_mappers_lost(struct lite_lmr *lmr, struct lite_wire_mem_free *req, bool unclean)
{
	struct lite_mapper *m;
	u32 n = 0;

	spin_lock(&lmr->lock);
	list_for_each_entry(m, &lmr->mappers, list) {
		if (!m->lost && !(unclean && m->unclean))
			continue;
		if (n < LITE_FENCES_MAX)
			req->fence[n] = cpu_to_le32(m->node);
		n++;
	}
	spin_unlock(&lmr->lock);
	req->n_fences = cpu_to_le32(n <= LITE_FENCES_MAX ? n : 0);
	req->fence_all = cpu_to_le32(n > LITE_FENCES_MAX);
	return n;
}

/* Have the other stores fence mappers that are lost or unclean. */
static int lite_recall_fence(struct lite_lmr *lmr)
{
	struct lite_wire_mem_free *req = kzalloc(LITE_PAYLOAD_MAX, GFP_KERNEL | __GFP_NOFAIL);
	bool any = lite_mappers_lost(lmr, req, true);
	const struct lite_place *place = lmr->place;
	struct lite_call_desc d = {
		.call = LITE_CALL_MEM_FREE,
		.req = req,
		.len = struct_size(req, fence, le32_to_cpu(req->n_fences)),
		/* Includes the wait for the one slot of MEM_FREE, which another call may hold. */
		.deadline = jiffies + LITE_RECALL_FENCE_TIMEOUT,
		.killable = true,
	};
	int err = 0;
	u32 i;

	for (i = 1; any && i < place->n_shares && !err; i++) {
		d.life = place->share[i].incarnation;
		err = lite_cluster_call_patiently(lmr->mem->cl, place->share[i].node, &d);
		/* The store has left, or its new incarnation has no such memory. */
		if (err == -EHOSTUNREACH || err == -ESTALE)
			err = 0;
	}
	kfree(req);
	/*
	 * An UNMAP may report failed operations meanwhile, but only those that its mapper had
	 * reported with RECALL, which these fences have ended: a closed LMR cannot be mapped.
	 */
	if (any && !err)
		lite_mappers_drop(lmr, true);
	return err;
}

/*
 * End all operations on a closed LMR until it is mapped anew. May sleep; killable; makes leaf
 * calls. Return: 0: no operation is in flight; -EHOSTDOWN, -ETIMEDOUT and others: unknown, as a
 * store cannot be asked; -EINTR; -EIO: a fence by this node or a store has failed.
 */
int lite_mappers_recall(struct lite_lmr *lmr)
{
	int err = lite_mappers_tell(lmr, LITE_CALL_LMR_RECALL);

	if (!err && lmr->place->n_shares > 1)
		err = lite_recall_fence(lmr);
	return err;
}
