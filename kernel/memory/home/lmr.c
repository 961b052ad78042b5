// SPDX-License-Identifier: GPL-2.0
/*
 * The home of an LMR: making, mapping and describing it. It ends in free.c and
 * changes in change.c, resize.c and move.c.
 *
 * An LMR is made in this order: reserve its name, take memory here and at other
 * stores, publish it in mem->lmrs, confirm its name. Before that, no look-up
 * finds the name, and other claims for it wait.
 */
#include <linux/slab.h>

#include "core/name.h"
#include "memory/memory.h"
#include "memory/store/pinned.h"
#include "memory/store/store.h"
#include "home.h"
#include "trace.h"

/* Fixed metadata of an LMR. */
#define LITE_LMR_COST \
	(kmalloc_size_roundup(sizeof(struct lite_lmr)) + LITE_INDEX_COST)

static void lite_lmr_release(struct kref *ref)
{
	struct lite_lmr *lmr = container_of(ref, struct lite_lmr, ref);

	lite_limit_give(&lmr->mem->limit, lmr->charged_to,
			LITE_LMR_COST +
				lmr->grants_room * sizeof(*lmr->acl.grants));
	lite_lmr_name_free(lmr, lmr->name);
	lite_place_free(lmr->place);
	kfree(lmr->acl.grants);
	kfree_rcu(lmr, rcu);
}

/* Drop a reference. May sleep. */
void lite_lmr_put(struct lite_lmr *lmr)
{
	kref_put(&lmr->ref, lite_lmr_release);
}

/* An LMR homed here, with a reference; or NULL. Context: any. */
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

/*
 * Rights of a user on a locked LMR, LITE_RIGHT_*. @conn: session with the
 * user's node; NULL: this node.
 */
u32 lite_lmr_rights(struct lite_lmr *lmr, struct lite_conn *conn,
		    const struct lite_wire_cred *cred)
{
	struct lite_cred c;

	lockdep_assert_held(&lmr->lock);
	lite_wire_cred_get(&c, cred);
	return lite_rights_of(&c, conn ? conn->from.node :
					 lite_cluster_id(lmr->mem->cl),
			      &lmr->acl, conn && lmr->mem->root_squash);
}

/**
 * lite_lmr_name_new - allocate and charge a copy of a name
 * @lmr: LMR that it is for
 * @name: name; empty: none
 *
 * Context: may sleep.
 * Return: the copy, for lite_lmr_name_free(); ERR_PTR: -ENOMEM, -EDQUOT,
 * -ENOSPC.
 */
const char *lite_lmr_name_new(struct lite_lmr *lmr, const char *name)
{
	size_t size = strlen(name) + 1;
	char *copy;
	int err;

	if (!name[0])
		return "";
	err = lite_limit_take(&lmr->mem->limit, lmr->charged_to, size);
	if (err)
		return ERR_PTR(err);
	copy = kmemdup(name, size, GFP_KERNEL_ACCOUNT);
	if (!copy) {
		lite_limit_give(&lmr->mem->limit, lmr->charged_to, size);
		return ERR_PTR(-ENOMEM);
	}
	return copy;
}

/* Undo lite_lmr_name_new(). */
void lite_lmr_name_free(struct lite_lmr *lmr, const char *name)
{
	if (!name[0])
		return;
	lite_limit_give(&lmr->mem->limit, lmr->charged_to, strlen(name) + 1);
	kfree(name);
}

/*
 * Make room for one more grant. The LMR is locked. Return: 0; -ENOMEM, -EDQUOT,
 * -ENOSPC.
 */
int lite_lmr_grow_grants(struct lite_lmr *lmr)
{
	struct lite_acl *acl = &lmr->acl;
	u32 room = clamp(lmr->grants_room * 2, 4U, (u32)LITE_GRANTS_MAX);
	size_t more = (room - lmr->grants_room) * sizeof(*acl->grants);
	struct lite_grant *grants;
	int err;

	lockdep_assert_held(&lmr->lock);
	if (acl->n_grants < lmr->grants_room)
		return 0;
	err = lite_limit_take(&lmr->mem->limit, lmr->charged_to, more);
	if (err)
		return err;
	grants = krealloc_array(acl->grants, room, sizeof(*grants),
				GFP_KERNEL_ACCOUNT);
	if (!grants) {
		lite_limit_give(&lmr->mem->limit, lmr->charged_to, more);
		return -ENOMEM;
	}
	acl->grants = grants;
	lmr->grants_room = room;
	return 0;
}

/* ---- making -------------------------------------------------------------- */

