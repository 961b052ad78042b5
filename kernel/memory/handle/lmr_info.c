// SPDX-License-Identifier: GPL-2.0
/*
 * Asking homes what LMRs they have, and about one: LITE_IOC_STAT, LITE_IOC_GRANTS, LITE_IOC_LIST.
 * Each function may sleep, is killable and returns what its ioctl does.
 */
#include <linux/slab.h>

#include "memory/memory.h"
#include "home_request.h"

/* A list is ordered by home and id; the cursor holds both. */
#define LITE_CURSOR_SHIFT 48

/* Ask for a description; needs no right. @home: set, or NULL. Return: it, for kfree(); ERR_PTR. */
static void *lite_home_describe(struct lite_ctx *ctx, const struct lite_target *target, u16 call,
				u32 *home)
{
	struct lite_wire_id req;
	struct lite_home_request q = {
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
	err = lite_home_ask(&q);
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

	r = lite_home_describe(ctx, target, LITE_CALL_LMR_STAT, &home);
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

	r = lite_home_describe(ctx, target, LITE_CALL_LMR_GRANTS, NULL);
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
