// SPDX-License-Identifier: GPL-2.0
/*
 * The end of an LMR at its home.
 *
 *   1. mark it dying: no new mappers, name gone
 *   2. REVOKE at every mapper, all at once; each answers when it has no
 *      operation in flight and will start none
 *   3. whoever does not answer is fenced from us: its session is ended
 *   4. shares go back to their stores, which first fence those of 3 (and those
 *      whose session ended earlier, with the LMR mapped) from themselves
 *
 * A store that cannot be asked keeps the memory (a "zombie") until it can.
 *
 * Who comes first does it; everybody else who wants it freed waits for that.
 */
#include <linux/slab.h>

#include "../trace.h"
#include "memory.h"

/*
 * A mapper that has not let go so long after its operations must have ended is
 * fenced. (One that is silent altogether loses its session earlier.)
 */
#define LITE_REVOKE_GRACE (5 * HZ)

struct lite_zombie {
	struct list_head list;
	u32 node;
	u64 incarnation;
	u64 alloc;
};

/* One REVOKE of many that are under way. */
struct lite_revoke {
	struct work_struct work;
	struct lite_lmr *lmr;
	struct lite_mapper *mapper;
	struct lite_conn *conn;
	int err;
};

/* ---- memory at other stores ---------------------------------------------- */

static int lite_store_call_free(struct lite_memory *mem, u32 node,
				struct lite_wire_mem_free *req)
{
	struct lite_call_desc d = {
		.call = LITE_CALL_MEM_FREE,
		.req = req,
		.len = struct_size(req, fence, le32_to_cpu(req->n_fences)),
	};

	return lite_cluster_call(mem->cl, node, &d);
}

static void lite_zombie_add(struct lite_memory *mem,
			    const struct lite_share *s)
{
	struct lite_zombie *z = kzalloc(sizeof(*z), GFP_KERNEL | __GFP_NOFAIL);

	z->node = s->node;
	z->incarnation = s->incarnation;
	z->alloc = s->alloc;
	spin_lock(&mem->zombies_lock);
	list_add(&z->list, &mem->zombies);
	spin_unlock(&mem->zombies_lock);
}

/**
 * lite_zombies_retry - ask stores that are up again to free our memory
 * @mem: node's
 *
 * Context: may sleep; calls leaf calls.
 */
void lite_zombies_retry(struct lite_memory *mem)
{
	struct lite_wire_mem_free req = { .fence_all = cpu_to_le32(1) };
	struct lite_zombie *z, *tmp;
	LIST_HEAD(todo);

	spin_lock(&mem->zombies_lock);
	list_splice_init(&mem->zombies, &todo);
	spin_unlock(&mem->zombies_lock);
	list_for_each_entry_safe(z, tmp, &todo, list) {
		req.id = cpu_to_le64(z->alloc);
		/* A store that left, or lives anew, has freed it itself. */
		switch (lite_store_call_free(mem, z->node, &req)) {
		case 0:
		case -EHOSTUNREACH:
			list_del(&z->list);
			kfree(z);
			break;
		}
	}
	spin_lock(&mem->zombies_lock);
	list_splice(&todo, &mem->zombies);
	spin_unlock(&mem->zombies_lock);
}

/**
 * lite_zombies_lost - a store's life is over, and our memory there with it
 * @mem: node's
 * @node: its id; 0: all of them
 * @incarnation: which life
 *
 * Context: may sleep.
 */
void lite_zombies_lost(struct lite_memory *mem, u32 node, u64 incarnation)
{
	struct lite_zombie *z, *tmp;

	spin_lock(&mem->zombies_lock);
	list_for_each_entry_safe(z, tmp, &mem->zombies, list) {
		if (node && (z->node != node || z->incarnation != incarnation))
			continue;
		list_del(&z->list);
		kfree(z);
	}
	spin_unlock(&mem->zombies_lock);
}

/**
 * lite_home_release_shares - give an LMR's memory back to its stores
 * @lmr: nobody can reach its memory through this node any more
 *
 * Context: may sleep; calls leaf calls.
 */
