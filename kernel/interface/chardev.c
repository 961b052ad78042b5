// SPDX-License-Identifier: GPL-2.0
/*
 * Open and close /dev/liteN. A work item releases the resources of a closed file. close() waits for
 * it, so that they are gone when the process is, but only for a while: an exiting process must not
 * hang because the network does.
 *
 * The items wait for other nodes, and a user may close any number of files at once. So the workers
 * are a pool (core/share.h) of which no user gets all. The other closed files are in a line, where
 * users take turns.
 */
#include <linux/cred.h>
#include <linux/fs.h>
#include <linux/module.h>
#include <linux/slab.h>

#include "memory/handle/ctx.h"
#include "node.h"

#define LITE_CLOSE_WAIT (2 * HZ)
#define LITE_CLOSE_WORKERS 256
#define LITE_CLOSE_RESERVE (LITE_CLOSE_WORKERS / 8)

static struct {
	/* Jiffies at which a close() waited in vain; for a while others do not wait. */
	unsigned long slow;
	struct workqueue_struct *wq;
	spinlock_t lock; /* protects @line; outside of the pool's */
	struct lite_line line; /* closed files that no worker has taken, by uid */
	struct lite_pool workers;
} lite_closes;

static void lite_file_put(struct lite_file *lf)
{
	if (!refcount_dec_and_test(&lf->ref))
		return;
	lite_pool_drop(&lite_closes.workers, lf->workers);
	put_cred(lf->cred);
	kfree(lf);
}

static struct lite_file *lite_close_of(struct lite_line_place *place)
{
	return container_of(place, struct lite_file, closing);
}

/* Take a worker for a closed file in line. Return: the file, or NULL: none may have one. */
static struct lite_file *lite_close_next(void)
{
	struct lite_line_place *place;
	struct lite_file *lf;

	lockdep_assert_held(&lite_closes.lock);
	list_for_each_entry(place, &lite_closes.line.firsts, firsts) {
		lf = lite_close_of(place);
		if (!lite_pool_take_part(&lite_closes.workers, lf->workers, 1))
			return lf;
		/* No more users have any than there are workers. Only root may have one now. */
		if (!lf->workers->has)
			break;
	}
	place = lite_line_first(&lite_closes.line, 0);
	if (place && !lite_pool_take_part(&lite_closes.workers, lite_close_of(place)->workers, 1))
		return lite_close_of(place);
	return NULL;
}

static void lite_closes_go_on(void)
{
	struct lite_file *lf;

	lockdep_assert_held(&lite_closes.lock);
	while ((lf = lite_close_next())) {
		lite_line_leave(&lf->closing);
		queue_work(lite_closes.wq, &lf->close_work);
	}
}

