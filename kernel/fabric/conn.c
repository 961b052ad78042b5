// SPDX-License-Identifier: GPL-2.0
/*
 * Connections: setup, teardown, and the fence.
 *
 * Normal operation: cm.c establishes the first queue pair; the layer above exchanges what the
 * others need, has them added by lite_conn_add_qps() and declares the connection UP.
 *
 * Recovery: there is none within a connection. Any thread that detects an error kills it; the layer
 * above makes a new one.
 *
 * What cannot run concurrently: making and destroying the device's objects, both under conn->lock.
 * Two work items destroy them. The thread that changes the state to DEAD queues the first, which
 * destroys the queue pairs, and queues the second. That waits for posters, and destroys the rest.
 */
#include <linux/module.h>
#include <linux/sched/mm.h>
#include <linux/slab.h>

#include "fabric.h"
#include "trace.h"
#include "wait.h"

/* Time for the flush before QPs are destroyed, and how often to check whether it is over. */
#define LITE_FLUSH_TIMEOUT (2 * HZ)
#define LITE_FLUSH_LOOK (HZ / 50)
/* Time for a peer that has connected to send ATTACH. */
#define LITE_NEW_TIMEOUT (30 * HZ)

static void lite_conn_free(struct lite_conn *conn)
{
	struct lite_fabric *fab = conn->fab;
	bool stuck = conn->stuck;
	int i;

	if (conn->kcall || conn->service)
		fab->ops->conn_release(fab->priv, conn);
	percpu_ref_exit(&conn->live);
	lite_turns_exit(conn);
	lite_stat_dec(fab->stats, LITE_STAT_CONNS);
	xa_lock(&fab->conns);
	__xa_erase(&fab->conns, conn->session);
	/* Under the lock, because the waiter may free fab when there is no connection left. */
	wake_up_all(&fab->conns_wait);
	xa_unlock(&fab->conns);
	if (stuck)
		return;
	for (i = 0; i < LITE_QPS_MAX; i++)
		kfree(conn->qp[i].scq);
	kfree(conn->rcq);
	kfree(conn);
}

/* Drop a reference to the memory; @conn may be NULL. Context: process. */
void lite_conn_put(struct lite_conn *conn)
{
	if (conn && refcount_dec_and_test(&conn->ref))
		lite_conn_free(conn);
}

/*
 * Iterate over all connections in the order of their sessions. Drops the reference to @conn, which
 * is NULL at first. Process context. Return: the next one, with a reference, or NULL.
 */
struct lite_conn *lite_conn_next(struct lite_fabric *fab, struct lite_conn *conn)
{
	unsigned long session = conn ? conn->session : 0;

	lite_conn_put(conn);
	xa_lock(&fab->conns);
	/* Skip connections that are about to be erased. */
	do {
		conn = xa_find_after(&fab->conns, &session, ULONG_MAX, XA_PRESENT);
	} while (conn && !refcount_inc_not_zero(&conn->ref));
	xa_unlock(&fab->conns);
	return conn;
}

/* The connection with that number, even if dying, with a reference; or NULL. Process context. */
struct lite_conn *lite_conn_find(struct lite_fabric *fab, u64 session)
{
	struct lite_conn *conn;

	xa_lock(&fab->conns);
	conn = xa_load(&fab->conns, session);
	if (conn && !refcount_inc_not_zero(&conn->ref))
		conn = NULL;
	xa_unlock(&fab->conns);
	return conn;
}

static bool lite_conns_kept;

/* Has a device kept queue pairs? Then it may call this module's code for ever. Any context. */
bool lite_conns_are_kept(void)
{
	return READ_ONCE(lite_conns_kept);
}

static void lite_conn_drained(struct percpu_ref *ref)
{
	complete_all(&container_of(ref, struct lite_conn, live)->drained);
}

/*
 * The device has failed to end its work for a connection. Queue pairs that it has kept point to the
 * connection and to this module's code, so neither is ever freed.
 */
