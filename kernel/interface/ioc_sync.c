// SPDX-License-Identifier: GPL-2.0
/* Commands for locks and barriers (include/uapi/lite_sync.h). */
#include "command.h"

static int lite_ioc_lock(struct lite_command *cmd, void *arg)
{
	const struct lite_ioc_lock *l = arg;
	struct lite_lock_args args = {
		.ctx = cmd->ctx,
		.lh = l->lh,
		.offset = l->offset,
		.owner = l->owner,
		.shared = l->flags & LITE_LOCK_SHARED,
		.try = l->flags & LITE_LOCK_TRY || l->timeout_ms == LITE_NOWAIT,
	};

	if (!lite_timeout_ok(l->timeout_ms))
		return -EINVAL;
	args.timeout = args.try ? MAX_JIFFY_OFFSET :
				  lite_timeout_jiffies(l->timeout_ms, LITE_FOREVER);
	return lite_lock_take(&cmd->node->locks, &args);
}

static int lite_ioc_unlock(struct lite_command *cmd, void *arg)
{
	const struct lite_ioc_unlock *u = arg;

	return lite_lock_release(&cmd->node->locks, cmd->ctx, u->lh, u->offset, u->owner);
}

static int lite_ioc_consistent(struct lite_command *cmd, void *arg)
{
	const struct lite_ioc_unlock *u = arg;

	return lite_lock_consistent(&cmd->node->locks, cmd->ctx, u->lh, u->offset, u->owner);
}

static int lite_ioc_barrier(struct lite_command *cmd, void *arg)
{
	const struct lite_ioc_barrier *b = arg;
	struct lite_lock_args args = {
		.ctx = cmd->ctx,
		.lh = b->lh,
		.offset = b->offset,
		.n = b->n,
		.timeout = lite_timeout_jiffies(b->timeout_ms, LITE_FOREVER),
	};
	int err;

	if (!lite_timeout_ok(b->timeout_ms))
		return -EINVAL;
	err = lite_barrier_wait(&cmd->node->locks, &args);
	/* Even LITE_NOWAIT has to ask the home, so it may time out. */
	return err == -ETIMEDOUT && b->timeout_ms == LITE_NOWAIT ? -EAGAIN : err;
}

const struct lite_ioc lite_iocs_sync[LITE_IOC_GROUP] = {
	LITE_IOC_ENTRY(LITE_IOC_LOCK, lite_ioc_lock, reserved, LITE_IOC_ZERO(lite_ioc_lock),
		       .flags = LITE_LOCK_SHARED | LITE_LOCK_TRY, .fn = lite_ioc_lock),
	LITE_IOC_ENTRY(LITE_IOC_UNLOCK, lite_ioc_unlock, owner, .fn = lite_ioc_unlock),
	LITE_IOC_ENTRY(LITE_IOC_CONSISTENT, lite_ioc_unlock, owner, .fn = lite_ioc_consistent),
	LITE_IOC_ENTRY(LITE_IOC_BARRIER, lite_ioc_barrier, timeout_ms, .fn = lite_ioc_barrier),
};
