// SPDX-License-Identifier: GPL-2.0
/*
 * The home of an LMR: making it, and who has it mapped. Its end is in free.c.
 *
 * An LMR is made in this order: its name is reserved, memory is taken here and
 * at other stores, it is published in mem->lmrs, its name is confirmed. Nobody
 * finds it by name before that; whoever wants the name waits.
 *
 * Mappers are counted by session and MAP: a node that maps an LMR twice, and
 * gives both back with one UNMAP that overtakes a third MAP, still has one.
 */
#include <linux/slab.h>

#include "../core/name.h"
#include "../trace.h"
#include "memory.h"

static void lite_lmr_release(struct kref *ref)
{
	struct lite_lmr *lmr = container_of(ref, struct lite_lmr, ref);

	kvfree(lmr->extents);
	kfree_rcu(lmr, rcu);
}

/**
 * lite_lmr_put - give back a reference to the metadata
 * @lmr: LMR
 *
 * Context: process.
 */
void lite_lmr_put(struct lite_lmr *lmr)
{
	kref_put(&lmr->ref, lite_lmr_release);
}

/**
 * lite_lmr_get - an LMR that is at home here
 * @mem: node's
 * @id: its id
 *
 * Context: any.
 * Return: the LMR with a reference, or NULL.
 */
struct lite_lmr *lite_lmr_get(struct lite_memory *mem, u64 id)
{
	struct lite_lmr *lmr;

	rcu_read_lock();
	lmr = xa_load(&mem->lmrs, id);
	if (lmr && !kref_get_unless_zero(&lmr->ref))
		lmr = NULL;
	rcu_read_unlock();
	return lmr;
}

/* ---- mappers ------------------------------------------------------------- */

/* Count a MAP. Whoever freed the LMR before has not seen this mapper. */
static int lite_mapper_add(struct lite_lmr *lmr, struct lite_conn *conn)
{
	u64 session = conn ? conn->session : 0;
	struct lite_mapper *m, *found = NULL;
	int err = 0;

	mutex_lock(&lmr->lock);
	if (lmr->dying) {
		err = -ENOENT;
		goto out;
	}
	list_for_each_entry(m, &lmr->mappers, list) {
		if (!m->lost && m->session == session)
			found = m;
	}
	if (!found) {
		found = kzalloc(sizeof(*found), GFP_KERNEL);
		if (!found) {
			err = -ENOMEM;
			goto out;
		}
		found->session = session;
		found->node = conn ? conn->from.node :
				     lite_cluster_id(lmr->mem->cl);
		found->incarnation = conn ? conn->from.incarnation :
				     lmr->mem->fab->self.incarnation;
		list_add(&found->list, &lmr->mappers);
	}
	found->count++;
out:
	mutex_unlock(&lmr->lock);
	return err;
}

static bool lite_mapper_known(struct lite_lmr *lmr, struct lite_conn *conn)
{
	u64 session = conn ? conn->session : 0;
	struct lite_mapper *m;
	bool known = false;

	mutex_lock(&lmr->lock);
	list_for_each_entry(m, &lmr->mappers, list) {
		if (!m->lost && m->session == session)
			known = !lmr->dying;
	}
	mutex_unlock(&lmr->lock);
	return known;
}

/*
 * A mapper that is gone but may still reach the other stores stays, lost, until
 * those have fenced it; one entry for a node is enough. lmr->lock held.
 */
static void lite_mapper_lose(struct lite_lmr *lmr, struct lite_mapper *m)
{
	struct lite_mapper *other;
	bool keep = lmr->n_shares > 1;

	lockdep_assert_held(&lmr->lock);
	list_for_each_entry(other, &lmr->mappers, list) {
		if (other != m && other->lost && other->node == m->node)
			keep = false;
	}
	if (keep) {
		m->lost = true;
		m->session = 0;
	} else {
		list_del(&m->list);
		kfree(m);
	}
}

