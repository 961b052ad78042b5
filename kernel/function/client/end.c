// SPDX-License-Identifier: GPL-2.0
/*
 * How calls end: by a reply in the mirror (lite_client_ring_on_reply()), with the connection
 * (lite_slot_end()), or because the caller gives up (lite_rcall_abandon(); Documentation/rpc.rst,
 * Death and time). These run concurrently, but all start from the slot state WAITING, under
 * rp->lock, so exactly one of them ends a call. The owner of the call then finishes it
 * (lite_rcall_finish()).
 */
#include <linux/slab.h>

#include "function/service.h"

/* If a slot's call waits for its reply, end it with @err, which may be 0. */
void lite_slot_end(struct lite_client_ring *ring, u32 slot, int err)
{
	struct lite_client_ring_slot *s = &ring->slot[slot];
	struct lite_rcall *call = s->call;

	lockdep_assert_held(&ring->rp->lock);
	if (s->state != LITE_CLIENT_RING_WAITING)
		return;
	s->state = LITE_CLIENT_RING_ENDED;
	call->err = err;
	if (call->ended)
		call->ended(call);
	else
		complete(&call->done);
}

/*
 * End a call in flight with @err, without its reply. @ring: its ring, as the end of a call with
 * @ended drops call->ring. Process context. Return: false: it had ended otherwise.
 */
bool lite_rcall_abandon(struct lite_rcall *call, struct lite_client_ring *ring, int err)
{
	struct lite_rpc_peer *rp = ring->rp;
	struct lite_client_ring_slot *s;
	bool left = false;

	spin_lock(&rp->lock);
	s = call->slot == LITE_NO_SLOT ? NULL : &ring->slot[call->slot];
	if (s && s->state == LITE_CLIENT_RING_WAITING && s->call == call) {
		s->state = LITE_CLIENT_RING_ABANDONED;
		s->call = NULL;
		if (!ring->cancels)
			list_add_tail(&ring->cancel_list, &rp->cancels);
		ring->cancels |= 1ULL << call->slot;
		call->slot = LITE_NO_SLOT;
		call->err = err;
		left = true;
		if (!rp->dead)
			queue_work(rp->svc->wq[LITE_WQ_CALLS], &rp->cancel_work);
	}
	spin_unlock(&rp->lock);
	return left;
}

/* How has a call ended? Return: 0 or a negative errno as LITE_IOC_RPC_CALL. */
int lite_rcall_result(const struct lite_rcall *call)
{
	static const int result[LITE_RPC_STATUSES] = {
		[LITE_RPC_REFUSED] = -ECONNREFUSED,
		[LITE_RPC_RESET] = -ECONNRESET,
		[LITE_RPC_TOO_LONG] = -EMSGSIZE,
	};

	/* lite_wire_rpc_check() has checked the status. */
	return call->err ?: result[call->status];
}

/* What follows the header in the record of a call with a slot: the request, then the reply. */
void *lite_rcall_record(const struct lite_rcall *call)
{
	const struct lite_client_ring *ring = call->ring;

	return lite_area_body(ring->area, ring->slot[call->slot].unit);
}

/* Free the slot of an ended call, unless it was abandoned. No lock is held. */
void lite_rcall_free_slot(struct lite_rcall *call)
{
	if (call->slot == LITE_NO_SLOT)
		return;
	spin_lock(&call->ring->rp->lock);
	lite_slot_free(call->ring, call->slot);
	spin_unlock(&call->ring->rp->lock);
	call->slot = LITE_NO_SLOT;
}

/* Drop the ring of a call that has no slot. No lock is held. */
void lite_rcall_unbind(struct lite_rcall *call)
{
	if (call->ring)
		lite_client_ring_put(call->ring);
	call->ring = NULL;
}

/* Drop what an ended call still has: slot and ring. No lock is held. */
void lite_rcall_finish(struct lite_rcall *call)
{
	if (!call->ring)
		return;
	lite_rcall_free_slot(call);
	if (!call->err && call->status == LITE_RPC_REFUSED)
		lite_client_ring_close(call->ring);
	lite_rcall_unbind(call);
}

/* No call expects this reply. Return: 0: ignore it, as the device may repeat one; or -EPROTO. */
static int lite_reply_stray(const struct lite_client_ring *ring)
{
	return lite_conn_repeats(ring->rp->conn) ? 0 : -EPROTO;
}

/* May this be the header of the reply that @s, slot number @slot, waits for? */
static bool lite_reply_ok(const struct lite_client_ring_slot *s, u32 slot,
			  const struct lite_wire_rpc *h)
{
	u32 room = s->reply ? min(s->room, LITE_RPC_BULK_INLINE) : s->room;

	if (lite_wire_rpc_check(h, false) || le16_to_cpu(h->slot) != slot)
		return false;
	if (h->status != LITE_RPC_OK)
		return true;
	if (le32_to_cpu(h->flags) & LITE_RPC_F_BULK)
		/* The bulk was written before this header. */
		return s->reply && le32_to_cpu(h->length) <= s->room;
	return le32_to_cpu(h->length) <= room;
}

