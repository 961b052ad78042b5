/* SPDX-License-Identifier: GPL-2.0 WITH Linux-syscall-note */
/*
 * LITE: commands of io_uring; a part of the ABI of /dev/liteN (lite.h).
 *
 * Every ioctl of /dev/liteN can be given to io_uring as a command: opcode
 * IORING_OP_URING_CMD, the file in @fd, the LITE_IOC_* number in @cmd_op, and in
 * @cmd a struct lite_uring_cmd. The structure of the ioctl has to stay where it
 * is until the command is complete, and has its results then. @res of the
 * completion is 0, or the negative errno that the ioctl would have had.
 *
 * READ and WRITE of up to a page, FETCH_ADD and CMP_SWAP, all of them of bytes
 * in the memory of one other node, are carried out without a thread; RECV,
 * COLLECT and NEXT with LITE_RPC_NOWAIT, and RECV with LITE_RPC_REPLY_ONLY, by the
 * thread that submits them; all else by a worker of io_uring. Of these a process
 * has only so many (io_uring_register_iowq_max_workers(3), the bounded ones): who
 * has more commands waiting than workers waits for ever if the former wait for
 * the latter.
 *
 * DOC: errno values of commands, beside those of the ioctls
 *
 * ====================  ======================================================
 * ECANCELED             it was cancelled before it began
 * EINTR                 it was cancelled, or the process was stopped for a while,
 *                       or the thread that submitted it has exited: what has
 *                       become of it is not known, as when the caller of the
 *                       ioctl is killed
 * EHOSTDOWN, ETIMEDOUT  READ, WRITE: also, the connection broke. It has been
 *                       tried only once if a worker did not have it, as it has
 *                       with IOSQE_ASYNC
 * EOPNOTSUPP            a reserved member that is not 0; IORING_URING_CMD_FIXED;
 *                       IORING_SETUP_IOPOLL
 * ENOTTY                an unknown @cmd_op
 * ====================  ======================================================
 */
#ifndef _UAPI_LITE_URING_H
#define _UAPI_LITE_URING_H

#include <linux/types.h>

struct lite_uring_cmd {
	__aligned_u64 arg;      /* user address of what the ioctl takes */
	__aligned_u64 reserved; /* 0 */
};

#endif /* _UAPI_LITE_URING_H */
