// SPDX-License-Identifier: GPL-2.0
/*
 * The ioctls of /dev/liteN (include/uapi/lite.h). op.c has LITE_IOC_OP.
 *
 * One table: a minimum size and a handler per command. The structure is copied
 * in once, worked on, and copied out as a whole, so the node is not held while
 * waiting for user memory; the few handlers that access it let go of the node
 * (struct lite_gate). Before something is made, called or collected, the
 * structure is made writable. If copying it out fails all the same, what was
 * made is undone.
 */
#include <linux/cred.h>
#include <linux/mm.h>
#include <linux/nospec.h>
#include <linux/pagemap.h>
#include <linux/uaccess.h>

#include "core/name.h"
#include "memory/handle/ctx.h"
#include "node.h"

union lite_ioc_any {
	struct lite_ioc_query query;
	struct lite_ioc_alloc alloc;
	struct lite_ioc_map map;
	struct lite_ioc_unmap unmap;
	struct lite_ioc_free free;
	struct lite_ioc_stat stat;
	struct lite_ioc_list list;
	struct lite_ioc_grant grant;
	struct lite_ioc_grants grants;
	struct lite_ioc_setattr setattr;
	struct lite_ioc_rename rename;
	struct lite_ioc_resize resize;
	struct lite_ioc_move move;
	struct lite_ioc_mmap mmap;
	struct lite_ioc_register reg;
	struct lite_ioc_rpc_register rpc_register;
	struct lite_ioc_rpc_unregister rpc_unregister;
	struct lite_ioc_rpc_find rpc_find;
	struct lite_ioc_rpc_call rpc_call;
	struct lite_ioc_rpc_collect rpc_collect;
	struct lite_ioc_rpc_recv rpc_recv;
	struct lite_ioc_lock lock;
	struct lite_ioc_unlock unlock;
	struct lite_ioc_barrier barrier;
	struct lite_ioc_vector vector;
};

/* Get the credentials of the current process. */
void lite_cred_current(struct lite_cred *to)
{
	const struct cred *cred = current_cred();
	const struct group_info *groups = cred->group_info;
	u32 n = min_t(u32, groups->ngroups, LITE_CRED_GROUPS);
	u32 i;

	to->uid = from_kuid(&init_user_ns, cred->euid);
	to->gid = from_kgid(&init_user_ns, cred->egid);
	to->n_groups = n;
	for (i = 0; i < n; i++)
		to->groups[i] = from_kgid(&init_user_ns, groups->gid[i]);
}

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

static int lite_ioc_query(struct lite_file *lf, void *arg,
			  struct lite_gate *gate)
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

static int lite_ioc_alloc(struct lite_file *lf, void *arg,
			  struct lite_gate *gate)
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

static int lite_ioc_map(struct lite_file *lf, void *arg,
			struct lite_gate *gate)
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

static int lite_ioc_unmap(struct lite_file *lf, void *arg,
			  struct lite_gate *gate)
{
	struct lite_ioc_unmap *m = arg;

	if (m->flags)
		return -EOPNOTSUPP;
	return lite_ctx_unmap(lf->ctx, m->lh);
}

static int lite_ioc_free(struct lite_file *lf, void *arg,
			 struct lite_gate *gate)
{
	struct lite_ioc_free *f = arg;
	struct lite_target target;
	struct lite_cred cred;

	if (f->flags)
		return -EOPNOTSUPP;
	return lite_ioc_target(&target, &cred, f->lh, f->name) ?:
	       lite_ctx_free(lf->ctx, &target);
}

static int lite_ioc_stat(struct lite_file *lf, void *arg,
			 struct lite_gate *gate)
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
static int lite_ioc_list_put(struct lite_gate *gate, const struct lite_ioc_list *l,
			     u32 n, const struct lite_lmr_info *info, u32 count)
{
	void __user *to = u64_to_user_ptr(l->infos);
	int err = 0;
	u32 i;

	for (i = 0; i < count && !err; i++)
		err = lite_gate_copy_element(gate, to, n + i, l->info_size,
					     &info[i], sizeof(*info));
	return err;
}

static int lite_ioc_list(struct lite_file *lf, void *arg,
			 struct lite_gate *gate)
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

static int lite_ioc_grant(struct lite_file *lf, void *arg,
			  struct lite_gate *gate)
{
	struct lite_ioc_grant *g = arg;
	struct lite_target target;
	struct lite_cred cred;

	if (g->flags)
		return -EOPNOTSUPP;
	return lite_ioc_target(&target, &cred, g->lh, g->name) ?:
	       lite_ctx_grant(lf->ctx, &target, &g->grant);
}

