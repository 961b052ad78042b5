// SPDX-License-Identifier: GPL-2.0
/*
 * Small operations that nobody waits for (issue.c): posting them, and what is in
 * flight.
 *
 * Normal operation: who submits many commands of io_uring with one call is
 * plugged by it, as by the block layer: what is begun for one connection becomes
 * a chain, which is posted when the last command has been begun, or when the chain
 * is long enough. So they share a doorbell, a completion and its interrupt, and
 * they end together. Each has its slot of the send queue from the beginning, so
 * that posting waits for nothing. Who submits few has no plug, and a chain of one.
 *
 * Many small reads and writes go in messages instead, where the device is software
 * (pack.c). For their answers a work item waits.
 *
 * A thread that goes to sleep with a plug - a page that the next command names may
 * not be there - posts first (sched_submit_work()). But it may be long at other
 * commands that do not sleep, and what has been begun holds an LMR, a connection
 * and slots: so a work item posts what is a jiffy old. Nothing that is done with
 * the plug itself sleeps: it is there until we are through. And it is there as
 * long as the thread has not returned from submitting, and so has not completed
 * what it began there: their file keeps the node, and this code. A plug with which
 * nothing was begun is not left behind.
 *
 * Recovery: those that were posted together fail together: which of them have
 * been carried out is not known, as it is not of one that fails.
 */
#include "../compat.h"
#include "../wait.h"
#include "memory.h"

/* Chains of a plug; what goes elsewhere is posted one by one. */
#define LITE_PLUG_CHAINS 8

/* Jiffies: so old may be what has not been posted. */
#define LITE_PLUG_AGE 1

/**
 * struct lite_plug - what a thread has begun, and not posted yet
 * @cb: in its plug
 * @mem: node's, whose lite_issues.lock protects the following; NULL at first
 * @list: in lite_issues.plugs, unless @n is 0
 * @n: how many chains; only the thread itself adds some
 * @first: the first of each
 */
struct lite_plug {
	struct blk_plug_cb cb;
	struct lite_memory *mem;
	struct list_head list;
	u32 n;
	struct lite_issue *first[LITE_PLUG_CHAINS];
};

/* ---- what is in flight --------------------------------------------------- */

static void lite_issues_watch_in(struct lite_memory *mem, unsigned long delay)
{
	struct lite_issues *is = &mem->issues;

	lockdep_assert_held(&is->lock);
	if (queue_delayed_work(mem->wq, &is->watch, delay))
		is->due = jiffies + delay;
}

static void lite_issue_list(struct lite_issue *first)
{
	struct lite_memory *mem = first->mem;
	struct lite_issues *is = &mem->issues;
	bool was_empty;

	first->since = jiffies;
	lite_stat_add(mem->stats, LITE_STAT_OPS_INFLIGHT, first->chain.n);
	spin_lock(&is->lock);
	was_empty = list_empty(&is->flight);
	list_add_tail(&first->list, &is->flight);
	/* Unless it is waiting already: then it will look at us, too. */
	if (was_empty)
		lite_issues_watch_in(mem, mem->fab->op_timeout);
	spin_unlock(&is->lock);
}

static void lite_issue_unlist(struct lite_issue *first)
{
	struct lite_memory *mem = first->mem;

	spin_lock(&mem->issues.lock);
	list_del(&first->list);
	spin_unlock(&mem->issues.lock);
	lite_stat_add(mem->stats, LITE_STAT_OPS_INFLIGHT,
		      -(s64)first->chain.n);
}

/**
 * lite_issues_watch - end what takes too long; give back what nobody needs
 * @work: lite_issues.watch
 *
 * Context: process.
 */
void lite_issues_watch(struct work_struct *work)
{
	struct lite_issues *is = container_of(to_delayed_work(work),
					      struct lite_issues, watch);
	struct lite_memory *mem = container_of(is, struct lite_memory, issues);
	unsigned long timeout = mem->fab->op_timeout, now = jiffies;
	unsigned long part = timeout / LITE_TIMEOUT_PARTS + 1;
	unsigned long next = timeout, since;
	struct lite_issue *i;
	struct lite_bounce *b;
	LIST_HEAD(idle);

	spin_lock(&is->lock);
	/* If we are late, all else may be: this machine was away. Soon, then. */
	is->excused = !is->excused && time_after(now, is->due + part);
	if (is->excused) {
		lite_issues_watch_in(mem, part);
		goto unlock;
	}
	list_for_each_entry(i, &is->flight, list) {
		/* As long as its queue pair gets on, it is slow, not stuck. */
		since = READ_ONCE(i->chain.qp->acked);
		if (time_before(since, i->since))
			since = i->since;
		if (time_before(now, since + timeout)) {
			next = min(next, since + timeout - now);
			continue;
		}
		/* It is held live as long as it is on the list. */
		cmpxchg(&i->chain.io.status, 0, -ETIMEDOUT);
		lite_conn_end(i->conn, LITE_END_OP_TIMEOUT,
			      jiffies_to_msecs(now - i->since), -ETIMEDOUT);
	}
	if (list_empty(&is->flight)) {
		list_for_each_entry(b, &is->pages, list)
			is->n_pages--;
		list_splice_init(&is->pages, &idle);
	} else {
		lite_issues_watch_in(mem, next);
	}
unlock:
	spin_unlock(&is->lock);
	lite_issue_pages_free(mem, &idle);
}

