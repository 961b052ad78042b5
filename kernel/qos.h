/* SPDX-License-Identifier: GPL-2.0 */
/*
 * How a node schedules what goes to its peers: a mode, the kind of tenants, and rules of single
 * tenants (weight, ceiling, priority). fabric/turn.c applies this.
 */
#ifndef _LITE_QOS_H
#define _LITE_QOS_H

#include <linux/mutex.h>
#include <linux/xarray.h>

#include "core/sched.h"

/* Maximum number of rules of a node. */
#define LITE_QOS_RULES_MAX 256

/* A tenant is a uid in the initial user namespace, or this bit and a control group's id. */
#define LITE_QOS_CGROUP BIT_ULL(63)
/* Root, and what runs in the root control group. */
#define LITE_QOS_ROOT 0

struct lite_qos_rule {
	u64 tenant;
	u32 weight; /* 1..LITE_SCHED_WEIGHT_MAX */
	u8 ceiling; /* the highest class that it may use */
	u8 prio;    /* of files that it opens: 0, or a class plus 1 */
	struct rcu_head rcu;
};

struct lite_qos {
	struct mutex lock;   /* serialises changes; the rest is read without it */
	struct xarray rules; /* struct lite_qos_rule, by tenant */
	u32 n;               /* number of rules */
	enum lite_sched_mode mode; /* lite_fabric_schedule() applies a new one */
	bool by_cgroup;      /* tenants are control groups */
};

void lite_qos_init(struct lite_qos *qos);
void lite_qos_exit(struct lite_qos *qos);
int lite_qos_set(struct lite_qos *qos, const struct lite_qos_rule *rule);
int lite_qos_reset(struct lite_qos *qos, u64 tenant);
void lite_qos_get(struct lite_qos *qos, u64 tenant, struct lite_qos_rule *out);
bool lite_qos_next(struct lite_qos *qos, u64 from, struct lite_qos_rule *out);
int lite_qos_set_by_cgroup(struct lite_qos *qos, bool by_cgroup);
u64 lite_qos_tenant(struct lite_qos *qos);
u32 lite_qos_weight(struct lite_qos *qos, u64 tenant);
u8 lite_qos_prio(struct lite_qos *qos);
u8 lite_qos_ceiling(struct lite_qos *qos);

static inline enum lite_sched_mode lite_qos_mode(const struct lite_qos *qos)
{
	return READ_ONCE(qos->mode);
}

static inline bool lite_qos_by_cgroup(const struct lite_qos *qos)
{
	return READ_ONCE(qos->by_cgroup);
}

#endif /* _LITE_QOS_H */
