// SPDX-License-Identifier: GPL-2.0
/*
 * Asking homes to describe, change or free LMRs.
 *
 * A request by handle names the handle's user and rights, and the home permits what both allow. A
 * request by name is permitted by the user's rights alone. If it is for a change, it carries the
 * name, because the LMR may be renamed, and another LMR get its name, before the home serves the
 * request.
 *
 * Every lite_ctx_*() here may sleep, is killable and returns what its ioctl does (LITE_IOC_FREE,
 * ...). @arg is the structure of that ioctl; its flags, reserved members, handle and name are
 * checked and in @target. A change needs a handle with LITE_RIGHT_MASTER, unless stated otherwise.
 */
#include <linux/ktime.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>

#include "core/name.h"
#include "memory/home/home.h"
#include "memory/memory.h"
#include "memory/store/store.h"
#include "ctx.h"

/*
 * Time for the home to wait for all mappers, and to zero or copy memory. A change's is longer than
 * the home waits for earlier changes (home/change.c).
 */
#define LITE_FREE_TIMEOUT (60 * HZ)
#define LITE_ASK_TIMEOUT (180 * HZ)
/* The longest pause between two steps of a move. */
#define LITE_MOVE_PAUSE_NS (1 * (s64)NSEC_PER_SEC)
/* Attempts at a step of a move, which starts over if a session breaks. */
#define LITE_MOVE_TRIES 3
/* A list is ordered by home and id; the cursor holds both. */
#define LITE_CURSOR_SHIFT 48

struct lite_ask {
	struct lite_ctx *ctx;
	const struct lite_target *target;
	u32 home;             /* asked last */
	u64 id;               /* of the LMR found by name; 0: none yet */
	/*
	 * The request begins with struct lite_wire_change or, if it changes nothing and may be
	 * repeated, is a struct lite_wire_id.
	 */
	struct lite_call_desc d;
};

/* Does a request change nothing, and need no right? */
static bool lite_ask_looks(const struct lite_ask *q)
{
	return q->d.len == sizeof(struct lite_wire_id);
}

/* @name: the name that the LMR must have, or empty. */
static void lite_ask_as(struct lite_ask *q, u64 id, const char *name, u32 rights,
			const struct lite_cred *cred)
{
	struct lite_wire_change *c = (void *)q->d.req;

	c->id = cpu_to_le64(id);
	if (lite_ask_looks(q))
		return;
	c->rights = cpu_to_le32(rights);
	lite_wire_cred_put(&c->cred, cred);
	strscpy(c->name, name, sizeof(c->name));
}

static int lite_ask_handle(struct lite_ask *q)
{
	/* The home decides what a grant needs. */
	bool any = lite_ask_looks(q) || q->d.call == LITE_CALL_LMR_GRANT;
	const struct lite_access a = {
		.ctx = q->ctx,
		.lh = q->target->lh,
		.right = any ? 0 : LITE_RIGHT_MASTER,
	};
	struct lite_mapping *m;
	struct lite_handle *h;

	m = lite_access_enter(&a);
	if (IS_ERR(m))
		return PTR_ERR(m);
	/* Ids are never reused, so home and id stay valid after leaving. */
	q->home = m->home;
	/* A home that has restarted would say that the LMR was freed; with @life it is -ESTALE. */
	q->d.life = m->home_incarnation;
	rcu_read_lock();
	h = lite_handle_find(q->ctx, q->target->lh);
	if (h)
		lite_ask_as(q, m->id, "", READ_ONCE(h->rights), &h->user->cred);
	rcu_read_unlock();
	lite_access_exit(m);
	return h ? 0 : -EBADF;
}

static int lite_ask_call(struct lite_ask *q)
{
	const struct lite_wire_change *c = q->d.req;
	struct lite_memory *mem = q->ctx->mem;
	struct lite_payer *payer;
	int err;

	q->d.killable = true;
	if (lite_ask_looks(q)) {
		err = lite_cluster_call_patiently(mem->cl, q->home, &q->d);
	} else {
		q->d.timeout = q->d.call == LITE_CALL_LMR_FREE ? LITE_FREE_TIMEOUT :
								 LITE_ASK_TIMEOUT;
		payer = lite_payer_begin(mem, q->home, le64_to_cpu(c->id));
		q->d.held = &payer->ref;
		q->d.release = lite_payer_release;
		q->d.once = true;
		err = lite_cluster_call_patiently(mem->cl, q->home, &q->d);
		lite_payer_end(payer);
	}
	return lite_home_error(mem, q->home, err);
}