/* Take memory for all of it, on the nodes that the caller named. */
static int lite_lmr_parts(struct lite_lmr *lmr,
			  const struct lite_wire_create *c,
			  struct lite_part **parts, u32 *n_parts)
{
	struct lite_memory *mem = lmr->mem;
	u64 length = le64_to_cpu(c->length);
	u32 n = le32_to_cpu(c->n_nodes);
	u64 incarnation[LITE_SPREAD_MAX];
	int err = 0;
	u32 i, j;

	if (le32_to_cpu(c->nodes[0]) != lite_cluster_id(mem->cl))
		return -EINVAL;
	/* All must be members, even if a small LMR gives them no share. */
	for (i = 0; i < n; i++) {
		u32 node = le32_to_cpu(c->nodes[i]);

		for (j = 0; j < i; j++) {
			if (c->nodes[j] == c->nodes[i])
				return -EINVAL;
		}
		err = lite_node_incarnation(mem, node, &incarnation[i]);
		if (err == -EHOSTDOWN && !lite_spread_share(length, n, i))
			err = 0;
		if (err)
			return err;
	}
	for (i = 0; i < n && !err; i++) {
		u64 share = lite_spread_share(length, n, i);

		if (share)
			err = lite_parts_make(lmr, parts, n_parts,
					      le32_to_cpu(c->nodes[i]),
					      incarnation[i], share);
	}
	return err;
}

static struct lite_lmr *lite_lmr_new(struct lite_memory *mem,
				     const struct lite_wire_create *c,
				     struct lite_conn *conn)
{
	u32 uid = le32_to_cpu(c->cred.uid);
	u32 gid = le32_to_cpu(c->cred.gid);
	struct lite_lmr *lmr;
	int err;

	/* Remote root must not own what local root owns. */
	if (conn && mem->root_squash && !uid) {
		uid = LITE_UID_NOBODY;
		gid = LITE_UID_NOBODY;
	}
	err = lite_limit_take(&mem->limit, uid, LITE_LMR_COST);
	if (err)
		return ERR_PTR(err);
	lmr = kzalloc(sizeof(*lmr), GFP_KERNEL_ACCOUNT);
	if (!lmr) {
		lite_limit_give(&mem->limit, uid, LITE_LMR_COST);
		return ERR_PTR(-ENOMEM);
	}
	lmr->mem = mem;
	kref_init(&lmr->ref);
	mutex_init(&lmr->lock);
	INIT_LIST_HEAD(&lmr->mappers);
	init_completion(&lmr->freed);
	init_waitqueue_head(&lmr->changed);
	INIT_WORK(&lmr->reap_work, lite_reap_work);
	lmr->id = atomic64_inc_return(&mem->ids);
	lmr->acl.uid = uid;
	lmr->acl.gid = gid;
	lmr->acl.mode = le32_to_cpu(c->mode);
	lmr->charged_to = uid;
	if (conn) {
		lmr->maker = conn->from.node;
		lmr->maker_incarnation = conn->from.incarnation;
		lmr->creator = conn->session;
	}
	lmr->name = lite_lmr_name_new(lmr, c->name);
	if (IS_ERR(lmr->name)) {
		err = PTR_ERR(lmr->name);
		kfree(lmr);
		lite_limit_give(&mem->limit, uid, LITE_LMR_COST);
		return ERR_PTR(err);
	}
	return lmr;
}

/* Make one part of memory that exists already. */
static int lite_lmr_part(struct lite_lmr *lmr, const struct lite_alloc *alloc,
			 struct lite_part **parts, u32 *n_parts)
{
	struct lite_part *part = kvcalloc(1, sizeof(*part), GFP_KERNEL_ACCOUNT);

	if (!part)
		return -ENOMEM;
	*part = (struct lite_part){
		.node = alloc->home,
		.incarnation = alloc->home_incarnation,
		.local = true,
		.length = alloc->bytes,
	};
	*parts = part;
	*n_parts = 1;
	return lite_part_fill(part, alloc);
}

/* The creator's mapping is entered before the LMR can be found. */
static int lite_lmr_publish(struct lite_lmr *lmr, struct lite_conn *conn,
			    const struct lite_wire_create *c, u32 *rights)
{
	const struct lite_wire_map map = {
		.rights = cpu_to_le32(LITE_RIGHTS_ALL),
		.renew = cpu_to_le32(1),
		.cred = c->cred,
	};
	struct lite_mapper *m, *tmp;
	int err = 0;

	if (c->map)
		err = lite_mapper_add(lmr, conn, &map, rights);
	if (!err)
		err = xa_err(xa_store(&lmr->mem->lmrs, lmr->id, lmr,
				      GFP_KERNEL_ACCOUNT));
	if (!err)
		return 0;
	list_for_each_entry_safe(m, tmp, &lmr->mappers, list) {
		list_del(&m->list);
		kfree(m);
	}
	return err;
}

