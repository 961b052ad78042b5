// SPDX-License-Identifier: GPL-2.0
/*
 * Starting and stopping nodes. Documentation/lifetime.rst gives the steps of both.
 *
 * The registry's mutex serializes starting, stopping and removal of a device. It must not be taken
 * while active on a node.
 */
#include <linux/module.h>
#include <linux/slab.h>
#include <linux/xarray.h>

#include "memory/memop/memop.h"
#include "node.h"
#include "trace.h"

#define LITE_NODES_MAX 1024 /* see lite_registry_add() */
/* For calls without a time-out of their own. */
#define LITE_CALL_TIMEOUT (10 * HZ)

static struct {
	struct mutex lock;   /* serializes starting and stopping */
	struct xarray nodes; /* by index; changed under @lock */
	struct workqueue_struct *wq; /* stops nodes */
	bool closing;
} lite_registry = {
	.lock = __MUTEX_INITIALIZER(lite_registry.lock),
	.nodes = XARRAY_INIT(lite_registry.nodes, XA_FLAGS_ALLOC),
};

static struct ib_client lite_client;

/*
 * lite_client_remove() announces a removal under the registry's lock, which the starting thread
 * holds. Either it has done so, and the client data is NULL, or it waits and then finds the node.
 */
static bool lite_node_device_stays(struct lite_node *node, struct ib_device *dev)
{
	lockdep_assert_held(&lite_registry.lock);
	return ib_get_client_data(dev, &lite_client);
}

static int lite_node_conn_init(struct lite_node *node, struct lite_conn *conn)
{
	return lite_service_conn_init(&node->service, conn) ?:
	       lite_kcall_conn_init(&node->kcalls, conn);
}

static void lite_node_conn_release(struct lite_node *node, struct lite_conn *conn)
{
	if (conn->kcall)
		lite_kcall_conn_release(conn);
	lite_service_conn_release(conn);
}

static void lite_node_recv(struct lite_node *node, struct lite_conn *conn, u32 imm)
{
	if (lite_imm_is_ring(imm))
		lite_service_recv(conn, imm);
	else
		lite_kcall_recv(conn, imm);
}

static int lite_node_admit(struct lite_node *node, struct lite_conn *conn)
{
	return lite_cluster_admit(&node->cluster, conn);
}

static void lite_node_conn_down(struct lite_node *node, struct lite_conn *conn)
{
	lite_kcall_conn_down(conn);
	lite_cluster_conn_down(&node->cluster, conn);
	lite_memop_execs_conn_down(&node->memory, conn);
	lite_service_conn_down(conn);
}

static void lite_node_conn_gone(struct lite_node *node, struct lite_conn *conn)
{
	lite_kcall_conn_gone(conn);
	lite_service_conn_gone(conn);
	lite_cluster_conn_gone(&node->cluster, conn);
}

static const struct lite_fabric_ops lite_node_fabric_ops = {
	.stays = lite_node_device_stays,
	.conn_init = lite_node_conn_init,
	.conn_release = lite_node_conn_release,
	.recv = lite_node_recv,
	.admit = lite_node_admit,
	.conn_down = lite_node_conn_down,
	.conn_gone = lite_node_conn_gone,
};

static void lite_node_members_changed(struct lite_node *node)
{
	lite_memory_members_changed(&node->memory);
	lite_locks_changed(&node->locks);
}

static void lite_node_peer_gone(struct lite_node *node, const struct lite_conn *conn)
{
	lite_memory_peer_gone(&node->memory, conn);
}

static void lite_node_peer_lost(struct lite_node *node, u32 id, u64 incarnation)
{
	lite_memory_peer_lost(&node->memory, id, incarnation);
	lite_locks_changed(&node->locks);
}

/* During module unload only lite_node_unbuild()'s STOPPED is sent, after the end of any join. */
void lite_node_event(struct lite_node *node, u32 id, enum lite_node_state state)
{
	/* Sending allocates memory: its reclaim may wait for fences, which take the lock. */
	lockdep_assert_not_held(&node->cluster.lock);
	trace_lite_member(lite_cluster_id(&node->cluster), id,
			  node->fabric.self.incarnation, state);
	if (state == LITE_NODE_STOPPED || !READ_ONCE(lite_registry.closing))
		lite_netlink_event(node, id, state, LITE_END_NONE, 0);
}

