// SPDX-License-Identifier: GPL-2.0
/*
 * Queue pairs: posting one-sided operations. (io.c waits for them.)
 *
 * Normal operation: the poster takes a free send slot (slot.c), posts a signalled work request and
 * waits for the completion, which gives the slot back. The send queue never overflows: it has room
 * for all slots, and that of the first queue pair for the messages of calls, too.
 *
 * Recovery: any completion with an error kills the connection, because the QP is in the error state
 * then. The device flushes what else is in flight. lite_qp_abort() completes what it has not
 * flushed, after the QP is destroyed.
 *
 * A slot is completed exactly once, by the completion or by lite_qp_abort(): whichever swaps wr->io
 * for NULL. (For those without an io see chain.c.)
 */
#include <linux/random.h>

#include "slot.h"

/* A device that takes this long to destroy a queue pair has given up on it: dma.c. */
#define LITE_DESTROY_TIMEOUT (40 * HZ)

/* Work requests per post: enough for few completions, but slots still come free early. */
#define LITE_POST_STEP (LITE_SQ_DEPTH / 2)
/* Slots spared for single posts, such as messages of functions. */
#define LITE_SLOTS_SPARE (LITE_SQ_SMALL / 8)

static void lite_wr_complete(struct lite_wr *wr, int status)
{
	struct lite_io *io = xchg(&wr->io, NULL);
	struct lite_qp *qp = wr->qp;
	u64 before, slots;

	if (!io)
		return;
	before = wr->before;
	slots = before | wr->bit;
	wr->before = 0;
	lite_io_end(io, status, 1 + hweight64(before));
	/* A message has no slot, and its entry may be in use again already. */
	if (slots)
		lite_slots_give(qp, slots);
}

/* Only wr_cqe, status and qp are valid in a completion with an error. */
void lite_send_done(struct ib_cq *cq, struct ib_wc *wc)
{
	struct lite_wr *wr = container_of(wc->wr_cqe, struct lite_wr, cqe);
	struct lite_conn *conn = wr->qp->conn;
	int status;

	if (likely(wc->status == IB_WC_SUCCESS)) {
		WRITE_ONCE(wr->qp->acked, jiffies);
		lite_wr_complete(wr, 0);
		return;
	}
	if (lite_wc_lost(conn, wc->status)) {
		status = -EHOSTDOWN;
		lite_conn_end(conn, LITE_END_TRANSPORT, wc->status, status);
	} else {
		status = -EIO;
		lite_conn_end(conn, LITE_END_DEVICE, 256 + wc->status, status);
	}
	lite_wr_complete(wr, status);
}

/* Posting has failed. @none: the device has taken none of the work requests. */
static noinline void lite_qp_submit_failed(struct lite_wr *wr, int err, bool none)
{
	lite_conn_kill(wr->qp->conn, err);
	/* lite_qp_abort() completes what the device has taken. */
	if (none)
		lite_wr_complete(wr, err);
}

/*
 * Give @n work requests to the device: one for each slot in @wr->before, and the last for @wr,
 * which alone is signalled. The caller has taken these slots, and @io counts the work requests.
 *
 * Process context, with preemption off (lite_posting_begin()) since before the slots were taken: no
 * thread loses the processor with slots, or a turn, that the device does not have. And the QP,
 * which is destroyed a grace period after DEAD, still exists if the connection is not dead.
 */
static __always_inline int lite_qp_submit(struct lite_qp *qp, struct lite_wr *wr,
					  struct lite_io *io, const struct ib_send_wr *send, int n)
{
	const struct ib_send_wr *bad = send;
	int err = -EHOSTDOWN;

	/* From here on a stale completion may complete the slot: chain.c. */
	smp_store_release(&wr->io, io);
	if (likely(!lite_conn_is_dead(qp->conn))) {
		err = ib_post_send(qp->ib, send, &bad);
		if (unlikely(err))
			err = -EIO;
	}
	if (unlikely(err))
		lite_qp_submit_failed(wr, err, bad == send);
	return err;
}

static __always_inline int lite_qp_post_to(struct lite_qp *qp, struct lite_wr *wr,
					   struct lite_io *io, struct ib_send_wr *send)
{
	send->wr_cqe = &wr->cqe;
	send->send_flags |= IB_SEND_SIGNALED;
	lite_io_expect(io, 1);
	return lite_qp_submit(qp, wr, io, send, 1);
}

