/* SPDX-License-Identifier: GPL-2.0 WITH Linux-syscall-note */
/*
 * LITE: administration over generic netlink, family "lite".
 *
 * Commands that change something need CAP_NET_ADMIN. START is answered when
 * done; JOIN, LEAVE and STOP when begun, and an EVENT tells the end. Errors
 * carry a text in the extended ack. GET commands are open to every user: no
 * answer contains a secret (key, cluster secret, memory address).
 *
 * LITE_A_INDEX (the N of /dev/liteN; 0 when absent) selects the node.
 */
#ifndef _UAPI_LITE_NETLINK_H
#define _UAPI_LITE_NETLINK_H

#define LITE_GENL_NAME "lite"
#define LITE_GENL_VERSION 1
#define LITE_GENL_MCGRP_EVENTS "events"

/* Longest cluster secret in bytes. */
#define LITE_SECRET_MAX 64

#define LITE_JOIN_TIMEOUT_DEFAULT 15000 /* ms */

enum lite_cmd {
	LITE_CMD_UNSPEC,
	/*
	 * Make a node on an RDMA device and listen. It starts as a cluster of
	 * one; with IDLE, in none until it joins. In: DEV, ADDR, PORT, NODE_ID,
	 * SECRET, NUM_QPS, MEM_LIMIT, UID_LIMIT, HANDLE_LIMIT, HEARTBEAT_MS,
	 * DEAD_MS, OP_TIMEOUT_MS, ORPHAN_MS, ROOT_SQUASH, INSECURE, MODE,
	 * UNPINNED, IDLE. ADDR is required, and one of SECRET and INSECURE; the
	 * others are optional. INDEX: the index wanted, else the lowest free.
	 * Out: INDEX, NODE_ID.
	 *
	 * Also needs CAP_SYS_RAWIO, because the node gives every member access
	 * to all physical memory. EPERM also where lockdown(7) is at integrity
	 * or above. ENOKEY: neither SECRET nor INSECURE. EEXIST: the index is
	 * taken. EADDRINUSE: address and port are. ENODEV: no such RDMA device,
	 * or none with that address. EADDRNOTAVAIL: not an address of this
	 * machine, or IPv4 mapped into IPv6. ERANGE: a number is out of range,
	 * as a time of less than 10 ms or more than an hour. EOPNOTSUPP: the
	 * device lacks what LITE needs.
	 */
	LITE_CMD_NODE_START,
	/*
	 * Begin to stop the node: it leaves the cluster, frees all memory and
	 * removes /dev/liteN. Open files stay open and fail with ENODEV. The
	 * event STOPPED reports the end. Before it NODE_GET may fail with
	 * EBUSY; after it NODE_GET fails with ENODEV.
	 */
	LITE_CMD_NODE_STOP,
	/*
	 * Begin to join the cluster of the node at ADDR, PORT. TIMEOUT_MS
	 * optional. Out: INDEX, NODE_ID, JOIN: the number of this attempt.
	 * EBUSY: this node has LMRs or peers, or is joining or leaving. EINVAL:
	 * the address is its own, or TIMEOUT_MS is no time-out. EADDRNOTAVAIL:
	 * not the address of one node, or IPv4 mapped into IPv6.
	 *
	 * An EVENT about the node itself tells that the attempt has ended. The
	 * answer to NODE_GET says how: JOIN is the number of the attempt;
	 * JOIN_ERROR, present once it has ended, is 0 or an errno; JOIN_WHY is
	 * a text where the errno says too little. EKEYREJECTED: the other side
	 * has another cluster secret. EEXIST: the id asked for at NODE_START is
	 * taken. ETIMEDOUT, ECONNREFUSED. ENODEV: the node is being stopped.
	 * While the member that assigns ids is unreachable but not yet down,
	 * the attempt waits.
	 */
	LITE_CMD_NODE_JOIN,
	/*
	 * Begin to leave the cluster in order: LMRs at home here are freed, and
	 * their handles elsewhere fail with EIDRM. Shares of other nodes' LMRs
	 * that are in this node's memory are lost. The node is LEAVING, then
	 * IDLE, which an event reports. ENOTCONN: in no cluster. EBUSY: it is
	 * joining or leaving.
	 */
	LITE_CMD_NODE_LEAVE,
	/* One node (do) or all nodes of this machine (dump). */
	LITE_CMD_NODE_GET,
	/* Dump: the cluster's members as seen from here, this node included. */
	LITE_CMD_PEER_GET,
	/* Dump: counters, one message each, with STAT_NAME and STAT_VALUE. */
	LITE_CMD_STATS_GET,
	/*
	 * Multicast to "events": INDEX; NODE_ID and STATE of the node that the
	 * event is about. With CAUSE and FIGURE: a session with that peer has
	 * ended; STATE is UP while this node waits for the peer to come back,
	 * else DOWN.
	 */
	LITE_CMD_EVENT,
	/*
	 * Change the rules by which the node schedules what goes to its peers;
	 * they hold at once. In: QOS_MODE; or TENANTS; or a tenant (UID or
	 * CGROUP) with WEIGHT, CEILING or PRIORITY; or a tenant alone: its rule
	 * is removed. ENOENT: it has none. ENOSPC: there are rules for 256
	 * tenants. EOPNOTSUPP: the kernel has no control groups.
	 */
	LITE_CMD_QOS_SET,
	/*
	 * Dump: one message with QOS_MODE and TENANTS; one per rule: UID or
	 * CGROUP, WEIGHT, CEILING, PRIORITY; and what waited for its turn since
	 * the node scheduled operations for the first time, one per CLASS and
	 * one per TENANT or TENANT_CGROUP: QUEUED, IN_FLIGHT, SLICES, BYTES,
	 * WAITED. Operations that are posted at once are not counted.
	 */
	LITE_CMD_QOS_GET,

