// SPDX-License-Identifier: GPL-2.0
/*
 * The home of an LMR: making, mapping and describing it. To make one, the home reserves the name,
 * takes memory here and at other stores, publishes the LMR in mem->lmrs and confirms the name.
 * Until then no look-up finds the name, and other claims for it wait.
 */
#include <linux/slab.h>

#include "core/spread.h"
#include "memory/memory.h"
#include "memory/store/store.h"
#include "home.h"
#include "trace.h"

/* Charged for the fixed metadata of an LMR, bytes. */
#define LITE_LMR_COST (kmalloc_size_roundup(sizeof(struct lite_lmr)) + LITE_INDEX_COST)

/* Mark in mem->lmrs: not a chunk. */
#define LITE_LMR_WHOLE XA_MARK_1

/* Drop a reference. May sleep. */
void lite_lmr_put(struct lite_lmr *lmr)
{
	if (!refcount_dec_and_test(&lmr->ref))
		return;
	lmr->mem->rooms->unpinned_free(lmr->unpinned);
	lite_limit_free(&lmr->mem->limit, lmr->charged_to, lmr->acl.grants,
			LITE_LMR_COST + lmr->grants_room * sizeof(*lmr->acl.grants));
	lite_lmr_name_free(lmr, lmr->name);
	lite_place_free(lmr, lmr->place);
	if (lmr->reap.part)
		lite_crew_job_exit(&lmr->mem->reaps, &lmr->reap);
	if (lmr->tellers)
		lite_pool_drop(&lmr->mem->revokes.workers, lmr->tellers);
	kfree_rcu(lmr, rcu);
}

/* Find an LMR homed here by its id. Context: any. Return: the LMR with a reference, or NULL. */
struct lite_lmr *lite_lmr_get(struct lite_memory *mem, u64 id)
{
	struct lite_lmr *lmr;

	rcu_read_lock();
	lmr = xa_load(&mem->lmrs, id);
	if (lmr && !refcount_inc_not_zero(&lmr->ref))
		lmr = NULL;
	rcu_read_unlock();
	return lmr;
}

/*
 * Find the LMR homed here with the lowest id above @id, and set @id to that. Skips chunks, which
 * end with their LMRs. Context: any. Return: the LMR with a reference, or NULL.
 */
struct lite_lmr *lite_lmr_next(struct lite_memory *mem, unsigned long *id)
{
	struct lite_lmr *lmr;

	rcu_read_lock();
	do {
		lmr = xa_find_after(&mem->lmrs, id, ULONG_MAX, LITE_LMR_WHOLE);
	} while (lmr && !refcount_inc_not_zero(&lmr->ref));
	rcu_read_unlock();
	return lmr;
}

/* LITE_RIGHT_* of a user on a locked LMR. @conn: session with the user's node; NULL: this node. */
u32 lite_lmr_rights(struct lite_lmr *lmr, struct lite_conn *conn, const struct lite_wire_cred *cred)
{
	struct lite_cred c;

	lockdep_assert_held(&lmr->lock);
	lite_wire_cred_get(&c, cred);
	return lite_rights_of(&c, conn ? conn->from.node : lite_cluster_id(lmr->mem->cl),
			      &lmr->acl, conn && lmr->mem->root_squash);
}

/*
 * Allocate and charge a copy of a name, which may be empty. May sleep. Return: the copy, for
 * lite_lmr_name_free(); ERR_PTR: -ENOMEM, -EDQUOT, -ENOSPC.
 */
const char *lite_lmr_name_new(struct lite_lmr *lmr, const char *name)
{
	size_t size = strlen(name) + 1;
	char *copy;

	if (!name[0])
		return "";
	copy = lite_limit_alloc(&lmr->mem->limit, lmr->charged_to, size, size);
	return IS_ERR(copy) ? copy : memcpy(copy, name, size);
}

void lite_lmr_name_free(struct lite_lmr *lmr, const char *name)
{
	if (name[0])
		lite_limit_free(&lmr->mem->limit, lmr->charged_to, name, strlen(name) + 1);
}

