/* SPDX-License-Identifier: GPL-2.0 */
/*
 * How devices differ from what LITE expects. All off: hardware. This is the
 * only place that asks which driver a device has.
 */
#ifndef _LITE_FABRIC_QUIRKS_H
#define _LITE_FABRIC_QUIRKS_H

#include <rdma/ib_verbs.h>

#include "compat.h"

/**
 * struct lite_quirks - deviations of a device
 * @soft: it is software, and uses processors of both nodes. Many small
 *	operations go in messages (memory/batch/pack.c), and awake waiters receive
 *	packets (soft.c).
 * @early_reads: a read of several packets may complete with success before its
 *	data is there, if a NAK arrives in its middle because the responder
 *	could not send; the QP ends then. See lite_qp_confirm().
 * @fetch_apart: a responder that gets a write again acknowledges the newest
 *	request that it has carried out. If that is a read or an atomic with a
 *	lost response, the device takes the acknowledgement for the response,
 *	and reports success without the bytes (check_ack() of rxe). So reads
 *	and atomics have a queue pair of their own, where no such
 *	acknowledgement comes. See lite_conn_qps(). The peer makes two queue
 *	pairs at least, whatever its device.
 * @repeats: peers may send a write with immediate twice in a row, the second
 *	time without its bytes: before 6.10, req_retry() of rxe reads the oldest
 *	request and its PSN while the completer advances both, and sends a
 *	completed request again under the next PSN. So a message with the
 *	number of the previous one is ignored, whatever kernel we run, and also
 *	if only the peer's device is like that (lite_conn.repeats).
 * @tasklets: it does the work of a post in a tasklet: raised with softirqs
 *	off, that runs as soon as they are enabled, not some time later in
 *	ksoftirqd (lite_qp_submit()). And destroying a CQ does not wait for
 *	pending events of it in a tasklet (lite_cq_barrier()).
 */
struct lite_quirks {
	bool soft;
	bool early_reads;
	bool fetch_apart;
	bool repeats;
	bool tasklets;
};

static inline struct lite_quirks lite_quirks_of(const struct ib_device *dev)
{
	switch (dev->ops.driver_id) {
	case RDMA_DRIVER_RXE:
		return (struct lite_quirks){
			.soft = true,
			.early_reads = true, /* 6.1 to 6.12 at least */
			.fetch_apart = true, /* 6.1 to 6.12 at least */
			.repeats = true, /* of peers before 6.10 */
			.tasklets = LITE_RXE_TASKLETS,
		};
	default:
		return (struct lite_quirks){};
	}
}

#endif /* _LITE_FABRIC_QUIRKS_H */
