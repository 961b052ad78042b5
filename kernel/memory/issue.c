// SPDX-License-Identifier: GPL-2.0
/*
 * Small operations that nobody waits for.
 *
 * Normal operation: what is easy - a page at most, in one other node's memory,
 * the caller's buffer present, the handle good - is posted, and that is all the
 * caller does. Whoever handles the completion, the poller mostly, takes what was
 * read out of the page that the device wrote, leaves the LMR, and tells the
 * caller. So for an operation that is over nothing is held, though its owner may
 * take as long as it likes to hear of it. Everything else the caller has to do
 * in the other way, and wait (transfer.c, atomic.c).
 *
 * Recovery: an operation that was posted and fails is not tried again here.
 * Nobody polls the queue, so the poller is told to (lite_cq_heed()); nobody
 * times it out, so a work item looks whether the longest in flight has taken too
 * long, and then ends its connection, which ends it.
 *
 * The pages are not those of the bounce pools, for which others wait: there are
 * as many as have been in flight, up to a limit. The work item gives them back.
 *
 * Who calls keeps the node active until the end; the LMR and the connection
 * are held from here. So stopping the node, a REVOKE and the end of the
 * connection wait for all in flight, and that is bounded by the time-outs.
 */
#include <linux/slab.h>

#include "../trace.h"
#include "memory.h"

#define LITE_ISSUE_PAGES 256

/* ---- pages --------------------------------------------------------------- */

/* Not to be waited for: a REVOKE may wait for the caller. */
static struct lite_bounce *lite_issue_page_new(struct lite_fabric *fab)
{
	struct lite_bounce *b = kmalloc(sizeof(*b), GFP_NOWAIT | __GFP_NOWARN);
	u32 since = lite_dma_since(fab);
	struct page *page = alloc_page(GFP_NOWAIT | __GFP_NOWARN);

	if (!b || !page ||
	    lite_dma_map_page(fab, page, LITE_BOUNCE_SIZE, &b->dma)) {
		if (page)
			__free_page(page);
		kfree(b);
		return NULL;
	}
	b->data = page_address(page);
	b->since = since;
	return b;
}

static void lite_issue_page_free(struct lite_fabric *fab, struct lite_bounce *b)
{
	if (lite_dma_unmap_page(fab, b->dma, LITE_BOUNCE_SIZE, b->since))
		free_page((unsigned long)b->data);
	kfree(b);
}

static struct lite_bounce *lite_issue_page_get(struct lite_memory *mem)
{
	struct lite_issues *is = &mem->issues;
	struct lite_bounce *b;
	bool more = false;

	spin_lock(&is->lock);
	b = list_first_entry_or_null(&is->pages, struct lite_bounce, list);
	if (b) {
		list_del(&b->list);
	} else if (is->n_pages < LITE_ISSUE_PAGES) {
		is->n_pages++;
		more = true;
	}
	spin_unlock(&is->lock);
	if (!more)
		return b;
	b = lite_issue_page_new(mem->fab);
	if (!b) {
		spin_lock(&is->lock);
		is->n_pages--;
		spin_unlock(&is->lock);
	}
	return b;
}

static void lite_issue_page_put(struct lite_memory *mem, struct lite_bounce *b)
{
	spin_lock(&mem->issues.lock);
	list_add(&b->list, &mem->issues.pages);
	spin_unlock(&mem->issues.lock);
}

/* The device may be at it yet, if it could not be fenced. */
static void lite_issue_page_failed(struct lite_memory *mem,
				   struct lite_bounce *b)
{
	if (likely(b->since == lite_dma_since(mem->fab))) {
		lite_issue_page_put(mem, b);
		return;
	}
	spin_lock(&mem->issues.lock);
	mem->issues.n_pages--;
	spin_unlock(&mem->issues.lock);
	lite_issue_page_free(mem->fab, b);
}