/* Make room for one more grant during a change. May sleep. Return: 0; -ENOMEM, -EDQUOT, -ENOSPC. */
int lite_lmr_grow_grants(struct lite_lmr *lmr)
{
	struct lite_acl *acl = &lmr->acl;
	u32 room = clamp(lmr->grants_room * 2, 4U, (u32)LITE_GRANTS_MAX);
	struct lite_limit *limit = &lmr->mem->limit;
	size_t old = acl->n_grants * sizeof(*acl->grants);
	struct lite_grant *grants;

	if (acl->n_grants < lmr->grants_room)
		return 0;
	grants = lite_limit_alloc(limit, lmr->charged_to, room * sizeof(*grants),
				  room * sizeof(*grants) - old);
	if (IS_ERR(grants))
		return PTR_ERR(grants);
	memcpy(grants, acl->grants, old);
	spin_lock(&lmr->lock);
	swap(acl->grants, grants);
	lmr->grants_room = room;
	spin_unlock(&lmr->lock);
	kvfree(grants);
	return 0;
}

/* Take memory for a new LMR, on the nodes that the caller named. */
static int lite_lmr_parts(struct lite_replace *r, const struct lite_wire_create *c)
{
	struct lite_memory *mem = r->lmr->mem;
	u64 length = le64_to_cpu(c->length);
	u32 n = le32_to_cpu(c->n_nodes);
	struct lite_share at[LITE_SPREAD_MAX];
	int err = 0;
	u32 i, j;

	if (le32_to_cpu(c->nodes[0]) != lite_cluster_id(mem->cl))
		return -EINVAL;
	/* All must be members; only those that get a share have to be up. */
	for (i = 0; i < n; i++) {
		for (j = 0; j < i; j++) {
			if (c->nodes[j] == c->nodes[i])
				return -EINVAL;
		}
		err = lite_share_find(mem, le32_to_cpu(c->nodes[i]), &at[i]);
		if (err == -EHOSTDOWN && !lite_spread_share(length, n, i))
			err = 0;
		if (err)
			return err;
	}
	for (i = 0; i < n && !err; i++) {
		u64 share = lite_spread_share(length, n, i);

		if (share)
			err = lite_parts_make(r, &at[i], share, lite_part_max(share));
	}
	return err;
}

/* Make existing memory the only part of a new LMR. */
static int lite_lmr_part(struct lite_replace *r, const struct lite_alloc *alloc)
{
	const struct lite_share at = {
		.node = alloc->home,
		.incarnation = alloc->home_incarnation,
	};
	struct lite_part *part = lite_part_add(r, &at, alloc->bytes);

	return part ? lite_part_fill(part, alloc) : -ENOMEM;
}

static struct lite_lmr *lite_lmr_new(struct lite_memory *mem, const struct lite_wire_create *c,
				     struct lite_conn *conn, const struct lite_origin *from)
{
	u32 uid = le32_to_cpu(c->cred.uid);
	u32 gid = le32_to_cpu(c->cred.gid);
	struct lite_lmr *lmr;
	const char *name;

	/* Root of another node must not own what root here owns. */
	if (conn && mem->root_squash && !uid) {
		uid = LITE_UID_NOBODY;
		gid = LITE_UID_NOBODY;
	}
	lmr = lite_limit_alloc(&mem->limit, uid, sizeof(*lmr), LITE_LMR_COST);
	if (IS_ERR(lmr))
		return lmr;
	lmr->mem = mem;
	refcount_set(&lmr->ref, 1);
	spin_lock_init(&lmr->lock);
	if (from) {
		lmr->registered = true;
		lmr->of = from->of;
		lmr->base = from->base;
	}
	/* lite_chunk_add() opens a chunk once its pages are known to be the process's. */
	lmr->closed = lmr->of;
	INIT_LIST_HEAD(&lmr->mappers);
	lite_crowd_init(&lmr->changed);
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
	lmr->name = "";
	lmr->tellers = lite_pool_hold(&mem->revokes.workers, uid, GFP_KERNEL);
	name = !lmr->tellers ||
		       lite_crew_job_init(&mem->reaps, &lmr->reap, uid, lite_reap_job, GFP_KERNEL) ?
		       ERR_PTR(-ENOMEM) :
		       lite_lmr_name_new(lmr, c->name);
	if (IS_ERR(name)) {
		lite_lmr_put(lmr);
		return ERR_CAST(name);
	}
	lmr->name = name;
	return lmr;
}