static void lite_conn_unfenced(struct lite_conn *conn)
{
	int i;

	for (i = 0; i < conn->nqps; i++)
		conn->stuck |= conn->qp[i].stuck;
	if (conn->stuck) {
		WRITE_ONCE(conn->fab->stuck, true);
		WRITE_ONCE(lite_conns_kept, true);
		__module_get(THIS_MODULE);
	}
	WRITE_ONCE(conn->unfenced, true);
	lite_dma_unfenced(conn->fab);
}

/*
 * Have the device flush what was posted, and wait until it has, but not for threads, which may get
 * no processor for long. What the device does not flush is completed after the QP is destroyed.
 */
static void lite_conn_flush_qps(struct lite_conn *conn)
{
	unsigned long end = jiffies + LITE_FLUSH_TIMEOUT;
	bool flushed;
	int i;

	for (i = 0; i < conn->nqps; i++)
		lite_qp_flush(&conn->qp[i]);
	if (conn->id && conn->qp[0].ib)
		rdma_disconnect(conn->id);
	do {
		if (wait_for_completion_timeout(&conn->drained, LITE_FLUSH_LOOK))
			break;
		/* This is final, because nothing is posted any more. */
		flushed = true;
		for (i = 0; i < conn->nqps; i++)
			flushed &= !atomic64_read(&conn->qp[i].busy) &&
				   !lite_qp_in_flight(&conn->qp[i]);
	} while (!flushed && time_before(jiffies, end));
}

static void lite_conn_destroy(struct lite_conn *conn)
{
	bool fenced = true;
	int i;

	lite_conn_flush_qps(conn);
	for (i = 0; i < conn->nqps; i++)
		fenced &= lite_qp_destroy(&conn->qp[i]);
	/* Before waiters for the fence are woken, because they check this. */
	if (!fenced)
		lite_conn_unfenced(conn);
	complete_all(&conn->fenced);
	trace_lite_conn(conn->session, conn->from.node, 3, conn->reason, 0, 0);
	lite_stat_inc(conn->fab->stats, LITE_STAT_FENCES);
	lite_cq_quiesce();
	for (i = 0; i < conn->nqps; i++)
		lite_qp_abort(&conn->qp[i]);
}

static void lite_conn_kill_work(struct work_struct *work)
{
	struct lite_conn *conn = container_of(work, struct lite_conn, kill_work);
	struct lite_fabric *fab = conn->fab;
	/* A reclaim of memory may be waiting for this fence, so do not wait for memory. */
	unsigned int noreclaim = memalloc_noreclaim_save();

	cancel_delayed_work_sync(&conn->deadline);
	fab->ops->conn_down(fab->priv, conn);
	percpu_ref_kill(&conn->live);
	/* From here on posters that saw an earlier state have posted. */
	synchronize_rcu_expedited();

	mutex_lock(&conn->lock);
	lite_conn_destroy(conn);
	mutex_unlock(&conn->lock);
	memalloc_noreclaim_restore(noreclaim);
	queue_work(fab->gone_wq, &conn->gone_work);
}

/*
 * The second half of the teardown, in a workqueue of its own because it may block: on threads that
 * get no processor, and on locks under which memory is waited for, and so maybe for the fence
 * of another connection.
 */
static void lite_conn_gone_work(struct work_struct *work)
{
	struct lite_conn *conn = container_of(work, struct lite_conn, gone_work);
	struct lite_fabric *fab = conn->fab;
	int i;

	wait_for_completion(&conn->drained);
	mutex_lock(&conn->lock);
	if (conn->id)
		rdma_destroy_id(conn->id);
	conn->id = NULL;
	lite_cq_barrier(fab);
	for (i = 0; i < conn->nqps; i++) {
		if (conn->qp[i].scq)
			lite_cq_destroy(conn->qp[i].scq, conn->qp[i].stuck);
	}
	if (conn->rcq)
		lite_cq_destroy(conn->rcq, conn->stuck);
	mutex_unlock(&conn->lock);
	fab->ops->conn_gone(fab->priv, conn);
	complete_all(&conn->gone);
	trace_lite_conn(conn->session, conn->from.node, 4, conn->reason, 0, 0);
	lite_conn_put(conn);
}