static int lite_ioc_grants(struct lite_file *lf, void *arg,
			   struct lite_gate *gate)
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

static int lite_ioc_setattr(struct lite_file *lf, void *arg,
			    struct lite_gate *gate)
{
	struct lite_ioc_setattr *s = arg;
	struct lite_target target;
	struct lite_cred cred;

	if (s->flags || s->reserved)
		return -EOPNOTSUPP;
	return lite_ioc_target(&target, &cred, s->lh, s->name) ?:
	       lite_ctx_setattr(lf->ctx, &target, s->uid, s->gid, s->mode);
}

static int lite_ioc_rename(struct lite_file *lf, void *arg,
			   struct lite_gate *gate)
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

static int lite_ioc_resize(struct lite_file *lf, void *arg,
			   struct lite_gate *gate)
{
	struct lite_ioc_resize *r = arg;
	struct lite_target target;
	struct lite_cred cred;

	if (r->flags)
		return -EOPNOTSUPP;
	return lite_ioc_target(&target, &cred, r->lh, r->name) ?:
	       lite_ctx_resize(lf->ctx, &target, r->length);
}

static int lite_ioc_move(struct lite_file *lf, void *arg,
			 struct lite_gate *gate)
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
static int lite_ioc_give_moved(const void *arg, void __user *user, u32 size,
			       int err)
{
	const struct lite_ioc_move *m = arg;
	struct lite_ioc_move __user *to = user;

	return put_user(m->moved, &to->moved) ? err ?: -EFAULT : err;
}

/* Without a handle there is nothing to give, so nothing can fail. */
static int lite_ioc_give_alloc(const void *arg, void __user *user, u32 size,
			       int err)
{
	const struct lite_ioc_alloc *a = arg;

	if (err || a->flags & LITE_ALLOC_NO_HANDLE)
		return err;
	return copy_to_user(user, a, min_t(size_t, size, sizeof(*a))) ?
		       -EFAULT : 0;
}

static void lite_ioc_unwind_mmap(void *arg)
{
	struct lite_ioc_mmap *m = arg;

	vm_munmap(m->addr, m->length);
}

/* Undo functions, for results that could not be copied out. */
static void lite_ioc_undo_alloc(struct lite_file *lf, void *arg)
{
	struct lite_ioc_alloc *a = arg;
	struct lite_target target;
	struct lite_cred cred;

	lite_ioc_target(&target, &cred, a->lh, a->name);
	lite_ctx_free(lf->ctx, &target);
}

static void lite_ioc_undo_map(struct lite_file *lf, void *arg)
{
	struct lite_ioc_map *m = arg;

	lite_ctx_unmap(lf->ctx, m->lh);
}

static void lite_ioc_undo_register(struct lite_file *lf, void *arg)
{
	struct lite_ioc_register *r = arg;
	struct lite_target target;
	struct lite_cred cred;

	lite_ioc_target(&target, &cred, r->lh, r->name);
	lite_ctx_free(lf->ctx, &target);
}