static void lite_close_work(struct work_struct *work)
{
	struct lite_file *lf = container_of(work, struct lite_file, close_work);
	const struct cred *old;

	/* A node that is stopping shuts all its contexts itself. */
	if (lite_node_enter(lf->node)) {
		/* The calls are in its user's lines, not in the kernel's. */
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
	spin_lock(&lite_closes.lock);
	lite_pool_give_part(&lite_closes.workers, lf->workers, 1);
	lite_closes_go_on();
	spin_unlock(&lite_closes.lock);
	lite_file_put(lf);
}

/*
 * Make the state of an open file; the caller is active on the node. Context: may sleep. Return: it,
 * for lite_file_close(), or NULL.
 */
struct lite_file *lite_file_new(struct lite_node *node)
{
	struct lite_file *lf = kzalloc(sizeof(*lf), GFP_KERNEL_ACCOUNT);

	if (!lf)
		return NULL;
	lf->closing.kind = from_kuid(&init_user_ns, current_euid());
	lf->workers = lite_pool_hold(&lite_closes.workers, lf->closing.kind);
	if (lf->workers)
		lf->ctx = lite_ctx_new(&node->memory, node);
	if (!lf->ctx) {
		if (lf->workers)
			lite_pool_drop(&lite_closes.workers, lf->workers);
		kfree(lf);
		return NULL;
	}
	lf->cred = get_current_cred();
	kref_get(&node->ref);
	lite_stat_inc(node->stats, LITE_STAT_FILES);
	lf->node = node;
	spin_lock_init(&lf->urings.lock);
	refcount_set(&lf->ref, 2); /* the file's and the work item's */
	init_completion(&lf->closed);
	INIT_WORK(&lf->close_work, lite_close_work);
	return lf;
}

static int lite_open(struct inode *inode, struct file *file)
{
	/* misc_open() has put the miscdevice here. */
	struct lite_node *node = container_of(file->private_data, struct lite_node, misc);
	struct lite_file *lf;

	if (!lite_node_enter(node))
		return -ENODEV;
	lf = lite_file_new(node);
	lite_node_exit(node);
	if (!lf)
		return -ENOMEM;
	lf->read_only = !(file->f_mode & FMODE_WRITE);
	file->private_data = lf;
	return nonseekable_open(inode, file);
}

/* Release the state of a file that is closed. Context: may sleep, for at most LITE_CLOSE_WAIT. */
void lite_file_close(struct lite_file *lf)
{
	lite_urings_free(&lf->urings);
	/* At once: callers of its functions need not wait for what is closed before. */
	if (lf->rpc && lite_node_enter(lf->node)) {
		lite_rpc_file_shut(lf->rpc);
		lite_node_exit(lf->node);
	}
	spin_lock(&lite_closes.lock);
	lite_line_enter(&lite_closes.line, &lf->closing, false);
	lite_closes_go_on();
	spin_unlock(&lite_closes.lock);
	if (time_after(jiffies, READ_ONCE(lite_closes.slow) + 5 * LITE_CLOSE_WAIT) &&
	    !wait_for_completion_timeout(&lf->closed, LITE_CLOSE_WAIT))
		WRITE_ONCE(lite_closes.slow, jiffies);
	lite_file_put(lf);
}

static int lite_release(struct inode *inode, struct file *file)
{
	lite_file_close(file->private_data);
	return 0;
}

/*
 * Requests that a process has taken end when it exits, or execs and closes the
 * file, even if other processes have the file open.
 */
static int lite_flush(struct file *file, fl_owner_t id)
{
	struct lite_file *lf = file->private_data;
	/* Pairs with the cmpxchg() in lite_file_rpc(). */
	struct lite_rpc_file *rpc = smp_load_acquire(&lf->rpc);
	/* The same in lite_ctx_kept(). */
	bool kept = smp_load_acquire(&lf->ctx->kept);

	if (!(current->flags & PF_EXITING || current->in_execve) || !(rpc || kept))
		return 0;
	/* A node that is stopping resets all of them itself. */
	if (lite_node_enter(lf->node)) {
		if (rpc)
			lite_rpc_file_flush(rpc, id);
		/* Its memory is gone already; that of a process which shares the file is not. */
		if (kept)
			lite_kept_flush(lf->ctx->kept);
		lite_node_exit(lf->node);
	}
	return 0;
}

static __poll_t lite_poll(struct file *file, poll_table *table)
{
	struct lite_file *lf = file->private_data;
	__poll_t events = EPOLLERR | EPOLLHUP;
	struct lite_rpc_file *rpc;

	if (!lite_node_enter(lf->node))
		return events;
	rpc = lite_file_rpc(lf);
	if (rpc)
		events = lite_rpc_file_poll(rpc, file, table);
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
	lite_closes.slow = jiffies - MAX_JIFFY_OFFSET;
	spin_lock_init(&lite_closes.lock);
	lite_line_init(&lite_closes.line);
	lite_pool_init(&lite_closes.workers, LITE_CLOSE_WORKERS, LITE_CLOSE_RESERVE, 0);
	lite_closes.wq = alloc_workqueue("lite-close", WQ_UNBOUND, LITE_CLOSE_WORKERS);
	return lite_closes.wq ? 0 : -ENOMEM;
}

/* Context: may sleep; no file is open, all nodes are stopped. */
void lite_chardev_exit(void)
{
	destroy_workqueue(lite_closes.wq);
	lite_pool_exit(&lite_closes.workers);
}