/* Count the creator as a mapper, and then enter the LMR in the table, which takes a reference. */
static int lite_lmr_publish(struct lite_lmr *lmr, struct lite_conn *conn,
			    const struct lite_wire_create *c, u32 *rights)
{
	const struct lite_wire_map map = {
		.rights = cpu_to_le32(LITE_RIGHTS_ALL),
		.renew = cpu_to_le32(1),
		.cred = c->cred,
	};
	int err = 0;

	if (c->map)
		err = lite_mapper_add(lmr, conn, &map, rights);
	if (err)
		return err;
	refcount_inc(&lmr->ref);
	err = xa_err(xa_store(&lmr->mem->lmrs, lmr->id, lmr, GFP_KERNEL_ACCOUNT));
	if (err) {
		lite_mappers_drop(lmr, false);
		lite_lmr_put(lmr);
	} else if (!lmr->of) {
		xa_set_mark(&lmr->mem->lmrs, lmr->id, LITE_LMR_WHOLE);
	}
	return err;
}

static int lite_lmr_make(struct lite_lmr *lmr, struct lite_conn *conn,
			 const struct lite_wire_create *c, const struct lite_origin *from,
			 unsigned long life, u32 *rights)
{
	struct lite_memory *mem = lmr->mem;
	struct lite_replace r = { .lmr = lmr };
	struct lite_place *place;
	int err = 0;

	if (c->name[0])
		err = lite_name_reserve(mem, c->name, lmr->id, lmr->charged_to);
	if (err)
		return err;
	INIT_LIST_HEAD(&r.parts);
	if (!from)
		err = lite_lmr_parts(&r, c);
	else if (from->alloc)
		err = lite_lmr_part(&r, from->alloc);
	if (err)
		goto err_parts;
	place = lite_place_new(&r, le64_to_cpu(c->length));
	err = PTR_ERR_OR_ZERO(place);
	if (err)
		goto err_parts;
	if (from && from->unpinned) {
		place->length = le64_to_cpu(c->length);
		place->home_stores = true;
	}
	lmr->place = place;
	lmr->length = place->length;
	/* A node that has left meanwhile, this one or another, has freed its parts. */
	err = lite_cluster_recheck(mem->cl, life) ?:
	      lite_parts_check(&r) ?:
	      lite_lmr_publish(lmr, conn, c, rights);
	if (err)
		goto err_parts;
	lite_stat_inc(mem->stats, LITE_STAT_LMRS);
	trace_lite_lmr_create(lite_cluster_id(mem->cl), lmr->id, le64_to_cpu(c->length));
	if (c->name[0])
		lite_name_confirm(mem, c->name, lmr->id);
	return 0;

err_parts:
	if (c->name[0])
		lite_name_drop(mem, c->name, lmr->id);
	lite_parts_release(mem, NULL, &r.parts, 0);
	return err;
}

/* On failure, free existing memory, unless it was released as a part before. May sleep. */
static void lite_origin_drop(struct lite_memory *mem, const struct lite_origin *from)
{
	if (from && from->alloc)
		lite_store_free(lite_store_get(mem, from->alloc->id, from->alloc->home, true));
}

/*
 * Make the LMR that @c describes for the node at the other end of @conn (NULL: for this node).
 *
 * @from: existing memory to make it of; NULL: allocate. The caller keeps its reference to
 * @from->alloc. On failure the store's table loses its own before this returns or, if the LMR was
 * published, when no mapper can reach the memory any more. @life: lite_cluster_life() before
 * anything was made. @rights: set to what is granted if @c says that its maker maps it. May sleep;
 * makes calls. Return: the LMR with a reference; ERR_PTR as for LITE_IOC_ALLOC or
 * LITE_IOC_REGISTER.
 */
