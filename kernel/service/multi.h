/* SPDX-License-Identifier: GPL-2.0 */
/* One call to several nodes: multi.c */
#ifndef _LITE_SERVICE_MULTI_H
#define _LITE_SERVICE_MULTI_H

#include "service.h"

struct mem_cgroup;

/* Threads of a node that begin calls; who wants more does without. */
#define LITE_LEG_THREADS_MAX 1024

/**
 * struct lite_leg - one of the calls
 * @call: it; the caller fills in @node, @function and @room, and finds @user and
 *	@reply_len there when @err is 0
 * @reply: where the reply goes
 * @err: how it has ended
 * @multi: whose
 * @over: @err is set, and nothing of it is left
 * @under_way: begun
 * @ended: news of @call: has ended
 * @thread: begins it, with a reference; or NULL
 * @begun: news of @thread: has begun it, or not
 * @result: of lite_rcall_begin() there
 * @tries: how often nobody served it
 * @copy: the reply, if not all of it was given yet
 * @done: bytes that were
 */
struct lite_leg {
	struct lite_rcall call;
	struct lite_buf reply;
	int err;
	struct lite_multi *multi;
	bool over;
	bool under_way;
	bool ended;
	struct task_struct *thread;
	bool begun;
	int result;
	int tries;
	void *copy;
	size_t done;
};

/**
 * struct lite_multi - calls that are waited for together
 * @svc: node's
 * @cred: who calls
 * @request: kernel memory
 * @bulk: instead, if it is too long for a ring; given back by lite_multi_call()
 * @length: bytes of it
 * @flags: LITE_RPC_NOWAIT
 * @quorum: that many are to succeed; 0: all are waited for, whatever comes
 * @deadline: jiffies
 * @n: legs
 * @leg: they
 * @n_ok: those that succeeded
 * @left: those that are not over
 * @stop: begin nothing any more
 * @memcg: of the caller, for threads; with a reference while legs are under way
 * @news: completed with each
 */
struct lite_multi {
	struct lite_service *svc;
	const struct lite_cred *cred;
	const void *request;
	struct lite_bulk *bulk;
	u32 length;
	u32 flags;
	u32 quorum;
	unsigned long deadline;
	u32 n;
	struct lite_leg *leg;
	u32 n_ok;
	u32 left;
	bool stop;
	struct mem_cgroup *memcg;
	struct completion news;
};

int lite_multi_call(struct lite_multi *m);
int lite_leg_store(struct lite_leg *leg);
void lite_multi_free(struct lite_multi *m);

#endif /* _LITE_SERVICE_MULTI_H */
