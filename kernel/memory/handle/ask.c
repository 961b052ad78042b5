// SPDX-License-Identifier: GPL-2.0
/*
 * Asking an LMR's home to change or free it.
 *
 * A request by handle names the handle's user and rights, and the home permits
 * what both allow. A request by name is permitted by the user's rights alone.
 *
 * Every lite_ctx_*() here may sleep, is killable and, but for lite_ctx_move(),
 * returns what its ioctl does (LITE_IOC_FREE, ...). A handle needs
 * LITE_RIGHT_MASTER, unless stated otherwise.
 */
#include <linux/ktime.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>

#include "core/name.h"
#include "memory/home/home.h"
#include "memory/memory.h"
#include "memory/store/payer.h"
#include "ctx.h"

/* Covers waiting for all mappers, and zeroing or copying memory. */
#define LITE_FREE_TIMEOUT (60 * HZ)
#define LITE_CHANGE_TIMEOUT (180 * HZ)
/* The longest pause between two steps of a move. */
#define LITE_MOVE_PAUSE_NS (1 * (s64)NSEC_PER_SEC)
/* Attempts at a step of a move; a broken session makes it start over. */
#define LITE_MOVE_TRIES 3

/**
 * struct lite_ask - a request to a home
 * @ctx: of the caller
 * @target: the LMR, and the user that asks
 * @right: LITE_RIGHT_* that the handle needs
 * @d: the call; its request begins with struct lite_wire_change
 */
struct lite_ask {
	struct lite_ctx *ctx;
	const struct lite_target *target;
	u32 right;
	struct lite_call_desc d;
};

/* Set up a request that needs LITE_RIGHT_MASTER. */
static void lite_ask_init(struct lite_ask *q, struct lite_ctx *ctx,
			  const struct lite_target *target, u16 call, void *req,
			  u32 len)
{
	*q = (struct lite_ask){
		.ctx = ctx,
		.target = target,
		.right = LITE_RIGHT_MASTER,
		.d = {
			.call = call,
			.req = req,
			.len = len,
			.timeout = LITE_CHANGE_TIMEOUT,
			.killable = true,
		},
	};
}

static void lite_ask_as(struct lite_ask *q, u64 id, u32 rights,
			const struct lite_cred *cred)
{
	struct lite_wire_change *c = (void *)q->d.req;

	c->id = cpu_to_le64(id);
	c->rights = cpu_to_le32(rights);
	lite_wire_cred_put(&c->cred, cred);
}

/* Fill in a request by handle. */
static int lite_ask_handle(struct lite_ask *q, u32 *home, u64 *id)
{
	const struct lite_access a = {
		.ctx = q->ctx,
		.lh = q->target->lh,
		.right = q->right,
	};
	struct lite_mapping *m;
	struct lite_handle *h;
	int err = -EBADF;

	/* Ids are never reused, so home and id stay valid after leaving. */
	m = lite_access_enter(&a);
	if (IS_ERR(m))
		return PTR_ERR(m);
	*home = m->home;
	*id = m->id;
	lite_access_exit(m);
	rcu_read_lock();
	h = lite_handle_find(q->ctx, q->target->lh);
	if (h) {
		lite_ask_as(q, *id, READ_ONCE(h->rights), &h->user->cred);
		err = 0;
	}
	rcu_read_unlock();
	return err;
}

/*
 * The errno to return for a home's answer: one that is leaving or stopping says
 * so of itself, not of this node. Any context.
 */
int lite_home_error(struct lite_memory *mem, u32 home, int err)
{
	if ((err == -ENOTCONN || err == -ENODEV) &&
	    home != lite_cluster_id(mem->cl))
		return -EHOSTDOWN;
	return err;
}

static int lite_ask_call(struct lite_ask *q, u32 home)
{
	const struct lite_wire_change *c = q->d.req;
	struct lite_memory *mem = q->ctx->mem;
	struct lite_payer payer;
	int err;

	lite_payer_begin(mem, &payer, home, le64_to_cpu(c->id), 0);
	err = lite_cluster_call_once(mem->cl, home, &q->d);
	lite_payer_end(mem, &payer);
	return lite_home_error(mem, home, err);
}

