// SPDX-License-Identifier: GPL-2.0
/*
 * Administration: the generic netlink family "lite" (uapi/lite_netlink.h).
 *
 * Commands run in parallel (parallel_ops): starting a node must not hold up other netlink commands.
 * JOIN, LEAVE and STOP, which may wait for other machines, only begin here (membership.c, node.c).
 * Secrets are never sent out; a cluster secret that comes in is wiped after use.
 */
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/security.h>
#include <net/ipv6.h>

#include "compat.h"
#include "netlink.h"

static struct genl_family lite_family;

static struct netlink_range_validation lite_cgroup_ids = { .min = 2, .max = S64_MAX - 1 };

static const struct nla_policy lite_policy[LITE_A_MAX + 1] = {
	[LITE_A_INDEX] = { .type = NLA_U32 },
	[LITE_A_DEV] = { .type = NLA_NUL_STRING, .len = IB_DEVICE_NAME_MAX - 1 },
	[LITE_A_NODE_ID] = { .type = NLA_U16 },
	[LITE_A_ADDR] = { .type = NLA_BINARY, .len = 16 },
	[LITE_A_PORT] = { .type = NLA_U16 },
	[LITE_A_SECRET] = { .type = NLA_BINARY, .len = LITE_SECRET_MAX },
	[LITE_A_NUM_QPS] = NLA_POLICY_RANGE(NLA_U8, 1, LITE_QPS_MAX),
	[LITE_A_MEM_LIMIT] = { .type = NLA_U64 },
	[LITE_A_UID_LIMIT] = { .type = NLA_U64 },
	[LITE_A_HANDLE_LIMIT] = NLA_POLICY_MIN(NLA_U32, 1),
	[LITE_A_HEARTBEAT_MS] = { .type = NLA_U32 },
	[LITE_A_DEAD_MS] = { .type = NLA_U32 },
	[LITE_A_OP_TIMEOUT_MS] = { .type = NLA_U32 },
	[LITE_A_TIMEOUT_MS] = { .type = NLA_S32 },
	[LITE_A_ROOT_SQUASH] = { .type = NLA_FLAG },
	[LITE_A_UNPINNED] = { .type = NLA_FLAG },
	[LITE_A_IDLE] = { .type = NLA_FLAG },
	[LITE_A_INSECURE] = { .type = NLA_FLAG },
	[LITE_A_ORPHAN_MS] = { .type = NLA_U32 },
	[LITE_A_MODE] = NLA_POLICY_MASK(NLA_U32, 0666),
	[LITE_A_QOS_MODE] = NLA_POLICY_MAX(NLA_U8, LITE_QOS_MAX),
	[LITE_A_UID] = { .type = NLA_U32 },
	[LITE_A_WEIGHT] = NLA_POLICY_RANGE(NLA_U32, 1, LITE_SCHED_WEIGHT_MAX),
	[LITE_A_CEILING] = NLA_POLICY_MAX(NLA_U8, LITE_SCHED_CLASSES - 1),
	[LITE_A_PRIORITY] = NLA_POLICY_MAX(NLA_U8, LITE_SCHED_CLASSES),
	[LITE_A_TENANTS] = NLA_POLICY_MAX(NLA_U8, LITE_QOS_BY_CGROUP),
	[LITE_A_CGROUP] = NLA_POLICY_FULL_RANGE(NLA_U64, &lite_cgroup_ids),
};

/* Tell the caller why; @why may be NULL. Return: @err. */
int lite_nl_say(struct netlink_ext_ack *extack, int err, const char *why)
{
	/* The ack keeps the pointer: constant texts only. */
	if (err && why && extack)
		extack->_msg = why;
	return err;
}

u32 lite_get_u32(struct nlattr **attrs, int attr, u32 standard)
{
	return attrs[attr] ? nla_get_u32(attrs[attr]) : standard;
}

static u64 lite_get_u64(struct nlattr **attrs, int attr, u64 standard)
{
	return attrs[attr] ? nla_get_u64(attrs[attr]) : standard;
}

