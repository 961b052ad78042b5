// SPDX-License-Identifier: GPL-2.0
/*
 * Connections: their making, their end, and the fence.
 *
 * Normal operation: cm.c brings a connection up to an established first queue
 * pair; the layer above exchanges what the others need, has them added with
 * lite_conn_add_qps() and declares the connection UP.
 *
 * Recovery: there is none within a connection. Whoever notices that something
 * is wrong kills it; the layer above makes a new one.
 *
 * What cannot run concurrently: making and unmaking the device's objects, both
 * under conn->lock. The work item that unmakes runs once, queued by whoever
 * moved the state to DEAD.
 */
#include <linux/module.h>
#include <linux/random.h>
#include <linux/slab.h>

#include "../trace.h"
#include "slot.h"

/* For the flush, and then for posters, before the QPs are destroyed anyway. */
#define LITE_DRAIN_TIMEOUT (2 * HZ)
/* A peer that connects and then says nothing. */
#define LITE_NEW_TIMEOUT (30 * HZ)

static void lite_conn_free(struct kref *ref)
{
	struct lite_conn *conn = container_of(ref, struct lite_conn, ref);
	struct lite_fabric *fab = conn->fab;
	bool stuck = conn->stuck;

	if (conn->rpc || conn->service)
		fab->ops->conn_release(fab->priv, conn);
	percpu_ref_exit(&conn->live);
	lite_stat_dec(fab->stats, LITE_STAT_CONNS);
	spin_lock(&fab->conns_lock);
	list_del(&conn->list);
	/* Under the lock: the waiter may free fab as soon as the list is empty. */
	wake_up_all(&fab->conns_wait);
	spin_unlock(&fab->conns_lock);
	if (!stuck)
		kfree(conn);
}

/**
 * lite_conn_put - give a reference to the memory back
 * @conn: connection
 *
 * Context: process.
 */
void lite_conn_put(struct lite_conn *conn)
{
	kref_put(&conn->ref, lite_conn_free);
}

static void lite_conn_drained(struct percpu_ref *ref)
{
	complete_all(&container_of(ref, struct lite_conn, live)->drained);
}

/*
 * The device has failed to end what it does for a connection. Queue pairs that it
 * has kept have pointers to us, and to our code: that stays for good.
 */
static void lite_conn_unfenced(struct lite_conn *conn)
{
	int i;

	for (i = 0; i < conn->nqps; i++)
		conn->stuck |= conn->qp[i].stuck;
	if (conn->stuck) {
		WRITE_ONCE(conn->fab->stuck, true);
		__module_get(THIS_MODULE);
	}
	WRITE_ONCE(conn->unfenced, true);
	lite_dma_unfenced(conn->fab);
}

static void lite_conn_destroy(struct lite_conn *conn)
{
	bool fenced = true;
	int i;

	for (i = 0; i < conn->nqps; i++)
		lite_qp_flush(&conn->qp[i]);
	if (conn->id && conn->qp[0].ib)
		rdma_disconnect(conn->id);
	/*
	 * Posters leave when what they posted has been flushed. Should the
	 * device have kept something, it is completed after the QP's end.
	 */
	wait_for_completion_timeout(&conn->drained, LITE_DRAIN_TIMEOUT);
	for (i = 0; i < conn->nqps; i++)
		fenced &= lite_qp_destroy(&conn->qp[i]);
	/* First: who waits for the fence looks at that next. */
	if (!fenced)
		lite_conn_unfenced(conn);
	complete_all(&conn->fenced);
	trace_lite_conn(conn->session, conn->from.node, 3, conn->reason);
	lite_stat_inc(conn->fab->stats, LITE_STAT_FENCES);
	for (i = 0; i < conn->nqps; i++)
		lite_qp_close(&conn->qp[i]);
	lite_cq_quiesce();
	for (i = 0; i < conn->nqps; i++)
		lite_qp_abort(&conn->qp[i]);
	wait_for_completion(&conn->drained);
	if (conn->id)
		rdma_destroy_id(conn->id);
	conn->id = NULL;
	if (conn->fab->quirks.tasklets)
		lite_cq_barrier();
	for (i = 0; i < conn->nqps; i++)
		lite_qp_free(&conn->qp[i]);
	if (conn->rcq && conn->stuck)
		lite_cq_abandon(conn->rcq);
	else if (conn->rcq)
		lite_cq_destroy(conn->rcq);
	conn->rcq = NULL;
}

