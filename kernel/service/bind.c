// SPDX-License-Identifier: GPL-2.0
/*
 * The client's side of a ring: from BIND to UNBIND.
 *
 * Normal operation: the first caller of a function in a session binds it; other
 * callers wait for that. A ring that is idle for LITE_BIND_IDLE is closed, and
 * the next caller binds anew.
 *
 * What runs concurrently: callers, receive handlers, idle_work, unbind_work,
 * and the end of the connection. The state, under rp->lock, says which of them
 * may use a bind: NEW: its maker; LIVE: all; CLOSING: calls under way, the last
 * of which queues unbind_work; DEAD: none. Mirror and object go with the last
 * reference; the tables' reference is dropped after UNBIND or the fence.
 */
#include <linux/cred.h>
#include <linux/slab.h>

#include "../wait.h"
#include "service.h"

static void lite_bind_release(struct kref *ref)
{
	struct lite_bind *bind = container_of(ref, struct lite_bind, ref);
	struct lite_conn *conn = bind->rp->conn;
	u32 i;

	for (i = 0; i < LITE_RPC_DEPTH; i++) {
		lite_bulk_put(bind->slot[i].request);
		lite_bulk_put(bind->slot[i].reply);
	}
	if (bind->area)
		lite_area_put(bind->area);
	kfree(bind->remote);
	kvfree(bind->map.bits);
	kvfree(bind);
	if (conn)
		lite_conn_put(conn);
}

/* Drop a reference. Context: process; no locks held. */
void lite_bind_put(struct lite_bind *bind)
{
	kref_put(&bind->ref, lite_bind_release);
}

/* ---- the end ------------------------------------------------------------- */

static int lite_bind_tell_unbind(struct lite_rpc_peer *rp, u32 index)
{
	struct lite_wire_rpc_unbind req = { .ring = cpu_to_le32(index) };
	struct lite_call_desc d = {
		.call = LITE_CALL_RPC_UNBIND,
		.req = &req,
		.len = sizeof(req),
		.slot_timeout = LITE_SLOT_SURELY,
	};
	struct lite_ring *ring;
	int err;

	if (rp->conn) {
		err = lite_rpc_call(rp->conn, &d);
		/* The server may still use the memory. */
		if (err)
			lite_conn_kill(rp->conn, -EPROTO);
		return err;
	}
	spin_lock(&rp->svc->lock);
	ring = xa_load(&rp->rings, index);
	if (ring)
		kref_get(&ring->ref);
	spin_unlock(&rp->svc->lock);
	/* On success the table's reference is ours to drop. */
	err = ring ? lite_ring_end(ring, false) : -EHOSTDOWN;
	if (!err)
		lite_ring_put(ring);
	if (ring)
		lite_ring_put(ring);
	/* A node that stops ends its rings itself, maybe just now. */
	WARN_ON_ONCE(err && !READ_ONCE(rp->svc->stopping));
	return err;
}

static void lite_unbind_work(struct work_struct *work)
{
	struct lite_bind *bind = container_of(work, struct lite_bind,
					      unbind_work);
	struct lite_rpc_peer *rp = bind->rp;
	bool mine = false;

	/* Before UNBIND: then the server may use the number again. */
	spin_lock(&rp->lock);
	if (bind->state == LITE_BIND_CLOSING) {
		bind->state = LITE_BIND_DEAD;
		list_del_init(&bind->list);
		xa_erase(&rp->by_index, bind->index);
		mine = true;
	}
	spin_unlock(&rp->lock);
	if (mine) {
		if (lite_bind_tell_unbind(rp, bind->index) && rp->conn)
			/* After that nothing is in flight. */
			wait_for_completion(&rp->conn->fenced);
		lite_bind_put(bind); /* the tables' */
	}
	lite_bind_put(bind);
}

/* Unbind a CLOSING ring when no call is under way any more. */
void lite_bind_check_empty(struct lite_bind *bind)
{
	lockdep_assert_held(&bind->rp->lock);
	if (bind->state != LITE_BIND_CLOSING || bind->slots_used)
		return;
	kref_get(&bind->ref);
	if (!queue_work(bind->rp->svc->ring_wq, &bind->unbind_work))
		kref_put(&bind->ref, lite_bind_release);
}

static void __lite_bind_close(struct lite_bind *bind)
{
	lockdep_assert_held(&bind->rp->lock);
	if (bind->state != LITE_BIND_LIVE)
		return;
	bind->state = LITE_BIND_CLOSING;
	/* Calls in line bind anew. */
	lite_line_end(bind, -ESTALE);
	lite_bind_check_empty(bind);
}

/*
 * Make no more calls through a ring, then give it back. The caller has a
 * reference. Context: process.
 */
void lite_bind_close(struct lite_bind *bind)
{
	spin_lock(&bind->rp->lock);
	__lite_bind_close(bind);
	spin_unlock(&bind->rp->lock);
}

