// SPDX-License-Identifier: GPL-2.0
/*
 * How mappings end; map.c makes them. A mapping stays in mem->mappings, whatever its state, until
 * nothing is in flight on it, so that a REVOKE or RECALL finds it and waits for it. One that
 * overtakes the reply to a MAP finds no mapping: its number is kept by LMR (struct lite_revoked),
 * and a MAP begun before it starts over. Releasing the last reference gives back the MAPs that the
 * home counts.
 */
#include <linux/hash.h>
#include <linux/slab.h>

#include "memory/home/home.h"
#include "memory/memory.h"
#include "memory/store/store.h"
#include "mapping.h"
#include "trace.h"

static void lite_mapping_free_rcu(struct work_struct *work)
{
	struct lite_mapping *m = container_of(to_rcu_work(work), struct lite_mapping, rcu);
	struct lite_memory *mem = m->mem;
	u32 i;

	for (i = 0; m->share && i < m->n_shares; i++) {
		if (m->share[i].peer)
			lite_peer_put(m->share[i].peer);
	}
	if (m->conn)
		lite_conn_put(m->conn);
	xa_destroy(&m->chunks);
	kvfree(m->local);
	kvfree(m->extents);
	kfree(m->share);
	kfree(m);
	lite_stat_dec(mem->stats, LITE_STAT_MAPPINGS);
}

/* Drop a watcher. The last one frees the mapping, as it was released and nothing is in flight. */
static void lite_mapping_unwatch(struct lite_mapping *m)
{
	struct lite_memory *mem = m->mem;

	if (!atomic_dec_and_test(&m->watchers))
		return;
	spin_lock(&mem->map_lock);
	lite_line_leave(&m->left);
	spin_unlock(&mem->map_lock);
	trace_lite_unmap(m->home, m->id, m->length);
	INIT_RCU_WORK(&m->rcu, lite_mapping_free_rcu);
	queue_rcu_work(mem->wq, &m->rcu);
}

/*
 * Have a mapping leave ACTIVE, if it has not yet. The caller needs no reference, and calls
 * lite_mapping_watch() next, without map_lock.
 */
void lite_mapping_end(struct lite_mapping *m, enum lite_mapping_state state)
{
	lockdep_assert_held(&m->mem->map_lock);
	atomic_inc(&m->watchers);
	if (m->state != LITE_MAPPING_ACTIVE)
		return;
	WRITE_ONCE(m->state, state);
	if (state == LITE_MAPPING_REVOKED)
		trace_lite_revoked(m->home, m->id, m->length);
	else
		trace_lite_retired(m->home, m->id, m->length);
	lite_ops_close(m);
	if (m->for_peers)
		lite_peer_mapping_kick(m);
}

/*
 * May a store still carry out a failed operation on a drained mapping? Not if it has a newer
 * session with this node, begun after the operation's session was up: both ends fence the old
 * session before they use the new one (lite_peer_may_attach(), lite_peer_publish()). The home,
 * which is the first store, takes care of its own sessions.
 */
static bool lite_mapping_unclean(struct lite_mapping *m)
{
	u32 i;

	lockdep_assert_held(&m->mem->map_lock);
	if (!READ_ONCE(m->unclean))
		return false;
	for (i = 1; i < m->n_shares; i++) {
		const struct lite_map_share *share = &m->share[i];

		if (share->peer && share->session &&
		    lite_peer_session(share->peer) <= share->up_before)
			return true;
	}
	WRITE_ONCE(m->unclean, false);
	lite_line_leave(&m->left);
	return false;
}

/*
 * Drain a mapping after lite_mapping_end(), which has raised @watchers: that keeps the mapping
 * without a reference. May sleep. Return: is it unclean?
 */
bool lite_mapping_watch(struct lite_mapping *m)
{
	unsigned long key = lite_mapping_key(m->home, m->id);
	struct lite_memory *mem = m->mem;
	bool unclean;

	lite_mapping_drain(m);
	spin_lock(&mem->map_lock);
	if (xa_load(&mem->mappings, key) == m)
		xa_erase(&mem->mappings, key);
	unclean = lite_mapping_unclean(m);
	/* A REVOKE must find it if the LMR is mapped again before the release tells the home. */
	if (unclean)
		lite_line_enter(&mem->unclean, &m->left, false);
	spin_unlock(&mem->map_lock);
	lite_mapping_unwatch(m);
	return unclean;
}

/* Retire and drain a mapping to which the caller has a reference. May sleep. */
void lite_mapping_retire(struct lite_mapping *m)
{
	spin_lock(&m->mem->map_lock);
	lite_mapping_end(m, LITE_MAPPING_RETIRED);
	spin_unlock(&m->mem->map_lock);
	lite_mapping_watch(m);
}

