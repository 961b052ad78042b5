// SPDX-License-Identifier: GPL-2.0
/*
 * kperf: the arms of lite-perf (what it compares) that run in the kernel, for measuring only.
 *
 *	insmod kperf.ko			then "lite-perf run" has them
 *
 * They show the cost of an operation without the system call: raw verbs, as the lower bound, and
 * LITE's functions for kernel modules. The other end is "lite-perf serve" or a LITE node, as for
 * the other arms. Opening /dev/kperf (root only) allows allocating memory and connecting anywhere;
 * kperf is not installed by default, and does not belong on a production machine.
 *
 * The same code times all arms, except requests with a window: see raw.c.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/fs.h>
#include <linux/ktime.h>
#include <linux/log2.h>
#include <linux/miscdevice.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <linux/uaccess.h>
#include <linux/vmalloc.h>

#include "session.h"

static void kperf_memory_free(struct kperf_session *s)
{
	u32 i;

	for (i = 0; i < s->n_chunks; i++)
		free_pages((unsigned long)s->chunk[i],
			   get_order(s->chunk_size));
	kvfree(s->chunk);
	s->chunk = NULL;
	s->n_chunks = 0;
}

static int kperf_memory_alloc(struct kperf_session *s, u64 bytes)
{
	u32 wanted;

	s->chunk_size = max_t(u64, PAGE_SIZE,
			      min_t(u64, roundup_pow_of_two(bytes),
				    KPERF_CHUNK));
	wanted = DIV_ROUND_UP_ULL(bytes, s->chunk_size);
	s->chunk = kvcalloc(wanted, sizeof(*s->chunk), GFP_KERNEL);
	if (!s->chunk)
		return -ENOMEM;
	for (s->n_chunks = 0; s->n_chunks < wanted; s->n_chunks++) {
		unsigned long page = __get_free_pages(GFP_KERNEL | __GFP_ZERO |
						      __GFP_NOWARN,
						      get_order(s->chunk_size));

		if (!page) {
			kperf_memory_free(s);
			return -ENOMEM;
		}
		s->chunk[s->n_chunks] = (void *)page;
	}
	return 0;
}

static int kperf_nothing_connect(struct kperf_session *s,
				 const struct kperf_connect *c)
{
	return 0;
}

static int kperf_nothing_call(struct kperf_session *s, u32 op, u32 length,
			      u64 *old)
{
	return 0;
}

static void kperf_nothing_disconnect(struct kperf_session *s)
{
}

static const struct kperf_arm_ops kperf_nothing_ops = {
	.connect = kperf_nothing_connect,
	.call = kperf_nothing_call,
	.disconnect = kperf_nothing_disconnect,
};

static const struct kperf_arm_ops *kperf_arm_of(u32 arm)
{
	switch (arm) {
	case KPERF_RAW:
		return &kperf_raw_ops;
	case KPERF_EVENTS:
		return &kperf_events_ops;
	case KPERF_LITE:
		return &kperf_lite_ops;
	case KPERF_NOTHING:
		return &kperf_nothing_ops;
	default:
		return NULL;
	}
}

static int kperf_connect(struct kperf_session *s, void __user *arg)
{
	const struct kperf_arm_ops *ops;
	struct kperf_connect c;
	int err;

	if (copy_from_user(&c, arg, sizeof(c)))
		return -EFAULT;
	ops = kperf_arm_of(c.arm);
	if (!ops || c.version != KPERF_VERSION || c.reserved ||
	    c.bytes < sizeof(u64) || c.bytes > KPERF_BYTES_MAX || !c.window ||
	    c.window > KPERF_WINDOW_MAX)
		return -EINVAL;
	if (s->ops)
		return -EISCONN;
	err = kperf_memory_alloc(s, c.bytes);
	if (err)
		return err;
	s->bytes = c.bytes;
	err = ops->connect(s, &c);
	if (err) {
		kperf_memory_free(s);
		return err;
	}
	s->ops = ops;
	return 0;
}

/* Make requests one after another. @times: room for run->calls times in ns, or NULL. */
static int kperf_calls(struct kperf_session *s, struct kperf_run *run,
		       u32 *times)
{
	u64 begin, last, now = 0;
	u32 i;
	int err;

	for (i = 0; i < run->warm_up; i++) {
		err = s->ops->call(s, run->op, run->length, &run->old);
		if (err)
			return err;
	}
	begin = ktime_get_ns();
	last = begin;
	run->done = 0;
	do {
		err = s->ops->call(s, run->op, run->length, &run->old);
		if (err)
			return err;
		now = ktime_get_ns();
		if (times)
			times[run->done] = min_t(u64, now - last, U32_MAX);
		last = now;
		run->done++;
		if (signal_pending(current))
			return -EINTR;
		cond_resched();
	} while (run->done < run->calls && now - begin < run->ns);
	run->elapsed = now - begin;
	return 0;
}