struct lite_lmr *lite_home_create(struct lite_memory *mem, struct lite_conn *conn,
				  const struct lite_wire_create *c, const struct lite_origin *from,
				  unsigned long life, u32 *rights)
{
	struct lite_lmr *lmr = lite_lmr_new(mem, c, conn, from);
	int err;

	if (IS_ERR(lmr)) {
		lite_origin_drop(mem, from);
		if (from)
			mem->rooms->unpinned_free(from->unpinned);
		return lmr;
	}
	if (from && from->alloc)
		from->alloc->reg.lmr = lmr->id;
	if (from && from->unpinned) {
		lmr->unpinned = from->unpinned;
		mem->rooms->unpinned_begin(lmr->unpinned, lmr, lmr->id);
	}
	err = lite_lmr_make(lmr, conn, c, from, life, rights);
	if (err) {
		lite_origin_drop(mem, from);
	} else {
		/* A leave or join that began meanwhile may have missed the LMR. */
		err = lite_cluster_recheck(mem->cl, life);
		/* If this wait is killed, the LMR still has its memory until all mappers let go. */
		if (err)
			lite_home_free(lmr);
	}
	if (!err)
		return lmr;
	lite_lmr_put(lmr);
	return ERR_PTR(err);
}

/*
 * May the reply to a MAP carry extents? Not to the maker of an anonymous LMR until it has confirmed
 * that it knows the LMR, by fetching them. Those of a chunk are sent even if it is dying: its home
 * is its only store, and ENDS comes in the session of the MAP, or ends that session.
 */
static bool lite_map_tells(struct lite_lmr *lmr, struct lite_conn *conn)
{
	bool unconfirmed = conn && conn->session == lmr->creator && !lmr->confirmed;

	if (lmr->of)
		return true;
	return lite_mapper_known(lmr, conn) && (lmr->name[0] || !unconfirmed);
}

/*
 * Answer a MAP of @conn (NULL: this node) that has been counted. If a change comes later, it
 * RECALLs the mapper. May sleep. Return: bytes of the answer; -EHOSTDOWN: not a mapper any more.
 */
int lite_map_answer(struct lite_lmr *lmr, struct lite_conn *conn, u32 rights,
		    struct lite_wire_map_reply *r)
{
	const struct lite_place *place;
	u32 told = 0;
	u32 i, bytes;

	spin_lock(&lmr->lock);
	place = lmr->place;
	r->id = cpu_to_le64(lmr->id);
	r->length = cpu_to_le64(place->length);
	r->n_extents = cpu_to_le32(place->n_extents);
	r->n_shares = cpu_to_le32(place->n_shares);
	r->rights = cpu_to_le32(rights);
	r->anonymous = cpu_to_le32(!lmr->name[0]);
	r->generation = cpu_to_le64(lmr->generation);
	r->home = cpu_to_le32(place->share[0].node);
	r->of = cpu_to_le64(lmr->of);
	r->base = cpu_to_le64(lmr->base);
	for (i = 0; i < place->n_shares; i++) {
		r->share[i].node = cpu_to_le32(place->share[i].node);
		r->share[i].incarnation = cpu_to_le64(place->share[i].incarnation);
	}
	if (lite_map_tells(lmr, conn))
		told = min_t(u32, place->n_extents, LITE_MAP_ENTRIES - place->n_shares);
	r->n_told = cpu_to_le32(told);
	lite_extents_copy((struct lite_wire_extent *)&r->share[place->n_shares], place->extents,
			  told);
	bytes = struct_size(r, share, place->n_shares) + told * sizeof(struct lite_wire_extent);
	spin_unlock(&lmr->lock);
	return lite_mapper_recheck(lmr, conn) ?: (int)bytes;
}

int lite_serve_create(struct lite_memory *mem, struct lite_conn *conn, const void *req, void *reply)
{
	unsigned long life = lite_cluster_life(mem->cl);
	struct lite_lmr *lmr;
	u32 rights = 0;
	int ret;

	ret = conn ? lite_cluster_await_ready(mem->cl) : lite_cluster_ready(mem->cl);
	if (ret)
		return ret;
	lmr = lite_home_create(mem, conn, req, NULL, life, &rights);
	if (IS_ERR(lmr))
		return PTR_ERR(lmr);
	ret = lite_map_answer(lmr, conn, rights, reply);
	lite_lmr_put(lmr);
	return ret;
}