static int lite_ask(struct lite_ask *q)
{
	struct lite_memory *mem = q->ctx->mem;
	bool ask_all = false;
	u32 home;
	u64 id;
	int err;

	err = lite_cluster_ready(mem->cl);
	if (err)
		return err;
	if (q->target->lh) {
		err = lite_ask_handle(q, &home, &id) ?:
		      lite_ask_call(q, home);
		return err == -ENOENT ? -EIDRM : err;
	}
	/* The directory may be stale: then ask all homes. */
	do {
		err = lite_name_lookup(mem, q->target->name, ask_all, &home,
				       &id);
		if (err)
			return err;
		lite_ask_as(q, id, LITE_RIGHTS_ALL, q->target->cred);
		err = lite_ask_call(q, home);
		ask_all = !ask_all;
	} while (ask_all && (err == -ENOENT || err == -EHOSTUNREACH));
	return err == -EHOSTUNREACH ? -ENOENT : err;
}

/* Free an LMR; also closes the handle. */
int lite_ctx_free(struct lite_ctx *ctx, const struct lite_target *target)
{
	struct lite_wire_change req = {};
	struct lite_ask q;
	int err;

	lite_ask_init(&q, ctx, target, LITE_CALL_LMR_FREE, &req, sizeof(req));
	q.d.timeout = LITE_FREE_TIMEOUT;
	err = lite_ask(&q);
	if (!err && target->lh)
		lite_ctx_unmap(ctx, target->lh);
	return err;
}

/* Set the rights of a user; 0 ends the grant. The home checks what it takes. */
int lite_ctx_grant(struct lite_ctx *ctx, const struct lite_target *target,
		   const struct lite_grant *grant)
{
	struct lite_wire_set_grant req = {
		.grant = {
			.uid = cpu_to_le32(grant->uid),
			.node = cpu_to_le32(grant->node),
			.rights = cpu_to_le32(grant->rights),
		},
	};
	struct lite_ask q;

	if (grant->reserved || grant->rights & ~LITE_RIGHTS_ALL)
		return -EOPNOTSUPP;
	if (grant->node > LITE_NODE_ID_MAX || grant->uid == LITE_KEEP)
		return -EINVAL;
	lite_ask_init(&q, ctx, target, LITE_CALL_LMR_GRANT, &req, sizeof(req));
	q.right = 0; /* the home decides what is needed */
	return lite_ask(&q);
}

/* Change owner, group and mode; LITE_KEEP leaves one as it is. */
int lite_ctx_setattr(struct lite_ctx *ctx, const struct lite_target *target,
		     u32 uid, u32 gid, u32 mode)
{
	struct lite_wire_setattr req = {
		.uid = cpu_to_le32(uid),
		.gid = cpu_to_le32(gid),
		.mode = cpu_to_le32(mode),
	};
	struct lite_ask q;

	if (mode != LITE_KEEP && mode & ~LITE_MODE_MASK)
		return -EINVAL;
	lite_ask_init(&q, ctx, target, LITE_CALL_LMR_SETATTR, &req,
		      sizeof(req));
	return lite_ask(&q);
}

/* Rename an LMR; @to is checked. */
int lite_ctx_rename(struct lite_ctx *ctx, const struct lite_target *target,
		    const char *to)
{
	struct lite_wire_rename *req = kzalloc(sizeof(*req), GFP_KERNEL);
	struct lite_ask q;
	int err;

	if (!req)
		return -ENOMEM;
	strscpy(req->name, to, sizeof(req->name));
	lite_ask_init(&q, ctx, target, LITE_CALL_LMR_RENAME, req, sizeof(*req));
	err = lite_ask(&q);
	kfree(req);
	return err;
}

/* Change the length of an LMR, in bytes. */
int lite_ctx_resize(struct lite_ctx *ctx, const struct lite_target *target,
		    u64 length)
{
	struct lite_wire_resize req = { .length = cpu_to_le64(length) };
	struct lite_ask q;

	if (!length)
		return -EINVAL;
	if (length > LITE_LMR_SIZE_MAX)
		return -EFBIG;
	lite_ask_init(&q, ctx, target, LITE_CALL_LMR_RESIZE, &req, sizeof(req));
	return lite_ask(&q);
}

/*
 * A step of a move blocks all users of the LMR. Give them as much time as the
 * step took, up to LITE_MOVE_PAUSE_NS.
 */
static int lite_move_pause(ktime_t begun)
{
	ktime_t took = min(ktime_sub(ktime_get(), begun),
			   ns_to_ktime(LITE_MOVE_PAUSE_NS));

	__set_current_state(TASK_KILLABLE);
	schedule_hrtimeout(&took, HRTIMER_MODE_REL);
	return fatal_signal_pending(current) ? -EINTR : 0;
}

