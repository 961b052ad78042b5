// SPDX-License-Identifier: GPL-2.0
/*
 * One-sided read and write.
 *
 * A transfer is cut into pieces. Each enters the LMR anew, so that a REVOKE waits for one piece at
 * most, and never for user space. Three kinds of pieces:
 *
 *   local     memory of this node: copied, with page faults off
 *   small     up to a page: through a bounce page
 *   large     the caller's pages, pinned meanwhile (transfer_large.c)
 */
#include "core/memop_rules.h"
#include "memory/memory.h"
#include "compat.h"
#include "devop.h"
#include "transfer.h"

/* Bytes copied locally at a time, before leaving the LMR and rescheduling. */
#define LITE_COPY_BYTES (64UL << 10)
/* Bytes of a large piece, at most. */
#define LITE_LARGE_BYTES (16ULL << 20)
/* Attempts per piece, across sessions. */
#define LITE_PIECE_TRIES 3
/* Failures of a large piece before it is cut to LITE_CAREFUL_BYTES. */
#define LITE_CAREFUL_AFTER 2

/* Copy a local piece. Return: bytes; -EFAULT: the first is not present in the buffer; -EIO. */
static ssize_t lite_piece_local(struct lite_piece_io *p, struct lite_mapping *m,
				const struct lite_extent *e)
{
	void *mem;

	p->n = min_t(size_t, p->n, LITE_COPY_BYTES);
	mem = lite_mapping_address(m, e, p->offset - e->start, &p->n);
	/* The home has sent an address that is not in memory of this node. */
	if (!mem)
		return -EIO;
	return lite_buf_copy_nofault(p->buf, p->at, mem, p->n, lite_piece_writes(p)) ?: -EFAULT;
}

/* Transfer a piece through @p->bounce. Return: as lite_piece_entered(). */
static ssize_t lite_piece_small(struct lite_piece_io *p, struct lite_mapping *m,
				const struct lite_extent *e)
{
	struct lite_devop d LITE_UNINIT; /* what is read, except @posted, is set below */
	int err;

	d.m = m;
	d.e = e;
	d.opcode = p->opcode;
	d.prio = p->prio;
	d.stays = false;
	d.n = p->n;
	d.offset = p->offset;
	d.dma = p->bounce->dma;
	d.data = p->bounce->data;
	d.task = p->a->task;
	if (lite_piece_writes(p))
		d.n = lite_buf_copy_nofault(p->buf, p->at, p->bounce->data, p->n, true);
	if (!d.n)
		return -EFAULT;
	if (unlikely(p->large >= LITE_CAREFUL_AFTER))
		WRITE_ONCE(m->careful, jiffies);
	err = lite_devop_run(&d, LITE_BOUNCE_SIZE);
	p->m = d.m;
	return err ?: (ssize_t)d.n;
}

/*
 * The part of a piece for which the LMR is entered; waits only for the device. Return: bytes;
 * -ENOBUFS: wait for a bounce page; 0: put the bounce page, which is not needed, and try again;
 * other errnos: see lite_piece_prepare().
 */
static ssize_t lite_piece_entered(struct lite_piece_io *p)
{
	struct lite_mapping *m = p->m;
	const struct lite_extent *e = lite_extent_at(m, p->offset);

	p->begun = true;
	p->n = min(p->left, e->start + e->length - p->offset);
	/* With a page, the bytes became local while lite_piece() waited for it. */
	if (m->share[e->share].local)
		return unlikely(p->bounce) ? 0 : lite_piece_local(p, m, e);
	if (p->n > LITE_CAREFUL_BYTES &&
	    (p->large >= LITE_CAREFUL_AFTER || lite_mapping_is_careful(m)))
		p->n = LITE_CAREFUL_BYTES;
	if (p->n > LITE_BOUNCE_SIZE) {
		p->run = min(p->left, LITE_LARGE_BYTES);
		/* A run may span whole chunks, as each of its batches is in one. */
		p->chunked = m->of && m->length == LITE_CHUNK_BYTES;
		if (!p->chunked)
			p->run = lite_extent_run(m->extents, m->n_extents, p->offset, p->run);
		return -EFBIG;
	}
	if (!p->bounce)
		p->bounce = lite_bounce_tryget(m->mem->fab);
	return p->bounce ? lite_piece_small(p, m, e) : -ENOBUFS;
}

