// SPDX-License-Identifier: MIT
//
// Many operations in one call.

#include <lite/vector.h>

#include "context.hpp"

#include <cerrno>

int lite_vector(struct lite_ctx* ctx, struct lite_op* ops, size_t n) noexcept {
    if (n == 0 || n > LITE_VECTOR_MAX)
        return -EINVAL;
    for (size_t i = 0; i < n; i++)
        ops[i].size = sizeof(ops[i]);

    struct lite_ioc_vector arg = {};
    arg.ops = lite::internal::as_u64(ops);
    arg.n_ops = static_cast<uint32_t>(n);
    arg.op_size = sizeof(ops[0]);
    const int err = lite::internal::control(ctx, LITE_IOC_VECTOR, arg);
    if (!err)
        return static_cast<int>(arg.n_failed);
    for (size_t i = arg.n_done; i < n; i++) {
        ops[i].error = err;
        ops[i].result = 0;
    }
    return err;
}
