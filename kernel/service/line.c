// SPDX-License-Identifier: GPL-2.0
/*
 * Slots and records of rings, and those who wait for them.
 *
 * A call needs a slot of the ring, a record in it, and a place in the window of
 * the connection. It has all of them or none. Who does not get them waits in the
 * ring's line; the first in line gets what comes free before anybody who comes
 * later, so that a long request is not passed by short ones for ever. The lines
 * of a connection take turns: what comes free in the window goes to the next one
 * whose ring has room. No ring gets so much of it that nothing is left for others,
 * and no user (../core/pool.h): a caller whose user has its part is passed by those
 * of others, in its line, too.
 */
#include "../wait.h"
#include "service.h"

static struct lite_rcall *lite_liner_call(struct lite_liner *l)
{
	return container_of(l, struct lite_rcall, liner);
}

/* The call gets its place: 0; -EAGAIN: there is none; -EDQUOT: not for its user. */
static int lite_line_grant(struct lite_bind *bind, struct lite_liner *l)
{
	struct lite_rpc_peer *rp = bind->rp;
	struct lite_rcall *call = lite_liner_call(l);
	struct lite_bind_slot *s;
	u32 slot, unit;

	lockdep_assert_held(&rp->lock);
	if (!lite_window_has_room(bind->under_way, rp->window) ||
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
	bind->under_way++;
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

/* Serve the first in line of one ring whose user has not got its part. */
static bool lite_line_serve(struct lite_bind *bind)
{
	struct lite_pool_part *full = NULL;
	struct lite_liner *l;
	int err = -EAGAIN;

	list_for_each_entry(l, &bind->line, list) {
		/* There may be many of one user. */
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

/**
 * lite_line_move - something has come free: serve those in line
 * @rp: of the connection; its lock is held
 *
 * Context: process; receive handlers.
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

/**
 * lite_line_end - nobody gets anything here any more
 * @bind: its connection's lock is held
 * @err: why
 */
void lite_line_end(struct lite_bind *bind, int err)
{
	struct lite_liner *l, *tmp;

	lockdep_assert_held(&bind->rp->lock);
	list_for_each_entry_safe(l, tmp, &bind->line, list)
		lite_liner_end(l, err);
	list_del_init(&bind->line_list);
}

/* It is passed by nobody but those of other users: the first of these may be it. */
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
		/* It may have stood in the way of the one behind it. */
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
 * lite_line_take - a slot and a record for a call
 * @call: its @bind is set; its @slot is, too, then, which is FILLING
 *
 * Context: may sleep; killable.
 * Return: 0; -ESTALE: the ring is not used any more, bind anew; -EAGAIN: it does
 * not want to wait; -ETIMEDOUT, -EINTR; -EINPROGRESS: it is in line, and @in_turn
 * will be called, unless it has been.
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
	/* Else it is the slot's. */
	if (l->part)
		lite_pool_drop(&rp->users, l->part);
	return err;
}

/**
 * lite_window_leave - a call of a ring is not under way any more
 * @bind: ring; its connection's lock is held
 * @s: the call's slot
 *
 * Who is in line is still to be looked at: lite_line_move().
 */
void lite_window_leave(struct lite_bind *bind, struct lite_bind_slot *s)
{
	struct lite_pool *users = &bind->rp->users;

	lockdep_assert_held(&bind->rp->lock);
	bind->under_way--;
	bind->rp->window++;
	if (s->part) {
		lite_pool_give_part(users, s->part, 1);
		lite_pool_drop(users, s->part);
		s->part = NULL;
	}
}

/**
 * lite_slot_drop - the peer will not touch what a call has beside its record
 * @s: slot; its connection's lock is held
 */
void lite_slot_drop(struct lite_bind_slot *s)
{
	lite_bulk_put_later(s->request);
	lite_bulk_put_later(s->reply);
	s->request = NULL;
	s->reply = NULL;
}

/**
 * lite_slot_free - a slot and its record are free
 * @bind: of the slot; its connection's lock is held
 * @slot: the peer will not write its record
 */
void lite_slot_free(struct lite_bind *bind, u32 slot)
{
	struct lite_bind_slot *s = &bind->slot[slot];
	struct lite_rpc_peer *rp = bind->rp;

	lockdep_assert_held(&rp->lock);
	lite_ring_give(&bind->map, s->unit, s->units);
	if (s->state != LITE_BIND_KEPT)
		lite_window_leave(bind, s);
	s->state = LITE_BIND_FREE;
	s->call = NULL;
	/* A dying peer may touch it yet: it goes as the mirror does. */
	if (!rp->dead)
		lite_slot_drop(s);
	bind->slots_used &= ~(1ULL << slot);
	bind->used = jiffies;
	lite_stat_dec(rp->svc->stats, LITE_STAT_RPCS_INFLIGHT);
	if (!rp->dead && !list_empty(&rp->lines))
		lite_line_move(rp);
	lite_bind_check_empty(bind);
}
