// SPDX-License-Identifier: GPL-2.0
/*
 * The ioctls about LMRs: the handlers, and how their results are written back or
 * undone, for the table in ioctl.c.
 */
#include <linux/mm.h>
#include <linux/uaccess.h>

#include "core/name.h"
#include "memory/handle/ctx.h"
#include "node.h"

/* Copy to or from user memory without holding the node. */
static int lite_gate_copy_out(struct lite_gate *gate, void __user *to,
			      const void *from, size_t n)
{
	unsigned long left;

	lite_gate_leave(gate);
	left = copy_to_user(to, from, n);
	if (!lite_gate_enter(gate))
		return -ENODEV;
	return left ? -EFAULT : 0;
}

static int lite_gate_copy_in(struct lite_gate *gate, void *to,
			     const void __user *from, size_t n)
{
	unsigned long left;

	lite_gate_leave(gate);
	left = copy_from_user(to, from, n);
	if (!lite_gate_enter(gate))
		return -ENODEV;
	return left ? -EFAULT : 0;
}

/*
 * Elements of arrays may grow, as structures of ioctls do: a program passes
 * the size of its own. These are the sizes in the first published version.
 */
#define LITE_LMR_INFO_FIRST sizeof(struct lite_lmr_info)
#define LITE_GRANT_FIRST sizeof(struct lite_grant)

static bool lite_ioc_element(u32 size, u32 first)
{
	return size >= first && size <= PAGE_SIZE;
}

/* Copy out what the program knows of an element; what we do not know is 0. */
static int lite_gate_copy_element(struct lite_gate *gate, void __user *array,
				  u32 i, u32 size, const void *from, u32 known)
{
	void __user *to = array + (size_t)i * size;
	unsigned long left;
	int err;

	err = lite_gate_copy_out(gate, to, from, min(size, known));
	if (err || size <= known)
		return err;
	lite_gate_leave(gate);
	left = clear_user(to + known, size - known);
	if (!lite_gate_enter(gate))
		return -ENODEV;
	return left ? -EFAULT : 0;
}

/* Check a name, which must not be empty. */
static int lite_ioc_name(const char *name)
{
	int len = lite_name_check(name, LITE_NAME_SIZE);

	return len < 0 ? len : 0;
}

/* Name an LMR by handle or, with the caller's credentials, by name. */
static int lite_ioc_target(struct lite_target *target, struct lite_cred *cred,
			   u64 lh, const char *name)
{
	*target = (struct lite_target){ .cred = cred, .lh = lh, .name = name };
	lite_cred_current(cred);
	return lh ? 0 : lite_ioc_name(name);
}

int lite_ioc_query(struct lite_file *lf, void *arg, struct lite_gate *gate)
{
	struct lite_node *node = lf->node;
	struct lite_cluster *cl = &node->cluster;
	struct lite_ioc_query *q = arg;
	u32 size = q->size;

	if (q->flags || q->reserved)
		return -EOPNOTSUPP;
	*q = (struct lite_ioc_query){
		.size = size,
		.uapi_version = LITE_UAPI_VERSION,
		.features = node->fabric.atomics ? LITE_FEATURE_ATOMICS : 0,
		.index = node->index,
		.node_id = lite_cluster_id(cl),
		.state = READ_ONCE(cl->state),
		.nodes_up = lite_cluster_up(cl),
		.incarnation = node->fabric.self.incarnation,
		.lmr_size_max = LITE_LMR_SIZE_MAX,
		.mem_limit = node->memory.limit.all,
		.mem_used = lite_memory_used(&node->memory),
		.handles_max = node->memory.handle_limit,
	};
	return 0;
}

int lite_ioc_alloc(struct lite_file *lf, void *arg, struct lite_gate *gate)
{
	struct lite_ioc_alloc *a = arg;
	u32 nodes[LITE_SPREAD_MAX];
	struct lite_lmr_params p = {
		.length = a->length,
		.nodes = nodes,
		.n_nodes = a->n_nodes,
		.mode = a->mode,
		.flags = a->flags,
	};
	struct lite_handle *h = NULL;
	struct lite_cred cred;
	int err;

	if (a->flags & ~LITE_ALLOC_NO_HANDLE)
		return -EOPNOTSUPP;
	if (a->n_nodes > LITE_SPREAD_MAX)
		return -EINVAL;
	err = lite_gate_copy_in(gate, nodes, u64_to_user_ptr(a->nodes),
				a->n_nodes * sizeof(nodes[0]));
	if (err)
		return err;
	if (a->name[0])
		p.name = a->name;
	lite_cred_current(&cred);
	if (a->flags & LITE_ALLOC_NO_HANDLE)
		return lite_ctx_create(lf->ctx, &cred, &p, NULL);

	h = lite_handle_reserve(lf->ctx);
	if (IS_ERR(h))
		return PTR_ERR(h);
	a->lh = h->lh;
	err = lite_ctx_create(lf->ctx, &cred, &p, h);
	if (err)
		lite_handle_cancel(lf->ctx, h);
	return err;
}

