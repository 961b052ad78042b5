// SPDX-License-Identifier: GPL-2.0
/*
 * The client's side of a call, from finding the ring to copying the reply: Documentation/rpc.rst,
 * Life of a call; for long requests and replies, By reference.
 *
 * A posted request is posted again only if it was refused before a server saw it. One that could
 * not be posted because the session had ended is tried again in the next session or ring.
 *
 * While the caller waits for user memory it holds neither a record nor a ring, and has left the
 * node, which may be stopped meanwhile.
 */
#include <linux/slab.h>

#include "function/service.h"
#include "trace.h"

/*
 * Prepare a call: copy a long request into kernel memory, which lite_rcall_drop() frees, also on
 * failure. May sleep, and wait for user space; killable. Return: 0, -ENOMEM, -EFAULT, -EINTR;
 * -ENODEV: the node was stopped meanwhile, and must not be touched any more.
 */
int lite_rcall_prepare(struct lite_rcall *call)
{
	struct lite_area *bulk;

	/* Decided before any wait, as a join changes this node's id. */
	call->here = !call->node || call->node == lite_cluster_id(call->svc->cl);
	if (likely(call->length <= LITE_RPC_BYTES_MAX))
		return 0;
	bulk = lite_bulk_make(call->svc, call->cred->uid, call->length);
	if (IS_ERR(bulk))
		return PTR_ERR(bulk);
	call->bulk = bulk;
	return lite_bulk_copy(bulk, &call->request, call->length, true);
}

/* As lite_rcall_prepare(), but copy a short request. The call has neither a ring nor a slot. */
int lite_rcall_copy(struct lite_rcall *call)
{
	int err;

	/* A failure from here on has another reason. */
	call->missing = false;
	if (call->bulk || call->copy || !call->length)
		return 0;
	/* Mapped memory must not be kept while waiting for user memory. */
	lite_rcall_drop(call);
	call->copy = kvmalloc(call->length, GFP_KERNEL_ACCOUNT);
	if (!call->copy)
		return -ENOMEM;
	err = lite_user_copy(&call->request, call->copy, 0, call->length, true);
	call->request = (struct lite_buf){ .k = call->copy };
	return err;
}

/* Allocate memory for a long reply, and map all bulks. The call has a ring, but no record yet. */
static int lite_rcall_bulk_room(struct lite_rcall *call)
{
	const struct lite_client_ring *ring = call->ring;
	u32 room = min(call->room, ring->max_reply);
	struct lite_area *bulk = call->reply_bulk;
	int err = 0;

	/* A bulk made for another ring may be too small, or not needed. */
	if (bulk && (room <= LITE_RPC_BYTES_MAX || bulk->bytes < room)) {
		lite_area_put(bulk);
		call->reply_bulk = NULL;
	}
	if (room > LITE_RPC_BYTES_MAX && !call->reply_bulk) {
		bulk = lite_bulk_make(call->svc, call->cred->uid, room);
		if (IS_ERR(bulk))
			return PTR_ERR(bulk);
		call->reply_bulk = bulk;
	}
	if (!ring->rp->conn)
		return 0;
	if (call->bulk)
		err = lite_bulk_map(call->bulk);
	if (!err && call->reply_bulk)
		err = lite_bulk_map(call->reply_bulk);
	return err;
}

/*
 * Drop the memory that a call has outside of its record, before it is begun or after it has ended
 * or been abandoned. Process context; active on the node if anything is mapped.
 */
void lite_rcall_drop(struct lite_rcall *call)
{
	lite_area_put(call->bulk);
	lite_area_put(call->reply_bulk);
	kvfree(call->copy);
	call->bulk = NULL;
	call->reply_bulk = NULL;
	call->copy = NULL;
}

static u32 lite_bulk_chunks(const struct lite_area *bulk)
{
	return bulk ? bulk->n : 0;
}

/* Bytes of a call's chunk list; 0: it needs none. */
static u32 lite_rcall_list_bytes(const struct lite_rcall *call)
{
	u32 n = lite_bulk_chunks(call->bulk) + lite_bulk_chunks(call->reply_bulk);

	return n ? lite_rpc_list_bytes(n) : 0;
}

