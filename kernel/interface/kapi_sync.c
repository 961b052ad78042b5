// SPDX-License-Identifier: GPL-2.0
/* Locks and barriers, for kernel modules; include/lite/kapi.h documents it. */
#include <linux/export.h>

#include "node.h"

int lite_lmr_lock(struct lite_ctx *ctx, u64 lh, u64 offset, u64 owner,
		  u32 flags, u64 timeout_ms)
{
	const struct lite_lock_args args = {
		.ctx = ctx,
		.lh = lh,
		.offset = offset,
		.owner = owner,
		.shared = flags & LITE_LOCK_SHARED,
		.try = flags & LITE_LOCK_TRY,
		.timeout = lite_timeout(timeout_ms),
	};
	struct lite_node *node;
	int err;

	if (flags & ~(LITE_LOCK_SHARED | LITE_LOCK_TRY))
		return -EOPNOTSUPP;
	if (args.try && timeout_ms)
		return -EINVAL;
	node = lite_kapi_enter(ctx);
	if (!node)
		return -ENODEV;
	err = lite_lock_take(&node->locks, &args);
	lite_node_exit(node);
	return err;
}
EXPORT_SYMBOL_GPL(lite_lmr_lock);

int lite_lmr_unlock(struct lite_ctx *ctx, u64 lh, u64 offset, u64 owner)
{
	struct lite_node *node = lite_kapi_enter(ctx);
	int err;

	if (!node)
		return -ENODEV;
	err = lite_lock_release(&node->locks, ctx, lh, offset, owner);
	lite_node_exit(node);
	return err;
}
EXPORT_SYMBOL_GPL(lite_lmr_unlock);

int lite_lmr_lock_consistent(struct lite_ctx *ctx, u64 lh, u64 offset,
			     u64 owner)
{
	struct lite_node *node = lite_kapi_enter(ctx);
	int err;

	if (!node)
		return -ENODEV;
	err = lite_lock_consistent(&node->locks, ctx, lh, offset, owner);
	lite_node_exit(node);
	return err;
}
EXPORT_SYMBOL_GPL(lite_lmr_lock_consistent);

int lite_lmr_barrier(struct lite_ctx *ctx, u64 lh, u64 offset, u32 n,
		     u64 timeout_ms)
{
	const struct lite_lock_args args = {
		.ctx = ctx,
		.lh = lh,
		.offset = offset,
		.n = n,
		.timeout = lite_timeout(timeout_ms),
	};
	struct lite_node *node = lite_kapi_enter(ctx);
	int err;

	if (!node)
		return -ENODEV;
	err = lite_barrier_wait(&node->locks, &args);
	lite_node_exit(node);
	return err;
}
EXPORT_SYMBOL_GPL(lite_lmr_barrier);
