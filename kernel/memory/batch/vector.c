// SPDX-License-Identifier: GPL-2.0
/*
 * Many operations in one call.
 *
 * Normal operation: easy operations go in waves, and all of a wave are in flight at the same time.
 * Easy means: remote, small, within one extent of an LMR with an up-to-date handle and, for a
 * write, present in the caller's memory. Each one enters its LMR, unless the one before it has, and
 * shares bounce pages with the others. Each connection gets a chain of work requests
 * (fabric/chain.c); many small operations to a software device go in messages instead (pack.c),
 * unless they would have to wait for their turn. When all have completed, read data is copied to
 * the caller.
 *
 * A wave delays no REVOKE for long: from entering the first LMR to leaving the last it waits only
 * for the device. It takes few bounce pages, without waiting, and copies with page faults off. Nor
 * does a REVOKE wait for the caller, which may be long without a processor: each chain enters its
 * LMRs for itself, and the thread that handles its last completion leaves them; all chains but the
 * last post only into slots that are free now; and the LMRs of a message are left before it is
 * sent, as for memory operations (memop.c).
 *
 * Other operations follow one by one, each as in a call of its own: they may wait for the renewal
 * of a handle, for user space or for a bounce page. A fence is ordered after all operations before
 * it in the array and before all behind it.
 *
 * Recovery: operations of a failed chain are repeated one by one, as reads and writes are
 * idempotent; an atomic that may have been posted is not repeated. After a failure the call posts
 * no more chains. If the peer may still carry out a failed message, the call waits for that first.
 */
#include <linux/mm.h>

#include "fabric/chain.h"
#include "memory/memop/memop.h"
#include "op.h"
#include "pack.h"
#include "vector.h"
#include "wait.h"

/* Bounce pages of a wave; all users share them. */
#define LITE_WAVE_PAGES 8
#define LITE_WAVE_CHAINS 8

struct lite_vector;

/* Operations for one connection. */
struct lite_wave_chain {
	struct lite_conn *conn; /* held live */
	struct lite_io io;      /* of the chain */
	struct lite_chain chain;
	bool left;              /* its LMRs have been left */
	bool packs;             /* it goes in messages */
	bool plain;             /* all of it may go in messages */
	bool lost;              /* whether it was carried out is not known and cannot be learned */
	u32 owed;               /* node that may still carry out a failed message, or 0 */
	const struct lite_vector *v; /* the vector of the chain */
};

struct lite_vector {
	struct lite_ctx *ctx;   /* of the handles; caches this struct between calls */
	struct lite_gate *gate; /* for user memory */
	bool user;              /* the operations' buffers are user memory */
	bool alone;             /* post no more chains: one has failed */
	bool cancelled;         /* run no more operations: one before a fence has failed */
	u32 n;                  /* operations in the current wave */
	u32 n_to;               /* chains */
	u32 n_pages;            /* bounce pages */
	size_t used;            /* bytes used of the last page */
	u64 lh;                 /* handle by which the wave last entered an LMR */
	u32 rights;             /* LITE_RIGHT_* with which it did */
	struct lite_mapping *m; /* that LMR; NULL: none yet */
	struct lite_wave_chain to[LITE_WAVE_CHAINS]; /* by connection */
	struct lite_bounce *page[LITE_WAVE_PAGES];
	struct lite_wave_op wave[LITE_WAVE_OPS];
	struct lite_wire_range range[LITE_WAVE_OPS]; /* LMRs entered by @wave, for messages */
	struct lite_link link[LITE_WAVE_OPS]; /* work requests of @wave */
	struct lite_op ops[LITE_WAVE_OPS]; /* for callers that copy them into the kernel */
};

enum lite_wave_no {
	LITE_WAVE_ADDED,
	LITE_WAVE_FULL, /* not added: try the next wave */
	LITE_WAVE_ALONE, /* not added: do it alone */
};

/*
 * Begin a vector call, which lite_vector_put() ends. @gate may be NULL. @user: the buffers of
 * operations are user memory. The context caches the object, as allocating (and perhaps zeroing)
 * its pages can cost more than an operation. May sleep. Return: NULL: no memory.
 */
struct lite_vector *lite_vector_get(struct lite_ctx *ctx, struct lite_gate *gate, bool user)
{
	struct lite_vector *v = xchg(&ctx->vector, NULL);