/* Bytes behind the header in the record of a call with a ring: the larger of request and reply. */
u32 lite_rcall_body(const struct lite_rcall *call)
{
	return lite_rpc_body_bytes(call->length, min(call->room, call->ring->max_reply),
				   lite_rcall_list_bytes(call), lite_bulk_chunks(call->bulk),
				   lite_bulk_chunks(call->reply_bulk));
}

static struct lite_wire_rpc_chunk *lite_bulk_describe(const struct lite_area *bulk, bool mapped,
						      struct lite_wire_rpc_chunk *to)
{
	u32 i;

	for (i = 0; bulk && i < bulk->n; i++)
		*to++ = (struct lite_wire_rpc_chunk){
			/* Unused within a node, but must not be 0. */
			.addr = cpu_to_le64(mapped ? bulk->chunk[i].dma : 1),
			.bytes = cpu_to_le32(bulk->chunk[i].bytes),
		};
	return to;
}

/* Write the chunk list of a call. Return: its bytes. */
static u32 lite_rcall_list(const struct lite_rcall *call, struct lite_wire_rpc_bulk *b)
{
	bool mapped = call->ring->rp->conn;
	u32 list = lite_rcall_list_bytes(call);

	if (likely(!list))
		return 0;
	b->n_request = cpu_to_le32(lite_bulk_chunks(call->bulk));
	b->n_reply = cpu_to_le32(lite_bulk_chunks(call->reply_bulk));
	lite_bulk_describe(call->reply_bulk, mapped,
			   lite_bulk_describe(call->bulk, mapped, b->chunk));
	return list;
}

/* Write the chunk list, if any, and a short request behind the header. */
static int lite_rcall_write(struct lite_rcall *call)
{
	void *to = lite_rcall_record(call);
	size_t n;

	to += lite_rcall_list(call, to);
	if (unlikely(call->bulk))
		return 0;
	n = lite_buf_copy_nofault(&call->request, 0, to, call->length, true);
	call->missing = n < call->length;
	return call->missing ? -EFAULT : 0;
}

static void lite_rcall_header(struct lite_rcall *call, u32 list, struct lite_wire_rpc *h)
{
	struct lite_client_ring *ring = call->ring;
	struct lite_client_ring_slot *s = &ring->slot[call->slot];
	u32 flags = list ? LITE_RPC_F_BULK : 0;

	if (call->flags & LITE_RPC_ONEWAY)
		flags |= LITE_RPC_F_ONEWAY;
	*h = (struct lite_wire_rpc){
		.magic = cpu_to_le32(LITE_WIRE_MAGIC),
		.version = LITE_WIRE_VERSION,
		.status = call->prio % LITE_PRIOS,
		.slot = cpu_to_le16(call->slot),
		.seq = cpu_to_le64(s->seq),
		.length = cpu_to_le32(call->length),
		.room = cpu_to_le32(s->room),
		/* Unused within a node, but must not be 0. */
		.reply = cpu_to_le64(ring->rp->conn ? lite_area_dma(ring->area, s->unit) : 1),
		.uid = cpu_to_le32(call->cred->uid),
		.gid = cpu_to_le32(call->cred->gid),
		.flags = cpu_to_le32(flags),
	};
}

/* From here on the call can end; ABANDON a message. Return: -ESTALE: dead session, slot freed. */
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
 * The post has failed. The call may have ended all the same, with the connection or because a
 * faulty peer has answered what it never got; @seq tells whether the slot is another call's by now.
 * Return: -ESTALE: the call has no slot any more; 0: it ended like a posted one, and @ended has
 * been called.
 */