/**
 * lite_home_unmap - a mapper gives back MAPs
 * @lmr: LMR
 * @session: of the mapper; 0: this node
 * @count: how many
 * @unclean: it may still have an operation under way at another store
 *
 * Context: may sleep.
 * Return: true when the LMR should be freed now: it was anonymous, and its.
 */
bool lite_home_unmap(struct lite_lmr *lmr, u64 session, u32 count, bool unclean)
{
	struct lite_mapper *m, *tmp;
	bool orphan = false;

	mutex_lock(&lmr->lock);
	list_for_each_entry_safe(m, tmp, &lmr->mappers, list) {
		if (m->lost || m->session != session)
			continue;
		m->count -= min(count, m->count);
		m->unclean |= unclean;
		if (m->count)
			continue;
		orphan = !lmr->name[0] && lmr->creator == session;
		if (m->unclean) {
			lite_mapper_lose(lmr, m);
		} else {
			list_del(&m->list);
			kfree(m);
		}
	}
	mutex_unlock(&lmr->lock);
	return orphan;
}

/**
 * lite_home_session_gone - a peer is fenced from us: what it had mapped
 * @mem: node's
 * @session: that ended
 *
 * Context: may sleep.
 */
void lite_home_session_gone(struct lite_memory *mem, u64 session)
{
	struct lite_mapper *m, *tmp;
	struct lite_lmr *lmr;
	unsigned long id;

	xa_for_each(&mem->lmrs, id, lmr) {
		lmr = lite_lmr_get(mem, id);
		if (!lmr)
			continue;
		mutex_lock(&lmr->lock);
		list_for_each_entry_safe(m, tmp, &lmr->mappers, list) {
			if (m->lost || m->session != session)
				continue;
			lite_mapper_lose(lmr, m);
		}
		mutex_unlock(&lmr->lock);
		if (!lmr->name[0] && lmr->creator == session)
			lite_home_reap(lmr);
		lite_lmr_put(lmr);
		cond_resched();
	}
}

/* ---- making -------------------------------------------------------------- */

static int lite_share_alloc_local(struct lite_lmr *lmr, struct lite_share *s)
{
	struct lite_memory *mem = lmr->mem;

	s->local = lite_store_alloc(mem, s->node, s->incarnation, 0, s->length,
				    lmr->uid);
	if (IS_ERR(s->local)) {
		int err = PTR_ERR(s->local);

		s->local = NULL;
		return err;
	}
	s->alloc = s->local->id;
	return 0;
}

static void lite_share_alloc_late(void *ctx, struct lite_conn *conn,
				  const void *reply)
{
	const struct lite_wire_mem_alloc_reply *r = reply;
	struct lite_wire_mem_free req = { .id = r->id };
	struct lite_call_desc d = {
		.call = LITE_CALL_MEM_FREE,
		.req = &req,
		.len = sizeof(req),
	};

	lite_rpc_call(conn, &d);
}

static int lite_share_alloc_remote(struct lite_lmr *lmr, struct lite_share *s,
				   u32 *n_extents)
{
	struct lite_wire_mem_alloc req = {
		.lmr = cpu_to_le64(lmr->id),
		.length = cpu_to_le64(s->length),
		.uid = cpu_to_le32(lmr->uid),
	};
	struct lite_wire_mem_alloc_reply reply;
	struct lite_call_desc d = {
		.call = LITE_CALL_MEM_ALLOC,
		.req = &req,
		.len = sizeof(req),
		.reply = &reply,
		.reply_max = sizeof(reply),
		.timeout = 60 * HZ, /* it may have to zero a lot of memory */
		.killable = true,
		.late = lite_share_alloc_late,
	};
	int err = lite_cluster_call(lmr->mem->cl, s->node, &d);

	if (err)
		return err;
	s->alloc = le64_to_cpu(reply.id);
	*n_extents = le32_to_cpu(reply.n_extents);
	if (*n_extents > s->length / PAGE_SIZE + 1)
		return -EPROTO;
	return 0;
}

