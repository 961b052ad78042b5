// SPDX-License-Identifier: GPL-2.0
/*
 * Small operations that complete without a waiter.
 *
 * Normal operation: easy operations are posted, and the caller returns. Easy means: at most a page,
 * in the memory of one other node; the caller's buffer is present, and the handle valid; and
 * neither a bounce page nor a slot of a send queue has to be waited for. Reads and writes of this
 * node's own memory are done at once. All others wait in their caller (transfer.c, atomic.c).
 *
 * The thread that handles the completion, mostly the poller, copies what was read out of the bounce
 * page, leaves the LMR, and notifies the caller. So a completed operation holds nothing, however
 * late its owner looks at it.
 *
 * Recovery: a failed operation is not retried here. In place of a waiter, the poller polls the send
 * queue (lite_cq_arm_sleeper()), and a work item looks at all operations in flight. It ends the
 * connection of one if the queue pair has completed nothing for the operation time-out.
 *
 * The caller keeps the node active until the end; the operation holds the LMR and the connection.
 * So stopping the node, a REVOKE and the end of the connection wait for it, up to the time-out.
 */
#include <linux/slab.h>

#include "memory/memory.h"
#include "issue.h"
#include "wait.h"

/* Operations in flight, about: lite_issues_watch() looks at all of them with the lock held. */
#define LITE_ISSUES_MAX 1024

static void lite_issues_watch_in(struct lite_memory *mem, unsigned long delay)
{
	struct lite_issues *is = &mem->issues;

	lockdep_assert_held(&is->lock);
	if (queue_delayed_work(mem->wq, &is->watch, delay))
		is->due = jiffies + delay;
}

/* Call before posting. */
static void lite_issue_list(struct lite_issue *i)
{
	struct lite_memory *mem = i->mem;
	struct lite_issues *is = &mem->issues;
	bool was_empty;

	i->since = jiffies;
	lite_stat_inc(mem->stats, LITE_STAT_OPS_INFLIGHT);
	spin_lock(&is->lock);
	was_empty = list_empty(&is->flight);
	list_add_tail(&i->list, &is->flight);
	is->n++;
	/* With others in flight, @watch is queued already, and will look at this one, too. */
	if (was_empty)
		lite_issues_watch_in(mem, mem->fab->op_timeout);
	spin_unlock(&is->lock);
	lite_cq_arm_sleeper(i->qp->scq);
}

static void lite_issue_unlist(struct lite_issue *i)
{
	struct lite_memory *mem = i->mem;

	lite_cq_disarm_sleeper(i->qp->scq);
	spin_lock(&mem->issues.lock);
	list_del(&i->list);
	mem->issues.n--;
	spin_unlock(&mem->issues.lock);
	lite_stat_dec(mem->stats, LITE_STAT_OPS_INFLIGHT);
}

/* End the connections of operations that take too long. */
static void lite_issues_watch(struct work_struct *work)
{
	struct lite_issues *is = container_of(to_delayed_work(work), struct lite_issues, watch);
	struct lite_memory *mem = container_of(is, struct lite_memory, issues);
	unsigned long timeout = mem->fab->op_timeout, now = jiffies;
	unsigned long part = timeout / LITE_TIMEOUT_PARTS + 1;
	unsigned long next = timeout, since;
	struct lite_issue *i;

	spin_lock(&is->lock);
	/* If this runs late the machine was stalled, and so may operations be: check again soon. */
	is->excused = !is->excused && time_after(now, is->due + part);
	if (is->excused) {
		lite_issues_watch_in(mem, part);
		goto unlock;
	}
	list_for_each_entry(i, &is->flight, list) {
		/* While the queue pair makes progress, the operation is slow, not stuck. */
		since = READ_ONCE(i->qp->acked);
		if (time_before(since, i->since))
			since = i->since;
		if (time_before(now, since + timeout)) {
			next = min(next, since + timeout - now);
			continue;
		}
		/* The connection is held live while @i is on the list. */
		cmpxchg(&i->io.status, 0, -ETIMEDOUT);
		lite_conn_end(i->qp->conn, LITE_END_OP_TIMEOUT, jiffies_to_msecs(now - i->since),
			      -ETIMEDOUT);
	}
	if (!list_empty(&is->flight))
		lite_issues_watch_in(mem, next);
unlock:
	spin_unlock(&is->lock);
}

void lite_issues_init(struct lite_memory *mem)
{
	struct lite_issues *is = &mem->issues;

	spin_lock_init(&is->lock);
	INIT_LIST_HEAD(&is->flight);
	INIT_DELAYED_WORK(&is->watch, lite_issues_watch);
}

/* Nothing is in flight. May sleep. */
void lite_issues_exit(struct lite_memory *mem)
{
	cancel_delayed_work_sync(&mem->issues.watch);
}

static void lite_issue_count(const struct lite_issue *i, int err)
{
	const struct lite_op op = {
		.opcode = i->d.opcode,
		.lh = i->lh,
		.offset = i->d.offset,
		.length = i->d.n,
	};

	lite_op_count(i->mem->stats, &op, err ? 0 : i->d.n, err);
}

