// SPDX-License-Identifier: GPL-2.0
/*
 * One-sided read and write. (atomic.c has the atomics.)
 *
 * A transfer is cut into pieces. Each enters the LMR anew, so that a REVOKE
 * waits for one piece at most, and never for user space. Three kinds of pieces:
 *
 *   local     memory of this node: copied, with page faults off
 *   small     up to a page: through a bounce page
 *   large     the caller's pages, pinned meanwhile (transfer_large.c)
 *
 * The device accesses the caller's memory only between posting and the end of
 * lite_io_wait(), which cannot be interrupted.
 */

#include "memory/handle/ctx.h"
#include "memory/memory.h"
#include "memory/store/store.h"
#include "compat.h"
#include "trace.h"
#include "transfer.h"
#include "wait.h"

/* Bytes copied locally per entry and reschedule. */
#define LITE_COPY_BYTES (64UL << 10)
/* Bytes of a large piece, at most. */
#define LITE_LARGE_BYTES (16ULL << 20)
/* Attempts per piece, across sessions. */
#define LITE_PIECE_TRIES 3
/* Failures of a large piece before it is cut to LITE_CAREFUL_BYTES. */
#define LITE_CAREFUL_AFTER 2

/* Copy a local piece and leave the LMR. Returns bytes or a negative errno. */
static ssize_t lite_piece_local(struct lite_piece_io *p, struct lite_mapping *m,
				const struct lite_extent *e)
{
	u64 in = p->offset - e->start;
	size_t n = min3(p->left, e->length - in, (u64)LITE_COPY_BYTES);
	void *mem = lite_mapping_address(m, e, in, &n);
	size_t done = 0;

	if (!WARN_ON_ONCE(!mem))
		done = lite_buf_copy_nofault(p->buf, p->at, mem, n, p->write);
	lite_access_exit(m);
	if (done)
		return done;
	if (!mem)
		return -EIO;
	return lite_buf_fault_in(p->buf, p->at, n, p->write);
}

/* Post a piece that is in a bounce page, and wait for it. */
static int lite_small_post(struct lite_piece_io *p, struct lite_mapping *m,
			   const struct lite_extent *e,
			   struct lite_bounce *bounce, size_t n)
{
	u64 in = p->offset - e->start;
	enum ib_wr_opcode op = p->write ? IB_WR_RDMA_WRITE : IB_WR_RDMA_READ;
	struct lite_conn *conn;
	struct lite_qp *qp;
	struct ib_sge sge;
	size_t max, at = 0;
	int err;
	struct lite_io io LITE_UNINIT;

	/* The LMR may have been mapped again since the caller looked. */
	if (n > e->length - in || m->share[e->share].local)
		return -EAGAIN;
	conn = lite_access_conn(m, e->share);
	if (IS_ERR(conn))
		return PTR_ERR(conn);
	qp = lite_conn_qp(conn, !p->write);
	ib_dma_sync_single_for_device(conn->fab->dev, bounce->dma, n,
				      DMA_BIDIRECTIONAL);
	lite_io_init(&io);
	max = p->write ? LITE_BOUNCE_SIZE : conn->read_trusted;
	do {
		sge.addr = bounce->dma + at;
		sge.length = min(n - at, max);
		sge.lkey = conn->fab->lkey;
		err = lite_qp_rdma(qp, &io, op, &sge, 1, e->addr + in + at, 0);
		at += sge.length;
	} while (unlikely(at < n) && !err);
	lite_io_wait(&io, qp);
	ib_dma_sync_single_for_cpu(conn->fab->dev, bounce->dma, n,
				   DMA_BIDIRECTIONAL);
	lite_conn_put_live(conn);
	err = err ?: io.status;
	if (unlikely(err))
		lite_bounce_failed(m->mem->fab, bounce);
	return lite_io_result(m, err);
}

/*
 * Transfer a piece through a bounce page; leaves the entered LMR and puts the
 * page.
 *
 * While the LMR is entered, only the device is waited for. Absent pages of the
 * caller's buffer are faulted in at the end, and the piece is tried again.
 */
static ssize_t lite_small_submit(struct lite_piece_io *p,
				 struct lite_mapping *m,
				 const struct lite_extent *e,
				 struct lite_bounce *bounce, size_t n)
{
	struct lite_memory *mem = m->mem;
	size_t done = n;
	int err = 0;

	if (p->write)
		done = lite_buf_copy_nofault(p->buf, p->at, bounce->data, n,
					     true);
	if (done)
		err = lite_small_post(p, m, e, bounce, done);
	if (done && !err && p->large >= LITE_CAREFUL_AFTER)
		WRITE_ONCE(m->careful, jiffies);
	lite_access_exit(m);
	if (!err && !p->write)
		done = lite_buf_copy_nofault(p->buf, p->at, bounce->data, n,
					     false);
	lite_bounce_put(mem->fab, bounce);
	/* @m is only compared. */
	if (err == -EAGAIN)
		return lite_access_renew(p->a, m) ?: -EAGAIN;
	if (err)
		return err;
	if (done)
		return done;
	return lite_buf_fault_in(p->buf, p->at, n, p->write);
}