/*
 * End a connection, which the caller keeps from being freed. @cause and @figure (see enum
 * lite_end_cause) are for counters and events, if it was a session; @reason is a negative errno for
 * the record. Only the first call has an effect; a work item does the rest. Any context.
 */
void lite_conn_end(struct lite_conn *conn, enum lite_end_cause cause, u64 figure, int reason)
{
	int old = xchg(&conn->state, LITE_CONN_DEAD);

	if (old == LITE_CONN_DEAD)
		return;
	conn->reason = reason;
	if (old == LITE_CONN_UP) {
		BUILD_BUG_ON(LITE_STAT_ENDS_LEAVE - LITE_STAT_ENDS_SILENCE !=
			     LITE_END_MAX - LITE_END_SILENCE);
		lite_stat_inc(conn->fab->stats, LITE_STAT_ENDS_SILENCE + cause - LITE_END_SILENCE);
		conn->cause = cause;
		conn->figure = figure;
	}
	trace_lite_conn(conn->session, conn->from.node, LITE_CONN_DEAD, reason, conn->cause,
			conn->figure);
	complete_all(&conn->cm_done);
	queue_work(conn->fab->wq, &conn->kill_work);
}

/* lite_conn_end() with the cause that follows from @reason, a negative errno. Any context. */
void lite_conn_kill(struct lite_conn *conn, int reason)
{
	enum lite_end_cause cause =
		reason == -EPROTO || reason == -EBADMSG ? LITE_END_MESSAGE :
		reason == -EIO || reason == -ENOMEM ? LITE_END_DEVICE :
		reason == -ENOTCONN || reason == -ENODEV ? LITE_END_LEAVE : LITE_END_CALL;

	lite_conn_end(conn, cause, -reason, reason);
}

/*
 * End a connection, so that its peer cannot reach memory here; the caller holds a reference. Memory
 * may be freed afterwards even on failure: lite_dma_unmap_page() retains what can still be reached.
 * May sleep; not for posters, nor for work items that the end of the connection waits for. Return:
 * 0; -EIO: the fence failed, and the peer's operations may still take effect.
 */
int lite_conn_fence(struct lite_conn *conn, int reason)
{
	lite_conn_kill(conn, reason);
	wait_for_completion(&conn->fenced);
	return READ_ONCE(conn->unfenced) ? -EIO : 0;
}

static void lite_conn_deadline(struct work_struct *work)
{
	struct lite_conn *conn = container_of(work, struct lite_conn, deadline.work);

	/* A guest only asks to join, and the monitor does not watch it. */
	if (READ_ONCE(conn->state) == LITE_CONN_NEW || !conn->from.node)
		lite_conn_kill(conn, -ETIMEDOUT);
}

/*
 * Make a connection, for lite_conn_register(). The caller gets a reference; another is dropped
 * after lite_conn_kill(), the only way to end a registered connection. May sleep. Return: the
 * connection or ERR_PTR(-ENOMEM).
 */
struct lite_conn *lite_conn_alloc(struct lite_fabric *fab)
{
	struct lite_conn *conn;
	int i, kind;

	conn = kzalloc(sizeof(*conn), GFP_KERNEL);
	if (!conn || percpu_ref_init(&conn->live, lite_conn_drained, 0, GFP_KERNEL)) {
		kfree(conn);
		return ERR_PTR(-ENOMEM);
	}
	conn->fab = fab;
	conn->quirks = fab->quirks;
	conn->nqps = fab->nqps;
	conn->n_connected = 1;
	conn->n_up = 1;
	conn->rd_atom = fab->rd_atom;
	conn->state = LITE_CONN_NEW;
	conn->session = atomic64_inc_return(&fab->sessions);
	conn->heard = jiffies;
	conn->asked = conn->heard;
	refcount_set(&conn->ref, 2);
	mutex_init(&conn->lock);
	for (i = 0; i < LITE_QPS_MAX; i++) {
		struct lite_qp *qp = &conn->qp[i];

		qp->conn = conn;
		qp->acked = conn->heard;
		spin_lock_init(&qp->lock);
		for (kind = 0; kind < LITE_SLOT_CLASSES; kind++)
			INIT_LIST_HEAD(&qp->line[kind]);
	}
	init_completion(&conn->cm_done);
	init_completion(&conn->drained);
	init_completion(&conn->fenced);
	init_completion(&conn->gone);
	INIT_WORK(&conn->gone_work, lite_conn_gone_work);
	INIT_WORK(&conn->kill_work, lite_conn_kill_work);
	INIT_DELAYED_WORK(&conn->deadline, lite_conn_deadline);
	lite_stat_inc(fab->stats, LITE_STAT_CONNS);
	return conn;
}