	__LITE_CMD_MAX,
};
#define LITE_CMD_MAX (__LITE_CMD_MAX - 1)

/* Why a session with a peer ended, and what FIGURE means. */
enum lite_end_cause {
	LITE_END_NONE,       /* it has not */
	LITE_END_SILENCE,    /* silent for DEAD_MS; ms since the last message */
	LITE_END_OP_TIMEOUT, /* a queue pair with work completed nothing; ms */
	LITE_END_TRANSPORT,  /* the device lost the peer; ib_wc_status; or ms, 5000 or more */
	LITE_END_REVOKE,     /* REVOKE, RECALL or ENDS was not answered; ms waited */
	LITE_END_CALL,       /* another call that must succeed failed; errno */
	LITE_END_MESSAGE,    /* the peer sent a malformed message; errno */
	LITE_END_DEVICE,     /* own device; errno, or 256 + ib_wc_status */
	LITE_END_PEER,       /* the peer ended it; RDMA CM event */
	LITE_END_FENCE,      /* memory the peer could reach is to be freed */
	LITE_END_REPLACED,   /* the peer has a newer session, or restarted */
	LITE_END_LEAVE,      /* this node leaves or stops */

	__LITE_END_MAX,
};
#define LITE_END_MAX (__LITE_END_MAX - 1)

/* The order of what goes to a peer: scheduling.rst. */
enum lite_qos_mode {
	LITE_QOS_NONE,   /* first come, first served */
	LITE_QOS_FAIR,   /* by class and weight */
	LITE_QOS_HW_SEP, /* as none, but high and low classes use different queue pairs */
	LITE_QOS_SW_PRI, /* low classes are held back while high ones are loaded */

	__LITE_QOS_MAX,
};
#define LITE_QOS_MAX (__LITE_QOS_MAX - 1)

/* The tenants that share by weight. */
enum lite_qos_tenants {
	LITE_QOS_BY_UID,
	/*
	 * Control groups (version 2): the nearest one above a process that has a
	 * rule; without one, that at the top of the hierarchy.
	 */
	LITE_QOS_BY_CGROUP,
};

