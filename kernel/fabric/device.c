// SPDX-License-Identifier: GPL-2.0
/*
 * The RDMA device of a node: its capabilities, its protection domain, and the one key that covers
 * all memory (Documentation/security.rst, The key).
 *
 * The key, in key mode "global", is one DMA memory region with remote read, write and atomic
 * access. Addresses in it are those that ib_dma_map_*() returns; only lite_dma_map_page() (dma.c)
 * and the scatterlists of one-sided operations make them.
 */
#include "fabric.h"

/* Outstanding reads and atomics per QP, each way. */
#define LITE_RD_ATOM_MAX 32

static int lite_device_check(struct lite_fabric *fab, const char **why)
{
	struct ib_device *dev = fab->dev;
	const struct ib_device_attr *attr = &dev->attrs;

	fab->max_sge = clamp_t(int, attr->max_send_sge, 1, LITE_SGE_MAX);
	fab->max_sge_rd = clamp_t(int, attr->max_sge_rd, 1, fab->max_sge);
	fab->rd_atom = clamp_t(int, min(attr->max_qp_rd_atom, attr->max_qp_init_rd_atom),
			       1, LITE_RD_ATOM_MAX);
	fab->atomics = attr->atomic_cap != IB_ATOMIC_NONE;

	/* iWARP has no RDMA write with immediate. */
	if (!rdma_cap_ib_cm(dev, fab->port_num))
		*why = "the device has no InfiniBand or RoCE connections";
	else if (!dev->ops.get_dma_mr)
		*why = "the device has no memory region over all memory";
	else if (attr->max_qp_wr < LITE_RQ_DEPTH || attr->max_qp_wr < LITE_SQ_DEPTH ||
		 attr->max_cqe < LITE_RQ_DEPTH + LITE_QPS_MAX)
		*why = "the device's queues are too short";
	else
		return 0;
	return -EOPNOTSUPP;
}

/*
 * Make the key. That of the protection domain (IB_PD_UNSAFE_GLOBAL_RKEY) does not allow atomics,
 * and ib_get_dma_mr() was removed, so call the driver, and fill in what the core would.
 */
static int lite_device_get_mr(struct lite_fabric *fab)
{
	int access = IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_READ | IB_ACCESS_REMOTE_WRITE;
	struct ib_mr *mr;

	if (fab->atomics)
		access |= IB_ACCESS_REMOTE_ATOMIC;
	mr = fab->dev->ops.get_dma_mr(fab->pd, access);
	if (IS_ERR(mr))
		return PTR_ERR(mr);
	mr->device = fab->dev;
	mr->pd = fab->pd;
	mr->type = IB_MR_TYPE_DMA;
	mr->uobject = NULL;
	mr->need_inval = false;
	fab->mr = mr;
	fab->lkey = mr->lkey;
	fab->rkey = mr->rkey;
	return 0;
}

/* Not ib_dereg_mr(), because the core has not counted this region. */
static void lite_device_put_mr(struct lite_fabric *fab)
{
	WARN_ON_ONCE(fab->dev->ops.dereg_mr(fab->mr, NULL));
}

/*
 * Open a device. @fab is zeroed but for @stats, @pools, @qos and @self.port. @ops are called with
 * @priv. Sets @why to a text for the administrator where an errno says too little. May sleep.
 * Return: 0 or a negative errno, as documented for LITE_CMD_NODE_START; lite_fabric_shutdown() and
 * lite_fabric_exit() must follow in any case.
 */
