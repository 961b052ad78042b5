// SPDX-License-Identifier: GPL-2.0
/*
 * The ioctls of /dev/liteN (include/uapi/lite.h). The tables of all commands but LITE_IOC_OP are in
 * ioc_lmr.c, ioc_sync.c and ioc_rpc.c.
 *
 * The structure is copied in once, before the node is entered, and copied out after it was left, so
 * a thread that waits for user memory does not hold the node. The few handlers that access more
 * leave the node meanwhile (struct lite_gate). Before something is made, called or collected, the
 * structure is made writable. If copying it out fails all the same, what was made is undone.
 */
#include <linux/cred.h>
#include <linux/mm.h>
#include <linux/nospec.h>
#include <linux/pagemap.h>
#include <linux/uaccess.h>

#include "core/name.h"
#include "memory/batch/op.h"
#include "command.h"
#include "compat.h"

/* The user that a command acts for. Kernel modules act as root. */
const struct lite_cred *lite_cmd_user(struct lite_command *cmd)
{
	const struct cred *cred = current_cred();
	const struct group_info *groups = cred->group_info;
	u32 n = min_t(u32, groups->ngroups, LITE_CRED_GROUPS);
	struct lite_cred *to = &cmd->cred;
	u32 i;

	if (!cmd->lf)
		return &lite_root;
	to->uid = from_kuid(&init_user_ns, cred->euid);
	to->gid = from_kgid(&init_user_ns, cred->egid);
	to->n_groups = n;
	for (i = 0; i < n; i++)
		to->groups[i] = from_kgid(&init_user_ns, groups->gid[i]);
	return to;
}

/* Set the LMR that a command is about. Return: 0 or a negative errno. */
int lite_cmd_target(struct lite_command *cmd, u64 lh, const char *name)
{
	cmd->target = (struct lite_target){ .cred = lite_cmd_user(cmd), .lh = lh, .name = name };
	if (lh)
		return 0;
	/* A kernel module passed handle 0 to a function that takes no name. */
	if (!cmd->lf && !name[0])
		return -EBADF;
	return min(lite_name_check(name, LITE_NAME_SIZE), 0);
}

/* Find command LITE_IOC_*. Context: any. Return: its row, or NULL. */
const struct lite_ioc *lite_ioc_find(unsigned int cmd)
{
	static const struct lite_ioc *const groups[] = {
		lite_iocs_lmr, lite_iocs_rpc, lite_iocs_sync,
	};
	const unsigned int end = ARRAY_SIZE(groups) * LITE_IOC_GROUP;
	unsigned int nr = _IOC_NR(cmd);
	const struct lite_ioc *ioc;

	if (nr >= end || cmd != _IO(LITE_IOC_TYPE, nr))
		return NULL;
	nr = array_index_nospec(nr, end);
	ioc = &groups[nr / LITE_IOC_GROUP][nr % LITE_IOC_GROUP];
	return ioc->size ? ioc : NULL;
}

/*
 * Carry out a command with its row and its structure, which is updated. Context: may sleep;
 * killable. Return: 0 or a negative errno of the table in include/uapi/lite.h.
 */
int lite_cmd_run(struct lite_command *cmd, const struct lite_ioc *ioc, void *arg)
{
	const struct lite_ioc_head *head = arg;
	int err;

	if (head->flags & ~ioc->flags || (ioc->zero && *(const u32 *)(arg + ioc->zero)))
		return -EOPNOTSUPP;
	if (ioc->name) {
		err = lite_cmd_target(cmd, head->lh, arg + ioc->name);
		if (err)
			return err;
	}
	return ioc->change ? ioc->change(cmd->ctx, &cmd->target, arg) : ioc->fn(cmd, arg);
}

/* Copy the structure out. If that fails, undo what was done. */
static int lite_ioc_give(struct lite_command *cmd, const struct lite_ioc *ioc,
			 void *arg, void __user *user, int err)
{
	const struct lite_ioc_head *head = arg;

	if (!(err ? ioc->always : ioc->out) ||
	    !copy_to_user(user, arg, min_t(size_t, head->size, ioc->size)))
		return err;
	if (err)
		return -EFAULT;
	if (ioc->unwind)
		ioc->unwind(arg);
	if (ioc->undo && lite_node_enter(cmd->node)) {
		ioc->undo(cmd, arg);
		lite_node_exit(cmd->node);
	}
	return -EFAULT;
}

/* Make a structure writable. If it is in one page, writing back its size shows that it is. */
static int lite_ioc_writeable(void __user *user, u32 size)
{
	if (offset_in_page(user) + size <= PAGE_SIZE)
		return put_user(size, (u32 __user *)user);
	return fault_in_safe_writeable(user, size) ? -EFAULT : 0;
}

/*
 * Any ioctl but LITE_IOC_OP; not inlined, because it has a large frame. With @nowait it does not
 * wait for a peer. May sleep; killable. Return: as lite_ioctl(); with @nowait, -LITE_EPUTOFF: it
 * did nothing, as its flags do not make it quick (struct lite_ioc), or it would have to wait.
 */