/* Take up to @max more small slots, but leave LITE_SLOTS_SPARE free. */
static u64 lite_slots_take(struct lite_qp *qp, u32 max)
{
	s64 busy = atomic64_read(&qp->busy);
	u64 taken, free;
	int n;

	if (unlikely(!list_empty(&qp->line[LITE_SLOT_SMALL])))
		return 0;
	do {
		free = ~(u64)busy & lite_slots_of(LITE_SLOT_SMALL);
		n = min((int)max, (int)hweight64(free) - LITE_SLOTS_SPARE);
		for (taken = 0; n > 0; n--) {
			taken |= free & -free;
			free &= free - 1;
		}
	} while (taken && !atomic64_try_cmpxchg_acquire(&qp->busy, &busy, busy | taken));
	return taken;
}

/* Post no more of @post, because of @err. */
void lite_post_fail(struct lite_post *post, int err)
{
	post->err = err;
	if (post->n)
		lite_io_end(post->io, 0, post->n);
}

/*
 * Post as many work requests of @post as there are slots for, and update @send, @n, @posted and
 * @err. @slot, for the last of them, was taken before. Process context, with preemption off since
 * then.
 */
void lite_post_with(struct lite_post *post, int slot)
{
	struct ib_send_wr *first = post->send, *send = first;
	struct lite_qp *qp = post->qp;
	struct lite_wr *wr = &qp->wr[slot];
	u32 step = LITE_POST_STEP;
	u64 before = 0;
	u32 n = 1;
	int err;

	if (post->item.flight.cost) {
		wr->flight = post->item.flight;
		wr->cqe.done = lite_turn_done;
		post->item.flight.cost = 0;
		step = post->turn_wrs;
	}
	/* Bulk slots are few, and for all posters: take no more than one. */
	if (post->n > 1 && post->kind == LITE_SLOT_SMALL)
		before = lite_slots_take(qp, min(post->n, step) - 1);
	wr->before = before;
	for (; before; before &= before - 1) {
		send->wr_cqe = &qp->wr[__ffs64(before)].cqe;
		send->send_flags &= ~IB_SEND_SIGNALED;
		send = send->next;
		n++;
	}
	send->wr_cqe = &wr->cqe;
	send->send_flags |= IB_SEND_SIGNALED;
	post->send = send->next;
	post->n -= n;
	send->next = NULL;
	err = lite_qp_submit(qp, wr, post->io, first, n);
	/* On other errors the device may have taken some. */
	if (err != -EHOSTDOWN)
		post->posted += n;
	if (unlikely(err))
		lite_post_fail(post, err);
}

/* Post what can be posted now: sets @err. Return: -EAGAIN if nothing can. Process context. */
static __always_inline int lite_post_try(struct lite_post *post)
{
	const struct lite_conn *conn = post->qp->conn;
	int slot;

	lite_posting_begin(conn);
	slot = lite_slot_try(post);
	if (slot >= 0)
		lite_post_with(post, slot);
	lite_posting_end(conn);
	return slot;
}

/*
 * Post all work requests of @post, which its io counts; @posted of them may be in flight
 * afterwards. Of those posted together only the last is signalled. Process context; with @wait,
 * waits for slots and turns and may sleep. Return: 0: all are posted; else a negative errno;
 * -EAGAIN: it would have to wait longer than @wait or the io (lite_io_hooks.stale) allows.
 */
int lite_qp_post_list(struct lite_post *post, bool wait)
{
	int slot;

	while (post->n && !post->err) {
		slot = lite_post_try(post);
		if (slot < 0 && wait)
			lite_slot_wait(post);
		else if (slot < 0)
			lite_post_fail(post, slot);
	}
	return post->err;
}

static noinline int lite_qp_post_later(struct lite_qp *qp, enum lite_slot_class kind,
				       struct lite_io *io, struct ib_send_wr *send, u32 how)
{
	struct lite_post post;

	/* Set only what is read before it is set elsewhere: clearing all costs more than a turn. */
	post.qp = qp;
	post.io = io;
	post.send = send;
	post.n = 1;
	post.posted = 0;
	post.kind = kind;
	post.prio = how & LITE_POST_PRIO;
	post.err = 0;
	post.item.flight.cost = 0;
	lite_io_expect(io, 1);
	if (how & LITE_POST_NOWAIT) {
		lite_cq_poll(qp->scq);
		return lite_qp_post_list(&post, false);
	}
	/* As in lite_qp_post_list(), but cheaper: most operations need not queue. */
	return lite_post_try(&post) >= 0 ? post.err : lite_qp_post_list(&post, true);
}

