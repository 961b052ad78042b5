// SPDX-License-Identifier: GPL-2.0
/*
 * What only devices with quirks need: quirks.h.
 *
 * Receiving: Soft-RoCE gets its packets from the network stack, which gets them in the interrupt
 * and softirq of the network device. An awake waiter takes them from that device's queue itself, as
 * sockets with SO_BUSY_POLL do, instead of waiting: Documentation/decisions.rst.
 *
 * If a device has several queues, it is not known in which packets arrive. Such devices, devices
 * stacked on others (bonds, VLANs) and those without NAPI are left to the interrupt.
 */
#include <linux/cpu.h>
#include <linux/interrupt.h>
#include <linux/log2.h>
#include <linux/netdevice.h>
#include <net/busy_poll.h>

#include "fabric.h"

#define LITE_NAPI_JIFFIES 16

/* Longest write sent inline, which costs a copy, and saves looking up a mapping. */
#define LITE_INLINE_BYTES 256

/*
 * The time after which a packet is resent, as a shift of 4.096 us: 14 is 67 ms. Software resends
 * all that is not acknowledged, and slow machines would do little but drop duplicates. So where a
 * peer may be silent for long, it is a fortieth of that time or less, up to 537 ms; and at most a
 * tenth of the operation time-out.
 */
static u8 lite_ack_timeout(const struct lite_fabric *fab, const struct lite_fabric_params *params)
{
	unsigned long dead = min3(params->dead, 4 * params->op_timeout, 60UL * HZ);

	if (!lite_device_is_soft(fab))
		return 14;
	return clamp(ilog2(jiffies_to_usecs(dead) / 160 + 1), 14, 17);
}

/* Find out what the device needs: maybe one more queue pair than the node was asked to make. */
void lite_quirks_init(struct lite_fabric *fab, const struct lite_fabric_params *params)
{
	fab->quirks = lite_quirks_of(fab->dev);
	if (fab->quirks & LITE_QUIRK_FETCH_APART && fab->nqps < LITE_QPS_MAX)
		fab->nqps++;
	fab->ack_timeout = lite_ack_timeout(fab, params);
	fab->inline_max = fab->quirks & LITE_QUIRK_INLINES ? LITE_INLINE_BYTES : 0;
}

/* Respect the quirks that the peer has @told of its device. No queue pairs have been made yet. */
void lite_quirks_agree(struct lite_conn *conn, u8 told)
{
	conn->quirks |= told & LITE_CM_QUIRKS;
	if (conn->quirks & LITE_QUIRK_FETCH_APART)
		conn->nqps = max_t(u8, conn->nqps, 2);
}

/* The only queue of a network device; 0: it has none, or several. */
static u32 lite_napi_only(struct net_device *dev)
{
	struct napi_struct *napi;
	u32 only = 0;

	list_for_each_entry_rcu(napi, &dev->napi_list, dev_list) {
		/* Send queues have no id. */
		if (napi->napi_id < MIN_NAPI_ID)
			continue;
		if (only)
			return 0;
		only = napi->napi_id;
	}
	return only;
}

/* NAPI id of the queue where packets for a bound @id arrive; 0: not known. Process context. */
static u32 lite_napi_of(const struct rdma_cm_id *id)
{
	const struct rdma_dev_addr *addr = &id->route.addr.dev_addr;
	struct net_device *dev;
	u32 napi = 0;

	rcu_read_lock();
	dev = dev_get_by_index_rcu(addr->net, addr->bound_dev_if);
	if (dev)
		napi = lite_napi_only(dev);
	rcu_read_unlock();
	return napi;
}

/*
 * Receive a few packets that have arrived, if any, for any socket or device. @napi is from
 * lite_napi_of(), not 0; its device may be gone. Process context, no locks held; does not sleep.
 */
void lite_napi_poll(u32 napi)
{
	/*
	 * Leave the packets of one jiffy in LITE_NAPI_JIFFIES to the interrupt: Linux switches off
	 * an interrupt that almost never finds work, as spurious (note_interrupt()).
	 */
	if (jiffies % LITE_NAPI_JIFFIES)
		napi_busy_loop(napi, NULL, NULL, false, BUSY_POLL_BUDGET);
}

static void lite_cq_barrier_tasklet(struct tasklet_struct *t)
{
}

static void lite_cq_barrier_ipi(void *tasklet)
{
	tasklet_schedule(tasklet);
}

/*
 * Wait until pending completion events have been delivered, if destroying a CQ does not. No more
 * completions come on the CQs in question. May sleep.
 *
 * The tasklets of a CPU run in order, so this function's, scheduled behind a CQ's, waits for that.
 * But a CQ's tasklet that is found running on another CPU is requeued behind it. In a second round
 * the CQ's comes first: it cannot be running elsewhere any more, because the first round waited for
 * that CPU, too.
 *
 * An interrupt schedules the tasklet, which runs at the interrupt's end. So this needs no thread on
 * the other CPU, which a real-time thread may occupy for good.
 */
void lite_cq_barrier(const struct lite_fabric *fab)
{
	struct tasklet_struct t;
	int round, cpu;

	if (!(fab->quirks & LITE_QUIRK_TASKLETS))
		return;
	tasklet_setup(&t, lite_cq_barrier_tasklet);
	cpus_read_lock();
	for (round = 0; round < 2; round++) {
		for_each_online_cpu(cpu) {
			/* On this CPU local_bh_enable() runs it. */
			local_bh_disable();
			smp_call_function_single(cpu, lite_cq_barrier_ipi, &t, true);
			local_bh_enable();
			tasklet_kill(&t);
		}
	}
	cpus_read_unlock();
}

/*
 * Find out which reads can be trusted (with the quirk EARLY_READS, those of one packet), and where
 * packets arrive. The first queue pair of @conn is connected. May sleep. Return: 0 or a negative
 * errno.
 */
int lite_quirks_connected(struct lite_conn *conn)
{
	struct lite_fabric *fab = conn->fab;
	struct ib_qp_init_attr init;
	struct ib_qp_attr attr;
	int err;

	conn->read_trusted = U32_MAX;
	if (fab->quirks & LITE_QUIRK_EARLY_READS) {
		err = ib_query_qp(conn->qp[0].ib, &attr, IB_QP_PATH_MTU, &init);
		if (err)
			return err;
		conn->read_trusted = ib_mtu_enum_to_int(attr.path_mtu);
	}
	WRITE_ONCE(fab->poller.napi, lite_device_is_soft(fab) ? lite_napi_of(conn->id) : 0);
	return 0;
}