/* Room for @more extents behind those that there are. */
static int lite_extents_grow(struct lite_lmr *lmr, u32 more)
{
	struct lite_extent *table;

	table = kvmalloc_array((size_t)lmr->n_extents + more, sizeof(*table),
			       GFP_KERNEL_ACCOUNT | __GFP_NOWARN);
	if (!table)
		return -ENOMEM;
	if (lmr->n_extents)
		memcpy(table, lmr->extents, lmr->n_extents * sizeof(*table));
	kvfree(lmr->extents);
	lmr->extents = table;
	return 0;
}

/* The last extent of a share may be longer than the share: whole pages. */
static void lite_share_append(struct lite_lmr *lmr, u32 share, u64 *left,
			      u64 addr, u64 length)
{
	length = min(length, *left);
	if (!length)
		return;
	lite_extent_append(lmr->extents, &lmr->n_extents, addr, length, share);
	*left -= length;
}

static int lite_share_extents_remote(struct lite_lmr *lmr, u32 share,
				     u32 n_extents)
{
	struct lite_share *s = &lmr->share[share];
	struct lite_wire_extents req = { .id = cpu_to_le64(s->alloc) };
	struct lite_wire_extents_reply *r;
	struct lite_call_desc d = {
		.call = LITE_CALL_MEM_EXTENTS,
		.req = &req,
		.len = sizeof(req),
		.reply_max = LITE_PAYLOAD_MAX,
		.killable = true,
	};
	u64 left = s->length;
	u32 first = 0;
	int err;
	u32 i;

	r = kmalloc(LITE_PAYLOAD_MAX, GFP_KERNEL);
	if (!r)
		return -ENOMEM;
	d.reply = r;
	err = lite_extents_grow(lmr, n_extents);
	while (!err && first < n_extents) {
		req.first = cpu_to_le32(first);
		err = lite_cluster_call(lmr->mem->cl, s->node, &d);
		if (!err && le32_to_cpu(r->count) > n_extents - first)
			err = -EPROTO;
		for (i = 0; !err && i < le32_to_cpu(r->count); i++)
			lite_share_append(lmr, share, &left,
					  le64_to_cpu(r->extent[i].addr),
					  le64_to_cpu(r->extent[i].length_share)
						  >> 8);
		first += err ? 0 : le32_to_cpu(r->count);
	}
	kfree(r);
	if (!err && left)
		err = -EPROTO;
	return err;
}

static int lite_share_make(struct lite_lmr *lmr, u32 share)
{
	struct lite_share *s = &lmr->share[share];
	u64 left = s->length;
	u32 i, n = 0;
	int err;

	if (share) {
		return lite_share_alloc_remote(lmr, s, &n) ?:
		       lite_share_extents_remote(lmr, share, n);
	}
	err = lite_share_alloc_local(lmr, s);
	if (!err)
		err = lite_extents_grow(lmr, s->local->n_extents);
	for (i = 0; !err && i < s->local->n_extents; i++)
		lite_share_append(lmr, share, &left, s->local->extents[i].addr,
				  s->local->extents[i].length);
	return err;
}

