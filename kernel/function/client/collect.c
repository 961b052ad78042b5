// SPDX-License-Identifier: GPL-2.0
/*
 * Collecting calls, and ending those that will not be collected.
 *
 * While a collector waits for user memory the call is back on the list:
 * another thread may collect it, and the node may be stopped.
 */
#include <linux/slab.h>

#include "memory/handle/ctx.h"
#include "async.h"
#include "trace.h"

/* ---- collecting ---------------------------------------------------------- */

/* ERR_PTR: -EAGAIN: none has ended; -ENOENT: none is in flight. */
static struct lite_async *lite_async_first(struct lite_rpc_file *file,
					   u32 group)
{
	struct lite_async *a;

	lockdep_assert_held(&file->lock);
	list_for_each_entry(a, &file->ended, list) {
		if (a->group == group && !a->dropped)
			return a;
	}
	list_for_each_entry(a, &file->calls, list) {
		if (a->group == group && !a->dropped)
			return ERR_PTR(-EAGAIN);
	}
	return ERR_PTR(-ENOENT);
}

/* Does poll(2) have a call to report? Process context. */
bool lite_async_ready(struct lite_rpc_file *file)
{
	bool ready;

	if (list_empty_careful(&file->ended))
		return false;
	spin_lock(&file->lock);
	ready = !IS_ERR(lite_async_first(file, 0));
	spin_unlock(&file->lock);
	return ready;
}

/* Wait for news of a group. Drops file->lock while it sleeps. */
static int lite_async_await(struct lite_rpc_file *file, u32 group,
			    unsigned long deadline)
	__must_hold(&file->lock)
{
	struct lite_collector c = {
		.group = group,
		.news = COMPLETION_INITIALIZER_ONSTACK(c.news),
	};
	struct lite_pace_wait wait;
	long ret;

	lite_pace_begin(&file->collect_pace, &wait,
			!list_empty(&file->collectors));
	list_add(&c.list, &file->collectors);
	spin_unlock(&file->lock);
	ret = lite_poller_await(&file->svc->fab->poller, &c.news, wait.awake_ns,
				TASK_INTERRUPTIBLE,
				lite_jiffies_left(deadline));
	lite_pace_end(&file->collect_pace, &wait);
	spin_lock(&file->lock);
	list_del(&c.list);
	if (ret > 0)
		return 0;
	return ret ? -EINTR : -ETIMEDOUT;
}

/* Take a call that has ended; the caller owns it then. */
static struct lite_async *lite_async_take(struct lite_rpc_file *file,
					  const struct lite_ioc_rpc_collect *c,
					  unsigned long deadline)
{
	bool nowait = lite_serve_nowait(c->flags, c->timeout_ms);
	struct lite_async *a;
	int err = 0;

	spin_lock(&file->lock);
	for (;;) {
		a = lite_async_first(file, c->group);
		if (a != ERR_PTR(-EAGAIN) || nowait || err)
			break;
		/* @stopping is set before collectors are woken. */
		err = READ_ONCE(file->svc->stopping) ?
			      -ENODEV :
			      lite_async_await(file, c->group, deadline);
	}
	if (!IS_ERR(a)) {
		a->state = LITE_ASYNC_GIVEN;
		list_move_tail(&a->list, &file->calls);
	} else if (err) {
		a = ERR_PTR(err);
	}
	spin_unlock(&file->lock);
	return a;
}

/* Finish a taken call or, if not @done, return it to be collected again. */
static void lite_async_untake(struct lite_async *a, bool done)
{
	struct lite_rpc_file *file = a->file;

	spin_lock(&file->lock);
	if (done) {
		lite_async_unlist(a);
	} else {
		a->state = LITE_ASYNC_ENDED;
		list_move(&a->list, &file->ended);
		lite_collectors_wake(file, a->group);
		if (!a->group)
			wake_up_poll(&file->wait, EPOLLIN | EPOLLRDNORM);
		kref_get(&a->ref);
	}
	spin_unlock(&file->lock);
	lite_async_reap(a);
	lite_async_put(a);
}

/* Copy as much of the reply as the user memory present takes; return bytes. */
static size_t lite_async_give(struct lite_async *a, const struct lite_buf *to,
			      size_t n)
{
	if (!n)
		return 0;
	if (!a->call.by_reference)
		return lite_buf_copy_nofault(to, 0, a->reply, n, false);
	/* Only the call uses it since the answer came. */
	lite_bulk_unmap(a->call.reply_bulk);
	return lite_bulk_copy_nofault(a->call.reply_bulk, to, 0, n, false);
}

static void lite_async_tell(const struct lite_async *a,
			    struct lite_ioc_rpc_collect *c)
{
	const struct lite_rcall *call = &a->call;

	c->error = lite_rcall_result(call);
	c->reply_len = !call->err ? call->reply_len : 0;
	c->status = call->user;
	c->node = call->node;
	c->function = call->function;
	c->cookie = a->cookie;
}

static int lite_async_collect(struct lite_rpc_file *file,
			      struct lite_ioc_rpc_collect *c,
			      struct lite_gate *gate, unsigned long deadline)
{
	struct lite_buf to = { .gate = gate, .user = true, .u = c->reply };
	bool into = c->flags & LITE_RPC_INTO;
	u64 lost = 0, number;
	struct lite_async *a;
	size_t n, done;
	int err;