/* ---- chains -------------------------------------------------------------- */

static void lite_issue_over_all(struct lite_issue *first, int err)
{
	struct lite_issue *i, *next;

	lite_conn_put_live(first->conn);
	/* The node stays until the last of them is over. */
	for (i = first; i; i = next) {
		next = i->next;
		lite_issue_over(i, err);
	}
}

/* The device is done with all of a chain. */
static void lite_issue_end(struct lite_io *io)
{
	struct lite_chain *chain = container_of(io, struct lite_chain, io);
	struct lite_issue *i = container_of(chain, struct lite_issue, chain);
	int err = io->status;

	lite_issue_unlist(i);
	lite_cq_unheed(chain->qp->scq);
	lite_issue_over_all(i, err);
}

/* @reserved: its links have their slots; else it may have to wait for some. */
static void lite_issue_post_chain(struct lite_issue *first, bool reserved)
{
	struct lite_cq *cq = first->chain.qp->scq;

	lite_io_init_unwaited(&first->chain.io, lite_issue_end);
	lite_issue_list(first);
	lite_cq_heed(cq);
	if (reserved)
		lite_chain_post_reserved(&first->chain);
	else
		lite_chain_post(&first->chain);
	lite_io_leave(&first->chain.io);
}

/* ---- messages ------------------------------------------------------------ */

static int lite_issue_pack(struct lite_issue *first, struct lite_pack *p)
{
	struct lite_issue *i;

	lite_pack_begin(p, first->mem, first->conn,
			jiffies + lite_pack_time(first->mem->fab));
	for (i = first; i; i = i->next) {
		if (!lite_pack_add(p, i->m, i->opcode == LITE_OP_WRITE,
				   i->offset, i->length, i->page->data))
			break;
	}
	return lite_pack_end(p);
}

static void lite_issue_pack_work(struct work_struct *work)
{
	struct lite_issue *first = container_of(work, struct lite_issue, work);
	struct lite_memory *mem = first->mem;
	struct lite_pack *p = lite_pack_get(mem);
	int err = p ? lite_issue_pack(first, p) : -EAGAIN;

	lite_pack_put(mem, p);
	lite_stat_add(mem->stats, LITE_STAT_OPS_INFLIGHT,
		      -(s64)first->chain.n);
	if (err == -EAGAIN) {
		lite_issue_post_chain(first, false);
		return;
	}
	lite_issue_over_all(first, err);
}

static void lite_issue_post_all(struct lite_issue *first)
{
	struct lite_memory *mem = first->mem;

	if (!first->plain || first->chain.n < LITE_PACK_MIN) {
		lite_issue_post_chain(first, true);
		return;
	}
	/* A message needs one itself. */
	lite_chain_unreserve(&first->chain);
	/* The watch is for pages, too, that nobody needs any more. */
	spin_lock(&mem->issues.lock);
	lite_issues_watch_in(mem, mem->fab->op_timeout);
	spin_unlock(&mem->issues.lock);
	lite_stat_add(mem->stats, LITE_STAT_OPS_INFLIGHT, first->chain.n);
	INIT_WORK(&first->work, lite_issue_pack_work);
	queue_work(mem->packs.wq, &first->work);
}

/* ---- plugs --------------------------------------------------------------- */

/* A plug that is empty belongs to its thread alone, which may free it at once. */
static void lite_plug_set(struct lite_plug *plug, u32 n)
{
	lockdep_assert_held(&plug->mem->issues.lock);
	if (!n)
		list_del_init(&plug->list);
	/* The last access: with lite_unplug(). */
	smp_store_release(&plug->n, n);
}

