// SPDX-License-Identifier: GPL-2.0
/*
 * REVOKE and RECALL, at the mapper: an LMR is used no more, or not before it has
 * been mapped anew.
 *
 * Either may overtake the reply to a MAP and then finds no mapping. So it is noted
 * with all MAPs under way to that home (struct lite_map_try), and the one whose
 * reply names the LMR starts over.
 *
 * The answer speaks for all mappings of the LMR that this node has had, also
 * for those that a handle which is not used still keeps (mem->unclean).
 */
#include "memory.h"

/**
 * lite_try_begin - a MAP is about to be made
 * @mem: node's
 * @try: on the caller's stack, until lite_try_end()
 * @home: asked
 *
 * Context: any process.
 */
void lite_try_begin(struct lite_memory *mem, struct lite_map_try *try,
		    u32 home)
{
	try->home = home;
	try->n_revoked = 0;
	spin_lock(&mem->map_lock);
	list_add(&try->list, &mem->tries);
	spin_unlock(&mem->map_lock);
}

/**
 * lite_try_end - it is over
 * @mem: node's
 * @try: from lite_try_begin()
 *
 * Context: any process.
 */
void lite_try_end(struct lite_memory *mem, struct lite_map_try *try)
{
	spin_lock(&mem->map_lock);
	list_del(&try->list);
	spin_unlock(&mem->map_lock);
}

/**
 * lite_try_overtaken - has the LMR been revoked since the MAP was begun?
 * @mem: node's; map_lock is held
 * @try: MAP
 * @id: of the LMR that it was given
 *
 * Return: true when what the MAP was told may be over.
 */
bool lite_try_overtaken(struct lite_memory *mem,
			const struct lite_map_try *try, u64 id)
{
	u32 i;

	lockdep_assert_held(&mem->map_lock);
	if (try->n_revoked > LITE_TRY_REVOKED)
		return true;
	for (i = 0; i < try->n_revoked; i++) {
		if (try->revoked[i] == id)
			return true;
	}
	return false;
}

/**
 * lite_mapping_revoke - do not use an LMR as it was mapped
 * @mem: node's
 * @home: its home
 * @id: its id there
 * @state: LITE_MAPPING_REVOKED: it is gone; LITE_MAPPING_RETIRED: map it anew
 *
 * Context: may sleep; waits until nothing is in flight on it. Cannot fail.
 * Return: 0, or -EUCLEAN: an operation that failed may be under way yet.
 */
int lite_mapping_revoke(struct lite_memory *mem, u32 home, u64 id,
			enum lite_mapping_state state)
{
	struct lite_mapping *m, *left;
	struct lite_map_try *try;
	bool unclean = false;

	spin_lock(&mem->map_lock);
	list_for_each_entry(left, &mem->unclean, left)
		unclean |= left->home == home && left->id == id;
	m = xa_load(&mem->mappings, lite_mapping_key(home, id));
	if (m) {
		lite_mapping_end(m, state);
		atomic_inc(&m->watchers);
	}
	list_for_each_entry(try, &mem->tries, list) {
		if (try->home != home)
			continue;
		if (try->n_revoked < LITE_TRY_REVOKED)
			try->revoked[try->n_revoked] = id;
		if (try->n_revoked <= LITE_TRY_REVOKED)
			try->n_revoked++;
	}
	spin_unlock(&mem->map_lock);
	if (m) {
		lite_mapping_drain(m);
		unclean |= READ_ONCE(m->unclean);
		lite_mapping_watch(m);
	}
	return unclean ? -EUCLEAN : 0;
}

static int lite_serve_revoke(void *priv, struct lite_conn *conn,
			     const void *req, u32 len, void *reply,
			     u32 *reply_len)
{
	const struct lite_wire_id *i = req;

	if (!conn)
		return -EBADMSG;
	return lite_mapping_revoke(priv, conn->from.node, le64_to_cpu(i->id),
				   LITE_MAPPING_REVOKED);
}

static int lite_serve_recall(void *priv, struct lite_conn *conn,
			     const void *req, u32 len, void *reply,
			     u32 *reply_len)
{
	const struct lite_wire_id *i = req;

	if (!conn)
		return -EBADMSG;
	return lite_mapping_revoke(priv, conn->from.node, le64_to_cpu(i->id),
				   LITE_MAPPING_RETIRED);
}

void lite_mapping_handlers(struct lite_memory *mem)
{
	lite_rpc_handle(mem->cl->rpc, LITE_CALL_LMR_REVOKE, lite_serve_revoke,
			mem);
	lite_rpc_handle(mem->cl->rpc, LITE_CALL_LMR_RECALL, lite_serve_recall,
			mem);
}
