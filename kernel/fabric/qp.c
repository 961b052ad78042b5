// SPDX-License-Identifier: GPL-2.0
/*
 * Queue pairs: posting one-sided operations. (io.c waits for them.)
 *
 * Normal operation: the poster takes a free slot of the QP's send queue (there
 * are as many as the queue has room for, so posting never overflows it), posts
 * a signalled work request and waits for the completion. The slot is given back
 * by the completion. Slots are taken and given back without a lock.
 *
 * Recovery: any completion with an error kills the connection, for the QP is
 * in the error state then. What else is in flight is flushed by the device.
 * lite_qp_free() completes what even that has left, after the QP is destroyed.
 *
 * Exactly one of the completion and lite_qp_abort() completes a slot: the one
 * that swaps wr->io for NULL. (For work requests without one see chain.c.)
 */
#include <linux/random.h>
#include <linux/sched/clock.h>

#include "../wait.h"
#include "fabric.h"

/*
 * A device that takes so long to destroy a queue pair has given up. Of those that
 * we know Soft-RoCE does so first, after 50 s, and then says that all went well.
 */
#define LITE_DESTROY_TIMEOUT (40 * HZ)

/* How long a poster polls for a free slot before it sleeps. */
#define LITE_ROOM_SPIN_NS (2 * NSEC_PER_MSEC)

/* No slot is free. */
#define LITE_SQ_FULL -1LL

/**
 * lite_qp_give - give slots back
 * @qp: whose they are
 * @slots: a bit each; nothing is in flight on them
 *
 * Context: any.
 */
void lite_qp_give(struct lite_qp *qp, u64 slots)
{
	smp_mb__before_atomic(); /* All that was done with them comes first. */
	atomic64_andnot(slots, &qp->busy);
	smp_mb__after_atomic(); /* with lite_qp_slot(): it sees them, or we it */
	if (waitqueue_active(&qp->room))
		wake_up_nr(&qp->room, hweight64(slots));
}

static void lite_wr_complete(struct lite_wr *wr, int status)
{
	struct lite_io *io = xchg(&wr->io, NULL);
	struct lite_qp *qp = wr->qp;
	u64 slots;

	if (!io)
		return;
	slots = wr->before | wr->bit;
	wr->before = 0;
	lite_io_end(io, status, hweight64(slots));
	lite_qp_give(qp, slots);
}

/* Only wr_cqe, status and qp are valid in a completion with an error. */
static void lite_send_done(struct ib_cq *cq, struct ib_wc *wc)
{
	struct lite_wr *wr = container_of(wc->wr_cqe, struct lite_wr, cqe);
	struct lite_conn *conn = wr->qp->conn;
	int status;

	if (likely(wc->status == IB_WC_SUCCESS)) {
		WRITE_ONCE(conn->acked, jiffies);
		lite_wr_complete(wr, 0);
		return;
	}
	switch (wc->status) {
	case IB_WC_WR_FLUSH_ERR:
	case IB_WC_RETRY_EXC_ERR:
	case IB_WC_RNR_RETRY_EXC_ERR:
	case IB_WC_RESP_TIMEOUT_ERR:
		status = -EHOSTDOWN;
		break;
	default:
		status = -EIO;
	}
	if (status == -EIO)
		lite_conn_end(conn, LITE_END_DEVICE, 256 + wc->status, status);
	else
		lite_conn_end(conn, LITE_END_TRANSPORT, wc->status, status);
	lite_wr_complete(wr, status);
}

static inline int lite_qp_take(struct lite_qp *qp)
{
	s64 busy = atomic64_read(&qp->busy);
	int slot;

	do {
		if (busy == LITE_SQ_FULL)
			return -EAGAIN;
		slot = __ffs64(~(u64)busy);
	} while (!atomic64_try_cmpxchg_acquire(&qp->busy, &busy,
					       busy | BIT_ULL(slot)));
	return slot;
}

/**
 * lite_qp_take_more - take several slots, unless few are left
 * @qp: of a connection that the caller holds live
 * @max: so many at most
 * @spare: so many are left to others
 *
 * Context: any.
 * Return: the slots, a bit each; maybe none.
 */
