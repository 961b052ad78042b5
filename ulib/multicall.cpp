// SPDX-License-Identifier: MIT
//
// One call to several nodes.

#include "context.hpp"

#include <cerrno>

using lite::internal::as_u64;
using lite::internal::control;

namespace {

// Lengths cross the ABI as 32 bits; what does not fit is too long anyway.
uint32_t clamp_length(size_t n) noexcept {
    return n > UINT32_MAX ? UINT32_MAX : static_cast<uint32_t>(n);
}

}  // namespace

int lite_rpc_multicall(struct lite_ctx* ctx, uint32_t function, const void* request, size_t length,
                       struct lite_rpc_leg* legs, size_t n_legs, size_t quorum,
                       int timeout_ms) noexcept {
    struct lite_ioc_rpc_leg kernel_legs[LITE_RPC_LEGS_MAX] = {};
    if (n_legs > LITE_RPC_LEGS_MAX || quorum > n_legs)
        return -EINVAL;
    for (size_t i = 0; i < n_legs; i++) {
        kernel_legs[i].node = legs[i].node;
        kernel_legs[i].function = legs[i].function;
        kernel_legs[i].reply = as_u64(legs[i].reply);
        kernel_legs[i].reply_room = clamp_length(legs[i].room);
    }
    struct lite_ioc_rpc_multicall arg = {};
    arg.function = function;
    arg.n_legs = static_cast<uint32_t>(n_legs);
    arg.legs = as_u64(kernel_legs);
    arg.leg_size = sizeof(kernel_legs[0]);
    arg.request = as_u64(request);
    arg.request_len = clamp_length(length);
    arg.quorum = static_cast<uint32_t>(quorum);
    arg.timeout_ms = timeout_ms;
    const int err = control(ctx, LITE_IOC_RPC_MULTICALL, arg);
    if (err)
        return err;
    for (size_t i = 0; i < n_legs; i++) {
        legs[i].length = kernel_legs[i].reply_len;
        legs[i].status = kernel_legs[i].status;
        legs[i].error = kernel_legs[i].error;
    }
    return static_cast<int>(arg.n_ok);
}
