// SPDX-License-Identifier: GPL-2.0
/*
 * Calls that are collected later.
 *
 * Normal operation: the caller's thread sends the request. When the reply
 * comes it is copied out of the mirror, so that its slot is free for others,
 * and is kept until it is collected. The receive handler copies short replies;
 * a work item copies longer ones. A reply that did not go through the ring
 * stays in its bulk.
 *
 * QUEUE: a call that cannot be sent at once is begun by a work item, from a
 * copy of its request. A call that is in line for room occupies no thread:
 * when it gets its slot, in_turn() queues the work again. The first such call
 * binds the ring; others wait in that ring's line. While a node is suspect the
 * work retries periodically.
 *
 * What runs concurrently: the end of the call (rp->lock), its time-out,
 * threads that collect or cancel it, begin_work, and the shutting of the file.
 * @state, under file->lock, says which of them owns the call. All but the end
 * run in process context, and any that finds a call ENDED and @dropped puts
 * it.
 */
#include <linux/memcontrol.h>
#include <linux/mm.h>
#include <linux/sched/mm.h>
#include <linux/slab.h>

#include "memory/handle/ctx.h"
#include "async.h"

/* Longest reply that the receive handler copies, in bytes. */
#define LITE_ASYNC_COPY PAGE_SIZE
/* Delay until a call to a suspect node is retried. */
#define LITE_ASYNC_AGAIN (HZ / 50)

static void lite_async_release(struct kref *ref)
{
	struct lite_async *a = container_of(ref, struct lite_async, ref);

	lite_rcall_finish(&a->call);
	lite_rcall_drop(&a->call);
	lite_rpc_file_put(a->file);
	mem_cgroup_put(a->memcg);
	kvfree(a->request);
	kvfree(a->reply);
	kfree(a);
}

/* Drop a reference. Process context, no lock held: it may be a ring's last. */
void lite_async_put(struct lite_async *a)
{
	kref_put(&a->ref, lite_async_release);
}

/* Wake the threads that collect a group. The file's lock is held. */
void lite_collectors_wake(struct lite_rpc_file *file, u32 group)
{
	struct lite_collector *c;

	lockdep_assert_held(&file->lock);
	list_for_each_entry(c, &file->collectors, list) {
		if (c->group == group)
			complete(&c->news);
	}
}

/* ---- ending -------------------------------------------------------------- */

/*
 * Move a call to the list of ended ones. Once the lock is free it may be
 * collected, and with it the file's last reference may go.
 */
static void lite_async_to_ended(struct lite_async *a)
{
	struct lite_rpc_file *file = a->file;

	spin_lock(&file->lock);
	a->state = LITE_ASYNC_ENDED;
	list_move_tail(&a->list, &file->ended);
	if (!a->dropped)
		lite_collectors_wake(file, a->group);
	if (!a->group)
		wake_up_poll(&file->wait, EPOLLIN | EPOLLRDNORM);
	spin_unlock(&file->lock);
}

/*
 * Take a call off its file, with the file's lock held. The list's reference
 * passes to the caller.
 */
void lite_async_unlist(struct lite_async *a)
{
	struct lite_rpc_file *file = a->file;

	lockdep_assert_held(&file->lock);
	list_del_init(&a->list);
	file->n_calls--;
	/* Collectors may be waiting for this call in vain. */
	lite_collectors_wake(file, a->group);
}

/*
 * Put a call that has ended and will not be collected. Called, with a
 * reference and no lock held, by all that may have ended a call or found it
 * ended.
 */
void lite_async_reap(struct lite_async *a)
{
	struct lite_rpc_file *file = a->file;
	bool mine;

	spin_lock(&file->lock);
	mine = a->dropped && a->state == LITE_ASYNC_ENDED;
	if (mine) {
		a->state = LITE_ASYNC_GIVEN;
		lite_async_unlist(a);
	}
	spin_unlock(&file->lock);
	if (mine)
		lite_async_put(a);
}

static void lite_async_copy_work(struct work_struct *work)
{
	struct lite_async *a = container_of(work, struct lite_async, copy_work);
	struct lite_rcall *call = &a->call;

	memcpy(a->reply, lite_rcall_reply(call), call->reply_len);
	lite_rcall_free_slot(call);
	lite_async_to_ended(a);
	lite_async_reap(a);
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
		spin_lock(&a->file->lock);
		a->state = LITE_ASYNC_ENDING;
		spin_unlock(&a->file->lock);
		queue_work(call->svc->wq, &a->copy_work);
		return;
	}
	if (reply)
		memcpy(a->reply, lite_rcall_reply(call), call->reply_len);
	lite_slot_free(call->ring, call->slot);
	call->slot = LITE_NO_SLOT;
	lite_async_to_ended(a);
}