static void lite_conn_kill_work(struct work_struct *work)
{
	struct lite_conn *conn = container_of(work, struct lite_conn, kill_work);
	struct lite_fabric *fab = conn->fab;

	cancel_delayed_work_sync(&conn->deadline);
	fab->ops->conn_down(fab->priv, conn);
	percpu_ref_kill(&conn->live);
	/* Whoever saw the state before it was DEAD has posted by now. */
	synchronize_rcu_expedited();

	mutex_lock(&conn->lock);
	lite_conn_destroy(conn);
	mutex_unlock(&conn->lock);

	fab->ops->conn_gone(fab->priv, conn);
	complete_all(&conn->gone);
	trace_lite_conn(conn->session, conn->from.node, 4, conn->reason);
	lite_conn_put(conn);
}

/**
 * lite_conn_end - end a connection, and say why
 * @conn: caller makes sure that it is there
 * @cause: for counters and events, if it was a session
 * @figure: what decided, as enum lite_end_cause says
 * @reason: negative errno for the record
 *
 * The first call has effect; the rest follows in a work item.
 *
 * Context: any.
 */
void lite_conn_end(struct lite_conn *conn, enum lite_end_cause cause, u64 figure,
		   int reason)
{
	int old = xchg(&conn->state, LITE_CONN_DEAD);

	if (old == LITE_CONN_DEAD)
		return;
	conn->reason = reason;
	conn->cause = cause;
	conn->figure = figure;
	trace_lite_conn(conn->session, conn->from.node, LITE_CONN_DEAD, reason);
	if (old == LITE_CONN_UP) {
		BUILD_BUG_ON(LITE_STAT_ENDS_LEAVE - LITE_STAT_ENDS_SILENCE !=
			     LITE_END_MAX - LITE_END_SILENCE);
		lite_stat_inc(conn->fab->stats, LITE_STAT_ENDS_SILENCE + cause -
						LITE_END_SILENCE);
		trace_lite_session_end(conn->session, conn->from.node, cause,
				       figure);
	}
	complete_all(&conn->cm_done);
	queue_work(conn->fab->wq, &conn->kill_work);
}

/**
 * lite_conn_kill - end a connection, whose errno says why
 * @conn: caller makes sure that it is there
 * @reason: negative errno
 *
 * As lite_conn_end().
 *
 * Context: any.
 */
void lite_conn_kill(struct lite_conn *conn, int reason)
{
	enum lite_end_cause cause;

	switch (reason) {
	case -EPROTO:
	case -EBADMSG:
		cause = LITE_END_MESSAGE;
		break;
	case -EIO:
	case -ENOMEM:
		cause = LITE_END_DEVICE;
		break;
	case -ENOTCONN:
	case -ENODEV:
		cause = LITE_END_LEAVE;
		break;
	default:
		cause = LITE_END_CALL;
	}
	lite_conn_end(conn, cause, -reason, reason);
}

/**
 * lite_conn_fence - make sure that a peer cannot reach our memory through this
 * @conn: caller holds a reference
 * @reason: negative errno for the record
 *
 * Memory may be given back after it in any case: lite_dma_unmap_page() sees to what
 * can be reached yet.
 *
 * Context: may sleep; not in a work item that the end of the connection waits
 * for, and not by a poster.
 * Return: 0; -EIO: the device has failed to: what the peer has under way may yet be
 * done.
 */
int lite_conn_fence(struct lite_conn *conn, int reason)
{
	lite_conn_kill(conn, reason);
	wait_for_completion(&conn->fenced);
	return READ_ONCE(conn->unfenced) ? -EIO : 0;
}

static void lite_conn_deadline(struct work_struct *work)
{
	struct lite_conn *conn = container_of(work, struct lite_conn,
					      deadline.work);

	/* Guests ask to join and go; nobody else watches over them. */
	if (READ_ONCE(conn->state) == LITE_CONN_NEW || !conn->from.node)
		lite_conn_kill(conn, -ETIMEDOUT);
}

/**
 * lite_conn_arm_deadline - give a peer some time to make itself useful
 * @conn: killed when it is still NEW after that
 */
void lite_conn_arm_deadline(struct lite_conn *conn)
{
	schedule_delayed_work(&conn->deadline, LITE_NEW_TIMEOUT);
}

/**
 * lite_conn_alloc - make a connection object
 * @fab: fabric
 *
 * Once registered it goes only by lite_conn_kill(). The caller gets a reference
 * besides.
 *
 * Context: may sleep.
 * Return: the connection, for lite_conn_register(), or -ENOMEM.
 */
