// SPDX-License-Identifier: GPL-2.0
/*
 * The client's side of a ring, from BIND to UNBIND (Documentation/rpc.rst, State machines). The
 * first caller of a function in a session binds a ring. Other callers of the same user wait for
 * that.
 *
 * What runs concurrently: callers, receive handlers, idle_work, unbind_work, and the end of the
 * connection. The state, under rp->lock, says which of them may use a ring: NEW: its maker; LIVE:
 * all; CLOSING: calls under way, the last of which queues unbind_work; DEAD: none. Mirror and
 * object go with the last reference; the tables' reference is dropped after UNBIND or the fence.
 */
#include <linux/slab.h>

#include "function/service.h"

/* In keys of LIVE rings, instead of a uid. */
#define LITE_RING_OF_ALL U32_MAX

/* Drop a reference. Context: process; if it is the last, no locks held. */
void lite_client_ring_put(struct lite_client_ring *ring)
{
	struct lite_conn *conn = ring->rp->conn;
	u32 i;

	if (!refcount_dec_and_test(&ring->ref))
		return;
	for (i = 0; i < LITE_RPC_DEPTH; i++) {
		lite_area_put(ring->slot[i].request);
		lite_area_put(ring->slot[i].reply);
	}
	lite_area_put(ring->area);
	kfree(ring->remote);
	kvfree(ring->map.bits);
	kvfree(ring);
	lite_conn_put(conn);
}

static int lite_client_ring_tell_unbind(struct lite_rpc_peer *rp, u32 index)
{
	struct lite_wire_rpc_unbind req = { .ring = cpu_to_le32(index) };
	struct lite_call_desc d = {
		LITE_REQUEST(LITE_CALL_RPC_UNBIND, req),
		.slot_timeout = LITE_SLOT_SURELY,
	};
	int err = lite_rpc_peer_call(rp, &d);

	if (!err)
		return 0;
	if (rp->conn)
		/* The server may still use the memory: end the connection. */
		lite_conn_kill(rp->conn, err);
	else
		/* Only a stopping node may have ended the ring itself before. */
		WARN_ON_ONCE(!READ_ONCE(rp->svc->stopping));
	return err;
}

static void lite_unbind_work(struct work_struct *work)
{
	struct lite_client_ring *ring = container_of(work, struct lite_client_ring, unbind_work);
	struct lite_rpc_peer *rp = ring->rp;
	bool mine = false;

	/* Leave the table before UNBIND, after which the server may use the number again. */
	spin_lock(&rp->lock);
	if (ring->state == LITE_CLIENT_RING_CLOSING) {
		ring->state = LITE_CLIENT_RING_DEAD;
		/* A ring that was never LIVE is not in the table. */
		xa_cmpxchg(&rp->by_index, ring->index, ring, NULL, 0);
		mine = true;
	}
	spin_unlock(&rp->lock);
	if (mine) {
		if (lite_client_ring_tell_unbind(rp, ring->index) && rp->conn)
			/* After the fence nothing is in flight. */
			wait_for_completion(&rp->conn->fenced);
		lite_client_ring_put(ring); /* the tables' */
	}
	lite_client_ring_put(ring);
}

/* Unbind a CLOSING ring when no call is under way any more. */
void lite_client_ring_check_empty(struct lite_client_ring *ring)
{
	lockdep_assert_held(&ring->rp->lock);
	if (ring->state != LITE_CLIENT_RING_CLOSING || ring->slots_used)
		return;
	refcount_inc(&ring->ref);
	if (!queue_work(ring->rp->svc->wq[LITE_WQ_RINGS], &ring->unbind_work))
		lite_client_ring_put(ring);
}

/* Begin no more calls through a ring, and unbind it when it is empty. rp->lock is held. */
void lite_client_ring_close_locked(struct lite_client_ring *ring)
{
	lockdep_assert_held(&ring->rp->lock);
	if (ring->state != LITE_CLIENT_RING_LIVE)
		return;
	ring->state = LITE_CLIENT_RING_CLOSING;
	rb_erase(&ring->by_function, &ring->rp->by_function);
	lite_ring_wait_close(ring);
	lite_client_ring_check_empty(ring);
}