static void lite_node_ended(struct lite_node *node, const struct lite_conn *conn,
			    enum lite_node_state state)
{
	if (state == LITE_NODE_DOWN)
		trace_lite_member(lite_cluster_id(&node->cluster), conn->from.node,
				  node->fabric.self.incarnation, state);
	if (!READ_ONCE(lite_registry.closing))
		lite_netlink_event(node, conn->from.node, state, conn->cause, conn->figure);
}

static void lite_node_member(struct lite_node *node, u32 id, enum lite_node_state state)
{
	lite_node_event(node, id, state);
	lite_locks_changed(&node->locks);
}

static void lite_node_lmr_cut(struct lite_node *node, u64 id, u64 length)
{
	lite_locks_lmr_cut(&node->locks, id, length);
}

static const struct lite_memory_ops lite_node_memory_ops = { .lmr_cut = lite_node_lmr_cut };
static const struct lite_cluster_ops lite_node_cluster_ops = {
	.members_changed = lite_node_members_changed,
	.peer_gone = lite_node_peer_gone,
	.peer_lost = lite_node_peer_lost,
	.event = lite_node_member,
	.ended = lite_node_ended,
};

/* Drop a reference to the object. Context: process. */
void lite_node_put(struct lite_node *node)
{
	u32 i;

	if (!refcount_dec_and_test(&node->ref))
		return;
	for (i = 0; i < LITE_POOLS; i++)
		lite_pool_exit(&node->pools[i]);
	lite_qos_exit(&node->qos);
	percpu_ref_exit(&node->active);
	free_percpu(node->stats);
	kfree(node);
}

/* Find the first node from index @from. Context: process. Return: it, with a reference, or NULL. */
struct lite_node *lite_node_next(unsigned long from)
{
	struct lite_node *node;

	xa_lock(&lite_registry.nodes);
	node = xa_find(&lite_registry.nodes, &from, ULONG_MAX, XA_PRESENT);
	if (node)
		refcount_inc(&node->ref);
	xa_unlock(&lite_registry.nodes);
	return node;
}

/* Find node @index. Context: process. Return: it, with a reference, or NULL. */
struct lite_node *lite_node_find(u32 index)
{
	struct lite_node *node = lite_node_next(index);

	if (!node || node->index == index)
		return node;
	lite_node_put(node);
	return NULL;
}

/* Add a node to the table, at @index or, if that is -1, at the lowest free one. */
static int lite_registry_add(struct lite_node *node, int index, const char **why)
{
	u32 last = index < 0 ? LITE_NODES_MAX - 1 : index;
	int err = -EBUSY;

	lockdep_assert_held(&lite_registry.lock);
	if (last < LITE_NODES_MAX)
		err = xa_alloc(&lite_registry.nodes, &node->index, node,
			       XA_LIMIT(max(index, 0), last), GFP_KERNEL);
	if (err == -EBUSY && index >= 0 && last < LITE_NODES_MAX) {
		*why = "there is a node of that index";
		return -EEXIST;
	}
	if (err == -EBUSY) {
		*why = "indices of nodes are less than 1024";
		return -EINVAL;
	}
	snprintf(node->name, sizeof(node->name), "lite%u", node->index);
	return err;
}

static void lite_node_stop_work(struct work_struct *work);

static void lite_node_idle(struct percpu_ref *ref)
{
	complete_all(&container_of(ref, struct lite_node, active)->idle);
}

static struct lite_node *lite_node_alloc(void)
{
	struct lite_node *node = kzalloc(sizeof(*node), GFP_KERNEL);

	if (!node)
		return NULL;
	refcount_set(&node->ref, 1);
	init_completion(&node->idle);
	spin_lock_init(&node->join.lock);
	INIT_WORK(&node->join.work, lite_node_join_work);
	INIT_WORK(&node->leave_work, lite_node_leave_work);
	INIT_WORK(&node->stop_work, lite_node_stop_work);
	node->stats = alloc_percpu(struct lite_stats);
	/* The node can be found before it is built: dead until then. */
	if (!node->stats ||
	    percpu_ref_init(&node->active, lite_node_idle, PERCPU_REF_INIT_DEAD, GFP_KERNEL)) {
		free_percpu(node->stats);
		kfree(node);
		return NULL;
	}
	node->fabric.stats = node->stats;
	node->fabric.pools = node->pools;
	lite_qos_init(&node->qos);
	node->fabric.qos = &node->qos;
	return node;
}

