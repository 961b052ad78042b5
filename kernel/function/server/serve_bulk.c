// SPDX-License-Identifier: GPL-2.0
/*
 * Long requests and replies, at the server: Documentation/rpc.rst, By reference. Within a node
 * there is no RDMA: the client's bulks are found by their slot.
 *
 * The thread that has the request BUSY does all this. If the caller gives up, CANCEL tells the
 * client to expect an answer, so the client keeps its memory until then. The thread checks for
 * CANCEL between batches, and while it waits for a turn or a slot, and then gives up.
 */
#include "function/service.h"

/* Work requests per batch; the wait after each batch lets short calls in. */
#define LITE_BULK_BATCH 8

/*
 * Parse the chunk list of an incoming request at @unit of the ring. lite_wire_rpc_check() has
 * checked its header @h. Receive handlers; svc->lock is held. Return: 0 or -EPROTO.
 */
int lite_request_list(struct lite_request *req, u32 unit, const struct lite_wire_rpc *h)
{
	const struct lite_area *area = req->ring->area;
	const struct lite_func *func = req->ring->func;
	const struct lite_wire_rpc_bulk *b = lite_area_body(area, unit);
	u32 n_request, n_reply, list, offset, left;

	req->list_bytes = 0;
	req->n_request = 0;
	req->n_reply = 0;
	if (!(le32_to_cpu(h->flags) & LITE_RPC_F_BULK))
		return 0;
	lite_area_chunk(area, unit, &offset);
	left = area->chunk_bytes - offset - LITE_RPC_HEADER;
	if (!lite_rpc_has_lists(func->max_request, func->max_reply) || left < sizeof(*b))
		return -EPROTO;
	n_request = le32_to_cpu(READ_ONCE(b->n_request));
	n_reply = le32_to_cpu(READ_ONCE(b->n_reply));
	if (n_request > LITE_RPC_BULK_CHUNKS_MAX || n_reply > LITE_RPC_BULK_CHUNKS_MAX)
		return -EPROTO;
	list = lite_rpc_list_bytes(n_request + n_reply);
	if (list > left ||
	    lite_wire_rpc_bulk_check(b->chunk, n_request, n_reply, le32_to_cpu(h->length),
				     le32_to_cpu(h->room)))
		return -EPROTO;
	req->list_bytes = list;
	req->n_request = n_request;
	req->n_reply = n_reply;
	return 0;
}

/* Progress of a transfer between a bulk and a peer's chunks. */
struct lite_bulk_io {
	const struct lite_area *bulk;		/* of this node, mapped */
	u32 i;					/* current chunk of it */
	u32 in;					/* bytes done of that chunk */
	const struct lite_wire_rpc_chunk *peer;	/* current chunk of the peer */
	u32 n;					/* chunks of the peer that are left */
	u32 there;				/* bytes done of @peer */
	u32 left;				/* bytes left in total */
	const struct lite_request *req;		/* that is fetched or answered */
	bool killable;
	struct lite_io io;			/* of a batch */
};

/* The errno with which the transfer must stop, or 0. */
static int lite_bulk_over(const struct lite_bulk_io *b)
{
	if (b->killable && lite_given_up())
		return -EINTR;
	return READ_ONCE(b->req->cancelled) ? -ECANCELED : 0;
}

static bool lite_bulk_stale(const struct lite_io *io)
{
	return lite_bulk_over(container_of(io, struct lite_bulk_io, io));
}

static void lite_bulk_ended(struct lite_io *io)
{
}

static const struct lite_io_hooks lite_bulk_hooks = {
	.stale = lite_bulk_stale,
	.ended = lite_bulk_ended,
};

/* Post one work request, within one chunk on either side. */
static int lite_bulk_post(struct lite_bulk_io *b, struct lite_qp *qp, enum ib_wr_opcode op)
{
	u32 have = b->n ? le32_to_cpu(READ_ONCE(b->peer->bytes)) : 0;
	struct ib_sge sge = {
		.addr = b->bulk->chunk[b->i].dma + b->in,
		.lkey = b->bulk->fab->lkey,
	};
	u64 raddr;
	int err;

	/* Checked before, but the peer can still write to the list. */
	if (have <= b->there)
		return -EPROTO;
	raddr = le64_to_cpu(READ_ONCE(b->peer->addr)) + b->there;
	sge.length = min3(b->left, b->bulk->chunk[b->i].bytes - b->in,
			  min_t(u32, have - b->there, LITE_WR_BYTES_MAX));
	err = lite_qp_rdma(qp, &b->io, op, &sge, 1, raddr, b->req->prio);
	if (err)
		return err;
	b->left -= sge.length;
	b->in += sge.length;
	if (b->in == b->bulk->chunk[b->i].bytes) {
		b->i++;
		b->in = 0;
	}
	b->there += sge.length;
	if (b->there == have) {
		b->peer++;
		b->n--;
		b->there = 0;
	}
	return 0;
}

