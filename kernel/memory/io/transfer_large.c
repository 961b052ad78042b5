// SPDX-License-Identifier: GPL-2.0
/*
 * Large pieces of transfers: zero-copy from or to the caller's pages. These are pinned while the
 * device may access them, from posting to the end of lite_io_wait_large(), which cannot be
 * interrupted.
 *
 * A piece is cut into batches: while the device works on some, the next are pinned and posted. Each
 * enters the LMR anew, so that a REVOKE waits for LITE_BATCHES batches at most.
 *
 * While anything is in flight, only present pages are pinned (decisions.rst says why), and locking
 * pages that were written is put off. Once a buffer turns out to have absent pages, LITE_BATCHES
 * batches at a time are pinned before any is posted.
 *
 * Batches end in the order of posting. After one has failed, later ones do not count: only leading
 * bytes are reported as done.
 */
#include <linux/mm.h>
#include <linux/scatterlist.h>
#include <linux/slab.h>

#include "core/memop_rules.h"
#include "fabric/chain.h"
#include "memory/memory.h"
#include "transfer.h"

/*
 * Pages of a batch, and batches in flight. A queue pair has slots for all of these, so a thread
 * that is alone on it waits for batches, but never for a slot (LITE_ROOM_SPIN_NS), unless its reads
 * have to be confirmed, which takes one more.
 */
#define LITE_BATCH_PAGES 64
#define LITE_BATCH_BYTES (LITE_BATCH_PAGES * PAGE_SIZE)
#define LITE_BATCHES 2
static_assert(LITE_BATCHES * LITE_BATCH_BYTES <= LITE_SQ_BULK * LITE_WR_BYTES_MAX);
/* Work requests that are posted together; a batch of scattered pages may need more. */
#define LITE_BATCH_WRS 8

/* Bytes that are posted and waited for together. */
struct lite_batch {
	const struct lite_piece_io *p;           /* its transfer */
	u64 offset;                              /* in the LMR */
	size_t n;                                /* bytes */
	int n_pages;                             /* pinned; 0: the batch is free */
	size_t skip;                             /* offset of the bytes in the first page */
	struct lite_mapping *m;                  /* entered while in flight; NULL: left already */
	struct lite_conn *conn;                  /* held live while in flight */
	struct lite_qp *qp;                      /* where it is posted */
	struct lite_io io;                       /* waits for it */
	int err;                                 /* of posting */
	struct sg_table sgt;                     /* describes @sg */
	struct page *pages[LITE_BATCH_PAGES];    /* of the caller */
	struct scatterlist sg[LITE_BATCH_PAGES]; /* @pages, merged; mapped while in flight */
	struct lite_link link[LITE_BATCH_WRS + 1]; /* work requests that are being posted */
	/* SGEs of @link: each ends where a work request or a page does. */
	struct ib_sge sge[LITE_BATCH_WRS + LITE_BATCH_PAGES];
};

struct lite_large {
	struct lite_piece_io *p;          /* its transfer, advanced as batches end */
	enum dma_data_direction dir;      /* for the device */
	u64 offset;                       /* in the LMR, of what is not pinned yet */
	u64 at;                           /* in the buffer, of what is not pinned yet */
	u64 left;                         /* bytes that are not pinned yet */
	u32 max;                          /* batches that may be in flight */
	u32 pinned;                       /* batches pinned so far */
	u32 posted;                       /* batches posted so far */
	u32 ended;                        /* batches ended so far */
	bool absent;                      /* the buffer has pages that were not present */
	bool locked;                      /* some pages could not be unpinned without blocking */
	bool halted;                      /* post no more batches */
	bool failed;                      /* a batch has ended with an error */
	int err;                          /* why it went no further */
	const struct lite_mapping *stale; /* with -EAGAIN: for lite_piece_renew(), or NULL */
	struct lite_batch batch[];        /* ring; @pinned % @max is the next to pin */
};

/* Position in the caller's pages, as mapped for the device. */
struct lite_sg_cursor {
	struct scatterlist *sg;
	size_t in;
};

/* Fill SGEs for at most @n bytes. Return: the bytes. */
static size_t lite_sges_fill(struct lite_sg_cursor *c, u32 lkey, struct ib_sge *sge, int max,
			     int *n_sge, size_t n)
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

