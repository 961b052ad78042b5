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
 * lite_vector - carry out many operations at the same time
 * @ctx: context
 * @ops: operations, as for lite_op_submit(); @size need not be set. Of each,
 *    @result is set as there, and @error to 0 or to the negative errno that
 *    lite_op_submit() would have failed with; whatever they were before is of no
 *    account, here and there
 * @n: how many, 1..LITE_VECTOR_MAX
 *
 * On any LMRs, on any nodes, in any order: what one operation needs of another
 * goes into a later call. Those of up to a page on other nodes' memory are under
 * way together, and are what this call makes fast.
 *
 * After a failure each operation has an outcome all the same: those that
 * were not tried have the error that is returned. After -EFAULT it may be that
 * they were.
 *
 * Return: the number of operations with an error, 0 if all is well; -EINVAL (@n
 * is 0 or too large), -EFAULT.
 */
int lite_vector(struct lite_ctx* ctx, struct lite_op* ops, size_t n) LITE_NOEXCEPT;

#pragma GCC visibility pop

#ifdef __cplusplus
}
#endif

#endif /* LITE_VECTOR_H */