/**
 * lite_issue_pages_free - give pages back to the system
 * @mem: node's
 * @pages: of its list, but not in it any more
 *
 * Context: may sleep.
 */
void lite_issue_pages_free(struct lite_memory *mem, struct list_head *pages)
{
	struct lite_bounce *b, *next;

	list_for_each_entry_safe(b, next, pages, list)
		lite_issue_page_free(mem->fab, b);
}

/**
 * lite_issues_init - be ready for operations
 * @mem: node's
 */
void lite_issues_init(struct lite_memory *mem)
{
	struct lite_issues *is = &mem->issues;

	spin_lock_init(&is->lock);
	INIT_LIST_HEAD(&is->flight);
	INIT_LIST_HEAD(&is->pages);
	INIT_LIST_HEAD(&is->plugs);
	INIT_DELAYED_WORK(&is->watch, lite_issues_watch);
	INIT_DELAYED_WORK(&is->hurry, lite_issues_hurry);
}

/**
 * lite_issues_exit - the counterpart of lite_issues_init()
 * @mem: node's; nothing is in flight, or begun
 *
 * Context: may sleep.
 */
void lite_issues_exit(struct lite_memory *mem)
{
	cancel_delayed_work_sync(&mem->issues.hurry);
	cancel_delayed_work_sync(&mem->issues.watch);
	lite_issue_pages_free(mem, &mem->issues.pages);
}

/* ---- the end ------------------------------------------------------------- */

static bool lite_issue_is_transfer(const struct lite_issue *i)
{
	return i->opcode == LITE_OP_READ || i->opcode == LITE_OP_WRITE;
}

static void lite_issue_count(const struct lite_issue *i, int err)
{
	struct lite_stats __percpu *stats = i->mem->stats;
	u32 bytes = err ? 0 : i->length;

	if (i->opcode == LITE_OP_READ) {
		lite_stat_inc(stats, LITE_STAT_READS);
		lite_stat_add(stats, LITE_STAT_READ_BYTES, bytes);
	} else if (i->opcode == LITE_OP_WRITE) {
		lite_stat_inc(stats, LITE_STAT_WRITES);
		lite_stat_add(stats, LITE_STAT_WRITE_BYTES, bytes);
	} else if (!err) {
		lite_stat_inc(stats, LITE_STAT_ATOMICS);
	}
	if (err)
		lite_stat_inc(stats, LITE_STAT_OP_ERRORS);
	trace_lite_op(i->opcode, i->lh, i->offset, i->length, err);
}

/**
 * lite_issue_over - the device is done with an operation
 * @i: it; gone afterwards, and maybe all of the node with it
 * @err: how it went
 *
 * Context: any thread; does not sleep.
 */
void lite_issue_over(struct lite_issue *i, int err)
{
	lite_io_result(i->m, err);
	ib_dma_sync_single_for_cpu(i->mem->fab->dev, i->page->dma, i->length,
				   DMA_BIDIRECTIONAL);
	if (!err && i->opcode != LITE_OP_WRITE)
		memcpy(i->data, i->page->data, i->length);
	if (unlikely(err))
		lite_issue_page_failed(i->mem, i->page);
	else
		lite_issue_page_put(i->mem, i->page);
	lite_access_exit(i->m);
	lite_issue_count(i, err);
	i->end(i, err);
}

/* ---- the beginning ------------------------------------------------------- */

/* Memory of this node. Atomic operations on it go through the device, too. */
static enum lite_issued lite_issue_local(struct lite_issue *i,
					 const struct lite_extent *e,
					 const struct lite_buf *buf)
{
	u64 in = i->offset - e->start;
	size_t n = i->length, done = 0;
	void *mem;

	if (!lite_issue_is_transfer(i))
		return LITE_ISSUED_NOT;
	mem = lite_mapping_address(i->m, e, in, &n);
	if (mem && n == i->length)
		done = lite_buf_copy_nofault(buf, 0, mem, n,
					     i->opcode == LITE_OP_WRITE);
	if (done < i->length)
		return LITE_ISSUED_NOT;
	lite_issue_count(i, 0);
	return LITE_ISSUED_DONE;
}

