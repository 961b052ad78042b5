// SPDX-License-Identifier: GPL-2.0
/* Commands about LMRs (include/uapi/lite.h), except operations on them. */
#include <linux/mm.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

#include "core/name.h"
#include "command.h"

/* Copy @k to or from the caller's memory. A copy from or to a process may block: leave the node. */
static int lite_cmd_copy(struct lite_command *cmd, u64 caller, void *k, size_t n, bool out)
{
	void __user *user = u64_to_user_ptr(caller);
	void *kernel = (void *)(uintptr_t)caller;
	unsigned long left;

	if (!cmd->lf) {
		memcpy(out ? kernel : k, out ? k : kernel, n);
		return 0;
	}
	lite_gate_leave(&cmd->gate);
	left = out ? copy_to_user(user, k, n) : copy_from_user(k, user, n);
	if (!lite_gate_enter(&cmd->gate))
		return -ENODEV;
	return left ? -EFAULT : 0;
}

/* Elements of arrays may grow, so programs pass their size: at least that of the first version. */
#define LITE_LMR_INFO_FIRST sizeof(struct lite_lmr_info)
#define LITE_GRANT_FIRST sizeof(struct lite_grant)

static bool lite_ioc_element(u32 size, u32 first)
{
	return size >= first && size <= PAGE_SIZE;
}

/* Copy out as much of an element as the program knows; fields unknown to this kernel are 0. */
static int lite_cmd_copy_element(struct lite_command *cmd, u64 array, u32 i, u32 size, void *from,
				 u32 known)
{
	u64 to = array + (u64)i * size;
	int err = lite_cmd_copy(cmd, to, from, min(size, known), true);

	if (err || size <= known)
		return err;
	return lite_cmd_copy(cmd, to + known, page_address(ZERO_PAGE(0)), size - known, true);
}

static int lite_ioc_query(struct lite_command *cmd, void *arg)
{
	struct lite_node *node = cmd->node;
	struct lite_ioc_query *q = arg;

	*q = (struct lite_ioc_query){
		.size = q->size,
		.uapi_version = LITE_UAPI_VERSION,
		.features = node->fabric.atomics ? LITE_FEATURE_ATOMICS : 0,
		.index = node->index,
		.node_id = lite_cluster_id(&node->cluster),
		.state = READ_ONCE(node->cluster.state),
		.nodes_up = lite_cluster_up(&node->cluster),
		.incarnation = node->fabric.self.incarnation,
		.lmr_size_max = LITE_LMR_SIZE_MAX,
		.mem_limit = node->memory.limit.all,
		.mem_used = lite_memory_used(&node->memory),
		.handles_max = node->memory.handle_limit,
	};
	return 0;
}

static int lite_ioc_alloc(struct lite_command *cmd, void *arg)
{
	struct lite_ioc_alloc *a = arg;
	u32 nodes[LITE_SPREAD_MAX];

	if (a->n_nodes > LITE_SPREAD_MAX)
		return -EINVAL;
	return lite_cmd_copy(cmd, a->nodes, nodes, a->n_nodes * sizeof(nodes[0]), false) ?:
	       lite_ctx_create(cmd->ctx, lite_cmd_user(cmd), a, nodes);
}

static void lite_ioc_undo_alloc(struct lite_command *cmd, void *arg)
{
	struct lite_ioc_alloc *a = arg;
	const struct lite_target target = {
		.cred = lite_cmd_user(cmd),
		.lh = a->flags & LITE_ALLOC_NO_HANDLE ? 0 : a->lh,
		.name = a->name,
	};

	lite_ctx_free(cmd->ctx, &target, NULL);
}

static int lite_ioc_register(struct lite_command *cmd, void *arg)
{
	return lite_ctx_register(cmd->ctx, lite_cmd_user(cmd), arg, &cmd->gate);
}