/*
 * Find the next home that may have a name. @at: zeroed at first but for @name, and @ask_all if the
 * directory was asked. The directory may be stale: if the home that it names does not have the LMR,
 * all homes are asked. May sleep; killable; makes leaf calls. Return: true: ask @at->home, set
 * @at->err, and call again; false: @at->err is the result.
 */
bool lite_name_search(struct lite_memory *mem, struct lite_name_search *at)
{
	if (at->tries == 2 || (at->tries && at->err != -ENOENT && at->err != -EHOSTUNREACH)) {
		if (at->err == -EHOSTUNREACH)
			at->err = -ENOENT;
		return false;
	}
	at->err = lite_name_lookup(mem, at->name, at->ask_all || at->tries, &at->home, &at->id);
	at->tries++;
	return !at->err;
}

static int lite_ask(struct lite_ask *q)
{
	struct lite_name_search at = { .name = q->target->name };
	struct lite_memory *mem = q->ctx->mem;
	int err = lite_cluster_ready(mem->cl);

	if (err)
		return err;
	if (q->target->lh) {
		err = lite_ask_handle(q) ?: lite_ask_call(q);
		return err == -ENOENT ? -EIDRM : err;
	}
	if (q->id) {
		/* A later step of a move is for the same LMR, even if that was renamed. */
		lite_ask_as(q, q->id, "", LITE_RIGHTS_ALL, q->target->cred);
		return lite_ask_call(q);
	}
	while (lite_name_search(mem, &at)) {
		lite_ask_as(q, at.id, at.name, LITE_RIGHTS_ALL, q->target->cred);
		q->home = at.home;
		at.err = lite_ask_call(q);
	}
	if (!at.err)
		q->id = at.id;
	return at.err;
}

/* Ask for a description; needs no right. @home: set, or NULL. Return: it, for kfree(); ERR_PTR. */
static void *lite_ask_about(struct lite_ctx *ctx, const struct lite_target *target, u16 call,
			    u32 *home)
{
	struct lite_wire_id req;
	struct lite_ask q = {
		.ctx = ctx,
		.target = target,
		.d = {
			LITE_REQUEST(call, req),
			.reply_max = LITE_PAYLOAD_MAX,
		},
	};
	int err;

	q.d.reply = kmalloc(LITE_PAYLOAD_MAX, GFP_KERNEL);
	if (!q.d.reply)
		return ERR_PTR(-ENOMEM);
	err = lite_ask(&q);
	if (err) {
		kfree(q.d.reply);
		return ERR_PTR(err);
	}
	if (home)
		*home = q.home;
	return q.d.reply;
}

static void lite_info_fill(struct lite_lmr_info *info, u32 home, const struct lite_wire_lmr *l)
{
	memset(info, 0, sizeof(*info));
	info->id = le64_to_cpu(l->id);
	info->length = le64_to_cpu(l->length);
	info->home = home;
	info->uid = le32_to_cpu(l->uid);
	info->gid = le32_to_cpu(l->gid);
	info->mode = le32_to_cpu(l->mode);
	info->n_extents = le32_to_cpu(l->n_extents);
	info->n_nodes = le32_to_cpu(l->n_shares);
	info->n_mappers = le32_to_cpu(l->n_mappers);
	strscpy(info->name, l->name, sizeof(info->name));
}

/* Describe an LMR. @nodes: set; LITE_SPREAD_MAX entries. */
int lite_ctx_stat(struct lite_ctx *ctx, const struct lite_target *target,
		  struct lite_lmr_info *info, u32 *nodes)
{
	struct lite_wire_stat_reply *r;
	u32 home, i;

	r = lite_ask_about(ctx, target, LITE_CALL_LMR_STAT, &home);
	if (IS_ERR(r))
		return PTR_ERR(r);
	lite_info_fill(info, home, &r->lmr);
	for (i = 0; i < LITE_SPREAD_MAX; i++)
		nodes[i] = le32_to_cpu(r->nodes[i]);
	kfree(r);
	return 0;
}

/* List the grants of an LMR. @grants: set; LITE_GRANTS_MAX entries. */
int lite_ctx_grants(struct lite_ctx *ctx, const struct lite_target *target,
		    struct lite_grant *grants, u32 *n)
{
	struct lite_wire_grants_reply *r;
	u32 i;

