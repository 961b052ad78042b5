/* SPDX-License-Identifier: GPL-2.0 */
/*
 * How devices differ from what LITE expects. Hardware has no quirks. This is the only place that
 * asks which driver a device has.
 *
 * soft.c has what only software devices need. Elsewhere the quirks decide how vectors go
 * (memory/batch/pack.h), which reads have to be confirmed (lite_conn.read_trusted: memory/io/,
 * memory/batch/, serve_bulk.c), how repeated messages are ignored (lite_conn.repeats: conn.c,
 * kcall/, function/), and whether awake waiters receive packets (lite_poller.napi: io.c, poller.c).
 */
#ifndef _LITE_FABRIC_QUIRKS_H
#define _LITE_FABRIC_QUIRKS_H

#include <linux/bottom_half.h>
#include <rdma/ib_verbs.h>

#include "compat.h"

struct lite_conn;
struct lite_fabric_params;
struct rdma_cm_id;

/*
 * Quirks of a device; Documentation/decisions.rst has more on most of them
 * @soft: it is software, and uses processors of both nodes: many small operations go in messages
 *	(memory/batch/pack.c), awake waiters receive packets (soft.c), and memory operations need no
 *	fence before them (memory/memop/memop.c)
 * @early_reads: a read of several packets may complete with success before its data is there, and
 *	then the QP ends: lite_qp_confirm()
 * @fetch_apart: it may take the acknowledgement of a repeated write for the response to a read or
 *	atomic, so these have a queue pair of their own (lite_conn_qps()). The peer makes at least
 *	two queue pairs, whatever its device
 * @repeats: rxe before 6.10 may send a write with immediate again after it has completed, without
 *	its bytes: req_retry() reads the oldest request and its PSN while the completer advances
 *	both. The receiver ignores it, whatever its kernel (lite_conn.repeats)
 * @misnumbers: the peer may refuse what follows a repeated write as an invalid request: this is a
 *	failure of the transport
 * @inlines: a work request can carry the bytes of a small write (IB_SEND_INLINE), which not all
 *	drivers support in the kernel
 * @tasklets: it works in tasklets, and destroying a CQ does not wait for those: lite_cq_barrier()
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

/* Has a request failed with @status because the peer was lost, so that it may be repeated? */
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
 * Turn preemption off while posting. If the device works in tasklets, turn softirqs off: then a
 * tasklet that is raised runs as soon as they are on again, not some time later in ksoftirqd.
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

/* Called in each round of an awake wait; does something for software devices only. */
static inline void lite_napi_receive(u32 napi)
{
	if (napi)
		lite_napi_poll(napi);
}

void lite_cq_barrier(void);
int lite_conn_trust_reads(struct lite_conn *conn);
u8 lite_ack_timeout(const struct lite_quirks *quirks, const struct lite_fabric_params *params);

#endif /* _LITE_FABRIC_QUIRKS_H */
