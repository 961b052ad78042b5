// SPDX-License-Identifier: GPL-2.0
/*
 * One-sided operations: read and write. (atomic.c has the atomics.)
 *
 * A transfer goes piece by piece; each piece enters the LMR anew, so that a
 * REVOKE never waits for more than one piece, and never for user space. Three
 * kinds of pieces:
 *
 *   local     memory of this node: copied, with page faults off
 *   small     up to a page: through a bounce page, one work request
 *   large     up to LITE_BATCH_PAGES of the caller's pages, pinned meanwhile,
 *             as many work requests as extents and SGEs demand
 *
 * The caller's memory is touched by the device only between posting and the end
 * of lite_io_wait(), which nothing interrupts.
 */
#include <linux/mm.h>
#include <linux/pagemap.h>
#include <linux/scatterlist.h>
#include <linux/slab.h>

#include "../trace.h"
#include "../wait.h"
#include "memory.h"

/* 1 MB of the caller's pages at a time. */
#define LITE_BATCH_PAGES 256
/* Bytes copied locally before others get a turn. */
#define LITE_COPY_BYTES (64UL << 10)
/* As often a piece is tried, in one session after the other. */
#define LITE_PIECE_TRIES 3
/* So often a large piece fails before it is made small: LITE_CAREFUL_BYTES. */
#define LITE_CAREFUL_AFTER 2

/**
 * struct lite_piece_io - what a transfer is at
 * @a: handle and right
 * @write: direction
 * @offset: in the LMR
 * @left: bytes to go
 * @at: offset in the buffer
 * @begun: the LMR has been entered, so rights and bounds were right
 * @tries: how often the piece at hand has failed
 * @large: of these, how often when it was posted as a large one
 * @buf: caller's
 */
struct lite_piece_io {
	const struct lite_access *a;
	bool write;
	u64 offset;
	u64 left;
	u64 at;
	bool begun;
	int tries;
	int large;
	const struct lite_buf *buf;
};

/**
 * lite_enter_range - enter for a part of an LMR
 * @a: handle and right
 * @offset: in the LMR, bytes
 * @length: bytes
 *
 * Between two entries the handle may have been closed, and its number may even
 * name another LMR by now: the bounds are checked each time.
 *
 * Context: may sleep; killable.
 * Return: as lite_access_enter(); -EINVAL, -ERANGE.
 */
struct lite_mapping *lite_enter_range(const struct lite_access *a, u64 offset,
				      u64 length)
{
	struct lite_mapping *m = lite_access_enter(a);
	int err;

	if (IS_ERR(m))
		return m;
	err = lite_bounds_check(offset, length, m->length);
	if (!err)
		return m;
	lite_access_exit(m);
	return ERR_PTR(err);
}

/**
 * lite_tryenter_range - enter for a part of an LMR, unless that takes a while
 * @a: handle and right
 * @offset: in the LMR, bytes
 * @length: bytes
 * @stale: set to what lite_access_renew() is to be told, after -EAGAIN
 *
 * For those who have a bounce page in hand, or are in another LMR already:
 * after -EAGAIN they give that back, and renew.
 *
 * Context: any process.
 * Return: as lite_access_tryenter(); -EINVAL, -ERANGE.
 */
struct lite_mapping *lite_tryenter_range(const struct lite_access *a,
					 u64 offset, u64 length,
					 const struct lite_mapping **stale)
{
	struct lite_mapping *m = lite_access_tryenter(a, stale);
	int err;

	if (IS_ERR(m))
		return m;
	err = lite_bounds_check(offset, length, m->length);
	if (!err)
		return m;
	lite_access_exit(m);
	return ERR_PTR(err);
}

