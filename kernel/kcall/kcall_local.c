// SPDX-License-Identifier: GPL-2.0
/*
 * Calls of a node to itself.
 *
 * The handler runs in the caller's thread or, with d->by_worker, in a worker. Workers run handlers
 * that take what others wait for: a user's thread could keep it while it has no processor. Each
 * lane has a small crew, which users share in turns. Neither one user nor all users together get
 * all workers, because a handler may wait for a thread of a user (memory/unpinned/bring.c).
 */
#include <linux/memcontrol.h>
#include <linux/sched/mm.h>
#include <linux/slab.h>

#include "kcall.h"
#include "wait.h"

/* A call that a worker serves, and owns until @done. */
struct lite_local_call {
	struct lite_crew_job job;
	struct lite_crew *crew;
	struct lite_kcalls *kcalls;
	struct lite_call_desc *desc;
	void *reply;
	struct mem_cgroup *memcg; /* the caller's, charged for what the handler allocates */
	int ret; /* of the handler */
	struct completion done;
};

static int lite_local_serve(struct lite_kcalls *kcalls, struct lite_call_desc *d, void *reply)
{
	return lite_kcall_dispatch(kcalls, NULL, d->call, d->req, d->len, reply);
}

static void lite_local_work(struct work_struct *work)
{
	struct lite_local_call *call = container_of(work, struct lite_local_call, job.work);
	struct mem_cgroup *own = set_active_memcg(call->memcg);

	call->ret = lite_local_serve(call->kcalls, call->desc, call->reply);
	set_active_memcg(own);
	lite_crew_done(call->crew, &call->job);
	complete(&call->done);
}

/* Wait until a call is served. Return: 0; -EINTR (killed), -ETIMEDOUT (no worker): it never ran. */
static int lite_local_await(struct lite_local_call *call)
{
	unsigned long timeout = call->desc->slot_timeout ?: MAX_SCHEDULE_TIMEOUT;
	long left;

	/* The wait for a worker of SHORT is short. */
	if (call->desc->killable && lite_call_lane(call->desc->call) != LITE_LANE_SHORT) {
		left = lite_wait_done_timeout(&call->done, timeout);
		if (left > 0)
			return 0;
		if (lite_crew_cancel(call->crew, &call->job))
			return left ? -EINTR : -ETIMEDOUT;
	}
	wait_for_completion(&call->done);
	return 0;
}

static int lite_local_ask(struct lite_kcalls *kcalls, struct lite_call_desc *d, void *reply)
{
	struct lite_local_call *call = kzalloc(sizeof(*call), GFP_KERNEL);
	int err;

	if (!call)
		return -ENOMEM;
	call->crew = &kcalls->local[lite_call_lane(d->call)];
	call->kcalls = kcalls;
	call->desc = d;
	call->reply = reply;
	init_completion(&call->done);
	err = lite_crew_job_init(call->crew, &call->job, d->uid ?: lite_current_uid(),
				 lite_local_work, GFP_KERNEL);
	if (!err) {
		call->memcg = get_mem_cgroup_from_mm(current->mm);
		lite_crew_queue(call->crew, &call->job);
		err = lite_local_await(call) ?: call->ret;
		mem_cgroup_put(call->memcg);
		lite_crew_job_exit(call->crew, &call->job);
	}
	kfree(call);
	return err;
}

/*
 * Serve a call of this node to itself. May sleep. Return: 0; the handler's errno; -ENOMEM; -EPROTO:
 * the reply is too long; with d->by_worker and d->killable, if it was not served: -EINTR, and with
 * d->slot_timeout -ETIMEDOUT.
 */
int lite_kcall_local(struct lite_kcalls *kcalls, struct lite_call_desc *d)
{
	void *reply;
	int ret;

	d->sent = true;
	reply = kzalloc(lite_call_payload_max(d->call), GFP_KERNEL);
	if (!reply)
		return -ENOMEM;
	ret = d->by_worker ? lite_local_ask(kcalls, d, reply) : lite_local_serve(kcalls, d, reply);
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
