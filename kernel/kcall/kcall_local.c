// SPDX-License-Identifier: GPL-2.0
/*
 * Calls of a node to itself.
 *
 * The handler runs in the caller's thread or, with d->by_worker, in a work item: where handlers
 * take what others wait for, which a user's thread could keep while it has no processor. Users take
 * turns. Few such calls of a lane are served at a time; in the lane SHORT, one. As a handler may
 * wait for a thread of a user (bring.c), no user has all workers, nor have all users together.
 *
 * What runs concurrently: callers, and the work items. A call belongs to the one that takes it out
 * of the line, until it completes the call.
 */
#include <linux/memcontrol.h>
#include <linux/sched/mm.h>
#include <linux/slab.h>

#include "kcall.h"
#include "wait.h"

/* A call, in line until a work item has begun it. */
struct lite_local_call {
	struct lite_line_place place;
	struct lite_call_desc *desc;
	void *reply;
	struct mem_cgroup *memcg; /* the caller's, charged for what the handler allocates */
	int ret; /* of the handler */
	struct completion done;
};

/* How many workers serve a user, or with @uid 0 any user but root? */
static int lite_local_has(const struct lite_locals *locals, u32 uid)
{
	int i, n = 0;

	for (i = 0; i < LITE_LOCAL_WORKERS; i++) {
		u32 has = locals->worker[i].uid;

		n += has && (!uid || has == uid);
	}
	return n;
}

/*
 * The call that has its turn, or NULL. Users at their limit are skipped: their workers take their
 * next calls.
 */
static struct lite_local_call *lite_local_first(struct lite_locals *locals)
{
	struct lite_line *line = &locals->line;
	struct lite_line_place *place;

	if (lite_local_has(locals, 0) == LITE_LOCAL_WORKERS - 1) {
		place = lite_line_first(line, 0);
		return place ? container_of(place, struct lite_local_call, place) : NULL;
	}
	list_for_each_entry(place, &line->firsts, firsts) {
		if (!place->kind || lite_local_has(locals, place->kind) < LITE_LOCAL_EACH)
			return container_of(place, struct lite_local_call, place);
	}
	return NULL;
}

static void lite_local_work(struct work_struct *work)
{
	struct lite_local_worker *worker = container_of(work, struct lite_local_worker, work);
	struct lite_locals *locals = worker->locals;
	struct lite_kcalls *kcalls = locals->kcalls;
	struct lite_local_call *call;
	struct mem_cgroup *own;

	spin_lock(&locals->lock);
	worker->uid = 0;
	call = lite_local_first(locals);
	if (call) {
		worker->uid = call->place.kind;
		lite_line_leave(&call->place);
	}
	spin_unlock(&locals->lock);
	if (!call)
		return;
	own = set_active_memcg(call->memcg);
	call->ret = lite_kcall_dispatch(kcalls, NULL, call->desc->call, call->desc->req,
					call->desc->len, call->reply);
	set_active_memcg(own);
	/* Handlers for peers, which share these workers, get their turn before the next. */
	queue_work(kcalls->wq[locals->lane], work);
	complete(&call->done);
}

/* Wait until a call is served. 0; -EINTR: killed, -ETIMEDOUT: no worker: it has not been begun. */
static int lite_local_await(struct lite_locals *locals, struct lite_local_call *call)
{
	unsigned long timeout = call->desc->slot_timeout ?: MAX_SCHEDULE_TIMEOUT;
	bool begun;
	long left;

	/* What is in line in the lane SHORT is short. */
	if (!call->desc->killable || locals->lane == LITE_LANE_SHORT) {
		wait_for_completion(&call->done);
		return 0;
	}
	left = lite_wait_done_timeout(&call->done, timeout);
	if (left > 0)
		return 0;
	spin_lock(&locals->lock);
	begun = !call->place.line;
	lite_line_leave(&call->place);
	spin_unlock(&locals->lock);
	if (!begun)
		return left ? -EINTR : -ETIMEDOUT;
	wait_for_completion(&call->done);
	return 0;
}

/* Have a worker run the handler. */
static int lite_local_ask(struct lite_kcalls *kcalls, struct lite_call_desc *d, void *reply)
{
	struct lite_locals *locals = &kcalls->locals[lite_call_lane(d->call)];
	struct lite_local_call call = {
		.place.kind = d->uid ?: lite_current_uid(),
		.desc = d,
		.reply = reply,
		.memcg = get_mem_cgroup_from_mm(current->mm),
		.done = COMPLETION_INITIALIZER_ONSTACK(call.done),
	};
	int i, err, workers = locals->lane == LITE_LANE_SHORT ? 1 : LITE_LOCAL_WORKERS;

	spin_lock(&locals->lock);
	lite_line_enter(&locals->line, &call.place, false);
	spin_unlock(&locals->lock);
	for (i = 0; i < workers; i++)
		queue_work(kcalls->wq[locals->lane], &locals->worker[i].work);
	err = lite_local_await(locals, &call);
	mem_cgroup_put(call.memcg);
	return err ?: call.ret;
}

/*
 * Serve a call of this node to itself. May sleep. Return: the handler's result; -ENOMEM; -EPROTO:
 * the reply is too long; with d->by_worker and d->killable maybe -EINTR, and with d->slot_timeout
 * -ETIMEDOUT: it was not served.
 */
int lite_kcall_local(struct lite_kcalls *kcalls, struct lite_call_desc *d)
{
	void *reply;
	int ret;

	d->sent = true;
	reply = kzalloc(lite_call_payload_max(d->call), GFP_KERNEL);
	if (!reply)
		return -ENOMEM;
	if (d->by_worker)
		ret = lite_local_ask(kcalls, d, reply);
	else
		ret = lite_kcall_dispatch(kcalls, NULL, d->call, d->req, d->len, reply);
	if (ret > (int)d->reply_max)
		ret = -EPROTO;
	if (ret >= 0) {
		memcpy(d->reply, reply, ret);
		d->reply_len = ret;
		ret = 0;
	}
	kfree(reply);
	return ret;
}

void lite_locals_init(struct lite_kcalls *kcalls, enum lite_lane lane)
{
	struct lite_locals *locals = &kcalls->locals[lane];
	int i;

	spin_lock_init(&locals->lock);
	lite_line_init(&locals->line);
	locals->kcalls = kcalls;
	locals->lane = lane;
	for (i = 0; i < LITE_LOCAL_WORKERS; i++) {
		locals->worker[i].locals = locals;
		INIT_WORK(&locals->worker[i].work, lite_local_work);
	}
}