static int lite_reply_accept(struct lite_client_ring *ring, u32 slot)
{
	struct lite_client_ring_slot *s = &ring->slot[slot];
	struct lite_wire_rpc h;

	if (s->state == LITE_CLIENT_RING_FREE || s->state == LITE_CLIENT_RING_FILLING ||
	    s->state == LITE_CLIENT_RING_ENDED)
		return lite_reply_stray(ring);
	lite_area_header(ring->area, s->unit, &h);
	/* It is the reply to an earlier call. */
	if (le64_to_cpu(h.seq) != s->seq)
		return lite_reply_stray(ring);
	if (!lite_reply_ok(s, slot, &h))
		return -EPROTO;
	/* A server does not touch the bulks after it has answered. */
	lite_slot_drop(s);
	if (s->state == LITE_CLIENT_RING_WAITING) {
		s->call->by_reference = le32_to_cpu(h.flags) & LITE_RPC_F_BULK;
		s->call->status = h.status;
		s->call->user = le32_to_cpu(h.user);
		s->call->reply_len = le32_to_cpu(h.length);
		lite_slot_end(ring, slot, 0);
	} else {
		lite_slot_free(ring, slot);
		/* A message found no server: have the next one bind again. */
		if (h.status == LITE_RPC_REFUSED)
			lite_client_ring_close_locked(ring);
	}
	return 0;
}

/*
 * A reply to the call or message in @slot has been written into the mirror of ring @index. Receive
 * handler; the server's thread, if the server is this node. Return: 0 or -EPROTO.
 */
int lite_client_ring_on_reply(struct lite_rpc_peer *rp, u16 index, u16 slot)
{
	struct lite_client_ring *ring;
	int err = -EPROTO;

	spin_lock(&rp->lock);
	ring = xa_load(&rp->by_index, index);
	if (rp->dead)
		/* The callers have been told that the connection died. */
		err = 0;
	else if (ring && slot < LITE_RPC_DEPTH)
		err = lite_reply_accept(ring, slot);
	spin_unlock(&rp->lock);
	return err;
}

/* A slot need not be cancelled any more. */
void lite_cancel_drop(struct lite_client_ring *ring, u32 slot)
{
	lockdep_assert_held(&ring->rp->lock);
	ring->cancels &= ~(1ULL << slot);
	if (!ring->cancels)
		list_del_init(&ring->cancel_list);
}

static u32 lite_cancels_gather(struct lite_rpc_peer *rp, struct lite_wire_rpc_cancel *c)
{
	struct lite_client_ring *ring;
	u32 n = 0, slot;

	spin_lock(&rp->lock);
	while (n < LITE_RPC_CANCELS_MAX && !rp->dead && !list_empty(&rp->cancels)) {
		ring = list_first_entry(&rp->cancels, struct lite_client_ring, cancel_list);
		slot = __ffs64(ring->cancels);
		lite_cancel_drop(ring, slot);
		ring->slot[slot].state = LITE_CLIENT_RING_CANCELLING;
		c->which[n++] = (struct lite_wire_rpc_which){
			.ring = cpu_to_le32(ring->index),
			.slot = cpu_to_le32(slot),
			.seq = cpu_to_le64(ring->slot[slot].seq),
		};
	}
	spin_unlock(&rp->lock);
	c->count = cpu_to_le32(n);
	return n;
}

/* Free the slots of cancelled calls. Replies to the others are on their way, or have come. */
static void lite_cancels_done(struct lite_rpc_peer *rp, const struct lite_wire_rpc_cancel *c,
			      const struct lite_wire_rpc_cancel_reply *r)
{
	u32 n = le32_to_cpu(c->count);
	struct lite_client_ring *ring;
	u32 i, slot;

	spin_lock(&rp->lock);
	for (i = 0; i < n; i++) {
		slot = le32_to_cpu(c->which[i].slot);
		ring = xa_load(&rp->by_index, le32_to_cpu(c->which[i].ring));
		if (ring && ring->slot[slot].state == LITE_CLIENT_RING_CANCELLING &&
		    ring->slot[slot].seq == le64_to_cpu(c->which[i].seq) &&
		    le32_to_cpu(r->cancelled[i]) == LITE_RPC_CANCELLED)
			lite_slot_free(ring, slot);
	}
	spin_unlock(&rp->lock);
}

static int lite_cancel_some(struct lite_rpc_peer *rp, struct lite_wire_rpc_cancel *c,
			    struct lite_wire_rpc_cancel_reply *r)
{
	u32 n = lite_cancels_gather(rp, c);
	struct lite_call_desc d = {
		.call = LITE_CALL_RPC_CANCEL,
		.req = c,
		.len = struct_size(c, which, n),
		.reply = r,
		.reply_max = LITE_PAYLOAD_MAX,
		.slot_timeout = LITE_SLOT_SURELY,
	};
	int err;

	if (!n)
		return 0;
	lite_stat_add(rp->svc->stats, LITE_STAT_RPC_CANCELS, n);
	err = lite_rpc_peer_call(rp, &d);
	if (!err && le32_to_cpu(r->count) != n)
		err = -EPROTO;
	if (!err)
		lite_cancels_done(rp, c, r);
	return err ?: (int)n;
}

/* Cancel the ABANDONED calls at the peer. */
void lite_cancel_work(struct work_struct *work)
{
	struct lite_rpc_peer *rp = container_of(work, struct lite_rpc_peer, cancel_work);
	struct lite_wire_rpc_cancel_reply *r;
	struct lite_wire_rpc_cancel *c;
	int ret;

	c = kzalloc(LITE_PAYLOAD_MAX, GFP_KERNEL | __GFP_NOFAIL);
	r = kzalloc(LITE_PAYLOAD_MAX, GFP_KERNEL | __GFP_NOFAIL);
	do {
		ret = lite_cancel_some(rp, c, r);
	} while (ret > 0);
	/* The end of the connection frees the slots instead. */
	if (ret && rp->conn)
		lite_conn_kill(rp->conn, ret);
	kfree(c);
	kfree(r);
}
