/* SPDX-License-Identifier: GPL-2.0 */
/*
 * How devices differ from what LITE expects. All off: hardware. This is the only place that asks
 * which driver a device has; what Soft-RoCE alone needs is here and in soft.c.
 */
#ifndef _LITE_FABRIC_QUIRKS_H
#define _LITE_FABRIC_QUIRKS_H

#include <linux/bottom_half.h>
#include <rdma/ib_verbs.h>

#include "compat.h"

struct lite_conn;
struct rdma_cm_id;

/**
 * struct lite_quirks - deviations of a device
 * @soft: it is software, and uses processors of both nodes. Many small operations go in messages
 *	(memory/batch/pack.c), and awake waiters receive packets (soft.c).
 * @early_reads: a read of several packets may complete with success before its data is there; the
 *	QP ends then. See lite_qp_confirm() and Documentation/decisions.rst.
 * @fetch_apart: an acknowledgement of a write that was sent again may be taken for the response of
 *	a read or an atomic. So these have a queue pair of their own: lite_conn_qps(),
 *	Documentation/decisions.rst. The peer makes two queue pairs at least, whatever its device.
 * @repeats: peers may send a write with immediate twice in a row, the second time without its
 *	bytes: before 6.10, req_retry() of rxe reads the oldest request and its PSN while the
 *	completer advances both, and sends a completed request again under the next PSN. So a
 *	message with the number of the previous one is ignored, whatever kernel we run, and also
 *	if only the peer's device is like that (lite_conn.repeats).
 * @misnumbers: a write of several packets that it repeats may be followed by an empty one, which
 *	shifts the numbers of all later packets; the peer refuses what does not fit as an invalid
 *	request. So that is a failure of the transport, and no error of the request:
 *	Documentation/decisions.rst.
 * @inlines: a work request may carry the bytes of a small write itself (IB_SEND_INLINE), which
 *	costs less than making a packet of mapped memory. Not all drivers know that flag in the
 *	kernel.
 * @tasklets: it does the work of a post in a tasklet, and destroying a CQ does not wait for pending
 *	events of it in a tasklet (lite_cq_barrier()).
 */
struct lite_quirks {
	bool soft;
	bool early_reads;
	bool fetch_apart;
	bool repeats;
	bool misnumbers;
	bool inlines;
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
			.misnumbers = true, /* 6.1 to 6.12 at least */
			.inlines = LITE_RXE_INLINES,
			.tasklets = LITE_RXE_TASKLETS,
		};
	default:
		return (struct lite_quirks){};
	}
}

/* Has a request failed with @status because the peer was lost, so that it may be done again? */
static inline bool lite_quirks_lost(const struct lite_quirks *quirks, enum ib_wc_status status)
{
	switch (status) {
	case IB_WC_WR_FLUSH_ERR:
	case IB_WC_RETRY_EXC_ERR:
	case IB_WC_RNR_RETRY_EXC_ERR:
	case IB_WC_RESP_TIMEOUT_ERR:
		return true;
	case IB_WC_REM_INV_REQ_ERR:
		return quirks->misnumbers;
	default:
		return false;
	}
}

/*
 * Turn preemption off while posting, one way or the other: a tasklet that is raised with softirqs
 * off runs as soon as they are enabled, not some time later in ksoftirqd.
 */
static __always_inline void lite_quirks_post_begin(const struct lite_quirks *quirks)
{
	if (quirks->tasklets)
		local_bh_disable();
	else
		preempt_disable();
}

static __always_inline void lite_quirks_post_end(const struct lite_quirks *quirks)
{
	if (quirks->tasklets)
		local_bh_enable();
	else
		preempt_enable();
}

u32 lite_napi_of(const struct rdma_cm_id *id);
void lite_napi_poll(u32 napi);

/* For a software device: once in each round of an awake wait. */
static inline void lite_napi_receive(u32 napi)
{
	if (napi)
		lite_napi_poll(napi);
}

void lite_cq_barrier(void);
int lite_conn_trust_reads(struct lite_conn *conn);

#endif /* _LITE_FABRIC_QUIRKS_H */