u64 lite_qp_take_more(struct lite_qp *qp, int max, int spare)
{
	s64 busy = atomic64_read(&qp->busy);
	u64 taken, free;
	int n;

	do {
		free = ~(u64)busy;
		n = min(max, (int)hweight64(free) - spare);
		for (taken = 0; n > 0; n--) {
			taken |= free & -free;
			free &= free - 1;
		}
	} while (taken && !atomic64_try_cmpxchg_acquire(&qp->busy, &busy,
							busy | taken));
	return taken;
}

/* Poll for a free slot, for a bounded time. */
static int lite_qp_spin_take(struct lite_qp *qp)
{
	u64 end = local_clock() + LITE_ROOM_SPIN_NS;
	int slot;

	do {
		lite_cq_poll(qp->scq);
		slot = lite_qp_take(qp);
		if (slot >= 0)
			break;
		cond_resched();
	} while (local_clock() < end);
	return slot;
}

/**
 * lite_qp_claim - make a slot that of an operation
 * @qp: whose slot it is
 * @slot: taken, as are those in its lite_wr.before
 * @io: waits for it, and for as many work requests more as those are
 *
 * Context: any process.
 * Return: the slot, for lite_qp_submit().
 */
struct lite_wr *lite_qp_claim(struct lite_qp *qp, int slot, struct lite_io *io)
{
	struct lite_wr *wr = &qp->wr[slot];

	lite_io_expect(io, 1 + hweight64(wr->before));
	/* From here on it may be completed: the slot had a life before. */
	smp_store_release(&wr->io, io);
	return wr;
}

/**
 * lite_qp_slot - take a free slot, and wait for one if there is none
 * @qp: of a connection that the caller holds live
 *
 * Uninterruptibly, because slots come free as fast as the device works, and all
 * at once when the connection dies.
 *
 * Context: may sleep.
 * Return: its number, for lite_qp_claim(); -EHOSTDOWN.
 */
int lite_qp_slot(struct lite_qp *qp)
{
	int parts = 0;
	int slot;

	slot = lite_qp_take(qp);
	if (unlikely(slot < 0))
		slot = lite_qp_spin_take(qp);
	while (slot < 0) {
		atomic_inc(&qp->scq->sleepers);
		lite_cq_arm(qp->scq);
		/* A slot is for one of those who wait; the end is for all. */
		wait_event_idle_exclusive_timeout(
			qp->room,
			READ_ONCE(qp->conn->state) == LITE_CONN_DEAD ||
				(slot = lite_qp_take(qp)) >= 0,
			qp->conn->fab->op_timeout / LITE_TIMEOUT_PARTS + 1);
		atomic_dec(&qp->scq->sleepers);
		if (slot >= 0)
			break;
		if (READ_ONCE(qp->conn->state) != LITE_CONN_DEAD &&
		    ++parts < LITE_TIMEOUT_PARTS)
			continue;
		/* Not one of so many completed: the device is stuck. */
		lite_conn_end(qp->conn, LITE_END_OP_TIMEOUT,
			      jiffies_to_msecs(qp->conn->fab->op_timeout),
			      -ETIMEDOUT);
		return -EHOSTDOWN;
	}
	return slot;
}

static inline struct lite_wr *lite_qp_get_wr(struct lite_qp *qp, struct lite_io *io)
{
	int slot = lite_qp_take(qp);

	if (unlikely(slot < 0)) {
		slot = lite_qp_slot(qp);
		if (slot < 0)
			return ERR_PTR(slot);
	}
	return lite_qp_claim(qp, slot, io);
}

/**
 * lite_qp_submit - give work requests to the device
 * @qp: of a connection that the caller holds live
 * @wr: slot, claimed, of the last of them, the only one that is signalled
 * @send: the first of them
 *
 * Context: any process.
 * Return: 0, or a negative errno. Of several, some may be in flight even then:
 * until the slot is completed.
 */