/* Run begin_work now, with a reference. */
static void lite_async_kick(struct lite_async *a)
{
	kref_get(&a->ref);
	/* It was pending already, and has a reference. */
	if (mod_delayed_work(a->file->svc->begin_wq, &a->begin_work, 0))
		kref_put(&a->ref, lite_async_release);
}

/**
 * lite_async_may_end - try to become the one to end a call
 * @a: its file's lock is held
 * @err: error to end it with
 *
 * Return: true: the caller must call lite_async_end(), which drops the
 * reference that this has taken; false: the call is ending or has ended.
 */
bool lite_async_may_end(struct lite_async *a, int err)
{
	lockdep_assert_held(&a->file->lock);
	if (a->state == LITE_ASYNC_QUEUED && !a->stop)
		a->stop = err;
	else if (a->state == LITE_ASYNC_BEGUN)
		a->state = LITE_ASYNC_ENDING;
	else
		return false;
	kref_get(&a->ref);
	return true;
}

/**
 * lite_async_end - end a call
 * @a: lite_async_may_end() returned true; its reference is dropped
 * @err: as there
 *
 * Context: process; no lock is held.
 */
void lite_async_end(struct lite_async *a, int err)
{
	if (a->stop)
		lite_async_kick(a);
	else if (lite_rcall_abandon(&a->call, err))
		lite_async_to_ended(a);
	lite_async_reap(a);
	lite_async_put(a);
}

/* ---- beginning ----------------------------------------------------------- */

static void lite_async_begin_work(struct work_struct *work)
{
	struct lite_async *a = container_of(to_delayed_work(work),
					    struct lite_async, begin_work);
	struct lite_rpc_file *file = a->file;
	struct mem_cgroup *memcg;
	bool queued, mine;
	int err, stop;

	spin_lock(&file->lock);
	queued = a->state == LITE_ASYNC_QUEUED;
	err = a->stop;
	spin_unlock(&file->lock);
	if (!queued)
		goto put;
	if (err) {
		lite_rcall_unqueue(&a->call);
	} else {
		memcg = set_active_memcg(a->memcg);
		err = lite_rcall_begin(&a->call);
		set_active_memcg(memcg);
	}
	/* In line: lite_async_in_turn() will be called, or has been. */
	if (err == -EINPROGRESS)
		goto put;
	/* The reference passes to the work, unless it is pending already. */
	if (err == -ESTALE &&
	    queue_delayed_work(file->svc->begin_wq, &a->begin_work,
			       LITE_ASYNC_AGAIN))
		return;
	if (err == -ESTALE)
		goto put;
	if (!err) {
		/* It is not sent again. */
		lite_bulk_put(a->call.bulk);
		a->call.bulk = NULL;
	}
	spin_lock(&file->lock);
	stop = a->stop;
	/* Otherwise the call has ended. */
	mine = a->state == LITE_ASYNC_QUEUED;
	if (mine)
		a->state = err || stop ? LITE_ASYNC_ENDING : LITE_ASYNC_BEGUN;
	spin_unlock(&file->lock);
	if (err) {
		a->call.err = err;
		lite_async_to_ended(a);
	} else if (mine && stop && lite_rcall_abandon(&a->call, stop)) {
		lite_async_to_ended(a);
	}
	lite_async_reap(a);
put:
	lite_async_put(a);
}

/* Under rp->lock. */
static void lite_async_in_turn(struct lite_rcall *call)
{
	lite_async_kick(container_of(call, struct lite_async, call));
}

static struct lite_async *lite_async_alloc(struct lite_rpc_file *file,
					   const struct lite_rcall *call,
					   const struct lite_ioc_rpc_call *c)
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
	a->group = c->group;
	a->owner = current->files;
	a->number = atomic64_inc_return(&file->svc->seqs);
	a->cookie = c->cookie;
	a->to = c->reply;
	kref_init(&a->ref);
	kref_get(&a->ref); /* the list's, and ours */
	INIT_WORK(&a->copy_work, lite_async_copy_work);
	INIT_DELAYED_WORK(&a->begin_work, lite_async_begin_work);
	a->file = file;
	kref_get(&file->ref);
	return a;
}

static int lite_async_enter(struct lite_async *a, enum lite_async_state state)
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
		a->state = state;
		list_add_tail(&a->list, &file->calls);
	}
	spin_unlock(&file->lock);
	/* The list's reference. */
	if (err)
		lite_async_put(a);
	return err;
}

/* Start the call's time-out. */
static void lite_async_expect(struct lite_async *a)
{
	struct lite_rpc_file *file = a->file;

	spin_lock(&file->lock);
	if (a->state == LITE_ASYNC_NEW)
		a->state = LITE_ASYNC_BEGUN;
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
			  const struct lite_ioc_rpc_call *c)
{
	struct lite_async *a = lite_async_alloc(file, call, c);
	int err;

	if (IS_ERR(a))
		return PTR_ERR(a);
	err = lite_async_enter(a, LITE_ASYNC_NEW);
	if (err)
		goto put;
	err = lite_rcall_begin(&a->call);
	call->missing = err && a->call.missing;
	/* It points to the caller's stack. */
	a->call.cred = NULL;
	if (!err) {
		/* It is not sent again. */
		lite_bulk_put(a->call.bulk);
		a->call.bulk = NULL;
		lite_async_expect(a);
	} else {
		spin_lock(&file->lock);
		lite_async_unlist(a);
		spin_unlock(&file->lock);
		lite_async_put(a);
	}
put:
	lite_async_put(a);
	return err;
}