int lite_ioc_map(struct lite_file *lf, void *arg, struct lite_gate *gate)
{
	struct lite_ioc_map *m = arg;
	struct lite_handle *h;
	struct lite_cred cred;
	int err;

	if (m->flags || m->reserved)
		return -EOPNOTSUPP;
	err = lite_ioc_name(m->name);
	if (err)
		return err;
	if (lf->read_only && m->rights & ~LITE_RIGHT_READ)
		return -EACCES;
	lite_cred_current(&cred);
	h = lite_handle_reserve(lf->ctx);
	if (IS_ERR(h))
		return PTR_ERR(h);
	m->lh = h->lh;
	err = lite_ctx_map(lf->ctx, &cred, m->name, m->rights, h, &m->length);
	if (err)
		lite_handle_cancel(lf->ctx, h);
	return err;
}

int lite_ioc_unmap(struct lite_file *lf, void *arg, struct lite_gate *gate)
{
	struct lite_ioc_unmap *m = arg;

	if (m->flags)
		return -EOPNOTSUPP;
	return lite_ctx_unmap(lf->ctx, m->lh);
}

int lite_ioc_free(struct lite_file *lf, void *arg, struct lite_gate *gate)
{
	struct lite_ioc_free *f = arg;
	struct lite_target target;
	struct lite_cred cred;

	if (f->flags)
		return -EOPNOTSUPP;
	return lite_ioc_target(&target, &cred, f->lh, f->name) ?:
	       lite_ctx_free(lf->ctx, &target);
}

int lite_ioc_stat(struct lite_file *lf, void *arg, struct lite_gate *gate)
{
	struct lite_ioc_stat *s = arg;
	u32 nodes[LITE_SPREAD_MAX];
	u32 n;
	int err;

	if (s->flags || s->reserved)
		return -EOPNOTSUPP;
	if (!s->lh) {
		err = lite_ioc_name(s->info.name);
		if (err)
			return err;
	}
	err = lite_ctx_stat(lf->ctx, s->lh, s->info.name, &s->info, nodes);
	if (err)
		return err;
	n = min(s->n_nodes, s->info.n_nodes);
	s->n_nodes = s->info.n_nodes;
	return lite_gate_copy_out(gate, u64_to_user_ptr(s->nodes), nodes,
				  n * sizeof(nodes[0]));
}

/* Copy out a home's list; returns 0 or a negative errno. */
static int lite_ioc_list_put(struct lite_gate *gate,
			     const struct lite_ioc_list *l, u32 n,
			     const struct lite_lmr_info *info, u32 count)
{
	void __user *to = u64_to_user_ptr(l->infos);
	int err = 0;
	u32 i;

	for (i = 0; i < count && !err; i++)
		err = lite_gate_copy_element(gate, to, n + i, l->info_size,
					     &info[i], sizeof(*info));
	return err;
}

int lite_ioc_list(struct lite_file *lf, void *arg, struct lite_gate *gate)
{
	struct lite_ioc_list *l = arg;
	const u32 max = min_t(u32, l->n_infos, LITE_LMRS_PER_REPLY);
	struct lite_lmr_info *info;
	int ret = 0;
	u32 n = 0;

	if (l->flags)
		return -EOPNOTSUPP;
	if (!l->n_infos || !lite_ioc_element(l->info_size, LITE_LMR_INFO_FIRST))
		return -EINVAL;
	info = kcalloc(max, sizeof(*info), GFP_KERNEL);
	if (!info)
		return -ENOMEM;
	while (n < l->n_infos) {
		ret = lite_memory_list(&lf->node->memory, &l->cursor, info,
				       min(max, l->n_infos - n));
		if (ret <= 0)
			break;
		n += ret;
		ret = lite_ioc_list_put(gate, l, n - ret, info, ret);
		if (ret)
			goto out;
	}
	/* A partial list is a success. */
	if (n)
		ret = 0;
	if (!ret)
		l->n_infos = n;
out:
	kfree(info);
	return ret;
}

/* ---- changing it --------------------------------------------------------- */

int lite_ioc_grant(struct lite_file *lf, void *arg, struct lite_gate *gate)
{
	struct lite_ioc_grant *g = arg;
	struct lite_target target;
	struct lite_cred cred;

	if (g->flags)
		return -EOPNOTSUPP;
	return lite_ioc_target(&target, &cred, g->lh, g->name) ?:
	       lite_ctx_grant(lf->ctx, &target, &g->grant);
}

