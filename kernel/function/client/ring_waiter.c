// SPDX-License-Identifier: GPL-2.0
/*
 * Slots and records of rings, and the calls that queue for them: Documentation/rpc.rst,
 * Back-pressure. A call needs a slot of the ring, a record in it, and a place in the connection's
 * window. It gets all three at once, or queues in the ring's line. There users take turns, and each
 * user's calls are served in order, so that short requests cannot starve a long one; but calls of
 * other users pass those of a user at its limit, as long as that user has another call in the ring.
 */
#include "function/service.h"

/* Calls that are ended before the lock is dropped. */
#define LITE_RING_WAIT_ENDS 64
/* Lines served before the lock is dropped: a user may have calls in line for all rings. */
#define LITE_LINES_LOOK 16

/* Has a user a call in a ring? Root, which has no @part, does not count. */
static bool lite_ring_has_call_of(const struct lite_client_ring *ring,
				  const struct lite_pool_part *part)
{
	u32 i;

	for (i = 0; part && i < ring->depth; i++)
		if (ring->slots_used & BIT_ULL(i) && ring->slot[i].part == part)
			return true;
	return false;
}

/*
 * Take units for a call. The last part of a ring, and the last eighth of its slots, are left to
 * users that have no call in it. Return: 0; -EAGAIN: no room; -EDQUOT: room only for such users.
 */
static int lite_ring_wait_units(struct lite_client_ring *ring, const struct lite_rcall *call,
				u32 *unit)
{
	u32 slots = ring->depth - hweight64(ring->slots_used);

	if (slots <= ring->depth / 8 && lite_ring_has_call_of(ring, call->part))
		return -EDQUOT;
	*unit = lite_ring_take(&ring->map, call->units, ring->limit);
	if (*unit != LITE_RING_NONE)
		return 0;
	if (ring->limit == ring->map.units)
		return -EAGAIN;
	if (lite_ring_has_call_of(ring, call->part))
		return -EDQUOT;
	*unit = lite_ring_take(&ring->map, call->units, ring->map.units);
	return *unit == LITE_RING_NONE ? -EAGAIN : 0;
}