struct lite_conn *lite_conn_alloc(struct lite_fabric *fab)
{
	struct lite_conn *conn;
	int i;

	conn = kzalloc(sizeof(*conn), GFP_KERNEL);
	if (!conn)
		return ERR_PTR(-ENOMEM);
	if (percpu_ref_init(&conn->live, lite_conn_drained, 0, GFP_KERNEL)) {
		kfree(conn);
		return ERR_PTR(-ENOMEM);
	}
	conn->fab = fab;
	conn->nqps = fab->nqps;
	conn->n_connected = 1;
	conn->n_up = 1;
	conn->use[0].n = 1;
	conn->use[1].n = 1;
	conn->rd_atom = fab->rd_atom;
	conn->state = LITE_CONN_NEW;
	conn->session = atomic64_inc_return(&fab->sessions);
	conn->heard = jiffies;
	conn->asked = conn->heard;
	kref_init(&conn->ref);
	kref_get(&conn->ref);
	mutex_init(&conn->lock);
	for (i = 0; i < LITE_QPS_MAX; i++) {
		conn->qp[i].conn = conn;
		conn->qp[i].acked = conn->heard;
		lite_slots_init(&conn->qp[i]);
	}
	init_completion(&conn->cm_done);
	init_completion(&conn->drained);
	init_completion(&conn->fenced);
	init_completion(&conn->gone);
	INIT_WORK(&conn->kill_work, lite_conn_kill_work);
	INIT_DELAYED_WORK(&conn->deadline, lite_conn_deadline);

	return conn;
}

/**
 * lite_conn_register - make a connection one of the fabric's
 * @conn: complete, so that it can be killed
 *
 * Context: process.
 * Return: 0, or -ENODEV when the fabric shuts down; the object is gone then.
 */
int lite_conn_register(struct lite_conn *conn)
{
	struct lite_fabric *fab = conn->fab;

	spin_lock(&fab->conns_lock);
	if (fab->closing) {
		spin_unlock(&fab->conns_lock);
		cancel_delayed_work_sync(&conn->deadline);
		percpu_ref_exit(&conn->live);
		kfree(conn);
		return -ENODEV;
	}
	list_add(&conn->list, &fab->conns);
	spin_unlock(&fab->conns_lock);
	lite_stat_inc(fab->stats, LITE_STAT_CONNS);
	return 0;
}

/**
 * lite_conn_is_own - did this node itself begin the connection?
 * @conn: a request to connect, its proof checked
 *
 * Others can say that they are this node, but not know the nonce of a handshake
 * that it is making.
 *
 * Context: process.
 * Return: true if it did.
 */
bool lite_conn_is_own(const struct lite_conn *conn)
{
	struct lite_fabric *fab = conn->fab;
	struct lite_conn *other;
	bool own = false;

	/* That of one of ours that has not come to it yet. */
	if (!memchr_inv(conn->nonce, 0, LITE_NONCE_SIZE))
		return false;
	spin_lock(&fab->conns_lock);
	list_for_each_entry(other, &fab->conns, list) {
		if (!other->passive &&
		    !memcmp(other->nonce, conn->nonce, LITE_NONCE_SIZE)) {
			own = true;
			break;
		}
	}
	spin_unlock(&fab->conns_lock);
	return own;
}

/* ---- signs of life ------------------------------------------------------- */

/**
 * lite_conn_asked - the peer has a request of ours in its memory
 * @conn: connection
 * @begun: jiffies, before the request was posted
 *
 * Context: any.
 */
void lite_conn_asked(struct lite_conn *conn, unsigned long begun)
{
	unsigned long heard = READ_ONCE(conn->heard);

	/* Asked before, or answered already. */
	if (time_after(READ_ONCE(conn->asked), heard) ||
	    time_after_eq(heard, begun))
		return;
	WRITE_ONCE(conn->asked, jiffies);
}

/**
 * lite_conn_acked - when did the peer's device acknowledge something last?
 * @conn: connection
 *
 * Context: any.
 * Return: jiffies.
 */
unsigned long lite_conn_acked(const struct lite_conn *conn)
{
	unsigned long latest = READ_ONCE(conn->qp[0].acked);
	int i;

	for (i = 1; i < LITE_QPS_MAX; i++) {
		unsigned long acked = READ_ONCE(conn->qp[i].acked);

		if (time_after(acked, latest))
			latest = acked;
	}
	return latest;
}