	r = lite_ask_about(ctx, target, LITE_CALL_LMR_GRANTS, NULL);
	if (IS_ERR(r))
		return PTR_ERR(r);
	*n = le32_to_cpu(r->count);
	for (i = 0; i < *n; i++)
		grants[i] = (struct lite_grant){
			.uid = le32_to_cpu(r->grant[i].uid),
			.node = le32_to_cpu(r->grant[i].node),
			.rights = le32_to_cpu(r->grant[i].rights),
		};
	kfree(r);
	return 0;
}

struct lite_lister {
	struct lite_memory *mem;
	struct lite_call_desc d;
	u32 home; /* of the last entry */
	struct lite_lmr_info *info;
	u32 max;  /* room in @info */
	u32 n;    /* entries that are set */
};

/* Take a home's reply. Return: 0; 1: the home has more, or the list is full. */
static int lite_list_take(struct lite_lister *l, u32 home, const struct lite_wire_list_reply *r)
{
	u32 count = le32_to_cpu(r->count), i;

	for (i = 0; i < count && l->n < l->max; i++)
		lite_info_fill(&l->info[l->n++], home, &r->lmr[i]);
	if (i)
		l->home = home;
	/* A home that sends none has no more. */
	return count && (i < count || r->more || l->n == l->max);
}

/* Ask one home. Return: as lite_list_take(), but 0 if it cannot be reached; -EINTR, -ENOMEM. */
static int lite_list_one(struct lite_lister *l, u32 home, u64 after)
{
	struct lite_wire_list req = { .after = cpu_to_le64(after),
				      .max = cpu_to_le32(l->max - l->n) };
	struct lite_call_desc d = l->d;
	int err;

	d.req = &req;
	d.reply = kmalloc(LITE_PAYLOAD_MAX, GFP_KERNEL);
	if (!d.reply)
		return -ENOMEM;
	err = lite_cluster_call_patiently(l->mem->cl, home, &d);
	if (!err)
		err = lite_list_take(l, home, d.reply);
	else if (err != -EINTR && err != -ENOMEM)
		err = 0;
	kfree(d.reply);
	return err;
}

/* Ask a home for what follows its first reply, of which @err is the result. */
static int lite_list_rest(struct lite_lister *l, u32 home, int err)
{
	while (err == 1 && l->n < l->max)
		err = lite_list_one(l, home, l->info[l->n - 1].id);
	return err;
}

/* A home with more LMRs is asked for them at once, so that the other answers are not wasted. */
static int lite_list_answer(void *ctx, u32 node, int err, const void *reply)
{
	struct lite_lister *l = ctx;

	if (err == -EINTR)
		return err;
	/* If the node is suspect, asking it again waits for it. */
	err = err ? lite_list_one(l, node, 0) : lite_list_take(l, node, reply);
	return lite_list_rest(l, node, err);
}

/*
 * List the next LMRs of the cluster, @max at most. @cursor: position, 0 at first; updated; 0 at the
 * end. Asks the home of the last entry for its other LMRs, then all other homes at the same time,
 * and skips homes that cannot be reached. May sleep; killable. Return: how many of @info were set;
 * a negative errno.
 */
int lite_memory_list(struct lite_memory *mem, u64 *cursor, struct lite_lmr_info *info, u32 max)
{
	u32 home = *cursor >> LITE_CURSOR_SHIFT;
	u64 after = *cursor & GENMASK_ULL(LITE_CURSOR_SHIFT - 1, 0);
	struct lite_wire_list req = { .max = cpu_to_le32(max) };
	struct lite_lister l = {
		.mem = mem,
		.d = {
			LITE_REQUEST(LITE_CALL_LMR_LIST, req),
			.reply_max = LITE_PAYLOAD_MAX,
			.killable = true,
		},
		.info = info,
		.max = max,
	};
	int err = lite_cluster_ready(mem->cl);

	if (err)
		return err;
	if (home)
		err = lite_list_rest(&l, home, lite_list_one(&l, home, after));
	if (!err)
		err = lite_cluster_call_all(mem->cl, home, true, &l.d, lite_list_answer, &l);
	if (err < 0)
		return err;
	/* If err is 1, there is more to list, and there are entries. */
	*cursor = err ? (u64)l.home << LITE_CURSOR_SHIFT | info[l.n - 1].id : 0;
	return l.n;
}

static int lite_ask_change(struct lite_ctx *ctx, const struct lite_target *target, u16 call,
			   void *req, u32 len)
{
	struct lite_ask q = {
		.ctx = ctx,
		.target = target,
		.d = { .call = call, .req = req, .len = len },
	};

	return lite_ask(&q);
}