/*
 * Enter a connection, set up so that it can be killed, in the fabric's table. One that the peer has
 * made is killed after LITE_NEW_TIMEOUT if it is still NEW, or a guest's. May sleep. Return: 0;
 * -ENODEV (the fabric shuts down), -ENOMEM: @conn has been freed.
 */
int lite_conn_register(struct lite_conn *conn)
{
	struct lite_fabric *fab = conn->fab;
	int err = lite_turns_make(conn) ?: xa_reserve(&fab->conns, conn->session, GFP_KERNEL);

	xa_lock(&fab->conns);
	if (fab->closing)
		err = -ENODEV;
	if (err) {
		xa_unlock(&fab->conns);
		lite_conn_free(conn);
		return err;
	}
	/* Before it can be found and killed: lite_conn_kill_work() cancels this. */
	if (conn->passive)
		queue_delayed_work(fab->wq, &conn->deadline, LITE_NEW_TIMEOUT);
	__xa_store(&fab->conns, conn->session, conn, 0);
	xa_unlock(&fab->conns);
	/* Ignore errors: later changes of the rules find it in the table, and report them. */
	lite_turns_update(conn);
	return 0;
}

/*
 * Did this node itself request this connection? Another node can claim this node's id, but knows
 * only the nonces of its own handshakes, not that of this one, which does not leave the machine.
 */
bool lite_conn_is_own(const struct lite_conn *conn)
{
	struct lite_fabric *fab = conn->fab;
	struct lite_conn *other;
	unsigned long session;
	bool own = false;

	/* Connections that this node makes have a zero nonce before the handshake. */
	if (!memchr_inv(conn->nonce, 0, LITE_NONCE_SIZE))
		return false;
	xa_lock(&fab->conns);
	xa_for_each(&fab->conns, session, other) {
		own = other->self && !other->passive &&
		      !memcmp(other->nonce, conn->nonce, LITE_NONCE_SIZE);
		if (own)
			break;
	}
	xa_unlock(&fab->conns);
	return own;
}

/* A request, posted after @begun (jiffies), is in the peer's memory. Any context. */
void lite_conn_asked(struct lite_conn *conn, unsigned long begun)
{
	unsigned long heard = READ_ONCE(conn->heard);

	/* Unless an earlier request is open, or the peer was heard since @begun. */
	if (!time_after(READ_ONCE(conn->asked), heard) && time_before(heard, begun))
		WRITE_ONCE(conn->asked, jiffies);
}

/* Jiffies when the peer's device last acknowledged something. Any context. */
unsigned long lite_conn_acked(const struct lite_conn *conn)
{
	unsigned long latest = READ_ONCE(conn->qp[0].acked);
	int i;

	for (i = 1; i < LITE_QPS_MAX; i++)
		latest = lite_latest(latest, READ_ONCE(conn->qp[i].acked));
	return latest;
}

/*
 * Jiffies when the peer last showed a sign of life. Any context. The peer's device acknowledges
 * even while its processors do not run, so acknowledgements count only while no request has arrived
 * at the peer: a request may be queued behind what is acknowledged. Once a request has arrived,
 * only a message is a sign of life.
 */
unsigned long lite_conn_heard(const struct lite_conn *conn)
{
	unsigned long asked = READ_ONCE(conn->asked);
	unsigned long heard = READ_ONCE(conn->heard);

	if (time_after(asked, heard))
		return asked;
	return lite_latest(heard, lite_conn_acked(conn));
}

/* May undo a concurrent update; the next one corrects that. */
static void lite_stamp_shift(unsigned long *stamp, unsigned long by)
{
	WRITE_ONCE(*stamp, lite_later(READ_ONCE(*stamp), by));
}