static void lite_ioc_undo_register(struct lite_command *cmd, void *arg)
{
	const struct lite_target target = { .lh = ((struct lite_ioc_register *)arg)->lh };

	lite_ctx_free(cmd->ctx, &target, NULL);
}

static int lite_ioc_map(struct lite_command *cmd, void *arg)
{
	struct lite_ioc_map *m = arg;
	int len = lite_name_check(m->name, LITE_NAME_SIZE);

	if (len < 0)
		return len;
	if (cmd->lf && cmd->lf->read_only && m->rights & ~LITE_RIGHT_READ)
		return -EACCES;
	return lite_ctx_map(cmd->ctx, lite_cmd_user(cmd), m->name, m->rights, &m->lh, &m->length);
}

static void lite_ioc_undo_map(struct lite_command *cmd, void *arg)
{
	lite_ctx_unmap(cmd->ctx, ((struct lite_ioc_map *)arg)->lh);
}

static int lite_ioc_unmap(struct lite_command *cmd, void *arg)
{
	return lite_ctx_unmap(cmd->ctx, ((struct lite_ioc_unmap *)arg)->lh);
}

static int lite_ioc_stat(struct lite_command *cmd, void *arg)
{
	struct lite_ioc_stat *s = arg;
	u32 nodes[LITE_SPREAD_MAX];
	u32 n;
	int err = lite_ctx_stat(cmd->ctx, &cmd->target, &s->info, nodes);

	if (err)
		return err;
	n = min(s->n_nodes, s->info.n_nodes);
	s->n_nodes = s->info.n_nodes;
	return lite_cmd_copy(cmd, s->nodes, nodes, n * sizeof(nodes[0]), true);
}

/* Entries of a list that are taken from the homes at a time. */
#define LITE_LIST_MAX 32U

static int lite_ioc_list(struct lite_command *cmd, void *arg)
{
	struct lite_ioc_list *l = arg;
	const u32 max = min_t(u32, l->n_infos, LITE_LIST_MAX);
	struct lite_lmr_info *info;
	int i, ret, err = 0;
	u32 n = 0;

	if (!l->n_infos || !lite_ioc_element(l->info_size, LITE_LMR_INFO_FIRST))
		return -EINVAL;
	info = kcalloc(max, sizeof(*info), GFP_KERNEL);
	if (!info)
		return -ENOMEM;
	do {
		ret = lite_memory_list(&cmd->node->memory, &l->cursor, info,
				       min(max, l->n_infos - n));
		if (ret <= 0)
			break;
		for (i = 0; i < ret && !err; i++)
			err = lite_cmd_copy_element(cmd, l->infos, n++, l->info_size, &info[i],
						    sizeof(*info));
	} while (n < l->n_infos && !err && l->cursor);
	kfree(info);
	/* A partial list is a success. */
	if (!err && !n)
		err = ret;
	if (!err)
		l->n_infos = n;
	return err;
}

static int lite_ioc_grants(struct lite_command *cmd, void *arg)
{
	struct lite_ioc_grants *g = arg;
	struct lite_grant *grants;
	u32 room = g->n_grants;
	int err;
	u32 i;

	if (!lite_ioc_element(g->grant_size, LITE_GRANT_FIRST))
		return -EINVAL;
	grants = kcalloc(LITE_GRANTS_MAX, sizeof(*grants), GFP_KERNEL);
	if (!grants)
		return -ENOMEM;
	err = lite_ctx_grants(cmd->ctx, &cmd->target, grants, &g->n_grants);
	for (i = 0; !err && i < min(room, g->n_grants); i++)
		err = lite_cmd_copy_element(cmd, g->grants, i, g->grant_size, &grants[i],
					    sizeof(*grants));
	kfree(grants);
	return err;
}

/* Reports how much was moved, even if it fails. */
static int lite_ioc_move(struct lite_command *cmd, void *arg)
{
	struct lite_ioc_move *m = arg;

	m->moved = 0;
	return lite_cmd_target(cmd, m->lh, m->name) ?: lite_ctx_move(cmd->ctx, &cmd->target, m);
}