/* Copy what is local. Returns bytes, or a negative errno. */
static ssize_t lite_piece_local(struct lite_piece_io *p, struct lite_mapping *m,
				const struct lite_extent *e)
{
	u64 in = p->offset - e->start;
	size_t n = min3(p->left, e->length - in, (u64)LITE_COPY_BYTES);
	void *mem = lite_store_address(m->mem, e->addr + in, &n);
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

/* Post what a bounce page holds, and wait. */
static int lite_small_post(struct lite_piece_io *p, struct lite_mapping *m,
			   struct lite_bounce *bounce, size_t n)
{
	const struct lite_extent *e = lite_extent_at(m, p->offset);
	u64 in = p->offset - e->start;
	struct ib_sge sge = {
		.lkey = m->mem->fab->lkey,
	};
	size_t at, max = LITE_BOUNCE_SIZE;
	struct lite_conn *conn;
	struct lite_qp *qp;
	struct lite_io io;
	int err = 0;

	/* The LMR may have been mapped anew since the caller looked. */
	if (n > e->length - in || !m->share[e->share].peer)
		return -EAGAIN;
	conn = lite_access_conn(m, e->share);
	if (IS_ERR(conn))
		return PTR_ERR(conn);
	qp = lite_conn_qp(conn);
	ib_dma_sync_single_for_device(conn->fab->dev, bounce->dma, n,
				      DMA_BIDIRECTIONAL);
	lite_io_init(&io);
	if (!p->write)
		max = conn->read_trusted;
	for (at = 0; at < n && !err; at += sge.length) {
		sge.addr = bounce->dma + at;
		sge.length = min(n - at, max);
		err = lite_qp_rdma(qp, &io, p->write ? IB_WR_RDMA_WRITE :
						       IB_WR_RDMA_READ,
				   &sge, 1, e->addr + in + at, 0);
	}
	lite_io_wait(&io, qp);
	ib_dma_sync_single_for_cpu(conn->fab->dev, bounce->dma, n,
				   DMA_BIDIRECTIONAL);
	lite_conn_put_live(conn);
	return lite_io_result(m, err ?: io.status);
}

/*
 * A piece through a bounce page, entered; leaves, and gives the page back.
 *
 * Nothing is waited for here but the device. What is not present in the caller's
 * buffer is faulted in at the end, and the piece tried again.
 */
static ssize_t lite_small_go(struct lite_piece_io *p, struct lite_mapping *m,
			     struct lite_bounce *bounce, size_t n)
{
	struct lite_memory *mem = m->mem;
	size_t done = n;
	int err = 0;

	if (p->write)
		done = lite_buf_copy_nofault(p->buf, p->at, bounce->data, n,
					     true);
	if (done)
		err = lite_small_post(p, m, bounce, done);
	if (done && !err && p->large >= LITE_CAREFUL_AFTER)
		WRITE_ONCE(m->careful, jiffies);
	lite_access_exit(m);
	if (!err && !p->write)
		done = lite_buf_copy_nofault(p->buf, p->at, bounce->data, n,
					     false);
	lite_bounce_put(mem->fab, bounce);
	/* @m is only compared now. */
	if (err == -EAGAIN)
		return lite_access_renew(p->a, m) ?: -EAGAIN;
	if (err)
		return err;
	if (done)
		return done;
	return lite_buf_fault_in(p->buf, p->at, n, p->write);
}

/*
 * Bounce pages are few and everybody's: one that has to be waited for is waited
 * for outside of the LMR, and given back before the handle is renewed.
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
		return lite_small_go(p, m, bounce, n);
	lite_bounce_put(mem->fab, bounce);
	if (m == ERR_PTR(-EAGAIN))
		return lite_access_renew(p->a, stale) ?: -EAGAIN;
	return PTR_ERR(m);
}

/* Walks the caller's pages, as mapped for the device. */
struct lite_sg_cursor {
	struct scatterlist *sg;
	size_t in;
};

/* Fill SGEs for at most @n bytes; returns bytes. */
static size_t lite_sges_fill(struct lite_sg_cursor *c, struct ib_device *dev,
			     u32 lkey, struct ib_sge *sge, int max, int *n_sge,
			     size_t n)
{
	size_t done = 0;

	for (*n_sge = 0; *n_sge < max && done < n; ++*n_sge) {
		size_t len = min_t(size_t, sg_dma_len(c->sg) - c->in, n - done);

		sge[*n_sge].addr = sg_dma_address(c->sg) + c->in;
		sge[*n_sge].length = len;
		sge[*n_sge].lkey = lkey;
		done += len;
		c->in += len;
		if (c->in == sg_dma_len(c->sg)) {
			c->sg = sg_next(c->sg);
			c->in = 0;
		}
	}
	return done;
}

/* Post @n bytes, all in the share that the connection goes to. */
static int lite_large_post(struct lite_piece_io *p, struct lite_mapping *m,
			   struct lite_qp *qp, struct lite_io *io,
			   struct sg_table *sgt, size_t n)
{
	struct lite_fabric *fab = m->mem->fab;
	struct lite_sg_cursor cursor = { .sg = sgt->sgl };
	const int max = p->write ? fab->max_sge : fab->max_sge_rd;
	const struct lite_extent *e = lite_extent_at(m, p->offset);
	u64 in = p->offset - e->start;
	struct ib_sge sge[LITE_SGE_MAX];
	bool confirm = !p->write && n > qp->conn->read_trusted;
	int err = 0;

	while (n && !err) {
		size_t wr = min3((u64)n, e->length - in,
				 (u64)LITE_WR_BYTES_MAX);
		int n_sge;

		wr = lite_sges_fill(&cursor, fab->dev, fab->lkey, sge, max,
				    &n_sge, wr);
		err = lite_qp_rdma(qp, io, p->write ? IB_WR_RDMA_WRITE :
						      IB_WR_RDMA_READ,
				   sge, n_sge, e->addr + in, 0);
		n -= wr;
		in += wr;
		if (in == e->length) {
			e++;
			in = 0;
		}
	}
	if (confirm && !err)
		err = lite_qp_confirm(qp, io);
	return err;
}

/* Bytes from @offset that one connection can carry. */
static u64 lite_share_run(const struct lite_mapping *m, u64 offset, u64 max)
{
	u32 i = lite_extent_find(m->extents, m->n_extents, offset);
	u32 share = m->extents[i].share;
	u64 end;

	do {
		end = m->extents[i].start + m->extents[i].length;
	} while (end - offset < max && ++i < m->n_extents &&
		 m->extents[i].share == share);
	return min(max, end - offset);
}

static ssize_t lite_large_go(struct lite_piece_io *p, struct sg_table *sgt,
			     size_t n)
{
	struct lite_mapping *m = lite_enter_range(p->a, p->offset, n);
	struct lite_conn *conn;
	struct lite_qp *qp;
	struct lite_io io;
	int err;

	if (IS_ERR(m))
		return PTR_ERR(m);
	/* Another LMR than the caller looked at? Then look again. */
	if (!m->share[lite_extent_at(m, p->offset)->share].peer) {
		lite_access_exit(m);
		return -EAGAIN;
	}
	n = lite_share_run(m, p->offset, n);
	conn = lite_access_conn(m, lite_extent_at(m, p->offset)->share);
	err = PTR_ERR_OR_ZERO(conn);
	if (!err) {
		qp = lite_conn_qp(conn);
		lite_io_init(&io);
		err = lite_large_post(p, m, qp, &io, sgt, n);
		/* What was posted before an error is in flight all the same. */
		lite_io_wait(&io, qp);
		lite_conn_put_live(conn);
		err = lite_io_result(m, err ?: io.status);
		p->large += !!err;
	}
	lite_access_exit(m);
	if (err == -EAGAIN)
		err = lite_access_renew(p->a, m) ?: -EAGAIN;
	return err ?: n;
}

static ssize_t lite_piece_large(struct lite_piece_io *p)
{
	struct lite_memory *mem = p->a->ctx->mem;
	struct ib_device *dev = mem->fab->dev;
	enum dma_data_direction dir = p->write ? DMA_TO_DEVICE :
						 DMA_FROM_DEVICE;
	struct page **pages;
	struct sg_table sgt;
	size_t offset, n;
	ssize_t ret;
	int n_pages;

	pages = kmalloc_array(LITE_BATCH_PAGES, sizeof(*pages), GFP_KERNEL);
	if (!pages)
		return -ENOMEM;
	n = min_t(u64, p->left, LITE_BATCH_PAGES * PAGE_SIZE);
	n_pages = lite_buf_pin(p->buf, p->at, n, p->write, pages,
			       LITE_BATCH_PAGES, &offset, &n);
	ret = n_pages;
	if (n_pages < 0)
		goto out;
	lite_stat_add(mem->stats, LITE_STAT_PINNED_PAGES, n_pages);
	ret = sg_alloc_table_from_pages(&sgt, pages, n_pages, offset, n,
					GFP_KERNEL);
	if (ret)
		goto out_unpin;
	ret = ib_dma_map_sgtable_attrs(dev, &sgt, dir, 0);
	if (!ret) {
		ret = lite_large_go(p, &sgt, n);
		ib_dma_unmap_sgtable_attrs(dev, &sgt, dir, 0);
	}
	sg_free_table(&sgt);
out_unpin:
	lite_buf_unpin(p->buf, pages, n_pages, !p->write);
	lite_stat_add(mem->stats, LITE_STAT_PINNED_PAGES, -n_pages);
out:
	kfree(pages);
	return ret;
}

/* One piece; bytes done, maybe 0: look again; or a negative errno. */
static ssize_t lite_piece(struct lite_piece_io *p)
{
	struct lite_mapping *m = lite_enter_range(p->a, p->offset, p->left);
	const struct lite_extent *e;
	struct lite_bounce *bounce;
	size_t n;

	if (IS_ERR(m))
		return PTR_ERR(m);
	p->begun = true;
	if (!p->left) {
		lite_access_exit(m);
		return 0;
	}
	e = lite_extent_at(m, p->offset);
	if (!m->share[e->share].peer)
		return lite_piece_local(p, m, e);
	n = min(p->left, e->start + e->length - p->offset);
	if (p->large >= LITE_CAREFUL_AFTER || lite_mapping_is_careful(m))
		n = min_t(size_t, n, LITE_CAREFUL_BYTES);
	if (n <= LITE_BOUNCE_SIZE) {
		bounce = lite_bounce_tryget(m->mem->fab);
		if (bounce)
			return lite_small_go(p, m, bounce, n);
	}
	lite_access_exit(m);
	if (n <= LITE_BOUNCE_SIZE)
		return lite_piece_small(p, n);
	return lite_piece_large(p);
}

/**
 * lite_transfer - read from or write to an LMR
 * @a: handle and right
 * @write: direction
 * @offset: in the LMR, bytes
 * @length: bytes
 * @buf: caller's memory
 * @done: set to the leading bytes that have been transferred
 *
 * Context: may sleep; a fatal signal ends it after the piece in flight.
 * Return: 0 or a negative errno as LITE_IOC_OP.
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
	ssize_t ret = 0;

	*done = 0;
	lite_stat_inc(stats, LITE_STAT_OPS_INFLIGHT);
	/* Of nothing, too, it is looked whether it is permitted. */
	while (p.left || !p.begun) {
		ret = lite_piece(&p);
		/*
		 * Until the LMR can be entered nothing was tried. After that, to
		 * do a piece twice is to do it once.
		 */
		if (ret == -EHOSTDOWN && !p.begun)
			ret = lite_access_await(a) ?: -EAGAIN;
		else if ((ret == -EHOSTDOWN || ret == -ETIMEDOUT) &&
			 ++p.tries < LITE_PIECE_TRIES)
			ret = lite_access_await(a) == -EINTR ? -EINTR : -EAGAIN;
		if (ret < 0 && ret != -EAGAIN)
			break;
		if (ret > 0) {
			p.tries = 0;
			p.large = 0;
			p.left -= ret;
			p.offset += ret;
			p.at += ret;
		}
		ret = 0;
		if (p.left && lite_given_up()) {
			ret = -EINTR;
			break;
		}
		cond_resched();
	}
	/* It may be us who went. */
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
