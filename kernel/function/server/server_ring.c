// SPDX-License-Identifier: GPL-2.0
/*
 * The server's side of a ring: requests come in, answers go out (Documentation/rpc.rst, Life of a
 * call). The receive handler copies a header before it checks it: the peer could change the record.
 * A slot is made FREE before its answer is posted, as the peer may reuse it from then on.
 *
 * Receive handlers, servers, CANCEL and the end of the connection run concurrently. req->state,
 * under svc->lock, says what owns a request. The owner of a BUSY request uses its record without
 * the lock. Others only set @cancelled or ring->gone, which the owner checks under the lock when it
 * is done.
 */
#include <linux/nospec.h>
#include <linux/slab.h>

#include "function/service.h"

/* Longest records that a ring of no given size holds: most callers leave room for any reply. */
#define LITE_RING_RECORDS 16U

/* Drop a reference. Context: process; if it is the last, no lock held. */
void lite_ring_put(struct lite_ring *ring)
{
	struct lite_service *svc = ring->rp->svc;
	struct lite_conn *conn = ring->rp->conn;

	if (!refcount_dec_and_test(&ring->ref))
		return;
	/* lite_reply_take() reads the ring under this lock. */
	spin_lock(&svc->lock);
	xa_erase(&svc->rings, ring->id);
	list_del(&ring->of_func);
	spin_unlock(&svc->lock);
	lite_area_put(ring->area);
	lite_func_put(ring->func);
	kvfree(ring);
	lite_conn_put(conn);
}

/* Tell the client that its function is no longer served. svc->lock is held. */
void lite_ring_tell_gone(struct lite_ring *ring)
{
	lockdep_assert_held(&ring->rp->svc->lock);
	if (ring->gone || !refcount_inc_not_zero(&ring->ref))
		return;
	/* Already queued, with a reference of its own. */
	if (!queue_work(ring->rp->svc->wq[LITE_WQ_RINGS], &ring->gone_work))
		lite_ring_put(ring);
}

static struct lite_area *lite_ring_area(struct lite_ring *ring)
{
	const struct lite_func *func = ring->func;
	struct lite_rpc_peer *rp = ring->rp;
	u32 most = LITE_RPC_HEADER + lite_rpc_body_max(func->max_request, func->max_reply);
	u32 ample = clamp(LITE_RING_RECORDS * most, LITE_RPC_RING_DEFAULT, LITE_RPC_RING_MAX);
	u32 bytes = func->ring_size ?: ample;
	/* A record must not cross a chunk; chunks below 32 KB do not pay. */
	u32 chunk = PAGE_ALIGN(max(most, min_t(u32, SZ_32K, bytes)));
	u32 n = DIV_ROUND_UP(bytes, chunk);

	return func->ring_size ? lite_ring_area_make(rp->svc, rp->conn, func->uid, chunk, n) :
				 lite_ring_area_ample(rp->svc, rp->conn, func->uid, chunk, n);
}

static int lite_ring_enter(struct lite_ring *ring)
{
	struct lite_rpc_peer *rp = ring->rp;
	u32 id;
	int err;

	/* Even if it fails, xa_alloc() sets the number, which may be another ring's. */
	err = xa_alloc(&rp->svc->rings, &id, NULL, XA_LIMIT(1, LITE_RING_ID_MAX), GFP_KERNEL);
	if (!err) {
		ring->id = id;
		err = xa_alloc(&rp->rings, &ring->index, NULL, XA_LIMIT(0, LITE_IMM_RING_MAX),
			       GFP_KERNEL);
	}
	if (err)
		return err == -EBUSY ? -ENOBUFS : err;
	spin_lock(&rp->svc->lock);
	if (rp->down || rp->svc->stopping) {
		err = -EHOSTDOWN;
	} else if (ring->func->dead) {
		err = -ECONNREFUSED;
	} else {
		/* The entries are reserved, so this allocates nothing. */
		xa_store(&rp->svc->rings, ring->id, ring, GFP_ATOMIC);
		xa_store(&rp->rings, ring->index, ring, GFP_ATOMIC);
		list_add(&ring->of_func, &ring->func->rings);
		refcount_inc(&ring->ref); /* the table's */
	}
	spin_unlock(&rp->svc->lock);
	if (err)
		xa_erase(&rp->rings, ring->index);
	return err;
}

/*
 * Make a ring for a client of a function. The caller holds a reference to the connection. May
 * sleep. Return: the ring, with a reference, or ERR_PTR: -ECONNREFUSED: the function is not served;
 * -ENOBUFS, -ENOMEM; -EHOSTDOWN: the connection is ending.
 */