static const struct lite_ioc {
	u16 size;     /* of the whole structure */
	u16 min_size; /* of its first published version */
	bool out;     /* copied out, if the handler succeeds */
	bool always;  /* and if it fails */
	bool looks;   /* allowed in a file opened read-only */
	int (*fn)(struct lite_file *lf, void *arg, struct lite_gate *gate);
	/* Instead of @out and @always: what to write back. */
	int (*give)(const void *arg, void __user *user, u32 size, int err);
	/* When it succeeded and could not be given back; the node is active. */
	void (*undo)(struct lite_file *lf, void *arg);
	/* As @undo, but needs no node: it may wait for user space. */
	void (*unwind)(void *arg);
} lite_iocs[] = {
#define LITE_IOC_ENTRY(cmd, type, last, ...)                                   \
	[_IOC_NR(cmd)] = { .size = sizeof(struct type),                        \
			   .min_size = offsetofend(struct type, last),         \
			   __VA_ARGS__ }
	LITE_IOC_ENTRY(LITE_IOC_QUERY, lite_ioc_query, reserved,
		       .fn = lite_ioc_query, .out = true, .looks = true),
	LITE_IOC_ENTRY(LITE_IOC_ALLOC, lite_ioc_alloc, name,
		       .fn = lite_ioc_alloc, .give = lite_ioc_give_alloc,
		       .undo = lite_ioc_undo_alloc),
	LITE_IOC_ENTRY(LITE_IOC_MAP, lite_ioc_map, name,
		       .fn = lite_ioc_map, .out = true, .looks = true,
		       .undo = lite_ioc_undo_map),
	LITE_IOC_ENTRY(LITE_IOC_UNMAP, lite_ioc_unmap, lh,
		       .fn = lite_ioc_unmap, .looks = true),
	LITE_IOC_ENTRY(LITE_IOC_FREE, lite_ioc_free, name,
		       .fn = lite_ioc_free),
	LITE_IOC_ENTRY(LITE_IOC_STAT, lite_ioc_stat, info,
		       .fn = lite_ioc_stat, .out = true, .looks = true),
	LITE_IOC_ENTRY(LITE_IOC_LIST, lite_ioc_list, info_size,
		       .fn = lite_ioc_list, .out = true, .looks = true),
	LITE_IOC_ENTRY(LITE_IOC_GRANT, lite_ioc_grant, name,
		       .fn = lite_ioc_grant),
	LITE_IOC_ENTRY(LITE_IOC_GRANTS, lite_ioc_grants, name,
		       .fn = lite_ioc_grants, .out = true, .looks = true),
	LITE_IOC_ENTRY(LITE_IOC_SETATTR, lite_ioc_setattr, name,
		       .fn = lite_ioc_setattr),
	LITE_IOC_ENTRY(LITE_IOC_RENAME, lite_ioc_rename, to,
		       .fn = lite_ioc_rename),
	LITE_IOC_ENTRY(LITE_IOC_RESIZE, lite_ioc_resize, name,
		       .fn = lite_ioc_resize),
	LITE_IOC_ENTRY(LITE_IOC_MOVE, lite_ioc_move, name,
		       .fn = lite_ioc_move, .give = lite_ioc_give_moved),
	LITE_IOC_ENTRY(LITE_IOC_MMAP, lite_ioc_mmap, addr,
		       .fn = lite_ioc_mmap, .out = true, .looks = true,
		       .unwind = lite_ioc_unwind_mmap),
	LITE_IOC_ENTRY(LITE_IOC_REGISTER, lite_ioc_register, name,
		       .fn = lite_ioc_register, .out = true,
		       .undo = lite_ioc_undo_register),
	LITE_IOC_ENTRY(LITE_IOC_RPC_REGISTER, lite_ioc_rpc_register, name,
		       .fn = lite_ioc_rpc_register, .out = true,
		       .undo = lite_ioc_undo_rpc_register),
	LITE_IOC_ENTRY(LITE_IOC_RPC_UNREGISTER, lite_ioc_rpc_unregister,
		       reserved, .fn = lite_ioc_rpc_unregister),
	LITE_IOC_ENTRY(LITE_IOC_RPC_FIND, lite_ioc_rpc_find, name,
		       .fn = lite_ioc_rpc_find, .out = true, .looks = true),
	LITE_IOC_ENTRY(LITE_IOC_RPC_CALL, lite_ioc_rpc_call, cookie,
		       .fn = lite_ioc_rpc_call, .out = true, .always = true),
	LITE_IOC_ENTRY(LITE_IOC_RPC_COLLECT, lite_ioc_rpc_collect, cookie,
		       .fn = lite_ioc_rpc_collect, .out = true, .always = true),
	LITE_IOC_ENTRY(LITE_IOC_RPC_RECV, lite_ioc_rpc_recv, answered,
		       .fn = lite_ioc_rpc_recv, .out = true, .always = true,
		       .undo = lite_ioc_undo_rpc_recv),
	LITE_IOC_ENTRY(LITE_IOC_LOCK, lite_ioc_lock, reserved,
		       .fn = lite_ioc_lock),
	LITE_IOC_ENTRY(LITE_IOC_UNLOCK, lite_ioc_unlock, owner,
		       .fn = lite_ioc_unlock),
	LITE_IOC_ENTRY(LITE_IOC_CONSISTENT, lite_ioc_unlock, owner,
		       .fn = lite_ioc_consistent),
	LITE_IOC_ENTRY(LITE_IOC_BARRIER, lite_ioc_barrier, timeout_ms,
		       .fn = lite_ioc_barrier),
	LITE_IOC_ENTRY(LITE_IOC_VECTOR, lite_ioc_vector, n_failed,
		       .fn = lite_ioc_vector, .out = true, .always = true,
		       .looks = true),
};

static int lite_ioc_give_back(const struct lite_ioc *ioc,
			      const union lite_ioc_any *any, void __user *user,
			      int err)
{
	u32 size = any->query.size;

	if (ioc->give)
		return ioc->give(any, user, size, err);
	if (!(err ? ioc->always : ioc->out))
		return err;
	return copy_to_user(user, any, min_t(size_t, size, ioc->size)) ?
		       -EFAULT : err;
}

static int lite_ioc_give(struct lite_file *lf, const struct lite_ioc *ioc,
			 union lite_ioc_any *any, void __user *user, int err)
{
	int ret = lite_ioc_give_back(ioc, any, user, err);

