// SPDX-License-Identifier: GPL-2.0
/*
 * Calls.
 *
 * Normal operation: find the ring, check, take a slot and a record, write
 * header and request into the mirror, post that, and wait until the reply is
 * in the mirror, doing the poller's work meanwhile. The send completion is not
 * waited for: the reply says more.
 *
 * Recovery: what was posted is never posted again. A call that was not posted,
 * because the session had ended, or that the server's kernel refused because
 * no server has seen it, is tried again in the next session or ring. end.c
 * describes how calls end.
 *
 * While the caller waits for user memory it holds neither a record nor a ring,
 * and has left the node, which may be stopped meanwhile.
 */
#include <linux/slab.h>

#include "function/service.h"
#include "memory/handle/ctx.h"
#include "trace.h"
#include "wait.h"

/* ---- sending ------------------------------------------------------------- */

/* Write the chunk list or the request behind the header. */
static int lite_rcall_copy(struct lite_rcall *call, void *to)
{
	size_t n;

	to += lite_rcall_list(call, to);
	if (unlikely(call->bulk))
		return 0;
	n = lite_buf_copy_nofault(&call->request, 0, to, call->length, true);
	call->missing = n < call->length;
	return call->missing ? -EFAULT : 0;
}

/**
 * lite_rcall_fault_in - wait for the part of a request that is not in memory
 * @call: could not be begun; its @missing is set
 *
 * Context: may sleep and fault; killable.
 * Return: 0: begin the call again; -EFAULT; -EINTR; -ENODEV: the node has been
 * stopped meanwhile, and must not be touched any more.
 */
int lite_rcall_fault_in(const struct lite_rcall *call)
{
	size_t done = 0;
	char byte;
	int err;

	/* Touch all of it: a mapping can end before the request does. */
	while (done < call->length) {
		err = lite_buf_fault_in(&call->request, done,
					call->length - done, true);
		if (err)
			return err;
		/* Skip the pages that are present. */
		while (done < call->length &&
		       lite_buf_copy_nofault(&call->request, done, &byte, 1,
					     true))
			done = min_t(size_t, call->length,
				     done + PAGE_SIZE -
					     offset_in_page(call->request.u +
							    done));
		if (lite_given_up())
			return -EINTR;
	}
	return 0;
}

static void lite_rcall_header(struct lite_rcall *call, u32 list,
			      struct lite_wire_rpc *h)
{
	struct lite_client_ring *ring = call->ring;
	struct lite_client_ring_slot *s = &ring->slot[call->slot];
	u32 flags = list ? LITE_RPC_F_BULK : 0;

	if (call->flags & LITE_RPC_ONEWAY)
		flags |= LITE_RPC_F_ONEWAY;
	*h = (struct lite_wire_rpc){
		.magic = cpu_to_le32(LITE_WIRE_MAGIC),
		.version = LITE_WIRE_VERSION,
		.slot = cpu_to_le16(call->slot),
		.seq = cpu_to_le64(s->seq),
		.length = cpu_to_le32(call->length),
		.room = cpu_to_le32(s->room),
		/* Unused within a node, but must not be 0. */
		.reply = cpu_to_le64(
			ring->rp->conn ? lite_area_dma(ring->area, s->unit) :
					 1),
		.uid = cpu_to_le32(call->cred->uid),
		.gid = cpu_to_le32(call->cred->gid),
		.flags = cpu_to_le32(flags),
	};
}

/*
 * From here on the call can end. A message is detached from its caller before
 * it is posted. -ESTALE: the connection is dying; the slot is free again.
 */
static int lite_rcall_arm(struct lite_rcall *call)
{
	struct lite_client_ring *ring = call->ring;
	struct lite_client_ring_slot *s = &ring->slot[call->slot];
	int err = 0;

	spin_lock(&ring->rp->lock);
	if (ring->rp->dead) {
		lite_slot_free(ring, call->slot);
		err = -ESTALE;
	} else if (call->flags & LITE_RPC_ONEWAY) {
		s->state = LITE_CLIENT_RING_ABANDONED;
		s->call = NULL;
	} else {
		s->state = LITE_CLIENT_RING_WAITING;
	}
	spin_unlock(&ring->rp->lock);
	return err;
}

/*
 * The post failed. Return -ESTALE: the slot is free again; 0: the call has
 * ended as one that was posted would have, and @ended has been called.
 *
 * A faulty peer may have answered a request that it never got. The slot may
 * then be another call's by now: @seq says whether it is still ours.
 */
static int lite_rcall_disarm(struct lite_rcall *call, u32 slot, u64 seq)
{
	struct lite_client_ring *ring = call->ring;
	struct lite_client_ring_slot *s = &ring->slot[slot];
	int err = -ESTALE;

	spin_lock(&ring->rp->lock);
	if (s->seq == seq && s->state != LITE_CLIENT_RING_FREE &&
	    (s->state != LITE_CLIENT_RING_ENDED || !call->ended))
		lite_slot_free(ring, slot);
	else if (call->ended)
		err = 0;
	spin_unlock(&ring->rp->lock);
	return err;
}

