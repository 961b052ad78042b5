// SPDX-License-Identifier: GPL-2.0
#include <linux/cgroup.h>
#include <linux/cred.h>
#include <linux/slab.h>

#include "qos.h"

void lite_qos_init(struct lite_qos *qos)
{
	*qos = (struct lite_qos){ .mode = LITE_SCHED_NONE };
	mutex_init(&qos->lock);
	xa_init(&qos->rules);
}

void lite_qos_exit(struct lite_qos *qos)
{
	struct lite_qos_rule *rule;
	unsigned long tenant;

	xa_for_each(&qos->rules, tenant, rule)
		kfree(rule);
	xa_destroy(&qos->rules);
}

/*
 * Set the rule of a tenant; its values are valid. The caller holds the lock. May sleep. Return: 0;
 * -ENOMEM; -ENOSPC: there are LITE_QOS_RULES_MAX already.
 */
int lite_qos_set(struct lite_qos *qos, const struct lite_qos_rule *rule)
{
	struct lite_qos_rule *old, *new;

	lockdep_assert_held(&qos->lock);
	if (qos->n == LITE_QOS_RULES_MAX && !xa_load(&qos->rules, rule->tenant))
		return -ENOSPC;
	new = kmemdup(rule, sizeof(*rule), GFP_KERNEL);
	if (!new)
		return -ENOMEM;
	old = xa_store(&qos->rules, rule->tenant, new, GFP_KERNEL);
	if (xa_is_err(old)) {
		kfree(new);
		return xa_err(old);
	}
	if (old)
		kfree_rcu(old, rcu);
	else
		qos->n++;
	return 0;
}

/* Remove a tenant's rule. The caller holds the lock. May sleep. Return: 0; -ENOENT: none. */
int lite_qos_reset(struct lite_qos *qos, u64 tenant)
{
	struct lite_qos_rule *rule;

	lockdep_assert_held(&qos->lock);
	rule = xa_erase(&qos->rules, tenant);
	if (!rule)
		return -ENOENT;
	qos->n--;
	kfree_rcu(rule, rcu);
	return 0;
}

/* Copy the first rule of @from or a higher tenant. Any context. Return: false: there is none. */
bool lite_qos_next(struct lite_qos *qos, u64 from, struct lite_qos_rule *out)
{
	const struct lite_qos_rule *rule;
	unsigned long at = from;

	rcu_read_lock();
	rule = xa_find(&qos->rules, &at, ULONG_MAX, XA_PRESENT);
	if (rule)
		*out = *rule;
	rcu_read_unlock();
	return rule;
}

/* Copy the rule of a tenant, or the default if it has none. Any context. */
void lite_qos_get(struct lite_qos *qos, u64 tenant, struct lite_qos_rule *out)
{
	const struct lite_qos_rule *rule;

	rcu_read_lock();
	rule = xa_load(&qos->rules, tenant);
	if (rule)
		*out = *rule;
	else
		*out = (struct lite_qos_rule){
			.tenant = tenant,
			.weight = LITE_SCHED_WEIGHT_DEFAULT,
			.ceiling = LITE_SCHED_CLASS_DEFAULT,
		};
	rcu_read_unlock();
}

/* Make control groups, or users, the tenants. Return: 0; -EOPNOTSUPP: without CONFIG_CGROUPS. */
int lite_qos_set_by_cgroup(struct lite_qos *qos, bool by_cgroup)
{
	if (by_cgroup && !IS_ENABLED(CONFIG_CGROUPS))
		return -EOPNOTSUPP;
	WRITE_ONCE(qos->by_cgroup, by_cgroup);
	return 0;
}

#ifdef CONFIG_CGROUPS
/*
 * The nearest control group of the caller that has a rule, or else the one at the top of the
 * hierarchy: a user does not become several tenants by making control groups below its own.
 */
static u64 lite_qos_cgroup(struct lite_qos *qos)
{
	struct cgroup *cgrp, *parent;
	u64 tenant = LITE_QOS_ROOT;

	rcu_read_lock();
	for (cgrp = task_dfl_cgroup(current); (parent = cgroup_parent(cgrp)); cgrp = parent) {
		tenant = LITE_QOS_CGROUP | cgroup_id(cgrp);
		if (xa_load(&qos->rules, tenant))
			break;
	}
	rcu_read_unlock();
	return tenant;
}
#else
static u64 lite_qos_cgroup(struct lite_qos *qos)
{
	return LITE_QOS_ROOT;
}
#endif

/* The caller's tenant. Process context. */
u64 lite_qos_tenant(struct lite_qos *qos)
{
	if (lite_qos_by_cgroup(qos))
		return lite_qos_cgroup(qos);
	return from_kuid(&init_user_ns, current_uid());
}

u32 lite_qos_weight(struct lite_qos *qos, u64 tenant)
{
	struct lite_qos_rule rule;

	lite_qos_get(qos, tenant, &rule);
	return rule.weight;
}

/*
 * The rule that applies to the caller. Processes in the root control group share root's tenant, but
 * not its ceiling and priority.
 */
static void lite_qos_mine(struct lite_qos *qos, struct lite_qos_rule *rule)
{
	u64 tenant = lite_qos_tenant(qos);

	lite_qos_get(qos, tenant, rule);
	if (tenant == LITE_QOS_ROOT && !uid_eq(current_uid(), GLOBAL_ROOT_UID)) {
		rule->ceiling = LITE_SCHED_CLASS_DEFAULT;
		rule->prio = 0;
	}
}

/* The priority of what the caller opens: not above its ceiling. Process context. */
u8 lite_qos_prio(struct lite_qos *qos)
{
	struct lite_qos_rule rule;
	u8 class;

	lite_qos_mine(qos, &rule);
	class = rule.prio ? rule.prio - 1 : LITE_SCHED_CLASS_DEFAULT;
	return class < rule.ceiling ? rule.ceiling + 1 : rule.prio;
}

/* The highest class that the caller may use without a capability. Process context. */
u8 lite_qos_ceiling(struct lite_qos *qos)
{
	struct lite_qos_rule rule;

	lite_qos_mine(qos, &rule);
	return rule.ceiling;
}