/*
 * lite_bind_close() of the ring with number @index, if there is one. Context:
 * process.
 */
void lite_bind_close_index(struct lite_rpc_peer *rp, u32 index)
{
	struct lite_bind *bind;

	spin_lock(&rp->lock);
	bind = xa_load(&rp->by_index, index);
	if (bind)
		__lite_bind_close(bind);
	spin_unlock(&rp->lock);
}

/* Close idle rings; with @all, all rings. Context: process. */
void lite_binds_idle(struct lite_rpc_peer *rp, bool all)
{
	struct lite_bind *bind;

	spin_lock(&rp->lock);
	list_for_each_entry(bind, &rp->binds, list) {
		if (all || (!bind->slots_used && list_empty(&bind->line) &&
			    time_after(jiffies, bind->used + LITE_BIND_IDLE)))
			__lite_bind_close(bind);
	}
	spin_unlock(&rp->lock);
}

/* End all calls of a dying connection. Context: process. */
void lite_binds_down(struct lite_rpc_peer *rp)
{
	struct lite_bind *bind;
	u32 i;

	spin_lock(&rp->lock);
	rp->dead = true;
	list_for_each_entry(bind, &rp->binds, list) {
		lite_line_end(bind, -ESTALE);
		for (i = 0; i < LITE_RPC_DEPTH; i++)
			lite_slot_end(bind, i, -EHOSTDOWN);
	}
	spin_unlock(&rp->lock);
}

/*
 * Free the binds of a connection that is down and fenced: the peer cannot write
 * the mirrors any more. Context: may sleep.
 */
void lite_binds_gone(struct lite_rpc_peer *rp)
{
	struct lite_bind *bind;
	u32 i;

	for (;;) {
		spin_lock(&rp->lock);
		bind = list_first_entry_or_null(&rp->binds, struct lite_bind,
						list);
		if (bind) {
			/* If it is NEW, its maker checks the state. */
			bind->state = LITE_BIND_DEAD;
			list_del_init(&bind->list);
			if (bind->area)
				xa_erase(&rp->by_index, bind->index);
			/* Slots that only the peer still held. */
			for (i = 0; i < LITE_RPC_DEPTH; i++) {
				if (bind->slot[i].state > LITE_BIND_ENDED)
					lite_slot_free(bind, i);
			}
		}
		spin_unlock(&rp->lock);
		if (!bind)
			return;
		lite_bind_put(bind);
	}
}

/* ---- binding ------------------------------------------------------------- */

/* The caller has given up waiting for BIND: give the ring back. */
static void lite_bind_late(void *ctx, struct lite_conn *conn,
			   const void *reply)
{
	const struct lite_wire_rpc_bind_reply *r = reply;

	lite_bind_tell_unbind(conn->service, le32_to_cpu(r->ring));
}

static int lite_bind_map(struct lite_bind *bind)
{
	u32 units = lite_area_units(bind->area);
	u64 *bits = kvcalloc(LITE_RING_MAP_WORDS(units), sizeof(*bits),
			     GFP_KERNEL);

	if (!bits)
		return -ENOMEM;
	lite_ring_map_init(&bind->map, units,
			   bind->area->chunk_bytes / LITE_RING_UNIT, bits);
	return 0;
}

static void lite_bind_learn(struct lite_bind *bind,
			    const struct lite_wire_rpc_func *f)
{
	bind->cookie = le64_to_cpu(f->cookie);
	bind->max_request = le32_to_cpu(f->max_request);
	bind->max_reply = le32_to_cpu(f->max_reply);
	bind->uid = le32_to_cpu(f->uid);
	bind->gid = le32_to_cpu(f->gid);
	bind->mode = le32_to_cpu(f->mode);
	bind->squash = le32_to_cpu(f->squash);
}

static int lite_bind_fill(struct lite_bind *bind,
			  const struct lite_wire_rpc_bind_reply *r)
{
	u32 n = le32_to_cpu(r->n_chunks);
	u32 i;

	lite_bind_learn(bind, &r->func);
	bind->index = le32_to_cpu(r->ring);
	bind->depth = le32_to_cpu(r->depth);
	bind->remote = kcalloc(n, sizeof(*bind->remote), GFP_KERNEL);
	if (!bind->remote)
		return -ENOMEM;
	for (i = 0; i < n; i++)
		bind->remote[i] = le64_to_cpu(r->chunk[i]);
	bind->area = lite_area_make(bind->rp->svc, bind->rp->svc->fab,
				    bind->uid, le32_to_cpu(r->chunk_bytes), n);
	if (IS_ERR(bind->area)) {
		int err = PTR_ERR(bind->area);

		bind->area = NULL;
		return err;
	}
	return lite_bind_map(bind);
}

