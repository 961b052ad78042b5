/* SPDX-License-Identifier: GPL-2.0 */
/*
 * How devices differ from what LITE expects. Hardware has no quirks. This is the only place that
 * asks which driver a device has; soft.c has what takes more than a few lines. All other files know
 * only what these functions tell. Documentation/decisions.rst (Quirks of devices) says what each
 * quirk is, where it acts, and what that is worth. Part of fabric.h.
 */
#ifndef _LITE_FABRIC_QUIRKS_H
#define _LITE_FABRIC_QUIRKS_H

#include <linux/bottom_half.h>

#include "compat.h"

/* Quirks of a device; its peers are told the first two. */
enum lite_quirk {
	LITE_QUIRK_REPEATS = LITE_CM_REPEATS, /* it may announce a message twice */
	LITE_QUIRK_FETCH_APART = LITE_CM_FETCH_APART, /* reads need a queue pair of their own */
	LITE_QUIRK_SOFT = BIT(2),        /* it is software: processors of both nodes do its work */
	LITE_QUIRK_EARLY_READS = BIT(3), /* a read may succeed before its data is there */
	LITE_QUIRK_MISNUMBERS = BIT(4),  /* it may make the peer refuse valid requests */
	LITE_QUIRK_INLINES = BIT(5),     /* the kernel, too, may use IB_SEND_INLINE */
	LITE_QUIRK_TASKLETS = BIT(6),    /* it uses these; destroying a CQ does not wait for them */
};

/* All of Soft-RoCE's but the last two are set for every version: decisions.rst says where seen. */
static inline u8 lite_quirks_of(const struct ib_device *dev)
{
	switch (dev->ops.driver_id) {
	case RDMA_DRIVER_RXE:
		return LITE_QUIRK_SOFT | LITE_QUIRK_REPEATS | LITE_QUIRK_FETCH_APART |
		       LITE_QUIRK_EARLY_READS | LITE_QUIRK_MISNUMBERS |
		       (LITE_RXE_INLINES ? LITE_QUIRK_INLINES : 0) |
		       (LITE_RXE_TASKLETS ? LITE_QUIRK_TASKLETS : 0);
	default:
		return 0;
	}
}

/* Do processors do the device's work, at both ends of a connection? */
static inline bool lite_device_is_soft(const struct lite_fabric *fab)
{
	return fab->quirks & LITE_QUIRK_SOFT;
}

/*
 * Turn preemption off while posting. If the device works in tasklets, turn softirqs off: then a
 * tasklet that is raised runs as soon as they are on again, not some time later in ksoftirqd.
 */
static __always_inline void lite_posting_begin(const struct lite_conn *conn)
{
	if (conn->quirks & LITE_QUIRK_TASKLETS)
		local_bh_disable();
	else
		preempt_disable();
}

static __always_inline void lite_posting_end(const struct lite_conn *conn)
{
	if (conn->quirks & LITE_QUIRK_TASKLETS)
		local_bh_enable();
	else
		preempt_enable();
}

/* Has a request failed with @status because the peer was lost, so that it may be repeated? */
static inline bool lite_wc_lost(const struct lite_conn *conn, enum ib_wc_status status)
{
	switch (status) {
	case IB_WC_WR_FLUSH_ERR:
	case IB_WC_RETRY_EXC_ERR:
	case IB_WC_RNR_RETRY_EXC_ERR:
	case IB_WC_RESP_TIMEOUT_ERR:
		return true;
	case IB_WC_REM_INV_REQ_ERR:
		return conn->quirks & LITE_QUIRK_MISNUMBERS;
	default:
		return false;
	}
}

/* May a message on @conn, NULL within a node, be announced twice? */
static inline bool lite_conn_repeats(const struct lite_conn *conn)
{
	return conn && conn->quirks & LITE_QUIRK_REPEATS;
}

/* Index of the queue pair that reads and atomics have to themselves; 0: none. */
static inline u32 lite_conn_apart(const struct lite_conn *conn)
{
	return conn->fab->quirks & LITE_QUIRK_FETCH_APART ? conn->n_connected - 1 : 0;
}

/* Must reads of @n bytes be confirmed, by a lite_qp_touch() that has been posted after them? */
static inline bool lite_must_confirm(const struct lite_conn *conn, u64 n)
{
	return n > conn->read_trusted;
}

/* Bytes at a time for a read of @n bytes: small reads are cut, so as not to be confirmed. */
static inline u32 lite_read_step(const struct lite_conn *conn, u32 n)
{
	return n <= LITE_BOUNCE_SIZE ? conn->read_trusted : U32_MAX;
}

/* Called in each round of an awake wait: receives packets, if the device relies on processors. */
static inline void lite_poller_receive(const struct lite_poller *poller)
{
	u32 napi = READ_ONCE(poller->napi);

	if (napi)
		lite_napi_poll(napi);
}

#endif /* _LITE_FABRIC_QUIRKS_H */