/* What is left to post of a batch. */
struct lite_batch_cursor {
	struct lite_sg_cursor sg;    /* in the caller's memory */
	const struct lite_extent *e; /* in the LMR */
	u64 in;                      /* offset in @e */
	size_t n;                    /* bytes */
	bool held;                   /* the io has an extra share until all is posted */
};

/* Post some work requests of a batch. While this thread waits for slots, others post for it. */
static int lite_batch_post_some(struct lite_batch *b, bool write, u32 prio,
				struct lite_batch_cursor *c)
{
	struct lite_fabric *fab = b->m->mem->fab;
	const int max = write ? fab->max_sge : fab->max_sge_rd;
	struct ib_sge *sge = b->sge;
	struct lite_chain chain;
	int i, n_sge;
	size_t wr;

	lite_chain_init(&chain, b->qp, &b->io, prio);
	for (i = 0; i < LITE_BATCH_WRS && c->n; i++) {
		struct lite_link *link = &b->link[i];

		wr = min3((u64)c->n, c->e->length - c->in, (u64)LITE_WR_BYTES_MAX);
		wr = lite_sges_fill(&c->sg, fab->lkey, sge, max, &n_sge, wr);
		lite_rdma_wr(&link->rdma, b->qp, write ? IB_WR_RDMA_WRITE : IB_WR_RDMA_READ, sge,
			     n_sge, c->e->addr + c->in, 0);
		lite_chain_add(&chain, &link->rdma.wr);
		sge += n_sge;
		if (wr > LITE_BULK_BYTES)
			chain.kind = LITE_SLOT_BULK;
		c->n -= wr;
		c->in += wr;
		if (c->in == c->e->length) {
			c->e++;
			c->in = 0;
		}
	}
	if (!write && !c->n && lite_must_confirm(b->conn, b->n))
		lite_chain_touch(&chain, &b->link[i]);
	chain.held = c->held && !c->n;
	if (!c->held && c->n)
		lite_io_expect(&b->io, 1);
	c->held = c->n;
	lite_chain_post(&chain, true);
	return chain.cut ? -EAGAIN : READ_ONCE(b->io.status);
}

/* Post all of a batch. Its bytes are all at the node of the connection. */
static int lite_batch_rdma(struct lite_batch *b, bool write, u32 prio)
{
	const struct lite_extent *e = lite_extent_at(b->m, b->offset);
	struct lite_batch_cursor c = {
		.sg.sg = b->sgt.sgl,
		.e = e,
		.in = b->offset - e->start,
		.n = b->n,
	};
	int err = 0;

	while (c.n && !err)
		err = lite_batch_post_some(b, write, prio, &c);
	if (c.held)
		lite_io_end(&b->io, 0, 1);
	return err;
}

/* Merge contiguous pages and map them for the device. */
static int lite_batch_map(struct lite_batch *b, struct ib_device *dev, enum dma_data_direction dir)
{
	const unsigned int max = ib_dma_max_seg_size(dev);
	size_t skip = b->skip, left = b->n;
	struct scatterlist *sg = NULL;
	unsigned int n_sg = 0;
	int i;

	sg_init_table(b->sg, b->n_pages);
	for (i = 0; i < b->n_pages; i++) {
		size_t len = min_t(size_t, PAGE_SIZE - skip, left);

		if (sg && page_to_pfn(b->pages[i]) == page_to_pfn(b->pages[i - 1]) + 1 &&
		    sg->length + len <= max) {
			sg->length += len;
		} else {
			sg = &b->sg[n_sg++];
			sg_set_page(sg, b->pages[i], len, skip);
		}
		left -= len;
		skip = 0;
	}
	sg_mark_end(sg);
	b->sgt = (struct sg_table){
		.sgl = b->sg,
		.nents = n_sg,
		.orig_nents = n_sg,
	};
	return ib_dma_map_sgtable_attrs(dev, &b->sgt, dir, 0);
}

/* A worker is never killed, but the thread that it works for may be. */
static bool lite_batch_stale(const struct lite_io *io)
{
	const struct lite_batch *b = container_of(io, struct lite_batch, io);

	return lite_ops_closed(b->m) || lite_piece_given_up(b->p);
}