static int lite_rcall_post(struct lite_rcall *call)
{
	struct lite_client_ring *ring = call->ring;
	struct lite_client_ring_slot *s = &ring->slot[call->slot];
	u32 slot = call->slot, unit = s->unit, offset, chunk, list;
	u64 seq = s->seq, raddr = 0;
	int err;

	lite_rcall_body(call, &list);
	lite_rcall_header(call, list, lite_area_at(ring->area, unit));
	if (ring->rp->conn) {
		chunk = lite_area_chunk(ring->area, unit, &offset);
		raddr = ring->remote[chunk] + offset;
	}
	err = lite_rcall_arm(call);
	if (err)
		return err;
	err = lite_rpc_peer_post(ring->rp, ring->area, unit,
				 LITE_RPC_HEADER + list +
					 (call->bulk ? 0 : call->length),
				 raddr,
				 lite_imm_ring_encode(LITE_IMM_RPC_REQUEST,
						      ring->index, unit),
				 false);
	/* The session is over; an unsent call may be sent in the next one. */
	return err ? lite_rcall_disarm(call, slot, seq) : 0;
}

/* Get a ring, and a slot and a record in it. */
static int lite_rcall_place(struct lite_rcall *call)
{
	int err = lite_client_ring_get(call);

	if (err)
		return err;
	err = lite_client_ring_may_call(call->ring, call);
	if (err && call->flags & LITE_RCALL_TRY) {
		/*
		 * Whether that still holds has to be asked, which would wait.
		 */
		err = -EAGAIN;
	} else if (err && lite_client_ring_is_stale(call)) {
		lite_client_ring_close(call->ring);
		err = -ESTALE;
	}
	if (!err)
		err = lite_rcall_bulk_room(call);
	return err ?: lite_ring_wait_take(call);
}

/* One attempt in one ring. -ESTALE: nothing was sent, try another ring. */
static int lite_rcall_try(struct lite_rcall *call)
{
	struct lite_client_ring_slot *s;
	int err;

	/* With a ring, the call is or was in its line. */
	err = call->ring ? lite_ring_wait_look(call, 0) :
			   lite_rcall_place(call);
	if (err == -EINPROGRESS)
		return err;
	if (!err) {
		s = &call->ring->slot[call->slot];
		err = lite_rcall_copy(call, lite_area_at(call->ring->area,
							 s->unit) +
						    LITE_RPC_HEADER);
		if (!err)
			err = lite_rcall_post(call);
		else
			lite_rcall_free_slot(call);
	}
	if (!err)
		return 0;
	lite_rcall_unbind(call);
	/* The bulks are not kept either while user memory is waited for. */
	if (call->missing)
		lite_rcall_drop(call);
	return err;
}

/*
 * Give up beginning a call: lite_rcall_begin() has returned -EINPROGRESS, or
 * has not been called. Process context, no lock held.
 */
void lite_rcall_unqueue(struct lite_rcall *call)
{
	if (!call->ring)
		return;
	if (!lite_ring_wait_look(call, -ECANCELED))
		lite_rcall_free_slot(call);
	lite_rcall_unbind(call);
}

/**
 * lite_rcall_begin - send a request
 * @call: filled in, except for the results
 *
 * Context: may sleep; killable.
 * Return: 0: the call is in flight, and @call->ring and @call->slot are set;
 * else a negative errno as LITE_IOC_RPC_CALL: it was not sent, and holds
 * neither a ring nor a slot. If its @missing is set, see
 * lite_rcall_fault_in(). -EAGAIN with LITE_RCALL_TRY: begin it where waiting
 * is allowed. With @in_turn, -EINPROGRESS: it is in line; begin it again when
 * @in_turn is called; -ESTALE: the node is suspect, begin it again later.
 */
int lite_rcall_begin(struct lite_rcall *call)
{
	struct lite_service *svc = call->svc;
	unsigned long now;
	int tries = 0;
	int err, up;

	call->missing = false;
	if (!call->node)
		call->node = lite_cluster_id(svc->cl);
	for (;;) {
		err = lite_cluster_ready(svc->cl);
		if (err)
			return err;
		if (READ_ONCE(svc->stopping))
			return -ENODEV;
		call->err = 0;
		call->by_reference = false;
		reinit_completion(&call->done);
		err = lite_rcall_try(call);
		if (!err) {
			lite_stat_inc(svc->stats, LITE_STAT_RPCS);
			return 0;
		}
		if ((err != -ESTALE && err != -EHOSTDOWN) ||
		    ++tries >= LITE_RCALL_TRIES)
			break;
		if (call->in_turn &&
		    lite_cluster_is_suspect(svc->cl, call->node))
			return -ESTALE;
		if (call->flags & LITE_RCALL_TRY)
			return -EAGAIN;
		now = jiffies;
		if (time_after_eq(now, call->deadline))
			return -ETIMEDOUT;
		up = lite_cluster_await_for(svc->cl, call->node,
					    call->deadline - now);
		if (up)
			return up;
	}
	return err == -ESTALE ? -EHOSTDOWN : err;
}

