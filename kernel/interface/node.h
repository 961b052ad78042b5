/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A node: one LITE instance on one RDMA device, made of the layers, and its device node /dev/liteN.
 * The only state outside of nodes is the registry of all nodes in this kernel, what closes files,
 * the file system of mapped LMRs, notes of processes with unpinned memory (unpinned.c), and whether
 * a connection is kept because it could not be fenced (conn.c).
 *
 * A user of a node holds @active (lite_node_enter()); stopping ends all connections, and then waits
 * for these users. A pointer to the object holds @ref.
 */
#ifndef _LITE_NODE_H
#define _LITE_NODE_H

#include <linux/miscdevice.h>

#include "function/service.h"
#include "sync/lock.h"

/* Settings of LITE_CMD_NODE_START. */
struct lite_node_params {
	int index;    /* N of /dev/liteN; -1: the lowest that is free */
	umode_t mode; /* permission bits of /dev/liteN */
	struct lite_fabric_params fabric;
	struct lite_cluster_params cluster;
	struct lite_memory_params memory;
};

/* A node's attempts to join, one at a time. */
struct lite_node_join {
	spinlock_t lock; /* protects @number, @running, @err and @why */
	u32 number;      /* of the last attempt, from 1; 0: there was none */
	bool running;    /* it has not ended */
	int err;         /* its result */
	const char *why; /* constant text where @err says too little, or NULL */
	struct lite_wire_addr addr; /* of the member that it asks */
	unsigned long timeout;      /* jiffies */
	struct work_struct work;    /* does it; active on the node meanwhile */
};

struct lite_node {
	refcount_t ref;
	struct percpu_ref active;
	struct completion idle;
	u32 index;
	char name[16];
	struct miscdevice misc;
	struct lite_stats __percpu *stats;
	struct lite_pool pools[LITE_POOLS];
	struct lite_qos qos;
	struct lite_fabric fabric;
	struct lite_kcalls kcalls;
	struct lite_cluster cluster;
	struct lite_memory memory;
	struct lite_locks locks;
	struct lite_service service;
	struct lite_node_join join;
	struct work_struct leave_work;
	struct work_struct stop_work;
};

int lite_registry_init(void);
void lite_registry_exit(void);
void lite_registry_free(void);
int lite_node_start(const struct lite_node_params *params, struct lite_node **out,
		    const char **why);
int lite_node_stop(u32 index);
int lite_node_join(struct lite_node *node, const struct lite_wire_addr *addr,
		   unsigned long timeout, u32 *number, const char **why);
void lite_node_join_work(struct work_struct *work);
void lite_node_leave_work(struct work_struct *work);
int lite_node_leave(struct lite_node *node);
void lite_node_event(struct lite_node *node, u32 id, enum lite_node_state state);
struct lite_node *lite_node_find(u32 index);
struct lite_node *lite_node_next(unsigned long from);
void lite_node_put(struct lite_node *node);

/* Become a user of a node. Return: false: it is stopping. */
static inline bool lite_node_enter(struct lite_node *node)
{
	return percpu_ref_tryget_live(&node->active);
}

static inline void lite_node_exit(struct lite_node *node)
{
	percpu_ref_put(&node->active);
}

/* A cache of idle memory for io_uring commands. */
struct lite_urings {
	spinlock_t lock; /* protects the others */
	struct lite_uring *idle; /* a list */
	u32 n;
};

/* An open /dev/liteN, or a user mapping of an LMR. */
struct lite_file {
	struct lite_node *node; /* with a reference to the object */
	struct lite_ctx *ctx;   /* its handles */
	struct lite_rpc_file *rpc; /* its RPC state; a mapping has none */
	bool read_only;            /* opened read-only: its handles may at most read */
	struct lite_urings urings;
	refcount_t ref;
	const struct cred *cred;         /* of the opener */
	struct lite_crew_job closing;    /* releases its resources */
	struct completion closed;        /* completed when @closing is done */
};

extern const struct file_operations lite_fops;
int lite_chardev_init(void);
void lite_chardev_exit(void);
struct lite_file *lite_file_new(struct lite_node *node);
void lite_file_close(struct lite_file *lf);
long lite_ioctl(struct file *file, unsigned int cmd, unsigned long arg);
long lite_ioctl_any(struct lite_file *lf, unsigned int nr, void __user *user, bool nowait);
struct io_uring_cmd;
int lite_uring_cmd(struct io_uring_cmd *cmd, unsigned int issue_flags);
void lite_urings_free(struct lite_urings *idle);

int lite_netlink_init(void);
void lite_netlink_exit(void);
void lite_netlink_event(struct lite_node *node, u32 id, enum lite_node_state state,
			enum lite_end_cause cause, u64 figure);

/* For kernel modules, which are root. */
extern const struct lite_cred lite_root;
struct lite_node *lite_kapi_enter(struct lite_ctx *ctx);

#endif /* _LITE_NODE_H */