	if (!ret || err)
		return ret;
	/* It was done, and the caller does not learn of it. */
	if (ioc->unwind)
		ioc->unwind(any);
	if (ioc->undo && lite_node_enter(lf->node)) {
		ioc->undo(lf, any);
		lite_node_exit(lf->node);
	}
	return ret;
}

/*
 * Make a structure writable before it is written to. If it is in one page, as
 * most are, writing back its size shows that.
 */
static int lite_ioc_writeable(void __user *user, u32 size)
{
	if (offset_in_page(user) + size <= PAGE_SIZE)
		return put_user(size, (u32 __user *)user);
	return fault_in_safe_writeable(user, size) ? -EFAULT : 0;
}

/*
 * Does a command return without waiting? @flags is the second member of its
 * structure.
 */
bool lite_ioc_waits_not(unsigned int cmd, u32 flags)
{
	switch (cmd) {
	case LITE_IOC_RPC_RECV:
		return flags & (LITE_RPC_NOWAIT | LITE_RPC_REPLY_ONLY);
	case LITE_IOC_RPC_COLLECT:
		return flags & LITE_RPC_NOWAIT;
	default:
		return false;
	}
}

/* The structures with flags that decide this have them in the same place. */
static_assert(offsetof(struct lite_ioc_rpc_recv, flags) == sizeof(u32));
static_assert(offsetof(struct lite_ioc_rpc_collect, flags) == sizeof(u32));

/* All but LITE_IOC_OP: it has a large frame, which is zeroed. */
static noinline long lite_ioctl_any(struct lite_file *lf, unsigned int cmd,
				    void __user *user, bool nowait)
{
	struct lite_gate gate = {
		.users = &lf->node->active,
		.in = true,
		.nowait = nowait,
	};
	const struct lite_ioc *ioc;
	union lite_ioc_any any;
	unsigned int nr = _IOC_NR(cmd);
	u32 size;
	int err;

	if (nr >= ARRAY_SIZE(lite_iocs) || cmd != _IO(LITE_IOC_TYPE, nr))
		return -ENOTTY;
	ioc = &lite_iocs[array_index_nospec(nr, ARRAY_SIZE(lite_iocs))];
	if (!ioc->fn)
		return -ENOTTY;
	if (!ioc->looks && lf->read_only)
		return -EACCES;
	if (get_user(size, (u32 __user *)user))
		return -EFAULT;
	if (size < ioc->min_size)
		return -EINVAL;
	if (size > PAGE_SIZE)
		return -E2BIG;
	err = copy_struct_from_user(&any, ioc->size, user, size);
	if (err)
		return err;
	/* The field was fetched twice: use the value that was checked. */
	any.query.size = size;
	/* The flags were, too: do not wait if they have changed. */
	if (nowait && !lite_ioc_waits_not(cmd, any.rpc_recv.flags))
		return -LITE_EPUTOFF;
	if ((ioc->undo || ioc->always) && lite_ioc_writeable(user, size))
		return -EFAULT;
	if (!lite_node_enter(lf->node))
		return -ENODEV;
	err = ioc->fn(lf, &any, &gate);
	if (gate.in)
		lite_node_exit(lf->node);
	/* Nothing has been done: leave the user's structure alone. */
	if (err == -LITE_EPUTOFF)
		return err;
	return lite_ioc_give(lf, ioc, &any, user, err);
}

/**
 * lite_ioctl - the ioctls of /dev/liteN
 * @file: open file
 * @cmd: LITE_IOC_*
 * @arg: user pointer to its structure
 *
 * Context: may sleep; killable.
 * Return: 0 or a negative errno of the table in include/uapi/lite.h.
 */
long lite_ioctl(struct file *file, unsigned int cmd, unsigned long arg)
{
	struct lite_file *lf = file->private_data;
	void __user *user = (void __user *)arg;

	if (likely(cmd == LITE_IOC_OP))
		return lite_ioctl_op(lf, user);
	return lite_ioctl_any(lf, cmd, user, false);
}

/**
 * lite_ioctl_nowait - an ioctl that must not wait
 * @file: open file
 * @cmd: a command for which lite_ioc_waits_not() returned true
 * @arg: user pointer to its structure
 *
 * Context: may sleep for memory, and for missing user pages; waits for no
 * peer.
 * Return: as lite_ioctl(); -LITE_EPUTOFF: it would have to wait, and has done
 * nothing.
 */
long lite_ioctl_nowait(struct file *file, unsigned int cmd, unsigned long arg)
{
	return lite_ioctl_any(file->private_data, cmd, (void __user *)arg,
			      true);
}
