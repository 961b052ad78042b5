// SPDX-License-Identifier: GPL-2.0
/*
 * Calls that are collected later.
 *
 * Normal operation: the caller's thread sends the request; with QUEUE, a job sends one that has to
 * wait (Documentation/rpc.rst). When the reply comes, the receive handler copies it out of the
 * mirror, so that its slot is free for other calls; if the reply is longer, the call's work item
 * does so. A reply that did not go through the ring stays in its bulk.
 *
 * What runs concurrently: the end of the call (rp->lock), its work item and job, threads that
 * collect or cancel it, and the shutting of the file. @state, under file->lock, says which of them
 * owns the call. All but the end run in process context, and reap a call that they find ENDED and
 * @dropped.
 *
 * The node may be stopped while a thread waits for user memory. So a call that is being begun is
 * not listed meanwhile, as shutting the file would skip it; one that is being collected is listed
 * as ENDED, and another thread may collect it.
 */
#include <linux/cred.h>
#include <linux/memcontrol.h>
#include <linux/mm.h>
#include <linux/sched/mm.h>
#include <linux/slab.h>

#include "function/service.h"
#include "trace.h"

/* Longest reply that the receive handler copies, in bytes. */
#define LITE_ASYNC_COPY PAGE_SIZE
/* Delay until a call to a suspect node is retried. */
#define LITE_ASYNC_AGAIN (HZ / 50)

/* Drop a reference. Process context; if it is the last, with no lock held. */
static void lite_async_put(struct lite_async *a)
{
	if (!refcount_dec_and_test(&a->ref))
		return;
	lite_rcall_drop(&a->call);
	if (a->job.part)
		lite_crew_job_exit(&a->file->svc->begins, &a->job);
	lite_rpc_file_put(a->file);
	mem_cgroup_put(a->memcg);
	put_cred(a->as);
	if (a->mm)
		mmdrop(a->mm);
	lite_pool_give(&a->call.svc->pools[LITE_POOL_BULK], a->uid, a->cost);
	kvfree(a->reply);
	kfree(a);
}

/* Run the work after @delay. file->lock may be held: the reference dropped is never the last. */
static void lite_async_run_after(struct lite_async *a, unsigned long delay)
{
	refcount_inc(&a->ref);
	/* It was pending, so it has a reference already. */
	if (mod_delayed_work(a->file->svc->wq[LITE_WQ_CALLS], &a->work, delay))
		lite_async_put(a);
}

/* Have the job begin a QUEUED call. file->lock may be held, as for lite_async_run_after(). */
static void lite_async_run_job(struct lite_async *a)
{
	refcount_inc(&a->ref);
	if (!lite_crew_queue(&a->file->svc->begins, &a->job))
		lite_async_put(a);
}

/* First call of a group to collect. Return: ERR_PTR: -EAGAIN: none has ended; -ENOENT: none. */
static struct lite_async *lite_async_first(struct lite_rpc_file *file, u32 group)
{
	struct lite_line_place *first;

	lockdep_assert_held(&file->lock);
	first = lite_line_first(&file->ended, group);
	if (first)
		return container_of(first, struct lite_async, place);
	return ERR_PTR(lite_line_first(&file->begun, group) ? -EAGAIN : -ENOENT);
}

/* Wake one collector of a group: a call has @ended, or none is left (it then wakes the next). */
static void lite_collector_wake(struct lite_rpc_file *file, u32 group, bool ended)
{
	struct lite_line_place *first = lite_line_first(&file->collectors, group);

	if (!first || (!ended && lite_async_first(file, group) != ERR_PTR(-ENOENT)))
		return;
	lite_line_leave(first);
	complete(&container_of(first, struct lite_collector, place)->news);
}

/* Let an ended call be collected, before others if @again: a collector has returned it. */
static void lite_async_offer(struct lite_async *a, bool again)
{
	struct lite_rpc_file *file = a->file;

	lockdep_assert_held(&file->lock);
	a->state = LITE_ASYNC_ENDED;
	if (a->dropped)
		return;
	lite_line_enter(&file->ended, &a->place, again);
	lite_collector_wake(file, a->place.kind, true);
	if (!a->place.kind)
		lite_rpc_file_wake(file);
}

