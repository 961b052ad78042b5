// SPDX-License-Identifier: GPL-2.0
/*
 * One call to several nodes.
 *
 * Normal operation: the caller begins each of the calls, the legs, and waits for
 * all together. A leg that cannot be begun without waiting, since its ring is to
 * be bound or is full, or its node is suspect, is begun by a thread of its own,
 * so that no node stands in another's way. What has ended is fetched at once, for
 * others wait for its record.
 *
 * The end: when enough legs have succeeded, too many have failed, or the time is
 * over, threads are killed, for all waits of lite_rcall_begin() are killable, and
 * what is under way is abandoned: its record is the kernel's until CANCEL is
 * answered. The caller leaves when no thread and no leg is left.
 *
 * What runs concurrently: receive handlers and ends of connections, by
 * lite_leg_ended(), under the lock that lite_rcall_finish() and
 * lite_rcall_abandon() take; and threads, which are waited for. Both leave word
 * in the leg and complete @news; all else is the caller's alone.
 *
 * While legs are under way the caller stays active on the node: user memory that
 * is not present is waited for before the first begins, and after the last has
 * ended.
 */
#include <linux/kthread.h>
#include <linux/memcontrol.h>
#include <linux/mm.h>
#include <linux/sched/mm.h>
#include <linux/sched/signal.h>
#include <linux/sched/task.h>
#include <linux/slab.h>

#include "../trace.h"
#include "../wait.h"
#include "multi.h"

/* How long the caller waits awake for news. */
#define LITE_PACE_MULTI_NS (200 * NSEC_PER_USEC)

/* ---- beginning ----------------------------------------------------------- */

/* Under rp->lock. */
static void lite_leg_ended(struct lite_rcall *call)
{
	struct lite_leg *leg = container_of(call, struct lite_leg, call);

	/* With lite_leg_look(): what the call has come to is seen first. */
	smp_store_release(&leg->ended, true);
	complete(&leg->multi->news);
}

static int lite_leg_thread(void *arg)
{
	struct lite_leg *leg = arg;
	struct lite_multi *m = leg->multi;
	struct mem_cgroup *old;

	allow_kernel_signal(SIGKILL);
	/* Memory for the reply is the caller's, not the kernel's. */
	old = set_active_memcg(m->memcg);
	/* Who killed us before that has set it before. */
	leg->result = READ_ONCE(m->stop) ? -EINTR :
					   lite_rcall_begin(&leg->call);
	set_active_memcg(old);
	/* With lite_leg_look(): likewise. */
	smp_store_release(&leg->begun, true);
	complete(&m->news);
	return 0;
}

static struct lite_pool *lite_leg_threads(const struct lite_leg *leg)
{
	return &leg->multi->svc->pools[LITE_POOL_LEG_THREADS];
}

/* False: there is none to be had. */
static bool lite_leg_start_thread(struct lite_leg *leg)
{
	struct lite_pool *pool = lite_leg_threads(leg);
	u32 uid = leg->multi->cred->uid;
	struct task_struct *thread;

	if (lite_pool_take(pool, uid, 1))
		return false;
	leg->begun = false;
	/* Should it be stopped before it runs. */
	leg->result = -EINTR;
	thread = kthread_create(lite_leg_thread, leg, "lite-leg");
	if (IS_ERR(thread)) {
		lite_pool_give(pool, uid, 1);
		return false;
	}
	get_task_struct(thread);
	leg->thread = thread;
	wake_up_process(thread);
	return true;
}

/* Wait for the thread; true if it has begun the call. */
static bool lite_leg_join(struct lite_leg *leg)
{
	kthread_stop(leg->thread);
	put_task_struct(leg->thread);
	leg->thread = NULL;
	lite_pool_give(lite_leg_threads(leg), leg->multi->cred->uid, 1);
	return !leg->result;
}

static void lite_leg_over(struct lite_leg *leg, int err)
{
	struct lite_multi *m = leg->multi;
	struct lite_rcall *call = &leg->call;

	leg->over = true;
	leg->err = err;
	/* Else it has been fetched. */
	if (err)
		lite_rcall_drop(call);
	m->left--;
	m->n_ok += !err;
	trace_lite_rpc(call->node, call->function, call->length,
		       call->reply_len, err);
}

static void lite_leg_begin(struct lite_leg *leg)
{
	struct lite_multi *m = leg->multi;
	struct lite_rcall *call = &leg->call;
	int err;

	leg->ended = false;
	leg->under_way = false;
	call->flags = LITE_RCALL_TRY | LITE_RPC_NOWAIT;
	err = lite_rcall_begin(call);
	call->flags = m->flags;
	if (err == -EAGAIN) {
		if (lite_leg_start_thread(leg))
			return;
		err = lite_rcall_begin(call);
	}
	leg->under_way = !err;
	if (err)
		lite_leg_over(leg, err);
}

/* ---- news ---------------------------------------------------------------- */

/* A call has ended: what has it come to? */
static void lite_leg_end(struct lite_leg *leg)
{
	struct lite_multi *m = leg->multi;
	struct lite_rcall *call = &leg->call;
	int err = lite_rcall_result(call);

	leg->under_way = false;
	if (err)
		lite_rcall_finish(call);
	else
		err = lite_rcall_fetch(call, &leg->reply, &leg->copy,
				       &leg->done);
	/* Seen by nobody: maybe somebody else serves it now. */
	if (err == -ECONNREFUSED && !m->stop && ++leg->tries < LITE_RCALL_TRIES)
		lite_leg_begin(leg);
	else
		lite_leg_over(leg, err);
}

