/* SPDX-License-Identifier: MIT */
/*
 * liblite: operations as commands of io_uring. For programs that use liburing, or a ring of their
 * own; the library needs neither.
 *
 *    struct lite_op op;
 *    struct io_uring_sqe* sqe = io_uring_get_sqe(&ring);
 *
 *    lite_uring_read(sqe, ctx, &op, lh, 0, buf, 64);
 *    io_uring_sqe_set_data(sqe, &op);
 *    io_uring_submit(&ring);
 *    ...                           // cqe->res is 0 or a negative errno
 *
 * Each function fills in an SQE, keeping only its @user_data, and a structure that belongs to the
 * command. The structure and all buffers must stay until the completion, also if the command is
 * cancelled. Set flags and personality of the SQE afterwards. @res is what the function of the same
 * name would have returned; see <uapi/lite_uring.h> for further errors, and for the commands that
 * need a kernel thread. Commands in flight at the same time are executed in any order.
 *
 * Each RECV or LOCK that waits occupies a kernel thread of the process: with many of these, raise
 * their limit (io_uring_register_iowq_max_workers(3), the first number). A server needs no such
 * thread if it polls lite_fd() with io_uring_prep_poll_multishot(3) and receives with LITE_NOWAIT.
 * Neither Linux 6.1 nor 6.12 has multishot commands.
 */
#ifndef LITE_URING_H
#define LITE_URING_H

#include <stddef.h>
#include <stdint.h>

#include <lite/lite.h>
#include <uapi/lite_sync.h>
#include <uapi/lite_uring.h>

#ifdef __cplusplus
extern "C" {
#endif

#pragma GCC visibility push(default)

struct io_uring_sqe;

/*
 * lite_uring_command - any ioctl of /dev/liteN
 * @sqe: of a ring without IORING_SETUP_IOPOLL
 * @ctx: context, open until the completion
 * @command: LITE_IOC_*
 * @arg: its structure, filled in
 */
void lite_uring_command(struct io_uring_sqe* sqe, struct lite_ctx* ctx, unsigned int command,
                        void* arg) LITE_NOEXCEPT;

/*
 * lite_uring_op - an operation on an LMR
 * @sqe: see lite_uring_command()
 * @op: filled in, except @size; @error is set to 0 as by lite_op_submit(); @result is set by the
 *    completion
 */
void lite_uring_op(struct io_uring_sqe* sqe, struct lite_ctx* ctx,
                   struct lite_op* op) LITE_NOEXCEPT;

/*
 * lite_uring_read, _write, _fetch_add, _cmp_swap - as lite_read(), ...
 * @op: of the command; the completion sets @result to the bytes transferred, or the previous value
 */
void lite_uring_read(struct io_uring_sqe* sqe, struct lite_ctx* ctx, struct lite_op* op,
                     lite_lh_t lh, uint64_t offset, void* buf, size_t length) LITE_NOEXCEPT;
void lite_uring_write(struct io_uring_sqe* sqe, struct lite_ctx* ctx, struct lite_op* op,
                      lite_lh_t lh, uint64_t offset, const void* buf, size_t length) LITE_NOEXCEPT;
void lite_uring_fetch_add(struct io_uring_sqe* sqe, struct lite_ctx* ctx, struct lite_op* op,
                          lite_lh_t lh, uint64_t offset, uint64_t addend) LITE_NOEXCEPT;
void lite_uring_cmp_swap(struct io_uring_sqe* sqe, struct lite_ctx* ctx, struct lite_op* op,
                         lite_lh_t lh, uint64_t offset, uint64_t expected,
                         uint64_t desired) LITE_NOEXCEPT;

/*
 * lite_uring_unmapping, lite_uring_unmapped, lite_uring_freed - tell the library of handles' ends
 * @lh: handle; 0: the LMR was freed by name
 * @res: of the completion
 *
 * For programs that submit UNMAP and FREE by lite_uring_command() and use LITE_ALLOC_UNPINNED,
 * which takes memory of this process: these calls tell the library when it can unmap the memory.
 * Call lite_uring_unmapping() before UNMAP is submitted and lite_uring_unmapped() after its
 * completion; lite_uring_freed() after the completion of FREE. lite_unmap() and lite_free() do the
 * same by themselves. They may sleep, as lite_map(), but only for LMRs with such memory.
 */
void lite_uring_unmapping(struct lite_ctx* ctx, lite_lh_t lh) LITE_NOEXCEPT;
void lite_uring_unmapped(struct lite_ctx* ctx, lite_lh_t lh, int res) LITE_NOEXCEPT;
void lite_uring_freed(struct lite_ctx* ctx, lite_lh_t lh, int res) LITE_NOEXCEPT;

/*
 * lite_uring_call - as lite_rpc_call()
 * @call: of the command; the completion sets @reply_len and @status
 */
void lite_uring_call(struct io_uring_sqe* sqe, struct lite_ctx* ctx, struct lite_ioc_rpc_call* call,
                     uint32_t node, uint32_t function, const void* request, size_t length,
                     void* reply, size_t room, int timeout_ms) LITE_NOEXCEPT;

/*
 * lite_uring_recv - as lite_rpc_recv()
 * @recv: of the command; the completion sets @token, @function, @length, @node, @uid, @gid,
 *    @req_flags and @reply_room
 */
void lite_uring_recv(struct io_uring_sqe* sqe, struct lite_ctx* ctx, struct lite_ioc_rpc_recv* recv,
                     uint32_t function, void* buf, size_t size, int timeout_ms) LITE_NOEXCEPT;

/* lite_uring_reply - as lite_rpc_reply() */
void lite_uring_reply(struct io_uring_sqe* sqe, struct lite_ctx* ctx,
                      struct lite_ioc_rpc_recv* recv, uint64_t token, uint32_t status,
                      const void* reply, size_t length) LITE_NOEXCEPT;

/* lite_uring_lock - as lite_lock() */
void lite_uring_lock(struct io_uring_sqe* sqe, struct lite_ctx* ctx, struct lite_ioc_lock* lock,
                     lite_lh_t lh, uint64_t offset, uint64_t owner, uint32_t flags,
                     int timeout_ms) LITE_NOEXCEPT;

/* lite_uring_unlock - as lite_unlock() */
void lite_uring_unlock(struct io_uring_sqe* sqe, struct lite_ctx* ctx,
                       struct lite_ioc_unlock* unlock, lite_lh_t lh, uint64_t offset,
                       uint64_t owner) LITE_NOEXCEPT;

/* lite_uring_barrier - as lite_barrier() */
void lite_uring_barrier(struct io_uring_sqe* sqe, struct lite_ctx* ctx,
                        struct lite_ioc_barrier* barrier, lite_lh_t lh, uint64_t offset, uint32_t n,
                        int timeout_ms) LITE_NOEXCEPT;

#pragma GCC visibility pop

#ifdef __cplusplus
}
#endif

#endif /* LITE_URING_H */
