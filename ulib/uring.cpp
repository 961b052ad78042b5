// SPDX-License-Identifier: MIT
//
// io_uring commands.

#include "context.hpp"

#include <lite/uring.h>

#include <linux/io_uring.h>

#include <cstring>

using lite::internal::as_u64;
using lite::internal::clamp_length;

namespace {

// Offset of a command's payload in an SQE; headers disagree on the member's name.
constexpr size_t payload_offset = 48;
static_assert(sizeof(struct io_uring_sqe) == 64);
static_assert(payload_offset + sizeof(lite_uring_cmd) == sizeof(struct io_uring_sqe));

void transfer(io_uring_sqe* sqe, lite_ctx* ctx, lite_op* op, lite_opcode opcode, lite_lh_t lh,
              uint64_t offset, const void* buf, size_t length) noexcept {
    *op = {};
    op->opcode = opcode;
    op->lh = lh;
    op->offset = offset;
    op->buf = as_u64(buf);
    op->length = length;
    lite_uring_op(sqe, ctx, op);
}

void atomic(io_uring_sqe* sqe, lite_ctx* ctx, lite_op* op, lite_opcode opcode, lite_lh_t lh,
            uint64_t offset, uint64_t operand, uint64_t swap) noexcept {
    *op = {};
    op->opcode = opcode;
    op->lh = lh;
    op->offset = offset;
    op->length = sizeof(uint64_t);
    op->operand = operand;
    op->swap = swap;
    lite_uring_op(sqe, ctx, op);
}

// The flag tells the kernel that the command needs no thread.
void set_timeout(int ms, int32_t& timeout, uint32_t& flags) noexcept {
    timeout = ms;
    if (ms == LITE_NOWAIT)
        flags |= LITE_RPC_NOWAIT;
}

template <typename Arg>
void submit(io_uring_sqe* sqe, lite_ctx* ctx, unsigned int command, Arg* arg) noexcept {
    arg->size = sizeof(*arg);
    lite_uring_command(sqe, ctx, command, arg);
}

}  // namespace

void lite_uring_command(struct io_uring_sqe* sqe, struct lite_ctx* ctx, unsigned int command,
                        void* arg) noexcept {
    const uint64_t user_data = sqe->user_data;
    const lite_uring_cmd payload = {.arg = as_u64(arg), .reserved = 0};

    *sqe = {};
    sqe->opcode = IORING_OP_URING_CMD;
    sqe->fd = lite_fd(ctx);
    sqe->cmd_op = command;
    sqe->user_data = user_data;
    std::memcpy(reinterpret_cast<char*>(sqe) + payload_offset, &payload, sizeof(payload));
}

void lite_uring_op(struct io_uring_sqe* sqe, struct lite_ctx* ctx, struct lite_op* op) noexcept {
    // As lite_op_submit(): both may be left over from earlier use.
    op->result = 0;
    op->error = 0;
    submit(sqe, ctx, LITE_IOC_OP, op);
}

void lite_uring_read(struct io_uring_sqe* sqe, struct lite_ctx* ctx, struct lite_op* op,
                     lite_lh_t lh, uint64_t offset, void* buf, size_t length) noexcept {
    transfer(sqe, ctx, op, LITE_OP_READ, lh, offset, buf, length);
}

void lite_uring_write(struct io_uring_sqe* sqe, struct lite_ctx* ctx, struct lite_op* op,
                      lite_lh_t lh, uint64_t offset, const void* buf, size_t length) noexcept {
    transfer(sqe, ctx, op, LITE_OP_WRITE, lh, offset, buf, length);
}

void lite_uring_fetch_add(struct io_uring_sqe* sqe, struct lite_ctx* ctx, struct lite_op* op,
                          lite_lh_t lh, uint64_t offset, uint64_t addend) noexcept {
    atomic(sqe, ctx, op, LITE_OP_FETCH_ADD, lh, offset, addend, 0);
}