#define LITE_IOC_NAME(type, member) .name = offsetof(struct type, member)

const struct lite_ioc lite_iocs_lmr[LITE_IOC_GROUP] = {
	LITE_IOC_ENTRY(LITE_IOC_QUERY, lite_ioc_query, reserved, LITE_IOC_ZERO(lite_ioc_query),
		       .fn = lite_ioc_query, .out = true, .looks = true),
	LITE_IOC_ENTRY(LITE_IOC_ALLOC, lite_ioc_alloc, name, .flags = LITE_ALLOC_NO_HANDLE,
		       .fn = lite_ioc_alloc, .out = true, .undo = lite_ioc_undo_alloc),
	LITE_IOC_ENTRY(LITE_IOC_MAP, lite_ioc_map, name, LITE_IOC_ZERO(lite_ioc_map),
		       .fn = lite_ioc_map, .out = true, .looks = true, .undo = lite_ioc_undo_map),
	LITE_IOC_ENTRY(LITE_IOC_UNMAP, lite_ioc_unmap, lh, .fn = lite_ioc_unmap, .looks = true),
	LITE_IOC_ENTRY(LITE_IOC_FREE, lite_ioc_free, name, LITE_IOC_NAME(lite_ioc_free, name),
		       .change = lite_ctx_free),
	LITE_IOC_ENTRY(LITE_IOC_STAT, lite_ioc_stat, info, LITE_IOC_ZERO(lite_ioc_stat),
		       LITE_IOC_NAME(lite_ioc_stat, info.name), .fn = lite_ioc_stat, .out = true,
		       .looks = true),
	LITE_IOC_ENTRY(LITE_IOC_LIST, lite_ioc_list, info_size, .fn = lite_ioc_list, .out = true,
		       .looks = true),
	LITE_IOC_ENTRY(LITE_IOC_GRANT, lite_ioc_grant, name, LITE_IOC_NAME(lite_ioc_grant, name),
		       .change = lite_ctx_grant),
	LITE_IOC_ENTRY(LITE_IOC_GRANTS, lite_ioc_grants, name, LITE_IOC_NAME(lite_ioc_grants, name),
		       .fn = lite_ioc_grants, .out = true, .looks = true),
	LITE_IOC_ENTRY(LITE_IOC_SETATTR, lite_ioc_setattr, name, LITE_IOC_ZERO(lite_ioc_setattr),
		       LITE_IOC_NAME(lite_ioc_setattr, name), .change = lite_ctx_setattr),
	LITE_IOC_ENTRY(LITE_IOC_RENAME, lite_ioc_rename, to, LITE_IOC_NAME(lite_ioc_rename, name),
		       .change = lite_ctx_rename),
	LITE_IOC_ENTRY(LITE_IOC_RESIZE, lite_ioc_resize, name, LITE_IOC_NAME(lite_ioc_resize, name),
		       .change = lite_ctx_resize),
	LITE_IOC_ENTRY(LITE_IOC_MOVE, lite_ioc_move, name, LITE_IOC_ZERO(lite_ioc_move),
		       .fn = lite_ioc_move, .out = true, .always = true),
	LITE_IOC_ENTRY(LITE_IOC_MMAP, lite_ioc_mmap, addr, LITE_IOC_ZERO(lite_ioc_mmap),
		       .flags = LITE_MMAP_POPULATE, .fn = lite_ioc_mmap, .out = true, .looks = true,
		       .unwind = lite_ioc_unwind_mmap),
	LITE_IOC_ENTRY(LITE_IOC_REGISTER, lite_ioc_register, name, LITE_IOC_ZERO(lite_ioc_register),
		       .flags = LITE_REGISTER_UNPINNED | LITE_REGISTER_LEASED,
		       .fn = lite_ioc_register, .out = true,
		       .undo = lite_ioc_undo_register),
};