/* @alloc: memory to make it of; NULL: allocate as @c says. */
static int lite_lmr_make(struct lite_lmr *lmr, struct lite_conn *conn,
			 const struct lite_wire_create *c,
			 const struct lite_alloc *alloc, u32 *rights)
{
	struct lite_memory *mem = lmr->mem;
	struct lite_part *parts = NULL;
	u32 n_parts = 0;
	int err;

	if (c->name[0]) {
		err = lite_name_reserve(mem, c->name, lmr->id,
					lmr->charged_to);
		if (err)
			return err;
	}
	err = alloc ? lite_lmr_part(lmr, alloc, &parts, &n_parts) :
		      lite_lmr_parts(lmr, c, &parts, &n_parts);
	if (!err) {
		lmr->place = lite_place_new(lmr, parts, n_parts);
		if (IS_ERR(lmr->place)) {
			err = PTR_ERR(lmr->place);
			lmr->place = NULL;
		}
	}
	if (!err)
		err = lite_lmr_publish(lmr, conn, c, rights);
	if (err) {
		if (c->name[0])
			lite_name_drop(mem, c->name, lmr->id);
		lite_parts_release(lmr, parts, n_parts, 0);
	}
	kvfree(parts);
	if (err)
		return err;
	lite_stat_inc(mem->stats, LITE_STAT_LMRS);
	trace_lite_lmr_create(lite_cluster_id(mem->cl), lmr->id,
			      lmr->place->length);
	if (c->name[0])
		lite_name_confirm(mem, c->name, lmr->id);
	return 0;
}

/* A snapshot: a later change RECALLs the mapper. */
static void lite_map_reply_fill(struct lite_lmr *lmr, u32 rights,
				struct lite_wire_map_reply *r)
{
	const struct lite_place *place;
	u32 i;

	mutex_lock(&lmr->lock);
	place = lmr->place;
	r->id = cpu_to_le64(lmr->id);
	r->length = cpu_to_le64(place->length);
	r->n_extents = cpu_to_le32(place->n_extents);
	r->n_shares = cpu_to_le32(place->n_shares);
	r->rights = cpu_to_le32(rights);
	r->anonymous = cpu_to_le32(!lmr->name[0]);
	r->generation = cpu_to_le64(lmr->generation);
	for (i = 0; i < place->n_shares; i++) {
		r->share[i].node = cpu_to_le32(place->share[i].node);
		r->share[i].incarnation =
			cpu_to_le64(place->share[i].incarnation);
	}
	mutex_unlock(&lmr->lock);
}

