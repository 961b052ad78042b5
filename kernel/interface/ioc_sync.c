// SPDX-License-Identifier: GPL-2.0
/* The ioctls for locks and barriers (include/uapi/lite_sync.h). */
#include "memory/handle/ctx.h"
#include "node.h"

/**
 * lite_sync_lock - take a lock, for a process or a kernel module
 * @node: node; the caller is active on it
 * @args: lock and holder; mode and time-out are filled in here
 * @flags: LITE_LOCK_*
 * @timeout_ms: time-out as in <uapi/lite.h>
 *
 * Context: may sleep; killable. Return: as LITE_IOC_LOCK.
 */
int lite_sync_lock(struct lite_node *node, struct lite_lock_args *args,
		   u32 flags, s32 timeout_ms)
{
	if (flags & ~(LITE_LOCK_SHARED | LITE_LOCK_TRY))
		return -EOPNOTSUPP;
	if (!lite_timeout_ok(timeout_ms))
		return -EINVAL;
	args->shared = flags & LITE_LOCK_SHARED;
	args->try = flags & LITE_LOCK_TRY || timeout_ms == LITE_NOWAIT;
	args->timeout = args->try ? MAX_JIFFY_OFFSET :
				    lite_timeout_jiffies(timeout_ms,
							 LITE_FOREVER);
	return lite_lock_take(&node->locks, args);
}

/*
 * Wait at a barrier; parameters as for lite_sync_lock(). Context: may sleep;
 * killable. Return: as LITE_IOC_BARRIER.
 */
int lite_sync_barrier(struct lite_node *node, struct lite_lock_args *args,
		      s32 timeout_ms)
{
	int err;

	if (!lite_timeout_ok(timeout_ms))
		return -EINVAL;
	args->timeout = lite_timeout_jiffies(timeout_ms, LITE_FOREVER);
	err = lite_barrier_wait(&node->locks, args);
	/* Even LITE_NOWAIT has to ask the home, so it may time out. */
	return err == -ETIMEDOUT && timeout_ms == LITE_NOWAIT ? -EAGAIN : err;
}

int lite_ioc_lock(struct lite_file *lf, void *arg, struct lite_gate *gate)
{
	const struct lite_ioc_lock *l = arg;
	struct lite_lock_args args = {
		.ctx = lf->ctx,
		.lh = l->lh,
		.offset = l->offset,
		.owner = l->owner,
	};

	if (l->reserved)
		return -EOPNOTSUPP;
	return lite_sync_lock(lf->node, &args, l->flags, l->timeout_ms);
}

int lite_ioc_unlock(struct lite_file *lf, void *arg, struct lite_gate *gate)
{
	const struct lite_ioc_unlock *u = arg;

	if (u->flags)
		return -EOPNOTSUPP;
	return lite_lock_release(&lf->node->locks, lf->ctx, u->lh, u->offset,
				 u->owner);
}

int lite_ioc_consistent(struct lite_file *lf, void *arg, struct lite_gate *gate)
{
	const struct lite_ioc_unlock *u = arg;

	if (u->flags)
		return -EOPNOTSUPP;
	return lite_lock_consistent(&lf->node->locks, lf->ctx, u->lh, u->offset,
				    u->owner);
}

int lite_ioc_barrier(struct lite_file *lf, void *arg, struct lite_gate *gate)
{
	const struct lite_ioc_barrier *b = arg;
	struct lite_lock_args args = {
		.ctx = lf->ctx,
		.lh = b->lh,
		.offset = b->offset,
		.n = b->n,
	};

	if (b->flags)
		return -EOPNOTSUPP;
	return lite_sync_barrier(lf->node, &args, b->timeout_ms);
}