noinline long lite_ioctl_any(struct lite_file *lf, unsigned int nr, void __user *user, bool nowait)
{
	const struct lite_ioc *ioc = lite_ioc_find(nr);
	u64 arg[LITE_IOC_BYTES / sizeof(u64)] LITE_UNINIT;
	struct lite_ioc_head *head = (void *)arg;
	struct lite_command cmd LITE_UNINIT;
	u32 size;
	int err;

	if (!ioc)
		return -ENOTTY;
	if (!ioc->looks && lf->read_only)
		return -EACCES;
	if (get_user(size, (u32 __user *)user))
		return -EFAULT;
	if (size < ioc->min_size)
		return -EINVAL;
	if (size > PAGE_SIZE)
		return -E2BIG;
	err = copy_struct_from_user(arg, ioc->size, user, size);
	if (err)
		return err;
	/* The field was fetched twice: use the value that was checked. */
	head->size = size;
	/* The flags were, too (lite_uring_try()): do not wait if they have changed. */
	if (nowait && !(head->flags & ioc->quick))
		return -LITE_EPUTOFF;
	if ((ioc->undo || ioc->always) && lite_ioc_writeable(user, size))
		return -EFAULT;
	if (!lite_node_enter(lf->node))
		return -ENODEV;
	cmd.node = lf->node;
	cmd.ctx = lf->ctx;
	cmd.lf = lf;
	cmd.gate = (struct lite_gate){ .users = &lf->node->active, .in = true, .nowait = nowait };
	err = lite_cmd_run(&cmd, ioc, arg);
	if (cmd.gate.in)
		lite_node_exit(lf->node);
	/* Nothing has been done: leave the user's structure alone. */
	if (err == -LITE_EPUTOFF)
		return err;
	return lite_ioc_give(&cmd, ioc, arg, user, err);
}

/* Fetch a structure in one go. Return: false: not of the size known here, or a fault occurred. */
static bool lite_op_get(struct lite_op *op, const struct lite_op __user *from)
{
	const u64 __user *u = (const u64 __user *)from;
	u64 *k = (u64 *)op;

	BUILD_BUG_ON(sizeof(*op) != 9 * sizeof(u64));
	if (!user_access_begin(u, sizeof(*op)))
		return false;
	unsafe_get_user(k[0], &u[0], fault);
	unsafe_get_user(k[1], &u[1], fault);
	unsafe_get_user(k[2], &u[2], fault);
	unsafe_get_user(k[3], &u[3], fault);
	unsafe_get_user(k[4], &u[4], fault);
	unsafe_get_user(k[5], &u[5], fault);
	unsafe_get_user(k[6], &u[6], fault);
	unsafe_get_user(k[7], &u[7], fault);
	user_access_end();
	return op->size == sizeof(*op); /* op->result is output only */
fault:
	user_access_end();
	return false;
}

static int lite_op_get_any(struct lite_op *op, const struct lite_op __user *from)
{
	u32 size;
	int err;

	if (get_user(size, &from->size))
		return -EFAULT;
	if (size < sizeof(*op))
		return -EINVAL;
	if (size > PAGE_SIZE)
		return -E2BIG;
	err = copy_struct_from_user(op, sizeof(*op), from, size);
	/* The size was fetched twice: use the one that was checked. */
	op->size = size;
	return err;
}

/* LITE_IOC_OP bypasses lite_ioctl_any(), which costs more than an operation. */
static long lite_ioctl_op(struct lite_file *lf, struct lite_op __user *user)
{
	struct lite_gate gate = { .users = &lf->node->active, .in = true };
	struct lite_buf buf = { .gate = &gate, .user = true };
	struct lite_op op LITE_UNINIT;
	int err;

	if (unlikely(!lite_op_get(&op, user))) {
		err = lite_op_get_any(&op, user);
		if (err)
			return err;
	}
	if (!lite_node_enter(lf->node))
		return -ENODEV;
	op.result = 0;
	if (op.flags || op.reserved0 || op.reserved1)
		err = -EOPNOTSUPP;
	else
		err = lite_op_check_prio(lf->ctx, &op);
	if (likely(!err)) {
		buf.u = op.buf;
		err = lite_op_run(lf->ctx, &op, &buf);
	}
	if (gate.in)
		lite_node_exit(lf->node);
	/* Only the result is copied out, even on failure. */
	return put_user(op.result, &user->result) ? err ?: -EFAULT : err;
}

/* Context: may sleep; killable. Return: 0 or a negative errno of the table in uapi/lite.h. */
long lite_ioctl(struct file *file, unsigned int cmd, unsigned long arg)
{
	struct lite_file *lf = file->private_data;
	void __user *user = (void __user *)arg;

	if (likely(cmd == LITE_IOC_OP))
		return lite_ioctl_op(lf, user);
	return lite_ioctl_any(lf, cmd, user, false);
}