/* As lite_client_ring_close_locked(); the caller has a reference, no lock. Process context. */
void lite_client_ring_close(struct lite_client_ring *ring)
{
	spin_lock(&ring->rp->lock);
	lite_client_ring_close_locked(ring);
	spin_unlock(&ring->rp->lock);
}

/* Close the ring with number @index, if there is one. Process context. */
void lite_client_ring_close_index(struct lite_rpc_peer *rp, u32 index)
{
	struct lite_client_ring *ring;

	spin_lock(&rp->lock);
	ring = xa_load(&rp->by_index, index);
	if (ring)
		lite_client_ring_close_locked(ring);
	spin_unlock(&rp->lock);
}

/* The bound ring with the lowest number from *@index on, or NULL. */
static struct lite_client_ring *lite_client_ring_next(struct lite_rpc_peer *rp,
						      unsigned long *index)
{
	lockdep_assert_held(&rp->lock);
	return xa_find(&rp->by_index, index, LITE_IMM_RING_MAX, XA_PRESENT);
}

/* Close idle rings. Context: process. */
void lite_client_rings_idle(struct lite_rpc_peer *rp)
{
	struct lite_client_ring *ring;
	unsigned long index = 0;

	do {
		spin_lock(&rp->lock);
		ring = lite_client_ring_next(rp, &index);
		if (ring && !ring->slots_used && lite_line_empty(&ring->line) &&
		    time_after(jiffies, ring->used + LITE_CLIENT_RING_IDLE))
			lite_client_ring_close_locked(ring);
		spin_unlock(&rp->lock);
		index++;
	} while (ring);
}

/* End all calls of a dying connection. Context: process. */
void lite_client_rings_down(struct lite_rpc_peer *rp)
{
	struct lite_client_ring *ring;
	unsigned long index = 0;
	u64 used;

	do {
		spin_lock(&rp->lock);
		rp->dead = true; /* No ring is added, and no call leaves a line for a slot. */
		ring = lite_client_ring_next(rp, &index);
		if (ring)
			lite_ring_wait_close(ring);
		for (used = ring ? ring->slots_used : 0; used; used &= used - 1)
			lite_slot_end(ring, __ffs64(used), -EHOSTDOWN);
		spin_unlock(&rp->lock);
		index++;
	} while (ring);
}

/*
 * Free the rings of a connection that is down and fenced: its peer writes the mirrors no more. NEW
 * rings are left to their makers, and those that were never LIVE to their @unbind_work.
 */
void lite_client_rings_gone(struct lite_rpc_peer *rp)
{
	struct lite_client_ring *ring;
	unsigned long index = 0;
	u32 i;

	for (;;) {
		spin_lock(&rp->lock);
		ring = lite_client_ring_next(rp, &index);
		if (ring) {
			if (ring->state == LITE_CLIENT_RING_LIVE)
				rb_erase(&ring->by_function, &rp->by_function);
			ring->state = LITE_CLIENT_RING_DEAD;
			xa_erase(&rp->by_index, index);
			/* ABANDONED and CANCELLING: slots that only the peer still held. */
			for (i = 0; i < LITE_RPC_DEPTH; i++) {
				if (ring->slot[i].state > LITE_CLIENT_RING_ENDED)
					lite_slot_free(ring, i);
			}
		}
		spin_unlock(&rp->lock);
		if (!ring)
			return;
		lite_client_ring_put(ring);
	}
}

/* lite_call_desc.late: the caller has given up waiting for BIND, so give the ring back. */
static void lite_client_ring_late(void *ctx, struct lite_conn *conn, const void *reply)
{
	const struct lite_wire_rpc_bind_reply *r = reply;

	lite_client_ring_tell_unbind(conn->service, le32_to_cpu(r->ring));
}