static void lite_leg_look(struct lite_leg *leg)
{
	if (leg->thread) {
		/* With lite_leg_thread(). */
		if (!smp_load_acquire(&leg->begun))
			return;
		leg->under_way = lite_leg_join(leg);
		if (!leg->under_way)
			lite_leg_over(leg, leg->result);
	}
	/* With lite_leg_ended(). */
	if (leg->under_way && smp_load_acquire(&leg->ended))
		lite_leg_end(leg);
}

/* Is there anything that is worth waiting for? */
static bool lite_multi_enough(const struct lite_multi *m)
{
	if (!m->left || !m->quorum)
		return !m->left;
	return m->n_ok >= m->quorum || m->n_ok + m->left < m->quorum;
}

/* For one piece of news, or more. */
static int lite_multi_wait(struct lite_multi *m)
{
	unsigned long left = lite_jiffies_left(m->deadline);
	DECLARE_BITMAP(heeded, LITE_RPC_LEGS_MAX) = {};
	u32 i;
	int err;

	err = lite_service_await(m->svc, &m->news, LITE_PACE_MULTI_NS, true,
				 min_t(unsigned long, left, LITE_HEED_AFTER));
	if (err == -ETIMEDOUT && left > LITE_HEED_AFTER) {
		for (i = 0; i < m->n; i++) {
			if (m->leg[i].under_way &&
			    lite_rcall_heed(&m->leg[i].call))
				__set_bit(i, heeded);
		}
		err = lite_service_await(m->svc, &m->news, 0, true,
					 lite_jiffies_left(m->deadline));
		for_each_set_bit(i, heeded, m->n)
			lite_rcall_unheed(&m->leg[i].call);
	}
	/* Use it up. */
	if (!err)
		try_wait_for_completion(&m->news);
	return err;
}

/* ---- the end ------------------------------------------------------------- */

/* @why: what to say of those that are not over. */
static void lite_multi_end(struct lite_multi *m, int why)
{
	struct lite_leg *leg;
	u32 i;

	/* First: it is what a thread sees that cannot be killed yet. */
	WRITE_ONCE(m->stop, true);
	for (i = 0; i < m->n; i++) {
		if (m->leg[i].thread)
			send_sig(SIGKILL, m->leg[i].thread, 1);
	}
	for (i = 0; i < m->n; i++) {
		leg = &m->leg[i];
		if (leg->over)
			continue;
		if (leg->thread) {
			leg->under_way = lite_leg_join(leg);
			if (!leg->under_way) {
				lite_leg_over(leg, leg->result == -EINTR ?
							   why : leg->result);
				continue;
			}
		}
		if (lite_rcall_abandon(&leg->call, why)) {
			leg->under_way = false;
			lite_bind_put(leg->call.bind);
			lite_leg_over(leg, why);
		} else {
			lite_leg_end(leg);
		}
	}
}

/**
 * lite_multi_call - make a call to several nodes
 * @m: filled in; lite_multi_free() is to follow, whatever comes
 *
 * Context: may sleep; killable.
 * Return: 0: all legs are over, as @err of each says: as LITE_IOC_RPC_CALL, or
 * -ECANCELED: others were enough, or could not be; lite_leg_store() gives the
 * rest of their replies. -EINTR: it was killed; -ENOMEM.
 */
int lite_multi_call(struct lite_multi *m)
{
	int err = 0;
	u32 i;

	/* Here, since legs would do it at the same time. */
	if (m->bulk)
		err = lite_bulk_map(m->bulk);
	if (err)
		goto out;
	m->memcg = get_mem_cgroup_from_mm(current->mm);
	init_completion(&m->news);
	m->left = m->n;
	for (i = 0; i < m->n; i++) {
		struct lite_leg *leg = &m->leg[i];
		struct lite_rcall *call = &leg->call;

		leg->multi = m;
		call->svc = m->svc;
		call->cred = m->cred;
		call->request.k = (void *)m->request;
		call->length = m->length;
		call->bulk = m->bulk;
		if (call->bulk)
			kref_get(&call->bulk->ref);
		call->deadline = m->deadline;
		call->ended = lite_leg_ended;
		init_completion(&call->done);
		lite_leg_begin(leg);
	}
	for (;;) {
		for (i = 0; i < m->n; i++)
			lite_leg_look(&m->leg[i]);
		if (lite_multi_enough(m) || err)
			break;
		err = lite_multi_wait(m);
	}
	lite_multi_end(m, err ?: -ECANCELED);
	mem_cgroup_put(m->memcg);
	/* That time is up, each leg says. */
	if (err == -ETIMEDOUT)
		err = 0;
out:
	lite_bulk_put(m->bulk);
	m->bulk = NULL;
	return err;
}

/**
 * lite_leg_store - give the rest of a reply
 * @leg: of a call that is over
 *
 * Context: may sleep, and wait for user space.
 * Return: 0, also if it has failed; -ENODEV: the node has been stopped meanwhile.
 * That the user's memory is not there is an end like others: @leg->err.
 */
int lite_leg_store(struct lite_leg *leg)
{
	void *copy = leg->copy;

	if (leg->err || leg->done == leg->call.reply_len)
		return 0;
	leg->copy = NULL;
	leg->err = lite_rcall_store(&leg->call, &leg->reply, copy, leg->done);
	leg->multi->n_ok -= !!leg->err;
	return leg->err == -ENODEV ? leg->err : 0;
}

/**
 * lite_multi_free - free legs, and replies that nobody has fetched
 * @m: over, or never begun: with @leg from kvcalloc(), or NULL
 *
 * Context: process.
 */
void lite_multi_free(struct lite_multi *m)
{
	u32 i;

	lite_bulk_put(m->bulk);
	for (i = 0; m->leg && i < m->n; i++) {
		kvfree(m->leg[i].copy);
		lite_rcall_drop(&m->leg[i].call);
	}
	kvfree(m->leg);
}