/*
 * A call that has no slot has ended. It drops its ring, which is charged to the function's owner,
 * as the call may never be collected. After the unlock the call and its file may be gone.
 */
static void lite_async_to_ended(struct lite_async *a)
{
	struct lite_rpc_file *file = a->file;
	struct lite_client_ring *ring;

	spin_lock(&file->lock);
	ring = a->call.ring;
	a->call.ring = NULL;
	/* Not the last reference: the list has one. */
	if (cancel_delayed_work(&a->work))
		lite_async_put(a);
	lite_async_offer(a, false);
	spin_unlock(&file->lock);
	/* If rp->lock is held, not the last: the slot was just freed, so tables have the ring. */
	if (ring)
		lite_client_ring_put(ring);
}

/* Take a call off its file. The list's reference passes to the caller. */
static void lite_async_unlist(struct lite_async *a)
{
	struct lite_rpc_file *file = a->file;

	lockdep_assert_held(&file->lock);
	list_del_init(&a->list);
	lite_line_leave(&a->place);
	file->n_calls--;
	lite_collector_wake(file, a->place.kind, false);
}

/* Remove a call that the caller owns from its file, and put the list's reference. */
static void lite_async_remove(struct lite_async *a)
{
	struct lite_rpc_file *file = a->file;

	spin_lock(&file->lock);
	lite_async_unlist(a);
	spin_unlock(&file->lock);
	lite_async_put(a);
}

/*
 * Remove a call that is ENDED and @dropped. Called, with a reference and no lock held, by all that
 * may have ended a call or found it ended.
 */
static void lite_async_reap(struct lite_async *a)
{
	struct lite_rpc_file *file = a->file;
	bool mine;

	spin_lock(&file->lock);
	mine = a->dropped && a->state == LITE_ASYNC_ENDED;
	if (mine) {
		a->state = LITE_ASYNC_GIVEN;
		lite_async_unlist(a);
	}
	spin_unlock(&file->lock);
	if (mine)
		lite_async_put(a);
}

/* lite_rcall.ended: rp->lock is held. */
static void lite_async_ended(struct lite_rcall *call)
{
	struct lite_async *a = container_of(call, struct lite_async, call);
	bool reply = !call->err && call->status == LITE_RPC_OK && !call->by_reference;

	if (reply && call->reply_len > LITE_ASYNC_COPY) {
		spin_lock(&a->file->lock);
		a->state = LITE_ASYNC_COPYING;
		lite_async_run_after(a, 0);
		spin_unlock(&a->file->lock);
		return;
	}
	if (reply)
		memcpy(a->reply, lite_rcall_record(call), call->reply_len);
	lite_slot_free(call->ring, call->slot);
	call->slot = LITE_NO_SLOT;
	if (!call->err && call->status == LITE_RPC_REFUSED)
		lite_client_ring_close_locked(call->ring);
	lite_async_to_ended(a);
}

/* End a call that is in flight, unless it has ended. */
static void lite_async_end(struct lite_async *a, int err)
{
	struct lite_client_ring *ring;

	spin_lock(&a->file->lock);
	ring = a->call.ring;
	if (ring)
		refcount_inc(&ring->ref);
	spin_unlock(&a->file->lock);
	if (!ring)
		return;
	if (lite_rcall_abandon(&a->call, ring, err))
		lite_async_to_ended(a);
	lite_client_ring_put(ring);
}

/* The call has been sent, and is not sent again: drop its request and credentials. */
static void lite_async_sent(struct lite_async *a, enum lite_async_state from)
{
	struct lite_rpc_file *file = a->file;
	struct lite_rcall *call = &a->call;
	bool dropped = false;

	/* May be on the stack of the thread that began the call. */
	call->cred = NULL;
	lite_area_put(call->bulk);
	call->bulk = NULL;
	kvfree(call->copy);
	call->copy = NULL;
	spin_lock(&file->lock);
	/* Otherwise the call has ended. */
	if (a->state == from) {
		dropped = a->dropped;
		a->state = dropped ? LITE_ASYNC_ENDING : LITE_ASYNC_BEGUN;
		if (!dropped)
			lite_async_run_after(a, lite_jiffies_left(call->deadline));
	}
	spin_unlock(&file->lock);
	if (dropped)
		lite_async_end(a, -ECANCELED);
}