static int lite_get_addr(struct genl_info *info, struct lite_wire_addr *addr)
{
	struct nlattr *a = info->attrs[LITE_A_ADDR];
	u16 port = LITE_DEFAULT_PORT;
	struct in6_addr ip;
	__be32 ip4;
	bool bad;

	if (!a || (nla_len(a) != 4 && nla_len(a) != 16))
		return lite_nl_say(info->extack, -EINVAL, "an address of 4 or 16 bytes is needed");
	if (info->attrs[LITE_A_PORT])
		port = nla_get_u16(info->attrs[LITE_A_PORT]);
	if (!port)
		return lite_nl_say(info->extack, -EINVAL, "port 0 is no port");
	if (nla_len(a) == 4) {
		ip4 = nla_get_in_addr(a);
		bad = ipv4_is_zeronet(ip4) || ipv4_is_multicast(ip4) || ipv4_is_lbcast(ip4);
		ipv6_addr_set_v4mapped(ip4, &ip);
	} else {
		ip = nla_get_in6_addr(a);
		bad = ipv6_addr_any(&ip) || ipv6_addr_is_multicast(&ip) || ipv6_addr_v4mapped(&ip);
	}
	*addr = (struct lite_wire_addr){ .port = cpu_to_le16(port) };
	memcpy(addr->ip, &ip, sizeof(ip));
	return lite_nl_say(info->extack, bad ? -EADDRNOTAVAIL : 0, "not the address of one node");
}

static int lite_get_ms(struct genl_info *info, int attr, u32 standard, unsigned long *jiffies_out)
{
	u32 ms = lite_get_u32(info->attrs, attr, standard);

	if (ms < 10 || ms > 3600000)
		return lite_nl_say(info->extack, -ERANGE, "a time is out of range (10 ms to 1 h)");
	*jiffies_out = msecs_to_jiffies(ms);
	return 0;
}

static int lite_get_secret(struct genl_info *info, struct lite_fabric_params *p)
{
	struct nlattr *secret = info->attrs[LITE_A_SECRET];
	struct nlattr *insecure = info->attrs[LITE_A_INSECURE];

	if (!secret)
		return lite_nl_say(info->extack, insecure ? 0 : -ENOKEY,
				   "a cluster secret is missing");
	p->secret = nla_data(secret);
	p->secret_len = nla_len(secret);
	if (!p->secret_len)
		return lite_nl_say(info->extack, -EINVAL, "an empty secret is none");
	return lite_nl_say(info->extack, insecure ? -EINVAL : 0,
			   "a node with a secret is not insecure");
}

static int lite_get_params(struct genl_info *info, struct lite_node_params *p)
{
	struct nlattr **a = info->attrs;
	int err;

	memset(p, 0, sizeof(*p));
	/* First, so that the caller wipes the secret whatever else is wrong. */
	err = lite_get_secret(info, &p->fabric);
	if (err)
		return err;
	p->index = lite_get_u32(a, LITE_A_INDEX, -1);
	if (a[LITE_A_INDEX] && p->index < 0)
		return -EINVAL;
	if (a[LITE_A_DEV])
		nla_strscpy(p->fabric.dev, a[LITE_A_DEV], sizeof(p->fabric.dev));
	err = lite_get_addr(info, &p->fabric.addr) ?:
	      lite_get_ms(info, LITE_A_HEARTBEAT_MS, 1000, &p->cluster.heartbeat) ?:
	      lite_get_ms(info, LITE_A_DEAD_MS, 5000, &p->cluster.dead) ?:
	      lite_get_ms(info, LITE_A_OP_TIMEOUT_MS, 10000, &p->fabric.op_timeout) ?:
	      lite_get_ms(info, LITE_A_ORPHAN_MS, 600000, &p->memory.orphan);
	if (err)
		return err;
	if (p->cluster.dead <= p->cluster.heartbeat)
		return lite_nl_say(info->extack, -EINVAL,
				   "a peer would be dead before its heart beats");
	p->fabric.dead = p->cluster.dead;
	p->fabric.nqps = a[LITE_A_NUM_QPS] ? nla_get_u8(a[LITE_A_NUM_QPS]) : 2;
	if (a[LITE_A_NODE_ID])
		p->cluster.node = nla_get_u16(a[LITE_A_NODE_ID]);
	p->cluster.idle = a[LITE_A_IDLE];
	p->memory.mem_limit =
		lite_get_u64(a, LITE_A_MEM_LIMIT, (u64)totalram_pages() * PAGE_SIZE / 2);
	p->memory.uid_limit = lite_get_u64(a, LITE_A_UID_LIMIT, p->memory.mem_limit / 4);
	p->memory.handle_limit = lite_get_u32(a, LITE_A_HANDLE_LIMIT, 1048576);
	p->memory.root_squash = a[LITE_A_ROOT_SQUASH];
	p->memory.unpinned = a[LITE_A_UNPINNED];
	p->mode = lite_get_u32(a, LITE_A_MODE, 0660);
	return 0;
}