int lite_serve_map(struct lite_lmr *lmr, struct lite_conn *conn, const void *req, void *reply)
{
	u32 rights;

	return lite_mapper_add(lmr, conn, req, &rights) ?:
	       lite_map_answer(lmr, conn, rights, reply);
}

/* A MAP by name, sent to the name's directory, which may only know the home. */
int lite_serve_open(struct lite_memory *mem, struct lite_conn *conn, const void *req, void *reply)
{
	struct lite_wire_map_reply *r = reply;
	const struct lite_wire_map *map = req;
	struct lite_name_at at;
	struct lite_lmr *lmr;
	int ret;

	if (!lite_name_known(mem, map->name, &at))
		return -ENOENT;
	if (at.home == lite_cluster_id(mem->cl)) {
		lmr = lite_lmr_get(mem, at.id);
		if (!lmr)
			return -ENOENT;
		ret = lite_serve_map(lmr, conn, req, reply);
		lite_lmr_put(lmr);
		/* Closed for a change. Send the caller the LMR's id, for LMR_AWAIT. */
		if (ret != -EBUSY)
			return ret;
	}
	r->id = cpu_to_le64(at.id);
	r->home = cpu_to_le32(at.home);
	return sizeof(*r);
}

int lite_serve_extents(struct lite_lmr *lmr, struct lite_conn *conn, const void *req, void *reply)
{
	const struct lite_wire_extents *e = req;
	u32 first = le32_to_cpu(e->first);
	const struct lite_place *place;
	int ret = -ENOENT;

	spin_lock(&lmr->lock);
	place = lmr->place;
	/* An answer also tells the mapper that the home still counts it. */
	if (first < place->n_extents && lite_mapper_known(lmr, conn)) {
		ret = lite_extents_put(reply, place->extents, place->n_extents, first);
		lmr->confirmed |= conn && conn->session == lmr->creator;
	}
	spin_unlock(&lmr->lock);
	return ret;
}

/* @nodes: set to the nodes that hold memory of the LMR, unless NULL. */
static void lite_lmr_fill(struct lite_lmr *lmr, struct lite_wire_lmr *l, __le32 *nodes)
{
	const struct lite_place *place;
	struct lite_mapper *m;
	u32 n = 0;
	u32 i;

	spin_lock(&lmr->lock);
	place = lmr->place;
	list_for_each_entry(m, &lmr->mappers, list)
		n += !m->lost;
	l->id = cpu_to_le64(lmr->id);
	l->length = cpu_to_le64(place->length);
	l->uid = cpu_to_le32(lmr->acl.uid);
	l->gid = cpu_to_le32(lmr->acl.gid);
	l->mode = cpu_to_le32(lmr->acl.mode);
	l->n_extents = cpu_to_le32(place->n_extents);
	l->n_shares = cpu_to_le32(place->n_shares - !place->home_stores);
	l->n_mappers = cpu_to_le32(n);
	strscpy_pad(l->name, lmr->name, sizeof(l->name));
	for (i = !place->home_stores; nodes && i < place->n_shares; i++)
		*nodes++ = cpu_to_le32(place->share[i].node);
	spin_unlock(&lmr->lock);
}

int lite_serve_stat(struct lite_lmr *lmr, struct lite_conn *conn, const void *req, void *reply)
{
	struct lite_wire_stat_reply *r = reply;

	lite_lmr_fill(lmr, &r->lmr, r->nodes);
	return sizeof(*r);
}

int lite_serve_list(struct lite_memory *mem, struct lite_conn *conn, const void *req, void *reply)
{
	const struct lite_wire_list *l = req;
	struct lite_wire_list_reply *r = reply;
	u32 max = min_t(u32, le32_to_cpu(l->max), LITE_LMRS_PER_REPLY);
	unsigned long id = le64_to_cpu(l->after);
	struct lite_lmr *lmr;
	u32 n = 0;

	while ((lmr = lite_lmr_next(mem, &id))) {
		if (n < max)
			lite_lmr_fill(lmr, &r->lmr[n++], NULL);
		else
			r->more = cpu_to_le32(1);
		lite_lmr_put(lmr);
		if (r->more)
			break;
	}
	r->count = cpu_to_le32(n);
	return struct_size(r, lmr, n);
}