static int lite_client_ring_map(struct lite_client_ring *ring)
{
	u32 most = LITE_RPC_HEADER + lite_rpc_body_max(ring->max_request, ring->max_reply);
	u32 chunk = ring->area->chunk_bytes / LITE_RING_UNIT;
	u32 units = lite_area_units(ring->area);
	unsigned long *bits = kvcalloc(BITS_TO_LONGS(units), sizeof(*bits), GFP_KERNEL);

	if (!bits)
		return -ENOMEM;
	lite_ring_map_init(&ring->map, units, chunk, bits);
	ring->limit = lite_ring_limit(units, chunk, lite_ring_units(most));
	return 0;
}

/*
 * Within a node the ring is its own mirror. Otherwise the mirror may be shorter than the ring:
 * records are taken only where both are.
 */
static struct lite_area *lite_client_ring_area(struct lite_client_ring *ring,
					       const struct lite_wire_rpc_bind_reply *r)
{
	struct lite_service *svc = ring->rp->svc;
	struct lite_area *area = ERR_PTR(-EHOSTDOWN);
	struct lite_ring *served;
	u32 uid = ring->acl.uid;

	/* With root squash, another node's root gets nothing of what is reserved for root. */
	if (!uid && svc->mem->root_squash)
		uid = LITE_UID_NOBODY;
	if (ring->rp->conn)
		return lite_ring_area_ample(svc, true, uid, le32_to_cpu(r->chunk_bytes),
					    le32_to_cpu(r->n_chunks));
	spin_lock(&svc->lock);
	served = xa_load(&ring->rp->rings, ring->index);
	if (served) {
		area = served->area;
		kref_get(&area->ref);
	}
	spin_unlock(&svc->lock);
	return area;
}

static int lite_client_ring_fill(struct lite_client_ring *ring,
				 const struct lite_wire_rpc_bind_reply *r)
{
	const struct lite_wire_rpc_func *f = &r->func;
	u32 n = le32_to_cpu(r->n_chunks);
	struct lite_area *area;
	u32 i;

	ring->cookie = le64_to_cpu(f->cookie);
	ring->max_request = le32_to_cpu(f->max_request);
	ring->max_reply = le32_to_cpu(f->max_reply);
	ring->acl.uid = le32_to_cpu(f->uid);
	ring->acl.gid = le32_to_cpu(f->gid);
	ring->acl.mode = le32_to_cpu(f->mode);
	ring->squash = le32_to_cpu(f->squash);
	ring->index = le32_to_cpu(r->ring);
	ring->depth = le32_to_cpu(r->depth);
	ring->remote = kcalloc(n, sizeof(*ring->remote), GFP_KERNEL);
	if (!ring->remote)
		return -ENOMEM;
	for (i = 0; i < n; i++)
		ring->remote[i] = le64_to_cpu(r->chunk[i]);
	area = lite_client_ring_area(ring, r);
	if (IS_ERR(area))
		return PTR_ERR(area);
	ring->area = area;
	return lite_client_ring_map(ring);
}

/* @bound is set if the server has made a ring, also on failure. */
static int lite_client_ring_bind(struct lite_client_ring *ring, struct lite_rcall *call,
				 bool *bound)
{
	struct lite_wire_rpc_bind req = { .function = cpu_to_le32(ring->function) };
	struct lite_call_desc d = {
		LITE_REQUEST(LITE_CALL_RPC_BIND, req),
		.reply_max = LITE_PAYLOAD_MAX,
		.uid = call->cred->uid,
		.deadline = call->deadline ?: 1,
		.killable = true,
		.late = lite_client_ring_late,
	};
	int err;

	*bound = false;
	d.reply = kzalloc(LITE_PAYLOAD_MAX, GFP_KERNEL_ACCOUNT);
	if (!d.reply)
		return -ENOMEM;
	err = lite_rpc_peer_call(ring->rp, &d);
	*bound = !err;
	if (!err)
		err = lite_client_ring_fill(ring, d.reply);
	kfree(d.reply);
	return err;
}

static u64 lite_client_ring_key(u32 function, u32 uid)
{
	return (u64)function << 32 | uid;
}

LITE_TREE(lite_client_ring_tree, struct lite_client_ring, by_function, key,
	  lite_order(*(const u64 *)key, *(const u64 *)has))