int lite_put_u64(struct sk_buff *skb, int attr, u64 value)
{
	return nla_put_u64_64bit(skb, attr, value, LITE_A_PAD);
}

static int lite_put_ms(struct sk_buff *skb, int attr, unsigned long time)
{
	return nla_put_u32(skb, attr, jiffies_to_msecs(time));
}

static int lite_put_addr(struct sk_buff *skb, const struct lite_wire_addr *addr)
{
	struct in6_addr ip;

	memcpy(&ip, addr->ip, sizeof(ip));
	return nla_put_u16(skb, LITE_A_PORT, le16_to_cpu(addr->port)) ?:
	       (ipv6_addr_v4mapped(&ip) ? nla_put_in_addr(skb, LITE_A_ADDR, ip.s6_addr32[3]) :
					  nla_put_in6_addr(skb, LITE_A_ADDR, &ip));
}

static int lite_put_insecure(struct sk_buff *skb, const struct lite_fabric *fab)
{
	return fab->auth.insecure ? nla_put_flag(skb, LITE_A_INSECURE) : 0;
}

/* The number of the last attempt to join, and its result if it has ended. */
static int lite_put_join(struct sk_buff *skb, struct lite_node *node)
{
	struct lite_node_join *join = &node->join;
	int err = 0;

	spin_lock(&join->lock);
	if (join->number)
		err = nla_put_u32(skb, LITE_A_JOIN, join->number);
	if (!err && join->number && !join->running)
		err = nla_put_u32(skb, LITE_A_JOIN_ERROR, -join->err) ?:
		      (join->why ? nla_put_string(skb, LITE_A_JOIN_WHY, join->why) : 0);
	spin_unlock(&join->lock);
	return err;
}

/* A sum of per-CPU counters that change meanwhile may be below 0. */
static int lite_put_count(struct sk_buff *skb, int attr, struct lite_node *node, enum lite_stat of)
{
	return nla_put_u32(skb, attr, max_t(s64, lite_stat_sum(node->stats, of), 0));
}

static int lite_put_id(struct sk_buff *skb, struct lite_node *node, void *item)
{
	return nla_put_u32(skb, LITE_A_INDEX, node->index) ?:
	       nla_put_u16(skb, LITE_A_NODE_ID, lite_cluster_id(&node->cluster));
}

static int lite_put_node(struct sk_buff *skb, struct lite_node *node, void *item)
{
	struct lite_cluster *cl = &node->cluster;
	struct lite_memory *mem = &node->memory;

	return lite_put_id(skb, node, NULL) ?:
	       nla_put_string(skb, LITE_A_DEV, dev_name(&node->fabric.dev->dev)) ?:
	       nla_put_u8(skb, LITE_A_STATE, READ_ONCE(cl->state)) ?:
	       lite_put_u64(skb, LITE_A_INCARNATION, node->fabric.self.incarnation) ?:
	       lite_put_addr(skb, &node->fabric.addr) ?:
	       nla_put_u8(skb, LITE_A_NUM_QPS, node->fabric.nqps) ?:
	       lite_put_u64(skb, LITE_A_MEM_LIMIT, mem->limit.all) ?:
	       lite_put_u64(skb, LITE_A_MEM_USED, lite_memory_used(mem)) ?:
	       lite_put_u64(skb, LITE_A_UID_LIMIT, mem->limit.each) ?:
	       nla_put_u32(skb, LITE_A_HANDLE_LIMIT, mem->handle_limit) ?:
	       (mem->root_squash ? nla_put_flag(skb, LITE_A_ROOT_SQUASH) : 0) ?:
	       (mem->may_unpin ? nla_put_flag(skb, LITE_A_UNPINNED) : 0) ?:
	       lite_put_insecure(skb, &node->fabric) ?:
	       lite_put_join(skb, node) ?:
	       lite_put_ms(skb, LITE_A_HEARTBEAT_MS, cl->heartbeat) ?:
	       lite_put_ms(skb, LITE_A_DEAD_MS, cl->dead) ?:
	       lite_put_ms(skb, LITE_A_OP_TIMEOUT_MS, node->fabric.op_timeout) ?:
	       lite_put_ms(skb, LITE_A_ORPHAN_MS, mem->orphan) ?:
	       lite_put_count(skb, LITE_A_LMRS, node, LITE_STAT_LMRS) ?:
	       lite_put_count(skb, LITE_A_PEERS, node, LITE_STAT_PEERS);
}