static int lite_node_build(struct lite_node *node,
			   const struct lite_node_params *p, const char **why)
{
	int err;

	node->fabric.self.port = le16_to_cpu(p->fabric.addr.port);
	err = lite_fabric_init(&node->fabric, &p->fabric, &lite_node_fabric_ops, node, why);
	if (err)
		goto err_fabric;
	err = lite_kcall_init(&node->kcalls, node->stats, LITE_CALL_TIMEOUT);
	if (err)
		goto err_fabric;
	err = lite_cluster_init(&node->cluster, &node->fabric, &node->kcalls,
				&p->cluster, &lite_node_cluster_ops, node);
	if (err)
		goto err_rpc;
	err = lite_memory_init(&node->memory, &node->cluster, node->stats, &p->memory,
			       &lite_node_memory_ops, node);
	if (err)
		goto err_cluster;
	err = lite_locks_init(&node->locks, &node->memory);
	if (err)
		goto err_memory;
	err = lite_service_init(&node->service, &node->memory);
	if (err)
		goto err_locks;

	node->misc.minor = MISC_DYNAMIC_MINOR;
	node->misc.name = node->name;
	node->misc.fops = &lite_fops;
	/* Its group is root, unless udev sets another one. */
	node->misc.mode = p->mode;
	err = misc_register(&node->misc);
	if (err)
		goto err_service;
	lite_cluster_start(&node->cluster);
	err = lite_fabric_listen(&node->fabric);
	if (err)
		goto err_misc;
	percpu_ref_reinit(&node->active);
	return 0;

err_misc:
	misc_deregister(&node->misc);
	lite_cluster_stop(&node->cluster);
	lite_fabric_shutdown(&node->fabric);
	lite_kcall_flush(&node->kcalls);
err_service:
	lite_service_exit(&node->service);
err_locks:
	lite_locks_shut(&node->locks);
	lite_locks_exit(&node->locks);
err_memory:
	lite_memory_exit(&node->memory);
err_cluster:
	lite_cluster_stop(&node->cluster);
	lite_cluster_exit(&node->cluster);
err_rpc:
	lite_kcall_exit(&node->kcalls);
err_fabric:
	lite_fabric_shutdown(&node->fabric);
	lite_fabric_exit(&node->fabric);
	return err;
}

/*
 * Start a node. Sets @out to it, with a reference, or @why to a text where an errno says too
 * little. Context: may sleep. Return: 0 or a negative errno, see LITE_CMD_NODE_START.
 */
int lite_node_start(const struct lite_node_params *params, struct lite_node **out, const char **why)
{
	struct lite_node *node = lite_node_alloc();
	int err;

	if (!node)
		return -ENOMEM;
	mutex_lock(&lite_registry.lock);
	err = lite_registry.closing ? -ENODEV : lite_registry_add(node, params->index, why);
	if (!err) {
		err = lite_node_build(node, params, why);
		if (err)
			xa_erase(&lite_registry.nodes, node->index);
	}
	if (!err) {
		refcount_inc(&node->ref);
		*out = node;
		if (node->fabric.auth.insecure)
			pr_warn("lite: %s has no cluster secret: any host that reaches port %u can use all memory of this machine\n",
				node->name, node->fabric.self.port);
	}
	mutex_unlock(&lite_registry.lock);
	if (err)
		lite_node_put(node);
	return err;
}