/* End a call that was not sent and may be in line. The caller has made it ENDING. */
static void lite_async_unqueue(struct lite_async *a, int err)
{
	lite_rcall_unqueue(&a->call);
	a->call.err = err;
	lite_async_to_ended(a);
}

/* The call could not be begun yet: it is in line in a ring or, without one, its node is suspect. */
static void lite_async_begin_later(struct lite_async *a)
{
	unsigned long left = lite_jiffies_left(a->call.deadline);
	bool dropped;

	if (!a->call.ring)
		left = min_t(unsigned long, left, LITE_ASYNC_AGAIN);
	spin_lock(&a->file->lock);
	dropped = a->dropped;
	a->state = dropped ? LITE_ASYNC_ENDING : LITE_ASYNC_QUEUED;
	if (!dropped)
		lite_async_run_after(a, left);
	spin_unlock(&a->file->lock);
	if (dropped)
		lite_async_unqueue(a, -ECANCELED);
}

static void lite_async_begin_queued(struct lite_async *a)
{
	struct mem_cgroup *memcg = set_active_memcg(a->memcg);
	const struct cred *old = override_creds(a->as);
	int err = lite_rcall_begin(&a->call);

	revert_creds(old);
	set_active_memcg(memcg);
	if (!err) {
		lite_async_sent(a, LITE_ASYNC_BEGINNING);
	} else if (err == -EINPROGRESS) {
		/* lite_async_in_turn() or delayed work will run the job again, or already has. */
		lite_async_begin_later(a);
	} else {
		a->call.err = err;
		lite_async_to_ended(a);
	}
}

static void lite_async_job(struct work_struct *work)
{
	struct lite_async *a = container_of(work, struct lite_async, job.work);
	bool mine;

	spin_lock(&a->file->lock);
	mine = a->state == LITE_ASYNC_QUEUED;
	if (mine)
		a->state = LITE_ASYNC_BEGINNING;
	spin_unlock(&a->file->lock);
	if (mine)
		lite_async_begin_queued(a);
	lite_async_reap(a);
	lite_crew_done(&a->file->svc->begins, &a->job);
	lite_async_put(a);
}

static void lite_async_work(struct work_struct *work)
{
	struct lite_async *a = container_of(to_delayed_work(work), struct lite_async, work);
	struct lite_rpc_file *file = a->file;
	struct lite_rcall *call = &a->call;
	unsigned long left = lite_jiffies_left(call->deadline);
	enum lite_async_state state;

	spin_lock(&file->lock);
	state = a->state;
	/* Also if QUEUED: the job may be in the crew's line until after the deadline. */
	if ((state == LITE_ASYNC_BEGUN || state == LITE_ASYNC_QUEUED) && left)
		lite_async_run_after(a, left);
	else if (state == LITE_ASYNC_BEGUN || state == LITE_ASYNC_QUEUED)
		a->state = LITE_ASYNC_ENDING;
	if (state == LITE_ASYNC_QUEUED && left)
		lite_async_run_job(a);
	spin_unlock(&file->lock);
	if (state == LITE_ASYNC_QUEUED && !left) {
		lite_async_unqueue(a, -ETIMEDOUT);
	} else if (state == LITE_ASYNC_COPYING) {
		memcpy(a->reply, lite_rcall_record(call), call->reply_len);
		lite_rcall_free_slot(call);
		lite_async_to_ended(a);
	} else if (state == LITE_ASYNC_BEGUN && !left) {
		lite_async_end(a, -ETIMEDOUT);
	}
	lite_async_reap(a);
	lite_async_put(a);
}

/* lite_rcall.in_turn: rp->lock is held. */
static void lite_async_in_turn(struct lite_rcall *call)
{
	lite_async_run_job(container_of(call, struct lite_async, call));
}