/* ---- waiting ------------------------------------------------------------- */

static int lite_rcall_await(struct lite_rcall *call, u64 awake_ns,
			    unsigned long timeout)
{
	long ret = lite_poller_await(&call->svc->fab->poller, &call->done,
				     awake_ns, lite_wait_state(), timeout);

	if (ret > 0)
		return 0;
	return ret ? -EINTR : -ETIMEDOUT;
}

/*
 * Watch the send queue for failed posts, as no other thread does. This holds
 * the connection live; one that is dying ends the call.
 */
static int lite_rcall_await_long(struct lite_rcall *call)
{
	struct lite_conn *conn = call->ring->rp->conn;
	bool live = conn && lite_conn_tryget(conn);
	int err;

	if (live) {
		atomic_inc(&conn->qp[0].scq->sleepers);
		lite_cq_arm(conn->qp[0].scq);
	}
	err = lite_rcall_await(call, 0, lite_jiffies_left(call->deadline));
	if (live) {
		atomic_dec(&conn->qp[0].scq->sleepers);
		lite_conn_put_live(conn);
	}
	return err;
}

/* Wait until a call ends; return its result. */
static int lite_rcall_wait(struct lite_rcall *call)
{
	unsigned long left = lite_jiffies_left(call->deadline);
	struct lite_pace *pace = &call->ring->pace;
	struct lite_pace_wait wait;
	int err;

	lite_pace_begin(pace, &wait, false);
	err = lite_rcall_await(call, wait.awake_ns,
			       min_t(unsigned long, left, LITE_HEED_AFTER));
	if (err == -ETIMEDOUT && left > LITE_HEED_AFTER)
		err = lite_rcall_await_long(call);
	if (!err || !lite_rcall_abandon(call, err))
		lite_pace_end(pace, &wait);
	return lite_rcall_result(call);
}

/* ---- calls from beginning to end ----------------------------------------- */

/*
 * Copy the reply to the user. While user memory is waited for, nothing of the
 * node is held: the call is finished, and the rest comes from a copy.
 */
static int lite_rcall_deliver(struct lite_rcall *call,
			      const struct lite_buf *to)
{
	size_t done, n = call->reply_len;
	void *copy = NULL;
	int err = 0;

	if (unlikely(call->by_reference)) {
		lite_rcall_finish(call);
		/* Only the call uses it since the answer came. */
		lite_bulk_unmap(call->reply_bulk);
		lite_bulk_put(call->bulk);
		call->bulk = NULL;
		return lite_bulk_copy(call->reply_bulk, to, 0, n, false);
	}
	done = lite_buf_copy_nofault(to, 0, (void *)lite_rcall_reply(call), n,
				     false);
	if (unlikely(done < n)) {
		copy = kvmalloc(n, GFP_KERNEL_ACCOUNT);
		if (copy)
			memcpy(copy, lite_rcall_reply(call), n);
		else
			err = -ENOMEM;
	}
	lite_rcall_finish(call);
	lite_rcall_drop(call);
	while (unlikely(done < n) && !err) {
		err = lite_user_fault_in(to, done, n, false);
		if (!err)
			done += lite_buf_copy_nofault(to, done, copy + done,
						      n - done, false);
	}
	kvfree(copy);
	return err;
}

static int lite_service_call_on(struct lite_service *svc,
				struct lite_rcall *call,
				const struct lite_buf *reply)
{
	int tries = 0;
	int err;

	init_completion(&call->done);
	for (;;) {
		err = lite_rcall_begin(call);
		if (err && call->missing) {
			err = lite_rcall_fault_in(call);
			if (!err)
				continue;
		}
		if (err)
			return err;
		if (call->flags & LITE_RPC_ONEWAY) {
			lite_rcall_unbind(call);
			return 0;
		}
		err = lite_rcall_wait(call);
		trace_lite_rpc(call->node, call->function, call->length,
			       call->reply_len, err);
		if (!err)
			return lite_rcall_deliver(call, reply);
		lite_rcall_finish(call);
		/* No server has seen it; another one may serve it now. */
		if (err != -ECONNREFUSED || ++tries >= LITE_RCALL_TRIES)
			return err;
	}
}

/**
 * lite_service_call - make a call and wait for the reply, or send a message
 * @svc: the node's services
 * @call: filled in; the results are set
 * @reply: where the reply goes
 *
 * Context: may sleep; killable.
 * Return: 0 or a negative errno as LITE_IOC_RPC_CALL.
 */
int lite_service_call(struct lite_service *svc, struct lite_rcall *call,
		      const struct lite_buf *reply)
{
	int err;

	call->svc = svc;
	err = lite_rcall_prepare(call);
	if (!err)
		err = lite_service_call_on(svc, call, reply);
	lite_rcall_drop(call);
	return err;
}