static int lite_bind_remote(struct lite_bind *bind, struct lite_rcall *call)
{
	struct lite_wire_rpc_bind req = {
		.function = cpu_to_le32(bind->function),
	};
	unsigned long now = jiffies;
	struct lite_call_desc d = {
		.call = LITE_CALL_RPC_BIND,
		.req = &req,
		.len = sizeof(req),
		.reply_max = LITE_PAYLOAD_MAX,
		.timeout = time_before(now, call->deadline) ?
				   call->deadline - now : 1,
		.killable = true,
		.late = lite_bind_late,
	};
	const struct lite_wire_rpc_bind_reply *r;
	int err;

	d.reply = kmalloc(LITE_PAYLOAD_MAX, GFP_KERNEL);
	if (!d.reply)
		return -ENOMEM;
	err = lite_rpc_call(bind->rp->conn, &d);
	if (!err) {
		r = d.reply;
		err = lite_bind_fill(bind, r);
		if (err)
			lite_bind_tell_unbind(bind->rp, le32_to_cpu(r->ring));
	}
	kfree(d.reply);
	return err;
}

/* Bind a function of this node: ring and mirror are the same memory. */
static int lite_bind_local(struct lite_bind *bind)
{
	struct lite_rpc_peer *rp = bind->rp;
	struct lite_ring *ring = lite_ring_make(rp, bind->function);
	struct lite_wire_rpc_func f;
	int err;

	if (IS_ERR(ring))
		return PTR_ERR(ring);
	spin_lock(&rp->svc->lock);
	lite_func_describe(ring->func, &f);
	spin_unlock(&rp->svc->lock);
	lite_bind_learn(bind, &f);
	bind->index = ring->index;
	bind->depth = LITE_RPC_DEPTH;
	bind->area = ring->area;
	kref_get(&ring->area->ref);
	lite_ring_put(ring);
	err = lite_bind_map(bind);
	if (err)
		lite_bind_tell_unbind(rp, bind->index);
	return err;
}

/* The maker's signal or time-out is not that of other callers: they retry. */
static int lite_bind_befell(int err)
{
	return err == -EINTR || err == -ETIMEDOUT ? -ESTALE : err;
}

/*
 * Bind a NEW entry. On failure the tables' reference is the caller's.
 */
static int lite_bind_make(struct lite_bind *bind, struct lite_rcall *call)
{
	struct lite_rpc_peer *rp = bind->rp;
	bool bound, dead = false;
	int err;

	err = rp->conn ? lite_bind_remote(bind, call) : lite_bind_local(bind);
	bound = !err;
	if (bound)
		err = xa_reserve(&rp->by_index, bind->index, GFP_KERNEL);
	spin_lock(&rp->lock);
	if (rp->dead && !err)
		err = -EHOSTDOWN;
	if (!err && xa_load(&rp->by_index, bind->index)) {
		/* The peer gave one number to two rings. */
		lite_conn_kill(rp->conn, -EPROTO);
		err = -EPROTO;
	}
	dead = bind->state == LITE_BIND_DEAD;
	if (!err && !dead) {
		/* The entry is reserved: this needs no memory. */
		xa_store(&rp->by_index, bind->index, bind, GFP_ATOMIC);
		bind->used = jiffies;
		bind->state = LITE_BIND_LIVE;
	} else {
		bind->err = err ?: -EHOSTDOWN;
		bind->state = LITE_BIND_DEAD;
		list_del_init(&bind->list);
	}
	/* They look again. */
	lite_line_end(bind, lite_bind_befell(bind->err) ?: -ESTALE);
	spin_unlock(&rp->lock);
	complete_all(&bind->ready);
	if (!err && !dead) {
		queue_delayed_work(rp->svc->wq, &rp->svc->idle_work,
				   LITE_BIND_IDLE);
		return 0;
	}
	if (bound) {
		xa_release(&rp->by_index, bind->index);
		lite_bind_tell_unbind(rp, bind->index);
	}
	if (!dead)
		lite_bind_put(bind); /* the tables' */
	return bind->err;
}

static struct lite_bind *lite_bind_find(struct lite_rpc_peer *rp, u32 function)
{
	struct lite_bind *bind;

	lockdep_assert_held(&rp->lock);
	list_for_each_entry(bind, &rp->binds, list) {
		if (bind->function == function &&
		    (bind->state == LITE_BIND_LIVE ||
		     bind->state == LITE_BIND_NEW))
			return bind;
	}
	return NULL;
}

static struct lite_bind *lite_bind_alloc(struct lite_rpc_peer *rp, u32 function)
{
	struct lite_bind *bind = kvzalloc(sizeof(*bind), GFP_KERNEL);

