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