/* Which nodes, in which lives, and how much of it each. */
static int lite_lmr_spread(struct lite_lmr *lmr,
			   const struct lite_wire_create *c)
{
	struct lite_memory *mem = lmr->mem;
	u32 n = le32_to_cpu(c->n_nodes);
	u32 i, j;

	for (i = 0; i < n; i++) {
		struct lite_share *s = &lmr->share[i];
		struct lite_conn *conn;
		struct lite_peer *peer;

		s->node = le32_to_cpu(c->nodes[i]);
		for (j = 0; j < i; j++) {
			if (lmr->share[j].node == s->node)
				return -EINVAL;
		}
		s->length = lite_spread_share(lmr->length, n, i);
		if (!s->length)
			break;
		if (!i) {
			if (s->node != lite_cluster_id(mem->cl))
				return -EINVAL;
			s->incarnation = mem->fab->self.incarnation;
			continue;
		}
		peer = lite_peer_find(mem->cl, s->node);
		if (!peer)
			return -EHOSTUNREACH;
		conn = lite_peer_conn_get(peer);
		lite_peer_put(peer);
		if (!conn)
			return -EHOSTDOWN;
		s->incarnation = conn->from.incarnation;
		lite_conn_put(conn);
	}
	lmr->n_shares = i;
	/* The others hold nothing, but shall exist all the same. */
	for (; i < n; i++) {
		struct lite_peer *peer;

		peer = lite_peer_find(mem->cl, le32_to_cpu(c->nodes[i]));
		if (!peer)
			return -EHOSTUNREACH;
		lite_peer_put(peer);
	}
	return 0;
}

static struct lite_lmr *lite_lmr_new(struct lite_memory *mem,
				     const struct lite_wire_create *c,
				     struct lite_conn *conn)
{
	struct lite_lmr *lmr = kzalloc(sizeof(*lmr), GFP_KERNEL);

	if (!lmr)
		return NULL;
	lmr->mem = mem;
	kref_init(&lmr->ref);
	mutex_init(&lmr->lock);
	INIT_LIST_HEAD(&lmr->mappers);
	init_completion(&lmr->freed);
	INIT_WORK(&lmr->reap_work, lite_reap_work);
	lmr->id = atomic64_inc_return(&mem->ids);
	lmr->length = le64_to_cpu(c->length);
	lmr->uid = le32_to_cpu(c->cred.uid);
	lmr->gid = le32_to_cpu(c->cred.gid);
	lmr->mode = le32_to_cpu(c->mode);
	lmr->creator = conn ? conn->session : 0;
	memcpy(lmr->name, c->name, sizeof(lmr->name));
	return lmr;
}

static int lite_lmr_make(struct lite_lmr *lmr, const struct lite_wire_create *c)
{
	struct lite_memory *mem = lmr->mem;
	int err;
	u32 i;

	err = lite_lmr_spread(lmr, c);
	if (err)
		return err;
	if (lmr->name[0]) {
		err = lite_name_reserve(mem, lmr->name, lmr->id);
		if (err)
			return err;
	}
	for (i = 0; i < lmr->n_shares; i++) {
		err = lite_share_make(lmr, i);
		if (err)
			goto err_shares;
	}
	err = xa_err(xa_store(&mem->lmrs, lmr->id, lmr, GFP_KERNEL));
	if (err)
		goto err_shares;
	lite_stat_inc(mem->stats, LITE_STAT_LMRS);
	trace_lite_lmr_create(lite_cluster_id(mem->cl), lmr->id, lmr->length);
	if (lmr->name[0])
		lite_name_confirm(mem, lmr->name, lmr->id);
	return 0;

err_shares:
	if (lmr->name[0])
		lite_name_drop(mem, lmr->name, lmr->id);
	lite_home_release_shares(lmr);
	return err;
}

static void lite_map_reply_fill(struct lite_lmr *lmr, u32 rights,
				struct lite_wire_map_reply *r)
{
	u32 i;

	r->id = cpu_to_le64(lmr->id);
	r->length = cpu_to_le64(lmr->length);
	r->n_extents = cpu_to_le32(lmr->n_extents);
	r->n_shares = cpu_to_le32(lmr->n_shares);
	r->rights = cpu_to_le32(rights);
	r->anonymous = cpu_to_le32(!lmr->name[0]);
	for (i = 0; i < lmr->n_shares; i++) {
		r->share[i].node = cpu_to_le32(lmr->share[i].node);
		r->share[i].incarnation =
			cpu_to_le64(lmr->share[i].incarnation);
	}
}