/* Reply with the message that @fill makes. @join: number of an attempt to join, or 0. */
static int lite_answer(struct genl_info *info, struct lite_node *node,
		       int (*fill)(struct sk_buff *, struct lite_node *, void *), u32 join)
{
	struct sk_buff *skb = genlmsg_new(NLMSG_GOODSIZE, GFP_KERNEL);
	void *hdr;

	if (!skb)
		return -ENOMEM;
	hdr = genlmsg_put_reply(skb, info, &lite_family, 0, info->genlhdr->cmd);
	if (!hdr || fill(skb, node, NULL) || (join && nla_put_u32(skb, LITE_A_JOIN, join))) {
		nlmsg_free(skb);
		return -EMSGSIZE;
	}
	genlmsg_end(skb, hdr);
	return genlmsg_reply(skb, info);
}

/* Get the node that a command names, and enter it. */
struct lite_node *lite_get_node(struct nlattr **attrs, struct netlink_ext_ack *extack)
{
	struct lite_node *node = lite_node_find(lite_get_u32(attrs, LITE_A_INDEX, 0));

	if (node && lite_node_enter(node))
		return node;
	if (node)
		lite_node_put(node);
	lite_nl_say(extack, -ENODEV, LITE_NO_NODE);
	return NULL;
}

void lite_put_node_ref(struct lite_node *node)
{
	lite_node_exit(node);
	lite_node_put(node);
}

/*
 * A node's key gives all members, and all that have the secret, access to all memory
 * (fabric/device.c): require what /dev/mem requires.
 */
static int lite_may_start(struct sk_buff *skb, struct genl_info *info)
{
	if (!netlink_capable(skb, CAP_SYS_RAWIO))
		return lite_nl_say(info->extack, -EPERM,
				   "peers reach all memory: needs CAP_SYS_RAWIO");
	return lite_nl_say(info->extack, security_locked_down(LOCKDOWN_DEV_MEM),
			   "peers reach all memory: the kernel is locked down");
}

static int lite_nl_start(struct sk_buff *skb, struct genl_info *info)
{
	struct lite_node_params params;
	struct lite_node *node;
	const char *why = NULL;
	int err;

	err = lite_get_params(info, &params);
	if (!err)
		err = lite_may_start(skb, info);
	if (!err)
		err = lite_node_start(&params, &node, &why);
	if (params.fabric.secret)
		memzero_explicit((u8 *)params.fabric.secret, params.fabric.secret_len);
	if (err)
		return lite_nl_say(info->extack, err, why);
	err = lite_answer(info, node, lite_put_id, 0);
	lite_node_put(node);
	return err;
}

static int lite_nl_stop(struct sk_buff *skb, struct genl_info *info)
{
	return lite_nl_say(info->extack, lite_node_stop(lite_get_u32(info->attrs, LITE_A_INDEX, 0)),
			   LITE_NO_NODE);
}

static int lite_nl_join(struct sk_buff *skb, struct genl_info *info)
{
	struct lite_wire_addr addr;
	struct lite_node *node;
	unsigned long timeout;
	const char *why = NULL;
	u32 number;
	int err;
	s32 ms;

	err = lite_get_addr(info, &addr);
	if (err)
		return err;
	ms = lite_get_u32(info->attrs, LITE_A_TIMEOUT_MS, LITE_TIMEOUT_DEFAULT);
	if (!lite_timeout_ok(ms))
		return lite_nl_say(info->extack, -EINVAL, "the time-out is out of range");
	/* The command does not wait anyway: LITE_NOWAIT gives the attempt the default time. */
	timeout = lite_timeout_jiffies(ms ?: LITE_TIMEOUT_DEFAULT, LITE_JOIN_TIMEOUT_DEFAULT);
	node = lite_get_node(info->attrs, info->extack);
	if (!node)
		return -ENODEV;
	err = lite_node_join(node, &addr, timeout, &number, &why);
	if (!err)
		err = lite_answer(info, node, lite_put_id, number);
	lite_put_node_ref(node);
	return lite_nl_say(info->extack, err, why);
}

static int lite_nl_leave(struct sk_buff *skb, struct genl_info *info)
{
	struct lite_node *node = lite_get_node(info->attrs, info->extack);
	int err;

	if (!node)
		return -ENODEV;
	err = lite_node_leave(node);
	lite_put_node_ref(node);
	return lite_nl_say(info->extack, err, err == -ENOTCONN ?
			   "the node is in no cluster" :
			   "the node is joining or leaving");
}