/* Copy a request; NULL: there is nothing to copy. */
static void *lite_async_copy(const struct lite_rcall *call)
{
	size_t done = 0, n = call->bulk ? 0 : call->length;
	void *request;
	int err = 0;

	if (!n)
		return NULL;
	request = kvmalloc(n, GFP_KERNEL_ACCOUNT);
	if (!request)
		return ERR_PTR(-ENOMEM);
	while (done < n && !err) {
		done += lite_buf_copy_nofault(&call->request, done,
					      request + done, n - done, true);
		if (done < n)
			err = lite_user_fault_in(&call->request, done, n, true);
	}
	if (!err)
		return request;
	kvfree(request);
	return ERR_PTR(err);
}

/* Queue a call for begin_work, which can use nothing of the caller's. */
static int lite_async_queue(struct lite_rpc_file *file,
			    const struct lite_rcall *call,
			    const struct lite_ioc_rpc_call *c)
{
	void *request = lite_async_copy(call);
	struct lite_async *a;
	int err;

	if (IS_ERR(request))
		return PTR_ERR(request);
	a = lite_async_alloc(file, call, c);
	if (IS_ERR(a)) {
		kvfree(request);
		return PTR_ERR(a);
	}
	a->request = request;
	a->memcg = get_mem_cgroup_from_mm(current->mm);
	a->cred = *call->cred;
	a->call.cred = &a->cred;
	a->call.request = (struct lite_buf){ .k = request };
	a->call.in_turn = lite_async_in_turn;
	err = lite_async_enter(a, LITE_ASYNC_QUEUED);
	if (!err) {
		lite_async_expect(a);
		lite_async_kick(a);
	}
	lite_async_put(a);
	return err;
}

/*
 * No call is listed while user memory is waited for: the node may be stopped
 * meanwhile, and shutting its files waits for calls.
 */
static int lite_async_begin(struct lite_rpc_file *file, struct lite_rcall *call,
			    const struct lite_ioc_rpc_call *c)
{
	u32 flags = call->flags;
	int err = lite_rcall_prepare(call);

	if (flags & LITE_RPC_QUEUE)
		call->flags |= LITE_RPC_NOWAIT | LITE_RCALL_TRY;
	while (!err) {
		call->missing = false;
		err = lite_async_try(file, call, c);
		if (!err || !call->missing)
			break;
		err = lite_rcall_fault_in(call);
	}
	call->flags = flags;
	if (err == -EAGAIN && flags & LITE_RPC_QUEUE)
		err = lite_async_queue(file, call, c);
	lite_rcall_drop(call);
	return err;
}

static int lite_file_call_check(const struct lite_ioc_rpc_call *c)
{
	u32 how = c->flags & (LITE_RPC_ONEWAY | LITE_RPC_ASYNC);

	if (c->flags & ~(LITE_RPC_NOWAIT | LITE_RPC_ONEWAY | LITE_RPC_ASYNC |
			 LITE_RPC_QUEUE))
		return -EOPNOTSUPP;
	if (!c->function || c->function > LITE_FUNCTION_MAX ||
	    c->node > LITE_NODE_ID_MAX || !lite_timeout_ok(c->timeout_ms) ||
	    how == (LITE_RPC_ONEWAY | LITE_RPC_ASYNC))
		return -EINVAL;
	if (!(how & LITE_RPC_ASYNC) &&
	    (c->group || c->flags & LITE_RPC_QUEUE))
		return -EINVAL;
	return c->request_len > LITE_RPC_BULK_MAX ? -E2BIG : 0;
}

/**
 * lite_file_call - make a call or send a message, or begin a call to be
 * collected
 * @file: the open file
 * @c: what to call; the results are set
 * @cred: the caller's credentials
 * @gate: the node's gate
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
	int err = lite_file_call_check(c);

	c->reply_len = 0;
	c->status = 0;
	if (err)
		return err;
	if (c->flags & LITE_RPC_ONEWAY)
		call.room = 0;
	call.deadline = lite_call_deadline(c->timeout_ms, &call.flags);
	call.registration = lite_file_found(file, c->node, c->function);
	if (c->flags & LITE_RPC_ASYNC)
		return lite_async_begin(file, &call, c);
	err = lite_service_call(file->svc, &call, &reply);
	c->reply_len = call.reply_len;
	c->status = call.user;
	return err;
}

