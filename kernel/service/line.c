// SPDX-License-Identifier: GPL-2.0
/*
 * Slots and records of rings, and the calls that queue for them.
 *
 * A call needs a slot of the ring, a record in it, and a place in the window of
 * the connection; it gets all of them or none. A call that gets none queues in
 * the ring's line. The first in line goes before any later call, so that short
 * requests cannot starve a long one. The lines of a connection take turns: a
 * free place in the window goes to the next ring with room. No ring and no user
 * (../core/pool.h) gets so much of the window that nothing is left for others:
 * calls of other users pass those of a user at its limit, in its line, too.
 */
#include "../wait.h"
#include "service.h"

static struct lite_rcall *lite_liner_call(struct lite_liner *l)
{
	return container_of(l, struct lite_rcall, liner);
}

/*
 * Give a call its place. -EAGAIN: there is none; -EDQUOT: its user is at the
 * limit.
 */
static int lite_line_grant(struct lite_bind *bind, struct lite_liner *l)
{
	struct lite_rpc_peer *rp = bind->rp;
	struct lite_rcall *call = lite_liner_call(l);
	struct lite_bind_slot *s;
	u32 slot, unit;

	lockdep_assert_held(&rp->lock);
	if (!lite_window_has_room(hweight64(bind->slots_used), rp->window) ||
	    !~bind->slots_used)
		return -EAGAIN;
	slot = __ffs64(~bind->slots_used);
	if (slot >= bind->depth)
		return -EAGAIN;
	if (l->part && lite_pool_take_part(&rp->users, l->part, 1))
		return -EDQUOT;
	unit = lite_ring_take(&bind->map, l->units);
	if (unit == LITE_RING_NONE) {
		if (l->part)
			lite_pool_give_part(&rp->users, l->part, 1);
		return -EAGAIN;
	}
	rp->window--;
	bind->slots_used |= 1ULL << slot;
	bind->used = jiffies;
	s = &bind->slot[slot];
	s->state = LITE_BIND_FILLING;
	s->oneway = call->flags & LITE_RPC_ONEWAY;
	s->unit = unit;
	s->units = l->units;
	s->part = l->part;
	l->part = NULL;
	s->room = min(call->room, bind->max_reply);
	s->seq = atomic64_inc_return(&rp->svc->seqs);
	s->call = call;
	s->request = call->bulk;
	if (s->request)
		kref_get(&s->request->ref);
	s->reply = call->reply_bulk;
	if (s->reply)
		kref_get(&s->reply->ref);
	call->slot = slot;
	lite_stat_inc(rp->svc->stats, LITE_STAT_RPCS_INFLIGHT);
	return 0;
}

/* It is in line no more. */
static void lite_liner_end(struct lite_liner *l, int err)
{
	struct lite_rcall *call = lite_liner_call(l);

	list_del(&l->list);
	l->err = err;
	if (call->in_turn)
		call->in_turn(call);
	else
		complete(&call->done);
}

/* Serve the first call in a ring's line of a user below its limit. */
static bool lite_line_serve(struct lite_bind *bind)
{
	struct lite_pool_part *full = NULL;
	struct lite_liner *l;
	int err = -EAGAIN;

	list_for_each_entry(l, &bind->line, list) {
		/* Skips further calls of that user. */
		if (full && l->part == full)
			continue;
		err = lite_line_grant(bind, l);
		if (err != -EDQUOT)
			break;
		full = l->part;
	}
	if (err)
		return false;
	lite_liner_end(l, 0);
	if (list_empty(&bind->line))
		list_del_init(&bind->line_list);
	else
		list_move_tail(&bind->line_list, &bind->rp->lines);
	return true;
}

/*
 * Serve the lines after something has become free. Context: process, receive
 * handlers; rp->lock is held.
 */
void lite_line_move(struct lite_rpc_peer *rp)
{
	struct lite_bind *bind;
	bool served;

	lockdep_assert_held(&rp->lock);
	do {
		served = false;
		if (!rp->window)
			return;
		list_for_each_entry(bind, &rp->lines, line_list) {
			served = lite_line_serve(bind);
			if (served)
				break;
		}
	} while (served);
}

/* End all calls in a ring's line with @err. */
void lite_line_end(struct lite_bind *bind, int err)
{
	struct lite_liner *l, *tmp;

	lockdep_assert_held(&bind->rp->lock);
	list_for_each_entry_safe(l, tmp, &bind->line, list)
		lite_liner_end(l, err);
	list_del_init(&bind->line_list);
}

/*
 * Queue a call. If the calls before it are of users at their limit, it may be
 * served at once.
 */
static void lite_line_enter(struct lite_bind *bind, struct lite_liner *l)
{
	bool first = list_empty(&bind->line);

	lockdep_assert_held(&bind->rp->lock);
	if (first)
		list_add_tail(&bind->line_list, &bind->rp->lines);
	list_add_tail(&l->list, &bind->line);
	if (!first)
		lite_line_serve(bind);
}

static void lite_line_leave(struct lite_bind *bind, struct lite_liner *l)
{
	lockdep_assert_held(&bind->rp->lock);
	list_del(&l->list);
	if (list_empty(&bind->line))
		list_del_init(&bind->line_list);
}

