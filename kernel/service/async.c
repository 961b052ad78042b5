// SPDX-License-Identifier: GPL-2.0
/*
 * Calls that are collected later.
 *
 * Normal operation: the request is sent by the caller's thread. The reply is
 * copied out of the mirror when it comes, so that its place is free for others,
 * and waits to be collected: longer ones by a work item, not by the receive
 * handler. What did not go through the ring stays where it is.
 *
 * What runs concurrently: the end of the call (rp->lock), its time-out, those who
 * collect, the shutting of the file. A call is in file->calls until it has ended,
 * then in file->ended; whoever takes it off a list has its reference.
 */
#include <linux/mm.h>
#include <linux/slab.h>

#include "../trace.h"
#include "service.h"

/* As much is copied where the reply comes in. */
#define LITE_ASYNC_COPY PAGE_SIZE

/**
 * struct lite_async - a call to be collected
 * @call: it
 * @file: who collects it, with a reference
 * @ref: that of the list it is on; who begins it; who ends it
 * @list: in file->calls or file->ended
 * @begun: it can be abandoned; under file->lock
 * @cookie: the user's
 * @reply: room for the reply
 * @copy_work: copies a long reply
 */
struct lite_async {
	struct lite_rcall call;
	struct lite_rpc_file *file;
	struct kref ref;
	struct list_head list;
	bool begun;
	u64 cookie;
	void *reply;
	struct work_struct copy_work;
};

static void lite_async_release(struct kref *ref)
{
	struct lite_async *a = container_of(ref, struct lite_async, ref);

	if (a->call.bind)
		lite_bind_put(a->call.bind);
	lite_rcall_drop(&a->call);
	lite_rpc_file_put(a->file);
	kvfree(a->reply);
	kfree(a);
}

/* In process context, with nothing locked: it may be the last of a ring. */
static void lite_async_put(struct lite_async *a)
{
	kref_put(&a->ref, lite_async_release);
}

/*
 * From the list of calls to that of those that have ended. It may be collected,
 * and be what kept the file, as soon as the lock is free.
 */
static void lite_async_to_ended(struct lite_async *a)
{
	struct lite_rpc_file *file = a->file;

	spin_lock(&file->lock);
	list_move_tail(&a->list, &file->ended);
	wake_up_poll(&file->wait, EPOLLIN | EPOLLRDNORM);
	spin_unlock(&file->lock);
}

static void lite_async_copy_work(struct work_struct *work)
{
	struct lite_async *a = container_of(work, struct lite_async, copy_work);
	struct lite_rcall *call = &a->call;

	memcpy(a->reply, lite_rcall_reply(call), call->reply_len);
	spin_lock(&call->bind->rp->lock);
	lite_slot_free(call->bind, call->slot);
	spin_unlock(&call->bind->rp->lock);
	lite_async_to_ended(a);
	lite_async_put(a);
}

/* Under rp->lock. */
static void lite_async_ended(struct lite_rcall *call)
{
	struct lite_async *a = container_of(call, struct lite_async, call);
	bool reply = !call->err && call->status == LITE_RPC_OK &&
		     !call->by_reference;

	if (reply && call->reply_len > LITE_ASYNC_COPY) {
		kref_get(&a->ref);
		queue_work(call->svc->wq, &a->copy_work);
		return;
	}
	if (reply)
		memcpy(a->reply, lite_rcall_reply(call), call->reply_len);
	lite_slot_free(call->bind, call->slot);
	lite_async_to_ended(a);
}

/* ---- beginning ----------------------------------------------------------- */

