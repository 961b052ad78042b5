// SPDX-License-Identifier: GPL-2.0
/*
 * The ioctls of /dev/liteN as io_uring commands (include/uapi/lite_uring.h).
 *
 * io_uring first tries a command in the submitting thread, which must not wait: small operations
 * are started there (memory/batch/issue.c). Other commands are deferred to an io_uring worker. It
 * calls the function that ioctl(2) calls, in the same address space, and waits, but can be
 * cancelled (wait.h).
 *
 * A small operation ends at any time, in any thread. Task work in the submitting thread then copies
 * what was read to the user, from a buffer of the command: the node need not wait for the thread.
 *
 * Lifetime: a command holds its file, and so the module, until it is complete. A small operation in
 * flight also keeps the node active.
 */
#include <linux/slab.h>
#include <linux/uaccess.h>

#include <uapi/lite_uring.h>

#include "memory/batch/issue.h"
#include "command.h"
#include "compat.h"

#define LITE_URING_BYTES 512 /* usual size of a struct lite_uring with its data */
#define LITE_URING_KEPT 64 /* idle ones that a file caches */

/* A small operation of a command. */
struct lite_uring {
	struct lite_issue issue;
	struct lite_uring *next; /* in lite_urings.idle */
	bool kept;               /* has the usual size, and can be cached */
	struct io_uring_cmd *cmd;  /* to complete */
	struct lite_node *node;    /* held active until @issue has ended */
	struct lite_op __user *op; /* the user's structure */
	void __user *buf; /* the user's buffer for what is read */
	u32 length;       /* bytes to copy there; 0 for other operations */
	int err;          /* result of the operation */
	u64 result;       /* to be written to @op */
	u64 data[];       /* what was read, or the 8 bytes before an atomic operation */
};

static struct lite_uring **lite_uring_of(struct io_uring_cmd *cmd)
{
	BUILD_BUG_ON(sizeof(struct lite_uring *) > sizeof(cmd->pdu));
	return (struct lite_uring **)cmd->pdu;
}

static struct lite_uring *lite_uring_idle(struct lite_urings *idle)
{
	struct lite_uring *u;

	spin_lock(&idle->lock);
	u = idle->idle;
	if (u) {
		idle->idle = u->next;
		idle->n--;
	}
	spin_unlock(&idle->lock);
	return u;
}

static void lite_uring_free(struct lite_file *lf, struct lite_uring *u)
{
	struct lite_urings *idle = &lf->urings;
	bool keep;

	spin_lock(&idle->lock);
	keep = u->kept && idle->n < LITE_URING_KEPT;
	if (keep) {
		u->next = idle->idle;
		idle->idle = u;
		idle->n++;
	}
	spin_unlock(&idle->lock);
	if (!keep)
		kfree(u);
}

/* Free the cache of a file without commands in flight. Context: any. */
void lite_urings_free(struct lite_urings *idle)
{
	struct lite_uring *u;

	while ((u = lite_uring_idle(idle)))
		kfree(u);
}

/* Copy the result to the user. Return: the errno of the command. */
static int lite_uring_give(struct lite_uring *u)
{
	unsigned long left;
	int err = u->err;

	/* A kernel thread cannot reach the user's memory; for an exiting thread it is gone. */
	if (current->flags & PF_KTHREAD || !current->mm)
		return err ?: -EINTR;
	if (!err && u->length) {
		left = copy_to_user(u->buf, u->data, u->length);
		u->result -= left;
		err = left ? -EFAULT : 0;
	}
	return put_user(u->result, &u->op->result) ? err ?: -EFAULT : err;
}

static void lite_uring_finish(struct io_uring_cmd *cmd, unsigned int issue_flags)
{
	struct lite_uring *u = *lite_uring_of(cmd);
	int err = lite_uring_give(u);

	lite_uring_free(cmd->file->private_data, u);
	io_uring_cmd_done(cmd, err, 0, issue_flags);
}

static void lite_uring_end(struct lite_issue *issue, int err)
{
	struct lite_uring *u = container_of(issue, struct lite_uring, issue);
	struct lite_node *node = u->node;

	u->err = err;
	if (err)
		u->result = 0;
	else if (lite_op_is_transfer(issue->d.opcode))
		u->result = issue->d.n;
	else
		u->result = u->data[0];
	/* First, while the node is held. */
	io_uring_cmd_complete_in_task(u->cmd, lite_uring_finish);
	lite_node_exit(node);
}