	if (!v)
		v = kvmalloc(sizeof(*v), GFP_KERNEL_ACCOUNT);
	if (!v)
		return NULL;
	v->ctx = ctx;
	v->gate = gate;
	v->user = user;
	v->alone = false;
	v->cancelled = false;
	return v;
}

/* End a vector call, with nothing in flight. May sleep. */
void lite_vector_put(struct lite_vector *v)
{
	if (cmpxchg(&v->ctx->vector, NULL, v))
		kvfree(v);
}

/* Room for LITE_WAVE_OPS operations of a call. */
struct lite_op *lite_vector_ops(struct lite_vector *v)
{
	return v->ops;
}

static struct lite_buf lite_vector_buf(const struct lite_vector *v, const struct lite_op *op)
{
	/* For kernel memory this sets @k: @u and @k are a union. */
	return (struct lite_buf){ .gate = v->gate, .user = v->user, .u = op->buf };
}

/* Make room for @n bytes at @v->used of the last page. */
static bool lite_wave_room(struct lite_vector *v, size_t n)
{
	struct lite_bounce *page;

	if (v->n_pages && n <= LITE_BOUNCE_SIZE - v->used)
		return true;
	if (v->n_pages == LITE_WAVE_PAGES)
		return false;
	page = lite_bounce_get_nowait(v->ctx->mem->fab);
	if (!page)
		return false;
	v->page[v->n_pages++] = page;
	v->used = 0;
	return true;
}

static bool lite_wave_is_to(const struct lite_wave_op *w, const struct lite_wave_chain *to)
{
	return to == &to->v->to[w->to];
}

/* Is an LMR of a chain about to be changed? Asked while some of the chain is not posted. */
static bool lite_wave_stale(const struct lite_io *io)
{
	const struct lite_wave_chain *to = container_of(io, struct lite_wave_chain, io);
	const struct lite_vector *v = to->v;
	u32 i;

	for (i = 0; i < v->n; i++) {
		if (lite_wave_is_to(&v->wave[i], to) && lite_ops_closed(v->wave[i].m))
			return true;
	}
	return false;
}

/* Leave the LMRs of a chain, once, when nothing of it is in flight. */
static void lite_wave_leave(struct lite_wave_chain *to)
{
	const struct lite_vector *v = to->v;
	u32 i;

	if (to->left)
		return;
	to->left = true;
	for (i = 0; i < v->n; i++) {
		const struct lite_wave_op *w = &v->wave[i];

		if (!lite_wave_is_to(w, to))
			continue;
		lite_io_result(w->m, to->io.status);
		if (w->entered)
			lite_access_exit(w->m);
	}
}

static void lite_wave_ended(struct lite_io *io)
{
	lite_wave_leave(container_of(io, struct lite_wave_chain, io));
}

static const struct lite_io_hooks lite_wave_hooks = {
	.stale = lite_wave_stale,
	.ended = lite_wave_ended,
	.eager = true,
};

/*
 * Find or begin the chain with priority @prio to a share of an entered mapping. Return: its index;
 * -ENOSPC: the wave has no chains left; or another errno.
 */
static int lite_wave_to(struct lite_vector *v, struct lite_mapping *m, u32 share, bool fetch,
			u8 prio)
{
	const struct lite_map_share *s = &m->share[share];
	struct lite_wave_chain *to;
	struct lite_conn *conn;
	u32 i;

	for (i = 0; i < v->n_to; i++) {
		conn = v->to[i].conn;
		/* Session numbers are unique across peers. */
		if (conn->session == s->session && !s->lost &&
		    v->to[i].chain.prio == prio &&
		    v->to[i].chain.qp == lite_conn_qp(conn, fetch, prio))
			return i;
	}
	if (i == LITE_WAVE_CHAINS)
		return -ENOSPC;
	conn = lite_access_conn(m, share);
	if (IS_ERR(conn))
		return PTR_ERR(conn);
	to = &v->to[v->n_to++];
	to->conn = conn;
	to->left = false;
	to->plain = true;
	to->lost = false;
	to->owed = 0;
	to->v = v;
	lite_io_init(&to->io);
	to->io.hooks = &lite_wave_hooks;
	lite_chain_init(&to->chain, lite_conn_qp(conn, fetch, prio), &to->io, prio);
	return i;
}