/* The LIVE ring of a function, if @uid is LITE_RING_OF_ALL, else a user's NEW one; or NULL. */
static struct lite_client_ring *lite_client_ring_of(struct lite_rpc_peer *rp, u32 function, u32 uid)
{
	u64 key = lite_client_ring_key(function, uid);

	lockdep_assert_held(&rp->lock);
	return lite_client_ring_tree_find(&key, &rp->by_function);
}

/* The ring for new calls of a user to a function, LIVE or NEW, or NULL. */
static struct lite_client_ring *lite_client_ring_find(struct lite_rpc_peer *rp, u32 function,
						      u32 uid)
{
	return lite_client_ring_of(rp, function, LITE_RING_OF_ALL) ?:
	       lite_client_ring_of(rp, function, uid);
}

static void lite_client_ring_enter(struct lite_client_ring *ring, u32 uid)
{
	lockdep_assert_held(&ring->rp->lock);
	ring->key = lite_client_ring_key(ring->function, uid);
	rb_add(&ring->by_function, &ring->rp->by_function, lite_client_ring_tree_less);
}

/* Bind a NEW ring. On failure it leaves the tables. */
static int lite_client_ring_make(struct lite_client_ring *ring, struct lite_rcall *call)
{
	struct lite_rpc_peer *rp = ring->rp;
	bool bound, reserved;
	int err = lite_client_ring_bind(ring, call, &bound);

	/* The function's owner pays for the ring: keep none for a user that may not call it. */
	if (!err && !lite_client_ring_lets(ring, call))
		err = -EACCES;
	else if (!err)
		err = xa_insert(&rp->by_index, ring->index, NULL, GFP_KERNEL);
	reserved = !err;
	if (err == -EBUSY && bound) {
		/* The peer gave one number to two rings. */
		lite_conn_kill(rp->conn, -EPROTO);
		err = -EPROTO;
	}
	spin_lock(&rp->lock);
	rb_erase(&ring->by_function, &rp->by_function);
	if (!err && rp->dead)
		err = -EHOSTDOWN;
	/* Another user has bound a ring meanwhile. */
	if (!err && lite_client_ring_of(rp, ring->function, LITE_RING_OF_ALL))
		err = -ESTALE;
	if (!err) {
		/* The entry is reserved: this needs no memory. */
		xa_store(&rp->by_index, ring->index, ring, GFP_ATOMIC);
		ring->used = jiffies;
		ring->state = LITE_CLIENT_RING_LIVE;
		lite_client_ring_enter(ring, LITE_RING_OF_ALL);
	} else if (bound) {
		/* unbind_work sends UNBIND, which must not be interrupted or lack a slot. */
		if (reserved)
			xa_release(&rp->by_index, ring->index);
		ring->state = LITE_CLIENT_RING_CLOSING;
		lite_client_ring_check_empty(ring);
	} else {
		ring->state = LITE_CLIENT_RING_DEAD;
	}
	spin_unlock(&rp->lock);
	/* -ESTALE: these callers try again, as the maker's signal or time-out is not theirs. */
	lite_ring_wait_end(ring, &ring->binding,
			   !err || err == -EINTR || err == -ETIMEDOUT ? -ESTALE : err);
	if (!err) {
		queue_delayed_work(rp->svc->wq[LITE_WQ_CALLS], &rp->svc->idle_work,
				   LITE_CLIENT_RING_IDLE);
		return 0;
	}
	if (!bound)
		lite_client_ring_put(ring); /* the tables' */
	return err;
}

static struct lite_client_ring *lite_client_ring_alloc(struct lite_rpc_peer *rp, u32 function)
{
	struct lite_client_ring *ring = kvzalloc(sizeof(*ring), GFP_KERNEL);

	if (!ring)
		return NULL;
	refcount_set(&ring->ref, 1);
	ring->rp = rp;
	ring->function = function;
	ring->state = LITE_CLIENT_RING_NEW;
	lite_line_init(&ring->line);
	lite_line_init(&ring->binding);
	INIT_LIST_HEAD(&ring->line_list);
	INIT_LIST_HEAD(&ring->cancel_list);
	INIT_WORK(&ring->line_work, lite_ring_line_work);
	INIT_WORK(&ring->unbind_work, lite_unbind_work);
	lite_conn_get(rp->conn);
	return ring;
}