/**
 * lite_line_look - what has become of a call in line
 * @call: lite_line_take(), or lite_bind_get(), has said -EINPROGRESS
 * @leave: 0, or why it is to be in line no more
 *
 * Context: process.
 * Return: as lite_line_take(); @leave, if it was still in line.
 */
int lite_line_look(struct lite_rcall *call, int leave)
{
	struct lite_liner *l = &call->liner;
	struct lite_rpc_peer *rp = call->bind->rp;
	int err;

	spin_lock(&rp->lock);
	if (l->err == -EINPROGRESS && leave) {
		lite_line_leave(call->bind, l);
		l->err = leave;
		/* It may have held up the next in line. */
		lite_line_move(rp);
	}
	err = l->err;
	spin_unlock(&rp->lock);
	/* Else it is the slot's, or to be. */
	if (err != -EINPROGRESS && l->part) {
		lite_pool_drop(&rp->users, l->part);
		l->part = NULL;
	}
	return err;
}

/* Also what came in the last moment counts. */
static int lite_line_wait(struct lite_rcall *call)
{
	unsigned long left = lite_jiffies_left(call->deadline);
	long ret = left ? lite_wait_done_timeout(&call->done, left) : 0;

	return lite_line_look(call, ret < 0 ? -EINTR : -ETIMEDOUT);
}

/**
 * lite_line_enter_new - be told when a ring has been bound, or not
 * @call: its @bind is set, NEW, and its connection's lock is held; has @in_turn
 */
void lite_line_enter_new(struct lite_rcall *call)
{
	lockdep_assert_held(&call->bind->rp->lock);
	call->liner.part = NULL;
	call->liner.err = -EINPROGRESS;
	list_add_tail(&call->liner.list, &call->bind->line);
}

/**
 * lite_line_take - get a slot and a record for a call
 * @call: its @bind is set; on success its @slot is, which is FILLING
 *
 * Context: may sleep; killable.
 * Return: 0; -ESTALE: the ring is closed, bind again; -EAGAIN: the call does
 * not want to wait; -ENOMEM, -ETIMEDOUT, -EINTR; -EINPROGRESS: it is in line, and
 * @in_turn will be called, unless it has been.
 */
int lite_line_take(struct lite_rcall *call)
{
	struct lite_bind *bind = call->bind;
	struct lite_rpc_peer *rp = bind->rp;
	struct lite_liner *l = &call->liner;
	int err;

	l->units = lite_ring_units(LITE_RPC_HEADER +
				   lite_rcall_body(call, NULL));
	l->part = NULL;
	if (call->cred->uid) {
		l->part = lite_pool_hold(&rp->users, call->cred->uid);
		if (!l->part)
			return -ENOMEM;
	}
	spin_lock(&rp->lock);
	if (rp->dead || bind->state != LITE_BIND_LIVE)
		err = -ESTALE;
	else if (list_empty(&bind->line))
		err = lite_line_grant(bind, l);
	else
		err = -EAGAIN;
	l->err = err;
	if (unlikely(err == -EAGAIN || err == -EDQUOT)) {
		l->err = -EINPROGRESS;
		lite_line_enter(bind, l);
		spin_unlock(&rp->lock);
		if (call->flags & LITE_RPC_NOWAIT)
			err = lite_line_look(call, -EAGAIN);
		else if (call->in_turn)
			err = lite_line_look(call, 0);
		else
			err = lite_line_wait(call);
		/* It may be done by now, with this. */
		reinit_completion(&call->done);
		return err;
	}
	spin_unlock(&rp->lock);
	/* Otherwise the slot has it. */
	if (l->part)
		lite_pool_drop(&rp->users, l->part);
	return err;
}

/* Drop a slot's memory outside of its record; the peer is done with it. */
void lite_slot_drop(struct lite_bind_slot *s)
{
	lite_bulk_put_later(s->request);
	lite_bulk_put_later(s->reply);
	s->request = NULL;
	s->reply = NULL;
}

/* Free a slot and its record, which the peer will not write any more. */
void lite_slot_free(struct lite_bind *bind, u32 slot)
{
	struct lite_bind_slot *s = &bind->slot[slot];
	struct lite_rpc_peer *rp = bind->rp;

	lockdep_assert_held(&rp->lock);
	lite_ring_give(&bind->map, s->unit, s->units);
	rp->window++;
	if (s->part) {
		lite_pool_give_part(&rp->users, s->part, 1);
		lite_pool_drop(&rp->users, s->part);
		s->part = NULL;
	}
	s->state = LITE_BIND_FREE;
	s->call = NULL;
	/* A dying peer may still touch it: it is freed with the mirror. */
	if (!rp->dead)
		lite_slot_drop(s);
	bind->slots_used &= ~(1ULL << slot);
	bind->used = jiffies;
	lite_stat_dec(rp->svc->stats, LITE_STAT_RPCS_INFLIGHT);
	if (!rp->dead && !list_empty(&rp->lines))
		lite_line_move(rp);
	lite_bind_check_empty(bind);
}