/* A session that ended may have been swept before the mapper was there. */
static int lite_mapper_recheck(struct lite_lmr *lmr, struct lite_conn *conn)
{
	if (!conn || !lite_conn_is_dead(conn))
		return 0;
	/* Dead is not fenced: what it has mapped it may still reach. */
	lite_conn_fence(conn, -EHOSTDOWN);
	lite_home_session_gone(lmr->mem, conn->session);
	return -EHOSTDOWN;
}

static int lite_serve_create(void *priv, struct lite_conn *conn,
			     const void *req, u32 len, void *reply,
			     u32 *reply_len)
{
	struct lite_memory *mem = priv;
	const struct lite_wire_create *c = req;
	struct lite_cred cred;
	struct lite_lmr *lmr;
	u32 rights;
	int err;

	err = lite_cluster_ready(mem->cl);
	if (err)
		return err;
	if (conn && !conn->from.node)
		return -EBADMSG;
	lmr = lite_lmr_new(mem, c, conn);
	if (!lmr)
		return -ENOMEM;
	kref_get(&lmr->ref); /* ours, besides the table's */
	err = lite_lmr_make(lmr, c);
	if (err) {
		lite_lmr_put(lmr);
		lite_lmr_put(lmr);
		return err;
	}
	lite_wire_cred_get(&cred, &c->cred);
	rights = lite_rights_of(&cred, lmr->uid, lmr->gid, lmr->mode);
	/* A leave that began meanwhile may not have seen it. */
	err = lite_cluster_ready(mem->cl);
	if (!err && c->map)
		err = lite_mapper_add(lmr, conn);
	if (err) {
		lite_home_free(lmr);
	} else {
		lite_map_reply_fill(lmr, rights, reply);
		*reply_len = sizeof(struct lite_wire_map_reply);
		err = lite_mapper_recheck(lmr, conn);
	}
	lite_lmr_put(lmr);
	return err;
}

/* ---- mapping and looking ------------------------------------------------- */

static int lite_serve_map(void *priv, struct lite_conn *conn, const void *req,
			  u32 len, void *reply, u32 *reply_len)
{
	struct lite_memory *mem = priv;
	const struct lite_wire_map *m = req;
	u32 wanted = le32_to_cpu(m->rights);
	struct lite_cred cred;
	struct lite_lmr *lmr;
	u32 rights;
	int err = 0;

	if (conn && !conn->from.node)
		return -EBADMSG;
	lmr = lite_lmr_get(mem, le64_to_cpu(m->id));
	if (!lmr)
		return -ENOENT;
	lite_wire_cred_get(&cred, &m->cred);
	rights = lite_rights_of(&cred, lmr->uid, lmr->gid, lmr->mode);
	/* No right wanted: a mapper renews what it was granted before. */
	if (wanted & ~rights)
		err = -EACCES;
	if (!err)
		err = lite_mapper_add(lmr, conn);
	if (!err) {
		lite_map_reply_fill(lmr, wanted, reply);
		*reply_len = sizeof(struct lite_wire_map_reply);
		err = lite_mapper_recheck(lmr, conn);
	}
	lite_lmr_put(lmr);
	return err;
}

static int lite_serve_extents(void *priv, struct lite_conn *conn,
			      const void *req, u32 len, void *reply,
			      u32 *reply_len)
{
	struct lite_memory *mem = priv;
	const struct lite_wire_extents *e = req;
	struct lite_wire_extents_reply *r = reply;
	u32 first = le32_to_cpu(e->first);
	struct lite_lmr *lmr;
	u32 n, count = 0;
	int err = 0;

	lmr = lite_lmr_get(mem, le64_to_cpu(e->id));
	if (!lmr)
		return -ENOENT;
	/* This confirms that nobody has waited for this mapper in vain. */
	if (first >= lmr->n_extents || !lite_mapper_known(lmr, conn))
		err = -ENOENT;
	else
		count = min_t(u32, lmr->n_extents - first,
			      LITE_EXTENTS_PER_REPLY);
	for (n = 0; n < count; n++) {
		struct lite_extent *x = &lmr->extents[first + n];

		r->extent[n].addr = cpu_to_le64(x->addr);
		r->extent[n].length_share =
			lite_wire_length_share(x->length, x->share);
	}
	r->count = cpu_to_le32(n);
	*reply_len = struct_size(r, extent, n);
	lite_lmr_put(lmr);
	return err;
}