/* Leave the LMR: see lite_entered_io_ended(). */
static void lite_batch_ended(struct lite_io *io)
{
	struct lite_batch *b = container_of(io, struct lite_batch, io);
	struct lite_mapping *m = b->m;

	lite_io_result(m, io->status);
	b->m = NULL;
	lite_access_exit(m);
}

static const struct lite_io_hooks lite_batch_hooks = {
	.stale = lite_batch_stale,
	.ended = lite_batch_ended,
	.eager = true,
};

/* Get the session of a batch, if all of it is still in one remote share. */
static int lite_batch_connect(struct lite_large *l, struct lite_batch *b)
{
	u32 share = lite_extent_at(b->m, b->offset)->share;

	if (b->m->share[share].local ||
	    lite_extent_run(b->m->extents, b->m->n_extents, b->offset, b->n) < b->n)
		return -EAGAIN;
	b->conn = lite_access_conn(b->m, share);
	if (!IS_ERR(b->conn))
		return 0;
	if (b->conn == ERR_PTR(-EAGAIN))
		l->stale = b->m;
	return PTR_ERR(b->conn);
}

/* Enter the LMR and post a batch. Does not renew the handle: that may wait for earlier batches. */
static int lite_batch_post(struct lite_large *l, struct lite_batch *b)
{
	struct lite_piece_io *p = l->p;
	struct ib_device *dev = p->a->ctx->mem->fab->dev;
	int err;

	err = lite_batch_map(b, dev, l->dir);
	if (err)
		return err;
	b->m = lite_tryenter_range(p->a, b->offset, b->n, &l->stale);
	err = PTR_ERR_OR_ZERO(b->m);
	if (err)
		goto err_unmap;
	err = lite_batch_connect(l, b);
	if (err)
		goto err_exit;
	b->qp = lite_conn_qp(b->conn, !lite_piece_writes(p), p->prio);
	lite_io_init(&b->io);
	b->io.hooks = &lite_batch_hooks;
	/* Even after an error some of the batch may be in flight, so it counts as posted. */
	b->err = lite_batch_rdma(b, lite_piece_writes(p), p->prio);
	l->posted++;
	return b->err;

err_exit:
	lite_access_exit(b->m);
err_unmap:
	ib_dma_unmap_sgtable_attrs(dev, &b->sgt, l->dir, 0);
	return err;
}

static void lite_large_post(struct lite_large *l)
{
	int err = lite_batch_post(l, &l->batch[l->posted % l->max]);

	if (!err)
		return;
	/* A batch that could not be pinned comes later: this error replaces that one. */
	l->err = err;
	l->halted = true;
}

/* Pin the next batch. Return: false: there is none, it has to wait, or pinning failed. */
static bool lite_large_pin(struct lite_large *l)
{
	struct lite_batch *b = &l->batch[l->pinned % l->max];
	bool idle = l->posted == l->ended;
	struct lite_piece_io *p = l->p;
	u64 n = min_t(u64, l->left, LITE_BATCH_BYTES);
	int n_pages;

	if (l->err || l->locked || !l->left || l->pinned - l->ended == l->max)
		return false;
	if (l->absent && !idle)
		return false;
	if (l->pinned && lite_piece_given_up(p))
		return false;
	if (p->chunked)
		n = min(n, LITE_CHUNK_BYTES - (l->offset & (LITE_CHUNK_BYTES - 1)));
	n_pages = lite_buf_pin(p->buf, l->at, n, lite_piece_writes(p), idle, b->pages,
			       LITE_BATCH_PAGES, &b->skip, &b->n);
	if (n_pages == -EAGAIN) {
		l->absent = true;
		return false;
	}
	if (n_pages < 0) {
		l->err = n_pages;
		/* The node may have stopped: do not touch it. */
		l->halted = n_pages == -ENODEV;
		return false;
	}
	lite_stat_add(p->a->ctx->mem->stats, LITE_STAT_PINNED_PAGES, n_pages);
	b->p = p;
	b->n_pages = n_pages;
	b->offset = l->offset;
	l->offset += b->n;
	l->at += b->n;
	l->left -= b->n;
	l->pinned++;
	return true;
}

static void lite_batch_free(struct lite_batch *b, struct lite_stats __percpu *stats)
{
	lite_stat_add(stats, LITE_STAT_PINNED_PAGES, -b->n_pages);
	b->n_pages = 0;
}