int lite_qp_submit(struct lite_qp *qp, struct lite_wr *wr,
		   const struct ib_send_wr *send)
{
	const struct ib_send_wr *bad = send;
	int err = -EHOSTDOWN;

	/*
	 * The state is set to DEAD, and a grace period passes, before the QP
	 * is destroyed: inside this section it exists.
	 *
	 * With softirqs off, because Soft-RoCE on 6.1 does the work of a post in
	 * a tasklet: raised like that it runs at once when they come on again,
	 * and not some time later in ksoftirqd. Costs hardware drivers nothing.
	 */
	rcu_read_lock_bh();
	if (likely(READ_ONCE(qp->conn->state) != LITE_CONN_DEAD)) {
		err = ib_post_send(qp->ib, send, &bad);
		if (unlikely(err))
			err = -EIO;
	}
	rcu_read_unlock_bh();
	if (unlikely(err)) {
		lite_conn_kill(qp->conn, err);
		/* What the device has taken it lets go of in lite_qp_destroy(). */
		if (bad == send)
			lite_wr_complete(wr, err);
	}
	return err;
}

static inline int lite_qp_post(struct lite_qp *qp, struct lite_wr *wr,
			       struct ib_send_wr *send)
{
	send->wr_cqe = &wr->cqe;
	send->send_flags = IB_SEND_SIGNALED;
	return lite_qp_submit(qp, wr, send);
}

static inline int lite_qp_post_rdma(struct lite_qp *qp, struct lite_wr *wr,
				    enum ib_wr_opcode op, struct ib_sge *sge,
				    int n_sge, u64 raddr, u32 imm)
{
	struct ib_rdma_wr rdma = {
		.wr.opcode = op,
		.wr.sg_list = sge,
		.wr.num_sge = n_sge,
		.wr.ex.imm_data = cpu_to_be32(imm),
		.remote_addr = raddr,
		.rkey = qp->conn->rkey,
	};

	return lite_qp_post(qp, wr, &rdma.wr);
}

/**
 * lite_qp_rdma - post an RDMA read or write
 * @qp: of a connection that the caller holds live
 * @io: told of the completion
 * @op: IB_WR_RDMA_READ, IB_WR_RDMA_WRITE, IB_WR_RDMA_WRITE_WITH_IMM
 * @sge: local memory, with the node's lkey
 * @n_sge: at most what the device can
 * @raddr: remote address, checked by the caller: the key covers all memory
 * @imm: immediate data in host order
 *
 * Context: may sleep when the send queue is full.
 * Return: 0 when posted; else a negative errno and nothing is in flight.
 */
int lite_qp_rdma(struct lite_qp *qp, struct lite_io *io, enum ib_wr_opcode op,
		 struct ib_sge *sge, int n_sge, u64 raddr, u32 imm)
{
	struct lite_wr *wr = lite_qp_get_wr(qp, io);

	if (IS_ERR(wr))
		return PTR_ERR(wr);
	return lite_qp_post_rdma(qp, wr, op, sge, n_sge, raddr, imm);
}

/* NULL: the send queue is full. */
static struct lite_wr *lite_qp_tryget_wr(struct lite_qp *qp, struct lite_io *io)
{
	int slot = lite_qp_take(qp);

	if (slot < 0) {
		lite_cq_poll(qp->scq);
		slot = lite_qp_take(qp);
	}
	return slot < 0 ? NULL : lite_qp_claim(qp, slot, io);
}

/**
 * lite_qp_rdma_nowait - likewise, for those who must not wait for room
 * @qp: of a connection that the caller holds live
 * @io: told of the completion
 * @op: as lite_qp_rdma()
 * @sge: likewise
 * @n_sge: likewise
 * @raddr: likewise
 * @imm: likewise
 *
 * Context: process; does not sleep. Receive handlers.
 * Return: as lite_qp_rdma(); -EAGAIN: the send queue is full.
 */
int lite_qp_rdma_nowait(struct lite_qp *qp, struct lite_io *io,
			enum ib_wr_opcode op, struct ib_sge *sge, int n_sge,
			u64 raddr, u32 imm)
{
	struct lite_wr *wr = lite_qp_tryget_wr(qp, io);

	if (!wr)
		return -EAGAIN;
	return lite_qp_post_rdma(qp, wr, op, sge, n_sge, raddr, imm);
}