static void lite_plug_add(struct lite_plug *plug, struct lite_issue *first)
{
	struct lite_memory *mem = plug->mem;
	struct lite_issues *is = &mem->issues;

	spin_lock(&is->lock);
	if (!plug->n) {
		if (list_empty(&is->plugs))
			queue_delayed_work(mem->wq, &is->hurry, LITE_PLUG_AGE);
		list_add_tail(&plug->list, &is->plugs);
	}
	plug->first[plug->n] = first;
	lite_plug_set(plug, plug->n + 1);
	spin_unlock(&is->lock);
}

/* Not in one chain with others, see lite_conn_qps(). */
static bool lite_issue_is_fetch(const struct lite_issue *i)
{
	return i->opcode != LITE_OP_WRITE && i->mem->fab->quirks.fetch_apart;
}

/* The chain that @i may join, if there is one: the caller's then. */
static struct lite_issue *lite_plug_take(struct lite_plug *plug, u64 session,
					 const struct lite_issue *i)
{
	struct lite_issue *first = NULL;
	u32 k;

	spin_lock(&plug->mem->issues.lock);
	for (k = 0; k < plug->n; k++) {
		/* Sessions have numbers of their own, whoever they are with. */
		if (plug->first[k]->conn->session != session ||
		    lite_issue_is_fetch(plug->first[k]) !=
			    lite_issue_is_fetch(i))
			continue;
		first = plug->first[k];
		plug->first[k] = plug->first[plug->n - 1];
		lite_plug_set(plug, plug->n - 1);
		break;
	}
	spin_unlock(&plug->mem->issues.lock);
	return first;
}

/* Those of a plug that are older, or all, to a list. */
static void lite_plug_empty(struct lite_plug *plug, unsigned long age,
			    struct list_head *to)
{
	unsigned long now = jiffies;
	u32 k, n = plug->n;

	for (k = n; k-- > 0;) {
		struct lite_issue *first = plug->first[k];

		if (now - first->since < age)
			continue;
		list_add(&first->list, to);
		plug->first[k] = plug->first[--n];
	}
	lite_plug_set(plug, n);
}

static void lite_issue_post_list(struct list_head *chains)
{
	struct lite_issue *first, *next;

	list_for_each_entry_safe(first, next, chains, list) {
		/* Then it is in another list, and may be gone. */
		list_del(&first->list);
		lite_issue_post_all(first);
	}
}

/**
 * lite_issues_hurry - post what was begun, but for too long was not posted
 * @work: lite_issues.hurry
 *
 * Context: process.
 */
void lite_issues_hurry(struct work_struct *work)
{
	struct lite_issues *is = container_of(to_delayed_work(work),
					      struct lite_issues, hurry);
	struct lite_memory *mem = container_of(is, struct lite_memory, issues);
	struct lite_plug *plug, *next;
	LIST_HEAD(late);

	spin_lock(&is->lock);
	list_for_each_entry_safe(plug, next, &is->plugs, list)
		lite_plug_empty(plug, LITE_PLUG_AGE, &late);
	if (!list_empty(&is->plugs))
		queue_delayed_work(mem->wq, &is->hurry, LITE_PLUG_AGE);
	spin_unlock(&is->lock);
	lite_issue_post_list(&late);
}

static void lite_unplug(struct blk_plug_cb *cb, bool from_schedule)
{
	struct lite_plug *plug = container_of(cb, struct lite_plug, cb);
	LIST_HEAD(chains);

	/* With lite_plug_set(). */
	if (smp_load_acquire(&plug->n)) {
		spin_lock(&plug->mem->issues.lock);
		if (plug->n)
			lite_plug_empty(plug, 0, &chains);
		spin_unlock(&plug->mem->issues.lock);
		lite_issue_post_list(&chains);
	}
	kfree(plug);
}

/* NULL: this thread has none. */
static struct lite_plug *lite_plug_of(struct lite_memory *mem)
{
	struct blk_plug_cb *cb = lite_check_plugged(lite_unplug, mem,
						    sizeof(struct lite_plug));

	return cb ? container_of(cb, struct lite_plug, cb) : NULL;
}

/* ---- beginning ----------------------------------------------------------- */