enum lite_attr {
	LITE_A_UNSPEC,
	LITE_A_INDEX,         /* u32 */
	LITE_A_DEV,           /* string: RDMA device, as in "rdma dev" */
	LITE_A_NODE_ID,       /* u16: 1..65535; 0 or absent: not yet assigned */
	LITE_A_ADDR,          /* 4 (IPv4) or 16 (IPv6, not mapped IPv4) bytes, network order */
	LITE_A_PORT,          /* u16, host order */
	LITE_A_STATE,         /* u8: enum lite_node_state */
	LITE_A_INCARNATION,   /* u64 */
	LITE_A_SECRET,        /* 1..LITE_SECRET_MAX bytes; input only */
	LITE_A_NUM_QPS,       /* u8: queue pairs per peer, 1..4, default 2 */
	LITE_A_MEM_LIMIT,     /* u64: bytes for LMRs; default half of RAM */
	LITE_A_UID_LIMIT,     /* u64: bytes per uid but root's; MEM_LIMIT / 4 */
	LITE_A_HANDLE_LIMIT,  /* u32: handles per open file; default 1048576 */
	LITE_A_HEARTBEAT_MS,  /* u32: default 1000 */
	LITE_A_DEAD_MS,       /* u32: a peer silent so long is down; 5000 */
	LITE_A_OP_TIMEOUT_MS, /* u32: default 10000 */
	LITE_A_TIMEOUT_MS,    /* s32: of the attempt to join, see lite.h */
	LITE_A_MEM_USED,      /* u64 */
	LITE_A_LMRS,          /* u32: LMRs at home on this node */
	LITE_A_PEERS,         /* u32: nodes known, also those that left */
	LITE_A_SELF,          /* flag: this entry is the asking node itself */
	LITE_A_STAT_NAME,     /* string */
	LITE_A_STAT_VALUE,    /* u64 */
	LITE_A_PAD,
	LITE_A_ROOT_SQUASH,   /* flag: root of other nodes is uid 65534 here */
	LITE_A_INSECURE,      /* flag: no cluster secret, any peer may join */
	LITE_A_CAUSE,         /* u8: enum lite_end_cause */
	LITE_A_FIGURE,        /* u64: see enum lite_end_cause */
	LITE_A_ORPHAN_MS,     /* u32: default 600000; see netlink.rst */
	LITE_A_MODE,          /* u32: of /dev/liteN, max. 0666; default 0660 */
	LITE_A_JOIN,          /* u32: number of the last join attempt, from 1 */
	LITE_A_JOIN_ERROR,    /* u32: 0 or errno; absent: not ended yet */
	LITE_A_JOIN_WHY,      /* string */
	LITE_A_QOS_MODE,      /* u8: enum lite_qos_mode */
	LITE_A_UID,           /* u32: in the initial user namespace */
	LITE_A_WEIGHT,        /* u32: 1..1000, default 100 */
	LITE_A_CEILING,       /* u8: highest class, 0..7; default 4 */
	LITE_A_CLASS,         /* u8: 0..7 */
	LITE_A_TENANT,        /* u32: uid; 0: also all tenants without a place of their own */
	LITE_A_QUEUED,        /* u64: operations, or slices, that wait now */
	LITE_A_IN_FLIGHT,     /* u64: slices that have waited, and are with the device now */
	LITE_A_SLICES,        /* u64: slices that have waited */
	LITE_A_BYTES,         /* u64: bytes in SLICES */
	LITE_A_PRIORITY,      /* u8: LITE_PRIORITY() of what a tenant opens; 0: the default */
	LITE_A_WAITED,        /* u64[24]: [i]: SLICES that waited from 2^(i-1) to 2^i us */
	LITE_A_TENANTS,       /* u8: enum lite_qos_tenants */
	LITE_A_CGROUP,        /* u64: id of a control group: inode number of its directory */
	LITE_A_TENANT_CGROUP, /* u64: as CGROUP */
	LITE_A_UNPINNED,      /* flag: LITE_REGISTER_UNPINNED is allowed */
	LITE_A_IDLE,          /* flag: in no cluster until it joins */

	__LITE_A_MAX,
};
#define LITE_A_MAX (__LITE_A_MAX - 1)

#endif /* _UAPI_LITE_NETLINK_H */
