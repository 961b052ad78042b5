// SPDX-License-Identifier: GPL-2.0
/*
 * LITE_OP_FENCE: what has completed is seen by the processors of the nodes that
 * have the bytes. Documentation/ordering.rst has what may be relied on without.
 *
 * A store is flushed through the session that operations on the LMR go through now.
 * The queue pairs of an earlier one have been destroyed there before this one was
 * used, which ends what its device was doing on their behalf.
 */
#include "../trace.h"
#include "../wait.h"
#include "memory.h"

/* Sessions in which a node is tried. */
#define LITE_FENCE_TRIES 3

static int lite_fence_conn(struct lite_conn *conn)
{
	int err = lite_conn_flush(conn);

	lite_conn_put_live(conn);
	return err;
}

/* Of operations that the device has done on memory of this node: atomics. */
static int lite_fence_self(struct lite_memory *mem)
{
	struct lite_conn *conn = lite_cluster_self_conn_tryget(mem->cl);

	return conn ? lite_fence_conn(conn) : 0;
}

static int lite_fence_share(struct lite_mapping *m, u32 share)
{
	struct lite_conn *conn;

	if (!m->share[share].peer)
		return lite_fence_self(m->mem);
	conn = lite_access_conn(m, share);
	return IS_ERR(conn) ? PTR_ERR(conn) : lite_fence_conn(conn);
}

/* All nodes of an LMR. */
static int lite_fence_lmr(const struct lite_access *a)
{
	struct lite_mapping *m = lite_access_enter(a);
	int err = 0;
	u32 i;

	if (IS_ERR(m))
		return PTR_ERR(m);
	for (i = 0; i < m->n_shares && !err; i++)
		err = lite_fence_share(m, i);
	lite_access_exit(m);
	/* @m is only compared now. */
	if (err == -EAGAIN)
		err = lite_access_renew(a, m) ?: -EAGAIN;
	return err;
}

static int lite_fence_handle(const struct lite_access *a)
{
	int tries = 0;
	int err;

	for (;;) {
		err = lite_fence_lmr(a);
		if ((err == -EHOSTDOWN || err == -ETIMEDOUT) &&
		    ++tries < LITE_FENCE_TRIES)
			err = lite_access_await(a) ?: -EAGAIN;
		if (err != -EAGAIN)
			return err;
		if (lite_given_up())
			return -EINTR;
	}
}

/* All nodes that are not down. */
static int lite_fence_all(struct lite_memory *mem)
{
	int err = lite_cluster_ready(mem->cl);
	u32 node = 0;

	if (!err)
		err = lite_fence_self(mem);
	while (!err && (node = lite_cluster_next(mem->cl, node))) {
		err = lite_cluster_flush(mem->cl, node);
		if (!err && lite_given_up())
			err = -EINTR;
	}
	return err;
}

/**
 * lite_fence - wait until what has completed is seen by processors
 * @ctx: whose handle
 * @lh: of an LMR: at the nodes that it is at; 0: at all nodes
 *
 * Context: may sleep; killable.
 * Return: 0; as lite_access_enter(); -EHOSTDOWN, -ETIMEDOUT; of all nodes those
 * that are down are passed over.
 */
int lite_fence(struct lite_ctx *ctx, u64 lh)
{
	const struct lite_access a = { .ctx = ctx, .lh = lh };
	int err;

	/* What was copied into memory of this node comes first. */
	smp_mb();
	err = lh ? lite_fence_handle(&a) : lite_fence_all(ctx->mem);
	trace_lite_op(LITE_OP_FENCE, lh, 0, 0, err);
	return err;
}
