// SPDX-License-Identifier: GPL-2.0
/*
 * Flushing: making completed writes visible to the peer's processors.
 *
 * A write completes when the peer's device has acknowledged it. Its processors
 * see the data when the device has put it into memory, which with relaxed
 * ordering (mlx5 uses it for keys such as ours) may be later and out of order.
 * But a device answers a read only after all that it received before has been
 * put into memory, and on PCI no read overtakes a write, relaxed or not. So a
 * read of anything flushes its queue pair.
 */
#include "fabric.h"

/*
 * Wait until completed writes on all queue pairs (CPUs use different ones) are
 * in the peer's memory. The caller holds @conn live. May sleep, up to the
 * operation time-out. Returns 0 or a negative errno: the connection has broken.
 */
int lite_conn_flush(struct lite_conn *conn)
{
	/*
	 * @n_up only grows; what is posted on later ones need not be flushed.
	 */
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
