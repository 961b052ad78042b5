// SPDX-License-Identifier: GPL-2.0
/*
 * Opening and closing /dev/liteN. A job of a crew releases the resources of a closed file. close()
 * waits for it, so that they are gone when the process is, but only for a while: an exiting process
 * must not hang because the network does.
 */
#include <linux/cred.h>
#include <linux/fs.h>
#include <linux/hash.h>
#include <linux/module.h>
#include <linux/slab.h>

#include "node.h"

#define LITE_CLOSE_WAIT (2 * HZ)
#define LITE_CLOSE_SLOW_BITS 8

static struct lite_crew lite_closes;

/*
 * Jiffies at which a close() of a user waited in vain, or 0: for a while the user's other closes do
 * not wait. By a hash of the uid: if users share an entry, the others do not wait, either.
 */
static unsigned long lite_close_slow[1 << LITE_CLOSE_SLOW_BITS];

static void lite_file_put(struct lite_file *lf)
{
	if (!refcount_dec_and_test(&lf->ref))
		return;
	lite_crew_job_exit(&lite_closes, &lf->closing);
	put_cred(lf->cred);
	kfree(lf);
}

static void lite_close_work(struct work_struct *work)
{
	struct lite_file *lf = container_of(work, struct lite_file, closing.work);
	const struct cred *old;

	/* A node that is stopping shuts all its contexts itself. */
	if (lite_node_enter(lf->node)) {
		/* As the opener: calls queue in that user's lines, not in the kernel's. */
		old = override_creds(lf->cred);
		lite_locks_ctx_gone(&lf->node->locks, lf->ctx);
		lite_ctx_shut(lf->ctx);
		revert_creds(old);
		lite_node_exit(lf->node);
	}
	if (lf->rpc)
		lite_rpc_file_put(lf->rpc);
	lite_ctx_put(lf->ctx);
	lite_stat_dec(lf->node->stats, LITE_STAT_FILES);
	lite_node_put(lf->node);
	complete(&lf->closed);
	lite_crew_done(&lite_closes, &lf->closing);
	lite_file_put(lf);
}

/* Make the state of a file. Active on @node; may sleep. Return: for lite_file_close(); or NULL. */
struct lite_file *lite_file_new(struct lite_node *node)
{
	struct lite_file *lf = kzalloc(sizeof(*lf), GFP_KERNEL_ACCOUNT);

	if (!lf)
		return NULL;
	if (lite_crew_job_init(&lite_closes, &lf->closing, lite_current_uid(), lite_close_work,
			       GFP_KERNEL))
		goto err_free;
	lf->ctx = lite_ctx_new(&node->memory);
	if (!lf->ctx)
		goto err_job;
	lf->cred = get_current_cred();
	refcount_inc(&node->ref);
	lite_stat_inc(node->stats, LITE_STAT_FILES);
	lf->node = node;
	spin_lock_init(&lf->urings.lock);
	refcount_set(&lf->ref, 2); /* the file's and the job's */
	init_completion(&lf->closed);
	return lf;

err_job:
	lite_crew_job_exit(&lite_closes, &lf->closing);
err_free:
	kfree(lf);
	return NULL;
}

static int lite_open(struct inode *inode, struct file *file)
{
	/* misc_open() has put the miscdevice here. */
	struct lite_node *node = container_of(file->private_data, struct lite_node, misc);
	struct lite_rpc_file *rpc;
	struct lite_file *lf;

	if (!lite_node_enter(node))
		return -ENODEV;
	/* First, so that no failure needs lite_file_close(): it may wait, and misc_mtx is held. */
	rpc = lite_rpc_file_new(&node->service);
	lf = rpc ? lite_file_new(node) : NULL;
	if (rpc && !lf) {
		lite_rpc_file_shut(rpc);
		lite_rpc_file_put(rpc);
	}
	lite_node_exit(node);
	if (!lf)
		return -ENOMEM;
	lf->rpc = rpc;
	lf->read_only = !(file->f_mode & FMODE_WRITE);
	file->private_data = lf;
	return nonseekable_open(inode, file);
}

/*
 * Wait until a closed file is released, unless a close() of its user has recently waited for a
 * second or more, or this thread may be another user's: of a process to which the file was sent, or
 * the kernel thread that closes files for all.
 */
static void lite_file_await(struct lite_file *lf)
{
	u32 uid = from_kuid(&init_user_ns, lf->cred->euid);
	u32 entry = hash_32(uid, LITE_CLOSE_SLOW_BITS);
	unsigned long was = READ_ONCE(lite_close_slow[entry]);
	unsigned long begun = jiffies;

	if (current->flags & PF_KTHREAD || uid != lite_current_uid() ||
	    (was && time_before(jiffies, was + 5 * LITE_CLOSE_WAIT)))
		return;
	wait_for_completion_timeout(&lf->closed, LITE_CLOSE_WAIT);
	/* A home waits for a second for a silent store. A process may have thousands of files. */
	if (time_after_eq(jiffies, begun + LITE_CLOSE_WAIT / 2))
		WRITE_ONCE(lite_close_slow[entry], jiffies);
}

/* Release the state of a file that is closed. Context: may sleep, for at most LITE_CLOSE_WAIT. */
void lite_file_close(struct lite_file *lf)
{
	lite_urings_free(&lf->urings);
	/* At once, so that callers of its functions do not wait behind other closing files. */
	if (lf->rpc && lite_node_enter(lf->node)) {
		lite_rpc_file_shut(lf->rpc);
		lite_node_exit(lf->node);
	}
	lite_crew_queue(&lite_closes, &lf->closing);
	lite_file_await(lf);
	lite_file_put(lf);
}

static int lite_release(struct inode *inode, struct file *file)
{
	lite_file_close(file->private_data);
	return 0;
}

/* End the requests that an exiting or exec'ing process has taken, even if others use the file. */
static int lite_flush(struct file *file, fl_owner_t id)
{
	struct lite_file *lf = file->private_data;

	if (!(current->flags & PF_EXITING || current->in_execve))
		return 0;
	/* A node that is stopping resets all of them itself. */
	if (lite_node_enter(lf->node)) {
		lite_rpc_file_flush(lf->rpc, id);
		/* The process's mm is over: frees its blocks, but not another process's. */
		lite_kept_drop(lf->ctx->kept, false);
		lite_node_exit(lf->node);
	}
	return 0;
}

static __poll_t lite_poll(struct file *file, poll_table *table)
{
	struct lite_file *lf = file->private_data;
	__poll_t events;

	if (!lite_node_enter(lf->node))
		return EPOLLERR | EPOLLHUP;
	events = lite_rpc_file_poll(lf->rpc, file, table);
	lite_node_exit(lf->node);
	return events;
}

const struct file_operations lite_fops = {
	.owner = THIS_MODULE,
	.open = lite_open,
	.flush = lite_flush,
	.release = lite_release,
	.poll = lite_poll,
	.unlocked_ioctl = lite_ioctl,
	.compat_ioctl = compat_ptr_ioctl,
	.uring_cmd = lite_uring_cmd,
};

/* Context: may sleep. Return: 0 or -ENOMEM. */
int lite_chardev_init(void)
{
	return lite_crew_init(&lite_closes, "lite-close");
}

/* Context: may sleep; no file is open, all nodes are stopped. */
void lite_chardev_exit(void)
{
	lite_crew_exit(&lite_closes);
}
