// SPDX-License-Identifier: GPL-2.0
/*
 * REVOKE and RECALL, at the mapper: an LMR is used no more, or not before it has
 * been mapped anew.
 *
 * Either may overtake the reply to a MAP and then finds no mapping. So they are
 * numbered, and the number of the last one is kept by LMR (struct lite_revoked): a
 * MAP that was begun before starts over.
 *
 * The answer speaks for all mappings of the LMR that this node has had, also
 * for those that a handle which is not used still keeps (mem->unclean).
 */
#include <linux/hash.h>

#include "memory.h"

static u32 lite_revoked_slot(const struct lite_memory *mem, u32 home, u64 id)
{
	return hash_64(lite_mapping_key(home, id) ^ mem->revoked.salt,
		       LITE_REVOKED_BITS);
}

/**
 * lite_revoked_count - a MAP is about to be made
 * @mem: node's
 *
 * Context: any process.
 * Return: what lite_revoked_since() wants to know when its reply has come.
 */
u64 lite_revoked_count(struct lite_memory *mem)
{
	u64 count;

	spin_lock(&mem->map_lock);
	count = mem->revoked.count;
	spin_unlock(&mem->map_lock);
	return count;
}

/**
 * lite_revoked_since - has an LMR been revoked since its MAP was begun?
 * @mem: node's; map_lock is held
 * @home: of the LMR
 * @id: its id there, which the reply has told
 * @count: from lite_revoked_count(), before the MAP
 *
 * Return: true when what the MAP was told may be over.
 */
bool lite_revoked_since(const struct lite_memory *mem, u32 home, u64 id,
			u64 count)
{
	lockdep_assert_held(&mem->map_lock);
	return mem->revoked.last[lite_revoked_slot(mem, home, id)] > count;
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
	u32 slot = lite_revoked_slot(mem, home, id);
	struct lite_mapping *m;
	bool unclean;

	spin_lock(&mem->map_lock);
	unclean = lite_mapping_was_unclean(mem, home, id);
	m = xa_load(&mem->mappings, lite_mapping_key(home, id));
	if (m) {
		lite_mapping_end(m, state);
		atomic_inc(&m->watchers);
	}
	mem->revoked.last[slot] = ++mem->revoked.count;
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