int lite_fabric_init(struct lite_fabric *fab, const struct lite_fabric_params *params,
		     const struct lite_fabric_ops *ops, struct lite_node *priv,
		     const char **why)
{
	struct ib_pd *pd;
	int err;

	fab->nqps = params->nqps;
	fab->op_timeout = params->op_timeout;
	fab->addr = params->addr;
	fab->ops = ops;
	fab->priv = priv;
	atomic64_set(&fab->sessions, 0);
	atomic_set(&fab->unfenced, 0);
	xa_init(&fab->conns);
	init_waitqueue_head(&fab->conns_wait);

	fab->wq = alloc_workqueue("lite-fabric", WQ_UNBOUND | WQ_MEM_RECLAIM, 0);
	fab->gone_wq = alloc_workqueue("lite-gone", WQ_UNBOUND, 0);
	fab->accept_wq = alloc_workqueue("lite-accept", WQ_UNBOUND, 0);
	if (!fab->wq || !fab->gone_wq || !fab->accept_wq)
		return -ENOMEM;
	err = lite_auth_init(&fab->auth, params->secret, params->secret_len);
	if (err)
		return err;

	err = lite_cm_bind(fab);
	if (err) {
		*why = "cannot bind to that address and port";
		return err;
	}
	/*
	 * The device exists while the listener is bound to it, but objects made on it must be freed
	 * before its removal ends: after @stays, the removal waits for this node.
	 */
	if (!ops->stays(priv, fab->dev)) {
		*why = "the device is being removed";
		return -ENODEV;
	}
	if (params->dev[0] && strcmp(params->dev, dev_name(&fab->dev->dev))) {
		*why = "the address does not belong to that RDMA device";
		return -ENODEV;
	}
	lite_quirks_init(fab, params);
	err = lite_device_check(fab, why) ?: lite_dma_check(fab, why);
	if (err)
		return err;

	pd = ib_alloc_pd(fab->dev, 0);
	if (IS_ERR(pd))
		return PTR_ERR(pd);
	fab->pd = pd;
	return lite_device_get_mr(fab) ?: lite_bounce_init(fab) ?:
	       lite_poller_start(&fab->poller, dev_name(&fab->dev->dev));
}

/* End all existing connections, and wait until they are gone. @reason: -errno, for the record. */
void lite_fabric_end_all(struct lite_fabric *fab, int reason)
{
	/* Do not wait for later ones: they are refused, but may come as fast as they end. */
	u64 last = atomic64_read(&fab->sessions);
	struct lite_conn *conn = NULL;

	/* Kill all before waiting, so that they end in parallel. */
	while ((conn = lite_conn_next(fab, conn)))
		lite_conn_kill(conn, reason);
	while ((conn = lite_conn_next(fab, conn))) {
		if (conn->session > last)
			continue;
		lite_conn_kill(conn, reason);
		wait_for_completion(&conn->gone);
	}
}

/* Allow no new connections, and end all existing ones. May sleep. */
void lite_fabric_shutdown(struct lite_fabric *fab)
{
	lite_cm_unlisten(fab);
	xa_lock(&fab->conns);
	fab->closing = true;
	xa_unlock(&fab->conns);
	lite_fabric_end_all(fab, -ENODEV);
}

/* Undo lite_fabric_init() after lite_fabric_shutdown(); nothing is mapped or posted. May sleep. */
void lite_fabric_exit(struct lite_fabric *fab)
{
	/* Work items and mappings may still hold references to connections. */
	wait_event(fab->conns_wait, xa_empty(&fab->conns));
	/* lite_conn_free() wakes this thread with the lock held: wait until it has dropped that. */
	xa_lock(&fab->conns);
	xa_unlock(&fab->conns);
	lite_poller_stop(&fab->poller);
	lite_bounce_exit(fab);
	/* Queue pairs that the device has kept use MR and PD. */
	if (fab->mr && !READ_ONCE(fab->stuck))
		lite_device_put_mr(fab);
	if (fab->pd && !READ_ONCE(fab->stuck))
		ib_dealloc_pd(fab->pd);
	lite_auth_exit(&fab->auth);
	if (fab->accept_wq)
		destroy_workqueue(fab->accept_wq);
	if (fab->wq)
		destroy_workqueue(fab->wq);
	if (fab->gone_wq)
		destroy_workqueue(fab->gone_wq);
	if (lite_stat_sum(fab->stats, LITE_STAT_QUARANTINED))
		pr_warn("lite: %lld pages stay in quarantine\n",
			lite_stat_sum(fab->stats, LITE_STAT_QUARANTINED));
	/* The debugging of the DMA API would report this, but not all drivers use that API. */
	WARN_ONCE(lite_stat_sum(fab->stats, LITE_STAT_DMA_PAGES),
		  "lite: pages left mapped\n");
}