static struct lite_async *lite_async_alloc(struct lite_rpc_file *file,
					   const struct lite_rcall *call,
					   const struct lite_ioc_rpc_call *c)
{
	struct lite_pool *pool = &call->svc->pools[LITE_POOL_BULK];
	u32 room = min_t(u32, call->room, LITE_RPC_BYTES_MAX);
	/* A short request may be copied until it is sent. A long one is charged by itself. */
	u32 copy = call->length <= LITE_RPC_BYTES_MAX ? call->length : 0;
	u32 cost = sizeof(struct lite_async) + room + copy;
	struct lite_async *a;

	if (lite_pool_take(pool, call->cred->uid, cost, GFP_KERNEL_ACCOUNT))
		return NULL;
	a = kzalloc(sizeof(*a), GFP_KERNEL_ACCOUNT);
	if (a && room)
		a->reply = kvmalloc(room, GFP_KERNEL_ACCOUNT);
	if (!a || (room && !a->reply)) {
		lite_pool_give(pool, call->cred->uid, cost);
		kfree(a);
		return NULL;
	}
	a->uid = call->cred->uid;
	a->cost = cost;
	a->call = *call;
	a->call.ended = lite_async_ended;
	init_completion(&a->call.done);
	a->place.kind = c->group;
	a->owner = current->files;
	a->mm = current->mm;
	if (a->mm)
		mmgrab(a->mm);
	a->number = atomic64_inc_return(&file->svc->seqs);
	a->cookie = c->cookie;
	a->to = c->reply;
	refcount_set(&a->ref, 1);
	INIT_DELAYED_WORK(&a->work, lite_async_work);
	a->file = file;
	refcount_inc(&file->ref);
	return a;
}

static int lite_async_enter(struct lite_async *a, enum lite_async_state state)
{
	struct lite_rpc_file *file = a->file;
	int err = 0;

	spin_lock(&file->lock);
	if (READ_ONCE(file->shut)) {
		err = -ENODEV;
	} else if (file->n_calls >= LITE_RPC_ASYNC_MAX) {
		err = -EMFILE;
	} else {
		file->n_calls++;
		a->state = state;
		list_add_tail(&a->list, &file->calls);
		lite_line_enter(&file->begun, &a->place, false);
		refcount_inc(&a->ref); /* the list's */
		if (state == LITE_ASYNC_QUEUED) {
			lite_async_run_after(a, lite_jiffies_left(a->call.deadline));
			lite_async_run_job(a);
		}
	}
	spin_unlock(&file->lock);
	return err;
}

static int lite_async_try(struct lite_async *a)
{
	int err = lite_async_enter(a, LITE_ASYNC_NEW);

	if (err)
		return err;
	err = lite_rcall_begin(&a->call);
	if (!err)
		lite_async_sent(a, LITE_ASYNC_NEW);
	else
		lite_async_remove(a);
	return err;
}

/* Have the job begin a call, from copies of the caller's request and credentials. */
static int lite_async_queue(struct lite_async *a)
{
	int err = lite_rcall_copy(&a->call);

	if (!err)
		err = lite_crew_job_init(&a->file->svc->begins, &a->job, lite_current_uid(),
					 lite_async_job, GFP_KERNEL);
	if (err)
		return err;
	a->memcg = get_mem_cgroup_from_mm(current->mm);
	a->as = get_current_cred();
	a->cred = *a->call.cred;
	a->call.cred = &a->cred;
	a->call.in_turn = lite_async_in_turn;
	return lite_async_enter(a, LITE_ASYNC_QUEUED);
}

/* Begin a call to be collected. May sleep; killable. Return: 0 or an errno as LITE_IOC_RPC_CALL. */
int lite_async_begin(struct lite_rpc_file *file, struct lite_rcall *call,
		     const struct lite_ioc_rpc_call *c)
{
	struct lite_async *a = lite_async_alloc(file, call, c);
	int err;

	if (!a)
		return -ENOMEM;
	err = lite_rcall_prepare(&a->call);
	if (call->flags & LITE_RPC_QUEUE)
		a->call.flags |= LITE_RPC_NOWAIT | LITE_RCALL_TRY;
	while (!err) {
		err = lite_async_try(a);
		if (!err || !a->call.missing)
			break;
		err = lite_rcall_copy(&a->call);
	}
	if (err == -EAGAIN && call->flags & LITE_RPC_QUEUE) {
		a->call.flags = call->flags;
		err = lite_async_queue(a);
	}
	lite_async_put(a);
	return err;
}