	do {
		a = lite_async_take(file, c, deadline);
		if (IS_ERR(a))
			return PTR_ERR(a);
		lite_async_tell(a, c);
		n = c->error ? 0 : c->reply_len;
		if (into)
			to.u = a->to;
		if (!into && n > c->reply_room) {
			lite_async_untake(a, false);
			return -EMSGSIZE;
		}
		done = lite_async_give(a, &to, n);
		if (done < n && a->number == lost) {
			c->error = -EFAULT;
			c->reply_len = 0;
			n = done;
		}
		if (done == n)
			break;
		/* Do not own it while user memory is waited for. */
		number = a->number;
		lite_async_untake(a, false);
		err = lite_user_fault_in(&to, done, n, false);
		if (err == -EFAULT && into) {
			/* Ends with -EFAULT if we take this call again. */
			lost = number;
			err = 0;
		}
	} while (!err);
	if (done < n)
		return err;
	trace_lite_rpc(c->node, c->function, a->call.length, c->reply_len,
		       c->error);
	lite_async_untake(a, true);
	return 0;
}

/* ---- dropping ------------------------------------------------------------ */

/* Is it of a group, or of a process? NULL and NULL: any call. */
static bool lite_async_is_of(const struct lite_async *a, const u32 *group,
			     const void *owner)
{
	if (group)
		return a->group == *group;
	return !owner || (a->group && a->owner == owner);
}

/*
 * Drop one call: either to be ended, see lite_async_may_end(), or already
 * ended and off the list.
 */
static struct lite_async *lite_async_drop(struct lite_rpc_file *file,
					  const u32 *group, const void *owner,
					  bool *ended)
{
	struct lite_async *a, *found = NULL;

	spin_lock(&file->lock);
	*ended = false;
	list_for_each_entry(a, &file->calls, list) {
		/* A NEW call was begun concurrently with this. */
		if (!lite_async_is_of(a, group, owner) ||
		    a->state == LITE_ASYNC_NEW)
			continue;
		a->dropped = true;
		if (lite_async_may_end(a, -ECANCELED)) {
			found = a;
			goto unlock;
		}
	}
	list_for_each_entry(a, &file->ended, list) {
		if (!lite_async_is_of(a, group, owner))
			continue;
		a->state = LITE_ASYNC_GIVEN;
		lite_async_unlist(a);
		*ended = true;
		found = a;
		break;
	}
unlock:
	spin_unlock(&file->lock);
	return found;
}

/* Does not wait for calls that are being begun or copied. */
static void lite_async_cancel(struct lite_rpc_file *file, const u32 *group,
			      const void *owner)
{
	struct lite_async *a;
	bool ended;

	while ((a = lite_async_drop(file, group, owner, &ended))) {
		if (ended)
			lite_async_put(a);
		else
			lite_async_end(a, -ECANCELED);
	}
}

/**
 * lite_file_collect - collect a call that has ended, or cancel a group
 * @file: the open file
 * @c: where the reply goes; the results are set
 * @gate: the node's gate
 *
 * Context: may sleep; interruptible.
 * Return: 0 or a negative errno as LITE_IOC_RPC_COLLECT.
 */
int lite_file_collect(struct lite_rpc_file *file,
		      struct lite_ioc_rpc_collect *c, struct lite_gate *gate)
{
	unsigned long deadline = lite_serve_deadline(c->timeout_ms);

	if (c->flags & ~(LITE_RPC_NOWAIT | LITE_RPC_INTO | LITE_RPC_CANCEL))
		return -EOPNOTSUPP;
	if (!lite_timeout_ok(c->timeout_ms))
		return -EINVAL;
	if (!(c->flags & LITE_RPC_CANCEL))
		return lite_async_collect(file, c, gate, deadline);
	lite_async_cancel(file, &c->group, NULL);
	return 0;
}

/* Find a call past its deadline, see lite_async_may_end(); NULL: none. */
static struct lite_async *lite_async_late(struct lite_rpc_file *file)
{
	struct lite_async *a, *found = NULL;
	unsigned long next = 0;
	bool more = false;

	spin_lock(&file->lock);
	list_for_each_entry(a, &file->calls, list) {
		if (a->state != LITE_ASYNC_BEGUN &&
		    (a->state != LITE_ASYNC_QUEUED || a->stop))
			continue;
		if (time_after_eq(jiffies, a->call.deadline)) {
			lite_async_may_end(a, -ETIMEDOUT);
			found = a;
			break;
		}
		if (!more || time_before(a->call.deadline, next))
			next = a->call.deadline;
		more = true;
	}
	if (!found) {
		file->expiring = more;
		file->expire_at = next;
		if (more)
			mod_delayed_work(file->svc->wq, &file->expire,
					 lite_jiffies_left(next));
	}
	spin_unlock(&file->lock);
	return found;
}

/* End a file's calls that are past their deadline. */
void lite_async_expire_work(struct work_struct *work)
{
	struct lite_rpc_file *file = container_of(to_delayed_work(work),
						  struct lite_rpc_file, expire);
	struct lite_async *a;

	while ((a = lite_async_late(file)))
		lite_async_end(a, -ETIMEDOUT);
}

/*
 * Cancel the calls in groups of a process, by its files_struct, when it has
 * gone. May sleep.
 */
void lite_async_flush(struct lite_rpc_file *file, const void *owner)
{
	lite_async_cancel(file, NULL, owner);
}

/* Wake all threads in COLLECT; the node is @stopping already. */
void lite_async_stop(struct lite_rpc_file *file)
{
	struct lite_collector *c;

	spin_lock(&file->lock);
	list_for_each_entry(c, &file->collectors, list)
		complete(&c->news);
	spin_unlock(&file->lock);
}

/*
 * Cancel all calls of a file that is shut. May sleep. A call that is just
 * ending may remain; it has a reference to the file.
 */
void lite_async_shut(struct lite_rpc_file *file)
{
	lite_async_cancel(file, NULL, NULL);
	/* No call is begun any more that would queue it again. */
	cancel_delayed_work_sync(&file->expire);
}