static int lite_nl_get(struct sk_buff *skb, struct genl_info *info)
{
	struct lite_node *node = lite_get_node(info->attrs, info->extack);
	int err;

	if (!node) {
		/* A program that waits for the node's end must see that it is not over. */
		node = lite_node_find(lite_get_u32(info->attrs, LITE_A_INDEX, 0));
		if (!node)
			return -ENODEV;
		lite_node_put(node);
		return lite_nl_say(info->extack, -EBUSY, "the node is being started or stopped");
	}
	err = lite_answer(info, node, lite_put_node, 0);
	lite_put_node_ref(node);
	return err;
}

/* Append a message, made by @fill of @item, to a dump. Return: was there room for it? */
bool lite_dump(struct sk_buff *skb, struct netlink_callback *cb, u8 cmd,
	       int (*fill)(struct sk_buff *, struct lite_node *, void *),
	       struct lite_node *node, void *item)
{
	void *hdr = genlmsg_put(skb, NETLINK_CB(cb->skb).portid, cb->nlh->nlmsg_seq, &lite_family,
				NLM_F_MULTI, cmd);

	if (!hdr)
		return false;
	if (fill(skb, node, item)) {
		genlmsg_cancel(skb, hdr);
		return false;
	}
	genlmsg_end(skb, hdr);
	return true;
}

/* cb->args[0]: index of the last node dumped, plus 1. */
static int lite_nl_get_dump(struct sk_buff *skb, struct netlink_callback *cb)
{
	struct lite_node *node;
	bool room = true;

	while (room && (node = lite_node_next(cb->args[0]))) {
		u32 index = node->index;

		if (lite_node_enter(node)) {
			room = lite_dump(skb, cb, LITE_CMD_NODE_GET, lite_put_node, node, NULL);
			lite_node_exit(node);
		}
		lite_node_put(node);
		if (room)
			cb->args[0] = index + 1;
	}
	return skb->len;
}

/* @item: peer, or NULL for the node itself */
static int lite_put_peer(struct sk_buff *skb, struct lite_node *node, void *item)
{
	struct lite_cluster *cl = &node->cluster;
	const struct lite_peer_seen *peer = item;
	u8 state = LITE_NODE_DOWN;

	if (!peer)
		state = READ_ONCE(cl->state);
	else if (peer->up)
		state = LITE_NODE_UP;
	else if (peer->life != LITE_PEER_MEMBER)
		state = LITE_NODE_JOINING;
	return nla_put_u16(skb, LITE_A_NODE_ID, peer ? peer->id : lite_cluster_id(cl)) ?:
	       nla_put_u8(skb, LITE_A_STATE, state) ?:
	       lite_put_u64(skb, LITE_A_INCARNATION,
			    peer ? peer->incarnation : cl->fab->self.incarnation) ?:
	       lite_put_addr(skb, peer ? &peer->addr : &cl->fab->addr) ?:
	       /* The members of a cluster have the same secret, or none. */
	       lite_put_insecure(skb, cl->fab) ?:
	       (peer ? 0 : nla_put_flag(skb, LITE_A_SELF));
}

/* Dump in order of ids. cb->args[0]: the last id dumped, plus 1. */
static int lite_nl_peers_dump(struct sk_buff *skb, struct netlink_callback *cb)
{
	struct lite_node *node = lite_get_node(genl_info_dump(cb)->attrs, cb->extack);
	struct lite_peer_seen seen, *peer;
	struct lite_cluster *cl;
	bool room = true;
	u32 self, id;

	if (!node)
		return -ENODEV;
	cl = &node->cluster;
	self = lite_cluster_id(cl);
	while (room) {
		peer = lite_peer_see(cl, cb->args[0], &seen) ? &seen : NULL;
		if (self >= cb->args[0] && (!peer || self < peer->id))
			peer = NULL;
		else if (!peer)
			break;
		id = peer ? peer->id : self;
		if (!peer || peer->life != LITE_PEER_LEFT)
			room = lite_dump(skb, cb, LITE_CMD_PEER_GET, lite_put_peer, node, peer);
		if (room)
			cb->args[0] = id + 1;
	}
	lite_put_node_ref(node);
	return skb->len;
}

static const char *const lite_stat_names[] = {
#define STAT(id, name) name,
#include "stats_list.h"
#undef STAT
};

/* @item: number of the counter */
static int lite_put_stat(struct sk_buff *skb, struct lite_node *node, void *item)
{
	const int *i = item;

	return nla_put_string(skb, LITE_A_STAT_NAME, lite_stat_names[*i]) ?:
	       lite_put_u64(skb, LITE_A_STAT_VALUE, lite_stat_sum(node->stats, *i));
}

