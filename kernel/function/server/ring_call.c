// SPDX-License-Identifier: GPL-2.0
/*
 * Calls from other kernels about rings: BIND makes one, UNBIND gives it back, CANCEL gives up
 * requests, FIND describes a function. GONE tells a client that its function is no longer served.
 */
#include "function/service.h"

static struct lite_rpc_peer *lite_rpc_peer_of(struct lite_service *svc, struct lite_conn *conn)
{
	return conn ? conn->service : &svc->local;
}

static void lite_func_describe(const struct lite_func *func, const struct lite_conn *conn,
			       struct lite_wire_rpc_func *out)
{
	*out = (struct lite_wire_rpc_func){
		.cookie = cpu_to_le64(func->cookie),
		.function = cpu_to_le32(func->number),
		.uid = cpu_to_le32(func->uid),
		.gid = cpu_to_le32(func->gid),
		.mode = cpu_to_le32(func->mode),
		.max_request = cpu_to_le32(func->max_request),
		.max_reply = cpu_to_le32(func->max_reply),
		.squash = cpu_to_le32(conn && func->svc->mem->root_squash),
	};
}

int lite_serve_bind(void *priv, struct lite_conn *conn, u16 call, const void *req, void *reply)
{
	const struct lite_wire_rpc_bind *in = req;
	struct lite_wire_rpc_bind_reply *out = reply;
	struct lite_service *svc = priv;
	struct lite_ring *ring;
	u32 i, bytes;

	ring = lite_ring_make(lite_rpc_peer_of(svc, conn), le32_to_cpu(in->function));
	if (IS_ERR(ring))
		return PTR_ERR(ring);
	spin_lock(&svc->lock);
	lite_func_describe(ring->func, conn, &out->func);
	spin_unlock(&svc->lock);
	out->ring = cpu_to_le32(ring->index);
	out->depth = cpu_to_le32(LITE_RPC_DEPTH);
	out->chunk_bytes = cpu_to_le32(ring->area->chunk_bytes);
	out->n_chunks = cpu_to_le32(ring->area->n);
	for (i = 0; i < ring->area->n; i++)
		out->chunk[i] = cpu_to_le64(ring->area->chunk[i].dma);
	bytes = struct_size(out, chunk, ring->area->n);
	lite_ring_put(ring);
	return bytes;
}

/*
 * Wait until replies sent to the peer have completed. The peer has them, but this device may still
 * retransmit them from the ring. Later work on the same QP completes after them.
 */
static int lite_rpc_peer_settle(struct lite_conn *conn)
{
	struct lite_io io;
	int err;

	if (!lite_conn_tryget(conn))
		return -EHOSTDOWN;
	lite_io_init(&io);
	err = lite_qp_touch(&conn->qp[0], &io, IB_WR_RDMA_WRITE, LITE_POST_UNSCHEDULED);
	lite_io_wait(&io, &conn->qp[0]);
	lite_conn_put_live(conn);
	return err ?: io.status;
}

int lite_serve_unbind(void *priv, struct lite_conn *conn, u16 call, const void *req, void *reply)
{
	const struct lite_wire_rpc_unbind *in = req;
	struct lite_service *svc = priv;
	struct lite_rpc_peer *rp = lite_rpc_peer_of(svc, conn);
	struct lite_ring *ring;
	int err;

	/* On failure the connection is ending, which ends its rings. */
	err = conn ? lite_rpc_peer_settle(conn) : 0;
	if (err)
		return err;
	spin_lock(&svc->lock);
	ring = xa_load(&rp->rings, le32_to_cpu(in->ring));
	if (ring)
		refcount_inc(&ring->ref);
	spin_unlock(&svc->lock);
	if (!ring)
		return -EBADMSG;
	err = lite_ring_end(ring, false);
	if (!err)
		lite_ring_put(ring); /* the table's */
	else
		err = conn && lite_conn_is_dead(conn) ? -EHOSTDOWN : -EBADMSG;
	lite_ring_put(ring);
	return err;
}

int lite_serve_cancel(void *priv, struct lite_conn *conn, u16 call, const void *req, void *reply)
{
	const struct lite_wire_rpc_cancel *in = req;
	struct lite_wire_rpc_cancel_reply *out = reply;
	struct lite_rpc_peer *rp = lite_rpc_peer_of(priv, conn);
	u32 n = le32_to_cpu(in->count);
	u32 i;
	int ret;

	for (i = 0; i < n; i++) {
		ret = lite_ring_cancel(rp, le32_to_cpu(in->which[i].ring),
				       le32_to_cpu(in->which[i].slot),
				       le64_to_cpu(in->which[i].seq));
		if (ret < 0)
			return -EBADMSG;
		out->cancelled[i] = cpu_to_le32(ret);
	}
	out->count = in->count;
	return struct_size(out, cancelled, n);
}

int lite_serve_find(void *priv, struct lite_conn *conn, u16 call, const void *req, void *reply)
{
	const struct lite_wire_rpc_find *in = req;
	struct lite_wire_rpc_func *out = reply;
	struct lite_func *func;

	func = lite_func_find(priv, le32_to_cpu(in->function), in->name);
	if (!func)
		return -ECONNREFUSED;
	lite_func_describe(func, conn, out);
	lite_func_put(func);
	return sizeof(*out);
}

/* GONE, at the client: stop calling through a ring. */
int lite_serve_gone(void *priv, struct lite_conn *conn, u16 call, const void *req, void *reply)
{
	const struct lite_wire_rpc_unbind *in = req;

	lite_client_ring_close_index(lite_rpc_peer_of(priv, conn), le32_to_cpu(in->ring));
	return 0;
}

/* Send GONE to the client of a ring; drops the reference of the work item. */
void lite_ring_gone_work(struct work_struct *work)
{
	struct lite_ring *ring = container_of(work, struct lite_ring, gone_work);
	struct lite_wire_rpc_unbind req = { .ring = cpu_to_le32(ring->index) };
	struct lite_call_desc d = {
		LITE_REQUEST(LITE_CALL_RPC_GONE, req),
		/* If it fails, the client finds out when it calls: keep no worker for long. */
		.timeout = HZ,
		.slot_timeout = 2 * HZ,
	};
	bool gone;

	/* If @gone, the client has closed the ring, and another one may have its index. */
	spin_lock(&ring->rp->svc->lock);
	gone = ring->gone;
	spin_unlock(&ring->rp->svc->lock);
	if (!gone)
		lite_rpc_peer_call(ring->rp, &d);
	lite_ring_put(ring);
}
