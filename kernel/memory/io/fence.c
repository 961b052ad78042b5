// SPDX-License-Identifier: GPL-2.0
/*
 * LITE_OP_FENCE: make completed operations visible to the processors of the nodes that store the
 * bytes. Documentation/interfaces/ordering.rst says what is guaranteed without a fence.
 *
 * A store is flushed through the present session. The queue pairs of earlier sessions were
 * destroyed there before this one was used, which ended all accesses on their behalf.
 */
#include "memory/memory.h"
#include "io.h"
#include "trace.h"
#include "wait.h"

/* Attempts per LMR, across sessions. */
#define LITE_FENCE_TRIES 3

/* Flush this node's connection to itself, if it has one. If that fails, fencing it will do. */
static int lite_fence_self(struct lite_cluster *cl)
{
	struct lite_conn *conn = lite_cluster_self_conn_tryget(cl);
	int err;

	if (!conn)
		return 0;
	lite_conn_get(conn);
	err = lite_conn_flush(conn);
	lite_conn_put_live(conn);
	if (err)
		err = lite_cluster_fence_self(cl, conn);
	lite_conn_put(conn);
	return err;
}

/*
 * Flush the node of a share, entered nowhere; share 0 sets @generation. Return: 0; 1: there is no
 * such share; -EAGAIN: start over at share 0 (LMR changed, or handle renewed); or another errno.
 */
static int lite_fence_share(const struct lite_access *a, u32 share, u64 *generation)
{
	struct lite_cluster *cl = a->ctx->mem->cl;
	struct lite_mapping *m = lite_access_enter(a);
	struct lite_conn *conn = NULL;
	bool over, same;
	int err;

	if (IS_ERR(m))
		return PTR_ERR(m);
	if (!share)
		*generation = m->generation;
	same = *generation == m->generation;
	over = share >= m->n_shares;
	if (same && !over && m->share[share].node != lite_cluster_id(cl))
		conn = lite_access_conn(m, share);
	/* Leave first: no change of the LMR may wait until this thread gets a processor. */
	lite_access_exit(m);
	if (!same)
		return -EAGAIN;
	if (conn == ERR_PTR(-EAGAIN))
		return lite_access_renew(a, m) ?: -EAGAIN; /* @m is only compared */
	if (IS_ERR(conn))
		return PTR_ERR(conn);
	if (!conn)
		return over ? 1 : lite_fence_self(cl);
	err = lite_conn_flush(conn);
	lite_conn_put_live(conn);
	return err;
}

static int lite_fence_handle(const struct lite_access *a)
{
	int backs = 0;
	int tries = 0;
	u64 generation;
	u32 share;
	int err;

	for (;;) {
		share = 0;
		do {
			err = lite_fence_share(a, share++, &generation);
		} while (!err);
		if (err > 0)
			return 0;
		if ((err == -EHOSTDOWN || err == -ETIMEDOUT) && ++tries < LITE_FENCE_TRIES)
			err = lite_access_await(a, &backs) ?: -EAGAIN;
		if (err != -EAGAIN)
			return err;
		if (lite_given_up())
			return -EINTR;
	}
}

/* Flush all nodes that are not down. */
static int lite_fence_all(struct lite_memory *mem)
{
	/* The device performs atomics on memory of this node. */
	int err = lite_cluster_ready(mem->cl) ?: lite_fence_self(mem->cl);
	u32 node = 0;

	while (!err && (node = lite_cluster_next(mem->cl, node))) {
		err = lite_cluster_flush(mem->cl, node);
		if (!err && lite_given_up())
			err = -EINTR;
	}
	return err;
}

/*
 * Wait until completed operations are visible to the processors of all nodes of LMR @lh, or (0) of
 * all nodes that are not down. May sleep; killable. Return: 0; errors of lite_access_enter();
 * -EHOSTDOWN, -ETIMEDOUT; -EIO: the device keeps a queue pair.
 */
int lite_fence(struct lite_ctx *ctx, u64 lh)
{
	const struct lite_access a = { .ctx = ctx, .lh = lh };
	int err;

	/* Orders copies into memory of this node. */
	smp_mb();
	err = lh ? lite_fence_handle(&a) : lite_fence_all(ctx->mem);
	/* This node may have left or stopped. */
	if (err == -EHOSTDOWN)
		err = lite_cluster_ready(ctx->mem->cl) ?: err;
	trace_lite_op(LITE_OP_FENCE, lh, 0, 0, err);
	return err;
}