static int lite_rcall_disarm(struct lite_rcall *call, struct lite_client_ring *ring, u32 slot,
			     u64 seq)
{
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
	u32 how = call->prio | (call->flags & LITE_RCALL_TRY ? LITE_POST_NOWAIT : 0);
	u32 list = lite_rcall_list_bytes(call);
	u32 slot = call->slot, unit = s->unit, offset, chunk;
	u64 seq = s->seq, raddr = 0;
	bool async = call->ended;
	int err;

	lite_rcall_header(call, list, lite_area_at(ring->area, unit));
	if (ring->rp->conn) {
		chunk = lite_area_chunk(ring->area, unit, &offset);
		raddr = ring->remote[chunk] + offset;
	}
	/* The call drops its own reference when it ends, maybe before the post returns. */
	if (async)
		refcount_inc(&ring->ref);
	err = lite_rcall_arm(call);
	if (err)
		goto out;
	err = lite_rpc_peer_post(ring->rp, ring->area, unit,
				 LITE_RPC_HEADER + list + (call->bulk ? 0 : call->length), raddr,
				 lite_imm_encode(LITE_IMM_RPC_REQUEST, ring->index, unit),
				 how);
	/* No room, its turn has not come, or the session is over: the call may be sent later. */
	if (err)
		err = lite_rcall_disarm(call, ring, slot, seq);
out:
	if (async)
		lite_client_ring_put(ring);
	return err;
}

static int lite_rcall_place(struct lite_rcall *call)
{
	int err;

	call->line_err = 0;
	err = lite_client_ring_get(call);
	if (err)
		return err;
	err = lite_client_ring_may_call(call->ring, call);
	if (err && call->flags & LITE_RCALL_TRY)
		/* To ask the server whether that still holds, the call would have to wait. */
		err = -EAGAIN;
	else if (err)
		err = lite_client_ring_ask(call) ?: err;
	if (err == -ESTALE)
		lite_client_ring_close(call->ring);
	if (!err)
		err = lite_rcall_bulk_room(call);
	return err ?: lite_ring_wait_take(call);
}

/* Make one attempt in one ring. Return: -ESTALE: nothing was sent, try another ring. */
static int lite_rcall_try(struct lite_rcall *call)
{
	int err;

	/* With a ring, the call is or was in its line. */
	err = call->ring ? lite_ring_wait_look(call, 0) : lite_rcall_place(call);
	if (err == -EINPROGRESS)
		return err;
	/* BIND failed, as its caller may not call the function. This caller may: bind again. */
	if (err == -EACCES && call->ring && lite_client_ring_lets(call->ring, call))
		err = -ESTALE;
	if (!err) {
		err = lite_rcall_write(call);
		if (!err)
			err = lite_rcall_post(call);
		else
			lite_rcall_free_slot(call);
	}
	if (err)
		lite_rcall_unbind(call);
	return err;
}

/* Give up beginning a call that may be in line. Process context, no lock held. */
void lite_rcall_unqueue(struct lite_rcall *call)
{
	if (!call->ring)
		return;
	if (!lite_ring_wait_look(call, -ECANCELED))
		lite_rcall_free_slot(call);
	lite_rcall_unbind(call);
}

/*
 * Send a request. May sleep; killable. Return: 0: the call is in flight, and has a ring and a slot;
 * else a negative errno as LITE_IOC_RPC_CALL: not sent, it has neither. If @missing, copy it.
 * -EAGAIN with LITE_RCALL_TRY: begin it where waiting is allowed. -EINPROGRESS with @in_turn: begin
 * it again: when @in_turn is called, if it has a ring and so is in line; else later, as its node is
 * suspect.
 */
int lite_rcall_begin(struct lite_rcall *call)
{
	struct lite_service *svc = call->svc;
	unsigned long left;
	int tries = 0;
	int err, up;

	call->missing = false;
	for (;;) {
		err = lite_cluster_ready(svc->cl);
		if (!err && READ_ONCE(svc->stopping))
			err = -ENODEV;
		if (err) {
			/* The call may be in line, or have got its slot there. */
			lite_rcall_unqueue(call);
			return err;
		}
		/* This node may have joined a cluster while the call waited. */
		if (call->here)
			call->node = lite_cluster_id(svc->cl);
		call->err = 0;
		call->by_reference = false;
		reinit_completion(&call->done);
		err = lite_rcall_try(call);
		if (!err) {
			lite_stat_inc(svc->stats, LITE_STAT_RPCS);
			return 0;
		}
		if (err != -ESTALE && err != -EHOSTDOWN)
			break;
		/* A wait for another BIND is no attempt: its caller may have had less time. */
		if (call->line_err != -ESTALE && ++tries >= LITE_RCALL_TRIES)
			break;
		/* Killed while it waited for its turn. */
		if (lite_given_up())
			return -EINTR;
		if (call->in_turn && !call->here && lite_cluster_is_suspect(svc->cl, call->node))
			return -EINPROGRESS;
		if (call->flags & LITE_RCALL_TRY)
			return -EAGAIN;
		left = lite_jiffies_left(call->deadline);
		if (!left)
			return -ETIMEDOUT;
		up = call->here ? 0 : lite_cluster_await_for(svc->cl, call->node, left);
		if (up && (up != -EHOSTDOWN || !lite_cluster_is_live(svc->cl, call->node)))
			return up;
		/* The session is up, or the node is not known to be down. */
	}
	return err == -ESTALE ? -EHOSTDOWN : err;
}

