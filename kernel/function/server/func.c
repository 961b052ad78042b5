// SPDX-License-Identifier: GPL-2.0
/*
 * Functions: their servers, and the dispatch of requests.
 *
 * Normal operation: a request is handed to a waiting thread, or queued in order of arrival. The
 * open files that serve a function take turns. Of the waiting threads of a file the latest is
 * chosen, as it is the most likely to be awake.
 *
 * When its last server goes, a function is dead: it leaves the table, queued requests are refused,
 * and its clients are told (GONE). A ring that its client has not given back yet moves to the next
 * function of that number if that is alike (lite_ring_func()).
 */
#include <linux/slab.h>

#include "function/service.h"

/* First of the numbers given to functions that ask for none. */
#define LITE_FUNCTION_ANY 32768

/* Drop a reference. Context: any. */
void lite_func_put(struct lite_func *func)
{
	if (refcount_dec_and_test(&func->ref)) {
		lite_stat_dec(func->svc->stats, LITE_STAT_FUNCTIONS);
		kfree(func);
	}
}

LITE_TREE(lite_func_tree, struct lite_func, by_name, name, strcmp(key, has))

static struct lite_func *lite_func_by_name(struct lite_service *svc, const char *name)
{
	lockdep_assert_held(&svc->lock);
	return lite_func_tree_find(name, &svc->names);
}

/*
 * Find a function of this node by its number or, if that is 0, by its name, which has been checked.
 * Process context. Return: the function, with a reference, or NULL.
 */
struct lite_func *lite_func_find(struct lite_service *svc, u32 number, const char *name)
{
	struct lite_func *func;

	spin_lock(&svc->lock);
	func = number ? xa_load(&svc->functions, number) : lite_func_by_name(svc, name);
	if (func)
		refcount_inc(&func->ref);
	spin_unlock(&svc->lock);
	return func;
}

static struct lite_recv_waiter *lite_waiter_first(struct list_head *waiters)
{
	return list_first_entry_or_null(waiters, struct lite_recv_waiter, list);
}

static struct lite_recv_waiter *lite_func_waiter(struct lite_func *func)
{
	struct lite_recv_waiter *w;
	struct lite_server *s;

	list_for_each_entry(s, &func->servers, of_func) {
		w = lite_waiter_first(&s->waiters) ?: lite_waiter_first(&s->file->waiters);
		if (w) {
			list_move_tail(&s->of_func, &func->servers);
			return w;
		}
	}
	return NULL;
}

/* Hand queued requests to waiters. @func is not dead. Process context; receive handlers. */
static void lite_func_serve(struct lite_func *func)
{
	struct lite_recv_waiter *w;
	struct lite_request *req;
	struct lite_server *s;

	lockdep_assert_held(&func->svc->lock);
	while (!list_empty(&func->queue) && (w = lite_func_waiter(func))) {
		req = list_first_entry(&func->queue, struct lite_request, list);
		list_del(&req->list);
		req->state = LITE_REQ_BUSY;
		list_del(&w->list);
		w->req = req;
		/* @w stays valid: its thread takes svc->lock before it returns. */
		complete(&w->done);
	}
	if (list_empty(&func->queue))
		return;
	list_for_each_entry(s, &func->servers, of_func)
		lite_rpc_file_wake(s->file);
}

/*
 * Hand a request that is in no list to a waiter, or queue it; @first: it had been taken, and was
 * given back. @func is not dead; svc->lock is held. Process context; receive handlers.
 */
void lite_func_queue(struct lite_func *func, struct lite_request *req, bool first)
{
	lockdep_assert_held(&func->svc->lock);
	if (func->handler) {
		lite_kfunc_queue(func, req, false);
		return;
	}
	req->state = LITE_REQ_QUEUED;
	if (first)
		list_add(&req->list, &func->queue);
	else
		list_add_tail(&req->list, &func->queue);
	lite_func_serve(func);
}

static bool lite_func_is_long(const struct lite_func *func)
{
	return lite_rpc_has_lists(func->max_request, func->max_reply);
}

/*
 * No server is left. The caller then drops svc->lock and calls lite_func_ended(); nothing is queued
 * meanwhile.
 */
static void lite_func_end(struct lite_func *func)
{
	struct lite_service *svc = func->svc;
	struct lite_ring *ring;

	lockdep_assert_held(&svc->lock);
	func->dead = true;
	list_for_each_entry(ring, &func->rings, of_func)
		lite_ring_tell_gone(ring);
	xa_erase(&svc->functions, func->number);
	if (func->name[0])
		rb_erase(&func->by_name, &svc->names);
	lite_pool_give(&svc->pools[LITE_POOL_FUNCTIONS], func->uid, 1);
}

/* Refuse queued requests, put the table's reference. Preemption is off: lite_rpc_file_reset(). */
static void lite_func_ended(struct lite_func *func)
{
	struct lite_service *svc = func->svc;
	struct lite_request *req;

	preempt_disable();
	do {
		spin_lock(&svc->lock);
		req = list_first_entry_or_null(&func->queue, struct lite_request, list);
		if (req) {
			list_del(&req->list);
			lite_request_answer(req, LITE_RPC_REFUSED, 0, 0);
		}
		spin_unlock(&svc->lock);
	} while (req);
	preempt_enable();
	lite_func_put(func);
}