/**
 * lite_conn_heard - since when has the peer shown no sign of life?
 * @conn: connection
 *
 * Acknowledgements are the work of its device, which goes on when its processors
 * do not. They show that a message may be under way, and take its time. But from
 * when a request has arrived, only a message is a sign of life.
 *
 * Context: any.
 * Return: jiffies.
 */
unsigned long lite_conn_heard(const struct lite_conn *conn)
{
	unsigned long asked = READ_ONCE(conn->asked);
	unsigned long heard = READ_ONCE(conn->heard);
	unsigned long acked;

	if (time_after(asked, heard))
		return asked;
	acked = lite_conn_acked(conn);
	return time_after(acked, heard) ? acked : heard;
}

/* Later, but not in the future. What is stored meanwhile is lost: it comes again. */
static void lite_stamp_shift(unsigned long *stamp, unsigned long by)
{
	unsigned long now = jiffies;
	unsigned long then = READ_ONCE(*stamp) + by;

	WRITE_ONCE(*stamp, time_after(then, now) ? now : then);
}

/**
 * lite_conn_excuse - a time in which we could hear nobody does not count
 * @conn: connection
 * @by: jiffies
 *
 * Context: any.
 */
void lite_conn_excuse(struct lite_conn *conn, unsigned long by)
{
	int i;

	/* Should all be now, it owes us nothing. */
	lite_stamp_shift(&conn->asked, by);
	for (i = 0; i < LITE_QPS_MAX; i++)
		lite_stamp_shift(&conn->qp[i].acked, by);
	lite_stamp_shift(&conn->heard, by);
}

/**
 * lite_conn_listen - take the messages that are here already
 * @conn: connection; the caller has a reference
 *
 * The poller may have got no processor for a while.
 *
 * Context: process; does not sleep.
 */
void lite_conn_listen(struct lite_conn *conn)
{
	if (!lite_conn_tryget(conn))
		return;
	/* It was up: so it has one, and as long as it is live it stays. */
	lite_cq_poll(conn->rcq);
	lite_conn_put_live(conn);
}

/* ---- making -------------------------------------------------------------- */

/* Only wr_cqe and status are valid in a completion with an error. */
static void lite_recv_done(struct ib_cq *cq, struct ib_wc *wc)
{
	struct lite_conn *conn = container_of(wc->wr_cqe, struct lite_conn,
					      recv_cqe);
	struct ib_recv_wr recv = { .wr_cqe = &conn->recv_cqe };
	const struct ib_recv_wr *bad;

	/* Sends of the queue pair have failed, or will not be acknowledged. */
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
	 * A receive for the next message first: the peer may send as soon as
	 * the handler lets go of the slot. As in lite_qp_post(), the QP exists
	 * as long as we see the connection alive.
	 */
	rcu_read_lock();
	if (READ_ONCE(conn->state) != LITE_CONN_DEAD &&
	    ib_post_recv(conn->qp[0].ib, &recv, &bad))
		lite_conn_kill(conn, -EIO);
	rcu_read_unlock();
	conn->fab->ops->recv(conn->fab->priv, conn,
			     be32_to_cpu(wc->ex.imm_data));
}

/**
 * lite_conn_setup - make queues and message slots; no connecting yet
 * @conn: its CM identifier is bound to the device
 *
 * Context: may sleep; called with conn->lock held.
 * Return: 0 or a negative errno; lite_conn_kill() takes back what there is.
 */
int lite_conn_setup(struct lite_conn *conn)
{
	struct lite_fabric *fab = conn->fab;
	struct ib_recv_wr recv = { .wr_cqe = &conn->recv_cqe };
	const struct ib_recv_wr *bad;
	struct lite_cq *rcq;
	int i, err;

	lockdep_assert_held(&conn->lock);
	if (READ_ONCE(conn->state) == LITE_CONN_DEAD)
		return -ECONNABORTED;
	conn->recv_cqe.done = lite_recv_done;
	rcq = lite_cq_create(&fab->poller, fab->dev,
			     LITE_RQ_DEPTH + LITE_QPS_MAX, true);
	if (IS_ERR(rcq))
		return PTR_ERR(rcq);
	conn->rcq = rcq;
	err = fab->ops->conn_init(fab->priv, conn);
	if (err)
		return err;
	for (i = 0; i < conn->nqps; i++) {
		err = lite_qp_init(&conn->qp[i], conn, i == 0);
		if (err)
			return err;
	}
	for (i = 0; i < LITE_RQ_DEPTH; i++) {
		err = ib_post_recv(conn->qp[0].ib, &recv, &bad);
		if (err)
			return err;
	}
	return 0;
}