int lite_ioc_grants(struct lite_file *lf, void *arg, struct lite_gate *gate)
{
	struct lite_ioc_grants *g = arg;
	struct lite_grant *grants;
	u32 room = g->n_grants;
	int err;
	u32 i;

	if (g->flags)
		return -EOPNOTSUPP;
	if (!lite_ioc_element(g->grant_size, LITE_GRANT_FIRST))
		return -EINVAL;
	err = g->lh ? 0 : lite_ioc_name(g->name);
	if (err)
		return err;
	grants = kcalloc(LITE_GRANTS_MAX, sizeof(*grants), GFP_KERNEL);
	if (!grants)
		return -ENOMEM;
	err = lite_ctx_grants(lf->ctx, g->lh, g->name, grants, &g->n_grants);
	for (i = 0; !err && i < min(room, g->n_grants); i++)
		err = lite_gate_copy_element(gate, u64_to_user_ptr(g->grants),
					     i, g->grant_size, &grants[i],
					     sizeof(*grants));
	kfree(grants);
	return err;
}

int lite_ioc_setattr(struct lite_file *lf, void *arg, struct lite_gate *gate)
{
	struct lite_ioc_setattr *s = arg;
	struct lite_target target;
	struct lite_cred cred;

	if (s->flags || s->reserved)
		return -EOPNOTSUPP;
	return lite_ioc_target(&target, &cred, s->lh, s->name) ?:
	       lite_ctx_setattr(lf->ctx, &target, s->uid, s->gid, s->mode);
}

int lite_ioc_rename(struct lite_file *lf, void *arg, struct lite_gate *gate)
{
	struct lite_ioc_rename *r = arg;
	struct lite_target target;
	struct lite_cred cred;

	if (r->flags)
		return -EOPNOTSUPP;
	return lite_ioc_target(&target, &cred, r->lh, r->name) ?:
	       lite_ioc_name(r->to) ?:
	       lite_ctx_rename(lf->ctx, &target, r->to);
}

int lite_ioc_resize(struct lite_file *lf, void *arg, struct lite_gate *gate)
{
	struct lite_ioc_resize *r = arg;
	struct lite_target target;
	struct lite_cred cred;

	if (r->flags)
		return -EOPNOTSUPP;
	return lite_ioc_target(&target, &cred, r->lh, r->name) ?:
	       lite_ctx_resize(lf->ctx, &target, r->length);
}

int lite_ioc_move(struct lite_file *lf, void *arg, struct lite_gate *gate)
{
	struct lite_ioc_move *m = arg;
	struct lite_target target;
	struct lite_cred cred;

	if (m->flags || m->reserved)
		return -EOPNOTSUPP;
	m->moved = 0;
	return lite_ioc_target(&target, &cred, m->lh, m->name) ?:
	       lite_ctx_move(lf->ctx, &target, m->node, m->offset, m->length,
			     &m->moved);
}

/* How far it got counts, whether it succeeded or not. */
int lite_ioc_give_moved(const void *arg, void __user *user, u32 size, int err)
{
	const struct lite_ioc_move *m = arg;
	struct lite_ioc_move __user *to = user;

	return put_user(m->moved, &to->moved) ? err ?: -EFAULT : err;
}

/* Without a handle there is nothing to give, so nothing can fail. */
int lite_ioc_give_alloc(const void *arg, void __user *user, u32 size, int err)
{
	const struct lite_ioc_alloc *a = arg;

	if (err || a->flags & LITE_ALLOC_NO_HANDLE)
		return err;
	return copy_to_user(user, a, min_t(size_t, size, sizeof(*a))) ?
		       -EFAULT : 0;
}

void lite_ioc_unwind_mmap(void *arg)
{
	struct lite_ioc_mmap *m = arg;

	vm_munmap(m->addr, m->length);
}

/* Undo functions, for results that could not be copied out. */
void lite_ioc_undo_alloc(struct lite_file *lf, void *arg)
{
	struct lite_ioc_alloc *a = arg;
	struct lite_target target;
	struct lite_cred cred;

	lite_ioc_target(&target, &cred, a->lh, a->name);
	lite_ctx_free(lf->ctx, &target);
}

void lite_ioc_undo_map(struct lite_file *lf, void *arg)
{
	struct lite_ioc_map *m = arg;

	lite_ctx_unmap(lf->ctx, m->lh);
}

void lite_ioc_undo_register(struct lite_file *lf, void *arg)
{
	struct lite_ioc_register *r = arg;
	struct lite_target target;
	struct lite_cred cred;

	lite_ioc_target(&target, &cred, r->lh, r->name);
	lite_ctx_free(lf->ctx, &target);
}