/* For lite_mapping_retire_home() and, with @dead, lite_mappings_retire_work(). */
static void lite_mappings_retire(struct lite_memory *mem, u32 home, bool dead)
{
	unsigned long last = home ? lite_mapping_key(home, U64_MAX) : ULONG_MAX;
	unsigned long first = lite_mapping_key(home, 0), key = first;
	struct lite_mapping *m;
	bool end;

	do {
		spin_lock(&mem->map_lock);
		m = xa_find(&mem->mappings, &key, last, XA_PRESENT);
		end = m && (!dead || m->early || !lite_mapping_current(m));
		if (end)
			lite_mapping_end(m, LITE_MAPPING_RETIRED);
		spin_unlock(&mem->map_lock);
		if (end)
			lite_mapping_watch(m);
		/*
		 * When this node leaves, go on until the table is empty. Otherwise see each mapping
		 * once: an LMR that is mapped again meanwhile has a live session.
		 */
		if (!home && !dead)
			key = first;
		else if (key++ == last)
			break;
		cond_resched();
	} while (m);
}

/* Retire and drain all mappings of LMRs of a home; 0: of all homes. May sleep. */
void lite_mapping_retire_home(struct lite_memory *mem, u32 home)
{
	lite_mappings_retire(mem, home, false);
}

/*
 * Members have changed. Retire and drain mappings with a dead session to the home, which may free
 * the LMR without asking this node: accesses through page tables do not notice that. Also those
 * made before this node knew all their nodes, as it may know them now. May sleep.
 */
void lite_mappings_retire_work(struct work_struct *work)
{
	lite_mappings_retire(container_of(work, struct lite_memory, retire_work), 0, true);
}

static u32 lite_revoked_slot(const struct lite_memory *mem, u32 home, u64 id)
{
	return hash_64(lite_mapping_key(home, id) ^ mem->revoked.salt, LITE_REVOKED_BITS);
}

/* Was the LMR, or one of equal hash, revoked or recalled since mem->revoked.count was @count? */
bool lite_revoked_since(const struct lite_memory *mem, u32 home, u64 id, u64 count)
{
	lockdep_assert_held(&mem->map_lock);
	return mem->revoked.last[lite_revoked_slot(mem, home, id)] > count;
}

/*
 * End this node's mapping of an LMR and drain it. @gone: the LMR is gone; else it may be mapped
 * again. May sleep until nothing is in flight. Cannot fail. Return: 0; -EUCLEAN: a store may still
 * carry out a failed operation on this mapping, or on an earlier one that an idle handle still has.
 */
int lite_mapping_revoke(struct lite_memory *mem, u32 home, u64 id, bool gone)
{
	unsigned long key = lite_mapping_key(home, id);
	u32 slot = lite_revoked_slot(mem, home, id);
	struct lite_line_place *left;
	struct lite_mapping *m;
	bool unclean = false;

	spin_lock(&mem->map_lock);
	while (!unclean && (left = lite_line_first(&mem->unclean, key)))
		unclean = lite_mapping_unclean(container_of(left, struct lite_mapping, left));
	m = xa_load(&mem->mappings, key);
	if (m)
		lite_mapping_end(m, gone ? LITE_MAPPING_REVOKED : LITE_MAPPING_RETIRED);
	mem->revoked.last[slot] = ++mem->revoked.count;
	spin_unlock(&mem->map_lock);
	if (m)
		unclean |= lite_mapping_watch(m);
	return unclean ? -EUCLEAN : 0;
}

/* lite_mapping_revoke() of several chunks: all are closed before the first is waited for. */
void lite_mapping_end_chunks(struct lite_memory *mem, u32 home, const struct lite_wire_ends *ends)
{
	struct lite_mapping *m[LITE_ENDS_PER_CALL];
	u32 n = le32_to_cpu(ends->count), i;

	spin_lock(&mem->map_lock);
	for (i = 0; i < n; i++) {
		u64 id = le64_to_cpu(ends->chunk[i]);

		m[i] = xa_load(&mem->mappings, lite_mapping_key(home, id));
		if (m[i])
			lite_mapping_end(m[i], LITE_MAPPING_REVOKED);
		mem->revoked.last[lite_revoked_slot(mem, home, id)] = ++mem->revoked.count;
	}
	spin_unlock(&mem->map_lock);
	/* None can be unclean: the home is the only store of a chunk. */
	for (i = 0; i < n; i++) {
		if (m[i])
			lite_mapping_watch(m[i]);
	}
}

int lite_serve_ends(struct lite_memory *mem, struct lite_conn *conn, const void *req, void *reply)
{
	if (!conn)
		return -EBADMSG;
	lite_mapping_end_chunks(mem, conn->from.node, req);
	return 0;
}

static int lite_serve_end(struct lite_memory *mem, struct lite_conn *conn,
			  const struct lite_wire_id *req, bool gone)
{
	if (!conn)
		return -EBADMSG;
	return lite_mapping_revoke(mem, conn->from.node, le64_to_cpu(req->id), gone);
}

int lite_serve_revoke(struct lite_memory *mem, struct lite_conn *conn, const void *req, void *reply)
{
	return lite_serve_end(mem, conn, req, true);
}