static void lite_issue_link(struct lite_issue *first, struct lite_issue *i,
			    const struct lite_op *op, u64 raddr)
{
	u64 dma = i->page->dma;

	ib_dma_sync_single_for_device(i->mem->fab->dev, dma, i->length,
				      DMA_BIDIRECTIONAL);
	if (i->opcode == LITE_OP_READ || i->opcode == LITE_OP_WRITE)
		lite_chain_rdma(&first->chain, &i->link,
				i->opcode == LITE_OP_WRITE ? IB_WR_RDMA_WRITE :
							     IB_WR_RDMA_READ,
				dma, i->length, raddr);
	else
		lite_chain_atomic(&first->chain, &i->link,
				  i->opcode == LITE_OP_FETCH_ADD ?
					  IB_WR_ATOMIC_FETCH_AND_ADD :
					  IB_WR_ATOMIC_CMP_AND_SWP,
				  dma, raddr, op->operand, op->swap);
	first->plain &= i->plain;
	i->next = NULL;
	if (first != i)
		first->last->next = i;
	first->last = i;
}

/* Else it would have to be confirmed, behind it. */
static bool lite_issue_is_trusted(const struct lite_issue *i,
				  const struct lite_conn *conn)
{
	return i->opcode != LITE_OP_READ || i->length <= conn->read_trusted;
}

/*
 * Take a slot for one more of a chain. What will go in messages needs none: if
 * it is posted after all, who does that may wait. What may not go in messages does
 * not join what will.
 */
static bool lite_issue_room(struct lite_issue *first, const struct lite_issue *i)
{
	if (!first->plain || first->chain.n < LITE_PACK_MIN - 1)
		return lite_chain_reserve(&first->chain);
	if (i->plain)
		return true;
	return first->chain.n < LITE_PACK_MIN &&
	       lite_chain_reserve(&first->chain);
}

/* With a chain of this thread's that goes there, if there is one. */
static bool lite_issue_join(struct lite_plug *plug, struct lite_issue *i,
			    const struct lite_op *op,
			    const struct lite_extent *e)
{
	const struct lite_map_share *s = &i->m->share[e->share];
	struct lite_issue *first = NULL;
	bool joined;

	if (!s->lost && plug->mem)
		first = lite_plug_take(plug, s->session, i);
	if (!first)
		return false;
	joined = lite_issue_is_trusted(i, first->conn) &&
		 lite_issue_room(first, i);
	if (joined)
		lite_issue_link(first, i, op, e->addr + (i->offset - e->start));
	if (!joined || first->chain.n == LITE_PACK_OPS ||
	    (!first->plain && first->chain.n >= LITE_CHAIN_STEP))
		lite_issue_post_all(first);
	else
		lite_plug_add(plug, first);
	return joined;
}

/* Begin a chain, on a queue pair that has room. */
static bool lite_issue_begin(struct lite_issue *i, const struct lite_op *op,
			     const struct lite_extent *e)
{
	struct lite_conn *conn = lite_access_conn(i->m, e->share);
	u8 cpu = raw_smp_processor_id(), n, k;
	struct lite_qp *qp;

	if (IS_ERR(conn))
		return false;
	n = lite_conn_qps(conn, i->opcode != LITE_OP_WRITE, &qp);
	if (!lite_issue_is_trusted(i, conn))
		n = 0;
	for (k = 0; k < n; k++) {
		lite_chain_init(&i->chain, &qp[(cpu + k) % n]);
		if (lite_chain_reserve(&i->chain))
			break;
	}
	if (k == n) {
		lite_conn_put_live(conn);
		return false;
	}
	i->conn = conn;
	i->since = jiffies;
	lite_issue_link(i, i, op, e->addr + (i->offset - e->start));
	return true;
}

/**
 * lite_issue_post - post an operation, or have it posted soon
 * @i: with a page, that has what is written
 * @op: what
 * @e: where, all of it, at another node
 *
 * Context: process; does not sleep.
 * Return: true: lite_issue_over() is called when it is over, or has been; false:
 * not in this way.
 */
bool lite_issue_post(struct lite_issue *i, const struct lite_op *op,
		     const struct lite_extent *e)
{
	struct lite_plug *plug = lite_plug_of(i->mem);

	/* Once: it may be otherwise in a moment. */
	i->plain = lite_pack_may(i->mem->fab, i->m, i->opcode, i->length);
	if (plug && lite_issue_join(plug, i, op, e))
		return true;
	if (!lite_issue_begin(i, op, e)) {
		if (plug && !plug->mem) {
			lite_plug_forget(&plug->cb);
			kfree(plug);
		}
		return false;
	}
	/* Others make it less only. */
	if (!plug || READ_ONCE(plug->n) == LITE_PLUG_CHAINS) {
		lite_issue_post_all(i);
		return true;
	}
	if (!plug->mem) {
		plug->mem = i->mem;
		INIT_LIST_HEAD(&plug->list);
	}
	lite_plug_add(plug, i);
	return true;
}