static int kperf_timed_calls(struct kperf_session *s, struct kperf_run *run)
{
	u32 *times = NULL;
	int err;

	if (run->samples) {
		if (run->calls > KPERF_SAMPLES_MAX)
			return -EINVAL;
		times = kvmalloc_array(run->calls, sizeof(*times), GFP_KERNEL);
		if (!times)
			return -ENOMEM;
	}
	err = kperf_calls(s, run, times);
	if (!err && times &&
	    copy_to_user(u64_to_user_ptr(run->samples), times,
			 run->done * sizeof(*times)))
		err = -EFAULT;
	kvfree(times);
	return err;
}

static int kperf_copy(struct kperf_session *s, const struct kperf_run *run,
		      bool in)
{
	void __user *user = u64_to_user_ptr(run->data);
	unsigned long left;

	left = in ? copy_from_user(s->chunk[0], user, run->length) :
		    copy_to_user(user, s->chunk[0], run->length);
	return left ? -EFAULT : 0;
}

static int kperf_run(struct kperf_session *s, void __user *arg)
{
	struct kperf_run run;
	int err = 0;

	if (copy_from_user(&run, arg, sizeof(run)))
		return -EFAULT;
	if (!s->ops)
		return -ENOTCONN;
	if (run.op < KPERF_READ || run.op > KPERF_FETCH_ADD || !run.length ||
	    run.length > min_t(u64, s->bytes, s->chunk_size) ||
	    (run.op == KPERF_FETCH_ADD && run.length != sizeof(u64)) ||
	    !run.window || run.window > KPERF_WINDOW_MAX ||
	    (u64)run.window * run.length > s->bytes || !run.calls)
		return -EINVAL;
	if (run.window > 1 && !s->ops->stream)
		return -EOPNOTSUPP;
	if (run.data && run.op == KPERF_WRITE)
		err = kperf_copy(s, &run, true);
	if (!err)
		err = run.window > 1 ? s->ops->stream(s, &run) :
				       kperf_timed_calls(s, &run);
	if (!err && run.data && run.op == KPERF_READ)
		err = kperf_copy(s, &run, false);
	if (!err && copy_to_user(arg, &run, sizeof(run)))
		err = -EFAULT;
	return err;
}

static long kperf_ioctl(struct file *file, unsigned int cmd, unsigned long arg)
{
	struct kperf_session *s = file->private_data;
	void __user *user = (void __user *)arg;
	long err;

	if (mutex_lock_interruptible(&s->lock))
		return -EINTR;
	switch (cmd) {
	case KPERF_CONNECT:
		err = kperf_connect(s, user);
		break;
	case KPERF_RUN:
		err = kperf_run(s, user);
		break;
	default:
		err = -ENOTTY;
	}
	mutex_unlock(&s->lock);
	return err;
}

static int kperf_open(struct inode *inode, struct file *file)
{
	struct kperf_session *s = kzalloc(sizeof(*s), GFP_KERNEL);

	if (!s)
		return -ENOMEM;
	mutex_init(&s->lock);
	file->private_data = s;
	return 0;
}

static int kperf_release(struct inode *inode, struct file *file)
{
	struct kperf_session *s = file->private_data;

	if (s->ops)
		s->ops->disconnect(s);
	kperf_memory_free(s);
	mutex_destroy(&s->lock);
	kfree(s);
	return 0;
}

static const struct file_operations kperf_fops = {
	.owner = THIS_MODULE,
	.open = kperf_open,
	.release = kperf_release,
	.unlocked_ioctl = kperf_ioctl,
	.compat_ioctl = compat_ptr_ioctl,
};

static struct miscdevice kperf_device = {
	.minor = MISC_DYNAMIC_MINOR,
	.name = KPERF_DEVICE,
	.mode = 0600,
	.fops = &kperf_fops,
};
module_misc_device(kperf_device);

MODULE_DESCRIPTION("LITE beside raw verbs in the kernel: for measuring only");
MODULE_AUTHOR("The LITE authors");
MODULE_LICENSE("GPL");