void lite_home_release_shares(struct lite_lmr *lmr)
{
	struct lite_memory *mem = lmr->mem;
	struct lite_wire_mem_free *req;
	struct lite_mapper *m;
	u32 i, n = 0;

	/* Locally first: whom we have not heard of is fenced by now. */
	if (lmr->share[0].local) {
		struct lite_alloc *alloc;

		alloc = lite_store_take(mem, lmr->share[0].alloc,
					lmr->share[0].node);
		if (alloc)
			lite_store_free(mem, alloc);
		lmr->share[0].local = NULL;
	}
	if (lmr->n_shares < 2)
		return;

	req = kzalloc(LITE_PAYLOAD_MAX, GFP_KERNEL | __GFP_NOFAIL);
	mutex_lock(&lmr->lock);
	list_for_each_entry(m, &lmr->mappers, list) {
		if (!m->lost)
			continue;
		if (n == LITE_FENCES_MAX) {
			req->fence_all = cpu_to_le32(1);
			break;
		}
		req->fence[n].node = cpu_to_le32(m->node);
		req->fence[n++].incarnation = cpu_to_le64(m->incarnation);
	}
	mutex_unlock(&lmr->lock);
	req->n_fences = cpu_to_le32(req->fence_all ? 0 : n);
	for (i = 1; i < lmr->n_shares; i++) {
		struct lite_share *s = &lmr->share[i];
		int err;

		if (!s->alloc)
			continue;
		req->id = cpu_to_le64(s->alloc);
		err = lite_store_call_free(mem, s->node, req);
		if (err && err != -EHOSTUNREACH)
			lite_zombie_add(mem, s);
		s->alloc = 0;
	}
	kfree(req);
}

/* ---- revoking ------------------------------------------------------------ */

static void lite_revoke_work(struct work_struct *work)
{
	struct lite_revoke *r = container_of(work, struct lite_revoke, work);
	struct lite_wire_id req = { .id = cpu_to_le64(r->lmr->id) };
	struct lite_call_desc d = {
		.call = LITE_CALL_LMR_REVOKE,
		.req = &req,
		.len = sizeof(req),
		.timeout = r->lmr->mem->fab->op_timeout + LITE_REVOKE_GRACE,
	};
	struct lite_memory *mem = r->lmr->mem;

	lite_stat_inc(mem->stats, LITE_STAT_REVOKES);
	/* Ourselves without a call: nothing that could fail. */
	if (!r->mapper->session)
		r->err = lite_mapping_revoke(mem, lite_cluster_id(mem->cl),
					     r->lmr->id);
	else if (r->conn)
		r->err = lite_rpc_call(r->conn, &d);
	else
		r->err = -EHOSTDOWN;
	/*
	 * EUCLEAN: it has let go, but what failed before may be under way to
	 * other stores. Otherwise: not heard of in time; fence it, or wait
	 * until its dying session is.
	 */
	if (r->err && r->err != -EUCLEAN && r->conn)
		lite_conn_fence(r->conn, -ETIMEDOUT);
}

/* The session of a mapper. It may be dying: then it is not its peer's any more. */
static struct lite_conn *lite_session_find(struct lite_fabric *fab, u64 session)
{
	struct lite_conn *conn, *found = NULL;

	spin_lock(&fab->conns_lock);
	list_for_each_entry(conn, &fab->conns, list) {
		if (conn->session == session &&
		    kref_get_unless_zero(&conn->ref)) {
			found = conn;
			break;
		}
	}
	spin_unlock(&fab->conns_lock);
	return found;
}

static void lite_revoke_all(struct lite_lmr *lmr)
{
	struct lite_memory *mem = lmr->mem;
	struct lite_revoke *revoke;
	struct lite_mapper *m;
	u32 n = 0, i = 0;

	/* Dying: nobody is added; those that unmap now are found not to. */
	mutex_lock(&lmr->lock);
	list_for_each_entry(m, &lmr->mappers, list)
		n += !m->lost;
	revoke = n ? kvcalloc(n, sizeof(*revoke), GFP_KERNEL | __GFP_NOFAIL) :
		     NULL;
	list_for_each_entry(m, &lmr->mappers, list) {
		struct lite_revoke *r;

		if (m->lost)
			continue;
		r = &revoke[i++];
		/* A copy: the mapper may unmap, and be gone. */
		r->mapper = kmemdup(m, sizeof(*m), GFP_KERNEL | __GFP_NOFAIL);
		r->lmr = lmr;
		if (m->session)
			r->conn = lite_session_find(mem->fab, m->session);
		INIT_WORK(&r->work, lite_revoke_work);
	}
	mutex_unlock(&lmr->lock);

	for (i = 0; i < n; i++)
		queue_work(mem->revoke_wq, &revoke[i].work);
	for (i = 0; i < n; i++) {
		flush_work(&revoke[i].work);
		if (!revoke[i].err || revoke[i].err == -EUCLEAN)
			lite_home_unmap(lmr, revoke[i].mapper->session, U32_MAX,
					revoke[i].err);
		if (revoke[i].conn)
			lite_conn_put(revoke[i].conn);
		kfree(revoke[i].mapper);
	}
	kvfree(revoke);

	/* Who is still there did not answer, and is fenced from us. */
	mutex_lock(&lmr->lock);
	list_for_each_entry(m, &lmr->mappers, list)
		m->lost = true;
	mutex_unlock(&lmr->lock);
}

/**
 * lite_home_free - free an LMR
 * @lmr: caller has a reference
 *
 * Context: may sleep; calls leaf calls.
 * Return: 0 when it is free; -ENOENT when somebody else has freed it.
 */
