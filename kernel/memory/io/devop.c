// SPDX-License-Identifier: GPL-2.0
/*
 * Operations of a device on bytes of one extent: whatever is small enough to be one or few work
 * requests.
 *
 * The caller enters the LMR and provides memory that is mapped for the device. After the end, the
 * caller or the thread that handles the completion leaves the LMR. Three kinds of callers:
 *
 *   wait at once     lite_devop_run(): transfer.c, atomic.c, memop/
 *   many, one wait   lite_devop_link(): batch/vector.c
 *   end by callback  lite_devop_post(): batch/issue.c
 *
 * Posted elsewhere: large pieces (transfer_large.c), and copies between stores (store/copy.c).
 */
#include "fabric/chain.h"
#include "memory/memory.h"
#include "devop.h"

/* The work request for @n bytes from byte @at on. */
static __always_inline struct ib_send_wr *lite_devop_wr(const struct lite_devop *d,
							const struct lite_qp *qp,
							struct lite_link *link, u32 at, u32 n)
{
	enum ib_wr_opcode opcode = lite_op_wr(d->opcode);
	u64 raddr = d->e->addr + (d->offset - d->e->start) + at;

	link->sge = (struct ib_sge){
		.addr = d->dma + at,
		.length = n,
		.lkey = qp->conn->fab->lkey,
	};
	if (likely(lite_op_is_transfer(d->opcode)))
		lite_rdma_wr(&link->rdma, qp, opcode, &link->sge, 1, raddr, 0);
	else
		lite_atomic_wr(&link->atomic, qp, opcode, &link->sge, raddr, d->operand, d->swap);
	if (opcode == IB_WR_RDMA_WRITE && d->data && n <= qp->inline_max) {
		link->sge.addr = (uintptr_t)d->data + at;
		link->rdma.wr.send_flags = IB_SEND_INLINE;
	}
	return &link->rdma.wr;
}

/*
 * Post an operation as one work request on a connection to its node, which the caller holds live;
 * @io is told of the completion. Context: process; does not sleep. Return: 0; -EAGAIN: it would
 * have to wait; or another errno.
 */
int lite_devop_post(const struct lite_devop *d, struct lite_qp *qp, struct lite_io *io)
{
	struct lite_link link LITE_UNINIT;

	return lite_qp_post(qp, io, lite_devop_wr(d, qp, &link, 0, d->n),
			    d->prio | LITE_POST_NOWAIT);
}

/* Add an operation to a chain to its node; @link stays until the chain is posted. Any context. */
void lite_devop_link(const struct lite_devop *d, struct lite_chain *chain, struct lite_link *link)
{
	lite_chain_add(chain, lite_devop_wr(d, chain->qp, link, 0, d->n));
}

/* A connection to the node of the bytes, held live. */
static __always_inline struct lite_conn *lite_devop_conn(const struct lite_devop *d)
{
	/* Only for atomics: see atomic.c. */
	if (unlikely(lite_devop_share(d)->local))
		return lite_cluster_self_conn_tryget(d->m->mem->cl) ?: ERR_PTR(-EUNATCH);
	return lite_access_conn(d->m, d->e->share);
}

struct lite_entered_io {
	struct lite_io io;
	struct lite_devop *d;
};

static bool lite_entered_io_stale(const struct lite_io *io)
{
	const struct lite_devop *d = container_of(io, struct lite_entered_io, io)->d;

	return lite_ops_closed(d->m) || (d->stays && d->also && lite_ops_closed(d->also)) ||
	       (d->task && lite_is_given_up(d->task));
}

/* Leave the LMR here: its revocation must not wait until the waiter gets a processor. */
static void lite_entered_io_ended(struct lite_io *io)
{
	struct lite_devop *d = container_of(io, struct lite_entered_io, io)->d;
	struct lite_mapping *m = d->m;

	/* After an error the waiter leaves, once it has fenced this node from itself. */
	if (d->stays || (io->status && lite_devop_share(d)->local))
		return;
	lite_io_result(m, io->status);
	d->m = NULL;
	lite_access_exit(m);
}

static const struct lite_io_hooks lite_entered_io_hooks = {
	.stale = lite_entered_io_stale,
	.ended = lite_entered_io_ended,
};