static struct lite_async *lite_async_alloc(struct lite_rpc_file *file,
					   const struct lite_rcall *call,
					   u64 cookie)
{
	struct lite_async *a = kzalloc(sizeof(*a), GFP_KERNEL_ACCOUNT);
	u32 room = min_t(u32, call->room, LITE_RPC_BYTES_MAX);

	if (!a)
		return ERR_PTR(-ENOMEM);
	if (room)
		a->reply = kvmalloc(room, GFP_KERNEL_ACCOUNT);
	if (room && !a->reply) {
		kfree(a);
		return ERR_PTR(-ENOMEM);
	}
	a->call = *call;
	if (a->call.bulk)
		kref_get(&a->call.bulk->ref);
	a->call.ended = lite_async_ended;
	init_completion(&a->call.done);
	a->cookie = cookie;
	kref_init(&a->ref);
	kref_get(&a->ref); /* the list's, and ours */
	INIT_WORK(&a->copy_work, lite_async_copy_work);
	a->file = file;
	kref_get(&file->ref);
	return a;
}

static int lite_async_enter(struct lite_async *a)
{
	struct lite_rpc_file *file = a->file;
	int err = 0;

	spin_lock(&file->lock);
	if (READ_ONCE(file->shut))
		err = -ENODEV;
	else if (file->n_calls >= LITE_RPC_ASYNC_MAX)
		err = -EMFILE;
	if (!err) {
		file->n_calls++;
		list_add_tail(&a->list, &file->calls);
	}
	spin_unlock(&file->lock);
	return err;
}

static void lite_async_expect(struct lite_async *a)
{
	struct lite_rpc_file *file = a->file;

	spin_lock(&file->lock);
	a->begun = true;
	if (!file->expiring ||
	    time_before(a->call.deadline, file->expire_at)) {
		file->expiring = true;
		file->expire_at = a->call.deadline;
		mod_delayed_work(file->svc->wq, &file->expire,
				 lite_jiffies_left(file->expire_at));
	}
	spin_unlock(&file->lock);
}

static int lite_async_try(struct lite_rpc_file *file, struct lite_rcall *call,
			  u64 cookie)
{
	struct lite_async *a = lite_async_alloc(file, call, cookie);
	bool off = false;
	int err;

	if (IS_ERR(a))
		return PTR_ERR(a);
	err = lite_async_enter(a);
	if (err) {
		lite_async_put(a);
		lite_async_put(a);
		return err;
	}
	err = lite_rcall_begin(&a->call);
	call->missing = err && a->call.missing;
	/* That is not the reader's: the caller's stack. */
	a->call.cred = NULL;
	if (!err) {
		/* It is not sent again. */
		lite_bulk_put(a->call.bulk);
		a->call.bulk = NULL;
		lite_async_expect(a);
	} else {
		spin_lock(&file->lock);
		list_del(&a->list);
		file->n_calls--;
		off = !file->n_calls;
		spin_unlock(&file->lock);
		lite_async_put(a);
		/* Somebody may wait for the last one. */
		if (off)
			wake_up_all(&file->wait);
	}
	lite_async_put(a);
	return err;
}

/*
 * While user memory is waited for, there is no call: the node can be stopped, and
 * shutting its files waits for calls.
 */
static int lite_async_begin(struct lite_rpc_file *file, struct lite_rcall *call,
			    u64 cookie)
{
	int err = lite_rcall_prepare(call);

	while (!err) {
		call->missing = false;
		err = lite_async_try(file, call, cookie);
		if (!err || !call->missing)
			break;
		err = lite_rcall_fault_in(call);
	}
	lite_rcall_drop(call);
	return err;
}

/**
 * lite_file_call - make a call: at once, a message, or to be collected
 * @file: open file's
 * @c: what to call; results are set
 * @cred: who calls
 * @gate: the node
 *
 * Context: may sleep; killable.
 * Return: 0 or a negative errno as LITE_IOC_RPC_CALL.
 */
