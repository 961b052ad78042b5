// SPDX-License-Identifier: GPL-2.0
/*
 * Atomic operations on 8-byte words.
 *
 * All of them are performed by the RDMA device of the node that stores the
 * word. Atomics of a device need not be atomic with respect to the CPU's
 * (Soft-RoCE's are not), so local words, too, are accessed through the device,
 * by a connection of the node to itself.
 *
 *   fetch-add, compare-and-swap   posted to the device
 *   swap, fetch-and, fetch-or     no device has them: the node that stores the
 *                                 word loops over compare-and-swap
 *                                 (memop_serve.c) on its connection to itself
 */

#include "memory/handle/ctx.h"
#include "memory/memory.h"
#include "trace.h"
#include "transfer.h"
#include "wait.h"

/* The connection to this node if the word is local, else NULL. Not entered. */
static struct lite_conn *lite_atomic_conn(const struct lite_access *a,
					  u64 offset, bool *local,
					  const struct lite_mapping **stale)
{
	struct lite_mapping *m =
		lite_tryenter_range(a, offset, sizeof(u64), stale);

	if (IS_ERR(m))
		return ERR_CAST(m);
	*local = m->share[lite_extent_at(m, offset)->share].local;
	lite_access_exit(m);
	return *local ? lite_cluster_self_conn(a->ctx->mem->cl) : NULL;
}

/**
 * lite_atomic_post - perform an atomic by the device of the word's node
 * @m: mapping, entered
 * @conn: to its node, held live
 * @bounce: set to the value before
 * @opcode: LITE_OP_FETCH_ADD or LITE_OP_CMP_SWAP
 * @offset: of the word
 * @operand: addend, or the value expected
 * @swap: the new value
 *
 * Context: may sleep.
 * Return: 0; -EHOSTDOWN, -ETIMEDOUT, -EIO: it may or may not have been done.
 */
int lite_atomic_post(struct lite_mapping *m, struct lite_conn *conn,
		     struct lite_bounce *bounce, enum lite_opcode opcode,
		     u64 offset, u64 operand, u64 swap)
{
	const struct lite_extent *e = lite_extent_at(m, offset);
	struct lite_qp *qp = lite_conn_qp(conn, true);
	struct ib_sge sge = {
		.addr = bounce->dma,
		.length = sizeof(u64),
		.lkey = m->mem->fab->lkey,
	};
	struct ib_atomic_wr wr = lite_atomic_wr(qp, lite_op_wr(opcode), &sge,
						e->addr + (offset - e->start),
						operand, swap);
	struct lite_io io;
	int err;

	lite_io_init(&io);
	err = lite_qp_post(qp, &io, &wr.wr, false);
	lite_io_wait(&io, qp);
	ib_dma_sync_single_for_cpu(conn->fab->dev, bounce->dma, sizeof(u64),
				   DMA_BIDIRECTIONAL);
	err = err ?: io.status;
	if (unlikely(err))
		lite_bounce_failed(m->mem->fab, bounce);
	return lite_io_result(m, err);
}

/* Slow path of lite_atomic_end(). */
void lite_atomic_failed(struct lite_memory *mem, struct lite_conn *conn)
{
	if (!conn->other_end) {
		lite_conn_put_live(conn);
		return;
	}
	lite_conn_get(conn);
	lite_conn_put_live(conn);
	lite_cluster_fence_self(mem->cl, conn);
	lite_conn_put(conn);
}

static int lite_atomic_try(const struct lite_access *a,
			   struct lite_bounce *bounce, enum lite_opcode opcode,
			   u64 offset, u64 operand, u64 swap, bool *posted,
			   const struct lite_mapping **stale)
{
	struct lite_mapping *m;
	struct lite_conn *conn;
	bool local;
	u32 share;
	int err;

	conn = lite_atomic_conn(a, offset, &local, stale);
	if (IS_ERR(conn))
		return PTR_ERR(conn);
	m = lite_tryenter_range(a, offset, sizeof(u64), stale);
	if (IS_ERR(m)) {
		err = PTR_ERR(m);
		goto out;
	}
	share = lite_extent_at(m, offset)->share;
	if (local != m->share[share].local) {
		lite_access_exit(m);
		err = -EAGAIN;
		goto out;
	}
	if (!local)
		conn = lite_access_conn(m, share);
	err = PTR_ERR_OR_ZERO(conn);
	if (err) {
		conn = NULL;
	} else {
		*posted = true;
		err = lite_atomic_post(m, conn, bounce, opcode, offset, operand,
				       swap);
		lite_atomic_end(m->mem, conn, err);
		conn = NULL;
	}
	lite_access_exit(m);
	*stale = m;
out:
	if (conn)
		lite_conn_put_live(conn);
	return err;
}

