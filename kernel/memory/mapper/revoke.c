// SPDX-License-Identifier: GPL-2.0
/*
 * REVOKE and RECALL at the mapper. Both end the mapping of an LMR and drain it;
 * after RECALL the LMR may be mapped again.
 *
 * One that overtakes the reply to a MAP finds no mapping. The number of the
 * last one is kept by LMR (struct lite_revoked): a MAP begun before it starts
 * over.
 *
 * The answer covers all mappings that this node has had of the LMR, including
 * drained ones that idle handles still refer to (mem->unclean).
 */
#include <linux/hash.h>

#include "memory/memory.h"
#include "view.h"

static u32 lite_revoked_slot(const struct lite_memory *mem, u32 home, u64 id)
{
	return hash_64(lite_mapping_key(home, id) ^ mem->revoked.salt,
		       LITE_REVOKED_BITS);
}

/* REVOKEs and RECALLs so far: for lite_revoked_since(), before a MAP. */
u64 lite_revoked_count(struct lite_memory *mem)
{
	u64 count;

	spin_lock(&mem->map_lock);
	count = mem->revoked.count;
	spin_unlock(&mem->map_lock);
	return count;
}

/*
 * Was an LMR revoked or recalled after lite_revoked_count() returned @count?
 * True also for a hash collision.
 */
bool lite_revoked_since(const struct lite_memory *mem, u32 home, u64 id,
			u64 count)
{
	lockdep_assert_held(&mem->map_lock);
	return mem->revoked.last[lite_revoked_slot(mem, home, id)] > count;
}

/**
 * lite_mapping_revoke - end this node's mapping of an LMR and drain it
 * @mem: node's
 * @home: its home
 * @id: its id there
 * @state: LITE_MAPPING_REVOKED: the LMR is gone; LITE_MAPPING_RETIRED: it may
 *	be mapped again
 *
 * Context: may sleep; waits until nothing is in flight on it. Cannot fail.
 * Return: 0, or -EUCLEAN: drained, but an operation that failed earlier may
 * still be executed by a store.
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
	if (m)
		lite_mapping_end(m, state);
	mem->revoked.last[slot] = ++mem->revoked.count;
	spin_unlock(&mem->map_lock);
	if (m)
		unclean |= lite_mapping_watch(m);
	return unclean ? -EUCLEAN : 0;
}

static int lite_serve_end(struct lite_memory *mem, struct lite_conn *conn,
			  const struct lite_wire_id *req,
			  enum lite_mapping_state state)
{
	if (!conn)
		return -EBADMSG;
	return lite_mapping_revoke(mem, conn->from.node, le64_to_cpu(req->id),
				   state);
}

static int lite_serve_revoke(void *priv, struct lite_conn *conn,
			     const void *req, u32 len, void *reply,
			     u32 *reply_len)
{
	return lite_serve_end(priv, conn, req, LITE_MAPPING_REVOKED);
}

static int lite_serve_recall(void *priv, struct lite_conn *conn,
			     const void *req, u32 len, void *reply,
			     u32 *reply_len)
{
	return lite_serve_end(priv, conn, req, LITE_MAPPING_RETIRED);
}

void lite_mapping_handlers(struct lite_memory *mem)
{
	lite_kcall_handle(mem->cl->rpc, LITE_CALL_LMR_REVOKE, lite_serve_revoke,
			  mem);
	lite_kcall_handle(mem->cl->rpc, LITE_CALL_LMR_RECALL, lite_serve_recall,
			  mem);
}
