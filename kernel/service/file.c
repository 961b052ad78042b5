// SPDX-License-Identifier: GPL-2.0
/*
 * What an open file has of calls: functions that it serves, requests that it has
 * taken, calls to be collected. All ends with the file; requests that a process
 * has taken end when it exits, or becomes a program that has not got it, also if
 * others have the file open.
 */
#include <linux/slab.h>

#include "service.h"

/**
 * lite_rpc_file_new - an open file makes use of calls
 * @svc: node's
 *
 * Context: may sleep.
 * Return: it, with a reference, for lite_rpc_file_shut() and lite_rpc_file_put(),
 * or NULL.
 */
struct lite_rpc_file *lite_rpc_file_new(struct lite_service *svc)
{
	struct lite_rpc_file *file = kzalloc(sizeof(*file), GFP_KERNEL_ACCOUNT);

	if (!file)
		return NULL;
	file->svc = svc;
	kref_init(&file->ref);
	kref_get(&file->ref); /* the list's */
	lite_pace_init(&file->pace, LITE_PACE_WORTH_PROGRAM_NS);
	INIT_LIST_HEAD(&file->servers);
	INIT_LIST_HEAD(&file->taken);
	INIT_LIST_HEAD(&file->waiters);
	init_waitqueue_head(&file->wait);
	spin_lock_init(&file->lock);
	INIT_LIST_HEAD(&file->calls);
	INIT_LIST_HEAD(&file->ended);
	INIT_LIST_HEAD(&file->collectors);
	lite_pace_init(&file->collect_pace, LITE_PACE_WORTH_PROGRAM_NS);
	xa_init_flags(&file->found, XA_FLAGS_ACCOUNT);
	INIT_DELAYED_WORK(&file->expire, lite_async_expire_work);
	spin_lock(&svc->lock);
	list_add(&file->list, &svc->files);
	spin_unlock(&svc->lock);
	return file;
}

static void lite_rpc_file_release(struct kref *ref)
{
	struct lite_rpc_file *file =
		container_of(ref, struct lite_rpc_file, ref);

	xa_destroy(&file->found);
	kfree(file);
}

/**
 * lite_rpc_file_put - give a reference back
 * @file: open file's; the last one goes after it was shut
 *
 * Context: any.
 */
void lite_rpc_file_put(struct lite_rpc_file *file)
{
	kref_put(&file->ref, lite_rpc_file_release);
}

/* ---- functions found by name --------------------------------------------- */

static unsigned long lite_found_key(const struct lite_rpc_file *file, u32 node,
				    u32 function)
{
	node = node ?: lite_cluster_id(file->svc->cl);
	return (unsigned long)node << 16 | function;
}

static int lite_found_enter(struct lite_rpc_file *file, unsigned long key,
			    u64 cookie)
{
	void *was, *entry = xa_mk_value(cookie & LITE_FOUND_COOKIE);
	int err = 0;

	xa_lock(&file->found);
	was = xa_load(&file->found, key);
	if (!was && file->n_found >= LITE_FOUND_MAX) {
		err = -EMFILE;
	} else {
		err = xa_err(__xa_store(&file->found, key, entry, GFP_KERNEL));
		/* The lock is let go of for memory: others may have been here. */
		if (!err && !was)
			file->n_found++;
	}
	xa_unlock(&file->found);
	return err;
}

/**
 * lite_file_find - what a node serves, for an open file
 * @file: open file's
 * @f: node, and name or number; the rest is set
 *
 * The file's calls of that node and number are for the registration that was found
 * by name then, and fail when another one, perhaps another user's, has the number.
 *
 * Context: may sleep; killable.
 * Return: 0 or a negative errno as LITE_IOC_RPC_FIND.
 */
int lite_file_find(struct lite_rpc_file *file, struct lite_ioc_rpc_find *f)
{
	u64 cookie;
	int err = lite_service_find(file->svc, f, &cookie);

	if (err || !f->name[0])
		return err;
	return lite_found_enter(
		file, lite_found_key(file, f->node, f->function), cookie);
}

/**
 * lite_file_found - the registration that calls of an open file are for
 * @file: open file's
 * @node: of the function; 0: this one
 * @function: its number
 *
 * Context: process.
 * Return: for lite_rcall.registration.
 */
u64 lite_file_found(struct lite_rpc_file *file, u32 node, u32 function)
{
	void *entry;

	if (xa_empty(&file->found))
		return LITE_ANY_REGISTRATION;
	entry = xa_load(&file->found, lite_found_key(file, node, function));
	return entry ? xa_to_value(entry) : LITE_ANY_REGISTRATION;
}

/* ---- the end ------------------------------------------------------------- */

/* Requests that nobody will answer any more: of one process, or all. */
static void lite_rpc_file_reset(struct lite_rpc_file *file, const void *owner)
{
	struct lite_request *req, *tmp;

	lockdep_assert_held(&file->svc->lock);
	list_for_each_entry_safe(req, tmp, &file->taken, list) {
		if (owner && req->owner != owner)
			continue;
		list_del(&req->list);
		req->file = NULL;
		lite_request_answer(req, LITE_RPC_RESET);
	}
}

/**
 * lite_rpc_file_flush - a process that has the file open exits, or execs without it
 * @file: open file's
 * @owner: its files_struct
 *
 * Context: process.
 */
void lite_rpc_file_flush(struct lite_rpc_file *file, const void *owner)
{
	spin_lock(&file->svc->lock);
	lite_rpc_file_reset(file, owner);
	spin_unlock(&file->svc->lock);
	lite_async_flush(file, owner);
}

/**
 * lite_rpc_file_shut - nothing is served or called through it any more
 * @file: the caller has a reference; may be shut twice
 *
 * Context: may sleep.
 */
void lite_rpc_file_shut(struct lite_rpc_file *file)
{
	struct lite_service *svc = file->svc;
	bool first;

	spin_lock(&svc->lock);
	first = !file->shut;
	file->shut = true;
	if (first) {
		list_del(&file->list);
		lite_rpc_file_reset(file, NULL);
	}
	spin_unlock(&svc->lock);
	if (!first)
		return;
	lite_func_leave_all(file);
	lite_async_shut(file);
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

/**
 * lite_rpc_file_poll - poll(2)
 * @file: open file's
 * @filp: it
 * @table: from poll()
 *
 * Context: may sleep; the caller is active on the node.
 * Return: EPOLLIN: there is a request to be taken, or a call to be collected.
 */
__poll_t lite_rpc_file_poll(struct lite_rpc_file *file, struct file *filp,
			    poll_table *table)
{
	/* With wq_has_sleeper(): the queue first, what it is for afterwards. */
	poll_wait(filp, &file->wait, table);
	if (READ_ONCE(file->svc->stopping))
		return EPOLLERR | EPOLLHUP;
	if (lite_async_ready(file) || lite_rpc_file_has_request(file))
		return EPOLLIN | EPOLLRDNORM;
	return 0;
}
