// SPDX-License-Identifier: MIT
//
// Functions, calls and messages.

#include "context.hpp"

#include <cerrno>
#include <cstring>

using lite::internal::as_u64;
using lite::internal::clamp_length;
using lite::internal::control;
using lite::internal::take_params;

namespace {

int copy_function_name(char (&field)[LITE_FUNCTION_NAME_SIZE], const char* name) noexcept {
    const size_t length = ::strnlen(name, sizeof(field));
    if (length == sizeof(field))
        return -ENAMETOOLONG;
    std::memcpy(field, name, length + 1);
    return 0;
}

void prepare(struct lite_ioc_rpc_call& arg, uint32_t node, uint32_t function, const void* request,
             size_t length, int timeout_ms) noexcept {
    arg.node = node;
    arg.function = function;
    arg.request = as_u64(request);
    arg.request_len = clamp_length(length);
    arg.timeout_ms = timeout_ms;
}

void describe(const struct lite_ioc_rpc_recv& arg, struct lite_rpc_request& request) noexcept {
    request = {};
    request.token = arg.token;
    request.function = arg.function;
    request.length = arg.length;
    request.node = arg.node;
    request.uid = arg.uid;
    request.gid = arg.gid;
    request.flags = arg.req_flags;
    request.reply_room = arg.reply_room;
}

}  // namespace

int lite_rpc_register(struct lite_ctx* ctx, const struct lite_rpc_params* params,
                      uint32_t* function) noexcept {
    struct lite_rpc_params p = {};
    if (const int err = take_params(params, sizeof(p), p))
        return err;

    struct lite_ioc_rpc_register arg = {};
    if (p.name && *p.name) {
        const int err = copy_function_name(arg.name, p.name);
        if (err)
            return err;
    }
    arg.flags = p.flags;
    arg.function = p.function;
    arg.mode = p.mode;
    arg.max_request = p.max_request;
    arg.max_reply = p.max_reply;
    arg.ring_size = p.ring_size;
    arg.reserved = p.reserved;
    const int err = control(ctx, LITE_IOC_RPC_REGISTER, arg);
    if (!err && function)
        *function = arg.function;
    return err;
}

int lite_rpc_unregister(struct lite_ctx* ctx, uint32_t function) noexcept {
    struct lite_ioc_rpc_unregister arg = {};
    arg.function = function;
    return control(ctx, LITE_IOC_RPC_UNREGISTER, arg);
}

int lite_rpc_recv(struct lite_ctx* ctx, uint32_t function, void* buf, size_t size, int timeout_ms,
                  struct lite_rpc_request* request) noexcept {
    struct lite_rpc_request none = {};
    const int err = lite_rpc_reply_recv(ctx, &none, 0, nullptr, 0, function, buf, size, timeout_ms);
    if (!err || err == -EMSGSIZE)
        *request = none;
    return err;
}

int lite_rpc_reply(struct lite_ctx* ctx, uint64_t token, uint32_t status, const void* reply,
                   size_t length) noexcept {
    struct lite_ioc_rpc_recv arg = {};
    arg.flags = LITE_RPC_REPLY_ONLY;
    arg.token = token;
    arg.reply = as_u64(reply);
    arg.reply_len = clamp_length(length);
    arg.status = status;
    return control(ctx, LITE_IOC_RPC_RECV, arg);
}

int lite_rpc_done(struct lite_ctx* ctx, uint64_t token) noexcept {
    struct lite_ioc_rpc_recv arg = {};
    arg.flags = LITE_RPC_REPLY_ONLY | LITE_RPC_DROP;
    arg.token = token;
    return control(ctx, LITE_IOC_RPC_RECV, arg);
}

int lite_rpc_reply_recv(struct lite_ctx* ctx, struct lite_rpc_request* request, uint32_t status,
                        const void* reply, size_t length, uint32_t function, void* buf, size_t size,
                        int timeout_ms) noexcept {
    struct lite_ioc_rpc_recv arg = {};
    arg.timeout_ms = timeout_ms;
    if (request->token) {
        arg.flags |= LITE_RPC_REPLY;
        arg.token = request->token;
        arg.reply = as_u64(reply);
        arg.reply_len = clamp_length(length);
        arg.status = status;
    }
    arg.function = function;
    arg.buf = as_u64(buf);
    arg.buf_len = clamp_length(size);
    const int err = control(ctx, LITE_IOC_RPC_RECV, arg);
    if (!err || err == -EMSGSIZE)
        describe(arg, *request);
    else if (arg.answered)
        request->token = 0;
    return err;
}

int lite_rpc_find(struct lite_ctx* ctx, uint32_t node, const char* name,
                  struct lite_ioc_rpc_find* out) noexcept {
    struct lite_ioc_rpc_find arg = {};
    if (!name || !*name)
        return -EINVAL;
    int err = copy_function_name(arg.name, name);
    if (err)
        return err;
    arg.node = node;
    err = control(ctx, LITE_IOC_RPC_FIND, arg);
    if (!err)
        *out = arg;
    return err;
}

int lite_rpc_call(struct lite_ctx* ctx, uint32_t node, uint32_t function, const void* request,
                  size_t length, void* reply, size_t room, size_t* reply_length, int timeout_ms,
                  uint32_t* status) noexcept {
    struct lite_ioc_rpc_call arg = {};
    prepare(arg, node, function, request, length, timeout_ms);
    arg.reply = as_u64(reply);
    arg.reply_room = clamp_length(room);
    const int err = control(ctx, LITE_IOC_RPC_CALL, arg);
    if (reply_length && (!err || err == -EMSGSIZE))
        *reply_length = arg.reply_len;
    if (status && !err)
        *status = arg.status;
    return err;
}

int lite_rpc_send(struct lite_ctx* ctx, uint32_t node, uint32_t function, const void* message,
                  size_t length, int timeout_ms) noexcept {
    struct lite_ioc_rpc_call arg = {};
    prepare(arg, node, function, message, length, timeout_ms);
    arg.flags |= LITE_RPC_ONEWAY;
    return control(ctx, LITE_IOC_RPC_CALL, arg);
}

int lite_rpc_start(struct lite_ctx* ctx, uint32_t node, uint32_t function, const void* request,
                   size_t length, size_t room, int timeout_ms, uint64_t cookie) noexcept {
    struct lite_ioc_rpc_call arg = {};
    prepare(arg, node, function, request, length, timeout_ms);
    arg.flags |= LITE_RPC_ASYNC;
    arg.reply_room = clamp_length(room);
    arg.cookie = cookie;
    return control(ctx, LITE_IOC_RPC_CALL, arg);
}

int lite_rpc_collect(struct lite_ctx* ctx, void* reply, size_t room, int timeout_ms,
                     struct lite_rpc_result* result) noexcept {
    struct lite_ioc_rpc_collect arg = {};
    arg.timeout_ms = timeout_ms;
    arg.reply = as_u64(reply);
    arg.reply_room = clamp_length(room);
    const int err = control(ctx, LITE_IOC_RPC_COLLECT, arg);
    if (err && err != -EMSGSIZE)
        return err;
    *result = {};
    result->cookie = arg.cookie;
    result->error = arg.error;
    result->status = arg.status;
    result->length = arg.reply_len;
    result->node = arg.node;
    result->function = arg.function;
    return err;
}
