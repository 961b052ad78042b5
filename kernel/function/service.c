// SPDX-License-Identifier: GPL-2.0
/*
 * The services of a node, from start to stop, and what connections need for them. The fabric calls
 * conn_init before the peer can know a connection; conn_down when it is dying: no new calls or
 * rings, and waiters are woken; conn_gone after the fence: memory that the peer wrote is freed;
 * conn_release with the last reference.
 */
#include <linux/mm.h>
#include <linux/random.h>
#include <linux/slab.h>

#include "service.h"

static void lite_rpc_peer_init(struct lite_rpc_peer *rp, struct lite_service *svc,
			       struct lite_conn *conn)
{
	rp->svc = svc;
	rp->conn = conn;
	lite_io_init_unwaited(&rp->io, NULL);
	xa_init_flags(&rp->rings, XA_FLAGS_ALLOC);
	INIT_LIST_HEAD(&rp->answers);
	INIT_WORK(&rp->answer_work, lite_answer_work);
	spin_lock_init(&rp->lock);
	rp->window = LITE_RPC_WINDOW;
	lite_pool_init(&rp->users, LITE_RPC_WINDOW - LITE_RPC_WINDOW / LITE_SERVICE_RESERVE, 0);
	rp->by_function = RB_ROOT;
	xa_init(&rp->by_index);
	INIT_LIST_HEAD(&rp->lines);
	INIT_WORK(&rp->lines_work, lite_lines_work);
	INIT_LIST_HEAD(&rp->cancels);
	INIT_WORK(&rp->cancel_work, lite_cancel_work);
}

static void lite_rpc_peer_exit(struct lite_rpc_peer *rp)
{
	lite_pool_exit(&rp->users);
	xa_destroy(&rp->rings);
	xa_destroy(&rp->by_index);
}

/* With @down end a peer's rings; else, after the fence, drop those that UNBIND has left. */
static void lite_rings_end(struct lite_rpc_peer *rp, bool down)
{
	struct lite_service *svc = rp->svc;
	struct lite_ring *ring;
	unsigned long i;

	for (i = 0;; i++) {
		spin_lock(&svc->lock);
		rp->down = true; /* From now on no ring is added. */
		ring = xa_find(&rp->rings, &i, LITE_IMM_RING_MAX, XA_PRESENT);
		if (ring && down)
			refcount_inc(&ring->ref);
		else if (ring)
			xa_erase(&rp->rings, i);
		spin_unlock(&svc->lock);
		if (!ring)
			return;
		if (down)
			lite_ring_end(ring, true);
		lite_ring_put(ring);
	}
}

/* Prepare a connection for calls. May sleep. Return: 0 or -ENOMEM; release it in either case. */
int lite_service_conn_init(struct lite_service *svc, struct lite_conn *conn)
{
	struct lite_rpc_peer *rp = kzalloc(sizeof(*rp), GFP_KERNEL);

	if (!rp)
		return -ENOMEM;
	lite_rpc_peer_init(rp, svc, conn);
	/* Pairs with lite_service_conn_down(), which may run meanwhile. */
	smp_store_release(&conn->service, rp);
	return 0;
}

/* Undo lite_service_conn_init(); the connection has no reference any more. */
void lite_service_conn_release(struct lite_conn *conn)
{
	struct lite_rpc_peer *rp = conn->service;

	if (!rp)
		return;
	lite_rpc_peer_exit(rp);
	conn->service = NULL;
	kfree(rp);
}

/* A connection is dying. May sleep; does not wait for operations. */
void lite_service_conn_down(struct lite_conn *conn)
{
	/* Pairs with lite_service_conn_init(). */
	struct lite_rpc_peer *rp = smp_load_acquire(&conn->service);

	if (!rp)
		return;
	lite_client_rings_down(rp);
	lite_rings_end(rp, true);
}

/* The peer of a connection that is down has been fenced. May sleep. */
void lite_service_conn_gone(struct lite_conn *conn)
{
	struct lite_rpc_peer *rp = conn->service;

	if (!rp)
		return;
	/* Kernel calls on this connection fail at once, so these work items end. */
	cancel_work_sync(&rp->cancel_work);
	cancel_work_sync(&rp->lines_work);
	lite_client_rings_gone(rp);
	lite_rings_end(rp, false);
}

static int lite_rpc_peer_deliver(struct lite_rpc_peer *rp, u32 imm)
{
	enum lite_imm_kind kind;
	u16 ring, at;

	lite_imm_decode(imm, &kind, &ring, &at);
	if (kind == LITE_IMM_RPC_REQUEST)
		return lite_ring_on_request(rp, ring, at);
	return lite_client_ring_on_reply(rp, ring, at);
}

