/* SPDX-License-Identifier: MIT */
/*
 * liblite: a node's membership, for C programs.
 *
 * litectl(8) makes a node, with its secret. These functions make it join and leave a cluster, and
 * list the members. They need no context, as they talk to the module over generic netlink
 * (<uapi/lite_netlink.h>).
 */
#ifndef LITE_CLUSTER_H
#define LITE_CLUSTER_H

#include <lite/lite.h>

#ifdef __cplusplus
extern "C" {
#endif

#pragma GCC visibility push(default)

/* Flags of a member: the node that was asked; its cluster has no secret. */
#define LITE_MEMBER_SELF (1U << 0)
#define LITE_MEMBER_INSECURE (1U << 1)

/* Room for the text of an address, with its NUL. */
#define LITE_ADDRESS_SIZE 48

/*
 * struct lite_member - a member of the cluster, as one node sees it
 * @id: of the node, 1..65535; 0: the node is in no cluster
 * @state: LITE_NODE_UP, LITE_NODE_DOWN, ... (enum lite_node_state)
 * @flags: LITE_MEMBER_*
 * @port: where it listens
 * @incarnation: changes whenever the node starts, joins or leaves
 * @address: IPv4 or IPv6, numeric
 */
struct lite_member {
    uint32_t id;
    uint32_t state;
    uint32_t flags;
    uint32_t port;
    uint64_t incarnation;
    char address[LITE_ADDRESS_SIZE];
};

/*
 * lite_members - list the members of a node's cluster
 * @index: of the node, as for lite_open()
 * @members: set to the members in order of ids, the node itself included, without those that left;
 *    NULL if @max is 0
 * @max: room in @members
 * @count: set to the number of members, which may exceed @max
 *
 * Open to every user.
 *
 * Return: 0; -ENODEV (no such node, or the module is not loaded); -EINVAL (@index); -EPROTO
 * (malformed answer of the module); -EMFILE, -ENFILE.
 */
int lite_members(int index, struct lite_member* members, size_t max, size_t* count) LITE_NOEXCEPT;

/*
 * lite_join - bring a node into a cluster
 * @index: of the node, as for lite_open(); it must have no peers and no LMRs
 * @address: of any member, IPv4 or IPv6, numeric
 * @port: of that member; 0: LITE_DEFAULT_PORT
 * @timeout_ms: how long it may take until the node is a member
 *
 * Returns when the node is a member and has tried to connect to all others; with LITE_NOWAIT, when
 * the attempt has begun, which then has 15 s. The attempt continues if the caller is killed. In
 * lite_members() the node itself is LITE_NODE_JOINING until the attempt has ended. Stopping the
 * node ends it early. LITE_FOREVER does not wait for a member to be started at @address.
 *
 * Return: 0; -EPERM (the caller lacks CAP_NET_ADMIN); -ENODEV (no such node, the module is not
 * loaded, or the node was stopped meanwhile); -EINVAL (@index, @address or @timeout_ms, or the
 * address is the node's own); -EINPROGRESS (LITE_NOWAIT: the attempt has begun); -EADDRNOTAVAIL
 * (not the address of one node, or IPv4 mapped into IPv6); -EBUSY (the node has LMRs or peers, or
 * is already joining or leaving); -EKEYREJECTED (the cluster has another secret); -EEXIST (the id
 * that the node was started with is taken); -ECONNREFUSED (nothing listens there); -EHOSTUNREACH;
 * -EHOSTDOWN or -ECONNABORTED (the connection broke); -ETIMEDOUT; -ENOTCONN (the other side is in
 * no cluster); -ELOOP, -ENOSPC (no id is free); -EPROTONOSUPPORT (another version); -EALREADY
 * (another attempt has begun since, so the outcome of this one is unknown); -EPROTO; -EMFILE,
 * -ENFILE.
 */
int lite_join(int index, const char* address, uint16_t port, int timeout_ms) LITE_NOEXCEPT;

/*
 * lite_leave - take a node out of its cluster, in order
 * @index: of the node, as for lite_open()
 *
 * LMRs at home there are freed. The node itself stays, and may join again.
 *
 * Return: 0; -EPERM (the caller lacks CAP_NET_ADMIN); -ENODEV; -EINVAL (@index); -ENOTCONN (it is
 * in none); -EBUSY (it is already joining or leaving); -EPROTO; -EMFILE, -ENFILE.
 */
int lite_leave(int index) LITE_NOEXCEPT;

#pragma GCC visibility pop

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* LITE_CLUSTER_H */