int lite_file_call(struct lite_rpc_file *file, struct lite_ioc_rpc_call *c,
		   const struct lite_cred *cred, struct lite_gate *gate)
{
	struct lite_buf reply = { .gate = gate, .user = true, .u = c->reply };
	struct lite_rcall call = {
		.node = c->node,
		.function = c->function,
		.registration = LITE_ANY_REGISTRATION,
		.cred = cred,
		.request = { .gate = gate, .user = true, .u = c->request },
		.length = c->request_len,
		.room = min_t(u32, c->reply_room, LITE_RPC_BULK_MAX),
		.flags = c->flags,
		.svc = file->svc,
	};
	int err;

	c->reply_len = 0;
	c->status = 0;
	if (c->flags & ~(LITE_RPC_NOWAIT | LITE_RPC_ONEWAY | LITE_RPC_ASYNC) ||
	    c->reserved)
		return -EOPNOTSUPP;
	if (!c->function || c->function > LITE_FUNCTION_MAX ||
	    c->node > LITE_NODE_ID_MAX ||
	    !lite_timeout_ok(c->timeout_ms) ||
	    (c->flags & LITE_RPC_ONEWAY && c->flags & LITE_RPC_ASYNC))
		return -EINVAL;
	if (c->request_len > LITE_RPC_BULK_MAX)
		return -E2BIG;
	if (c->flags & LITE_RPC_ONEWAY)
		call.room = 0;
	call.deadline = lite_call_deadline(c->timeout_ms, &call.flags);
	call.registration = lite_file_found(file, c->node, c->function);
	if (c->flags & LITE_RPC_ASYNC)
		return lite_async_begin(file, &call, c->cookie);
	err = lite_service_call(file->svc, &call, &reply);
	c->reply_len = call.reply_len;
	c->status = call.user;
	return err;
}

/* ---- collecting ---------------------------------------------------------- */

/* NULL: none has ended. */
static struct lite_async *lite_async_first(struct lite_rpc_file *file, u32 room,
					   int *err)
{
	struct lite_async *a;

	spin_lock(&file->lock);
	a = list_first_entry_or_null(&file->ended, struct lite_async, list);
	*err = 0;
	if (!a && !file->n_calls)
		*err = -ENOENT;
	else if (!a)
		*err = -EAGAIN;
	else if (!a->call.err && a->call.status == LITE_RPC_OK &&
		 a->call.reply_len > room)
		*err = -EMSGSIZE;
	if (a && !*err)
		list_del_init(&a->list);
	else if (a)
		kref_get(&a->ref);
	spin_unlock(&file->lock);
	return a;
}

static int lite_async_await(struct lite_rpc_file *file, unsigned long deadline)
{
	long left = lite_jiffies_left(deadline);

	left = wait_event_interruptible_timeout(
		file->wait,
		!list_empty_careful(&file->ended) ||
			!READ_ONCE(file->n_calls) ||
			READ_ONCE(file->svc->stopping),
		left);
	if (READ_ONCE(file->svc->stopping))
		return -ENODEV;
	if (left > 0)
		return 0;
	return left ? -EINTR : -ETIMEDOUT;
}

/* Its reply, as far as the user's memory is there; others may collect it else. */
static size_t lite_async_give(struct lite_async *a, const struct lite_buf *to,
			      size_t n)
{
	struct lite_rpc_file *file = a->file;
	size_t done = 0;

	if (a->call.by_reference && n) {
		/* Ours alone, since the answer came. */
		lite_bulk_unmap(a->call.reply_bulk);
		done = lite_bulk_copy_nofault(a->call.reply_bulk, to, 0, n,
					      false);
	} else if (n) {
		done = lite_buf_copy_nofault(to, 0, a->reply, n, false);
	}
	spin_lock(&file->lock);
	if (done == n) {
		file->n_calls--;
	} else {
		list_add(&a->list, &file->ended);
		wake_up_poll(&file->wait, EPOLLIN | EPOLLRDNORM);
	}
	spin_unlock(&file->lock);
	return done;
}

/**
 * lite_file_collect - a call that has ended
 * @file: open file's
 * @c: where the reply goes; results are set
 * @gate: the node
 *
 * Context: may sleep; a signal ends waiting.
 * Return: 0 or a negative errno as LITE_IOC_RPC_COLLECT.
 */
int lite_file_collect(struct lite_rpc_file *file,
		      struct lite_ioc_rpc_collect *c, struct lite_gate *gate)
{
	struct lite_buf to = { .gate = gate, .user = true, .u = c->reply };
	unsigned long deadline = lite_serve_deadline(c->timeout_ms);
	struct lite_async *a;
	int err, result;
	size_t n, done;