/* Work requests that are posted together. */
#define LITE_PACKETS 4

/* Post an operation as several work requests. */
static noinline int lite_devop_post_packets(struct lite_devop *d, struct lite_qp *qp,
					    struct lite_io *io, u32 packet)
{
	bool read = d->opcode == LITE_OP_READ, held = false, last;
	struct lite_link link[LITE_PACKETS + 1];
	struct lite_chain chain;
	u32 at = 0, i;
	int err;

	if (read)
		packet = min(packet, lite_read_step(qp->conn, d->n));
	do {
		lite_chain_init(&chain, qp, io, d->prio);
		if (min(packet, d->n) > LITE_BULK_BYTES)
			chain.kind = LITE_SLOT_BULK;
		for (i = 0; i < LITE_PACKETS && at < d->n; i++, at += packet)
			lite_chain_add(&chain, lite_devop_wr(d, qp, &link[i], at,
							     min(packet, d->n - at)));
		last = at >= d->n;
		if (last && read && lite_must_confirm(qp->conn, packet))
			lite_chain_touch(&chain, &link[i]);
		/* The io must not end before all packets are posted. */
		if (!last && !held)
			lite_io_expect(io, 1);
		held |= !last;
		chain.held = last && held;
		lite_chain_post(&chain, true);
		err = chain.cut ? -EAGAIN : READ_ONCE(io->status);
		d->posted |= chain.posted > 0;
	} while (!last && !err);
	if (!last)
		lite_io_end(io, 0, 1);
	return err;
}

/*
 * Post an operation in work requests of at most @packet bytes, and wait until the device is done.
 * Sets, but never clears, @d->posted. The caller holds no other connection live. May sleep, but
 * waits only for the device and its turn. Return: 0; -EAGAIN: renew the handle (newer session, or
 * the LMR is about to be changed); -EINTR: the caller is killed; -EUNATCH: call
 * lite_cluster_self_conn() first; -ESTALE: the node has lost the memory; -EHOSTDOWN, -ETIMEDOUT,
 * -EIO.
 */
int lite_devop_run(struct lite_devop *d, u32 packet)
{
	struct lite_conn *conn = lite_devop_conn(d);
	struct lite_memory *mem = d->m->mem;
	struct lite_link link LITE_UNINIT;
	struct lite_qp *qp;
	int err;
	struct lite_entered_io io LITE_UNINIT;

	if (IS_ERR(conn))
		return PTR_ERR(conn);
	qp = lite_conn_qp(conn, lite_devop_fetches(d), d->prio);
	lite_io_init(&io.io);
	io.io.hooks = &lite_entered_io_hooks;
	io.d = d;
	if (likely(d->n <= packet && lite_devop_is_single(d, conn))) {
		err = lite_qp_post(qp, &io.io, lite_devop_wr(d, qp, &link, 0, d->n), d->prio);
		d->posted |= !err;
	} else {
		err = lite_devop_post_packets(d, qp, &io.io, packet);
	}
	lite_io_wait(&io.io, qp);
	err = err ?: io.io.status;
	if (likely(!err)) {
		lite_conn_put_live(conn);
		return 0;
	}
	/*
	 * Nothing failed: the post gave up waiting for its turn. A killed thread must not renew the
	 * handle, because that would retire a mapping that others use.
	 */
	if (err == -EAGAIN && !io.io.status) {
		lite_conn_put_live(conn);
		return lite_given_up_for(d->task) ? -EINTR : -EAGAIN;
	}
	/*
	 * What has failed may still be in flight. Before a store frees memory it fences other
	 * nodes, but not itself: what was posted to this node must end before the LMR is left.
	 */
	lite_conn_get(conn);
	lite_conn_put_live(conn);
	if (conn->other_end) {
		lite_cluster_fence_self(mem->cl, conn);
		/* Nothing was posted, so another connection to this node will do. */
		if (err == -EHOSTDOWN && !d->posted)
			err = -EUNATCH;
	}
	lite_conn_put(conn);
	return d->m && err != -EUNATCH ? lite_io_result(d->m, err) : err;
}