/* Receive handler: the peer has written into a ring or a mirror (lite_imm_is_ring()). */
void lite_service_recv(struct lite_conn *conn, u32 imm)
{
	struct lite_rpc_peer *rp = conn->service;

	if (!conn->from.node || lite_rpc_peer_deliver(rp, imm)) {
		pr_warn_ratelimited("lite: malformed record from node %u\n", conn->from.node);
		lite_conn_kill(conn, -EPROTO);
		return;
	}
	/* A peer calls only after ATTACH, when all its queue pairs are connected. */
	if (READ_ONCE(conn->state) == LITE_CONN_UP)
		lite_conn_ready(conn);
}

/*
 * Write @bytes of a record at @unit of @area to @raddr at the peer, and announce it with @imm. The
 * caller keeps the area until the peer answers or is fenced. @how as for lite_qp_post(): may sleep
 * unless LITE_POST_NOWAIT. Return: 0: posted, with no further report; -EHOSTDOWN, -EIO: not posted;
 * -EAGAIN: the send queue is full.
 */
int lite_rpc_peer_post(struct lite_rpc_peer *rp, struct lite_area *area, u32 unit, u32 bytes,
		       u64 raddr, u32 imm, u32 how)
{
	struct lite_conn *conn = rp->conn;
	struct ib_rdma_wr wr;
	struct ib_sge sge;
	struct lite_qp *qp;
	int err;

	if (!conn) {
		/* Ring and mirror are the same memory: nothing to write. */
		WARN_ON_ONCE(lite_rpc_peer_deliver(rp, imm));
		return 0;
	}
	if (!lite_conn_tryget(conn))
		return -EHOSTDOWN;
	sge = (struct ib_sge){
		.addr = lite_area_dma(area, unit),
		.length = bytes,
		.lkey = conn->fab->lkey,
	};
	/* The first QP has the receives. Using only that keeps messages in order. */
	qp = &conn->qp[0];
	lite_rdma_wr(&wr, qp, IB_WR_RDMA_WRITE_WITH_IMM, &sge, 1, raddr, imm);
	err = lite_qp_post(qp, &rp->io, &wr.wr, how);
	lite_conn_put_live(conn);
	return err;
}

/*
 * Make a kernel call about rings. @d->reply, if not NULL, has LITE_PAYLOAD_MAX zeroed bytes. A call
 * to this node needs no memory of its own. May sleep. Return: 0 or a negative errno.
 */
int lite_rpc_peer_call(struct lite_rpc_peer *rp, struct lite_call_desc *d)
{
	int ret;

	if (rp->conn)
		return lite_kcall(rp->conn, d);
	ret = lite_kcall_dispatch(rp->svc->cl->kcalls, NULL, d->call, d->req, d->len, d->reply);
	if (ret < 0)
		return ret;
	d->reply_len = ret;
	return 0;
}

static void lite_idle_work(struct work_struct *work)
{
	struct lite_service *svc =
		container_of(to_delayed_work(work), struct lite_service, idle_work);
	struct lite_conn *conn;
	u32 node = 0;

	lite_client_rings_idle(&svc->local);
	while ((node = lite_cluster_next(svc->cl, node))) {
		conn = lite_cluster_conn_get(svc->cl, node);
		if (!conn)
			continue;
		lite_client_rings_idle(conn->service);
		lite_conn_put(conn);
	}
	if (lite_pool_used(&svc->pools[LITE_POOL_RINGS]) && !READ_ONCE(svc->stopping))
		queue_delayed_work(svc->wq[LITE_WQ_CALLS], &svc->idle_work,
				   LITE_CLIENT_RING_IDLE / 2);
}

/* Limits of functions and calls, see limits.rst. */
static void lite_service_pools(struct lite_service *svc)
{
	u64 ram = (u64)totalram_pages() * PAGE_SIZE;
	const u64 limit[] = {
		[LITE_POOL_FUNCTIONS] = LITE_FUNCTIONS_MAX,
		[LITE_POOL_RINGS] = min_t(u64, LITE_RINGS_BYTES_MAX, ram / LITE_RINGS_SHARE),
		[LITE_POOL_BULK] = ram / LITE_BULK_SHARE,
	};
	u32 i;

	for (i = 0; i < ARRAY_SIZE(limit); i++)
		lite_pool_init(&svc->pools[i], limit[i], limit[i] / LITE_SERVICE_RESERVE);
}