/* End the wait of the first of @waiters, if any. Return: was there one? */
static bool lite_waiter_end(struct list_head *waiters, int err)
{
	struct lite_recv_waiter *w = lite_waiter_first(waiters);

	if (!w)
		return false;
	list_del(&w->list);
	w->err = err;
	complete(&w->done);
	return true;
}

static bool lite_func_stop_one(struct lite_rpc_file *file)
{
	struct lite_server *s;

	lockdep_assert_held(&file->svc->lock);
	if (lite_waiter_end(&file->waiters, -ENODEV))
		return true;
	list_for_each_entry(s, &file->servers, of_file) {
		if (lite_waiter_end(&s->waiters, -ENODEV))
			return true;
	}
	return false;
}

/* End the waits of all threads of a file, which may be many; the node is @stopping already. */
void lite_func_stop(struct lite_rpc_file *file)
{
	struct lite_service *svc = file->svc;
	bool more;

	do {
		spin_lock(&svc->lock);
		more = lite_func_stop_one(file);
		spin_unlock(&svc->lock);
		cond_resched();
	} while (more);
}

/* Return: the function, if this was its last server: the caller calls lite_func_ended(). */
static struct lite_func *lite_server_end(struct lite_server *s)
{
	struct lite_func *func = s->func;

	lockdep_assert_held(&func->svc->lock);
	list_del(&s->of_func);
	func->n_servers--;
	list_del(&s->of_file);
	s->file->n_servers--;
	WRITE_ONCE(s->file->n_long, s->file->n_long - lite_func_is_long(func));
	if (!s->file->n_servers)
		list_splice_init(&s->file->waiters, &s->waiters);
	if (!list_empty(&func->servers))
		return NULL;
	lite_func_end(func);
	return func;
}

/* Find the registration of function @number by an open file, or NULL. svc->lock is held. */
struct lite_server *lite_server_find(struct lite_rpc_file *file, u32 number)
{
	struct lite_server *s;

	lockdep_assert_held(&file->svc->lock);
	list_for_each_entry(s, &file->servers, of_file) {
		if (s->func->number == number)
			return s;
	}
	return NULL;
}

/* End a file's registration of @number, or any if @any. Context: process. Return: 0 or -ENOENT. */
int lite_func_unregister(struct lite_rpc_file *file, u32 number, bool any)
{
	struct lite_service *svc = file->svc;
	struct lite_func *over = NULL;
	struct lite_server *s;
	bool more;

	spin_lock(&svc->lock);
	s = any ? list_first_entry_or_null(&file->servers, struct lite_server, of_file) :
		  lite_server_find(file, number);
	if (s)
		over = lite_server_end(s);
	spin_unlock(&svc->lock);
	if (over)
		lite_func_ended(over);
	if (!s)
		return -ENOENT;
	/* Any number of threads may wait for it. */
	do {
		spin_lock(&svc->lock);
		more = lite_waiter_end(&s->waiters, -ENOENT);
		spin_unlock(&svc->lock);
		cond_resched();
	} while (more);
	kfree(s);
	return 0;
}

/* Can one of these functions serve the clients of the other? */
bool lite_func_is_like(const struct lite_func *a, const struct lite_func *b)
{
	return a->uid == b->uid && a->gid == b->gid && a->mode == b->mode &&
	       a->max_request == b->max_request && a->max_reply == b->max_reply &&
	       a->ring_size == b->ring_size && !strcmp(a->name, b->name);
}

/* Enter a function in the tables. @part: its owner's part of the pool of functions. */
static int lite_func_enter(struct lite_func *func, u32 number, struct lite_pool_part *part)
{
	struct lite_service *svc = func->svc;
	struct lite_pool *pool = &svc->pools[LITE_POOL_FUNCTIONS];
	int err;

	if (func->name[0] && lite_func_by_name(svc, func->name))
		return -EEXIST;
	if (lite_pool_take_part(pool, part, 1))
		return -EMFILE;
	if (number)
		err = xa_insert(&svc->functions, number, func, GFP_ATOMIC);
	else
		/* Cyclic: clients may still use a dead function's number. */
		err = xa_alloc_cyclic(&svc->functions, &number, func,
				      XA_LIMIT(LITE_FUNCTION_ANY, LITE_FUNCTION_MAX),
				      &svc->next_function, GFP_ATOMIC);
	if (err < 0) {
		lite_pool_give_part(pool, part, 1);
		return err == -EBUSY ? -EEXIST : err;
	}
	func->number = number;
	if (func->name[0])
		rb_add(&func->by_name, &svc->names, lite_func_tree_less);
	return 0;
}

/* Let @s (NULL: a kernel client) serve @func, or join the servers of one that is like it. */
static int lite_server_enter(struct lite_server *s, struct lite_func *func, u32 number,
			     struct lite_pool_part *part)
{
	struct lite_rpc_file *file = s ? s->file : NULL;
	struct lite_service *svc = func->svc;
	bool shared = func->flags & LITE_RPC_SHARED;
	struct lite_func *old = NULL;
	int err;

