/* SPDX-License-Identifier: GPL-2.0 WITH Linux-syscall-note */
/*
 * LITE: many operations in one call. Part of the ABI of /dev/liteN; see lite.h.
 */
#ifndef _UAPI_LITE_VECTOR_H
#define _UAPI_LITE_VECTOR_H

#include <linux/types.h>

/* The most operations of one call. */
#define LITE_VECTOR_MAX 1024U

/*
 * LITE_IOC_VECTOR: carry out @n_ops operations, on any LMRs on any nodes, as if
 * each was a LITE_IOC_OP of its own, many of them at the same time.
 *
 * They are carried out in any order: what one needs of another goes into a later
 * call. Each has an outcome of its own, in its entry of the array: @error is 0 or
 * the errno that LITE_IOC_OP had failed with, and @result is as there. Whatever
 * @error was before is of no account, so an array can be used again as it is.
 *
 * The call succeeds when every operation has an outcome, whether good or bad:
 * @n_failed tells of how many @error is not 0. It fails, with an outcome for
 * the first @n_done operations, and nothing done of the others, when
 *
 *   the array cannot be read, or cannot be written (EFAULT), or @op_size is
 *     larger than this kernel's and something is in what it does not know
 *     (E2BIG); it looks at some operations at a time;
 *   a signal came that kills the caller (EINTR), or the node was stopped
 *     (ENODEV); the last of these @n_done may have just this error, because they
 *     were not tried.
 *
 * @op_size is for all of the array; @size of each operation must be the same
 * (else EINVAL for that one). After an EFAULT that came up only when the outcome
 * was to be told, the operations that it is missing of may have been done.
 */
struct lite_ioc_vector {
	__u32 size;
	__u32 flags;           /* 0 */
	__aligned_u64 ops;     /* user pointer to struct lite_op[n_ops] */
	__u32 n_ops;           /* 1..LITE_VECTOR_MAX */
	__u32 op_size;         /* sizeof(struct lite_op) */
	__u32 n_done;          /* out: leading operations that have an outcome */
	__u32 n_failed;        /* out: of these, those with an error */
};

#define LITE_IOC_VECTOR _IO(LITE_IOC_TYPE, 0x1a)

#endif /* _UAPI_LITE_VECTOR_H */
