// SPDX-License-Identifier: GPL-2.0
/*
 * Replies come in, at the client: a header says of which call, and how it ended.
 */
#include "service.h"

static int lite_reply_check(struct lite_bind *bind, u32 slot,
			    struct lite_wire_rpc *h)
{
	struct lite_bind_slot *s = &bind->slot[slot];
	struct lite_service *svc = bind->rp->svc;
	u32 data = s->unit + sizeof(*h) / LITE_RING_UNIT;
	bool conn = bind->rp->conn;
	u32 room = s->reply ? min(s->room, LITE_RPC_BULK_INLINE) : s->room;

	if (conn)
		ib_dma_sync_single_for_cpu(svc->fab->dev,
					   lite_area_dma(bind->area, s->unit),
					   sizeof(*h), DMA_BIDIRECTIONAL);
	memcpy(h, lite_area_at(bind->area, s->unit), sizeof(*h));
	if (lite_wire_rpc_check(h, false) || le16_to_cpu(h->slot) != slot ||
	    le64_to_cpu(h->seq) != s->seq)
		return -EPROTO;
	if (h->status != LITE_RPC_OK)
		return 0;
	if (s->oneway)
		return -EPROTO;
	if (le32_to_cpu(h->flags) & LITE_RPC_F_BULK)
		/* It has been written before this was. */
		return s->reply && le32_to_cpu(h->length) <= s->room ? 0 :
								       -EPROTO;
	if (le32_to_cpu(h->length) > room)
		return -EPROTO;
	if (conn && h->length)
		ib_dma_sync_single_for_cpu(svc->fab->dev,
					   lite_area_dma(bind->area, data),
					   le32_to_cpu(h->length),
					   DMA_BIDIRECTIONAL);
	return 0;
}

static int lite_reply_accept(struct lite_bind *bind, u32 slot, bool done)
{
	struct lite_bind_slot *s = &bind->slot[slot];
	struct lite_wire_rpc h = {};
	int err;

	if (s->state == LITE_BIND_FREE || s->state == LITE_BIND_FILLING ||
	    s->state == LITE_BIND_ENDED || (done && !s->oneway))
		return -EPROTO;
	err = done ? 0 : lite_reply_check(bind, slot, &h);
	if (err)
		return err;
	/* Who is answered does not touch it any more. */
	lite_slot_drop(s);
	if (s->state == LITE_BIND_WAITING) {
		s->call->by_reference = le32_to_cpu(h.flags) & LITE_RPC_F_BULK;
		s->call->status = h.status;
		s->call->user = le32_to_cpu(h.user);
		s->call->reply_len = le32_to_cpu(h.length);
		lite_slot_end(bind, slot, 0);
	} else {
		lite_slot_free(bind, slot);
		/* A message found nobody: the next one shall ask first. */
		if (h.status == LITE_RPC_REFUSED)
			return 1;
	}
	return 0;
}

/**
 * lite_bind_on_reply - the answer to a call has been written into its mirror
 * @rp: by whom
 * @index: of the ring
 * @slot: of the call
 * @done: there is none, and none was wanted: a message has been taken
 *
 * Context: receive handler, or the server, if that is this node.
 * Return: 0 or -EPROTO.
 */
int lite_bind_on_reply(struct lite_rpc_peer *rp, u16 index, u16 slot, bool done)
{
	struct lite_bind *bind;
	bool close = false;
	int err = -EPROTO;

	spin_lock(&rp->lock);
	bind = xa_load(&rp->by_index, index);
	if (rp->dead) {
		/* Who waited has been told otherwise. */
		err = 0;
	} else if (bind && slot < LITE_RPC_DEPTH) {
		err = lite_reply_accept(bind, slot, done);
		close = err > 0;
		if (close)
			kref_get(&bind->ref);
	}
	spin_unlock(&rp->lock);
	if (close) {
		lite_bind_close(bind);
		lite_bind_put(bind);
		err = 0;
	}
	return err;
}
