// SPDX-License-Identifier: GPL-2.0
/*
 * Records that a process reads although their callers have given up.
 *
 * Normal operation: CANCEL of a request in place is answered by KEPT: there will
 * be no reply, and the record is not free. Its call is not under way any more, and
 * counts no more for what one node may have under way to another: else a process
 * that gives nothing back could keep a node from calling all others there. It has
 * its slot and its record yet, and so is in the way of calls of its own function
 * only. When it is given back, FREED says so, of many together.
 *
 * FREED may overtake what is done about the answer to CANCEL: the slot is
 * CANCELLING then, and comes free; who looks at it afterwards finds it free, or
 * with another call.
 */
#include <linux/slab.h>

#include "inbox.h"

/* ---- the server's side --------------------------------------------------- */

/**
 * lite_request_tell_freed - a request that was kept is given back
 * @req: BUSY, the caller's; not any more afterwards
 *
 * Context: process; nothing is locked.
 */
void lite_request_tell_freed(struct lite_request *req)
{
	struct lite_ring *ring = req->ring;
	struct lite_rpc_peer *rp = ring->rp;
	bool gone;

	spin_lock(&rp->svc->lock);
	if (req->view)
		lite_inbox_leave(req);
	gone = ring->gone;
	if (!gone) {
		req->state = LITE_REQ_FREED;
		list_add_tail(&req->list, &rp->freed);
		queue_work(rp->svc->wq, &rp->freed_work);
	}
	spin_unlock(&rp->svc->lock);
	if (gone)
		lite_request_free(req);
}

static u32 lite_freed_gather(struct lite_rpc_peer *rp,
			     struct lite_wire_rpc_cancel *c,
			     struct lite_ring **rings)
{
	struct lite_request *req;
	u32 n = 0;

	spin_lock(&rp->svc->lock);
	while (n < LITE_RPC_CANCELS_MAX) {
		req = list_first_entry_or_null(&rp->freed, struct lite_request,
					       list);
		if (!req)
			break;
		c->which[n] = (struct lite_wire_rpc_which){
			.ring = cpu_to_le32(req->ring->index),
			.slot = cpu_to_le32(req - req->ring->req),
			.seq = cpu_to_le64(req->seq),
		};
		rings[n++] = req->ring;
		list_del(&req->list);
		/* The peer may use it again as soon as it is told. */
		lite_request_freed(req);
	}
	spin_unlock(&rp->svc->lock);
	c->count = cpu_to_le32(n);
	return n;
}

static int lite_freed_tell(struct lite_rpc_peer *rp,
			   struct lite_wire_rpc_cancel *c,
			   struct lite_ring **rings)
{
	u32 n = lite_freed_gather(rp, c, rings);
	struct lite_call_desc d = {
		.call = LITE_CALL_RPC_FREED,
		.req = c,
		.len = struct_size(c, which, n),
		.slot_timeout = LITE_SLOT_SURELY,
	};
	int err = 0;

	if (!n)
		return 0;
	if (rp->conn)
		err = lite_rpc_call(rp->conn, &d);
	else
		lite_binds_freed(rp, c);
	while (n--)
		lite_ring_put(rings[n]);
	return err ?: 1;
}

/**
 * lite_freed_work - tell a peer of records that are free now
 * @work: of a struct lite_rpc_peer
 */
void lite_freed_work(struct work_struct *work)
{
	struct lite_rpc_peer *rp = container_of(work, struct lite_rpc_peer,
						freed_work);
	struct lite_wire_rpc_cancel *c;
	struct lite_ring **rings;
	int ret;

	c = kzalloc(LITE_PAYLOAD_MAX, GFP_KERNEL | __GFP_NOFAIL);
	rings = kcalloc(LITE_RPC_CANCELS_MAX, sizeof(*rings),
			GFP_KERNEL | __GFP_NOFAIL);
	do {
		ret = lite_freed_tell(rp, c, rings);
	} while (ret > 0);
	/* Then the end of the connection gets the records back. */
	if (ret && rp->conn)
		lite_conn_kill(rp->conn, ret);
	kfree(rings);
	kfree(c);
}

/* ---- the client's side --------------------------------------------------- */

/**
 * lite_slot_keep - a call is not under way any more, but its record is not free
 * @bind: of the slot; its connection's lock is held
 * @slot: CANCELLING
 */
void lite_slot_keep(struct lite_bind *bind, u32 slot)
{
	struct lite_rpc_peer *rp = bind->rp;

	lockdep_assert_held(&rp->lock);
	bind->slot[slot].state = LITE_BIND_KEPT;
	lite_window_leave(bind, &bind->slot[slot]);
	if (!rp->dead && !list_empty(&rp->lines))
		lite_line_move(rp);
}

/* 0; -EPROTO: there is no such call that was cancelled. */
static int lite_bind_on_freed(struct lite_rpc_peer *rp,
			      const struct lite_wire_rpc_which *w)
{
	u32 slot = le32_to_cpu(w->slot);
	struct lite_bind_slot *s;
	struct lite_bind *bind;

	lockdep_assert_held(&rp->lock);
	bind = xa_load(&rp->by_index, le32_to_cpu(w->ring));
	if (!bind || slot >= LITE_RPC_DEPTH)
		return -EPROTO;
	s = &bind->slot[slot];
	if ((s->state != LITE_BIND_KEPT && s->state != LITE_BIND_CANCELLING) ||
	    s->seq != le64_to_cpu(w->seq))
		return -EPROTO;
	lite_slot_free(bind, slot);
	return 0;
}

/**
 * lite_binds_freed - a server has given back what it kept
 * @rp: of its connection
 * @c: of which calls
 *
 * Context: process.
 * Return: 0, -EPROTO.
 */
int lite_binds_freed(struct lite_rpc_peer *rp,
		     const struct lite_wire_rpc_cancel *c)
{
	u32 n = le32_to_cpu(c->count);
	int err = 0;
	u32 i;

	spin_lock(&rp->lock);
	for (i = 0; i < n && !err && !rp->dead; i++)
		err = lite_bind_on_freed(rp, &c->which[i]);
	spin_unlock(&rp->lock);
	return err;
}