/**
 * lite_conn_scratch - what to read or write where nothing is to be
 * @conn: connection
 * @sge: set to 8 bytes of whatever
 *
 * Not no bytes: Soft-RoCE on 6.12, asked for a read anew after such a write, takes
 * its region from that, which had none, and ends the queue pair with a warning.
 *
 * Return: the address at the peer, where nobody reads them.
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

/**
 * lite_qp_confirm - make sure that reads which completed have succeeded
 * @qp: of a connection that the caller holds live
 * @io: that of the reads, all posted
 *
 * For connections with lite_conn.read_trusted. Posts a read that nobody looks
 * at: it fails if a read before it has ended the queue pair. Not a write, see
 * lite_conn_qps().
 *
 * Context: may sleep when the send queue is full.
 * Return: 0 when posted; else a negative errno and nothing is in flight.
 */
int lite_qp_confirm(struct lite_qp *qp, struct lite_io *io)
{
	struct ib_sge sge;
	u64 raddr = lite_conn_scratch(qp->conn, &sge);

	return lite_qp_rdma(qp, io, IB_WR_RDMA_READ, &sge, 1, raddr, 0);
}

static int lite_qp_post_atomic(struct lite_qp *qp, struct lite_wr *wr,
			       enum ib_wr_opcode op, struct ib_sge *sge,
			       u64 raddr, u64 operand, u64 swap)
{
	struct ib_atomic_wr atomic = {
		.wr.opcode = op,
		.wr.sg_list = sge,
		.wr.num_sge = 1,
		.remote_addr = raddr,
		.compare_add = operand,
		.swap = swap,
		.rkey = qp->conn->rkey,
	};

	return lite_qp_post(qp, wr, &atomic.wr);
}

/**
 * lite_qp_atomic - post a remote atomic operation on 8 bytes
 * @qp: of a connection that the caller holds live
 * @io: told of the completion
 * @op: IB_WR_ATOMIC_FETCH_AND_ADD or IB_WR_ATOMIC_CMP_AND_SWP
 * @sge: where the old value goes, 8 bytes
 * @raddr: remote address, a multiple of 8, checked by the caller
 * @operand: addend, or the value expected
 * @swap: the new value
 *
 * Context: may sleep when the send queue is full.
 * Return: 0 when posted; else a negative errno and nothing is in flight.
 */
int lite_qp_atomic(struct lite_qp *qp, struct lite_io *io, enum ib_wr_opcode op,
		   struct ib_sge *sge, u64 raddr, u64 operand, u64 swap)
{
	struct lite_wr *wr = lite_qp_get_wr(qp, io);

	if (IS_ERR(wr))
		return PTR_ERR(wr);
	return lite_qp_post_atomic(qp, wr, op, sge, raddr, operand, swap);
}

/**
 * lite_qp_atomic_nowait - likewise, for those who must not wait for room
 * @qp: of a connection that the caller holds live
 * @io: told of the completion
 * @op: as lite_qp_atomic()
 * @sge: likewise
 * @raddr: likewise
 * @operand: likewise
 * @swap: likewise
 *
 * Context: process; does not sleep.
 * Return: as lite_qp_atomic(); -EAGAIN: the send queue is full.
 */
int lite_qp_atomic_nowait(struct lite_qp *qp, struct lite_io *io,
			  enum ib_wr_opcode op, struct ib_sge *sge, u64 raddr,
			  u64 operand, u64 swap)
{
	struct lite_wr *wr = lite_qp_tryget_wr(qp, io);

	if (!wr)
		return -EAGAIN;
	return lite_qp_post_atomic(qp, wr, op, sge, raddr, operand, swap);
}

/**
 * lite_qp_init - make a queue pair
 * @qp: to fill; its connection's CM identifier knows the device
 * @conn: whose it is
 * @first: the one that the CM connects, and that receives messages
 *
 * Context: may sleep.
 * Return: 0 or a negative errno.
 */
