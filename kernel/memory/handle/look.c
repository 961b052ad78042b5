// SPDX-License-Identifier: GPL-2.0
/* Describing LMRs to users: stat and list. */
#include <linux/slab.h>

#include "core/name.h"
#include "memory/memory.h"
#include "ctx.h"

/* A list is ordered by home and id; the cursor holds both. */
#define LITE_CURSOR_SHIFT 48

static void lite_info_fill(struct lite_lmr_info *info, u32 home,
			   const struct lite_wire_lmr *l)
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

static int lite_stat_by_id(struct lite_memory *mem, u32 home, u64 id,
			   struct lite_lmr_info *info, u32 *nodes)
{
	struct lite_wire_id req = { .id = cpu_to_le64(id) };
	struct lite_wire_stat_reply *r;
	struct lite_call_desc d = {
		.call = LITE_CALL_LMR_STAT,
		.req = &req,
		.len = sizeof(req),
		.reply_max = sizeof(*r),
		.killable = true,
	};
	int err;
	u32 i;

	r = kmalloc(sizeof(*r), GFP_KERNEL);
	if (!r)
		return -ENOMEM;
	d.reply = r;
	err = lite_cluster_call_patiently(mem->cl, home, &d);
	if (!err) {
		lite_info_fill(info, home, &r->lmr);
		for (i = 0; i < LITE_SPREAD_MAX; i++)
			nodes[i] = le32_to_cpu(r->nodes[i]);
	}
	kfree(r);
	return err;
}

static int lite_stat_name(struct lite_memory *mem, const char *name,
			  struct lite_lmr_info *info, u32 *nodes)
{
	bool ask_all = false;
	u32 home;
	u64 id;
	int err;

	do {
		err = lite_name_lookup(mem, name, ask_all, &home, &id);
		if (err)
			return err;
		err = lite_stat_by_id(mem, home, id, info, nodes);
		ask_all = !ask_all;
	} while (ask_all && (err == -ENOENT || err == -EHOSTUNREACH));
	return err == -EHOSTUNREACH ? -ENOENT : err;
}

/**
 * lite_ctx_stat - describe an LMR
 * @ctx: context
 * @lh: handle, or 0
 * @name: checked, used if @lh is 0
 * @info: set
 * @nodes: set to the nodes it is spread over; LITE_SPREAD_MAX entries
 *
 * Context: may sleep; killable.
 * Return: 0 or a negative errno, see LITE_IOC_STAT.
 */
int lite_ctx_stat(struct lite_ctx *ctx, u64 lh, const char *name,
		  struct lite_lmr_info *info, u32 *nodes)
{
	const struct lite_access a = { .ctx = ctx, .lh = lh };
	struct lite_memory *mem = ctx->mem;
	struct lite_mapping *m;
	u32 home;
	u64 id;
	int err;

	err = lite_cluster_ready(mem->cl);
	if (err)
		return err;
	if (!lh)
		return lite_stat_name(mem, name, info, nodes);
	m = lite_access_enter(&a);
	if (IS_ERR(m))
		return PTR_ERR(m);
	home = m->home;
	id = m->id;
	lite_access_exit(m);
	err = lite_stat_by_id(mem, home, id, info, nodes);
	return err == -ENOENT ? -EIDRM : err;
}

/**
 * lite_memory_list - list the next LMRs of the cluster
 * @mem: node's
 * @cursor: position, 0 at first; updated; 0 at the end
 * @info: set
 * @max: entries in @info; the home returns no more than a message holds
 *
 * Homes that cannot be reached are skipped.
 *
 * Context: may sleep; killable.
 * Return: how many were set, all of one home; 0: the end; a negative errno.
 */
int lite_memory_list(struct lite_memory *mem, u64 *cursor,
		     struct lite_lmr_info *info, u32 max)
{
	u32 home = *cursor >> LITE_CURSOR_SHIFT;
	u64 after = *cursor & GENMASK_ULL(LITE_CURSOR_SHIFT - 1, 0);
	struct lite_wire_list_reply *r;
	struct lite_wire_list req = { .max = cpu_to_le32(max) };
	struct lite_call_desc d = {
		.call = LITE_CALL_LMR_LIST,
		.req = &req,
		.len = sizeof(req),
		.reply_max = LITE_PAYLOAD_MAX,
		.killable = true,
	};
	u32 i, n = 0;
	int err = lite_cluster_ready(mem->cl);

	if (err)
		return err;
	r = kmalloc(LITE_PAYLOAD_MAX, GFP_KERNEL);
	if (!r)
		return -ENOMEM;
	d.reply = r;
	if (!home)
		home = lite_cluster_next(mem->cl, 0);
	while (home && !n) {
		req.after = cpu_to_le64(after);
		err = lite_cluster_call_patiently(mem->cl, home, &d);
		if (err == -EINTR || err == -ENOMEM)
			goto out;
		n = err ? 0 : min(le32_to_cpu(r->count), max);
		for (i = 0; i < n; i++)
			lite_info_fill(&info[i], home, &r->lmr[i]);
		if (n)
			break;
		/* The end of this home's list, or it cannot be asked. */
		home = lite_cluster_next(mem->cl, home);
		after = 0;
	}
	*cursor = n ? (u64)home << LITE_CURSOR_SHIFT | info[n - 1].id : 0;
	err = n;
out:
	kfree(r);
	return err;
}
