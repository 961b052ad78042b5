// SPDX-License-Identifier: GPL-2.0
/* The ioctls for locks and barriers (include/uapi/lite_sync.h). */
#include "node.h"

int lite_ioc_lock(struct lite_file *lf, void *arg, struct lite_gate *gate)
{
	const struct lite_ioc_lock *l = arg;
	struct lite_lock_args args = {
		.ctx = lf->ctx,
		.lh = l->lh,
		.offset = l->offset,
		.owner = l->owner,
		.shared = l->flags & LITE_LOCK_SHARED,
		.try = l->flags & LITE_LOCK_TRY,
		.timeout = lite_timeout(l->timeout_ms),
	};

	if (l->flags & ~(LITE_LOCK_SHARED | LITE_LOCK_TRY))
		return -EOPNOTSUPP;
	if (args.try && l->timeout_ms)
		return -EINVAL;
	return lite_lock_take(&lf->node->locks, &args);
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
	const struct lite_lock_args args = {
		.ctx = lf->ctx,
		.lh = b->lh,
		.offset = b->offset,
		.n = b->n,
		.timeout = lite_timeout(b->timeout_ms),
	};

	if (b->flags || b->reserved)
		return -EOPNOTSUPP;
	return lite_barrier_wait(&lf->node->locks, &args);
}