int lite_serve_recall(struct lite_memory *mem, struct lite_conn *conn, const void *req, void *reply)
{
	return lite_serve_end(mem, conn, req, false);
}

/* Send an UNMAP in the session of the MAPs. Return: as lite_mapping_give_back(). */
static bool lite_mapping_unmap(struct lite_conn *conn, const struct lite_wire_unmaps *req)
{
	struct lite_call_desc d = {
		.call = LITE_CALL_LMR_UNMAP,
		.req = req,
		.len = struct_size(req, unmap, le32_to_cpu(req->count)),
		.timeout = 30 * HZ,
	};
	int err;

	do {
		err = lite_kcall(conn, &d);
	} while (err == -ETIMEDOUT && !d.sent && !lite_conn_is_dead(conn));
	if (err)
		lite_conn_kill(conn, err);
	return !err;
}

/*
 * Give @count MAPs of an LMR back to its home, in the session in which they were made; @conn NULL:
 * to this node. @flags: enum lite_wire_unmap_flags. If the call fails, the session is ended, as the
 * home may go on counting them. But a call that only timed out in line for a slot is repeated,
 * because users' slow calls can fill the line. May sleep as long as it takes to get a slot; makes a
 * call. Return: true: the home has been told; false: the session is over.
 */
bool lite_mapping_give_back(struct lite_memory *mem, struct lite_conn *conn, u64 id, u64 count,
			    u32 flags)
{
	struct {
		struct lite_wire_unmaps head;
		struct lite_wire_unmap unmap;
	} req = {
		.head.count = cpu_to_le32(1),
		.unmap.id = cpu_to_le64(id),
		.unmap.flags = cpu_to_le32(flags),
	};

	for (; count > U32_MAX; count -= U32_MAX) {
		if (!lite_mapping_give_back(mem, conn, id, U32_MAX, 0))
			return false;
	}
	req.unmap.count = cpu_to_le32(count);
	/* A call to this node itself cannot fail. */
	if (!conn) {
		lite_home_unmap_own(mem, &req.unmap);
		return true;
	}
	return lite_mapping_unmap(conn, &req.head);
}

/* Drop a reference. May sleep; the last put drains the mapping and calls the home. */
void lite_mapping_put(struct lite_mapping *m)
{
	struct lite_memory *mem = m->mem;
	struct lite_made *made;
	bool told = true;
	u32 flags;

	if (!refcount_dec_and_test(&m->ref))
		return;
	lite_mapping_retire(m);
	spin_lock(&mem->map_lock);
	made = lite_made_detach(m);
	flags = (lite_mapping_unclean(m) ? LITE_UNMAP_UNCLEAN : 0) | (made ? LITE_UNMAP_LAST : 0);
	spin_unlock(&mem->map_lock);
	lite_chunks_put(m);
	/* A revoked LMR is gone: there is nothing to give back. */
	if (m->state != LITE_MAPPING_REVOKED)
		told = lite_mapping_give_back(mem, m->conn, m->id, m->grants, flags);
	if (made)
		lite_made_over(mem, made, told);
	lite_mapping_unwatch(m);
}

/* The last reference to an LMR's mapping is gone: put its chunks, in few calls. May sleep. */
void lite_chunks_put(struct lite_mapping *m)
{
	struct lite_wire_unmaps *req = NULL;
	struct lite_mapping *c;
	unsigned long i;
	u32 n = 0;

	if (m->conn && !xa_empty(&m->chunks))
		req = kzalloc(LITE_PAYLOAD_MAX, GFP_KERNEL);
	xa_for_each(&m->chunks, i, c) {
		xa_erase(&m->chunks, i);
		cond_resched();
		/* Chunks of another session, or of this node, are put one by one. */
		if (!req || c->conn != m->conn || c->grants > U32_MAX) {
			lite_mapping_put(c);
			continue;
		}
		if (!refcount_dec_and_test(&c->ref))
			continue;
		lite_mapping_retire(c);
		if (c->state != LITE_MAPPING_REVOKED)
			req->unmap[n++] = (struct lite_wire_unmap){
				.id = cpu_to_le64(c->id),
				.count = cpu_to_le32(c->grants),
			};
		lite_mapping_unwatch(c);
		req->count = cpu_to_le32(n);
		if (n == LITE_UNMAPS_PER_CALL) {
			lite_mapping_unmap(m->conn, req);
			n = 0;
		}
	}
	if (n)
		lite_mapping_unmap(m->conn, req);
	kfree(req);
}

/*
 * Find byte @in of a local extent of a mapping that the caller has entered. @n: bytes wanted;
 * reduced to contiguous ones. Context: process. Return: NULL: the home sent a wrong address.
 */
void *lite_mapping_address(const struct lite_mapping *m, const struct lite_extent *e, u64 in,
			   size_t *n)
{
	void *base = m->local ? m->local[e - m->extents] : NULL;

	if (unlikely(!base))
		return lite_store_address(m->mem, e->addr + in, n);
	*n = min_t(u64, *n, e->length - in);
	return base + in;
}
