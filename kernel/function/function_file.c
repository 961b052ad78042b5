// SPDX-License-Identifier: GPL-2.0
/*
 * RPC state of an open file. It ends with the file; but the requests that a process has taken end
 * when it exits, or closes the file by execve(2), even if other processes have the file open.
 */
#include <linux/slab.h>

#include "service.h"

/* Drop a reference; the last one only after lite_rpc_file_shut(). Context: any. */
void lite_rpc_file_put(struct lite_rpc_file *file)
{
	if (refcount_dec_and_test(&file->ref)) {
		xa_destroy(&file->found);
		kfree(file);
	}
}

static void lite_rpc_file_wake_work(struct work_struct *work)
{
	struct lite_rpc_file *file = container_of(work, struct lite_rpc_file, wake_work);

	wake_up_interruptible_poll(&file->wait, EPOLLIN | EPOLLRDNORM);
	lite_rpc_file_put(file);
}

/* Does exactly one thread wait? An epoll instance is not one: any number may wait for it. */
static bool lite_rpc_file_has_one(struct lite_rpc_file *file)
{
	struct wait_queue_entry *first;
	unsigned long flags;
	bool one = false;

	spin_lock_irqsave(&file->wait.lock, flags);
	if (list_is_singular(&file->wait.head)) {
		first = list_first_entry(&file->wait.head, struct wait_queue_entry, entry);
		one = first->private;
	}
	spin_unlock_irqrestore(&file->wait.lock, flags);
	return one;
}

/*
 * Wake all threads in poll(2). A single one is woken here; a work item wakes more, as callers hold
 * spinlocks. The caller has a reference, or a lock that keeps the last one. Process context;
 * receive handlers.
 */
void lite_rpc_file_wake(struct lite_rpc_file *file)
{
	if (!wq_has_sleeper(&file->wait))
		return;
	if (lite_rpc_file_has_one(file)) {
		wake_up_interruptible_poll(&file->wait, EPOLLIN | EPOLLRDNORM);
		return;
	}
	refcount_inc(&file->ref);
	if (!queue_work(file->svc->wq[LITE_WQ_CALLS], &file->wake_work))
		lite_rpc_file_put(file);
}

/* May sleep. Return: the state, with a reference, for lite_rpc_file_shut() and _put(); or NULL. */
struct lite_rpc_file *lite_rpc_file_new(struct lite_service *svc)
{
	struct lite_rpc_file *file = kzalloc(sizeof(*file), GFP_KERNEL_ACCOUNT);

	if (!file)
		return NULL;
	file->svc = svc;
	refcount_set(&file->ref, 2); /* one is the list's */
	INIT_LIST_HEAD(&file->servers);
	INIT_LIST_HEAD(&file->taken);
	INIT_LIST_HEAD(&file->waiters);
	init_waitqueue_head(&file->wait);
	INIT_WORK(&file->wake_work, lite_rpc_file_wake_work);
	spin_lock_init(&file->lock);
	INIT_LIST_HEAD(&file->calls);
	lite_line_init(&file->begun);
	lite_line_init(&file->ended);
	lite_line_init(&file->collectors);
	xa_init_flags(&file->found, XA_FLAGS_ACCOUNT);
	spin_lock(&svc->lock);
	list_add(&file->list, &svc->files);
	spin_unlock(&svc->lock);
	return file;
}

static unsigned long lite_found_key(u32 node, u32 function)
{
	return (unsigned long)node << 16 | function;
}

static int lite_found_enter(struct lite_rpc_file *file, u32 node, u32 function, u64 cookie)
{
	unsigned long key = lite_found_key(node, function);
	void *was, *entry = xa_mk_value(cookie & LITE_FOUND_COOKIE);
	int err = 0;

	xa_lock(&file->found);
	was = xa_load(&file->found, key);
	if (!was && file->n_found >= LITE_FOUND_MAX) {
		err = -EMFILE;
	} else {
		err = xa_err(__xa_store(&file->found, key, entry, GFP_KERNEL));
		/* __xa_store() may have dropped the lock to allocate: n_found can be too high. */
		if (!err && !was)
			file->n_found++;
	}
	xa_unlock(&file->found);
	return err;
}

/*
 * Find the function that @f gives by node and name, or node and number. If it is found by name,
 * later calls of this open file to that node and number are for this registration only, and fail if
 * the number is registered anew, perhaps by another user. May sleep; killable. Return: 0 or a
 * negative errno as LITE_IOC_RPC_FIND.
 */
int lite_file_find(struct lite_rpc_file *file, struct lite_ioc_rpc_find *f)
{
	u64 cookie;
	bool here;
	int err = lite_service_find(file->svc, f, &cookie, &here);

	if (err || !f->name[0])
		return err;
	/* This node is 0, too: a join gives it another id, and may give away its old id. */
	if (here)
		err = lite_found_enter(file, 0, f->function, cookie);
	return err || !f->node ? err : lite_found_enter(file, f->node, f->function, cookie);
}

/* lite_rcall.registration for a file's calls to a function. @node 0: this one. Process context. */
static u64 lite_file_found(struct lite_rpc_file *file, u32 node, u32 function)
{
	void *entry = NULL;

	if (xa_empty(&file->found))
		return LITE_ANY_REGISTRATION;
	/* Look under 0 first: what was found by this node's id may be older. */
	if (node == lite_cluster_id(file->svc->cl))
		entry = xa_load(&file->found, lite_found_key(0, function));
	if (!entry)
		entry = xa_load(&file->found, lite_found_key(node, function));
	return entry ? xa_to_value(entry) : LITE_ANY_REGISTRATION;
}