/* Wait for the oldest batch in flight. */
static void lite_large_end(struct lite_large *l)
{
	struct lite_batch *b = &l->batch[l->ended % l->max];
	struct lite_piece_io *p = l->p;
	struct lite_memory *mem = p->a->ctx->mem;
	bool cut, lost;
	int err;

	lite_io_wait_large(&b->io, b->qp);
	l->ended++;
	/* If the batch merely gave up waiting for its turn, nothing of it has failed. */
	cut = b->err == -EAGAIN && !b->io.status;
	err = b->err ?: b->io.status;
	if (b->m) {
		if (!cut)
			lite_io_result(b->m, err);
		lite_access_exit(b->m);
	}
	lost = err && !cut && READ_ONCE(b->conn->unfenced);
	/* If the fence failed the device may still use the pages: they stay pinned and mapped. */
	if (lost) {
		lite_stat_add(mem->stats, LITE_STAT_QUARANTINED, b->n_pages);
		lite_buf_keep(p->buf, b->pages, b->n_pages);
	} else {
		ib_dma_unmap_sgtable_attrs(mem->fab->dev, &b->sgt, l->dir, 0);
	}
	lite_conn_put_live(b->conn);
	if (lost || lite_buf_tryunpin(p->buf, b->pages, b->n_pages, !lite_piece_writes(p)))
		lite_batch_free(b, mem->stats);
	else
		l->locked = true;
	if (l->failed)
		return;
	if (!err) {
		lite_piece_advance(p, b->n);
		return;
	}
	l->failed = true;
	l->halted = true;
	l->err = err;
	p->large += !cut;
}

/* With nothing in flight, unpin all that is still pinned. */
static void lite_large_unpin(struct lite_large *l, struct lite_stats __percpu *stats)
{
	const struct lite_buf *buf = l->p->buf;
	u32 i;

	for (; l->pinned != l->posted; l->pinned--) {
		struct lite_batch *b = &l->batch[(l->pinned - 1) % l->max];

		lite_buf_unpin(buf, b->pages, b->n_pages, false);
		lite_batch_free(b, stats);
	}
	if (!l->locked)
		return;
	lite_gate_leave(buf->gate);
	for (i = 0; i < l->max; i++) {
		struct lite_batch *b = &l->batch[i];

		if (!b->n_pages)
			continue;
		lite_buf_unpin(buf, b->pages, b->n_pages, true);
		lite_batch_free(b, stats);
	}
	if (!lite_gate_enter(buf->gate))
		l->err = -ENODEV;
}

static void lite_large_run(struct lite_large *l)
{
	struct lite_stats __percpu *stats = l->p->a->ctx->mem->stats;

	for (;;) {
		while (lite_large_pin(l)) {
			if (!l->absent)
				lite_large_post(l);
			cond_resched();
		}
		while (l->posted != l->pinned && !l->halted)
			lite_large_post(l);
		if (l->ended == l->posted)
			break;
		lite_large_end(l);
	}
	lite_large_unpin(l, stats);
}

/*
 * Transfer a piece without copying; @p advances. Entered nowhere. Return: 0: go on with what is
 * left; or an errno. May sleep and fault; a fatal signal ends it after what is in flight.
 */
int lite_piece_large(struct lite_piece_io *p)
{
	u32 max = DIV_ROUND_UP(offset_in_page(p->buf->u + p->at) + p->run, LITE_BATCH_BYTES);
	struct lite_large *l;
	int err;
	u32 i;

	/* After a failure, one batch at a time. */
	max = p->tries ? 1 : min_t(u32, max, LITE_BATCHES);
	l = kvmalloc(struct_size(l, batch, max), GFP_KERNEL_ACCOUNT);
	if (!l)
		return -ENOMEM;
	*l = (struct lite_large){
		.p = p,
		.dir = lite_piece_writes(p) ? DMA_TO_DEVICE : DMA_FROM_DEVICE,
		.offset = p->offset,
		.at = p->at,
		.left = p->run,
		.max = max,
	};
	for (i = 0; i < max; i++)
		l->batch[i].n_pages = 0;
	lite_large_run(l);
	err = l->err;
	if (err == -EAGAIN)
		err = l->stale ? lite_piece_renew(p, l->stale) : 0;
	kvfree(l);
	return err;
}