/* The device is done. Afterwards @i, and maybe the node, is gone. */
static void lite_issue_end(struct lite_io *io)
{
	struct lite_issue *i = container_of(io, struct lite_issue, io);
	int err = io->status;

	lite_issue_unlist(i);
	lite_conn_put_live(i->qp->conn);
	lite_io_result(i->d.m, err);
	if (!err && lite_devop_fetches(&i->d))
		memcpy(i->data, i->page->data, i->d.n);
	if (unlikely(err))
		lite_bounce_failed(i->mem->fab, i->page);
	lite_bounce_put(i->mem->fab, i->page);
	lite_access_exit(i->d.m);
	lite_issue_count(i, err);
	i->end(i, err);
}

/* Post on a queue pair that has room. Return: true: lite_issue_end() will be called, or was. */
static bool lite_issue_post(struct lite_issue *i)
{
	struct lite_devop *d = &i->d;
	struct lite_conn *conn = lite_access_conn(d->m, d->e->share);
	u32 cpu = raw_smp_processor_id(), n = LITE_QPS_MAX, k;
	struct lite_qp *const *qps, *qp, *first = NULL;
	int err = -EAGAIN;

	if (IS_ERR(conn))
		return false;
	qps = lite_conn_qps(conn, lite_devop_fetches(d), d->prio);
	if (!lite_devop_is_single(d, conn))
		n = 0;
	lite_io_init_unwaited(&i->io, lite_issue_end);
	for (k = 0; k < n && err == -EAGAIN; k++) {
		qp = READ_ONCE(qps[(cpu + k) % LITE_QPS_MAX]);
		if (qp == first)
			continue;
		first = first ?: qp;
		i->qp = qp;
		lite_issue_list(i);
		err = lite_devop_post(d, i->qp, &i->io);
		if (err == -EAGAIN)
			lite_issue_unlist(i);
	}
	if (err == -EAGAIN) {
		lite_conn_put_live(conn);
		return false;
	}
	/* If the device has refused the operation, @io has the error. */
	lite_io_leave(&i->io);
	return true;
}

/* For memory of this node. Atomics on it, too, go through the device. */
static enum lite_issued lite_issue_local(struct lite_issue *i, const struct lite_buf *buf)
{
	const struct lite_devop *d = &i->d;
	size_t n = d->n, done = 0;
	void *mem;

	if (!lite_op_is_transfer(d->opcode))
		return LITE_ISSUED_NOT;
	mem = lite_mapping_address(d->m, d->e, d->offset - d->e->start, &n);
	if (mem && n == d->n)
		done = lite_buf_copy_nofault(buf, 0, mem, n, !lite_devop_fetches(d));
	if (done < d->n)
		return LITE_ISSUED_NOT;
	lite_issue_count(i, 0);
	return LITE_ISSUED_DONE;
}

static enum lite_issued lite_issue_submit(struct lite_issue *i, const struct lite_buf *buf)
{
	struct lite_devop *d = &i->d;

	if (!lite_devop_fits(d))
		return LITE_ISSUED_NOT;
	if (lite_devop_share(d)->local)
		return lite_issue_local(i, buf);
	if (d->n > LITE_CAREFUL_BYTES && lite_mapping_is_careful(d->m))
		return LITE_ISSUED_NOT;
	if (READ_ONCE(i->mem->issues.n) >= LITE_ISSUES_MAX)
		return LITE_ISSUED_NOT;
	i->page = lite_bounce_get_nowait(i->mem->fab);
	if (!i->page)
		return LITE_ISSUED_NOT;
	d->dma = i->page->dma;
	d->data = i->page->data;
	if ((lite_devop_fetches(d) ||
	     lite_buf_copy_nofault(buf, 0, i->page->data, d->n, true) == d->n) &&
	    lite_issue_post(i))
		return LITE_ISSUED;
	lite_bounce_put(i->mem->fab, i->page);
	return LITE_ISSUED_NOT;
}

/*
 * May lite_issue() begin an operation that comes unchecked from the user? False also if it is
 * invalid, or has a priority: the path that waits checks these.
 */
bool lite_issue_may(const struct lite_op *op)
{
	return !lite_op_check(op) && !op->priority && !op->reserved1 && lite_op_small_right(op);
}

/*
 * Begin a small operation for which lite_issue_may() returned true, with @i->end and @i->data set.
 * @ctx stays, and the caller is active on the node, until the end. After LITE_ISSUED @i may have
 * ended, and be freed, already. After LITE_ISSUED_NOT do all of it in the way that waits; parts of
 * a local transfer may have been copied. Process context; does not sleep.
 */
enum lite_issued lite_issue(struct lite_issue *i, struct lite_ctx *ctx, const struct lite_op *op)
{
	const struct lite_access a = {
		.ctx = ctx,
		.lh = op->lh,
		.right = lite_op_right(op->opcode),
	};
	const struct lite_buf buf = { .user = true, .u = op->buf };
	const struct lite_mapping *stale;
	struct lite_mapping *m;
	enum lite_issued ret;

	i->mem = ctx->mem;
	i->lh = op->lh;
	if (a.right == LITE_RIGHT_ATOMIC && !i->mem->fab->atomics)
		return LITE_ISSUED_NOT;
	m = lite_tryenter_range(&a, op->offset, op->length, &stale);
	if (IS_ERR(m))
		return LITE_ISSUED_NOT;
	i->d = lite_devop_of(op, m);
	i->d.prio = lite_op_prio(ctx, op);
	ret = lite_issue_submit(i, &buf);
	/* Otherwise lite_issue_end() leaves the LMR, or has left it. */
	if (ret != LITE_ISSUED)
		lite_access_exit(m);
	return ret;
}