int lite_home_free(struct lite_lmr *lmr)
{
	struct lite_memory *mem = lmr->mem;
	struct lite_mapper *m, *tmp;
	bool first;

	mutex_lock(&lmr->lock);
	first = !lmr->dying;
	lmr->dying = true;
	mutex_unlock(&lmr->lock);
	if (!first) {
		wait_for_completion(&lmr->freed);
		return -ENOENT;
	}
	trace_lite_lmr_dying(lite_cluster_id(mem->cl), lmr->id, lmr->length);
	if (lmr->name[0])
		lite_name_drop(mem, lmr->name, lmr->id);
	lite_revoke_all(lmr);
	lite_home_release_shares(lmr);
	mutex_lock(&lmr->lock);
	list_for_each_entry_safe(m, tmp, &lmr->mappers, list) {
		list_del(&m->list);
		kfree(m);
	}
	mutex_unlock(&lmr->lock);
	xa_erase(&mem->lmrs, lmr->id);
	lite_stat_dec(mem->stats, LITE_STAT_LMRS);
	trace_lite_lmr_free(lite_cluster_id(mem->cl), lmr->id, lmr->length);
	complete_all(&lmr->freed);
	lite_lmr_put(lmr);
	return 0;
}

void lite_reap_work(struct work_struct *work)
{
	struct lite_lmr *lmr = container_of(work, struct lite_lmr, reap_work);

	lite_home_free(lmr);
	lite_lmr_put(lmr);
}

/**
 * lite_home_reap - free an LMR when nobody waits for it
 * @lmr: caller has a reference
 *
 * Context: any process.
 */
void lite_home_reap(struct lite_lmr *lmr)
{
	kref_get(&lmr->ref);
	if (!queue_work(lmr->mem->wq, &lmr->reap_work))
		lite_lmr_put(lmr);
}

/**
 * lite_home_free_all - free all LMRs that are at home here
 * @mem: node's; makes no new ones
 *
 * Context: may sleep; calls leaf calls.
 */
void lite_home_free_all(struct lite_memory *mem)
{
	struct lite_lmr *lmr;
	unsigned long id;

	/* Queue all, so that slow mappers are waited for together. */
	xa_for_each(&mem->lmrs, id, lmr) {
		lmr = lite_lmr_get(mem, id);
		if (!lmr)
			continue;
		lite_home_reap(lmr);
		lite_lmr_put(lmr);
	}
	xa_for_each(&mem->lmrs, id, lmr) {
		lmr = lite_lmr_get(mem, id);
		if (!lmr)
			continue;
		lite_home_free(lmr);
		lite_lmr_put(lmr);
	}
}

/* ---- for others ---------------------------------------------------------- */

static int lite_serve_free(void *priv, struct lite_conn *conn, const void *req,
			   u32 len, void *reply, u32 *reply_len)
{
	struct lite_memory *mem = priv;
	const struct lite_wire_free *f = req;
	struct lite_cred cred;
	struct lite_lmr *lmr;
	int err;

	lmr = lite_lmr_get(mem, le64_to_cpu(f->id));
	if (!lmr)
		return -ENOENT;
	lite_wire_cred_get(&cred, &f->cred);
	if (lite_rights_of(&cred, lmr->uid, lmr->gid, lmr->mode) &
	    LITE_RIGHT_MASTER)
		err = lite_home_free(lmr);
	else
		err = -EPERM;
	lite_lmr_put(lmr);
	return err;
}

/**
 * lite_home_unmap_id - a mapper gives back MAPs of an LMR
 * @mem: node's
 * @id: the LMR
 * @session: of the mapper; 0: this node
 * @count: how many
 * @unclean: it may still have an operation under way at another store
 *
 * Context: may sleep; calls leaf calls.
 * Return: 0.
 */
int lite_home_unmap_id(struct lite_memory *mem, u64 id, u64 session, u32 count,
		       bool unclean)
{
	struct lite_lmr *lmr = lite_lmr_get(mem, id);

	if (!lmr)
		return 0; /* freed, and so unmapped */
	if (lite_home_unmap(lmr, session, count, unclean))
		lite_home_free(lmr);
	lite_lmr_put(lmr);
	return 0;
}

static int lite_serve_unmap(void *priv, struct lite_conn *conn, const void *req,
			    u32 len, void *reply, u32 *reply_len)
{
	const struct lite_wire_unmap *u = req;

	if (!conn)
		return -EBADMSG;
	return lite_home_unmap_id(priv, le64_to_cpu(u->id), conn->session,
				  le32_to_cpu(u->count), u->unclean);
}

void lite_free_handlers(struct lite_memory *mem)
{
	struct lite_rpc *rpc = mem->cl->rpc;

	lite_rpc_handle(rpc, LITE_CALL_LMR_FREE, lite_serve_free, mem);
	lite_rpc_handle(rpc, LITE_CALL_LMR_UNMAP, lite_serve_unmap, mem);
}