static enum lite_issued lite_issue_go(struct lite_issue *i,
				      const struct lite_op *op)
{
	const struct lite_extent *e = lite_extent_at(i->m, i->offset);
	struct lite_buf buf = { .user = true, .u = op->buf };

	if (i->length > e->length - (i->offset - e->start))
		return LITE_ISSUED_NOT;
	if (i->m->share[e->share].local)
		return lite_issue_local(i, e, &buf);
	if (i->length > LITE_CAREFUL_BYTES && lite_mapping_is_careful(i->m))
		return LITE_ISSUED_NOT;
	i->page = lite_issue_page_get(i->mem);
	if (!i->page)
		return LITE_ISSUED_NOT;
	if (i->opcode == LITE_OP_WRITE &&
	    lite_buf_copy_nofault(&buf, 0, i->page->data, i->length, true) <
		    i->length) {
		lite_issue_page_put(i->mem, i->page);
		return LITE_ISSUED_NOT;
	}
	if (lite_issue_post(i, op, e))
		return LITE_ISSUED;
	lite_issue_page_put(i->mem, i->page);
	return LITE_ISSUED_NOT;
}

static u32 lite_issue_right(u32 opcode)
{
	switch (opcode) {
	case LITE_OP_READ:
		return LITE_RIGHT_READ;
	case LITE_OP_WRITE:
		return LITE_RIGHT_WRITE;
	case LITE_OP_FETCH_ADD:
	case LITE_OP_CMP_SWAP:
		return LITE_RIGHT_ATOMIC;
	default:
		return 0;
	}
}

/**
 * lite_issue_may - is an operation one that lite_issue() may begin?
 * @op: as it came from the user
 *
 * Return: false: whatever is wrong with it, or in the way, let others find out.
 */
bool lite_issue_may(const struct lite_op *op)
{
	u32 right = lite_issue_right(op->opcode);

	if (op->size != sizeof(*op) || op->flags || op->priority ||
	    op->reserved0 || op->reserved1 || !right)
		return false;
	if (right == LITE_RIGHT_ATOMIC)
		return !lite_atomic_check(op->offset, op->length, U64_MAX);
	return op->length && op->length <= LITE_ISSUE_BYTES;
}

/**
 * lite_issue - begin a small operation
 * @i: its @end and @data are set
 * @ctx: whose handle; stays until the end
 * @op: lite_issue_may() it
 *
 * The caller is active on the node, and stays so until the end.
 *
 * Context: process; does not sleep.
 * Return: LITE_ISSUED: @i may be over, and gone, already; LITE_ISSUED_DONE: well;
 * LITE_ISSUED_NOT: nothing was done that counts.
 */
enum lite_issued lite_issue(struct lite_issue *i, struct lite_ctx *ctx,
			    const struct lite_op *op)
{
	const struct lite_access a = {
		.ctx = ctx,
		.lh = op->lh,
		.right = lite_issue_right(op->opcode),
	};
	const struct lite_mapping *stale;
	struct lite_mapping *m;
	enum lite_issued ret;

	i->mem = ctx->mem;
	i->opcode = op->opcode;
	i->length = op->length;
	i->lh = op->lh;
	i->offset = op->offset;
	if (a.right == LITE_RIGHT_ATOMIC && !i->mem->fab->atomics)
		return LITE_ISSUED_NOT;
	m = lite_tryenter_range(&a, i->offset, i->length, &stale);
	if (IS_ERR(m))
		return LITE_ISSUED_NOT;
	i->m = m;
	ret = lite_issue_go(i, op);
	/* Else the end leaves, or has left. */
	if (ret != LITE_ISSUED)
		lite_access_exit(m);
	return ret;
}