static int lite_bulk_batch(struct lite_bulk_io *b, struct lite_qp *qp, enum ib_wr_opcode op)
{
	u32 before = b->left;
	int err = 0, i;

	lite_io_init(&b->io);
	b->io.hooks = &lite_bulk_hooks;
	for (i = 0; i < LITE_BULK_BATCH && b->left && !err; i++)
		err = lite_bulk_post(b, qp, op);
	if (op == IB_WR_RDMA_READ && !err && lite_must_confirm(qp->conn, before - b->left))
		err = lite_qp_touch(qp, &b->io, op, b->req->prio);
	/* What was posted before an error is still in flight. */
	lite_io_wait(&b->io, qp);
	return b->io.status ?: err;
}

static int lite_bulk_submit(struct lite_bulk_io *b, enum ib_wr_opcode op)
{
	struct lite_conn *conn = b->req->ring->rp->conn;
	struct lite_qp *qp;
	int err;

	if (!lite_conn_tryget(conn))
		return -EHOSTDOWN;
	/* A reply uses the first queue pair, where its header follows it. */
	qp = op == IB_WR_RDMA_READ ? lite_conn_qp(conn, true, b->req->prio) : &conn->qp[0];
	do {
		err = lite_bulk_batch(b, qp, op);
		/* -EAGAIN: lite_bulk_stale() ended a wait before all could be posted. */
		if (err == -EAGAIN || (!err && b->left))
			err = lite_bulk_over(b) ?: err;
		cond_resched();
	} while (!err && b->left);
	lite_conn_put_live(conn);
	return err;
}

/* Transfer between @bulk, which is mapped only for that, and the peer's chunks. */
static int lite_bulk_exchange(struct lite_request *req, struct lite_area *bulk, u32 length,
			      enum ib_wr_opcode op, bool killable)
{
	const struct lite_wire_rpc_bulk *list = lite_area_body(req->ring->area, req->unit);
	bool read = op == IB_WR_RDMA_READ;
	struct lite_bulk_io b = {
		.bulk = bulk,
		.peer = list->chunk + (read ? 0 : req->n_request),
		.n = read ? req->n_request : req->n_reply,
		.left = length,
		.req = req,
		.killable = killable,
	};
	int err = lite_bulk_map(bulk);

	if (err)
		return err;
	err = lite_bulk_submit(&b, op);
	lite_bulk_unmap(bulk);
	/* Any other error ends the session. */
	if (err && err != -EINTR && err != -ECANCELED) {
		lite_conn_kill(req->ring->rp->conn, err);
		err = -EHOSTDOWN;
	}
	return err;
}

/* The client's bulk, with a reference, or NULL. Its slot keeps it while the request is BUSY. */
static struct lite_area *lite_bulk_of_slot(struct lite_request *req, bool reply)
{
	struct lite_rpc_peer *rp = req->ring->rp;
	struct lite_area *bulk = NULL;
	struct lite_client_ring_slot *s;
	struct lite_client_ring *ring;

	spin_lock(&rp->lock);
	ring = xa_load(&rp->by_index, req->ring->index);
	s = ring ? &ring->slot[lite_request_slot(req)] : NULL;
	if (s && s->seq == req->seq)
		bulk = reply ? s->reply : s->request;
	if (bulk)
		kref_get(&bulk->ref);
	spin_unlock(&rp->lock);
	return bulk;
}

/*
 * Read a long request, BUSY with the caller, into @req->data, which counts for @uid. A fatal signal
 * ends it if @killable. May sleep. Return: 0; -ENOMEM, -EINTR; -ECANCELED: the caller of the
 * request has given up; -EHOSTDOWN: the session with the client is over.
 */
int lite_request_fetch(struct lite_request *req, u32 uid, bool killable)
{
	struct lite_area *bulk;
	int err;

	if (!req->n_request || req->data)
		return 0;
	if (!req->ring->rp->conn) {
		req->data = lite_bulk_of_slot(req, false);
		return req->data ? 0 : -EHOSTDOWN;
	}
	bulk = lite_bulk_make(req->ring->rp->svc, uid, req->length);
	if (IS_ERR(bulk))
		return PTR_ERR(bulk);
	err = lite_bulk_exchange(req, bulk, req->length, IB_WR_RDMA_READ, killable);
	if (err)
		lite_area_put(bulk);
	else
		req->data = bulk;
	return err;
}

/*
 * Write a reply, longer than lite_request_inline() and at most @req->room, to the client's chunks.
 * The answer then has LITE_RPC_F_BULK. @bulk is not mapped, and has no other user. Context and
 * return: as lite_request_fetch().
 */
int lite_request_give(struct lite_request *req, struct lite_area *bulk, u32 length, bool killable)
{
	struct lite_area *to;
	int err;

	if (req->ring->rp->conn) {
		err = lite_bulk_exchange(req, bulk, length, IB_WR_RDMA_WRITE, killable);
	} else {
		to = lite_bulk_of_slot(req, true);
		err = to ? 0 : -EHOSTDOWN;
		if (to)
			lite_bulk_move(to, bulk, length);
		lite_area_put(to);
	}
	req->by_reference = !err;
	return err;
}
