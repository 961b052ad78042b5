// SPDX-License-Identifier: GPL-2.0
/*
 * Slots and records of rings, and the calls that queue for them.
 *
 * A call needs a slot of the ring, a record in it, and a place in the
 * connection's window; it gets all of them or none, and then queues in the
 * ring's line. The first in line goes before any later call, so that short
 * requests cannot starve a long one. The lines of a connection take turns: a
 * free place in the window goes to the next ring with room.
 *
 * No ring and no user (../core/pool.h) gets all of the window, so other users
 * can always call. For the same reason their calls pass those of a user at its
 * limit.
 */
#include "function/service.h"
#include "wait.h"

static struct lite_rcall *lite_liner_call(struct lite_ring_waiter *l)
{
	return container_of(l, struct lite_rcall, liner);
}

/*
 * Give a call its slot. -EAGAIN: there is no room; -EDQUOT: its user is at the
 * limit.
 */
static int lite_ring_wait_grant(struct lite_client_ring *ring,
				struct lite_ring_waiter *l)
{
	struct lite_rpc_peer *rp = ring->rp;
	struct lite_rcall *call = lite_liner_call(l);
	struct lite_client_ring_slot *s;
	u32 slot, unit;

	lockdep_assert_held(&rp->lock);
	if (!lite_window_has_room(hweight64(ring->slots_used), rp->window) ||
	    !~ring->slots_used)
		return -EAGAIN;
	slot = __ffs64(~ring->slots_used);
	if (slot >= ring->depth)
		return -EAGAIN;
	if (l->part && lite_pool_take_part(&rp->users, l->part, 1))
		return -EDQUOT;
	unit = lite_ring_take(&ring->map, l->units);
	if (unit == LITE_RING_NONE) {
		if (l->part)
			lite_pool_give_part(&rp->users, l->part, 1);
		return -EAGAIN;
	}
	rp->window--;
	ring->slots_used |= 1ULL << slot;
	ring->used = jiffies;
	s = &ring->slot[slot];
	s->state = LITE_CLIENT_RING_FILLING;
	s->oneway = call->flags & LITE_RPC_ONEWAY;
	s->unit = unit;
	s->units = l->units;
	s->part = l->part;
	l->part = NULL;
	s->room = min(call->room, ring->max_reply);
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

/* Remove a call from the line and tell it. */
static void lite_liner_end(struct lite_ring_waiter *l, int err)
{
	struct lite_rcall *call = lite_liner_call(l);

	list_del(&l->list);
	l->err = err;
	if (call->in_turn)
		call->in_turn(call);
	else
		complete(&call->done);
}

/* Serve the first call in line that is not of a user at its limit. */
static bool lite_ring_wait_serve(struct lite_client_ring *ring)
{
	struct lite_pool_part *full = NULL;
	struct lite_ring_waiter *l;
	int err = -EAGAIN;

	list_for_each_entry(l, &ring->line, list) {
		/* Skips further calls of that user. */
		if (full && l->part == full)
			continue;
		err = lite_ring_wait_grant(ring, l);
		if (err != -EDQUOT)
			break;
		full = l->part;
	}
	if (err)
		return false;
	lite_liner_end(l, 0);
	if (list_empty(&ring->line))
		list_del_init(&ring->line_list);
	else
		list_move_tail(&ring->line_list, &ring->rp->lines);
	return true;
}

/*
 * Serve the lines after something has become free. Context: process or receive
 * handler; rp->lock is held.
 */
void lite_ring_wait_move(struct lite_rpc_peer *rp)
{
	struct lite_client_ring *ring;
	bool served;

	lockdep_assert_held(&rp->lock);
	do {
		served = false;
		if (!rp->window)
			return;
		list_for_each_entry(ring, &rp->lines, line_list) {
			served = lite_ring_wait_serve(ring);
			if (served)
				break;
		}
	} while (served);
}

/* End all calls in a ring's line with @err. */
void lite_ring_wait_end(struct lite_client_ring *ring, int err)
{
	struct lite_ring_waiter *l, *tmp;

	lockdep_assert_held(&ring->rp->lock);
	list_for_each_entry_safe(l, tmp, &ring->line, list)
		lite_liner_end(l, err);
	list_del_init(&ring->line_list);
}

/*
 * Queue a call. If the calls before it are of users at their limit, it may be
 * served at once.
 */
static void lite_ring_wait_enter(struct lite_client_ring *ring,
				 struct lite_ring_waiter *l)
{
	bool first = list_empty(&ring->line);