static int lite_serve_create(void *priv, struct lite_conn *conn,
			     const void *req, u32 len, void *reply,
			     u32 *reply_len)
{
	struct lite_memory *mem = priv;
	const struct lite_wire_create *c = req;
	unsigned long life = lite_cluster_life(mem->cl);
	struct lite_lmr *lmr;
	u32 rights = 0;
	int err;

	err = conn ? lite_cluster_await_ready(mem->cl) :
		     lite_cluster_ready(mem->cl);
	if (err)
		return err;
	lmr = lite_lmr_new(mem, c, conn);
	if (IS_ERR(lmr))
		return PTR_ERR(lmr);
	kref_get(&lmr->ref); /* for us; the table has the other one */
	err = lite_lmr_make(lmr, conn, c, NULL, &rights);
	if (err) {
		lite_lmr_put(lmr);
		lite_lmr_put(lmr);
		return err;
	}
	/* A leave or join that began meanwhile may have missed the LMR. */
	err = lite_cluster_recheck(mem->cl, life);
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

/**
 * lite_home_adopt - make an LMR of memory that exists already
 * @mem: memory layer
 * @c: what to make
 * @alloc: registered memory, in the table. The caller has a reference; on
 *	failure it also takes @alloc out of the table, if it is still there
 * @life: lite_cluster_life() before @alloc was made
 *
 * Context: may sleep; makes calls.
 * Return: the LMR with a reference, not mapped by any node; ERR_PTR as for
 * LITE_IOC_REGISTER.
 */
struct lite_lmr *lite_home_adopt(struct lite_memory *mem,
				 const struct lite_wire_create *c,
				 struct lite_alloc *alloc, unsigned long life)
{
	struct lite_lmr *lmr = lite_lmr_new(mem, c, NULL);
	int err;

	if (IS_ERR(lmr))
		return lmr;
	alloc->pinned->lmr = lmr->id;
	lmr->registered = true;
	kref_get(&lmr->ref); /* for the caller; the table has the other one */
	err = lite_lmr_make(lmr, NULL, c, alloc, NULL);
	if (err) {
		lite_lmr_put(lmr);
		lite_lmr_put(lmr);
		return ERR_PTR(err);
	}
	/* A leave or join that began meanwhile may have missed the LMR. */
	err = lite_cluster_recheck(mem->cl, life);
	if (!err)
		return lmr;
	lite_home_free(lmr);
	lite_lmr_put(lmr);
	return ERR_PTR(err);
}

/* ---- mapping and looking ------------------------------------------------- */

static int lite_serve_map(void *priv, struct lite_conn *conn, const void *req,
			  u32 len, void *reply, u32 *reply_len)
{
	struct lite_memory *mem = priv;
	const struct lite_wire_map *map = req;
	struct lite_lmr *lmr;
	u32 rights;
	int err;

	lmr = lite_lmr_get(mem, le64_to_cpu(map->id));
	if (!lmr)
		return -ENOENT;
	err = lite_mapper_add(lmr, conn, map, &rights);
	if (!err) {
		lite_map_reply_fill(lmr, rights, reply);
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
	u32 first = le32_to_cpu(e->first);
	const struct lite_place *place;
	struct lite_lmr *lmr;
	int err = 0;

	lmr = lite_lmr_get(mem, le64_to_cpu(e->id));
	if (!lmr)
		return -ENOENT;
	mutex_lock(&lmr->lock);
	place = lmr->place;
	/* Also tells the mapper that the home still counts it as one. */
	if (first >= place->n_extents || !lite_mapper_known(lmr, conn))
		err = -ENOENT;
	else
		*reply_len = lite_extents_put(reply, place->extents,
					      place->n_extents, first);
	if (!err && conn && conn->session == lmr->creator)
		lmr->confirmed = true;
	mutex_unlock(&lmr->lock);
	lite_lmr_put(lmr);
	return err;
}

/* Nodes that hold memory of it. The home is one only if it has a part. */
static u32 lite_place_nodes(const struct lite_place *place, __le32 *nodes)
{
	bool home = false;
	u32 n = 0;
	u32 i;

	for (i = 0; i < place->n_parts && !home; i++)
		home = place->part[i].local;
	for (i = !home; i < place->n_shares; i++) {
		if (nodes)
			nodes[n] = cpu_to_le32(place->share[i].node);
		n++;
	}
	return n;
}

static void lite_lmr_fill(struct lite_lmr *lmr, struct lite_wire_lmr *l,
			  __le32 *nodes)
{
	struct lite_mapper *m;
	u32 n = 0;

	mutex_lock(&lmr->lock);
	list_for_each_entry(m, &lmr->mappers, list)
		n += !m->lost;
	l->id = cpu_to_le64(lmr->id);
	l->length = cpu_to_le64(lmr->place->length);
	l->uid = cpu_to_le32(lmr->acl.uid);
	l->gid = cpu_to_le32(lmr->acl.gid);
	l->mode = cpu_to_le32(lmr->acl.mode);
	l->n_extents = cpu_to_le32(lmr->place->n_extents);
	l->n_shares = cpu_to_le32(lite_place_nodes(lmr->place, nodes));
	l->n_mappers = cpu_to_le32(n);
	strscpy_pad(l->name, lmr->name, sizeof(l->name));
	mutex_unlock(&lmr->lock);
}

static int lite_serve_stat(void *priv, struct lite_conn *conn, const void *req,
			   u32 len, void *reply, u32 *reply_len)
{
	struct lite_memory *mem = priv;
	const struct lite_wire_id *i = req;
	struct lite_wire_stat_reply *r = reply;
	struct lite_lmr *lmr = lite_lmr_get(mem, le64_to_cpu(i->id));

	if (!lmr)
		return -ENOENT;
	lite_lmr_fill(lmr, &r->lmr, r->nodes);
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
		lite_lmr_fill(lmr, &r->lmr[n++], NULL);
		lite_lmr_put(lmr);
	}
	r->count = cpu_to_le32(n);
	*reply_len = struct_size(r, lmr, n);
	return 0;
}

void lite_home_handlers(struct lite_memory *mem)
{
	struct lite_kcalls *rpc = mem->cl->rpc;

	lite_kcall_handle(rpc, LITE_CALL_LMR_CREATE, lite_serve_create, mem);
	lite_kcall_handle(rpc, LITE_CALL_LMR_MAP, lite_serve_map, mem);
	lite_kcall_handle(rpc, LITE_CALL_LMR_EXTENTS, lite_serve_extents, mem);
	lite_kcall_handle(rpc, LITE_CALL_LMR_STAT, lite_serve_stat, mem);
	lite_kcall_handle(rpc, LITE_CALL_LMR_LIST, lite_serve_list, mem);
}
