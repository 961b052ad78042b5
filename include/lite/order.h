/* SPDX-License-Identifier: MIT */
/*
 * liblite: ordering. The conventions of <lite/lite.h> apply.
 *
 *    lite_write(ctx, lh, payload, data, length);
 *    lite_fence(ctx, lh);
 *    lite_write(ctx, lh, flag, &one, sizeof(one));
 *
 * A program on the LMR's node that sees the flag in a mapping also sees the payload.
 */
#ifndef LITE_ORDER_H
#define LITE_ORDER_H

#include <lite/lite.h>
#include <uapi/lite_order.h>

#ifdef __cplusplus
extern "C" {
#endif

#pragma GCC visibility push(default)

/*
 * lite_fence - make completed operations visible to processors
 * @lh: handle of the LMR in question; 0: all LMRs, on all nodes that are not down
 *
 * Every read from another node sees a write that has returned. Programs on the node that holds the
 * memory read it with their processor: through lite_mmap(), in memory given to lite_register(), or
 * with lite_read(), which copies there. They may see the write late, and even after a later write,
 * unless lite_fence() was called between the two. It covers what any program on this machine has
 * completed. Costs a small read for each queue pair of each node.
 *
 * Return: 0, -EBADF, -EIDRM, -ESTALE, -EHOSTDOWN, -ETIMEDOUT, -EIO, -EINTR, -ENOTCONN or -ENODEV.
 */
int lite_fence(struct lite_ctx* ctx, lite_lh_t lh) LITE_NOEXCEPT;

/*
 * lite_set_priority - set the priority of a context's operations
 * @priority: LITE_PRIORITY(class), class 0 (highest) to 7, or LITE_PRIORITY_DEFAULT
 *
 * Applies to operations that begin from now on and have no priority of their own (struct lite_op).
 * Has an effect only if the node schedules what goes to other nodes: Documentation/scheduling.rst.
 *
 * Return: 0; -EINVAL (no such priority); -EPERM (the class is above the user's ceiling, and the
 * caller lacks CAP_SYS_NICE); -ENOTTY (older kernel module); -ENODEV.
 */
int lite_set_priority(struct lite_ctx* ctx, uint32_t priority) LITE_NOEXCEPT;

#pragma GCC visibility pop

#ifdef __cplusplus
}
#endif

#endif /* LITE_ORDER_H */