/* Add @op, for which there is room, to the wave. @m was entered by it (@entered), or before it. */
static enum lite_wave_no lite_wave_enter(struct lite_vector *v, struct lite_mapping *m,
					 struct lite_op *op, bool entered)
{
	struct lite_bounce *page = v->page[v->n_pages - 1];
	struct lite_devop d = lite_devop_of(op, m);
	struct lite_buf buf = lite_vector_buf(v, op);
	void *data = page->data + v->used;
	struct lite_wave_chain *to;
	int k;

	d.prio = lite_op_prio(v->ctx, op);
	if (lite_devop_share(&d)->local || !lite_devop_fits(&d) || lite_mapping_is_careful(m))
		return LITE_WAVE_ALONE;
	k = lite_wave_to(v, m, d.e->share, lite_devop_fetches(&d), d.prio);
	if (k < 0)
		return k == -ENOSPC ? LITE_WAVE_FULL : LITE_WAVE_ALONE;
	to = &v->to[k];
	if (!lite_devop_is_single(&d, to->conn))
		return LITE_WAVE_ALONE;
	if (op->opcode == LITE_OP_WRITE && lite_buf_copy_nofault(&buf, 0, data, d.n, true) != d.n)
		return LITE_WAVE_ALONE;
	/* Each chain leaves its LMRs, so it has to enter them, too. */
	if (!entered && k != v->wave[v->n - 1].to) {
		if (!lite_ops_tryget(m))
			return LITE_WAVE_ALONE;
		entered = true;
	}
	to->plain &= lite_pack_may(v->ctx, to->conn, op->opcode, d.n);
	if (entered && to->plain)
		lite_range_fill(&v->range[v->n], m, 0);
	v->wave[v->n] = (struct lite_wave_op){
		.op = op,
		.m = m,
		.range = entered ? &v->range[v->n] : v->wave[v->n - 1].range,
		.entered = entered,
		.to = k,
		.at = to->chain.n,
		.data = data,
	};
	d.dma = page->dma + v->used;
	d.data = data;
	lite_devop_link(&d, &to->chain, &v->link[v->n++]);
	/* Atomics need 8-byte alignment. */
	v->used += ALIGN(d.n, sizeof(u64));
	return LITE_WAVE_ADDED;
}

static enum lite_wave_no lite_wave_add(struct lite_vector *v, struct lite_op *op)
{
	struct lite_access a = { .ctx = v->ctx, .lh = op->lh };
	const struct lite_mapping *stale;
	enum lite_wave_no no;
	struct lite_mapping *m;

	a.right = lite_op_small_right(op);
	if (!a.right || v->alone || (a.right == LITE_RIGHT_ATOMIC && !v->ctx->mem->fab->atomics))
		return LITE_WAVE_ALONE;
	if (v->n == LITE_WAVE_OPS || !lite_wave_room(v, op->length))
		return v->n ? LITE_WAVE_FULL : LITE_WAVE_ALONE;
	/* Entered already, with this right? For another chunk, or out of bounds, enter anew. */
	if (v->m && v->lh == a.lh && !(a.right & ~v->rights) &&
	    !lite_mapping_bounds(v->m, op->offset, op->length))
		return lite_wave_enter(v, v->m, op, false);
	m = lite_tryenter_range(&a, op->offset, op->length, &stale);
	if (IS_ERR(m))
		return LITE_WAVE_ALONE;
	no = lite_wave_enter(v, m, op, true);
	if (no == LITE_WAVE_ADDED) {
		v->rights = m == v->m && a.lh == v->lh ? v->rights | a.right : a.right;
		v->lh = a.lh;
		v->m = m;
	} else {
		lite_access_exit(m);
	}
	return no;
}

/* End an operation after its LMR has been left. Return: false: it has to be done alone. */
static bool lite_wave_end(struct lite_vector *v, struct lite_wave_op *w)
{
	struct lite_chain *chain = &v->to[w->to].chain;
	struct lite_op *op = w->op;
	struct lite_buf buf = lite_vector_buf(v, op);
	int err = v->to[w->to].io.status;

	if (chain->cut && w->at >= chain->posted)
		return false;
	if (lite_op_is_transfer(op->opcode)) {
		if (err && !v->to[w->to].lost)
			return false;
		if (!err && op->opcode == LITE_OP_READ &&
		    lite_buf_copy_nofault(&buf, 0, w->data, op->length, false) != op->length)
			return false;
		op->result = err ? 0 : op->length;
	} else {
		if (err && w->at >= chain->posted)
			return false;
		op->result = 0;
		if (!err)
			memcpy(&op->result, w->data, sizeof(op->result));
	}
	op->error = err;
	lite_op_count(v->ctx->mem->stats, op, err ? 0 : op->length, err);
	return true;
}