/* Wait for news of a group. Drops file->lock meanwhile. */
static int lite_async_await(struct lite_rpc_file *file, u32 group, unsigned long deadline)
	__must_hold(&file->lock)
{
	struct lite_collector c = {
		.place.kind = group,
		.news = COMPLETION_INITIALIZER_ONSTACK(c.news),
	};
	struct lite_pace_wait wait;
	long ret;

	lite_pace_begin(&file->collect_pace, &wait, !lite_line_empty(&file->collectors));
	/* The latest collector is the most likely to be awake. */
	lite_line_enter(&file->collectors, &c.place, true);
	spin_unlock(&file->lock);
	ret = lite_poller_await(&file->svc->fab->poller, &c.news, wait.awake_ns, TASK_INTERRUPTIBLE,
				lite_jiffies_left(deadline));
	lite_pace_end(&file->collect_pace, &wait);
	spin_lock(&file->lock);
	lite_line_leave(&c.place);
	return ret > 0 ? 0 : ret ? -EINTR : -ETIMEDOUT;
}

/* Wait for a call to end and take it: the caller owns it then. */
static struct lite_async *lite_async_take(struct lite_rpc_file *file,
					  const struct lite_ioc_rpc_collect *c,
					  unsigned long deadline)
{
	bool nowait = lite_serve_nowait(c->flags, c->timeout_ms);
	struct lite_async *a;
	int err = 0;

	spin_lock(&file->lock);
	for (;;) {
		a = lite_async_first(file, c->group);
		if (a != ERR_PTR(-EAGAIN) || nowait || err)
			break;
		/* A stopping node sets this before it wakes collectors. */
		err = READ_ONCE(file->svc->stopping) ? -ENODEV :
						       lite_async_await(file, c->group, deadline);
	}
	if (!IS_ERR(a)) {
		a->state = LITE_ASYNC_GIVEN;
		lite_line_enter(&file->begun, &a->place, false);
	} else {
		lite_collector_wake(file, c->group, false);
		a = err ? ERR_PTR(err) : a;
	}
	spin_unlock(&file->lock);
	return a;
}

static void lite_async_untake(struct lite_async *a)
{
	struct lite_rpc_file *file = a->file;

	spin_lock(&file->lock);
	refcount_inc(&a->ref);
	lite_async_offer(a, true);
	spin_unlock(&file->lock);
	lite_async_reap(a);
	lite_async_put(a);
}

/* Copy the reply, up to the first absent page of user memory. Return: bytes copied. */
static size_t lite_async_give(struct lite_async *a, const struct lite_buf *to, size_t n)
{
	if (!n)
		return 0;
	if (!a->call.by_reference)
		return lite_buf_copy_nofault(to, 0, a->reply, n, false);
	/* Since the answer came, only the call uses the bulk. */
	lite_bulk_unmap(a->call.reply_bulk);
	return lite_bulk_copy_nofault(a->call.reply_bulk, to, 0, n, false);
}

static int lite_async_collect(struct lite_rpc_file *file, struct lite_ioc_rpc_collect *c,
			      struct lite_gate *gate, unsigned long deadline)
{
	struct lite_buf to = { .gate = gate, .user = true };
	bool into = c->flags & LITE_RPC_INTO;
	u64 lost = 0, number;
	struct lite_async *a;
	size_t n, done;
	int err;

