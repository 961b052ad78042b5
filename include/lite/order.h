/* SPDX-License-Identifier: MIT */
/*
 * liblite: order. The conventions of <lite/lite.h> apply.
 *
 *    lite_write(ctx, lh, payload, data, length);
 *    lite_fence(ctx, lh);
 *    lite_write(ctx, lh, flag, &one, sizeof(one));
 *
 * Who has mapped the LMR where it is, and sees the flag, sees the payload.
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
 * lite_fence - wait until what has completed is seen by processors
 * @ctx: context
 * @lh: a handle of the LMR that it is about; 0: all LMRs, on all nodes that are
 *    not down
 *
 * A write that has returned is seen by every later read from another node. Programs
 * on the node that holds the memory, which read it with their processor - through
 * lite_mmap(), in memory given to lite_register(), or by lite_read(), which copies
 * there - may see it later, and after one that was made later, unless this was
 * called between the two. Whatever any program on this machine has completed
 * before is covered. Costs a small read for each queue pair of each node.
 *
 * Return: 0, -EBADF, -EIDRM, -ESTALE, -EHOSTDOWN, -ETIMEDOUT, -EIO, -EINTR,
 * -ENOTCONN or -ENODEV.
 */
int lite_fence(struct lite_ctx* ctx, lite_lh_t lh) LITE_NOEXCEPT;

#pragma GCC visibility pop

#ifdef __cplusplus
}
#endif

#endif /* LITE_ORDER_H */