struct lite_ring *lite_ring_make(struct lite_rpc_peer *rp, u32 function)
{
	struct lite_func *func = lite_func_find(rp->svc, function, NULL);
	struct lite_ring *ring;
	int i, err;

	if (!func)
		return ERR_PTR(-ECONNREFUSED);
	ring = kvzalloc(sizeof(*ring), GFP_KERNEL);
	if (!ring) {
		lite_func_put(func);
		return ERR_PTR(-ENOMEM);
	}
	refcount_set(&ring->ref, 1);
	ring->rp = rp;
	ring->func = func;
	INIT_LIST_HEAD(&ring->of_func);
	INIT_WORK(&ring->gone_work, lite_ring_gone_work);
	ring->number = function;
	lite_conn_get(rp->conn);
	for (i = 0; i < LITE_RPC_DEPTH; i++)
		ring->req[i].ring = ring;
	ring->area = lite_ring_area(ring);
	err = PTR_ERR_OR_ZERO(ring->area);
	if (err)
		ring->area = NULL;
	else
		err = lite_ring_enter(ring);
	if (err) {
		lite_ring_put(ring);
		return ERR_PTR(err);
	}
	return ring;
}

/* Free the slot. The caller drops the request's reference to the ring. */
static void __lite_request_free(struct lite_request *req)
{
	lockdep_assert_held(&req->ring->rp->svc->lock);
	req->state = LITE_REQ_FREE;
	req->file = NULL;
	lite_area_put_later(req->data);
	req->data = NULL;
	lite_stat_dec(req->ring->rp->svc->stats, LITE_STAT_REQUESTS);
}

/*
 * Free a request without an answer. It is BUSY with the caller; its ring is gone, or the connection
 * is ending. Process context, no lock held.
 */
void lite_request_free(struct lite_request *req)
{
	struct lite_ring *ring = req->ring;

	spin_lock(&ring->rp->svc->lock);
	__lite_request_free(req);
	spin_unlock(&ring->rp->svc->lock);
	lite_ring_put(ring);
}

/*
 * Have a work item answer a request, which is in no list and no other thread's. @user: the server's
 * status for the caller. svc->lock is held. Process context; receive handlers.
 */
void lite_request_answer(struct lite_request *req, u8 status, u32 length, u32 user)
{
	struct lite_rpc_peer *rp = req->ring->rp;

	lockdep_assert_held(&rp->svc->lock);
	req->state = LITE_REQ_BUSY;
	req->status = status;
	req->length = length;
	req->user = user;
	list_add_tail(&req->list, &rp->answers);
	lite_conn_get(rp->conn);
	/* Not the last reference: the request's ring has one. */
	if (!queue_work(rp->svc->wq[LITE_WQ_CALLS], &rp->answer_work))
		lite_conn_put(rp->conn);
}

/* Post the answer to a BUSY request; with @nowait only if there is room. */
static void __lite_request_post(struct lite_request *req, u8 status, u32 length, u32 user,
				bool nowait)
{
	struct lite_ring *ring = req->ring;
	struct lite_rpc_peer *rp = ring->rp;
	u32 unit = req->unit, slot = lite_request_slot(req);
	struct lite_wire_rpc *h = lite_area_at(ring->area, unit);
	bool refers = req->by_reference && status == LITE_RPC_OK;
	u64 raddr = req->reply, seq = req->seq;
	u32 imm = lite_imm_encode(LITE_IMM_RPC_REPLY, ring->index, slot);
	/* The server must not wait for a turn. A reply that is not in the record had its turn. */
	u32 how = LITE_POST_UNSCHEDULED | (nowait ? LITE_POST_NOWAIT : 0);
	u32 bytes = sizeof(*h);
	int err = 0;

	if (status == LITE_RPC_OK && !refers)
		bytes += length;
	*h = (struct lite_wire_rpc){
		.magic = cpu_to_le32(LITE_WIRE_MAGIC),
		.version = LITE_WIRE_VERSION,
		.status = status,
		.slot = cpu_to_le16(slot),
		.seq = cpu_to_le64(seq),
		.length = cpu_to_le32(length),
		.flags = cpu_to_le32(refers ? LITE_RPC_F_BULK : 0),
		.user = cpu_to_le32(user),
	};
	spin_lock(&rp->svc->lock);
	if (ring->gone)
		err = -EHOSTDOWN;
	/* The peer may reuse the slot as soon as it has the answer. */
	__lite_request_free(req);
	spin_unlock(&rp->svc->lock);
	if (!err)
		err = lite_rpc_peer_post(rp, ring->area, unit, bytes, raddr, imm, how);
	if (err == -EAGAIN) {
		spin_lock(&rp->svc->lock);
		/* Not posted, so an honest peer cannot have reused the slot. */
		if (req->state == LITE_REQ_FREE && req->seq == seq) {
			lite_request_answer(req, status, length, user);
			lite_stat_inc(rp->svc->stats, LITE_STAT_REQUESTS);
			ring = NULL;
		}
		spin_unlock(&rp->svc->lock);
		if (ring)
			lite_conn_kill(rp->conn, -EPROTO);
	}
	if (ring)
		lite_ring_put(ring);
}