/* Do not blame the peer for @by jiffies in which this node could hear nothing. Any context. */
void lite_conn_excuse(struct lite_conn *conn, unsigned long by)
{
	int i;

	/* @asked before @heard: if both become the present, no request counts as open. */
	lite_stamp_shift(&conn->asked, by);
	for (i = 0; i < LITE_QPS_MAX; i++)
		lite_stamp_shift(&conn->qp[i].acked, by);
	lite_stamp_shift(&conn->heard, by);
}

/* Only wr_cqe and status are valid in a completion with an error. */
static void lite_recv_done(struct ib_cq *cq, struct ib_wc *wc)
{
	struct lite_conn *conn = container_of(wc->wr_cqe, struct lite_conn, recv_cqe);
	struct ib_recv_wr recv = { .wr_cqe = &conn->recv_cqe };
	const struct ib_recv_wr *bad;

	/*
	 * The CM has put the queue pair into the error state. Its next event tells why: the peer
	 * refuses the connection, with a reason, or has ended it.
	 */
	if (wc->status == IB_WC_WR_FLUSH_ERR && !conn->passive &&
	    READ_ONCE(conn->state) == LITE_CONN_NEW)
		return;
	/* The queue pair is in the error state: no sends succeed either. */
	if (wc->status != IB_WC_SUCCESS) {
		lite_conn_end(conn, LITE_END_TRANSPORT, wc->status, -EHOSTDOWN);
		return;
	}
	if (wc->opcode != IB_WC_RECV_RDMA_WITH_IMM) {
		lite_conn_kill(conn, -EPROTO);
		return;
	}
	WRITE_ONCE(conn->heard, jiffies);
	/*
	 * Post a receive for the next message first: the peer may send it as soon as the handler
	 * frees the slot. As in lite_qp_submit(), the QP exists while the connection is not DEAD.
	 */
	rcu_read_lock();
	if (!lite_conn_is_dead(conn) && ib_post_recv(conn->qp[0].ib, &recv, &bad))
		lite_conn_kill(conn, -EIO);
	rcu_read_unlock();
	/* Skip a repeated message: the next one may be arriving in the same place. */
	if (unlikely(!wc->byte_len) && lite_conn_repeats(conn))
		return;
	conn->fab->ops->recv(conn->fab->priv, conn, be32_to_cpu(wc->ex.imm_data));
}

/*
 * Make queues and message slots, without connecting. The CM identifier is bound to the device, and
 * conn->lock is held. May sleep. Return: 0 or a negative errno; lite_conn_kill() frees them.
 */
int lite_conn_setup(struct lite_conn *conn)
{
	struct lite_fabric *fab = conn->fab;
	struct ib_recv_wr recv = { .wr_cqe = &conn->recv_cqe };
	const struct ib_recv_wr *bad;
	struct lite_cq *rcq;
	int i, err;

	lockdep_assert_held(&conn->lock);
	if (lite_conn_is_dead(conn))
		return -ECONNABORTED;
	conn->recv_cqe.done = lite_recv_done;
	rcq = lite_cq_create(fab, LITE_RQ_DEPTH + LITE_QPS_MAX, true);
	if (IS_ERR(rcq))
		return PTR_ERR(rcq);
	conn->rcq = rcq;
	err = fab->ops->conn_init(fab->priv, conn);
	for (i = 0; i < conn->nqps && !err; i++)
		err = lite_qp_init(&conn->qp[i], conn, i == 0);
	for (i = 0; i < LITE_RQ_DEPTH && !err; i++)
		err = ib_post_recv(conn->qp[0].ib, &recv, &bad);
	return err;
}

/* Have a kind of operations use its share of the @n queue pairs from @first on. */
static void lite_conn_use(struct lite_conn *conn, u32 prio, bool fetch, u32 first, u32 n)
{
	bool high = prio && prio <= LITE_SCHED_LOW;
	u32 i, skip;

	n = lite_sched_qps(lite_qos_mode(conn->fab->qos), high ? 0 : LITE_SCHED_LOW, n, &skip);
	for (i = 0; i < LITE_QPS_MAX; i++)
		WRITE_ONCE(conn->use[prio][fetch][i], &conn->qp[first + skip + i % n]);
}

