/* SPDX-License-Identifier: GPL-2.0 */
/* Calls that are collected later: see async.c and collect.c. */
#ifndef _LITE_SERVICE_ASYNC_H
#define _LITE_SERVICE_ASYNC_H

#include "function/service.h"

struct mem_cgroup;

enum lite_async_state {
	LITE_ASYNC_NEW,    /* begun by the caller's thread */
	LITE_ASYNC_QUEUED, /* begun by begin_work */
	LITE_ASYNC_BEGUN,  /* in flight; can be abandoned */
	LITE_ASYNC_ENDING, /* owned by the thread ending it, or by copy_work */
	LITE_ASYNC_ENDED,  /* to be collected */
	LITE_ASYNC_GIVEN,  /* owned by the thread collecting it */
};

/**
 * struct lite_async - a call to be collected
 * @call: the call
 * @file: file to collect it from, with a reference
 * @ref: held by the list it is on, by the threads that begin or end it, and by
 *	queued work
 * @list: in file->ended if ENDED, else in file->calls; under file->lock, as
 *	the fields up to @stop
 * @state: says which thread owns it
 * @dropped: it will not be collected
 * @stop: QUEUED: error to end it with instead of beginning it; or 0
 * @group: group to collect it with
 * @owner: files_struct of the process that began it
 * @number: of no other call of this node; not 0
 * @cookie: the user's cookie
 * @to: the user's address for the reply
 * @reply: buffer for the reply
 * @copy_work: copies a long reply out of the mirror
 * @begin_work: begins it if it is QUEUED
 * @cred: QUEUED: the caller
 * @request: QUEUED: copy of the request
 * @memcg: QUEUED: the caller's memcg, charged for reply memory
 */
struct lite_async {
	struct lite_rcall call;
	struct lite_rpc_file *file;
	struct kref ref;
	struct list_head list;
	enum lite_async_state state;
	bool dropped;
	int stop;
	u32 group;
	const void *owner;
	u64 number;
	u64 cookie;
	u64 to;
	void *reply;
	struct work_struct copy_work;
	struct delayed_work begin_work;
	struct lite_cred cred;
	void *request;
	struct mem_cgroup *memcg;
};

/**
 * struct lite_collector - a thread in COLLECT
 * @list: in file->collectors
 * @group: the group it waits for
 * @news: a call of @group has ended, or has been collected by another thread
 */
struct lite_collector {
	struct list_head list;
	u32 group;
	struct completion news;
};

void lite_async_put(struct lite_async *a);
void lite_collectors_wake(struct lite_rpc_file *file, u32 group);
void lite_async_unlist(struct lite_async *a);
void lite_async_reap(struct lite_async *a);
bool lite_async_may_end(struct lite_async *a, int err);
void lite_async_end(struct lite_async *a, int err);

#endif /* _LITE_SERVICE_ASYNC_H */
