/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Differences between the kernels that LITE builds for: code is written to the
 * newest API, and what older kernels lack is made up for here and nowhere else.
 */
#ifndef _LITE_COMPAT_H
#define _LITE_COMPAT_H

#include <linux/version.h>
#include <net/genetlink.h>

/* Attributes of a dump request: moved into struct genl_info in 6.6. */
static inline struct nlattr **lite_dump_attrs(struct netlink_callback *cb)
{
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 6, 0)
	return genl_info_dump(cb)->attrs;
#else
	return genl_dumpit_info(cb)->attrs;
#endif
}

#endif /* _LITE_COMPAT_H */
