// SPDX-License-Identifier: GPL-2.0
/* Administration of the order on the wire: QOS_SET and QOS_GET of uapi/lite_netlink.h. */
#include "compat.h"
#include "netlink.h"

static int lite_nl_qos_rule(struct lite_qos *qos, struct nlattr **attrs)
{
	struct nlattr *cgroup = attrs[LITE_A_CGROUP];
	u64 tenant = cgroup ? LITE_QOS_CGROUP | nla_get_u64(cgroup) :
			      nla_get_u32(attrs[LITE_A_UID]);
	struct lite_qos_rule rule;

	if (!attrs[LITE_A_WEIGHT] && !attrs[LITE_A_CEILING] && !attrs[LITE_A_PRIORITY])
		return lite_qos_reset(qos, tenant);
	lite_qos_get(qos, tenant, &rule);
	rule.weight = lite_get_u32(attrs, LITE_A_WEIGHT, rule.weight);
	if (attrs[LITE_A_CEILING])
		rule.ceiling = nla_get_u8(attrs[LITE_A_CEILING]);
	if (attrs[LITE_A_PRIORITY])
		rule.prio = nla_get_u8(attrs[LITE_A_PRIORITY]);
	return lite_qos_set(qos, &rule);
}

static int lite_nl_qos_change(struct lite_qos *qos, struct nlattr **attrs)
{
	if (attrs[LITE_A_TENANTS])
		return lite_qos_set_by_cgroup(qos, nla_get_u8(attrs[LITE_A_TENANTS]) ==
						   LITE_QOS_BY_CGROUP);
	if (!attrs[LITE_A_QOS_MODE])
		return lite_nl_qos_rule(qos, attrs);
	WRITE_ONCE(qos->mode, nla_get_u8(attrs[LITE_A_QOS_MODE]));
	return 0;
}

static const char *lite_nl_qos_why(int err)
{
	switch (err) {
	case -ENOENT:
		return "this tenant has no rule";
	case -ENOSPC:
		return "there are too many rules";
	case -EOPNOTSUPP:
		return "this kernel has no control groups";
	case -ENOMEM:
		return "without memory it may not hold for all connections";
	default:
		return NULL;
	}
}

/* Context: may sleep. Return: 0, or an errno of LITE_CMD_QOS_SET. */
int lite_nl_qos_set(struct sk_buff *skb, struct genl_info *info)
{
	struct nlattr **attrs = info->attrs;
	struct lite_node *node;
	int err;

	if (!!attrs[LITE_A_QOS_MODE] + !!attrs[LITE_A_TENANTS] + !!attrs[LITE_A_UID] +
	    !!attrs[LITE_A_CGROUP] != 1)
		return lite_nl_say(info->extack, -EINVAL,
				   "a mode, the kind of tenants or a tenant is needed");
	if (!attrs[LITE_A_UID] && !attrs[LITE_A_CGROUP] &&
	    (attrs[LITE_A_WEIGHT] || attrs[LITE_A_CEILING] || attrs[LITE_A_PRIORITY]))
		return lite_nl_say(info->extack, -EINVAL, "a rule needs its tenant");
	node = lite_get_node(attrs, info->extack);
	if (!node)
		return -ENODEV;
	mutex_lock(&node->qos.lock);
	err = lite_nl_qos_change(&node->qos, attrs);
	mutex_unlock(&node->qos.lock);
	if (!err)
		err = lite_fabric_schedule(&node->fabric);
	lite_put_node_ref(node);
	return lite_nl_say(info->extack, err, lite_nl_qos_why(err));
}

static int lite_put_qos_mode(struct sk_buff *skb, struct lite_node *node, void *item)
{
	return nla_put_u8(skb, LITE_A_QOS_MODE, lite_qos_mode(&node->qos)) ?:
	       nla_put_u8(skb, LITE_A_TENANTS, lite_qos_by_cgroup(&node->qos) ?
				LITE_QOS_BY_CGROUP : LITE_QOS_BY_UID);
}

static int lite_put_tenant(struct sk_buff *skb, u64 tenant, int uid_attr, int cgroup_attr)
{
	if (tenant & LITE_QOS_CGROUP)
		return lite_put_u64(skb, cgroup_attr, tenant & ~LITE_QOS_CGROUP);
	return nla_put_u32(skb, uid_attr, tenant);
}

static int lite_put_qos_rule(struct sk_buff *skb, struct lite_node *node, void *item)
{
	const struct lite_qos_rule *rule = item;

	return lite_put_tenant(skb, rule->tenant, LITE_A_UID, LITE_A_CGROUP) ?:
	       nla_put_u32(skb, LITE_A_WEIGHT, rule->weight) ?:
	       nla_put_u8(skb, LITE_A_CEILING, rule->ceiling) ?:
	       nla_put_u8(skb, LITE_A_PRIORITY, rule->prio);
}

static int lite_put_turn_count(struct sk_buff *skb, struct lite_node *node, void *item)
{
	const struct lite_turn_count *count = item;
	const struct lite_sched_stats *sum = &count->sum;
	int err = count->class >= 0 ? nla_put_u8(skb, LITE_A_CLASS, count->class) :
				      lite_put_tenant(skb, count->tenant, LITE_A_TENANT,
						      LITE_A_TENANT_CGROUP);

	return err ?:
	       lite_put_u64(skb, LITE_A_QUEUED, sum->queued) ?:
	       lite_put_u64(skb, LITE_A_IN_FLIGHT, sum->in_flight) ?:
	       lite_put_u64(skb, LITE_A_SLICES, sum->slices) ?:
	       lite_put_u64(skb, LITE_A_BYTES, sum->bytes) ?:
	       nla_put(skb, LITE_A_WAITED, sizeof(sum->waited), sum->waited);
}

/* cb->args: [0] what is dumped: mode, rules, classes, tenants; [1] the next of it */
int lite_nl_qos_dump(struct sk_buff *skb, struct netlink_callback *cb)
{
	struct lite_node *node = lite_get_node(genl_info_dump(cb)->attrs, cb->extack);
	struct lite_turn_count count = {};
	struct lite_qos_rule rule = {};

	if (!node)
		return -ENODEV;
	while (cb->args[0] < 4) {
		int (*fill)(struct sk_buff *, struct lite_node *, void *) = lite_put_turn_count;
		u64 from = cb->args[1];
		void *item = &count;
		bool more = false;

		switch (cb->args[0]) {
		case 0:
			fill = lite_put_qos_mode;
			break;
		case 1:
			more = lite_qos_next(&node->qos, from, &rule);
			fill = lite_put_qos_rule;
			item = &rule;
			from = rule.tenant;
			break;
		case 2:
			more = lite_turns_count_class(&node->fabric, from, &count);
			break;
		default:
			more = lite_turns_count_tenant(&node->fabric, from, &count);
			from = count.tenant;
		}
		if ((more || !cb->args[0]) &&
		    !lite_dump(skb, cb, LITE_CMD_QOS_GET, fill, node, item))
			break;
		cond_resched();
		cb->args[0] += !more;
		cb->args[1] = more ? from + 1 : 0;
	}
	lite_put_node_ref(node);
	return skb->len;
}