static void lite_lmr_fill(struct lite_lmr *lmr, struct lite_wire_lmr *l)
{
	struct lite_mapper *m;
	u32 n = 0;

	mutex_lock(&lmr->lock);
	list_for_each_entry(m, &lmr->mappers, list)
		n += !m->lost;
	mutex_unlock(&lmr->lock);
	l->id = cpu_to_le64(lmr->id);
	l->length = cpu_to_le64(lmr->length);
	l->uid = cpu_to_le32(lmr->uid);
	l->gid = cpu_to_le32(lmr->gid);
	l->mode = cpu_to_le32(lmr->mode);
	l->n_extents = cpu_to_le32(lmr->n_extents);
	l->n_shares = cpu_to_le32(lmr->n_shares);
	l->n_mappers = cpu_to_le32(n);
	memcpy(l->name, lmr->name, sizeof(l->name));
}

static int lite_serve_stat(void *priv, struct lite_conn *conn, const void *req,
			   u32 len, void *reply, u32 *reply_len)
{
	struct lite_memory *mem = priv;
	const struct lite_wire_id *i = req;
	struct lite_wire_stat_reply *r = reply;
	struct lite_lmr *lmr;
	u32 n;

	lmr = lite_lmr_get(mem, le64_to_cpu(i->id));
	if (!lmr)
		return -ENOENT;
	lite_lmr_fill(lmr, &r->lmr);
	for (n = 0; n < lmr->n_shares; n++)
		r->nodes[n] = cpu_to_le32(lmr->share[n].node);
	lite_lmr_put(lmr);
	*reply_len = sizeof(*r);
	return 0;
}

static int lite_serve_list(void *priv, struct lite_conn *conn, const void *req,
			   u32 len, void *reply, u32 *reply_len)
{
	struct lite_memory *mem = priv;
	const struct lite_wire_list *l = req;
	struct lite_wire_list_reply *r = reply;
	u32 max = min_t(u32, le32_to_cpu(l->max), LITE_LMRS_PER_REPLY);
	struct lite_lmr *lmr;
	unsigned long id;
	u32 n = 0;

	xa_for_each_start(&mem->lmrs, id, lmr, le64_to_cpu(l->after) + 1) {
		if (n == max) {
			r->more = cpu_to_le32(1);
			break;
		}
		lmr = lite_lmr_get(mem, id);
		if (!lmr)
			continue;
		lite_lmr_fill(lmr, &r->lmr[n++]);
		lite_lmr_put(lmr);
	}
	r->count = cpu_to_le32(n);
	*reply_len = struct_size(r, lmr, n);
	return 0;
}

void lite_home_handlers(struct lite_memory *mem)
{
	struct lite_rpc *rpc = mem->cl->rpc;

	lite_rpc_handle(rpc, LITE_CALL_LMR_CREATE, lite_serve_create, mem);
	lite_rpc_handle(rpc, LITE_CALL_LMR_MAP, lite_serve_map, mem);
	lite_rpc_handle(rpc, LITE_CALL_LMR_EXTENTS, lite_serve_extents, mem);
	lite_rpc_handle(rpc, LITE_CALL_LMR_STAT, lite_serve_stat, mem);
	lite_rpc_handle(rpc, LITE_CALL_LMR_LIST, lite_serve_list, mem);
}
