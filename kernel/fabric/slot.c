// SPDX-License-Identifier: GPL-2.0
/*
 * Waiting for send slots.
 *
 * Normal operation: the poster takes a free slot of its class, without a lock, and posts at once
 * (qp.c). If there is none, it queues. While a class has waiters its slots are granted FIFO; a
 * later poster queues, or is refused if it must not wait. The thread that gives a slot back posts
 * the first waiter's work requests for it, so a waiter that is seldom scheduled is not overtaken,
 * and holds no idle slot.
 *
 * Classes: work requests of more than LITE_BULK_BYTES have a few slots of their own. That bounds
 * the bytes in a send queue to 1.4 MB, and so the delay of small ones. Messages of calls between
 * kernels need no slots: lite_conn_send().
 *
 * Recovery: nothing is granted when the connection is dead; waiters leave. A waiter also notices
 * when the device is stuck (io.c); how long it has waited itself says nothing about the device.
 *
 * Locking: lite_qp.lock protects lite_qp.line and lite_qp.waiting. Nothing is posted under it.
 */
#include "slot.h"

/* Dequeue the first waiter for which there is a slot; if @dead, any waiter, without a slot. */
static struct lite_post *lite_slot_next(struct lite_qp *qp, bool dead, int *slot)
{
	struct lite_post *post = NULL;
	int kind;

	spin_lock(&qp->lock);
	for (kind = 0; kind < LITE_SLOT_CLASSES; kind++) {
		post = list_first_entry_or_null(&qp->line[kind], struct lite_post, list);
		*slot = post && !dead ? lite_slot_get(qp, kind) : 0;
		if (post && *slot >= 0)
			break;
		post = NULL;
	}
	if (post) {
		list_del_init(&post->list);
		WRITE_ONCE(qp->waiting[kind], qp->waiting[kind] - 1);
	}
	spin_unlock(&qp->lock);
	return post;
}

/* lite_slots_grant() must follow. */
static void lite_slot_enter_line(struct lite_post *post)
{
	struct lite_qp *qp = post->qp;

	spin_lock(&qp->lock);
	list_add_tail(&post->list, &qp->line[post->kind]);
	WRITE_ONCE(qp->waiting[post->kind], qp->waiting[post->kind] + 1);
	spin_unlock(&qp->lock);
	/* From here on @post may be gone. */
	smp_mb(); /* pairs with lite_slots_give() */
}

/*
 * Some work requests of a waiter have been posted: should it be woken? If not, this thread queues
 * it for the next slot, because its own thread may have no processor. But on a scheduled connection
 * it needs another turn, which its own thread has to ask for.
 */
static bool lite_slot_is_over(const struct lite_post *post)
{
	return !post->n || post->err ||
	       (post->prio != LITE_POST_UNSCHEDULED && lite_turns_on(post->qp->conn));
}

/*
 * Post for waiters while there are slots. If the connection is dead, only one waiter leaves: there
 * may be too many to wake with preemption off. lite_qp_flush() calls this until none is left. A
 * poster that queues later calls it itself, so each new waiter removes one; this also ends the
 * recursion from a post that fails. Process context. Return: has a waiter left a dead connection?
 */
bool lite_slots_grant(struct lite_qp *qp)
{
	struct lite_post *post;
	bool dead;
	int slot;

	do {
		/* A dequeued waiter depends on this thread. */
		lite_posting_begin(qp->conn);
		dead = lite_conn_is_dead(qp->conn);
		post = lite_slot_next(qp, dead, &slot);
		if (post) {
			if (dead)
				lite_post_fail(post, -EHOSTDOWN);
			else
				lite_post_with(post, slot);
			if (lite_slot_is_over(post))
				lite_io_end(&post->turn, 0, 1);
			else
				lite_slot_enter_line(post);
		}
		lite_posting_end(qp->conn);
	} while (post && !dead);
	return post;
}

/* Take a slot, and a turn if needed, for @post. Process context. Return: the slot or -EAGAIN. */
int lite_slot_try(struct lite_post *post)
{
	if (post->prio != LITE_POST_UNSCHEDULED && lite_turns_on(post->qp->conn))
		return lite_turn_take(post);
	return lite_slot_get_last(post->qp, post->kind);
}

/* Have @post, which may be another thread's, wait for a slot. Process context. */
void lite_slot_queue(struct lite_post *post)
{
	struct lite_qp *qp = post->qp;

	lite_slot_enter_line(post);
	lite_slots_grant(qp);
}

/* From here on posters need turns (@on), or do not. Process context. */
void lite_slots_schedule(struct lite_qp *qp, bool on)
{
	int kind;

	spin_lock(&qp->lock);
	for (kind = 0; kind < LITE_SLOT_CLASSES; kind++)
		WRITE_ONCE(qp->waiting[kind], qp->waiting[kind] + (on ? 1 : -1));
	spin_unlock(&qp->lock);
}

/*
 * Take a waiter out of the line if it is @killed, or an LMR that it has entered is about to be
 * changed. Process context. Return: false: it stays, or is not in line.
 */
bool lite_slot_leave(struct lite_post *post, bool killed)
{
	struct lite_qp *qp = post->qp;
	bool leaves;

	spin_lock(&qp->lock);
	/* If it is not in line, @io may have ended. */
	leaves = !list_empty(&post->list) && (killed || post->stale(post->io));
	if (leaves) {
		list_del_init(&post->list);
		WRITE_ONCE(qp->waiting[post->kind], qp->waiting[post->kind] - 1);
	}
	spin_unlock(&qp->lock);
	return leaves;
}

static void lite_slot_tick(struct lite_io *turn)
{
	struct lite_post *post = container_of(turn, struct lite_post, turn);

	if (!lite_slot_leave(post, false))
		return;
	lite_post_fail(post, -EAGAIN);
	lite_io_end(turn, 0, 1);
}

/*
 * Wait until other threads have posted all of @post, or at least one work request if the connection
 * is scheduled, or have set its error. May sleep; ends early only if lite_io_hooks.stale says so,
 * or as lite_turn_wait() does. Uninterruptible otherwise: slots come free as fast as the device
 * works, and the wait ends when the connection dies. Either lite_qp_flush() finds the waiter in
 * line, or the waiter enters the line later, and sees the death itself.
 */
void lite_slot_wait(struct lite_post *post)
{
	const struct lite_io_hooks *hooks = post->io->waiter == current ? post->io->hooks : NULL;

	if (post->prio != LITE_POST_UNSCHEDULED && lite_turns_on(post->qp->conn) &&
	    lite_turn_wait(post))
		return;
	post->stale = hooks ? hooks->stale : NULL;
	INIT_LIST_HEAD(&post->list);
	lite_io_init(&post->turn);
	lite_io_expect(&post->turn, 1);
	lite_slot_queue(post);
	lite_io_wait_ticking(&post->turn, post->qp, LITE_ROOM_SPIN_NS,
			     post->stale ? lite_slot_tick : NULL);
}