static struct lite_uring *lite_uring_new(struct io_uring_cmd *cmd, struct lite_op __user *user,
					 const struct lite_op *op)
{
	size_t room = op->opcode == LITE_OP_WRITE ? 0 : op->length;
	bool kept = room <= LITE_URING_BYTES - sizeof(struct lite_uring);
	struct lite_file *lf = cmd->file->private_data;
	struct lite_uring *u = kept ? lite_uring_idle(&lf->urings) : NULL;

	BUILD_BUG_ON(sizeof(*u) + 64 > LITE_URING_BYTES);
	if (!u)
		u = kmalloc(kept ? LITE_URING_BYTES :
				   struct_size(u, data, DIV_ROUND_UP(room, sizeof(u64))),
			    GFP_KERNEL_ACCOUNT);
	if (!u)
		return NULL;
	u->kept = kept;
	u->issue.end = lite_uring_end;
	u->issue.data = u->data;
	u->cmd = cmd;
	u->node = lf->node;
	u->op = user;
	u->buf = u64_to_user_ptr(op->buf);
	u->length = op->opcode == LITE_OP_READ ? op->length : 0;
	return u;
}

/* Begin a small operation. Return: -EAGAIN: leave it to a worker; else as lite_uring_cmd(). */
static int lite_uring_op(struct io_uring_cmd *cmd, struct lite_op __user *user)
{
	struct lite_file *lf = cmd->file->private_data;
	enum lite_issued ret;
	struct lite_uring *u;
	struct lite_op op;

	if (copy_from_user(&op, user, sizeof(op)) || !lite_issue_may(&op))
		return -EAGAIN;
	u = lite_uring_new(cmd, user, &op);
	if (!u)
		return -EAGAIN;
	if (!lite_node_enter(lf->node)) {
		lite_uring_free(lf, u);
		return -ENODEV;
	}
	*lite_uring_of(cmd) = u;
	ret = lite_issue(&u->issue, lf->ctx, &op);
	if (ret == LITE_ISSUED)
		return -EIOCBQUEUED;
	lite_node_exit(lf->node);
	lite_uring_free(lf, u);
	if (ret == LITE_ISSUED_NOT)
		return -EAGAIN;
	return put_user(op.length, &user->result) ? -EFAULT : 0;
}

/* Try in the submitting thread. Return: -EAGAIN: leave it to a worker; else as lite_uring_cmd(). */
static int lite_uring_try(struct io_uring_cmd *cmd, unsigned long arg, unsigned int issue_flags)
{
	void __user *user = (void __user *)arg;
	const struct lite_ioc_head __user *head = user;
	const struct lite_ioc *ioc;
	u32 flags;
	int err;

	if (cmd->cmd_op == LITE_IOC_OP)
		return lite_uring_op(cmd, user);
	/* Only a command with flags that keep it from waiting for a peer. */
	ioc = lite_ioc_find(cmd->cmd_op);
	if (!ioc || !ioc->quick || get_user(flags, &head->flags) || !(flags & ioc->quick))
		return -EAGAIN;
	err = lite_ioctl_any(cmd->file->private_data, cmd->cmd_op, user, true);
	if (err == -LITE_EPUTOFF)
		return -EAGAIN;
	if (err != -EAGAIN)
		return err;
	/* -EAGAIN is the result; returned, it would mean "try in a worker". */
	io_uring_cmd_done(cmd, err, 0, issue_flags);
	return -EIOCBQUEUED;
}

/*
 * Run an ioctl as an io_uring command. Context: may sleep. Return: 0 or a negative errno;
 * -EIOCBQUEUED: io_uring_cmd_done() completes it; -EAGAIN, with IO_URING_F_NONBLOCK only: a worker
 * has to do it.
 */
int lite_uring_cmd(struct io_uring_cmd *cmd, unsigned int issue_flags)
{
	const struct lite_uring_cmd *c = lite_uring_payload(cmd);
	/* The user may be able to change it: read once. */
	unsigned long arg = READ_ONCE(c->arg);

	if (READ_ONCE(c->reserved) || cmd->flags & IORING_URING_CMD_FIXED)
		return -EOPNOTSUPP;
	if (issue_flags & IO_URING_F_NONBLOCK)
		return lite_uring_try(cmd, arg, issue_flags);
	return lite_ioctl(cmd->file, cmd->cmd_op, arg);
}
