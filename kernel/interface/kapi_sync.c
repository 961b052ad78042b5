// SPDX-License-Identifier: GPL-2.0
/* Locks and barriers for kernel modules; documented in include/lite/kapi.h. */
#include <linux/export.h>

#include "memory/handle/ctx.h"
#include "node.h"

int lite_lmr_lock(struct lite_ctx *ctx, u64 lh, u64 offset, u64 owner,
		  u32 flags, s32 timeout_ms)
{
	struct lite_lock_args args = {
		.ctx = ctx,
		.lh = lh,
		.offset = offset,
		.owner = owner,
	};
	struct lite_node *node = lite_kapi_enter(ctx);
	int err;

	if (!node)
		return -ENODEV;
	err = lite_sync_lock(node, &args, flags, timeout_ms);
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
		     s32 timeout_ms)
{
	struct lite_lock_args args = {
		.ctx = ctx,
		.lh = lh,
		.offset = offset,
		.n = n,
	};
	struct lite_node *node = lite_kapi_enter(ctx);
	int err;

	if (!node)
		return -ENODEV;
	err = lite_sync_barrier(node, &args, timeout_ms);
	lite_node_exit(node);
	return err;
}
EXPORT_SYMBOL_GPL(lite_lmr_barrier);
