/* SPDX-License-Identifier: MIT */
/*
 * liblite: many operations in one call. The conventions of <lite/lite.h> apply.
 *
 *    struct lite_op ops[2] = {
 *        { .opcode = LITE_OP_WRITE, .lh = a, .offset = 64,
 *          .buf = (uintptr_t)value, .length = sizeof(value) },
 *        { .opcode = LITE_OP_FETCH_ADD, .lh = b, .length = 8, .operand = 1 },
 *    };
 *    int failed = lite_vector(ctx, ops, 2);
 */
#ifndef LITE_VECTOR_H
#define LITE_VECTOR_H

#include <lite/lite.h>
#include <uapi/lite_vector.h>

#ifdef __cplusplus
extern "C" {
#endif

#pragma GCC visibility push(default)

/*
 * lite_vector - execute many operations in parallel
 * @ops: operations, as for lite_op_submit(); @size need not be set. Sets @result of each as
 *    lite_op_submit() does, and @error to 0 or its negative errno; old values are ignored
 * @n: number of operations, 1..LITE_VECTOR_MAX
 *
 * The operations may be on any LMRs on any nodes. Their order is undefined, except around
 * LITE_OP_FENCE, so an operation that needs the result of another goes into a later call.
 * Operations of up to a page on other nodes' memory run in parallel, and profit most.
 *
 * After a failure each operation still has an outcome: those that were not tried have the error
 * that is returned. After -EFAULT some of these may have been executed.
 *
 * Return: the number of operations with an error; -EINVAL (@n is 0 or too large), -EFAULT.
 */
int lite_vector(struct lite_ctx* ctx, struct lite_op* ops, size_t n) LITE_NOEXCEPT;

#pragma GCC visibility pop

#ifdef __cplusplus
}
#endif

#endif /* LITE_VECTOR_H */
