/* SPDX-License-Identifier: GPL-2.0 WITH Linux-syscall-note */
/*
 * LITE: many operations in one call. Part of the ABI of /dev/liteN; see lite.h.
 */
#ifndef _UAPI_LITE_VECTOR_H
#define _UAPI_LITE_VECTOR_H

#include <linux/types.h>

#define LITE_VECTOR_MAX 1024U

/*
 * LITE_IOC_VECTOR: execute @n_ops operations, on any LMRs on any nodes, many of
 * them in parallel. Each behaves as a LITE_IOC_OP of its own.
 *
 * The order is undefined, except around LITE_OP_FENCE (lite_order.h), so an
 * operation that needs the result of another goes into a later call. Each entry
 * of the array gets its own @error, 0 or the errno of LITE_IOC_OP, and @result.
 * Old values of @error are ignored, so an array can be submitted again
 * unchanged.
 *
 * The call succeeds when every operation has an outcome, good or bad: @n_failed
 * counts those with an @error. Otherwise only the first @n_done operations have
 * an outcome, and the others were not started:
 *
 *   EFAULT  the array is not readable or writable. The kernel accesses it in
 *           batches; if it fails to write outcomes, those operations may have
 *           been executed
 *   E2BIG   @op_size is larger than this kernel's, and the excess of an entry
 *           is not zero
 *   EINTR   a signal that kills the caller
 *   ENODEV  the node was stopped
 *
 * With EINTR and ENODEV the last of the @n_done operations may have this error,
 * because they were not tried.
 *
 * @op_size is the size of every entry. @size of an entry must equal it, else
 * that one operation fails with EINVAL.
 */
struct lite_ioc_vector {
	__u32 size;
	__u32 flags;           /* 0 */
	__aligned_u64 ops;     /* user pointer to struct lite_op[n_ops] */
	__u32 n_ops;           /* 1..LITE_VECTOR_MAX */
	__u32 op_size;         /* sizeof(struct lite_op) */
	__u32 n_done;          /* out: leading operations with an outcome */
	__u32 n_failed;        /* out: of these, those with an error */
};

#define LITE_IOC_VECTOR _IO(LITE_IOC_TYPE, 0x1a)

#endif /* _UAPI_LITE_VECTOR_H */