/*
 * Post a work request (lite_rdma_wr(), lite_atomic_wr()) on a connection that the caller holds
 * live. @io is told of the completion. @how: LITE_POST_*. Process context; without
 * LITE_POST_NOWAIT, sleeps when the send queue is full or others go first. Return: 0, or a negative
 * errno with nothing in flight; -EAGAIN: it would have to wait longer than @how or @io
 * (lite_io_hooks.stale) allows.
 */
int lite_qp_post(struct lite_qp *qp, struct lite_io *io, struct ib_send_wr *send, u32 how)
{
	enum lite_slot_class kind = LITE_SLOT_SMALL;
	const struct lite_conn *conn = qp->conn;
	int slot, err;

	if (unlikely((send->num_sge != 1 || send->sg_list->length > LITE_BULK_BYTES) &&
		     lite_wr_bytes(send) > LITE_BULK_BYTES))
		kind = LITE_SLOT_BULK;
	/* There are waiters, or the connection is scheduled. */
	if (unlikely(READ_ONCE(qp->waiting[kind])))
		return lite_qp_post_later(qp, kind, io, send, how);
	lite_posting_begin(conn);
	slot = lite_slot_get(qp, kind);
	if (unlikely(slot < 0)) {
		lite_posting_end(conn);
		return lite_qp_post_later(qp, kind, io, send, how);
	}
	err = lite_qp_post_to(qp, &qp->wr[slot], io, send);
	lite_posting_end(conn);
	return err;
}

/*
 * Post a message of a call between kernels to the peer's slot at @raddr. The caller holds @conn
 * live. @n: entry of lite_conn.message, not in flight; the send queue has room for all. @io is told
 * of the completion. @sge has the node's lkey; @imm is in host order. Process context; does not
 * sleep. Return: 0, or a negative errno with nothing in flight.
 */
int lite_conn_send(struct lite_conn *conn, u32 n, struct lite_io *io, struct ib_sge *sge,
		   u64 raddr, u32 imm)
{
	/* The first QP has the receives, and keeps messages in order. */
	struct lite_qp *qp = &conn->qp[0];
	struct ib_rdma_wr rdma;
	int err;

	lite_rdma_wr(&rdma, qp, IB_WR_RDMA_WRITE_WITH_IMM, sge, 1, raddr, imm);
	lite_posting_begin(conn);
	err = lite_qp_post_to(qp, &conn->message[n], io, &rdma.wr);
	lite_posting_end(conn);
	return err;
}

/*
 * A target for reads and writes without effect (not empty ones: Documentation/decisions.rst). Sets
 * @sge to 8 bytes of unused memory. Return: the address of 8 such bytes at the peer.
 */
u64 lite_conn_scratch(const struct lite_conn *conn, struct ib_sge *sge)
{
	*sge = (struct ib_sge){
		.addr = conn->slots_in.requests + LITE_SLOTS_SCRATCH,
		.length = sizeof(u64),
		.lkey = conn->fab->lkey,
	};
	return conn->requests + LITE_SLOTS_SCRATCH;
}

/*
 * Post a read or write without effect. It confirms earlier work requests on @qp: it fails if one of
 * them has ended the queue pair. (Not a write if the queue pair may be for fetches only.) @io,
 * @prio, context, return: as for lite_qp_rdma().
 */
int lite_qp_touch(struct lite_qp *qp, struct lite_io *io, enum ib_wr_opcode op, u32 prio)
{
	struct ib_sge sge;
	u64 raddr = lite_conn_scratch(qp->conn, &sge);

	return lite_qp_rdma(qp, io, op, &sge, 1, raddr, prio);
}

/*
 * Wait until the peer's processors see completed writes of all queue pairs: a device answers a read
 * only after what it received before is in memory (Documentation/interfaces/ordering.rst). The
 * caller holds @conn live. May sleep, up to the operation time-out. Return: 0; -errno: it broke.
 */
int lite_conn_flush(struct lite_conn *conn)
{
	/* @n_up only grows; what is posted on later queue pairs need not be flushed. */
	int n = READ_ONCE(conn->n_up);
	struct lite_io io[LITE_QPS_MAX];
	int i, posted, err = 0;

	for (i = 0; i < n; i++) {
		lite_io_init(&io[i]);
		posted = lite_qp_touch(&conn->qp[i], &io[i], IB_WR_RDMA_READ,
				       LITE_POST_UNSCHEDULED);
		err = err ?: posted;
	}
	for (i = 0; i < n; i++) {
		lite_io_wait(&io[i], &conn->qp[i]);
		err = err ?: io[i].status;
	}
	lite_stat_add(conn->fab->stats, LITE_STAT_FLUSHES, n);
	return err;
}

