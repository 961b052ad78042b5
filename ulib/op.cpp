// SPDX-License-Identifier: MIT
//
// Operations on LMRs: read, write, atomics and memory operations.

#include "context.hpp"

#include <lite/order.h>

using lite::internal::as_u64;

namespace {

int submit(lite_ctx* ctx, struct lite_op& op) noexcept {
    // A kernel that fails early leaves the result as it is: nothing was transferred.
    op.result = 0;
    return lite::internal::control(ctx, LITE_IOC_OP, op);
}

int transfer(lite_ctx* ctx, lite_opcode opcode, lite_lh_t lh, uint64_t offset, const void* buf,
             size_t length) noexcept {
    struct lite_op op = {};
    op.opcode = opcode;
    op.lh = lh;
    op.offset = offset;
    op.buf = as_u64(buf);
    op.length = length;
    return submit(ctx, op);
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

    const int err = submit(ctx, op);
    if (!err && old)
        *old = op.result;
    return err;
}

int memory_operation(lite_ctx* ctx, lite_opcode opcode, lite_lh_t lh, uint64_t offset,
                     uint64_t length, uint64_t operand, uint64_t swap, uint64_t* result) noexcept {
    struct lite_op op = {};
    op.opcode = opcode;
    op.lh = lh;
    op.offset = offset;
    op.length = length;
    op.operand = operand;
    op.swap = swap;

    const int err = submit(ctx, op);
    if (!err && result)
        *result = op.result;
    return err;
}

}  // namespace

int lite_op_submit(struct lite_ctx* ctx, struct lite_op* op) noexcept {
    // It may be left over from lite_vector().
    op->error = 0;
    return submit(ctx, *op);
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

int lite_swap(struct lite_ctx* ctx, lite_lh_t lh, uint64_t offset, uint64_t desired,
              uint64_t* old) noexcept {
    return atomic(ctx, LITE_OP_SWAP, lh, offset, desired, 0, old);
}

int lite_fetch_and(struct lite_ctx* ctx, lite_lh_t lh, uint64_t offset, uint64_t mask,
                   uint64_t* old) noexcept {
    return atomic(ctx, LITE_OP_FETCH_AND, lh, offset, mask, 0, old);
}

int lite_fetch_or(struct lite_ctx* ctx, lite_lh_t lh, uint64_t offset, uint64_t bits,
                  uint64_t* old) noexcept {
    return atomic(ctx, LITE_OP_FETCH_OR, lh, offset, bits, 0, old);
}

int lite_fence(struct lite_ctx* ctx, lite_lh_t lh) noexcept {
    return memory_operation(ctx, static_cast<lite_opcode>(LITE_OP_FENCE), lh, 0, 0, 0, 0, nullptr);
}

int lite_set_priority(struct lite_ctx* ctx, uint32_t priority) noexcept {
    struct lite_ioc_priority arg = {};
    arg.priority = priority;
    return lite::internal::control(ctx, LITE_IOC_PRIORITY, arg);
}

int lite_set(struct lite_ctx* ctx, lite_lh_t lh, uint64_t offset, uint64_t length,
             const void* pattern, size_t pattern_length) noexcept {
    if (pattern_length == 0 || pattern_length > sizeof(uint64_t))
        return -EINVAL;

    const auto* bytes = static_cast<const unsigned char*>(pattern);
    uint64_t word = 0;
    for (size_t i = pattern_length; i-- > 0;)
        word = word << 8 | bytes[i];
    return memory_operation(ctx, LITE_OP_SET, lh, offset, length, word, pattern_length, nullptr);
}

int lite_copy(struct lite_ctx* ctx, lite_lh_t to, uint64_t to_offset, lite_lh_t from,
              uint64_t from_offset, uint64_t length) noexcept {
    return memory_operation(ctx, LITE_OP_COPY, to, to_offset, length, from, from_offset, nullptr);
}

int lite_compare(struct lite_ctx* ctx, lite_lh_t lh, uint64_t offset, lite_lh_t other,
                 uint64_t other_offset, uint64_t length, uint64_t* equal) noexcept {
    return memory_operation(ctx, LITE_OP_COMPARE, lh, offset, length, other, other_offset, equal);
}

int lite_checksum(struct lite_ctx* ctx, lite_lh_t lh, uint64_t offset, uint64_t length,
                  uint32_t seed, uint32_t* crc) noexcept {
    uint64_t value = 0;
    const int err = memory_operation(ctx, LITE_OP_CHECKSUM, lh, offset, length, seed, 0, &value);
    if (!err)
        *crc = static_cast<uint32_t>(value);
    return err;
}