/*
 * Post the answers of lite_request_answer(), with a reference to the connection. One after the
 * other: a stuck peer occupies one worker, not one per answer.
 */
void lite_answer_work(struct work_struct *work)
{
	struct lite_rpc_peer *rp = container_of(work, struct lite_rpc_peer, answer_work);
	struct lite_service *svc = rp->svc;
	struct lite_conn *conn = rp->conn;
	struct lite_request *req;

	for (;;) {
		spin_lock(&svc->lock);
		req = list_first_entry_or_null(&rp->answers, struct lite_request, list);
		if (req)
			list_del(&req->list);
		spin_unlock(&svc->lock);
		if (!req)
			break;
		__lite_request_post(req, req->status, req->length, req->user, false);
	}
	lite_conn_put(conn);
}

/*
 * Answer a request that is BUSY with the caller, which must not use it afterwards. With
 * LITE_RPC_OK the reply's @length bytes are in the record, or written by lite_request_give(). If
 * the send queue is full, lite_answer_work() posts the answer. Process context; receive handlers.
 */
void lite_request_post(struct lite_request *req, u8 status, u32 length, u32 user)
{
	__lite_request_post(req, status, length, user, true);
}

/*
 * The caller of a request has given up. CANCEL and UNBIND are not ordered: the ring may be gone
 * already, and its index reused, but no other call has @seq. Process context. Return: enum
 * lite_rpc_cancelled; -EPROTO: there is no such slot.
 */
int lite_ring_cancel(struct lite_rpc_peer *rp, u32 index, u32 slot, u64 seq)
{
	struct lite_service *svc = rp->svc;
	struct lite_ring *ring;
	struct lite_request *req;
	int ret = LITE_RPC_REPLIED;

	if (slot >= LITE_RPC_DEPTH)
		return -EPROTO;
	spin_lock(&svc->lock);
	ring = xa_load(&rp->rings, index);
	req = ring ? &ring->req[slot] : NULL;
	if (req && req->seq == seq) {
		if (req->state == LITE_REQ_QUEUED || req->state == LITE_REQ_TAKEN) {
			list_del(&req->list);
			__lite_request_free(req);
			ret = LITE_RPC_CANCELLED;
		} else if (req->state == LITE_REQ_BUSY) {
			req->cancelled = true;
		}
	}
	spin_unlock(&svc->lock);
	if (ret == LITE_RPC_CANCELLED)
		lite_ring_put(ring);
	return ret;
}

/*
 * Stop taking and answering requests of a ring, because its connection is @down or the peer gives
 * it back. The caller has a reference. A ring given back leaves the table. Process context, no lock
 * held. Return: 0; if not @down, -EPROTO: a request is unanswered, or the ring has ended already.
 */
int lite_ring_end(struct lite_ring *ring, bool down)
{
	struct lite_service *svc = ring->rp->svc;
	struct lite_request *req;
	int puts = 0, i;

	spin_lock(&svc->lock);
	for (i = 0; i < LITE_RPC_DEPTH && !down; i++) {
		if (ring->gone || ring->req[i].state != LITE_REQ_FREE) {
			spin_unlock(&svc->lock);
			return -EPROTO;
		}
	}
	ring->gone = true;
	if (!down)
		xa_erase(&ring->rp->rings, ring->index);
	for (i = 0; i < LITE_RPC_DEPTH; i++) {
		req = &ring->req[i];
		/* The thread that has it BUSY checks @gone. */
		if (req->state == LITE_REQ_FREE || req->state == LITE_REQ_BUSY)
			continue;
		list_del(&req->list);
		__lite_request_free(req);
		puts++;
	}
	spin_unlock(&svc->lock);
	while (puts--)
		lite_ring_put(ring);
	return 0;
}

/*
 * The live function of a ring. If the function was registered anew with the same properties, the
 * ring moves to it, so that restarting a server loses no request.
 */