static int lite_client_ring_in(struct lite_rpc_peer *rp, struct lite_rcall *call)
{
	struct lite_client_ring *ring, *new = NULL;
	int err = 0;

	spin_lock(&rp->lock);
	ring = lite_client_ring_find(rp, call->function, call->cred->uid);
	if (!ring && !(call->flags & LITE_RCALL_TRY)) {
		spin_unlock(&rp->lock);
		new = lite_client_ring_alloc(rp, call->function);
		if (!new)
			return -ENOMEM;
		spin_lock(&rp->lock);
		ring = lite_client_ring_find(rp, call->function, call->cred->uid);
	}
	if (call->flags & LITE_RCALL_TRY && (!ring || ring->state == LITE_CLIENT_RING_NEW)) {
		err = -EAGAIN;
	} else if (ring) {
		refcount_inc(&ring->ref);
		call->ring = ring;
		if (ring->state == LITE_CLIENT_RING_NEW) {
			err = -EINPROGRESS;
			call->part = NULL;
			call->line_err = err;
			call->place.kind = call->cred->uid;
			lite_line_enter(&ring->binding, &call->place, false);
		}
	} else if (rp->dead) {
		err = -EHOSTDOWN;
	} else {
		ring = new;
		refcount_inc(&ring->ref); /* the first one is the tables' */
		call->ring = ring;
		lite_client_ring_enter(ring, call->cred->uid);
	}
	spin_unlock(&rp->lock);
	if (new && ring != new)
		lite_client_ring_put(new);
	if (!err && ring == new)
		return lite_client_ring_make(ring, call);
	if (err == -EINPROGRESS && !call->in_turn)
		return lite_ring_wait_sleep(call);
	return err;
}

/*
 * Get a ring for a call, binding one if need be. Sets @call->ring, with a reference, also on some
 * failures. May sleep; killable. Return: 0; -ESTALE: try again; -EHOSTDOWN, -EHOSTUNREACH,
 * -ECONNREFUSED, -EACCES, -ENOBUFS, -ENOMEM, -ETIMEDOUT, -EINTR; -EAGAIN: only with LITE_RCALL_TRY;
 * -EINPROGRESS: another call is binding it, see lite_ring_wait_take().
 */
int lite_client_ring_get(struct lite_rcall *call)
{
	struct lite_service *svc = call->svc;
	struct lite_conn *conn;
	int err;

	if (call->here || call->node == lite_cluster_id(svc->cl))
		return lite_client_ring_in(&svc->local, call);
	conn = lite_cluster_conn_get(svc->cl, call->node);
	if (!conn)
		return lite_cluster_incarnation(svc->cl, call->node) ? -EHOSTDOWN : -EHOSTUNREACH;
	err = lite_client_ring_in(conn->service, call);
	lite_conn_put(conn);
	return err;
}

/* May a call's user call the function of a bound ring? Any context. */
bool lite_client_ring_lets(const struct lite_client_ring *ring, const struct lite_rcall *call)
{
	/* Most functions are open to all: then skip the groups. */
	return (ring->acl.mode & 0222) == 0222 ||
	       lite_rights_of(call->cred, 0, &ring->acl, ring->squash) & LITE_RIGHT_WRITE;
}

/*
 * Check permission, length and registration of a call. Return: 0, -EACCES, -E2BIG; -ECONNREFUSED:
 * the function is not the registration that the caller has found.
 */
int lite_client_ring_may_call(const struct lite_client_ring *ring, struct lite_rcall *call)
{
	if (call->registration != LITE_ANY_REGISTRATION &&
	    call->registration != (ring->cookie & LITE_FOUND_COOKIE))
		return -ECONNREFUSED;
	if (!lite_client_ring_lets(ring, call))
		return -EACCES;
	return call->length <= ring->max_request ? 0 : -E2BIG;
}