	if (c->flags & ~LITE_RPC_NOWAIT || c->reserved)
		return -EOPNOTSUPP;
	if (!lite_timeout_ok(c->timeout_ms))
		return -EINVAL;
again:
	for (;;) {
		a = lite_async_first(file, c->reply_room, &err);
		if (err != -EAGAIN ||
		    lite_serve_nowait(c->flags, c->timeout_ms))
			break;
		err = lite_async_await(file, deadline);
		if (err)
			return err;
	}
	if (!a)
		return err;
	result = lite_rcall_result(&a->call);
	c->reply_len = !a->call.err ? a->call.reply_len : 0;
	c->status = a->call.user;
	c->error = result;
	c->node = a->call.node;
	c->function = a->call.function;
	c->cookie = a->cookie;
	if (err) {
		/* Too long: it is still on the list. */
		lite_async_put(a);
		return err;
	}
	n = result ? 0 : c->reply_len;
	done = lite_async_give(a, &to, n);
	if (done < n) {
		/* It is not ours while user memory is waited for. */
		err = lite_user_fault_in(&to, done, n, false);
		if (err)
			return err;
		goto again;
	}
	/* Others may wait for what does not come any more. */
	wake_up_all(&file->wait);
	trace_lite_rpc(c->node, c->function, a->call.length, c->reply_len,
		       result);
	if (result == -ECONNREFUSED)
		lite_bind_close(a->call.bind);
	lite_async_put(a);
	return 0;
}

/* ---- the end ------------------------------------------------------------- */

/* One that is to be ended, with a reference; NULL: none. */
static struct lite_async *lite_async_late(struct lite_rpc_file *file, bool all)
{
	struct lite_async *a, *found = NULL;
	unsigned long next = 0;
	bool more = false;

	spin_lock(&file->lock);
	list_for_each_entry(a, &file->calls, list) {
		if (!a->begun)
			continue;
		if (all || time_after_eq(jiffies, a->call.deadline)) {
			found = a;
			kref_get(&a->ref);
			/* Once: it ends now, or is ending. */
			a->begun = false;
			break;
		}
		if (!more || time_before(a->call.deadline, next))
			next = a->call.deadline;
		more = true;
	}
	if (!found && !all) {
		file->expiring = more;
		file->expire_at = next;
		if (more)
			mod_delayed_work(file->svc->wq, &file->expire,
					 lite_jiffies_left(next));
	}
	spin_unlock(&file->lock);
	return found;
}

/**
 * lite_async_expire_work - end calls that take too long
 * @work: of a file
 */
void lite_async_expire_work(struct work_struct *work)
{
	struct lite_rpc_file *file = container_of(to_delayed_work(work),
						  struct lite_rpc_file, expire);
	struct lite_async *a;

	while ((a = lite_async_late(file, READ_ONCE(file->shut)))) {
		if (lite_rcall_abandon(&a->call, -ETIMEDOUT))
			lite_async_to_ended(a);
		lite_async_put(a);
	}
}

/**
 * lite_async_shut - nobody collects anything any more
 * @file: shut
 *
 * Context: may sleep.
 */
void lite_async_shut(struct lite_rpc_file *file)
{
	struct lite_async *a;

	cancel_delayed_work_sync(&file->expire);
	while ((a = lite_async_late(file, true))) {
		if (lite_rcall_abandon(&a->call, -ENODEV))
			lite_async_to_ended(a);
		lite_async_put(a);
	}
	/* Replies that are being copied just now. */
	wait_event(file->wait, list_empty_careful(&file->calls));
	for (;;) {
		spin_lock(&file->lock);
		a = list_first_entry_or_null(&file->ended, struct lite_async,
					     list);
		if (a) {
			list_del_init(&a->list);
			file->n_calls--;
		}
		spin_unlock(&file->lock);
		if (!a)
			return;
		lite_async_put(a);
	}
}