/* Give a call its slot. Return: 0; -EAGAIN: there is no room; -EDQUOT: its user is at the limit. */
static int lite_ring_wait_grant(struct lite_client_ring *ring, struct lite_rcall *call)
{
	struct lite_rpc_peer *rp = ring->rp;
	struct lite_client_ring_slot *s;
	u32 slot, unit;
	int err;

	lockdep_assert_held(&rp->lock);
	if (!lite_window_has_room(hweight64(ring->slots_used), rp->window) || !~ring->slots_used)
		return -EAGAIN;
	slot = __ffs64(~ring->slots_used);
	if (slot >= ring->depth)
		return -EAGAIN;
	if (call->part && lite_pool_take_part(&rp->users, call->part, 1))
		return -EDQUOT;
	err = lite_ring_wait_units(ring, call, &unit);
	if (err) {
		if (call->part)
			lite_pool_give_part(&rp->users, call->part, 1);
		return err;
	}
	rp->window--;
	ring->slots_used |= 1ULL << slot;
	ring->used = jiffies;
	s = &ring->slot[slot];
	s->state = LITE_CLIENT_RING_FILLING;
	s->unit = unit;
	s->units = call->units;
	s->part = call->part;
	call->part = NULL;
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

/* A ring is in rp->lines while calls wait in its line, unless it is closed. */
static void lite_ring_list(struct lite_client_ring *ring, bool waits)
{
	struct lite_rpc_peer *rp = ring->rp;

	lockdep_assert_held(&rp->lock);
	if (waits == !list_empty(&ring->line_list))
		return;
	if (waits) {
		list_add_tail(&ring->line_list, &rp->lines);
		rp->n_lines++;
	} else {
		list_del_init(&ring->line_list);
		rp->n_lines--;
	}
}

/* Remove a call from the line, and tell it the result: 0 or an error. */
static void lite_ring_wait_tell(struct lite_rcall *call, int err)
{
	lite_line_leave(&call->place);
	call->line_err = err;
	if (call->in_turn)
		call->in_turn(call);
	else
		complete(&call->done);
}

/* Serve the first call in line that is not of a user at its limit. */
static bool lite_ring_wait_serve(struct lite_client_ring *ring)
{
	struct lite_line_place *root;
	struct lite_rcall *call;
	int err = -EAGAIN;

	list_for_each_entry(call, &ring->line.firsts, place.firsts) {
		err = lite_ring_wait_grant(ring, call);
		/* If even a user without a call gets no place, only root may get one now. */
		if (err != -EDQUOT || !call->part->has)
			break;
	}
	root = err == -EDQUOT ? lite_line_first(&ring->line, 0) : NULL;
	if (root) {
		call = container_of(root, struct lite_rcall, place);
		err = lite_ring_wait_grant(ring, call);
	}
	if (err)
		return false;
	lite_ring_wait_tell(call, 0);
	lite_ring_list(ring, !lite_line_empty(&ring->line));
	return true;
}

/* Serve some of the first @unlooked lines; the others have been seen. Return: are there more? */
static bool lite_lines_serve(struct lite_rpc_peer *rp)
{
	struct lite_client_ring *ring;
	int i;

	lockdep_assert_held(&rp->lock);
	for (i = 0; i < LITE_LINES_LOOK; i++) {
		if (!rp->unlooked || !rp->window || rp->dead || list_empty(&rp->lines))
			return false;
		ring = list_first_entry(&rp->lines, struct lite_client_ring, line_list);
		/* Lines take turns. */
		list_move_tail(&ring->line_list, &rp->lines);
		if (lite_ring_wait_serve(ring))
			rp->unlooked = rp->n_lines;
		else
			rp->unlooked--;
	}
	return true;
}

/* Something has become free: serve the lines. If there are many, a work item goes on. */
static void lite_lines_move(struct lite_rpc_peer *rp)
{
	rp->unlooked = rp->n_lines;
	if (lite_lines_serve(rp))
		queue_work(rp->svc->wq[LITE_WQ_CALLS], &rp->lines_work);
}

/* Serve the lines that lite_lines_move() has left. */
void lite_lines_work(struct work_struct *work)
{
	struct lite_rpc_peer *rp = container_of(work, struct lite_rpc_peer, lines_work);
	bool more;

	do {
		spin_lock(&rp->lock);
		more = lite_lines_serve(rp);
		spin_unlock(&rp->lock);
		cond_resched();
	} while (more);
}

/* End all calls in a line of a ring, which no call enters any more, with @err. May sleep. */
void lite_ring_wait_end(struct lite_client_ring *ring, struct lite_line *line, int err)
{
	struct lite_line_place *first;
	u32 n;

	do {
		spin_lock(&ring->rp->lock);
		for (n = 0; n < LITE_RING_WAIT_ENDS; n++) {
			first = lite_line_front(line);
			if (!first)
				break;
			lite_ring_wait_tell(container_of(first, struct lite_rcall, place), err);
		}
		spin_unlock(&ring->rp->lock);
		cond_resched();
	} while (first);
}

/* End the calls in the line of a closed ring; drops the reference of the work item. */
void lite_ring_line_work(struct work_struct *work)
{
	struct lite_client_ring *ring = container_of(work, struct lite_client_ring, line_work);

	/* -ESTALE: these calls bind anew. */
	lite_ring_wait_end(ring, &ring->line, -ESTALE);
	lite_client_ring_put(ring);
}

/* The ring takes no more calls: have line_work end those in its line. rp->lock is held. */
void lite_ring_wait_close(struct lite_client_ring *ring)
{
	lite_ring_list(ring, false);
	if (lite_line_empty(&ring->line))
		return;
	refcount_inc(&ring->ref);
	/* Already queued, with a reference of its own. */
	if (!queue_work(ring->rp->svc->wq[LITE_WQ_CALLS], &ring->line_work))
		lite_client_ring_put(ring);
}

/* A call is not in line any more: drop its part, unless the slot has it now. */
static void lite_ring_wait_drop(struct lite_rcall *call)
{
	if (call->part)
		lite_pool_drop(&call->ring->rp->users, call->part);
	call->part = NULL;
}

/*
 * What has become of a call that was in line; with @leave it leaves the line with that error, if it
 * is still there. Process context. Return: as lite_ring_wait_take(), or @leave.
 */
int lite_ring_wait_look(struct lite_rcall *call, int leave)
{
	struct lite_client_ring *ring = call->ring;
	struct lite_rpc_peer *rp = ring->rp;
	int err;

	spin_lock(&rp->lock);
	if (call->line_err == -EINPROGRESS && leave) {
		lite_line_leave(&call->place);
		if (lite_line_empty(&ring->line))
			lite_ring_list(ring, false);
		call->line_err = leave;
		/* It may have held up the next in line. */
		lite_lines_move(rp);
	}
	err = call->line_err;
	spin_unlock(&rp->lock);
	if (err != -EINPROGRESS)
		lite_ring_wait_drop(call);
	return err;
}

/* Wait in line; killable. Also takes a last-moment slot. Return: as lite_ring_wait_take(). */
int lite_ring_wait_sleep(struct lite_rcall *call)
{
	unsigned long left = lite_jiffies_left(call->deadline);
	long ret = left ? lite_wait_done_timeout(&call->done, left) : 0;

	return lite_ring_wait_look(call, ret < 0 ? -EINTR : -ETIMEDOUT);
}

/*
 * Get a slot (FILLING) and a record for a call with a ring. May sleep; killable. Return: 0;
 * -ESTALE: the ring is closed, bind again; -EAGAIN: there is no room, and NOWAIT is set; -ENOMEM,
 * -ETIMEDOUT, -EINTR; -EINPROGRESS: it is in line, and @in_turn will be called, or has been.
 */
int lite_ring_wait_take(struct lite_rcall *call)
{
	struct lite_client_ring *ring = call->ring;
	struct lite_rpc_peer *rp = ring->rp;
	bool first;
	int err;

	call->units = lite_ring_units(LITE_RPC_HEADER + lite_rcall_body(call));
	call->part = NULL;
	call->place.kind = call->cred->uid;
	if (call->cred->uid) {
		call->part = lite_pool_hold(&rp->users, call->cred->uid, GFP_KERNEL);
		if (!call->part)
			return -ENOMEM;
	}
	spin_lock(&rp->lock);
	if (rp->dead || ring->state != LITE_CLIENT_RING_LIVE)
		err = -ESTALE;
	else if (lite_line_empty(&ring->line))
		err = lite_ring_wait_grant(ring, call);
	else
		err = -EAGAIN;
	if (likely(err != -EAGAIN && err != -EDQUOT)) {
		spin_unlock(&rp->lock);
		lite_ring_wait_drop(call);
		return err;
	}
	call->line_err = -EINPROGRESS;
	first = lite_line_empty(&ring->line);
	lite_ring_list(ring, true);
	lite_line_enter(&ring->line, &call->place, false);
	/* If the calls before it are of users at their limit, it may be served at once. */
	if (!first)
		lite_ring_wait_serve(ring);
	spin_unlock(&rp->lock);
	if (call->flags & LITE_RPC_NOWAIT)
		err = lite_ring_wait_look(call, -EAGAIN);
	else if (call->in_turn)
		err = lite_ring_wait_look(call, 0);
	else
		err = lite_ring_wait_sleep(call);
	/* Leaving the line may have completed @done. */
	reinit_completion(&call->done);
	return err;
}

/* Drop the bulks of a slot, which the peer does not use any more. */
void lite_slot_drop(struct lite_client_ring_slot *s)
{
	lite_area_put_later(s->request);
	lite_area_put_later(s->reply);
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
	/* A dying peer may still use the bulks: they are freed with the mirror. */
	if (!rp->dead)
		lite_slot_drop(s);
	ring->slots_used &= ~(1ULL << slot);
	if (ring->cancels)
		lite_cancel_drop(ring, slot);
	ring->used = jiffies;
	lite_stat_dec(rp->svc->stats, LITE_STAT_RPCS_INFLIGHT);
	if (rp->n_lines)
		lite_lines_move(rp);
	lite_client_ring_check_empty(ring);
}
