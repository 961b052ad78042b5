/* SPDX-License-Identifier: MIT */
/*
 * liblite: a node's membership, for C programs.
 *
 * A node is made, with its secret, by litectl(8). These functions bring it into a
 * cluster and out of it, and list the members. They need no context, and talk to
 * the module by generic netlink (<uapi/lite_netlink.h>).
 */
#ifndef LITE_CLUSTER_H
#define LITE_CLUSTER_H

#include <lite/lite.h>

#ifdef __cplusplus
extern "C" {
#endif

#pragma GCC visibility push(default)

/* Of a member: it is the node that was asked; its cluster has no secret. */
#define LITE_MEMBER_SELF (1U << 0)
#define LITE_MEMBER_INSECURE (1U << 1)

/* Room for the text of an address, with its NUL. */
#define LITE_ADDRESS_SIZE 48

/*
 * struct lite_member - a member of the cluster, as one node sees it
 * @id: of the node, 1..65535; 0: of a node that is in no cluster
 * @state: LITE_NODE_UP, LITE_NODE_DOWN, ... (enum lite_node_state)
 * @flags: LITE_MEMBER_*
 * @port: where it listens
 * @incarnation: of its present life
 * @address: IPv4 or IPv6, in numbers
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
 * lite_members - list the members of the cluster that a node is in
 * @index: of the node, as for lite_open()
 * @members: set to them, in order of ids, the node itself included; those that
 *    left are not listed; NULL if @max is 0
 * @max: at most so many
 * @count: set to how many there are, which may be more than @max
 *
 * Everybody may ask.
 *
 * Return: 0; -ENODEV (no such node, or the module is not loaded); -EINVAL (@index);
 * -EPROTO (the module's answer makes no sense); -EMFILE, -ENFILE.
 */
int lite_members(int index, struct lite_member* members, size_t max, size_t* count) LITE_NOEXCEPT;

/*
 * lite_join - bring a node into a cluster
 * @index: of the node, as for lite_open(); it is in no cluster with others, and
 *    has no LMRs
 * @address: of any member, IPv4 or IPv6, in numbers
 * @port: of that; 0: LITE_DEFAULT_PORT
 * @timeout_ms: for getting in, 10 to 3600000, or LITE_TIMEOUT_DEFAULT: 15000
 *
 * Returns when the node is a member and has tried to connect to all others. If the
 * caller is killed the attempt goes on; lite_members() shows what became of it.
 *
 * Return: 0; -EPERM (the caller lacks CAP_NET_ADMIN); -ENODEV (no such node, the
 * module is not loaded, or the node was stopped meanwhile); -EINVAL (@index or
 * @address, or the address is the node's own); -ERANGE (@timeout_ms);
 * -EADDRNOTAVAIL (not the address of one node); -EBUSY (the node has LMRs or
 * peers, or joins or leaves already); -EKEYREJECTED (the cluster has another secret);
 * -EEXIST (the id that the node was started with is taken); -ESTALE (the cluster
 * knows a later life of the node); -ECONNREFUSED (nobody listens there);
 * -EHOSTUNREACH; -EHOSTDOWN; -ETIMEDOUT; -ENOTCONN (the other side is in no cluster);
 * -ELOOP, -ENOSPC (no id is free); -EPROTONOSUPPORT (another version); -EALREADY
 * (another attempt has begun since, so it is not known how this one ended); -EPROTO.
 */
int lite_join(int index, const char* address, uint16_t port, int timeout_ms) LITE_NOEXCEPT;

/*
 * lite_leave - take a node out of its cluster, in order
 * @index: of the node, as for lite_open()
 *
 * LMRs that are at home there are freed. The node stays, and may join again.
 *
 * Return: 0; -EPERM (the caller lacks CAP_NET_ADMIN); -ENODEV; -EINVAL (@index);
 * -ENOTCONN (it is in none); -EBUSY (it joins or leaves already); -EPROTO.
 */
int lite_leave(int index) LITE_NOEXCEPT;

#pragma GCC visibility pop

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* LITE_CLUSTER_H */
