// SPDX-License-Identifier: GPL-2.0
/*
 * Large pieces of transfers: up to LITE_BATCH_PAGES of the caller's pages, pinned
 * meanwhile, and as many work requests as extents and SGEs demand.
 *
 * The caller's memory is touched by the device only between posting and the end
 * of lite_io_wait(), which nothing interrupts.
 */
#include <linux/mm.h>
#include <linux/scatterlist.h>
#include <linux/slab.h>

#include "memory.h"
#include "transfer.h"

/* 1 MB of the caller's pages at a time. */
#define LITE_BATCH_PAGES 256

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

/**
 * lite_piece_large - a piece of a transfer without copying
 * @p: transfer; not entered
 *
 * Context: may sleep, and fault.
 * Return: bytes done, or a negative errno; -EAGAIN: look again.
 */
ssize_t lite_piece_large(struct lite_piece_io *p)
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
