// SPDX-License-Identifier: GPL-2.0
/* Changing LMRs, for kernel modules; documented in include/lite/kapi.h. */
#include <linux/export.h>
#include <linux/slab.h>

#include "memory/handle/ctx.h"
#include "node.h"

int lite_lmr_grant(struct lite_ctx *ctx, u64 lh, const struct lite_grant *grant)
{
	const struct lite_target target = { .cred = &lite_root, .lh = lh };
	struct lite_node *node = lite_kapi_enter(ctx);
	int err;

	if (!node)
		return -ENODEV;
	err = lh ? lite_ctx_grant(ctx, &target, grant) : -EBADF;
	lite_node_exit(node);
	return err;
}
EXPORT_SYMBOL_GPL(lite_lmr_grant);

int lite_lmr_grants(struct lite_ctx *ctx, u64 lh, struct lite_grant *grants,
		    u32 *n)
{
	struct lite_node *node = lite_kapi_enter(ctx);
	int err;

	if (!node)
		return -ENODEV;
	err = lh ? lite_ctx_grants(ctx, lh, NULL, grants, n) : -EBADF;
	lite_node_exit(node);
	return err;
}
EXPORT_SYMBOL_GPL(lite_lmr_grants);

int lite_lmr_setattr(struct lite_ctx *ctx, u64 lh, u32 uid, u32 gid, u32 mode)
{
	const struct lite_target target = { .cred = &lite_root, .lh = lh };
	struct lite_node *node = lite_kapi_enter(ctx);
	int err;

	if (!node)
		return -ENODEV;
	err = lh ? lite_ctx_setattr(ctx, &target, uid, gid, mode) :
		   -EBADF;
	lite_node_exit(node);
	return err;
}
EXPORT_SYMBOL_GPL(lite_lmr_setattr);

int lite_lmr_rename(struct lite_ctx *ctx, u64 lh, const char *to)
{
	const struct lite_target target = { .cred = &lite_root, .lh = lh };
	char *copy = lite_kapi_name(to);
	struct lite_node *node;
	int err = -ENODEV;

	if (IS_ERR(copy))
		return PTR_ERR(copy);
	node = lite_kapi_enter(ctx);
	if (node) {
		err = lh ? lite_ctx_rename(ctx, &target, copy) :
			   -EBADF;
		lite_node_exit(node);
	}
	kfree(copy);
	return err;
}
EXPORT_SYMBOL_GPL(lite_lmr_rename);

int lite_lmr_resize(struct lite_ctx *ctx, u64 lh, u64 length)
{
	const struct lite_target target = { .cred = &lite_root, .lh = lh };
	struct lite_node *node = lite_kapi_enter(ctx);
	int err;

	if (!node)
		return -ENODEV;
	err = lh ? lite_ctx_resize(ctx, &target, length) : -EBADF;
	lite_node_exit(node);
	return err;
}
EXPORT_SYMBOL_GPL(lite_lmr_resize);

int lite_lmr_move(struct lite_ctx *ctx, u64 lh, u64 offset, u64 length,
		  u32 node_id, u64 *moved)
{
	const struct lite_target target = { .cred = &lite_root, .lh = lh };
	struct lite_node *node = lite_kapi_enter(ctx);
	u64 done = 0;
	int err;

	if (!node)
		return -ENODEV;
	err = lh ? lite_ctx_move(ctx, &target, node_id, offset, length,
				 &done) : -EBADF;
	lite_node_exit(node);
	if (moved)
		*moved = done;
	return err;
}
EXPORT_SYMBOL_GPL(lite_lmr_move);