/* Fill in a zeroed @svc. May sleep. Return: 0 or -ENOMEM. */
int lite_service_init(struct lite_service *svc, struct lite_memory *mem)
{
	static const char *const wq_name[LITE_SERVICE_WQS] = {
		[LITE_WQ_CALLS] = "lite-service",
		[LITE_WQ_RINGS] = "lite-rings",
	};
	int i;

	svc->cl = mem->cl;
	svc->mem = mem;
	svc->fab = mem->fab;
	svc->stats = mem->stats;
	svc->pools = mem->fab->pools;
	/* As for LMR ids, the clock keeps these apart from those of the node's earlier lives. */
	atomic64_set(&svc->cookies, ktime_get_real_ns() >> 14);
	atomic64_set(&svc->seqs, get_random_u32());
	spin_lock_init(&svc->lock);
	xa_init_flags(&svc->functions, XA_FLAGS_ALLOC1);
	svc->names = RB_ROOT;
	xa_init_flags(&svc->rings, XA_FLAGS_ALLOC1);
	INIT_LIST_HEAD(&svc->files);
	lite_service_pools(svc);
	INIT_DELAYED_WORK(&svc->idle_work, lite_idle_work);
	if (lite_crew_init(&svc->begins, "lite-begin"))
		return -ENOMEM;
	for (i = 0; i < LITE_SERVICE_WQS; i++) {
		svc->wq[i] = alloc_workqueue(wq_name[i], WQ_UNBOUND, 0);
		if (!svc->wq[i])
			goto err;
	}
	lite_rpc_peer_init(&svc->local, svc, NULL);
	lite_kcall_handle(svc->cl->kcalls, LITE_CALL_RPC_BIND, lite_serve_bind, svc);
	lite_kcall_handle(svc->cl->kcalls, LITE_CALL_RPC_UNBIND, lite_serve_unbind, svc);
	lite_kcall_handle(svc->cl->kcalls, LITE_CALL_RPC_CANCEL, lite_serve_cancel, svc);
	lite_kcall_handle(svc->cl->kcalls, LITE_CALL_RPC_FIND, lite_serve_find, svc);
	lite_kcall_handle(svc->cl->kcalls, LITE_CALL_RPC_GONE, lite_serve_gone, svc);
	return 0;

err:
	while (i--)
		destroy_workqueue(svc->wq[i]);
	lite_crew_exit(&svc->begins);
	return -ENOMEM;
}

/* Move a file to @to. Return: it, with a reference; NULL: none is left, and all are moved back. */
static struct lite_rpc_file *lite_service_next(struct lite_service *svc, struct list_head *to)
{
	struct lite_rpc_file *file;

	spin_lock(&svc->lock);
	file = list_first_entry_or_null(&svc->files, struct lite_rpc_file, list);
	if (file) {
		refcount_inc(&file->ref);
		list_move(&file->list, to);
	} else {
		list_splice_init(to, &svc->files);
	}
	spin_unlock(&svc->lock);
	return file;
}

/* No thread enters the services any more: wake all that wait for calls or requests. May sleep. */
void lite_service_stop(struct lite_service *svc)
{
	struct lite_rpc_file *file;
	LIST_HEAD(stopped); /* A file that is shut meanwhile leaves this list. */

	spin_lock(&svc->lock);
	WRITE_ONCE(svc->stopping, true);
	spin_unlock(&svc->lock);
	while ((file = lite_service_next(svc, &stopped))) {
		lite_func_stop(file);
		lite_async_stop(file);
		wake_up_all(&file->wait);
		lite_rpc_file_put(file);
	}
	lite_client_rings_down(&svc->local);
}

/* Shut all files; no thread is active in the services. May sleep. */
void lite_service_shut(struct lite_service *svc)
{
	struct lite_rpc_file *file;

	while ((file = lite_service_next(svc, &svc->files))) {
		lite_rpc_file_shut(file);
		lite_rpc_file_put(file);
	}
}

/* Undo lite_service_init(): files are shut, no connection exists, no handler runs. May sleep. */
void lite_service_exit(struct lite_service *svc)
{
	int i;

	WRITE_ONCE(svc->stopping, true);
	lite_client_rings_down(&svc->local);
	lite_rings_end(&svc->local, true);
	/* Jobs that begin calls may queue @idle_work. */
	lite_crew_flush(&svc->begins);
	cancel_delayed_work_sync(&svc->idle_work);
	wait_var_event(&svc->handlers, !atomic_read(&svc->handlers));
	for (i = 0; i < LITE_SERVICE_WQS; i++)
		flush_workqueue(svc->wq[i]);
	lite_client_rings_gone(&svc->local);
	lite_rings_end(&svc->local, false);
	/* Waits until rings are unbound; no more rings are closed. */
	for (i = LITE_SERVICE_WQS; i--;)
		destroy_workqueue(svc->wq[i]);
	lite_crew_exit(&svc->begins);
	lite_rpc_peer_exit(&svc->local);
	xa_destroy(&svc->functions);
	xa_destroy(&svc->rings);
}