/**
 * lite_ctx_move - move a range of an LMR to another node
 * @ctx: context
 * @target: LMR
 * @node: id of the destination; 0: this node
 * @offset: bytes; rounded down to a page
 * @length: bytes, the end is rounded up to a page; 0: all from @offset on
 * @moved: set to the bytes from @offset on that have been moved, also on
 *	failure
 *
 * Context: may sleep; killable between its steps.
 * Return: 0 or a negative errno, see LITE_IOC_MOVE.
 */
int lite_ctx_move(struct lite_ctx *ctx, const struct lite_target *target,
		  u32 node, u64 offset, u64 length, u64 *moved)
{
	struct lite_memory *mem = ctx->mem;
	u64 end = length ? offset + length : LITE_LMR_SIZE_MAX;
	u64 at = offset;
	struct lite_wire_move_reply reply;
	struct lite_wire_move req = {};
	struct lite_ask q;
	struct lite_share to;
	u64 size;
	ktime_t begun;
	int tries = 0;
	int err;

	*moved = 0;
	if (node > LITE_NODE_ID_MAX)
		return -EINVAL;
	if (offset >= LITE_LMR_SIZE_MAX || end < offset ||
	    end > LITE_LMR_SIZE_MAX)
		return -ERANGE;
	err = lite_cluster_ready(mem->cl);
	if (err)
		return err;
	/* The home's -EHOSTUNREACH for it would read as the home's absence. */
	node = node ?: lite_cluster_id(mem->cl);
	err = lite_share_find(mem, node, &to);
	if (err == -EHOSTUNREACH)
		return err;
	lite_ask_init(&q, ctx, target, LITE_CALL_LMR_MOVE, &req, sizeof(req));
	q.d.reply = &reply;
	q.d.reply_max = sizeof(reply);
	req.node = cpu_to_le32(node);
	do {
		begun = ktime_get();
		req.offset = cpu_to_le64(at);
		req.length = cpu_to_le64(length ? end - at : 0);
		err = lite_ask(&q);
		if (err == -EHOSTDOWN && ++tries < LITE_MOVE_TRIES) {
			err = lite_move_pause(begun) ?:
			      lite_cluster_ready(mem->cl);
			continue;
		}
		if (err)
			return err;
		tries = 0;
		req.later = cpu_to_le32(1);
		/* The range may have been cut off since the first step. */
		size = le64_to_cpu(reply.length);
		if (size <= offset)
			return -ERANGE;
		end = min(end, size);
		/* Each step makes progress, or the home is broken. */
		if (at < end && le64_to_cpu(reply.next) <= at)
			return -EPROTO;
		at = max(at, le64_to_cpu(reply.next));
		*moved = min(at, end) - offset;
		if (at < end)
			err = lite_move_pause(begun);
	} while (at < end && !err);
	return err;
}

/* List the grants (up to LITE_GRANTS_MAX). A handle needs no right. */
int lite_ctx_grants(struct lite_ctx *ctx, u64 lh, const char *name,
		    struct lite_grant *grants, u32 *n)
{
	struct lite_lmr_info *info;
	struct lite_wire_grants_reply *r;
	struct lite_wire_id req;
	struct lite_call_desc d = {
		.call = LITE_CALL_LMR_GRANTS,
		.req = &req,
		.len = sizeof(req),
		.reply_max = LITE_PAYLOAD_MAX,
		.killable = true,
	};
	u32 nodes[LITE_SPREAD_MAX];
	int err;
	u32 i;

	r = kmalloc(LITE_PAYLOAD_MAX, GFP_KERNEL);
	info = kmalloc(sizeof(*info), GFP_KERNEL);
	err = r && info ? lite_ctx_stat(ctx, lh, name, info, nodes) : -ENOMEM;
	if (!err) {
		req.id = cpu_to_le64(info->id);
		d.reply = r;
		err = lite_cluster_call_patiently(ctx->mem->cl, info->home, &d);
		if (err == -ENOENT && lh)
			err = -EIDRM;
	}
	if (!err) {
		*n = le32_to_cpu(r->count);
		for (i = 0; i < *n; i++)
			grants[i] = (struct lite_grant){
				.uid = le32_to_cpu(r->grant[i].uid),
				.node = le32_to_cpu(r->grant[i].node),
				.rights = le32_to_cpu(r->grant[i].rights),
			};
	}
	kfree(info);
	kfree(r);
	return err;
}