	if (!bind)
		return NULL;
	kref_init(&bind->ref);
	bind->rp = rp;
	bind->function = function;
	bind->state = LITE_BIND_NEW;
	lite_pace_init(&bind->pace, LITE_PACE_WORTH_PROGRAM_NS);
	init_completion(&bind->ready);
	INIT_LIST_HEAD(&bind->list);
	INIT_LIST_HEAD(&bind->line);
	INIT_LIST_HEAD(&bind->line_list);
	INIT_WORK(&bind->unbind_work, lite_unbind_work);
	if (rp->conn)
		lite_conn_get(rp->conn);
	return bind;
}

static int lite_bind_await(struct lite_bind *bind, struct lite_rcall *call)
{
	unsigned long now = jiffies;
	long ret;

	if (time_after_eq(now, call->deadline))
		return -ETIMEDOUT;
	ret = lite_wait_done_timeout(&bind->ready, call->deadline - now);
	if (ret <= 0)
		return ret ? -EINTR : -ETIMEDOUT;
	return lite_bind_befell(bind->err);
}

static int lite_bind_in(struct lite_rpc_peer *rp, struct lite_rcall *call)
{
	struct lite_bind *bind, *new = NULL;
	bool ready = false;
	int err = 0;

	spin_lock(&rp->lock);
	bind = lite_bind_find(rp, call->function);
	if (call->flags & LITE_RCALL_TRY &&
	    (!bind || bind->state == LITE_BIND_NEW)) {
		spin_unlock(&rp->lock);
		return -EAGAIN;
	}
	if (!bind) {
		spin_unlock(&rp->lock);
		new = lite_bind_alloc(rp, call->function);
		if (!new)
			return -ENOMEM;
		spin_lock(&rp->lock);
		bind = lite_bind_find(rp, call->function);
	}
	if (bind) {
		kref_get(&bind->ref);
		/* If not LIVE, the maker's fields are not visible yet. */
		ready = bind->state == LITE_BIND_LIVE;
		if (!ready && call->in_turn) {
			call->bind = bind;
			lite_line_enter_new(call);
			err = -EINPROGRESS;
		}
	} else if (rp->dead) {
		err = -EHOSTDOWN;
	} else {
		bind = new;
		kref_get(&bind->ref); /* the first one is the tables' */
		list_add(&bind->list, &rp->binds);
	}
	spin_unlock(&rp->lock);
	if (new && bind != new)
		lite_bind_put(new);
	if (err)
		return err;
	if (bind == new)
		err = lite_bind_make(bind, call);
	else if (!ready)
		err = lite_bind_await(bind, call);
	if (err) {
		lite_bind_put(bind);
		return err;
	}
	call->bind = bind;
	return 0;
}

/**
 * lite_bind_get - get a ring for a call, binding the function if need be
 * @call: its @bind is set, with a reference
 *
 * Context: may sleep; killable.
 * Return: 0; -ESTALE: try again; -EHOSTDOWN, -EHOSTUNREACH, -ECONNREFUSED,
 * -ENOBUFS, -ENOMEM, -ETIMEDOUT, -EINTR; with LITE_RCALL_TRY: -EAGAIN;
 * -EINPROGRESS: another call is binding it, see lite_line_take().
 */
int lite_bind_get(struct lite_rcall *call)
{
	struct lite_service *svc = call->svc;
	struct lite_conn *conn;
	struct lite_peer *peer;
	int err;

	if (call->node == lite_cluster_id(svc->cl))
		return lite_bind_in(&svc->local, call);
	peer = lite_peer_find(svc->cl, call->node);
	if (!peer)
		return -EHOSTUNREACH;
	conn = lite_peer_conn_get(peer);
	if (conn) {
		err = lite_bind_in(conn->service, call);
		lite_conn_put(conn);
	} else {
		err = READ_ONCE(peer->left) ? -EHOSTUNREACH : -EHOSTDOWN;
	}
	lite_peer_put(peer);
	return err;
}

/**
 * lite_bind_may_call - check permission, length and registration of a call
 * @bind: of the function
 * @call: call, with its caller's credentials
 *
 * Context: any.
 * Return: 0, -EACCES, -E2BIG; -ECONNREFUSED: the function is not the
 * registration that the caller has found.
 */
int lite_bind_may_call(const struct lite_bind *bind, struct lite_rcall *call)
{
	struct lite_acl acl = {
		.uid = bind->uid,
		.gid = bind->gid,
		.mode = bind->mode,
	};

	if (call->registration != LITE_ANY_REGISTRATION &&
	    call->registration != (bind->cookie & LITE_FOUND_COOKIE))
		return -ECONNREFUSED;
	/* Most functions are open to all: then skip the groups. */
	if ((bind->mode & 0222) != 0222 &&
	    !(lite_rights_of(call->cred, 0, &acl, bind->squash) &
	      LITE_RIGHT_WRITE))
		return -EACCES;
	return call->length <= bind->max_request ? 0 : -E2BIG;
}
