/* SPDX-License-Identifier: GPL-2.0 */
/* Calls that are collected later: async.c begins and ends them, collect.c collects. */
#ifndef _LITE_SERVICE_ASYNC_H
#define _LITE_SERVICE_ASYNC_H

#include "function/service.h"

struct mem_cgroup;

enum lite_async_state {
	LITE_ASYNC_NEW,    /* its caller begins it */
	LITE_ASYNC_QUEUED, /* begin_work does */
	LITE_ASYNC_BEGUN,  /* it can be abandoned */
	LITE_ASYNC_ENDING, /* who ends it has it, or copy_work */
	LITE_ASYNC_ENDED,  /* to be collected */
	LITE_ASYNC_GIVEN,  /* who collects it has it */
};

/**
 * struct lite_async - a call to be collected
 * @call: it
 * @file: who collects it, with a reference
 * @ref: that of the list it is on; who begins it; who ends it; queued begin_work
 * @list: in file->ended if it is ENDED, else in file->calls; under file->lock, as
 *	the next ones
 * @state: who has it
 * @dropped: nobody collects it
 * @stop: QUEUED: begin it no more, but end it: why
 * @group: which calls it is collected with
 * @owner: files_struct of who began it
 * @cookie: the user's
 * @to: the user's address for the reply
 * @reply: room for the reply
 * @copy_work: copies a long reply
 * @begin_work: begins it
 * @cred: QUEUE: who calls
 * @request: likewise: a copy
 * @memcg: likewise: of the caller, for memory for its reply
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
 * @group: what it waits for
 * @news: a call of it has ended, or another one has collected it
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
