/* SPDX-License-Identifier: GPL-2.0 WITH Linux-syscall-note */
/*
 * LITE: io_uring commands. Part of the ABI of /dev/liteN; see lite.h.
 *
 * Every ioctl of /dev/liteN can be submitted to io_uring as a command: opcode
 * IORING_OP_URING_CMD, the file in @fd, the LITE_IOC_* number in @cmd_op, and a
 * struct lite_uring_cmd in @cmd. The structure of the ioctl must stay in place
 * until the command completes, and then holds its results. @res of the
 * completion is 0, or the negative errno of the ioctl.
 *
 * READ and WRITE of up to a page, FETCH_ADD and CMP_SWAP mostly need no thread
 * if their bytes are in one piece of memory of one other node; READ and WRITE
 * of this node's memory are done at once. The submitting thread executes
 * COLLECT with LITE_RPC_NOWAIT, and RECV with LITE_RPC_NOWAIT or
 * LITE_RPC_REPLY_ONLY, but not RECV of a file that serves a function with
 * requests or replies that may be longer than LITE_RPC_BYTES_MAX. Everything
 * else runs in an io_uring worker. A process has a limited number of them
 * (io_uring_register_iowq_max_workers(3), the bounded ones): commands that
 * occupy all workers while they wait for commands queued behind them deadlock.
 *
 * DOC: errno values of commands, beside those of the ioctls
 *
 * ====================  ======================================================
 * ECANCELED             cancelled before it began
 * EINTR                 cancelled; or the process was stopped for a while, or
 *                       the submitting thread exited. The outcome is unknown,
 *                       as when the caller of the ioctl is killed
 * EHOSTDOWN, ETIMEDOUT  READ, WRITE: also, the connection broke. There is no
 *                       retry unless a worker executes the command (IOSQE_ASYNC
 *                       forces this)
 * EOPNOTSUPP            a non-zero reserved member; IORING_URING_CMD_FIXED;
 *                       IORING_SETUP_IOPOLL
 * ENOTTY                an unknown @cmd_op
 * ====================  ======================================================
 */
#ifndef _UAPI_LITE_URING_H
#define _UAPI_LITE_URING_H

#include <linux/types.h>

struct lite_uring_cmd {
	__aligned_u64 arg;      /* user address of the ioctl's structure */
	__aligned_u64 reserved; /* 0 */
};

#endif /* _UAPI_LITE_URING_H */