/* cb->args[0]: the next counter. */
static int lite_nl_stats_dump(struct sk_buff *skb, struct netlink_callback *cb)
{
	struct lite_node *node = lite_get_node(genl_info_dump(cb)->attrs, cb->extack);
	int i;

	if (!node)
		return -ENODEV;
	for (i = cb->args[0]; i < LITE_STAT_MAX; i++) {
		if (!lite_dump(skb, cb, LITE_CMD_STATS_GET, lite_put_stat, node, &i))
			break;
	}
	cb->args[0] = i;
	lite_put_node_ref(node);
	return skb->len;
}

static const struct genl_multicast_group lite_groups[] = {
	{ .name = LITE_GENL_MCGRP_EVENTS },
};

/*
 * Send the listeners an event that @node has noticed: the new @state of node @id (0: @node itself).
 * @cause: why that node's session ended, with @figure, the number that decided it; LITE_END_NONE:
 * another event. May sleep.
 */
void lite_netlink_event(struct lite_node *node, u32 id, enum lite_node_state state,
			enum lite_end_cause cause, u64 figure)
{
	/* A fencing thread (PF_MEMALLOC) must not wait for memory, nor use reserves for this. */
	gfp_t gfp = current->flags & PF_MEMALLOC ? GFP_NOWAIT | __GFP_NOMEMALLOC | __GFP_NOWARN :
						   GFP_KERNEL;
	struct sk_buff *skb;
	void *hdr;

	if (!genl_has_listeners(&lite_family, &init_net, 0))
		return;
	skb = genlmsg_new(NLMSG_GOODSIZE, gfp);
	if (!skb)
		return;
	hdr = genlmsg_put(skb, 0, 0, &lite_family, 0, LITE_CMD_EVENT);
	if (!hdr || nla_put_u32(skb, LITE_A_INDEX, node->index) ||
	    nla_put_u16(skb, LITE_A_NODE_ID, id) || nla_put_u8(skb, LITE_A_STATE, state) ||
	    (cause &&
	     (nla_put_u8(skb, LITE_A_CAUSE, cause) || lite_put_u64(skb, LITE_A_FIGURE, figure)))) {
		nlmsg_free(skb);
		return;
	}
	genlmsg_end(skb, hdr);
	genlmsg_multicast(&lite_family, skb, 0, 0, gfp);
}

static const struct genl_ops lite_ops[] = {
	{ .cmd = LITE_CMD_NODE_START, .flags = GENL_ADMIN_PERM, .doit = lite_nl_start },
	{ .cmd = LITE_CMD_NODE_STOP, .flags = GENL_ADMIN_PERM, .doit = lite_nl_stop },
	{ .cmd = LITE_CMD_NODE_JOIN, .flags = GENL_ADMIN_PERM, .doit = lite_nl_join },
	{ .cmd = LITE_CMD_NODE_LEAVE, .flags = GENL_ADMIN_PERM, .doit = lite_nl_leave },
	{ .cmd = LITE_CMD_NODE_GET, .doit = lite_nl_get, .dumpit = lite_nl_get_dump },
	{ .cmd = LITE_CMD_PEER_GET, .dumpit = lite_nl_peers_dump },
	{ .cmd = LITE_CMD_STATS_GET, .dumpit = lite_nl_stats_dump },
	{ .cmd = LITE_CMD_QOS_SET, .flags = GENL_ADMIN_PERM, .doit = lite_nl_qos_set },
	{ .cmd = LITE_CMD_QOS_GET, .dumpit = lite_nl_qos_dump },
};

static struct genl_family lite_family __ro_after_init = {
	.name = LITE_GENL_NAME,
	.version = LITE_GENL_VERSION,
	.maxattr = LITE_A_MAX,
	.policy = lite_policy,
	.parallel_ops = true,
	.module = THIS_MODULE,
	.ops = lite_ops,
	.n_ops = ARRAY_SIZE(lite_ops),
	.mcgrps = lite_groups,
	.n_mcgrps = ARRAY_SIZE(lite_groups),
};

/* Register the family. Context: may sleep. Return: 0 or a negative errno. */
int __init lite_netlink_init(void)
{
	return genl_register_family(&lite_family);
}

/* Unregister the family and wait for commands. Context: may sleep. */
void lite_netlink_exit(void)
{
	genl_unregister_family(&lite_family);
}
