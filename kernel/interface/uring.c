// SPDX-License-Identifier: GPL-2.0
/*
 * The ioctls of /dev/liteN as commands of io_uring (include/uapi/lite_uring.h).
 *
 * io_uring first tries a command in the thread that submits it, which must not
 * have to wait: then small operations are begun (../memory/issue.c). All else is
 * put off to a worker of io_uring, which calls the same function as ioctl(2)
 * does, in the same address space, and waits as that would, but can be told to
 * give up (../wait.h).
 *
 * The end of a small operation comes at any time, in a thread of whoever. What
 * was read waits in memory of its own then, and is given to the process by its
 * own thread (task work). If that is not run for long, because it is stopped,
 * say, nothing of the node waits for it.
 *
 * Lifetime: a command holds its file, and so the module, until it is complete; a
 * small operation in flight also holds the node active.
 */
#include <linux/slab.h>
#include <linux/uaccess.h>

#include <uapi/lite_uring.h>

#include "../compat.h"
#include "node.h"

/* So much a command has in memory, if what it reads fits into that. */
#define LITE_URING_BYTES 512
/* Of a file: kept when they are idle. */
#define LITE_URING_KEPT 64

/**
 * struct lite_uring - a small operation of a command
 * @issue: it
 * @next: in lite_urings.idle
 * @kept: has the usual size
 * @cmd: to complete
 * @node: held active until @issue has ended
 * @op: of the user
 * @buf: where what is read goes
 * @length: how many bytes of it; 0: for a write, all that is told is @result
 * @err: how it has ended
 * @result: what the user is told then
 * @data: what was read, or the 8 bytes before an atomic operation
 */
struct lite_uring {
	struct lite_issue issue;
	struct lite_uring *next;
	bool kept;
	struct io_uring_cmd *cmd;
	struct lite_node *node;
	struct lite_op __user *op;
	void __user *buf;
	u32 length;
	int err;
	u64 result;
	u64 data[];
};

static struct lite_uring **lite_uring_of(struct io_uring_cmd *cmd)
{
	BUILD_BUG_ON(sizeof(struct lite_uring *) > sizeof(cmd->pdu));
	return (struct lite_uring **)cmd->pdu;
}

/* ---- room for them ------------------------------------------------------- */

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

/* With room for what is read, or was there. */
static struct lite_uring *lite_uring_alloc(struct lite_file *lf, size_t room)
{
	bool kept = room <= LITE_URING_BYTES - sizeof(struct lite_uring);
	struct lite_uring *u;

	u = kept ? lite_uring_idle(&lf->urings) : NULL;
	if (u)
		return u;
	u = kmalloc(kept ? LITE_URING_BYTES :
			   struct_size(u, data,
				       DIV_ROUND_UP(room, sizeof(u64))),
		    GFP_KERNEL_ACCOUNT);
	if (u)
		u->kept = kept;
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

/**
 * lite_urings_free - give back what is kept for commands
 * @idle: of a file that has none under way
 *
 * Context: any.
 */
void lite_urings_free(struct lite_urings *idle)
{
	struct lite_uring *u;

	while ((u = lite_uring_idle(idle)))
		kfree(u);
}

/* ---- the end ------------------------------------------------------------- */

/* Tell the user; an errno. */
static int lite_uring_give(struct lite_uring *u)
{
	unsigned long left;
	int err = u->err;

	/*
	 * In a thread of the kernel's, or one that exits: it cannot write to whose
	 * memory it is, if that is there still.
	 */
	if (current->flags & PF_KTHREAD || !current->mm)
		return err ?: -EINTR;
	if (!err && u->length) {
		left = copy_to_user(u->buf, u->data, u->length);
		u->result -= left;
		err = left ? -EFAULT : 0;
	}
	return put_user(u->result, &u->op->result) ? err ?: -EFAULT : err;
}

static void lite_uring_finish(struct io_uring_cmd *cmd,
			      unsigned int issue_flags)
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
	else if (issue->opcode == LITE_OP_READ ||
		 issue->opcode == LITE_OP_WRITE)
		u->result = issue->length;
	else
		u->result = u->data[0];
	/* While it is sure to be there. */
	io_uring_cmd_complete_in_task(u->cmd, lite_uring_finish);
	lite_node_exit(node);
}

/* ---- the beginning ------------------------------------------------------- */

static struct lite_uring *lite_uring_new(struct io_uring_cmd *cmd,
					 struct lite_op __user *user,
					 const struct lite_op *op)
{
	size_t room = op->opcode == LITE_OP_WRITE ? 0 : op->length;
	struct lite_file *lf = cmd->file->private_data;
	struct lite_uring *u;

	BUILD_BUG_ON(sizeof(*u) + 64 > LITE_URING_BYTES);
	u = lite_uring_alloc(lf, room);
	if (!u)
		return NULL;
	u->issue.end = lite_uring_end;
	u->issue.data = u->data;
	u->cmd = cmd;
	u->node = lf->node;
	u->op = user;
	u->buf = u64_to_user_ptr(op->buf);
	u->length = op->opcode == LITE_OP_READ ? op->length : 0;
	return u;
}

/* -EAGAIN: put it off. */
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

/* Of the commands with flags of calls: does this one wait for nobody? */
static bool lite_uring_is_quick(u32 cmd_op, const u32 __user *user)
{
	u32 flags;

	return lite_ioc_waits_not(cmd_op, U32_MAX) &&
	       !get_user(flags, user + 1) && lite_ioc_waits_not(cmd_op, flags);
}

/* In the thread that submits it. -EAGAIN: put it off. */
static int lite_uring_try(struct io_uring_cmd *cmd, unsigned long arg,
			  unsigned int issue_flags)
{
	void __user *user = (void __user *)arg;
	int err;

	if (cmd->cmd_op == LITE_IOC_OP)
		return lite_uring_op(cmd, user);
	if (!lite_uring_is_quick(cmd->cmd_op, user))
		return -EAGAIN;
	err = lite_ioctl_nowait(cmd->file, cmd->cmd_op, arg);
	if (err == -LITE_EPUTOFF)
		return -EAGAIN;
	if (err != -EAGAIN)
		return err;
	/* This is what the user is to be told. */
	io_uring_cmd_done(cmd, err, 0, issue_flags);
	return -EIOCBQUEUED;
}

/**
 * lite_uring_cmd - an ioctl as a command of io_uring
 * @cmd: command
 * @issue_flags: IO_URING_F_*
 *
 * Context: may sleep.
 * Return: 0 or a negative errno; -EIOCBQUEUED: it is, or will be, completed;
 * -EAGAIN, if it must not wait: let a worker do it.
 */
int lite_uring_cmd(struct io_uring_cmd *cmd, unsigned int issue_flags)
{
	const struct lite_uring_cmd *c = lite_uring_payload(cmd);
	unsigned long arg;

	/* It may be memory that the user can change meanwhile. */
	arg = READ_ONCE(c->arg);
	if (READ_ONCE(c->reserved) || cmd->flags & IORING_URING_CMD_FIXED)
		return -EOPNOTSUPP;
	if (issue_flags & IO_URING_F_NONBLOCK)
		return lite_uring_try(cmd, arg, issue_flags);
	return lite_ioctl(cmd->file, cmd->cmd_op, arg);
}
