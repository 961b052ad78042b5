// SPDX-License-Identifier: GPL-2.0
/*
 * Fetch-add and compare-and-swap on 8-byte words, by the RDMA device of the node that stores the
 * word. A device's atomics need not be atomic with respect to the CPU's, so local words, too, are
 * accessed through the device, by a connection of the node to itself. The same holds for swap,
 * fetch-and and fetch-or, which no device has (memop/memop_serve.c).
 */
#include "memory/memory.h"
#include "devop.h"
#include "wait.h"

/*
 * Have the device of the word's node perform an atomic. @m, @opcode, @offset (checked) and operands
 * of @d are set; @bounce gets the old value. May sleep. Return: as lite_devop_run(); if @d->posted
 * is set, it may have been done.
 */
int lite_atomic_run(struct lite_devop *d, struct lite_bounce *bounce)
{
	struct lite_fabric *fab = d->m->mem->fab;
	int err;

	d->e = lite_extent_at(d->m, d->offset);
	d->n = sizeof(u64);
	d->dma = bounce->dma;
	err = lite_devop_run(d, sizeof(u64));
	if (unlikely(err))
		lite_bounce_failed(fab, bounce);
	return err;
}

/* Connect this node to itself, unless it is already. May sleep; killable. Return: 0 or an errno. */
int lite_atomic_connect(struct lite_memory *mem)
{
	struct lite_conn *self = lite_cluster_self_conn(mem->cl);

	if (IS_ERR(self))
		return PTR_ERR(self);
	lite_conn_put_live(self);
	return 0;
}

static int lite_atomic_check_entered(const struct lite_mapping *m, u64 offset, u64 length)
{
	int err = lite_atomic_check(offset - m->base, length, m->length);

	return err || m->mem->fab->atomics ? err : -EOPNOTSUPP;
}

/* Try once. Puts the bounce page, which others need, before other waits. Return: -EAGAIN: retry. */
static int lite_atomic_try(const struct lite_access *a, struct lite_devop *d, struct lite_op *op,
			   bool *begun, unsigned long *until)
{
	struct lite_memory *mem = a->ctx->mem;
	struct lite_bounce *bounce = lite_bounce_get(mem->fab);
	const struct lite_mapping *stale;
	int err;

	if (!bounce)
		return -EINTR;
	/* lite_atomic_check_entered() checks the word, in the chunk if the LMR is unpinned. */
	d->m = lite_tryenter_at(a, 0, 1, op->offset, &stale);
	err = PTR_ERR_OR_ZERO(d->m);
	if (!err) {
		stale = d->m;
		err = lite_atomic_check_entered(d->m, op->offset, op->length);
		if (!err) {
			*begun = true;
			err = lite_atomic_run(d, bounce);
		}
		lite_devop_exit(d);
	}
	if (!err)
		memcpy(&op->result, bounce->data, sizeof(op->result));
	lite_bounce_put(mem->fab, bounce);
	if (err == -EAGAIN)
		return lite_range_renew(a, op->offset, stale, until) ?: -EAGAIN;
	if (err == -EUNATCH)
		return lite_atomic_connect(mem) ?: -EAGAIN;
	return err;
}

/*
 * Fetch-add or compare-and-swap on a word of an LMR. Sets the result of @op to the old value, and
 * @posted to whether it may have been done even if it failed. May sleep; killable. Return: 0 or an
 * errno, see LITE_IOC_OP.
 */
int lite_atomic(const struct lite_access *a, struct lite_op *op, bool *posted)
{
	struct lite_memory *mem = a->ctx->mem;
	struct lite_devop d = {
		.opcode = op->opcode,
		.prio = lite_op_prio(a->ctx, op),
		.offset = op->offset,
		.operand = op->operand,
		.swap = op->swap,
	};
	unsigned long until = 0;
	bool begun = false;
	int backs = 0;
	int err;

	lite_stat_inc(mem->stats, LITE_STAT_OPS_INFLIGHT);
	do {
		err = lite_atomic_try(a, &d, op, &begun, &until);
		if (err == -EHOSTDOWN && !d.posted) {
			err = lite_access_await(a, &backs) ?: -EAGAIN;
			if (err == -EHOSTDOWN)
				err = lite_cluster_ready(mem->cl) ?: err;
		}
		if (err == -EAGAIN && lite_given_up())
			err = -EINTR;
	} while (err == -EAGAIN);
	lite_stat_dec(mem->stats, LITE_STAT_OPS_INFLIGHT);
	*posted = d.posted;
	if (likely(begun))
		lite_op_count(mem->stats, op, 0, err);
	return err;
}

/*
 * Check handle, right and bounds of an atomic operation. May sleep; killable. Return: 0, -EINVAL,
 * -ERANGE, -EOPNOTSUPP, or as lite_access_enter().
 */
int lite_atomic_may(const struct lite_access *a, u64 offset, u64 length)
{
	struct lite_mapping *m = lite_access_enter_patiently(a);
	int err;

	if (IS_ERR(m))
		return PTR_ERR(m);
	err = lite_atomic_check_entered(m, offset, length);
	lite_access_exit(m);
	return err;
}
