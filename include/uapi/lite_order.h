/* SPDX-License-Identifier: GPL-2.0 WITH Linux-syscall-note */
/* LITE: ordering. Part of the ABI of /dev/liteN; see lite.h. */
#ifndef _UAPI_LITE_ORDER_H
#define _UAPI_LITE_ORDER_H

/*
 * An opcode of struct lite_op, beside those of enum lite_opcode: wait until
 * everything that has completed on this node is visible to the processors of
 * the nodes that hold LMR @lh, which read it in a mapping, in registered memory
 * or by operations; with @lh 0, of all nodes that are not down. Needs no right;
 * all other fields must be 0 (else EINVAL).
 * Documentation/interfaces/ordering.rst says when a fence is needed.
 *
 * In LITE_IOC_VECTOR, all entries before the fence are complete, and visible as
 * above, before any entry after it begins. If one of them fails, the fence and
 * all entries after it are not tried: ECANCELED. If the fence fails, those
 * after it are not.
 */
#define LITE_OP_FENCE 12

#endif /* _UAPI_LITE_ORDER_H */