	for (;;) {
		a = lite_async_take(file, c, deadline);
		if (IS_ERR(a))
			return PTR_ERR(a);
		lite_async_tell(a, c);
		n = c->error ? 0 : c->reply_len;
		to.u = into ? a->to : c->reply;
		if (!into && n > c->reply_room) {
			lite_async_untake(a);
			return -EMSGSIZE;
		}
		done = lite_async_give(a, &to, n);
		if (done < n && a->number == lost) {
			c->error = -EFAULT;
			c->reply_len = 0;
			n = done;
		}
		if (done == n)
			break;
		/* Do not own the call while waiting for user memory. */
		number = a->number;
		lite_async_untake(a);
		err = lite_user_fault_in(&to, done, n, false);
		/* If this thread takes the call again, the call ends with -EFAULT. */
		if (err == -EFAULT && into)
			lost = number;
		else if (err)
			return err;
	}
	trace_lite_rpc(c->node, c->function, a->call.length, c->reply_len, c->error);
	lite_async_remove(a);
	return 0;
}

/* Is a call in @group, or in a group of process @owner? If both are NULL, every call matches. */
static bool lite_async_is_of(const struct lite_async *a, const u32 *group, const void *owner)
{
	return group ? a->place.kind == *group :
		       !owner || (a->place.kind && a->owner == owner);
}

/*
 * Mark calls as not to be collected. A call that a thread or a work item owns is ended by its
 * owner. Return: the next other call, with a reference: ended, in flight, or to be begun (@queued);
 * NULL: no more.
 */
static struct lite_async *lite_async_drop(struct lite_rpc_file *file, const u32 *group,
					  const void *owner, bool *queued)
{
	struct lite_async *a, *found = NULL;

	spin_lock(&file->lock);
	list_for_each_entry(a, &file->calls, list) {
		/* A NEW call counts as begun after this. */
		if (!lite_async_is_of(a, group, owner) || a->dropped || a->state == LITE_ASYNC_NEW)
			continue;
		a->dropped = true;
		lite_line_leave(&a->place);
		if (a->state == LITE_ASYNC_BEGINNING || a->state == LITE_ASYNC_COPYING ||
		    a->state == LITE_ASYNC_ENDING || a->state == LITE_ASYNC_GIVEN)
			continue;
		*queued = a->state == LITE_ASYNC_QUEUED;
		if (a->state == LITE_ASYNC_BEGUN || *queued)
			a->state = LITE_ASYNC_ENDING;
		refcount_inc(&a->ref);
		found = a;
		break;
	}
	spin_unlock(&file->lock);
	return found;
}

/*
 * Drop calls: those of @group; if it is NULL, those that the process with files_struct @owner began
 * in groups other than 0; if both are NULL, all. Does not wait for calls that are being begun,
 * copied or ended: these may keep references to the file for a while. May sleep.
 */
void lite_async_cancel(struct lite_rpc_file *file, const u32 *group, const void *owner)
{
	struct lite_async *a;
	bool queued;

	while ((a = lite_async_drop(file, group, owner, &queued))) {
		if (queued)
			lite_async_unqueue(a, -ECANCELED);
		else
			lite_async_end(a, -ECANCELED);
		lite_async_reap(a);
		lite_async_put(a);
	}
}

/*
 * Collect a call that has ended, or cancel a group; the results in @c are set. May sleep;
 * interruptible. Return: 0 or a negative errno as LITE_IOC_RPC_COLLECT.
 */
int lite_file_collect(struct lite_rpc_file *file, struct lite_ioc_rpc_collect *c,
		      struct lite_gate *gate)
{
	unsigned long deadline = lite_serve_deadline(c->timeout_ms);

	if (c->flags & ~(LITE_RPC_NOWAIT | LITE_RPC_INTO | LITE_RPC_CANCEL))
		return -EOPNOTSUPP;
	if (!lite_timeout_ok(c->timeout_ms))
		return -EINVAL;
	if (!(c->flags & LITE_RPC_CANCEL))
		return lite_async_collect(file, c, gate, deadline);
	lite_async_cancel(file, &c->group, NULL);
	return 0;
}

/* Wake all threads in COLLECT, which may be many; the node is @stopping already. May sleep. */
void lite_async_stop(struct lite_rpc_file *file)
{
	struct lite_line_place *first;

	do {
		spin_lock(&file->lock);
		first = lite_line_front(&file->collectors);
		if (first)
			lite_collector_wake(file, first->kind, true);
		spin_unlock(&file->lock);
		cond_resched();
	} while (first);
}
