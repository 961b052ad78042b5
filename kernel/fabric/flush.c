// SPDX-License-Identifier: GPL-2.0
/*
 * Making a peer's device let go of what it was given.
 *
 * A write has completed when the peer's device has acknowledged it. Its processors
 * see it when the device has put it into memory, which devices that are told to
 * (relaxed ordering; mlx5 does it for keys such as ours) do in any order, and
 * later. But no device answers a read before it has put there all that it was
 * given before, and on PCI no read overtakes a write, relaxed or not. So a read
 * of anything flushes, on the queue pair that it goes through.
 */
#include "fabric.h"

/**
 * lite_conn_flush - wait until what has completed is in the peer's memory
 * @conn: connection that the caller holds live
 *
 * For all queue pairs: writes go through that of the processor they are posted on.
 *
 * Context: may sleep; bounded by the operation time-out.
 * Return: 0 or a negative errno: the connection has broken.
 */
int lite_conn_flush(struct lite_conn *conn)
{
	/* More are only added; what is posted after we have looked is later. */
	int n = READ_ONCE(conn->n_up);
	struct lite_io io[LITE_QPS_MAX];
	struct ib_sge sge;
	int err = 0;
	int i, posted;
	u64 raddr;

	raddr = lite_conn_scratch(conn, &sge);
	for (i = 0; i < n; i++) {
		lite_io_init(&io[i]);
		posted = lite_qp_rdma(&conn->qp[i], &io[i], IB_WR_RDMA_READ,
				      &sge, 1, raddr, 0);
		err = err ?: posted;
	}
	for (i = 0; i < n; i++) {
		lite_io_wait(&io[i], &conn->qp[i]);
		err = err ?: io[i].status;
	}
	lite_stat_add(conn->fab->stats, LITE_STAT_FLUSHES, n);
	return err;
}