	lockdep_assert_held(&ring->rp->lock);
	if (first)
		list_add_tail(&ring->line_list, &ring->rp->lines);
	list_add_tail(&l->list, &ring->line);
	if (!first)
		lite_ring_wait_serve(ring);
}

static void lite_ring_wait_leave(struct lite_client_ring *ring,
				 struct lite_ring_waiter *l)
{
	lockdep_assert_held(&ring->rp->lock);
	list_del(&l->list);
	if (list_empty(&ring->line))
		list_del_init(&ring->line_list);
}

/**
 * lite_ring_wait_look - what has become of a call in line
 * @call: lite_ring_wait_take() or lite_client_ring_get() returned -EINPROGRESS
 * @leave: 0, or the error with which to leave the line
 *
 * Context: process.
 * Return: as lite_ring_wait_take(); @leave if it was still in line.
 */
int lite_ring_wait_look(struct lite_rcall *call, int leave)
{
	struct lite_ring_waiter *l = &call->liner;
	struct lite_rpc_peer *rp = call->ring->rp;
	int err;

	spin_lock(&rp->lock);
	if (l->err == -EINPROGRESS && leave) {
		lite_ring_wait_leave(call->ring, l);
		l->err = leave;
		/* It may have held up the next in line. */
		lite_ring_wait_move(rp);
	}
	err = l->err;
	spin_unlock(&rp->lock);
	/* Otherwise the slot has it, or will have it. */
	if (err != -EINPROGRESS && l->part) {
		lite_pool_drop(&rp->users, l->part);
		l->part = NULL;
	}
	return err;
}

/* A slot that came at the last moment is still taken. */
static int lite_ring_wait_wait(struct lite_rcall *call)
{
	unsigned long left = lite_jiffies_left(call->deadline);
	long ret = left ? lite_wait_done_timeout(&call->done, left) : 0;

	return lite_ring_wait_look(call, ret < 0 ? -EINTR : -ETIMEDOUT);
}

/*
 * Queue a call, which has @in_turn, for its NEW ring to be bound. The lock of
 * the connection is held.
 */
void lite_ring_wait_enter_new(struct lite_rcall *call)
{
	lockdep_assert_held(&call->ring->rp->lock);
	call->liner.part = NULL;
	call->liner.err = -EINPROGRESS;
	list_add_tail(&call->liner.list, &call->ring->line);
}

/**
 * lite_ring_wait_take - get a slot and a record for a call
 * @call: its @ring is set; on success its @slot is set, and FILLING
 *
 * Context: may sleep; killable.
 * Return: 0; -ESTALE: the ring is closed, bind again; -EAGAIN: there is no
 * room, and NOWAIT is set; -ENOMEM, -ETIMEDOUT, -EINTR; -EINPROGRESS: it is in
 * line, and @in_turn will be called, or has been.
 */
int lite_ring_wait_take(struct lite_rcall *call)
{
	struct lite_client_ring *ring = call->ring;
	struct lite_rpc_peer *rp = ring->rp;
	struct lite_ring_waiter *l = &call->liner;
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
	if (rp->dead || ring->state != LITE_CLIENT_RING_LIVE)
		err = -ESTALE;
	else if (list_empty(&ring->line))
		err = lite_ring_wait_grant(ring, l);
	else
		err = -EAGAIN;
	l->err = err;
	if (unlikely(err == -EAGAIN || err == -EDQUOT)) {
		l->err = -EINPROGRESS;
		lite_ring_wait_enter(ring, l);
		spin_unlock(&rp->lock);
		if (call->flags & LITE_RPC_NOWAIT)
			err = lite_ring_wait_look(call, -EAGAIN);
		else if (call->in_turn)
			err = lite_ring_wait_look(call, 0);
		else
			err = lite_ring_wait_wait(call);
		/* Leaving the line may have completed it. */
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
void lite_slot_drop(struct lite_client_ring_slot *s)
{
	lite_bulk_put_later(s->request);
	lite_bulk_put_later(s->reply);
	s->request = NULL;
	s->reply = NULL;
}

/* Free a slot and its record, which the peer will not write any more. */
void lite_slot_free(struct lite_client_ring *ring, u32 slot)
{
	struct lite_client_ring_slot *s = &ring->slot[slot];
	struct lite_rpc_peer *rp = ring->rp;

	lockdep_assert_held(&rp->lock);
	lite_ring_give(&ring->map, s->unit, s->units);
	rp->window++;
	if (s->part) {
		lite_pool_give_part(&rp->users, s->part, 1);
		lite_pool_drop(&rp->users, s->part);
		s->part = NULL;
	}
	s->state = LITE_CLIENT_RING_FREE;
	s->call = NULL;
	/* A dying peer may still touch it: it is freed with the mirror. */
	if (!rp->dead)
		lite_slot_drop(s);
	ring->slots_used &= ~(1ULL << slot);
	ring->used = jiffies;
	lite_stat_dec(rp->svc->stats, LITE_STAT_RPCS_INFLIGHT);
	if (!rp->dead && !list_empty(&rp->lines))
		lite_ring_wait_move(rp);
	lite_client_ring_check_empty(ring);
}