	lockdep_assert_held(&svc->lock);
	if (svc->stopping || (file && file->shut))
		return -ENODEV;
	if (file && file->n_servers >= LITE_RPC_FUNCTIONS_MAX)
		return -EMFILE;
	if (number)
		old = xa_load(&svc->functions, number);
	else if (shared && func->name[0])
		old = lite_func_by_name(svc, func->name);
	if (old) {
		if (!shared || !(old->flags & LITE_RPC_SHARED) || old->handler ||
		    !lite_func_is_like(old, func) || lite_server_find(file, old->number))
			return -EEXIST;
		if (old->n_servers >= LITE_FUNC_SERVERS_MAX)
			return -EMFILE;
	} else {
		err = lite_func_enter(func, number, part);
		if (err)
			return err;
		refcount_inc(&func->ref); /* the table's */
	}
	if (!s)
		return 0;
	s->func = old ?: func;
	list_add_tail(&s->of_func, &s->func->servers);
	s->func->n_servers++;
	list_add_tail(&s->of_file, &file->servers);
	file->n_servers++;
	WRITE_ONCE(file->n_long, file->n_long + lite_func_is_long(s->func));
	/* Requests may be queued for which threads of the file wait. */
	lite_func_serve(s->func);
	return 0;
}

static int lite_func_check(const struct lite_ioc_rpc_register *r)
{
	if (r->flags & ~LITE_RPC_SHARED || r->reserved)
		return -EOPNOTSUPP;
	if (r->function > LITE_FUNCTION_MAX || r->mode & ~LITE_MODE_MASK ||
	    r->max_request > LITE_RPC_BULK_MAX || r->max_reply > LITE_RPC_BULK_MAX)
		return -EINVAL;
	if (r->ring_size && (r->ring_size < LITE_RPC_RING_MIN || r->ring_size > LITE_RPC_RING_MAX))
		return -EINVAL;
	return r->name[0] ? min(lite_function_name_check(r->name), 0) : 0;
}

static struct lite_func *lite_func_alloc(struct lite_service *svc,
					 const struct lite_ioc_rpc_register *r,
					 const struct lite_cred *cred)
{
	struct lite_func *func = kzalloc(sizeof(*func), GFP_KERNEL_ACCOUNT);

	if (!func)
		return NULL;
	refcount_set(&func->ref, 1);
	func->svc = svc;
	func->cookie = atomic64_inc_return(&svc->cookies);
	strscpy(func->name, r->name, sizeof(func->name));
	func->uid = cred->uid;
	func->gid = cred->gid;
	func->mode = r->mode;
	func->flags = r->flags;
	func->max_request = r->max_request;
	func->max_reply = r->max_reply;
	func->ring_size = r->ring_size;
	INIT_LIST_HEAD(&func->servers);
	INIT_LIST_HEAD(&func->queue);
	INIT_LIST_HEAD(&func->rings);
	lite_stat_inc(svc->stats, LITE_STAT_FUNCTIONS);
	return func;
}

/*
 * Register a server of a function: an open file or, if @file is NULL, the handler of kernel client
 * @kf. Sets the number in @r, and kf->func with a reference. May sleep. Return: 0 or a negative
 * errno as LITE_IOC_RPC_REGISTER.
 */
int lite_func_register(struct lite_service *svc, struct lite_rpc_file *file, struct lite_kfunc *kf,
		       const struct lite_cred *cred, struct lite_ioc_rpc_register *r)
{
	struct lite_pool *pool = &svc->pools[LITE_POOL_FUNCTIONS];
	struct lite_server *s = NULL;
	struct lite_pool_part *part;
	struct lite_func *func;
	int err = lite_func_check(r);

	if (err)
		return err;
	if (r->function && r->function <= LITE_FUNCTION_ROOT_MAX && cred->uid)
		return -EPERM;
	part = lite_pool_hold(pool, cred->uid, GFP_KERNEL);
	if (!part)
		return -ENOMEM;
	err = -ENOMEM;
	func = lite_func_alloc(svc, r, cred);
	if (!func)
		goto err_part;
	if (file) {
		s = kzalloc(sizeof(*s), GFP_KERNEL_ACCOUNT);
		if (!s)
			goto err_func;
		s->file = file;
		INIT_LIST_HEAD(&s->waiters);
	}
	func->handler = kf;
	spin_lock(&svc->lock);
	err = lite_server_enter(s, func, r->function, part);
	if (!err)
		r->function = s ? s->func->number : func->number;
	spin_unlock(&svc->lock);
	if (!err && kf) {
		kf->func = func;
		refcount_inc(&func->ref);
	}
	if (err)
		kfree(s);
err_func:
	lite_func_put(func);
err_part:
	lite_pool_drop(pool, part);
	return err;
}

/* A kernel client stops serving. Process context. */
void lite_func_unregister_kernel(struct lite_func *func)
{
	struct lite_service *svc = func->svc;

	spin_lock(&svc->lock);
	lite_func_end(func);
	spin_unlock(&svc->lock);
	lite_func_ended(func);
}