/*
 * Wait until a call ends. If the device fails to send its request, the next heartbeat on the same
 * queue pair fails, too, and ends the session and the call. Return: the call's result.
 */
static int lite_rcall_wait(struct lite_rcall *call)
{
	struct lite_pace *pace = &call->ring->pace;
	u64 used = READ_ONCE(call->ring->slots_used);
	struct lite_pace_wait wait;
	long left;
	int err;

	/* With other calls under way, sleep at once: their callers need the processor, too. */
	lite_pace_begin(pace, &wait, used & (used - 1));
	left = lite_poller_await(&call->svc->fab->poller, &call->done, wait.awake_ns,
				 lite_wait_state(), lite_jiffies_left(call->deadline));
	err = left > 0 ? 0 : left ? -EINTR : -ETIMEDOUT;
	if (!err || !lite_rcall_abandon(call, call->ring, err))
		lite_pace_end(pace, &wait);
	return lite_rcall_result(call);
}

/*
 * Copy the reply to the user. Nothing of the node is held while waiting for user memory: the call
 * is finished before, and the rest comes from a copy.
 */
static int lite_rcall_deliver(struct lite_rcall *call, const struct lite_buf *to)
{
	size_t done, n = call->reply_len;
	void *copy = NULL;
	int err = 0;

	if (unlikely(call->by_reference)) {
		lite_rcall_finish(call);
		/* Since the answer came, only the call uses the bulk. */
		lite_bulk_unmap(call->reply_bulk);
		lite_area_put(call->bulk);
		call->bulk = NULL;
		return lite_bulk_copy(call->reply_bulk, to, n, false);
	}
	done = lite_buf_copy_nofault(to, 0, lite_rcall_record(call), n, false);
	if (unlikely(done < n)) {
		copy = kvmalloc(n, GFP_KERNEL_ACCOUNT);
		if (copy)
			memcpy(copy, lite_rcall_record(call), n);
		else
			err = -ENOMEM;
	}
	lite_rcall_finish(call);
	lite_rcall_drop(call);
	if (unlikely(done < n) && !err)
		err = lite_user_copy(to, copy, done, n, false);
	kvfree(copy);
	return err;
}

/*
 * Make a call and wait for the reply, or send a message; set the results in @call. May sleep;
 * killable. Return: 0 or a negative errno as LITE_IOC_RPC_CALL.
 */
int lite_service_call(struct lite_rcall *call, const struct lite_buf *reply)
{
	int err = lite_rcall_prepare(call);
	int tries = 0;

	init_completion(&call->done);
	while (!err) {
		err = lite_rcall_begin(call);
		if (err && call->missing) {
			err = lite_rcall_copy(call);
			continue;
		}
		if (err)
			break;
		if (call->flags & LITE_RPC_ONEWAY) {
			lite_rcall_unbind(call);
			break;
		}
		err = lite_rcall_wait(call);
		trace_lite_rpc(call->node, call->function, call->length, call->reply_len, err);
		if (!err) {
			err = lite_rcall_deliver(call, reply);
			break;
		}
		lite_rcall_finish(call);
		/* No server has seen the request; another one may serve it now. */
		if (err == -ECONNREFUSED && ++tries < LITE_RCALL_TRIES)
			err = 0;
	}
	lite_rcall_drop(call);
	return err;
}
