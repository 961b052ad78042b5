// SPDX-License-Identifier: GPL-2.0
/*
 * Changing and freeing LMRs, from the caller's side: one request each to the home, which carries it
 * out (memory/home/). Moving takes several (move_steps.c).
 *
 * Each lite_ctx_*() may sleep, is killable and returns what its ioctl does (LITE_IOC_FREE, ...).
 * @arg is the structure of that ioctl; its flags, reserved members, handle and name are checked and
 * in @target. A change needs a handle with LITE_RIGHT_MASTER, unless stated otherwise.
 */
#include "core/name.h"
#include "memory/memory.h"
#include "home_request.h"

static int lite_home_ask_change(struct lite_ctx *ctx, const struct lite_target *target, u16 call,
				void *req, u32 len)
{
	struct lite_home_request q = {
		.ctx = ctx,
		.target = target,
		.d = { .call = call, .req = req, .len = len },
	};

	return lite_home_ask(&q);
}

/* Free an LMR; also closes the handle. */
int lite_ctx_free(struct lite_ctx *ctx, const struct lite_target *target, void *arg)
{
	struct lite_wire_change req = {};
	int err = lite_home_ask_change(ctx, target, LITE_CALL_LMR_FREE, &req, sizeof(req));

	if (!err && target->lh)
		lite_ctx_unmap(ctx, target->lh);
	return err;
}

/* Set the rights of a user; 0 ends the grant. The home decides which right this needs. */
int lite_ctx_grant(struct lite_ctx *ctx, const struct lite_target *target, void *arg)
{
	const struct lite_ioc_grant *g = arg;
	struct lite_wire_set_grant req = {
		.grant = {
			.uid = cpu_to_le32(g->grant.uid),
			.node = cpu_to_le32(g->grant.node),
			.rights = cpu_to_le32(g->grant.rights),
		},
	};

	if (g->grant.reserved || g->grant.rights & ~LITE_RIGHTS_ALL)
		return -EOPNOTSUPP;
	if (g->grant.node > LITE_NODE_ID_MAX || g->grant.uid == LITE_KEEP)
		return -EINVAL;
	return lite_home_ask_change(ctx, target, LITE_CALL_LMR_GRANT, &req, sizeof(req));
}

/* Change owner, group and mode; LITE_KEEP leaves one as it is. */
int lite_ctx_setattr(struct lite_ctx *ctx, const struct lite_target *target, void *arg)
{
	const struct lite_ioc_setattr *s = arg;
	struct lite_wire_setattr req = {
		.uid = cpu_to_le32(s->uid),
		.gid = cpu_to_le32(s->gid),
		.mode = cpu_to_le32(s->mode),
	};

	if (s->mode != LITE_KEEP && s->mode & ~LITE_MODE_MASK)
		return -EINVAL;
	return lite_home_ask_change(ctx, target, LITE_CALL_LMR_SETATTR, &req, sizeof(req));
}

int lite_ctx_rename(struct lite_ctx *ctx, const struct lite_target *target, void *arg)
{
	const struct lite_ioc_rename *r = arg;
	struct lite_wire_rename req = {};
	int len = lite_name_check(r->to, sizeof(r->to));

	if (len < 0)
		return len;
	strscpy(req.name, r->to, sizeof(req.name));
	return lite_home_ask_change(ctx, target, LITE_CALL_LMR_RENAME, &req, sizeof(req));
}

int lite_ctx_resize(struct lite_ctx *ctx, const struct lite_target *target, void *arg)
{
	const struct lite_ioc_resize *r = arg;
	struct lite_wire_resize req = { .length = cpu_to_le64(r->length) };

	if (!r->length)
		return -EINVAL;
	if (r->length > LITE_LMR_SIZE_MAX)
		return -EFBIG;
	return lite_home_ask_change(ctx, target, LITE_CALL_LMR_RESIZE, &req, sizeof(req));
}