/* Copy out what was read, and put the bounce page. @ret: result so far. Return: the result. */
static ssize_t lite_piece_put(struct lite_piece_io *p, ssize_t ret)
{
	struct lite_fabric *fab = p->a->ctx->mem->fab;

	if (likely(ret > 0) && !lite_piece_writes(p))
		ret = lite_buf_copy_nofault(p->buf, p->at, p->bounce->data, ret, false) ?: -EFAULT;
	else if (unlikely(ret < 0))
		lite_bounce_failed(fab, p->bounce);
	lite_bounce_put(fab, p->bounce);
	p->bounce = NULL;
	return ret;
}

/*
 * Do what must not be done while an LMR is entered or a bounce page is held. @err: says what.
 * Return: 0: go on with the transfer; or an errno: it has failed.
 */
static noinline int lite_piece_prepare(struct lite_piece_io *p, int err,
				       const struct lite_mapping *stale)
{
	switch (err) {
	case -EFAULT: /* make the first of @p->n bytes of the buffer present */
		return lite_buf_fault_in(p->buf, p->at, p->n, lite_piece_writes(p));
	case -EAGAIN: /* renew the handle */
		return lite_piece_renew(p, stale);
	case -EFBIG: /* transfer @p->run bytes without copying */
		return lite_piece_large(p);
	default:
		return err;
	}
}

/*
 * Transfer a piece, and advance, or prepare for that. Return: as lite_piece_prepare(). Bounce pages
 * are few and shared by all users: wait for one before entering, put it before renewing the handle.
 */
static int lite_piece(struct lite_piece_io *p)
{
	const struct lite_mapping *stale;
	ssize_t ret;

	for (;;) {
		p->m = lite_tryenter_range(p->a, p->offset, p->left, &stale);
		if (IS_ERR(p->m)) {
			ret = PTR_ERR(p->m);
			break;
		}
		stale = p->m; /* only compared */
		ret = lite_piece_entered(p);
		if (likely(p->m))
			lite_access_exit(p->m);
		if (likely(ret != -ENOBUFS))
			break;
		p->bounce = lite_bounce_get(p->a->ctx->mem->fab);
		if (!p->bounce)
			return -EINTR;
	}
	if (p->bounce)
		ret = lite_piece_put(p, ret);
	if (unlikely(ret < 0))
		return lite_piece_prepare(p, ret, stale);
	lite_piece_advance(p, ret);
	return 0;
}

/*
 * If the LMR was never entered, nothing was tried; after that, repeating a piece is safe, because
 * it is idempotent. Return: as lite_piece_prepare().
 */
static noinline int lite_piece_failed(struct lite_piece_io *p, int err)
{
	if (err == -EHOSTDOWN && !p->begun)
		return lite_access_await(p->a, &p->tries);
	if ((err == -EHOSTDOWN || err == -ETIMEDOUT) && !p->a->task &&
	    ++p->tries < LITE_PIECE_TRIES)
		return lite_access_await(p->a, NULL) == -EINTR ? -EINTR : 0;
	return err;
}

/*
 * Read from or write to an LMR (LITE_OP_READ, LITE_OP_WRITE). Sets the result of @op to the number
 * of leading bytes transferred, also on failure. May sleep; a fatal signal ends it after the piece
 * in flight. Return: 0 or an errno, see LITE_IOC_OP; with @a->task also -LITE_EPUTOFF.
 */
int lite_transfer(const struct lite_access *a, struct lite_op *op, const struct lite_buf *buf)
{
	struct lite_stats __percpu *stats = a->ctx->mem->stats;
	struct lite_piece_io p LITE_UNINIT;
	int err;

	p.a = a;
	p.opcode = op->opcode;
	p.prio = lite_op_prio(a->ctx, op);
	p.begun = false;
	p.offset = op->offset;
	p.left = op->length;
	p.at = 0;
	p.tries = 0;
	p.until = 0;
	p.large = 0;
	p.buf = buf;
	p.bounce = NULL;
	lite_stat_inc(stats, LITE_STAT_OPS_INFLIGHT);
	for (;;) {
		err = lite_piece(&p);
		if (unlikely(err))
			err = lite_piece_failed(&p, err);
		if (err || !p.left)
			break;
		if (lite_piece_given_up(&p)) {
			err = -EINTR;
			break;
		}
		cond_resched();
	}
	/* This node may have left or stopped. */
	if (unlikely(err == -EHOSTDOWN))
		err = lite_cluster_ready(a->ctx->mem->cl) ?: err;
	op->result = p.at;
	lite_stat_dec(stats, LITE_STAT_OPS_INFLIGHT);
	if (likely(p.begun))
		lite_op_count(stats, op, p.at, err);
	return err;
}