void lite_uring_cmp_swap(struct io_uring_sqe* sqe, struct lite_ctx* ctx, struct lite_op* op,
                         lite_lh_t lh, uint64_t offset, uint64_t expected,
                         uint64_t desired) noexcept {
    atomic(sqe, ctx, op, LITE_OP_CMP_SWAP, lh, offset, expected, desired);
}

void lite_uring_call(struct io_uring_sqe* sqe, struct lite_ctx* ctx, struct lite_ioc_rpc_call* call,
                     uint32_t node, uint32_t function, const void* request, size_t length,
                     void* reply, size_t room, int timeout_ms) noexcept {
    *call = {};
    call->node = node;
    call->function = function;
    call->request = as_u64(request);
    call->request_len = clamp_length(length);
    call->reply = as_u64(reply);
    call->reply_room = clamp_length(room);
    set_timeout(timeout_ms, call->timeout_ms, call->flags);
    submit(sqe, ctx, LITE_IOC_RPC_CALL, call);
}

void lite_uring_recv(struct io_uring_sqe* sqe, struct lite_ctx* ctx, struct lite_ioc_rpc_recv* recv,
                     uint32_t function, void* buf, size_t size, int timeout_ms) noexcept {
    *recv = {};
    recv->function = function;
    recv->buf = as_u64(buf);
    recv->buf_len = clamp_length(size);
    set_timeout(timeout_ms, recv->timeout_ms, recv->flags);
    submit(sqe, ctx, LITE_IOC_RPC_RECV, recv);
}

void lite_uring_reply(struct io_uring_sqe* sqe, struct lite_ctx* ctx,
                      struct lite_ioc_rpc_recv* recv, uint64_t token, uint32_t status,
                      const void* reply, size_t length) noexcept {
    *recv = {};
    recv->flags = LITE_RPC_REPLY_ONLY;
    recv->token = token;
    recv->reply = as_u64(reply);
    recv->reply_len = clamp_length(length);
    recv->status = status;
    submit(sqe, ctx, LITE_IOC_RPC_RECV, recv);
}

void lite_uring_lock(struct io_uring_sqe* sqe, struct lite_ctx* ctx, struct lite_ioc_lock* lock,
                     lite_lh_t lh, uint64_t offset, uint64_t owner, uint32_t flags,
                     int timeout_ms) noexcept {
    *lock = {};
    lock->flags = flags;
    lock->lh = lh;
    lock->offset = offset;
    lock->owner = owner;
    lock->timeout_ms = timeout_ms;
    submit(sqe, ctx, LITE_IOC_LOCK, lock);
}

void lite_uring_unlock(struct io_uring_sqe* sqe, struct lite_ctx* ctx,
                       struct lite_ioc_unlock* unlock, lite_lh_t lh, uint64_t offset,
                       uint64_t owner) noexcept {
    *unlock = {};
    unlock->lh = lh;
    unlock->offset = offset;
    unlock->owner = owner;
    submit(sqe, ctx, LITE_IOC_UNLOCK, unlock);
}

void lite_uring_barrier(struct io_uring_sqe* sqe, struct lite_ctx* ctx,
                        struct lite_ioc_barrier* barrier, lite_lh_t lh, uint64_t offset, uint32_t n,
                        int timeout_ms) noexcept {
    *barrier = {};
    barrier->lh = lh;
    barrier->offset = offset;
    barrier->n = n;
    barrier->timeout_ms = timeout_ms;
    submit(sqe, ctx, LITE_IOC_BARRIER, barrier);
}

void lite_uring_unmapping(struct lite_ctx* ctx, lite_lh_t lh) noexcept {
    ctx->backing.closing(ctx, lh);
}

void lite_uring_unmapped(struct lite_ctx* ctx, lite_lh_t lh, int res) noexcept {
    if (!res)
        ctx->backing.closed(ctx, lh);
}

void lite_uring_freed(struct lite_ctx* ctx, lite_lh_t lh, int res) noexcept {
    // The library knows an unpinned LMR by one handle only; another one may have freed it.
    if ((!res || res == -EIDRM) && !ctx->backing.freed(ctx, lh))
        ctx->backing.some_freed(ctx);
}