static int lite_qp_connect(struct lite_conn *conn, struct lite_qp *qp,
			   u32 remote_qpn, u32 remote_psn)
{
	static const enum ib_qp_state states[] = { IB_QPS_INIT, IB_QPS_RTR,
						   IB_QPS_RTS };
	struct ib_qp_attr attr;
	int i, mask, err;

	/* As the first QP, whose path the CM has found, but for two numbers. */
	for (i = 0; i < ARRAY_SIZE(states); i++) {
		memset(&attr, 0, sizeof(attr));
		attr.qp_state = states[i];
		err = rdma_init_qp_attr(conn->id, &attr, &mask);
		if (err)
			return err;
		if (states[i] == IB_QPS_RTR) {
			attr.dest_qp_num = remote_qpn;
			attr.rq_psn = remote_psn;
			attr.max_dest_rd_atomic = conn->rd_atom;
		} else if (states[i] == IB_QPS_RTS) {
			attr.sq_psn = qp->psn;
			attr.max_rd_atomic = conn->rd_atom;
		}
		err = ib_modify_qp(qp->ib, &attr, mask);
		if (err)
			return err;
	}
	return 0;
}

/* A read of one packet has no middle; after a longer one, see lite_qp_confirm(). */
static int lite_conn_trust_reads(struct lite_conn *conn)
{
	struct ib_qp_init_attr init;
	struct ib_qp_attr attr;
	int err;

	conn->read_trusted = U32_MAX;
	if (!conn->fab->quirks.early_reads)
		return 0;
	err = ib_query_qp(conn->qp[0].ib, &attr, IB_QP_PATH_MTU, &init);
	if (!err)
		conn->read_trusted = ib_mtu_enum_to_int(attr.path_mtu);
	return err;
}

/**
 * lite_conn_add_qps - connect the queue pairs after the first
 * @conn: established
 * @remote: numbers of the peer's, in the order of ours
 * @n: how many
 *
 * Both sides end up with as many as the side that wants fewer.
 *
 * Context: may sleep.
 * Return: 0 or a negative errno.
 */
int lite_conn_add_qps(struct lite_conn *conn, const struct lite_wire_qp *remote,
		      u8 n)
{
	int i, err = 0;

	mutex_lock(&conn->lock);
	if (READ_ONCE(conn->state) == LITE_CONN_DEAD)
		err = -ECONNABORTED;
	else
		err = lite_conn_trust_reads(conn);
	for (i = 0; !err && i < n && i + 1 < conn->nqps; i++) {
		err = lite_qp_connect(conn, &conn->qp[i + 1],
				      le32_to_cpu(remote[i].qpn) & 0xffffff,
				      le32_to_cpu(remote[i].psn) & 0xffffff);
		if (!err)
			conn->n_connected = i + 2;
	}
	/*
	 * What is sent on a queue pair that the peer has not connected yet is lost,
	 * and sent again.
	 */
	if (conn->fab->quirks.fetch_apart)
		WRITE_ONCE(conn->use[1].first, conn->n_connected - 1);
	mutex_unlock(&conn->lock);
	return err;
}

/**
 * lite_conn_ready - the peer has connected its queue pairs, too
 * @conn: connection
 *
 * What is sent on a queue pair before that is lost, and sent again later.
 *
 * Context: any.
 */
void lite_conn_ready(struct lite_conn *conn)
{
	u8 n = conn->n_connected;

	WRITE_ONCE(conn->n_up, n);
	if (!conn->fab->quirks.fetch_apart) {
		WRITE_ONCE(conn->use[0].n, n);
		WRITE_ONCE(conn->use[1].n, n);
	} else if (n > 1) {
		WRITE_ONCE(conn->use[0].n, n - 1);
	}
}

/**
 * lite_conn_set_up - declare a connection usable
 * @conn: all its QPs are connected
 *
 * Context: process.
 * Return: false when it died meanwhile.
 */
bool lite_conn_set_up(struct lite_conn *conn)
{
	conn->up_before = atomic64_read(&conn->fab->sessions);
	if (cmpxchg(&conn->state, LITE_CONN_NEW, LITE_CONN_UP) != LITE_CONN_NEW)
		return false;
	trace_lite_conn(conn->session, conn->from.node, LITE_CONN_UP, 0);
	return true;
}