int lite_qp_init(struct lite_qp *qp, struct lite_conn *conn, bool first)
{
	struct lite_fabric *fab = conn->fab;
	struct ib_qp_init_attr attr = {
		.cap.max_send_wr = LITE_SQ_DEPTH,
		.cap.max_recv_wr = first ? LITE_RQ_DEPTH : 1,
		.cap.max_send_sge = fab->max_sge,
		.cap.max_recv_sge = 1,
		.sq_sig_type = IB_SIGNAL_REQ_WR,
		.qp_type = IB_QPT_RC,
		.port_num = fab->port_num,
	};
	int i, err;

	BUILD_BUG_ON(LITE_SQ_DEPTH != 64);
	atomic64_set(&qp->busy, 0);
	init_waitqueue_head(&qp->room);
	qp->conn = conn;
	qp->psn = get_random_u32() & 0xffffff;
	lite_pace_init(&qp->pace, LITE_PACE_WORTH_DEVICE_NS);
	for (i = 0; i < LITE_SQ_DEPTH; i++) {
		qp->wr[i].qp = qp;
		qp->wr[i].bit = BIT_ULL(i);
		qp->wr[i].cqe.done = lite_send_done;
	}
	qp->scq = lite_cq_create(&fab->poller, fab->dev, LITE_SQ_DEPTH, false);
	if (IS_ERR(qp->scq)) {
		err = PTR_ERR(qp->scq);
		qp->scq = NULL;
		return err;
	}
	attr.send_cq = qp->scq->ib;
	attr.recv_cq = conn->rcq->ib;
	if (first) {
		err = rdma_create_qp(conn->id, fab->pd, &attr);
		if (err)
			return err;
		qp->ib = conn->id->qp;
	} else {
		struct ib_qp *ib = ib_create_qp(fab->pd, &attr);

		if (IS_ERR(ib))
			return PTR_ERR(ib);
		qp->ib = ib;
	}
	qp->qpn = qp->ib->qp_num;
	return 0;
}

/**
 * lite_qp_flush - have the device give back everything that is in flight
 * @qp: maybe never connected
 *
 * Does not wait: posters leave when what they posted has been given back.
 *
 * Context: may sleep.
 */
void lite_qp_flush(struct lite_qp *qp)
{
	struct ib_qp_attr attr = { .qp_state = IB_QPS_ERR };

	if (!qp->ib)
		return;
	ib_modify_qp(qp->ib, &attr, IB_QP_STATE);
	wake_up_all(&qp->room);
	/* Nobody may be left to poll: have the poller take the completions. */
	atomic_inc(&qp->scq->sleepers);
	lite_cq_arm(qp->scq);
}

/**
 * lite_qp_destroy - destroy the device's queue pair: the fence
 * @qp: flushed
 *
 * Context: may sleep.
 * Return: true: the device neither reads nor writes memory on behalf of this QP any
 * more; false: it may.
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
	/* The CM keeps the errno to itself. But a QP that is there uses its CQ. */
	qp->stuck = atomic_read(&qp->scq->ib->usecnt);
	return !qp->stuck && time_before(jiffies, begun + LITE_DESTROY_TIMEOUT);
}

/**
 * lite_qp_close - let no completion be taken any more
 * @qp: destroyed; lite_cq_quiesce() and lite_qp_abort() are to follow
 *
 * Context: process.
 */
void lite_qp_close(struct lite_qp *qp)
{
	if (qp->scq)
		lite_cq_close(qp->scq);
}

/**
 * lite_qp_abort - complete the operations that the device has not
 * @qp: closed, and no handler is running any more
 *
 * Context: process.
 */
void lite_qp_abort(struct lite_qp *qp)
{
	int i;

	if (!qp->scq)
		return;
	for (i = 0; i < LITE_SQ_DEPTH; i++)
		lite_wr_complete(&qp->wr[i], -EHOSTDOWN);
	wake_up_all(&qp->room);
}

/**
 * lite_qp_free - give back the rest
 * @qp: aborted; nobody posts on it or waits for it any more
 *
 * Context: may sleep.
 */
void lite_qp_free(struct lite_qp *qp)
{
	if (qp->scq && qp->stuck)
		lite_cq_abandon(qp->scq);
	else if (qp->scq)
		lite_cq_destroy(qp->scq);
	qp->scq = NULL;
}
