// SPDX-License-Identifier: GPL-2.0
/* LITE_IOC_OP bypasses the code of other ioctls (ioctl.c), which costs more than an operation. */
#include <linux/uaccess.h>

#include "memory/batch/op.h"
#include "compat.h"
#include "node.h"

/* Fetch a structure in one go. False: it does not have the size known here, or a fault occurred. */
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

/* LITE_IOC_OP. Context: may sleep; killable. Return: 0 or a negative errno. */
long lite_ioctl_op(struct lite_file *lf, struct lite_op __user *user)
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