static void lite_wr_init(struct lite_wr *wr, struct lite_qp *qp, u64 bit)
{
	wr->qp = qp;
	wr->bit = bit;
	wr->cqe.done = lite_send_done;
}

/*
 * Make a queue pair; the connection's CM identifier is bound to the device. @first: the one that
 * the CM connects, and that receives messages. May sleep. Return: 0 or a negative errno;
 * lite_qp_destroy() and lite_cq_destroy() undo it in any case.
 */
int lite_qp_init(struct lite_qp *qp, struct lite_conn *conn, bool first)
{
	const int depth = LITE_SQ_DEPTH + (first ? LITE_MESSAGES : 0);
	struct lite_fabric *fab = conn->fab;
	struct ib_qp_init_attr attr = {
		.cap.max_send_wr = depth,
		.cap.max_recv_wr = first ? LITE_RQ_DEPTH : 1,
		.cap.max_send_sge = fab->max_sge,
		.cap.max_recv_sge = 1,
		.sq_sig_type = IB_SIGNAL_REQ_WR,
		.qp_type = IB_QPT_RC,
		.port_num = fab->port_num,
		.recv_cq = conn->rcq->ib,
	};
	struct lite_cq *scq;
	struct ib_qp *ib;
	int i, err;

	qp->psn = get_random_u32() & 0xffffff;
	for (i = 0; i < LITE_SQ_DEPTH; i++)
		lite_wr_init(&qp->wr[i], qp, BIT_ULL(i));
	for (i = 0; first && i < LITE_MESSAGES; i++)
		lite_wr_init(&conn->message[i], qp, 0);
	scq = lite_cq_create(fab, depth, false);
	if (IS_ERR(scq))
		return PTR_ERR(scq);
	qp->scq = scq;
	attr.send_cq = scq->ib;
	if (first) {
		err = rdma_create_qp(conn->id, fab->pd, &attr);
		ib = err ? ERR_PTR(err) : conn->id->qp;
	} else {
		ib = ib_create_qp(fab->pd, &attr);
	}
	if (IS_ERR(ib))
		return PTR_ERR(ib);
	qp->ib = ib;
	qp->qpn = ib->qp_num;
	qp->inline_max = min(attr.cap.max_inline_data, fab->inline_max);
	return 0;
}

/*
 * Make the device flush all that is in flight, without waiting until it has. Posters leave when
 * their work requests have been flushed. @qp may never have been connected. May sleep.
 */
void lite_qp_flush(struct lite_qp *qp)
{
	struct ib_qp_attr attr = { .qp_state = IB_QPS_ERR };

	if (!qp->ib)
		return;
	ib_modify_qp(qp->ib, &attr, IB_QP_STATE);
	/* Let waiters for turns and slots leave. */
	while (lite_turns_grant(qp->conn) || lite_slots_grant(qp))
		cond_resched();
	/* Have the poller take the completions: there may be no waiter left to poll. */
	lite_cq_arm_sleeper(qp->scq);
}

/*
 * The fence: destroy the device's queue pair, after the flush. No completions are taken from now
 * on: lite_cq_quiesce() and lite_qp_abort() must follow. May sleep. Return: false: the device may
 * still access memory for this queue pair.
 */
bool lite_qp_destroy(struct lite_qp *qp)
{
	unsigned long begun = jiffies;

	if (!qp->ib)
		return true;
	if (qp->conn->id && qp->conn->id->qp == qp->ib)
		rdma_destroy_qp(qp->conn->id);
	else
		ib_destroy_qp(qp->ib);
	qp->ib = NULL;
	/* rdma_destroy_qp() returns no error, but a QP that still exists is counted by its CQ. */
	qp->stuck = atomic_read(&qp->scq->ib->usecnt);
	lite_cq_close(qp->scq);
	return !qp->stuck && time_before(jiffies, begun + LITE_DESTROY_TIMEOUT);
}

/* Complete the operations that the device has not completed. No handler runs any more. */
void lite_qp_abort(struct lite_qp *qp)
{
	int i;

	if (!qp->scq)
		return;
	for (i = 0; i < LITE_SQ_DEPTH; i++)
		lite_wr_complete(&qp->wr[i], -EHOSTDOWN);
	for (i = 0; qp == qp->conn->qp && i < LITE_MESSAGES; i++)
		lite_wr_complete(&qp->conn->message[i], -EHOSTDOWN);
}