static void lite_node_unbuild(struct lite_node *node, bool orderly)
{
	u32 id = 0;

	lockdep_assert_held(&lite_registry.lock);
	misc_deregister(&node->misc);
	if (orderly && !lite_cluster_begin_leave(&node->cluster)) {
		lite_locks_changed(&node->locks);
		lite_memory_give_up(&node->memory);
		id = lite_cluster_leave(&node->cluster);
	}
	lite_cluster_stop(&node->cluster);
	/* Sends the event. After lite_cluster_stop(): no new join may begin. */
	if (id)
		lite_cluster_end_leave(&node->cluster, id);
	lite_locks_changed(&node->locks);
	percpu_ref_kill(&node->active);
	lite_service_stop(&node->service);
	lite_fabric_shutdown(&node->fabric);
	/* Users leave when their calls fail. None waits for user space (struct lite_gate). */
	wait_for_completion_state(&node->idle, TASK_IDLE);
	/* Both work items have exited the node, but may still run. */
	flush_work(&node->join.work);
	flush_work(&node->leave_work);
	lite_service_shut(&node->service);
	lite_locks_shut(&node->locks);
	lite_memory_shut(&node->memory);
	lite_kcall_flush(&node->kcalls);
	/* Wait for work items of peers: they may still be freeing memory of lives that are over. */
	lite_peers_clear(&node->cluster);
	lite_service_exit(&node->service);
	lite_memory_exit(&node->memory);
	lite_locks_exit(&node->locks);
	lite_cluster_exit(&node->cluster);
	lite_kcall_exit(&node->kcalls);
	lite_fabric_exit(&node->fabric);
	xa_erase(&lite_registry.nodes, node->index);
	lite_node_event(node, 0, LITE_NODE_STOPPED);
	lite_node_put(node);
}

static void lite_node_stop_work(struct work_struct *work)
{
	struct lite_node *node = container_of(work, struct lite_node, stop_work);

	mutex_lock(&lite_registry.lock);
	/* Otherwise its device was removed, or it could not be built. */
	if (xa_load(&lite_registry.nodes, node->index) == node)
		lite_node_unbuild(node, true);
	mutex_unlock(&lite_registry.lock);
	lite_node_put(node);
}

/* Begin to stop a node; an event reports the end. Context: process. Return: 0 or -ENODEV. */
int lite_node_stop(u32 index)
{
	struct lite_node *node = lite_node_find(index);

	if (!node)
		return -ENODEV;
	/* The work item takes over the reference, unless it was queued already. */
	if (!queue_work(lite_registry.wq, &node->stop_work))
		lite_node_put(node);
	return 0;
}

static int lite_client_add(struct ib_device *dev)
{
	/* Not NULL: the device is there. */
	ib_set_client_data(dev, &lite_client, dev);
	return 0;
}

static void lite_client_remove(struct ib_device *dev, void *data)
{
	struct lite_node *node;
	unsigned long index;

	mutex_lock(&lite_registry.lock);
	ib_set_client_data(dev, &lite_client, NULL);
	xa_for_each(&lite_registry.nodes, index, node) {
		if (node->fabric.dev == dev) {
			pr_info("lite: %s stops: its device %s is removed\n",
				node->name, dev_name(&dev->dev));
			lite_node_unbuild(node, false);
		}
	}
	mutex_unlock(&lite_registry.lock);
}

static struct ib_client lite_client = {
	.name = "lite",
	.add = lite_client_add,
	.remove = lite_client_remove,
};

/* Ask to be told of device removal. Context: may sleep. Return: 0 or errno. */
int lite_registry_init(void)
{
	int err;

	lite_registry.wq = alloc_workqueue("lite-stop", WQ_UNBOUND, 0);
	if (!lite_registry.wq)
		return -ENOMEM;
	err = ib_register_client(&lite_client);
	if (err)
		lite_registry_free();
	return err;
}

/*
 * Stop all nodes, which ends netlink commands that use them. Later commands find no node, and can
 * start none. Context: may sleep.
 */
void lite_registry_exit(void)
{
	struct lite_node *node;
	unsigned long index;

	mutex_lock(&lite_registry.lock);
	WRITE_ONCE(lite_registry.closing, true);
	xa_for_each(&lite_registry.nodes, index, node)
		lite_node_unbuild(node, true);
	mutex_unlock(&lite_registry.lock);
	ib_unregister_client(&lite_client);
}

/* The last step: no command can stop a node any more. Context: may sleep. */
void lite_registry_free(void)
{
	destroy_workqueue(lite_registry.wq);
}
