/* SPDX-License-Identifier: GPL-2.0 WITH Linux-syscall-note */
/*
 * LITE: order. Part of the ABI of /dev/liteN; see lite.h.
 */
#ifndef _UAPI_LITE_ORDER_H
#define _UAPI_LITE_ORDER_H

/*
 * An opcode of struct lite_op, beside those of enum lite_opcode: waits until
 * whatever has completed before, on this node, can be seen by the processors of the
 * nodes that hold the LMR @lh: in a mapping, in registered memory, by operations of
 * theirs. @lh 0: by those of all nodes that are not down. Needs no right; all other
 * fields are 0 (else EINVAL). Documentation/ordering.rst tells who needs it.
 *
 * In LITE_IOC_VECTOR what is before it in the array is over, and seen as said, before
 * anything behind it begins. If something before it has failed, or the fence itself,
 * then it and all behind it are not tried: ECANCELED.
 */
#define LITE_OP_FENCE 12

#endif /* _UAPI_LITE_ORDER_H */