/* Free an LMR; also closes the handle. */
int lite_ctx_free(struct lite_ctx *ctx, const struct lite_target *target, void *arg)
{
	struct lite_wire_change req = {};
	int err = lite_ask_change(ctx, target, LITE_CALL_LMR_FREE, &req, sizeof(req));

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
	return lite_ask_change(ctx, target, LITE_CALL_LMR_GRANT, &req, sizeof(req));
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
	return lite_ask_change(ctx, target, LITE_CALL_LMR_SETATTR, &req, sizeof(req));
}

int lite_ctx_rename(struct lite_ctx *ctx, const struct lite_target *target, void *arg)
{
	const struct lite_ioc_rename *r = arg;
	struct lite_wire_rename req = {};
	int len = lite_name_check(r->to, sizeof(r->to));

	if (len < 0)
		return len;
	strscpy(req.name, r->to, sizeof(req.name));
	return lite_ask_change(ctx, target, LITE_CALL_LMR_RENAME, &req, sizeof(req));
}

int lite_ctx_resize(struct lite_ctx *ctx, const struct lite_target *target, void *arg)
{
	const struct lite_ioc_resize *r = arg;
	struct lite_wire_resize req = { .length = cpu_to_le64(r->length) };

	if (!r->length)
		return -EINVAL;
	if (r->length > LITE_LMR_SIZE_MAX)
		return -EFBIG;
	return lite_ask_change(ctx, target, LITE_CALL_LMR_RESIZE, &req, sizeof(req));
}

/* A step of a move blocks the LMR's users: give them as long as it took, or the longest pause. */
static int lite_move_pause(ktime_t begun)
{
	ktime_t took = min(ktime_sub(ktime_get(), begun), ns_to_ktime(LITE_MOVE_PAUSE_NS));

	__set_current_state(lite_wait_state());
	schedule_hrtimeout(&took, HRTIMER_MODE_REL);
	return lite_given_up() ? -EINTR : 0;
}

/* Move a range of an LMR to another node; killable between its steps. */
int lite_ctx_move(struct lite_ctx *ctx, const struct lite_target *target, void *arg)
{
	struct lite_ioc_move *move = arg;
	u64 offset = move->offset, length = move->length;
	struct lite_memory *mem = ctx->mem;
	u64 end = length ? offset + length : LITE_LMR_SIZE_MAX;
	u64 at = offset;
	struct lite_wire_move_reply reply;
	struct lite_wire_move req = {};
	u32 node = move->node;
	struct lite_share to;
	struct lite_ask q = {
		.ctx = ctx,
		.target = target,
		.d = {
			LITE_REQUEST(LITE_CALL_LMR_MOVE, req),
			LITE_REPLY(reply),
		},
	};
	u64 size;
	ktime_t begun;
	int tries = 0;
	int err;

	move->moved = 0;
	if (node > LITE_NODE_ID_MAX)
		return -EINVAL;
	if (offset >= LITE_LMR_SIZE_MAX || end < offset || end > LITE_LMR_SIZE_MAX)
		return -ERANGE;
	err = lite_cluster_ready(mem->cl);
	if (err)
		return err;
	/* Look for the node here: the home's -EHOSTUNREACH would seem to be about the home. */
	node = node ?: lite_cluster_id(mem->cl);
	err = lite_share_find(mem, node, &to);
	if (err == -EHOSTUNREACH)
		return err;
	req.node = cpu_to_le32(node);
	do {
		begun = ktime_get();
		req.offset = cpu_to_le64(at);
		req.length = cpu_to_le64(length ? end - at : 0);
		err = lite_ask(&q);
		if (err == -EHOSTDOWN && ++tries < LITE_MOVE_TRIES) {
			err = lite_move_pause(begun) ?: lite_cluster_ready(mem->cl);
			continue;
		}
		if (err)
			return err;
		tries = 0;
		req.later = cpu_to_le32(1);
		/* The LMR may have been cut since the first step. */
		size = le64_to_cpu(reply.length);
		if (size <= offset)
			return -ERANGE;
		end = min(end, size);
		/* Each step makes progress, or the home is broken. */
		if (at < end && le64_to_cpu(reply.next) <= at)
			return -EPROTO;
		at = max(at, le64_to_cpu(reply.next));
		move->moved = min(at, end) - offset;
		if (at < end)
			err = lite_move_pause(begun);
	} while (at < end && !err);
	return err;
}
