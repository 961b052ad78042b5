// SPDX-License-Identifier: GPL-2.0
/*
 * Joining and leaving a cluster.
 *
 * Joining may exceed its time-out, and leaving waits for mappers. A netlink command must not wait
 * for that: registering any generic netlink family waits for running commands, and then blocks all
 * new ones. So the command only checks that it is possible, and a work item does it.
 *
 * What cannot run concurrently: two attempts to join. The next one can begin when the node is no
 * longer JOINING (lite_cluster_begin_join()) and the end of the last one is recorded. Stopping the
 * node ends the attempt's connections, and waits for the work item.
 */
#include "node.h"

void lite_node_join_work(struct work_struct *work)
{
	struct lite_node *node = container_of(work, struct lite_node, join.work);
	struct lite_cluster *cl = &node->cluster;
	struct lite_node_join *join = &node->join;
	enum lite_node_state state;
	const char *why = NULL;
	int err;

	err = lite_cluster_join(cl, &join->addr, join->timeout, &why);
	spin_lock(&join->lock);
	join->err = err;
	join->why = why;
	WRITE_ONCE(join->running, false);
	spin_unlock(&join->lock);
	/* After the result is set: on this event a waiter asks for it. */
	state = READ_ONCE(cl->state);
	if (state != LITE_NODE_STOPPED)
		lite_node_event(node, lite_cluster_id(cl), state);
	lite_node_exit(node);
}

/*
 * Begin to join the cluster of which @addr is a member. Active on the node. @number is set to the
 * number of this attempt, @why to a text where an errno says too little. An event about the node
 * itself reports the end. May sleep, but waits for no other node. Return: 0 or an errno, see
 * LITE_CMD_NODE_JOIN.
 */
int lite_node_join(struct lite_node *node, const struct lite_wire_addr *addr,
		   unsigned long timeout, u32 *number, const char **why)
{
	struct lite_cluster *cl = &node->cluster;
	struct lite_node_join *join = &node->join;
	int err;

	if (lite_addr_equal(addr, &node->fabric.addr)) {
		*why = "that is the address of this node itself";
		return -EINVAL;
	}
	if (READ_ONCE(join->running)) {
		*why = "the node is joining or leaving";
		return -EBUSY;
	}
	/* A node that is alone maps only LMRs of its own: lite_memory_idle() makes no calls. */
	err = lite_cluster_begin_join(cl, true, why);
	if (err)
		return err;
	/*
	 * LMRs contain ids and incarnations of this life. Check twice: now, so that a join that
	 * must fail does not disturb users; and for LMRs made meanwhile, when no more can be made.
	 */
	if (!lite_memory_idle(&node->memory))
		goto err_lmrs;
	err = lite_cluster_begin_join(cl, false, why);
	if (err)
		return err;
	if (!lite_memory_idle(&node->memory)) {
		lite_cluster_cancel_join(cl);
		goto err_lmrs;
	}
	/* The work item exits the node. */
	if (!lite_node_enter(node)) {
		lite_cluster_cancel_join(cl);
		return -ENODEV;
	}
	/* An attempt that ended just now may not be recorded yet. */
	flush_work(&join->work);
	spin_lock(&join->lock);
	WRITE_ONCE(join->running, true);
	*number = ++join->number;
	spin_unlock(&join->lock);
	join->addr = *addr;
	join->timeout = timeout;
	queue_work(system_unbound_wq, &join->work);
	return 0;

err_lmrs:
	*why = "the node has LMRs: free them first";
	return -EBUSY;
}

/* Do what lite_node_leave() has begun, and exit the node. */
void lite_node_leave_work(struct work_struct *work)
{
	struct lite_node *node = container_of(work, struct lite_node, leave_work);
	u32 id;

	/* Ends all waits for locks. */
	lite_locks_changed(&node->locks);
	lite_memory_give_up(&node->memory);
	id = lite_cluster_leave(&node->cluster);
	/* Handlers of sessions that have ended may still run. */
	lite_kcall_flush(&node->kcalls);
	lite_locks_changed(&node->locks);
	/* Safe: only members of the cluster that this node has left could use it. */
	lite_memory_forget(&node->memory);
	lite_cluster_end_leave(&node->cluster, id);
	lite_node_exit(node);
}

/*
 * Begin to leave the cluster: the node is LEAVING until an event about it reports the end. Active
 * on the node; may sleep, but waits for no other node. Return: 0, -ENOTCONN, -EBUSY.
 */
int lite_node_leave(struct lite_node *node)
{
	int err = lite_cluster_begin_leave(&node->cluster);

	if (err)
		return err;
	percpu_ref_get(&node->active);
	queue_work(system_unbound_wq, &node->leave_work);
	return 0;
}
