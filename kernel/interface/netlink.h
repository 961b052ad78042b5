/* SPDX-License-Identifier: GPL-2.0 */
/* What the handlers of generic netlink share: netlink.c */
#ifndef _LITE_NETLINK_H
#define _LITE_NETLINK_H

#include <net/genetlink.h>
#include <uapi/lite_netlink.h>

#include "node.h"

#define LITE_NO_NODE "there is no such node on this machine"

int lite_nl_say(struct netlink_ext_ack *extack, int err, const char *why);
u32 lite_get_u32(struct nlattr **attrs, int attr, u32 standard);
int lite_put_u64(struct sk_buff *skb, int attr, u64 value);
struct lite_node *lite_get_node(struct nlattr **attrs, struct netlink_ext_ack *extack);
void lite_put_node_ref(struct lite_node *node);
bool lite_dump(struct sk_buff *skb, struct netlink_callback *cb, u8 cmd,
	       int (*fill)(struct sk_buff *, struct lite_node *, void *),
	       struct lite_node *node, void *item);

/* netlink_qos.c */
int lite_nl_qos_set(struct sk_buff *skb, struct genl_info *info);
int lite_nl_qos_dump(struct sk_buff *skb, struct netlink_callback *cb);

#endif /* _LITE_NETLINK_H */
