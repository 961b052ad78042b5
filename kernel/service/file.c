// SPDX-License-Identifier: GPL-2.0
/*
 * What an open file has of calls: functions that it serves, requests that it has
 * taken, calls to be collected. All ends with the file; requests that a process
 * has taken end when it exits, or becomes a program that has not got it, also if
 * others have the file open.
 */
#include <linux/slab.h>

#include "inbox.h"

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
	INIT_DELAYED_WORK(&file->expire, lite_async_expire_work);
	spin_lock(&svc->lock);
	list_add(&file->list, &svc->files);
	spin_unlock(&svc->lock);
	return file;
}

static void lite_rpc_file_release(struct kref *ref)
{
	kfree(container_of(ref, struct lite_rpc_file, ref));
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

/* Requests that nobody will answer any more: of one process, or all. */
static void lite_rpc_file_reset(struct lite_rpc_file *file, const void *owner)
{
	struct lite_request *req, *tmp;

	lockdep_assert_held(&file->svc->lock);
	/* What it has not taken yet is not reset. */
	lite_inboxes_shut(file, owner);
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
		if (s->inbox ? lite_inbox_ready(s->inbox) :
			       !list_empty(&s->func->queue))
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
	if (!list_empty_careful(&file->ended) ||
	    lite_rpc_file_has_request(file))
		return EPOLLIN | EPOLLRDNORM;
	return 0;
}
