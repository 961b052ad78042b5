// SPDX-License-Identifier: GPL-2.0
/*
 * Signs of life without messages.
 *
 * A message has to be posted, queue behind others, and be handled by threads, which takes time on a
 * slow machine. So each kernel increments a counter in its slots, and a peer that has heard nothing
 * for a while reads it. A counter that advances shows that the machine is reachable and its threads
 * run. One that stands still shows nothing, as a device may answer for a machine that has crashed.
 *
 * What runs concurrently: only the monitor asks; any thread may handle the completion. The monitor
 * sets @asking, and the handler clears it as its last access.
 */
#include "kcall.h"
#include "wait.h"

/* Much shorter than a peer may be silent by default. */
#define LITE_BEAT_PERIOD (HZ / 2)

static u64 *lite_beat_word(struct lite_slots *slots)
{
	return page_address(slots->page) + LITE_SLOTS_BEAT;
}

/* Increment this node's counter once per period, from now on: the work queues itself. */
void lite_beat_start(struct lite_kcall_conn *rc)
{
	queue_delayed_work(rc->kcalls->wq[LITE_LANE_SHORT], &rc->beat.work, LITE_BEAT_PERIOD);
}

static void lite_beat_work(struct work_struct *work)
{
	struct lite_kcall_conn *rc =
		container_of(to_delayed_work(work), struct lite_kcall_conn, beat.work);
	u64 *word = lite_beat_word(&rc->req_in);

	WRITE_ONCE(*word, *word + 1);
	lite_beat_start(rc);
}

void lite_beat_init(struct lite_kcall_conn *rc)
{
	rc->beat.changed = jiffies;
	INIT_DELAYED_WORK(&rc->beat.work, lite_beat_work);
}

static void lite_beat_end(struct lite_io *io)
{
	struct lite_kcall_conn *rc = container_of(io, struct lite_kcall_conn, beat.io);
	struct lite_beat *b = &rc->beat;
	struct lite_conn *conn = rc->conn;
	u64 count;

	if (!io->status) {
		count = READ_ONCE(*lite_beat_word(&rc->req_out));
		if (count != b->count) {
			b->count = count;
			WRITE_ONCE(b->changed, jiffies);
		}
	}
	lite_cq_disarm_sleeper(b->qp->scq);
	smp_store_release(&b->asking, false); /* pairs with lite_beat_ask() */
	lite_conn_put_live(conn);
}

/*
 * Post a read of a peer's counter, unless one is in flight. Only one thread may ask; it holds a
 * reference. Process context; does not wait.
 */
void lite_beat_ask(struct lite_conn *conn)
{
	struct lite_kcall_conn *rc = conn->kcall;
	struct lite_beat *b = &rc->beat;
	struct ib_rdma_wr wr;
	struct ib_sge sge = {
		.addr = rc->req_out.dma + LITE_SLOTS_BEAT,
		.length = sizeof(u64),
		.lkey = conn->fab->lkey,
	};
	int err;

	/* Pairs with lite_beat_end(). */
	if (smp_load_acquire(&b->asking) || !lite_conn_tryget(conn))
		return;
	b->qp = lite_conn_qp(conn, true, 0);
	b->asked = jiffies;
	WRITE_ONCE(b->asking, true);
	lite_io_init_unwaited(&b->io, lite_beat_end);
	lite_cq_arm_sleeper(b->qp->scq);
	lite_rdma_wr(&wr, b->qp, IB_WR_RDMA_READ, &sge, 1, conn->requests + LITE_SLOTS_BEAT, 0);
	err = lite_qp_post(b->qp, &b->io, &wr.wr, LITE_POST_UNSCHEDULED | LITE_POST_NOWAIT);
	WRITE_ONCE(b->full, err == -EAGAIN);
	if (err)
		cmpxchg(&b->io.status, 0, err);
	lite_io_leave(&b->io);
}

/*
 * Jiffies when a peer's threads were last known to run. While the read waits behind other
 * operations, or for a send slot, acknowledgements of these count.
 */
unsigned long lite_beat_heard(const struct lite_conn *conn)
{
	const struct lite_kcall_conn *rc = conn->kcall;
	unsigned long changed = READ_ONCE(rc->beat.changed);
	unsigned long acked = lite_conn_acked(conn);

	if ((READ_ONCE(rc->beat.asking) || READ_ONCE(rc->beat.full)) && time_after(acked, changed))
		return acked;
	return changed;
}

/* Is a read in flight? @since: jiffies when the device's silence began. Monitor only. */
bool lite_beat_unanswered(const struct lite_conn *conn, unsigned long *since)
{
	const struct lite_kcall_conn *rc = conn->kcall;

	*since = lite_latest(rc->beat.asked, lite_conn_acked(conn));
	return READ_ONCE(rc->beat.asking);
}

/* Do not count @by jiffies in which this node could not look. */
void lite_beat_excuse(struct lite_conn *conn, unsigned long by)
{
	struct lite_kcall_conn *rc = conn->kcall;

	rc->beat.asked = lite_later(rc->beat.asked, by);
	WRITE_ONCE(rc->beat.changed, lite_later(rc->beat.changed, by));
}