static int lite_file_call_check(const struct lite_ioc_rpc_call *c)
{
	u32 how = c->flags & (LITE_RPC_ONEWAY | LITE_RPC_ASYNC);

	if (c->flags & ~(LITE_RPC_NOWAIT | LITE_RPC_ONEWAY | LITE_RPC_ASYNC | LITE_RPC_QUEUE))
		return -EOPNOTSUPP;
	if (!c->function || c->function > LITE_FUNCTION_MAX || c->node > LITE_NODE_ID_MAX ||
	    !lite_timeout_ok(c->timeout_ms) || how == (LITE_RPC_ONEWAY | LITE_RPC_ASYNC))
		return -EINVAL;
	if (!(how & LITE_RPC_ASYNC) && (c->group || c->flags & LITE_RPC_QUEUE))
		return -EINVAL;
	return c->request_len > LITE_RPC_BULK_MAX ? -E2BIG : 0;
}

/*
 * Make a call, send a message or begin a call to be collected, and set the results in @c. May
 * sleep; killable. Return: 0 or a negative errno as LITE_IOC_RPC_CALL.
 */
int lite_file_call(struct lite_rpc_file *file, struct lite_ioc_rpc_call *c,
		   const struct lite_cred *cred, struct lite_gate *gate, u8 prio)
{
	struct lite_buf reply = { .gate = gate, .user = true, .u = c->reply };
	struct lite_rcall call = {
		.node = c->node,
		.function = c->function,
		.cred = cred,
		.request = { .gate = gate, .user = true, .u = c->request },
		.length = c->request_len,
		.room = min_t(u32, c->reply_room, LITE_RPC_BULK_MAX),
		.flags = c->flags,
		.prio = prio,
		.slot = LITE_NO_SLOT,
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
	err = lite_service_call(&call, &reply);
	c->reply_len = call.reply_len;
	c->status = call.user;
	return err;
}

/*
 * Reset the requests that process @owner has taken, or all if it is NULL. There may be many.
 * Preemption is off, as their callers must not depend on a thread that may get no processor.
 */
static void lite_rpc_file_reset(struct lite_rpc_file *file, const void *owner)
{
	struct lite_request *req, *tmp;
	LIST_HEAD(todo);

	preempt_disable();
	spin_lock(&file->svc->lock);
	list_for_each_entry_safe(req, tmp, &file->taken, list) {
		if (!owner || req->owner == owner)
			list_move_tail(&req->list, &todo);
	}
	while (!list_empty(&todo)) {
		req = list_first_entry(&todo, struct lite_request, list);
		list_del(&req->list);
		req->file = NULL;
		lite_request_answer(req, LITE_RPC_RESET, 0, 0);
		spin_unlock(&file->svc->lock);
		spin_lock(&file->svc->lock);
	}
	spin_unlock(&file->svc->lock);
	preempt_enable();
}

/* Process @owner (its files_struct) exits or execs: end its requests and calls. Process context. */
void lite_rpc_file_flush(struct lite_rpc_file *file, const void *owner)
{
	lite_rpc_file_reset(file, owner);
	lite_async_cancel(file, NULL, owner);
}

/* Stop serving and calling through a file, but only once. The caller has a reference. May sleep. */
void lite_rpc_file_shut(struct lite_rpc_file *file)
{
	struct lite_service *svc = file->svc;
	bool first;

	spin_lock(&svc->lock);
	first = !file->shut;
	file->shut = true;
	if (first)
		list_del(&file->list);
	spin_unlock(&svc->lock);
	if (!first)
		return;
	lite_rpc_file_reset(file, NULL);
	while (!lite_func_unregister(file, 0, true))
		;
	lite_async_cancel(file, NULL, NULL);
	lite_rpc_file_put(file); /* the list's */
}

static bool lite_rpc_file_has_request(struct lite_rpc_file *file)
{
	struct lite_server *s;
	bool has = false;

	spin_lock(&file->svc->lock);
	list_for_each_entry(s, &file->servers, of_file) {
		if (!list_empty(&s->func->queue))
			has = true;
	}
	spin_unlock(&file->svc->lock);
	return has;
}

/* Has a call of group 0 ended? Process context. */
static bool lite_rpc_file_has_ended(struct lite_rpc_file *file)
{
	bool has;

	/* The lock orders this after poll_wait(), which need not be a barrier. */
	spin_lock(&file->lock);
	has = lite_line_first(&file->ended, 0);
	spin_unlock(&file->lock);
	return has;
}

/*
 * poll(2). May sleep; active on the node. Return: EPOLLIN: a request can be received or a call
 * collected; EPOLLERR and EPOLLHUP: the node is stopping.
 */
__poll_t lite_rpc_file_poll(struct lite_rpc_file *file, struct file *filp, poll_table *table)
{
	/* Queue first, then check: pairs with wq_has_sleeper(). */
	poll_wait(filp, &file->wait, table);
	if (READ_ONCE(file->svc->stopping))
		return EPOLLERR | EPOLLHUP;
	if (lite_rpc_file_has_ended(file) || lite_rpc_file_has_request(file))
		return EPOLLIN | EPOLLRDNORM;
	return 0;
}