/*
 * Share the queue pairs that are up among kinds of operations, by the node's mode. Called when
 * that, or the number of queue pairs, has changed. Process context.
 */
void lite_conn_share_qps(struct lite_conn *conn)
{
	struct lite_fabric *fab = conn->fab;
	u32 prio, apart;

	/* Under the lock, so that the last caller sees all changes. */
	xa_lock(&fab->conns);
	apart = lite_conn_apart(conn);
	for (prio = 0; prio < LITE_PRIOS; prio++) {
		lite_conn_use(conn, prio, false, 0, apart ? max(conn->n_up - 1, 1) : conn->n_up);
		lite_conn_use(conn, prio, true, apart, apart ? 1 : conn->n_up);
	}
	xa_unlock(&fab->conns);
}

static int lite_qp_connect(struct lite_conn *conn, struct lite_qp *qp,
			   const struct lite_wire_qp *remote)
{
	static const enum ib_qp_state states[] = { IB_QPS_INIT, IB_QPS_RTR, IB_QPS_RTS };
	int i, mask, err = 0;

	/* As the CM did with the first QP, on the same path, but with other QP numbers and PSNs. */
	for (i = 0; i < ARRAY_SIZE(states) && !err; i++) {
		struct ib_qp_attr attr = { .qp_state = states[i] };

		err = rdma_init_qp_attr(conn->id, &attr, &mask);
		if (err)
			break;
		if (states[i] == IB_QPS_RTR) {
			attr.dest_qp_num = le32_to_cpu(remote->qpn) & 0xffffff;
			attr.rq_psn = le32_to_cpu(remote->psn) & 0xffffff;
			attr.max_dest_rd_atomic = conn->rd_atom;
		} else if (states[i] == IB_QPS_RTS) {
			attr.sq_psn = qp->psn;
			attr.max_rd_atomic = conn->rd_atom;
		}
		err = ib_modify_qp(qp->ib, &attr, mask);
	}
	return err;
}

/*
 * Connect the queue pairs after the first of an established connection. Both sides connect as many
 * as the side that wants fewer. @remote: @n QP numbers and PSNs of the peer, in the order of this
 * node's queue pairs. May sleep. Return: 0 or a negative errno.
 */
int lite_conn_add_qps(struct lite_conn *conn, const struct lite_wire_qp *remote, u8 n)
{
	/*
	 * The peer may use the connection already, and so map unpinned memory here, which can be
	 * reclaimed only after a fence. That takes this lock, so do not wait for memory.
	 */
	unsigned int noreclaim = memalloc_noreclaim_save();
	int i, err;

	mutex_lock(&conn->lock);
	err = lite_conn_is_dead(conn) ? -ECONNABORTED : lite_quirks_connected(conn);
	for (i = 0; !err && i < n && i + 1 < conn->nqps; i++) {
		err = lite_qp_connect(conn, &conn->qp[i + 1], &remote[i]);
		if (!err)
			conn->n_connected = i + 2;
	}
	/* A queue pair for fetches is used at once: what the peer is not ready for is resent. */
	lite_conn_share_qps(conn);
	mutex_unlock(&conn->lock);
	memalloc_noreclaim_restore(noreclaim);
	return err;
}

/* Use all queue pairs: the peer has connected its own, so no packets are lost. Process context. */
void lite_conn_ready(struct lite_conn *conn)
{
	u8 n = conn->n_connected;

	if (likely(READ_ONCE(conn->n_up) == n))
		return;
	WRITE_ONCE(conn->n_up, n);
	lite_conn_share_qps(conn);
}

/* Declare a connection UP, with all QPs connected. Return: false: it has died meanwhile. */
bool lite_conn_set_up(struct lite_conn *conn)
{
	conn->up_before = atomic64_read(&conn->fab->sessions);
	if (cmpxchg(&conn->state, LITE_CONN_NEW, LITE_CONN_UP) != LITE_CONN_NEW)
		return false;
	trace_lite_conn(conn->session, conn->from.node, LITE_CONN_UP, 0, 0, 0);
	return true;
}
