/* SPDX-License-Identifier: GPL-2.0 WITH Linux-syscall-note */
/*
 * LITE: priorities. Part of the ABI of /dev/liteN; see lite.h.
 */
#ifndef _UAPI_LITE_PRIORITY_H
#define _UAPI_LITE_PRIORITY_H

#include <linux/types.h>

/*
 * The order in which operations go to a peer, where the node schedules them
 * (litectl qos). A priority is 0, the default, or a class plus 1: class 0 is
 * the highest, 7 the lowest, and 4 the default. An operation has the priority
 * in lite_op.priority; if that is 0, and for calls and messages, that of the
 * open file counts. An open file begins with what the administrator has set for
 * the user or control group; LITE_IOC_PRIORITY changes it.
 */
#define LITE_PRIORITY_DEFAULT 0
#define LITE_PRIORITY(class) ((class) + 1)
#define LITE_PRIORITY_MAX 8

/*
 * LITE_IOC_PRIORITY: set the priority of calls of this open file, and of its
 * operations that have none of their own, from now on. 0: that of the caller's
 * user or control group. Requests and replies of more than 64 KB are moved in
 * the higher of two classes: of the call, and of the open file that serves it.
 *
 *   EINVAL  @priority is above LITE_PRIORITY_MAX
 *   EPERM   the class is above the user's ceiling, 4 unless the administrator
 *           has set another, and the caller lacks CAP_SYS_NICE
 */
struct lite_ioc_priority {
	__u32 size;
	__u32 flags;           /* 0 */
	__u32 priority;
	__u32 reserved;        /* 0 */
};

#define LITE_IOC_PRIORITY _IO(LITE_IOC_TYPE, 0x1b)

#endif /* _UAPI_LITE_PRIORITY_H */