/*
 * Bounce pages are few and shared by all users. Wait for one without having
 * entered the LMR, and put it before renewing the handle.
 */
static ssize_t lite_piece_small(struct lite_piece_io *p, size_t n)
{
	struct lite_memory *mem = p->a->ctx->mem;
	struct lite_bounce *bounce = lite_bounce_get(mem->fab);
	const struct lite_mapping *stale;
	struct lite_mapping *m;

	if (!bounce)
		return -EINTR;
	m = lite_tryenter_range(p->a, p->offset, n, &stale);
	if (!IS_ERR(m))
		return lite_small_submit(p, m, lite_extent_at(m, p->offset),
					 bounce, n);
	lite_bounce_put(mem->fab, bounce);
	if (m == ERR_PTR(-EAGAIN))
		return lite_access_renew(p->a, stale) ?: -EAGAIN;
	return PTR_ERR(m);
}

/* Transfer a piece. Bytes done; 0: look again; or a negative errno. */
static ssize_t lite_piece(struct lite_piece_io *p)
{
	struct lite_mapping *m = lite_enter_range(p->a, p->offset, p->left);
	const struct lite_extent *e;
	struct lite_bounce *bounce;
	u64 run;
	size_t n;

	if (IS_ERR(m))
		return PTR_ERR(m);
	p->begun = true;
	if (!p->left) {
		lite_access_exit(m);
		return 0;
	}
	e = lite_extent_at(m, p->offset);
	if (m->share[e->share].local)
		return lite_piece_local(p, m, e);
	n = min(p->left, e->start + e->length - p->offset);
	if (p->large >= LITE_CAREFUL_AFTER || lite_mapping_is_careful(m))
		n = min_t(size_t, n, LITE_CAREFUL_BYTES);
	if (n <= LITE_BOUNCE_SIZE) {
		bounce = lite_bounce_tryget(m->mem->fab);
		if (bounce)
			return lite_small_submit(p, m, e, bounce, n);
	}
	run = lite_share_run(m, p->offset, min(p->left, LITE_LARGE_BYTES));
	lite_access_exit(m);
	if (n <= LITE_BOUNCE_SIZE)
		return lite_piece_small(p, n);
	return lite_piece_large(p, run);
}

/*
 * Before the LMR was entered nothing was tried; after that, repeating a piece
 * is safe, as it is idempotent. 0: try again; or a negative errno.
 */
static noinline int lite_piece_failed(struct lite_piece_io *p, int err)
{
	if (err == -EHOSTDOWN && !p->begun)
		err = lite_access_await(p->a) ?: -EAGAIN;
	else if ((err == -EHOSTDOWN || err == -ETIMEDOUT) &&
		 ++p->tries < LITE_PIECE_TRIES)
		err = lite_access_await(p->a) == -EINTR ? -EINTR : -EAGAIN;
	return err == -EAGAIN ? 0 : err;
}

/**
 * lite_transfer - read from or write to an LMR
 * @a: handle and right
 * @write: direction
 * @offset: in the LMR, bytes
 * @length: bytes
 * @buf: caller's memory
 * @done: set to the leading bytes that have been transferred, also on failure
 *
 * Context: may sleep; a fatal signal ends it after the piece in flight.
 * Return: 0 or a negative errno, see LITE_IOC_OP.
 */
int lite_transfer(const struct lite_access *a, bool write, u64 offset,
		  u64 length, const struct lite_buf *buf, u64 *done)
{
	struct lite_stats __percpu *stats = a->ctx->mem->stats;
	struct lite_piece_io p = {
		.a = a,
		.write = write,
		.offset = offset,
		.left = length,
		.buf = buf,
	};
	ssize_t n;
	int ret;

	*done = 0;
	lite_stat_inc(stats, LITE_STAT_OPS_INFLIGHT);
	for (;;) {
		n = lite_piece(&p);
		if (likely(n > 0))
			lite_piece_advance(&p, n);
		ret = likely(n >= 0) ? 0 : lite_piece_failed(&p, n);
		/* A length of 0, too, must enter the LMR, to get its error. */
		if (ret || (!p.left && p.begun))
			break;
		if (lite_given_up()) {
			ret = -EINTR;
			break;
		}
		cond_resched();
	}
	/* This node may have left or stopped. */
	if (ret == -EHOSTDOWN)
		ret = lite_cluster_ready(a->ctx->mem->cl) ?: ret;
	*done = p.at;
	lite_stat_dec(stats, LITE_STAT_OPS_INFLIGHT);
	if (!p.begun)
		return ret;
	lite_stat_inc(stats, write ? LITE_STAT_WRITES : LITE_STAT_READS);
	lite_stat_add(stats, write ? LITE_STAT_WRITE_BYTES :
				     LITE_STAT_READ_BYTES, p.at);
	if (ret)
		lite_stat_inc(stats, LITE_STAT_OP_ERRORS);
	trace_lite_op(write ? LITE_OP_WRITE : LITE_OP_READ, a->lh, offset,
		      length, ret);
	return ret;
}