static int lite_atomic_device(const struct lite_access *a,
			      enum lite_opcode opcode, u64 offset, u64 operand,
			      u64 swap, u64 *old, bool *posted)
{
	struct lite_fabric *fab = a->ctx->mem->fab;
	struct lite_bounce *bounce;
	int err;

	do {
		const struct lite_mapping *stale = NULL;

		bounce = lite_bounce_get(fab);
		if (!bounce)
			return -EINTR;
		err = lite_atomic_try(a, bounce, opcode, offset, operand, swap,
				      posted, &stale);
		if (!err)
			memcpy(old, bounce->data, sizeof(*old));
		lite_bounce_put(fab, bounce);
		/* Without the bounce page, which others need. */
		if (err == -EAGAIN && stale)
			err = lite_access_renew(a, stale) ?: -EAGAIN;
		if (err == -EAGAIN && lite_given_up())
			err = -EINTR;
	} while (err == -EAGAIN);
	return err;
}

/*
 * Check handle, right and bounds of an atomic operation. 0, -EINVAL, -ERANGE,
 * or as lite_access_enter(). May sleep; killable.
 */
int lite_atomic_may(const struct lite_access *a, u64 offset, u64 length)
{
	struct lite_mapping *m = lite_access_enter(a);
	int err;

	if (IS_ERR(m))
		return PTR_ERR(m);
	err = lite_atomic_check(offset, length, m->length);
	lite_access_exit(m);
	return err;
}

/*
 * lite_atomic(), setting @posted to whether it may have been done even if it
 * failed; valid for LITE_OP_FETCH_ADD and LITE_OP_CMP_SWAP only.
 */
int lite_atomic_known(const struct lite_access *a, enum lite_opcode opcode,
		      u64 offset, u64 length, u64 operand, u64 swap, u64 *old,
		      bool *posted)
{
	struct lite_memory *mem = a->ctx->mem;
	int err;

	*posted = false;
	do {
		err = lite_atomic_may(a, offset, length);
		if (err == -EHOSTDOWN)
			err = lite_access_await(a) ?: -EAGAIN;
	} while (err == -EAGAIN);
	if (err)
		return err;
	if (!mem->fab->atomics)
		return -EOPNOTSUPP;
	lite_stat_inc(mem->stats, LITE_STAT_OPS_INFLIGHT);
	if (opcode == LITE_OP_FETCH_ADD || opcode == LITE_OP_CMP_SWAP)
		err = lite_atomic_device(a, opcode, offset, operand, swap, old,
					 posted);
	else
		err = lite_memop_atomic(a, opcode, offset, operand, old);
	lite_stat_dec(mem->stats, LITE_STAT_OPS_INFLIGHT);
	lite_stat_inc(mem->stats,
		      err ? LITE_STAT_OP_ERRORS : LITE_STAT_ATOMICS);
	trace_lite_op(opcode, a->lh, offset, length, err);
	return err;
}

/**
 * lite_atomic - an atomic operation on an 8-byte word of an LMR
 * @a: handle and right
 * @opcode: LITE_OP_FETCH_ADD, _CMP_SWAP, _SWAP, _FETCH_AND or _FETCH_OR
 * @offset: in the LMR, a multiple of 8
 * @length: 8
 * @operand: addend, value expected, or operand of the other operations
 * @swap: the new value for LITE_OP_CMP_SWAP
 * @old: set to the value before
 *
 * Context: may sleep; killable.
 * Return: 0 or a negative errno, see LITE_IOC_OP. After -EHOSTDOWN and
 * -ETIMEDOUT it may or may not have been done.
 */
int lite_atomic(const struct lite_access *a, enum lite_opcode opcode,
		u64 offset, u64 length, u64 operand, u64 swap, u64 *old)
{
	bool posted;

	return lite_atomic_known(a, opcode, offset, length, operand, swap, old,
				 &posted);
}