/* End the operations of the chains that have failed (@failed), or of those that have not. */
static void lite_wave_end_all(struct lite_vector *v, struct lite_op *ops, bool failed,
			      unsigned long *left)
{
	u32 i;

	for (i = 0; i < v->n; i++) {
		struct lite_wave_op *w = &v->wave[i];

		if (!v->to[w->to].io.status == failed)
			continue;
		if (!lite_wave_end(v, w))
			__set_bit(w->op - ops, left);
	}
}

/* Send a chain in messages; what cannot be sent is done alone. */
static void lite_wave_pack(struct lite_vector *v, u32 k, unsigned long deadline)
{
	struct lite_wave_chain *to = &v->to[k];
	int err = -EAGAIN;

	/* After a failure send no more: the call must not wait for several time-outs. */
	if (!v->alone) {
		err = lite_pack_run(v->ctx->mem, to->conn, v->wave, v->n, k, deadline);
		if (err == -EAGAIN) {
			WRITE_ONCE(v->ctx->pack_not, to->conn->session);
			WRITE_ONCE(v->ctx->pack_after, jiffies + LITE_PACK_PAUSE);
		}
	}
	if (err == -EAGAIN) {
		to->chain.cut = true;
	} else if (err) {
		v->alone = true;
		to->io.status = err;
		to->owed = to->conn->from.node;
	}
}

/* Wait until failed messages can no longer be carried out. */
static void lite_wave_settle(struct lite_vector *v)
{
	u32 i;

	for (i = 0; i < v->n_to; i++) {
		struct lite_wave_chain *to = &v->to[i];
		int err;

		if (!to->owed)
			continue;
		err = lite_pack_settle(v->ctx->mem, to->owed);
		if (!err)
			continue;
		to->lost = true;
		to->io.status = err;
	}
}

/* Leave the LMRs of what goes in messages, and post the rest. */
static void lite_wave_post(struct lite_vector *v)
{
	struct lite_wave_chain *last = NULL;
	u32 i;

	for (i = 0; i < v->n_to; i++) {
		struct lite_wave_chain *to = &v->to[i];

		/* Messages bypass the scheduler, so they must not overtake what waits there. */
		to->packs = to->plain && to->chain.n >= LITE_PACK_MIN &&
			    lite_turns_pass(to->conn, LITE_WORK_PAYLOAD_MAX);
		if (to->packs)
			lite_wave_leave(to);
		/* A chain is empty if its first operation turned out not to be easy. */
		if (to->packs || !to->chain.n)
			continue;
		if (last)
			lite_chain_post(&last->chain, false);
		last = to;
	}
	if (last)
		lite_chain_post(&last->chain, true);
}

/* Post or send what the wave has, wait until it has ended, and leave its LMRs. */
static void lite_wave_submit(struct lite_vector *v)
{
	unsigned long deadline;
	u32 i;

	lite_wave_post(v);
	deadline = jiffies + lite_pack_time(v->ctx->mem->fab);
	for (i = 0; i < v->n_to; i++) {
		if (v->to[i].packs)
			lite_wave_pack(v, i, deadline);
	}
	for (i = 0; i < v->n_to; i++) {
		lite_io_wait(&v->to[i].io, v->to[i].chain.qp);
		v->alone |= v->to[i].io.status != 0;
	}
	for (i = 0; i < v->n_to; i++) {
		lite_wave_leave(&v->to[i]);
		lite_conn_put_live(v->to[i].conn);
	}
}

/* End a wave that has left its LMRs; put its pages. @left: bits of operations to be done alone. */
static void lite_wave_finish(struct lite_vector *v, struct lite_op *ops, unsigned long *left)
{
	struct lite_memory *mem = v->ctx->mem;
	u32 i;

	lite_wave_end_all(v, ops, false, left);
	for (i = 0; i < v->n_pages; i++) {
		if (unlikely(v->alone))
			lite_bounce_failed(mem->fab, v->page[i]);
		lite_bounce_put(mem->fab, v->page[i]);
	}
	lite_wave_settle(v);
	lite_wave_end_all(v, ops, true, left);
}