static struct lite_func *lite_ring_func(struct lite_ring *ring, struct lite_func **old)
{
	struct lite_service *svc = ring->rp->svc;
	struct lite_func *func = ring->func;

	if (likely(!func->dead))
		return func;
	func = xa_load(&svc->functions, ring->number);
	if (!func || !lite_func_is_like(func, ring->func))
		return NULL;
	*old = ring->func;
	refcount_inc(&func->ref);
	ring->func = func;
	list_move(&ring->of_func, &func->rings);
	return func;
}

static int lite_request_fill(struct lite_request *req, u32 unit, const struct lite_wire_rpc *h)
{
	struct lite_ring *ring = req->ring;
	struct lite_rpc_peer *rp = ring->rp;
	u32 length = le32_to_cpu(h->length);
	u32 room = le32_to_cpu(h->room);
	u32 body;

	/* If the slot is in use, the peer has not waited for the answer. */
	if (req->state != LITE_REQ_FREE || length > ring->func->max_request ||
	    lite_request_list(req, unit, h))
		return -EPROTO;
	body = lite_rpc_body_bytes(length, room, req->list_bytes, req->n_request, req->n_reply);
	if (lite_ring_record_check(lite_area_units(ring->area),
				   ring->area->chunk_bytes / LITE_RING_UNIT, unit,
				   sizeof(*h) + body))
		return -EPROTO;
	req->cancelled = false;
	req->by_reference = false;
	req->unit = unit;
	/* Not counted per slot, because ring ids are reused. */
	req->gen = ++rp->svc->requests;
	req->seq = le64_to_cpu(h->seq);
	req->length = length;
	req->room = room;
	req->reply = le64_to_cpu(h->reply);
	req->flags = le32_to_cpu(h->flags);
	req->prio = h->status;
	req->uid = le32_to_cpu(h->uid);
	req->gid = le32_to_cpu(h->gid);
	if (rp->conn && !req->uid && rp->svc->mem->root_squash) {
		req->uid = LITE_UID_NOBODY;
		req->gid = LITE_UID_NOBODY;
	}
	return 0;
}

static int lite_ring_accept(struct lite_ring *ring, u32 unit, const struct lite_wire_rpc *h,
			    struct lite_func **old, struct lite_request **now)
{
	struct lite_request *req = &ring->req[le16_to_cpu(h->slot)];
	struct lite_func *func;
	int err;

	err = lite_request_fill(req, unit, h);
	if (err)
		return err;
	refcount_inc(&ring->ref);
	lite_stat_inc(ring->rp->svc->stats, LITE_STAT_REQUESTS);
	lite_stat_inc(ring->rp->svc->stats, LITE_STAT_RPCS_SERVED);
	func = lite_ring_func(ring, old);
	if (func && func->handler)
		*now = lite_kfunc_queue(func, req, true) ? req : NULL;
	else if (func)
		lite_func_queue(func, req, false);
	else
		lite_request_answer(req, LITE_RPC_REFUSED, 0, 0);
	return 0;
}

/* Is the record the slot's latest request, delivered again, or the reply to it? */
static bool lite_ring_repeated(const struct lite_ring *ring, const struct lite_wire_rpc *h)
{
	u16 slot = le16_to_cpu(h->slot);

	return lite_conn_repeats(ring->rp->conn) && slot < LITE_RPC_DEPTH &&
	       ring->req[array_index_nospec(slot, LITE_RPC_DEPTH)].seq == le64_to_cpu(h->seq);
}

/*
 * A request has been written at @unit of ring @index. Receive handler; the calling thread for a
 * node's calls to itself. Return: 0 or -EPROTO.
 */
int lite_ring_on_request(struct lite_rpc_peer *rp, u16 index, u16 unit)
{
	struct lite_service *svc = rp->svc;
	struct lite_request *now = NULL;
	struct lite_func *old = NULL;
	struct lite_wire_rpc h;
	struct lite_ring *ring;
	int err = 0;

	spin_lock(&svc->lock);
	ring = xa_load(&rp->rings, index);
	if (!ring || ring->gone) {
		err = rp->down ? 0 : -EPROTO;
		goto out;
	}
	if (unit >= lite_area_units(ring->area)) {
		err = -EPROTO;
		goto out;
	}
	lite_area_header(ring->area, unit, &h);
	if (lite_ring_repeated(ring, &h))
		goto out;
	err = lite_wire_rpc_check(&h, true);
	if (!err)
		err = lite_ring_accept(ring, unit, &h, &old, &now);
out:
	spin_unlock(&svc->lock);
	if (old)
		lite_func_put(old);
	if (now)
		lite_kfunc_now(now);
	return err;
}
