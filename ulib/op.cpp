// SPDX-License-Identifier: MIT
//
// Operations on LMRs: read, write and the atomics.

#include "context.hpp"

using lite::internal::as_u64;

namespace {

int transfer(lite_ctx* ctx, lite_opcode opcode, lite_lh_t lh, uint64_t offset, const void* buf,
             size_t length) noexcept {
    struct lite_op op = {};
    op.opcode = opcode;
    op.lh = lh;
    op.offset = offset;
    op.buf = as_u64(buf);
    op.length = length;
    return lite_op_submit(ctx, &op);
}

int atomic(lite_ctx* ctx, lite_opcode opcode, lite_lh_t lh, uint64_t offset, uint64_t operand,
           uint64_t swap, uint64_t* old) noexcept {
    struct lite_op op = {};
    op.opcode = opcode;
    op.lh = lh;
    op.offset = offset;
    op.length = sizeof(uint64_t);
    op.operand = operand;
    op.swap = swap;

    const int err = lite_op_submit(ctx, &op);
    if (!err && old)
        *old = op.result;
    return err;
}

}  // namespace

int lite_op_submit(struct lite_ctx* ctx, struct lite_op* op) noexcept {
    // A kernel that fails before it looks at the operation leaves it as it
    // is, and then nothing was transferred.
    op->result = 0;
    return lite::internal::control(ctx, LITE_IOC_OP, *op);
}

int lite_read(struct lite_ctx* ctx, lite_lh_t lh, uint64_t offset, void* buf,
              size_t length) noexcept {
    return transfer(ctx, LITE_OP_READ, lh, offset, buf, length);
}

int lite_write(struct lite_ctx* ctx, lite_lh_t lh, uint64_t offset, const void* buf,
               size_t length) noexcept {
    return transfer(ctx, LITE_OP_WRITE, lh, offset, buf, length);
}

int lite_fetch_add(struct lite_ctx* ctx, lite_lh_t lh, uint64_t offset, uint64_t add,
                   uint64_t* old) noexcept {
    return atomic(ctx, LITE_OP_FETCH_ADD, lh, offset, add, 0, old);
}

int lite_cmp_swap(struct lite_ctx* ctx, lite_lh_t lh, uint64_t offset, uint64_t expected,
                  uint64_t desired, uint64_t* old) noexcept {
    return atomic(ctx, LITE_OP_CMP_SWAP, lh, offset, expected, desired, old);
}