static int lite_vector_check(const struct lite_vector *v, const struct lite_op *op)
{
	/* A kernel client may use any priority. */
	if (!v->user && op->priority <= LITE_SCHED_CLASSES)
		return lite_op_check(op);
	return lite_op_check(op) ?: lite_op_check_prio(v->ctx, op);
}

/* Run one wave, up to a fence. Return: the index of the next operation. */
static u32 lite_wave(struct lite_vector *v, struct lite_op *ops, u32 from, u32 n,
		     unsigned long *left)
{
	enum lite_wave_no no;
	u32 i;

	v->n = 0;
	v->n_to = 0;
	v->n_pages = 0;
	v->m = NULL;
	for (i = from; i < n; i++) {
		int err = lite_vector_check(v, &ops[i]);

		if (err && ops[i].opcode == LITE_OP_FENCE)
			break;
		if (err) {
			ops[i].error = err;
			ops[i].result = 0;
			continue;
		}
		no = lite_wave_add(v, &ops[i]);
		if (no == LITE_WAVE_FULL)
			break;
		if (no != LITE_WAVE_ALONE)
			continue;
		if (ops[i].opcode == LITE_OP_FENCE)
			break;
		__set_bit(i, left);
	}
	lite_stat_add(v->ctx->mem->stats, LITE_STAT_OPS_INFLIGHT, v->n);
	lite_wave_submit(v);
	lite_wave_finish(v, ops, left);
	lite_stat_add(v->ctx->mem->stats, LITE_STAT_OPS_INFLIGHT, -(s64)v->n);
	return i;
}

/* Return: 0: more operations may be started; an errno: why not. */
static int lite_vector_over(const struct lite_vector *v)
{
	if (v->gate && !v->gate->in)
		return -ENODEV;
	return lite_given_up() ? -EINTR : 0;
}

/* Run operations from @i up to a fence or @n. @ret: 0 or an errno. Return: the index reached. */
static u32 lite_vector_part(struct lite_vector *v, struct lite_op *ops, u32 i, u32 n, int *ret)
{
	DECLARE_BITMAP(left, LITE_WAVE_OPS);
	int err = 0;

	bitmap_zero(left, LITE_WAVE_OPS);
	do {
		i = lite_wave(v, ops, i, n, left);
		cond_resched();
		err = lite_vector_over(v);
	} while (i < n && !err && ops[i].opcode != LITE_OP_FENCE);
	n = i;
	for_each_set_bit(i, left, n) {
		struct lite_buf buf = lite_vector_buf(v, &ops[i]);

		if (!err)
			err = lite_vector_over(v);
		ops[i].result = 0;
		ops[i].error = err ?: lite_op_run(v->ctx, &ops[i], &buf);
	}
	*ret = err ?: lite_vector_over(v);
	return n;
}

/* A fence; if something before it has failed, cancel the rest. */
static void lite_vector_fence(struct lite_vector *v, struct lite_op *ops, u32 at, bool failed)
{
	struct lite_op *op = &ops[at];
	int err = lite_vector_check(v, op);

	while (!failed && at--)
		failed = ops[at].error;
	if (!err)
		err = failed ? -ECANCELED : lite_op_run(v->ctx, op, NULL);
	op->result = 0;
	op->error = err;
	v->cancelled = err;
}

/*
 * Carry out @n operations, at most LITE_WAVE_OPS, unordered except by fences. Sets error and result
 * of each. @failed: an earlier operation of the call has failed. May sleep; a fatal signal ends it
 * after what is in flight. Return: 0; -EINTR, -ENODEV: also the error of those not tried.
 */
int lite_vector_run(struct lite_vector *v, struct lite_op *ops, u32 n, bool failed)
{
	int err = 0;
	u32 i = 0;

	while (!v->cancelled && i < n && !err) {
		if (ops[i].opcode == LITE_OP_FENCE)
			lite_vector_fence(v, ops, i++, failed);
		else
			i = lite_vector_part(v, ops, i, n, &err);
	}
	for (; i < n; i++) {
		ops[i].result = 0;
		ops[i].error = err ?: -ECANCELED;
	}
	return err;
}
