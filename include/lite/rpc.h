/* SPDX-License-Identifier: MIT */
/*
 * liblite: calls of functions on other nodes, and messages. Included by lite.h,
 * whose conventions hold; errno values are those of <uapi/lite_rpc.h>, which
 * lite_rpc_strerror() says in words.
 *
 *    server:                                 client:
 *      lite_rpc_register(ctx, &params, &fn);   lite_rpc_call(ctx, node, fn, "hi", 2,
 *      lite_rpc_recv(ctx, 0, buf, n,               reply, sizeof(reply), &length,
 *          LITE_FOREVER, &req);                    1000, NULL);
 *      for (;;)
 *          lite_rpc_reply_recv(ctx, &req, 0, buf, req.length, 0, buf, n,
 *                              LITE_FOREVER);
 *
 * Time-outs are those of <lite/lite.h>. A call or message with LITE_NOWAIT does not
 * wait for room in the ring (-EAGAIN), but for its reply as long as by default.
 *
 * Who serves or collects is interrupted by any signal that has a handler, or that
 * stops the process for a while (-EINTR), so that a server can end in order.
 *
 * -ENOMEM of those who serve passes: what other programs have under way counts,
 * too, for what a node gives to long requests and replies. A server tries again
 * after a while, with the same request and reply, rather than end.
 */
#ifndef LITE_RPC_H
#define LITE_RPC_H

#include <stddef.h>
#include <stdint.h>

#include <uapi/lite_rpc.h>

#ifdef __cplusplus
#ifndef LITE_NOEXCEPT
#define LITE_NOEXCEPT noexcept
#endif
extern "C" {
#else
#ifndef LITE_NOEXCEPT
#define LITE_NOEXCEPT
#endif
#endif

#pragma GCC visibility push(default)

struct lite_ctx;

/* Calls that one lite_rpc_multicall() may make. */
#define LITE_RPC_LEGS_MAX 64

/*
 * struct lite_rpc_params - a function to serve
 * @size: sizeof(struct lite_rpc_params), so that it can grow
 * @flags: LITE_RPC_SHARED: also if the same user serves it already, with the same
 *    values: then this context takes a part of its requests
 * @name: 1..LITE_FUNCTION_NAME_MAX bytes, or NULL or "": none
 * @function: its number; 0: any that is free, from 32768 on, or, shared, that which
 *    has the name already. Up to
 *    LITE_FUNCTION_ROOT_MAX they are root's
 * @mode: who may call: the w bits, as of a Unix socket
 * @max_request: most bytes of a request, at most LITE_RPC_BULK_MAX
 * @max_reply: most bytes of a reply, likewise. What is longer than
 *    LITE_RPC_BYTES_MAX takes memory of both nodes while it is under way
 * @ring_size: bytes for requests and replies under way, per client node; 0: the
 *    default
 */
struct lite_rpc_params {
    uint32_t size;
    uint32_t flags;
    const char* name;
    uint32_t function;
    uint32_t mode;
    uint32_t max_request;
    uint32_t max_reply;
    uint32_t ring_size;
    uint32_t reserved;
};

/* A request that was taken. */
struct lite_rpc_request {
    uint64_t token; /* 0: there is nothing to answer */
    uint32_t function;
    uint32_t length; /* bytes of it that are in the buffer */
    uint32_t node;   /* who calls */
    uint32_t uid;
    uint32_t gid;
    uint32_t flags;      /* LITE_RPC_REQ_* */
    uint32_t reply_room; /* bytes that the caller has room for */
    uint32_t reserved;
};

/* A call that has ended. */
struct lite_rpc_result {
    uint64_t cookie; /* of lite_rpc_start() */
    int32_t error;   /* 0 or a negative errno, as of lite_rpc_call() */
    uint32_t status; /* what the server said */
    uint32_t length; /* of the reply */
    uint32_t node;
    uint32_t function;
    uint32_t reserved;
};

/* One of the calls of lite_rpc_multicall(). */
struct lite_rpc_leg {
    uint32_t node;     /* 0: this one */
    uint32_t function; /* 0: that of the whole */
    void* reply;       /* the reply goes there */
    size_t room;       /* bytes there */
    size_t length;     /* set to those of the reply, with -EMSGSIZE, too */
    uint32_t status;   /* set to what the server said */
    int32_t error;     /* set to 0 or a negative errno */
};

/*
 * lite_rpc_register - serve a function
 * @ctx: context
 * @params: what to serve
 * @function: set to its number; may be NULL
 *
 * Return: 0, -EEXIST (number or name are taken), -EPERM (the number is root's),
 * -EINVAL, -ENAMETOOLONG, -E2BIG (a longer @params than this library knows),
 * -EMFILE (LITE_RPC_FUNCTIONS_MAX).
 */
int lite_rpc_register(struct lite_ctx* ctx, const struct lite_rpc_params* params,
                      uint32_t* function) LITE_NOEXCEPT;

/*
 * lite_rpc_unregister - serve a function no more
 * @ctx: context
 * @function: registered by it
 *
 * Return: 0, -ENOENT.
 */
int lite_rpc_unregister(struct lite_ctx* ctx, uint32_t function) LITE_NOEXCEPT;

/*
 * lite_rpc_recv - take a request
 * @ctx: context, any number of threads at the same time
 * @function: registered by it; 0: any of those
 * @buf: the request goes there
 * @size: bytes there
 * @timeout_ms: LITE_FOREVER by default
 * @request: set
 *
 * Return: 0, -EAGAIN, -ETIMEDOUT, -EMSGSIZE (@size is too small: the request
 * stays, and @request->length is its length), -ENOMEM (it stays, too), -ENOENT
 * (@ctx has not registered it, or does not serve it any more), -EFAULT, -EINVAL.
 */
int lite_rpc_recv(struct lite_ctx* ctx, uint32_t function, void* buf, size_t size, int timeout_ms,
                  struct lite_rpc_request* request) LITE_NOEXCEPT;

/*
 * lite_rpc_reply - answer a request
 * @ctx: context that has taken it
 * @token: of the request
 * @status: a number for the caller
 * @reply: may be NULL if @length is 0
 * @length: bytes of it
 *
 * Return: 0, -ENOENT (no such request: it was answered, or its caller has given
 * up), -E2BIG (more than the function's max_reply), -EFAULT, -ENOMEM. But for
 * -ENOENT it may be answered again; if it is not, see lite_rpc_done().
 */
int lite_rpc_reply(struct lite_ctx* ctx, uint64_t token, uint32_t status, const void* reply,
                   size_t length) LITE_NOEXCEPT;

/*
 * lite_rpc_done - give a request back that is not to be answered
 * @ctx: context that has taken it
 * @token: of the request, whose caller gets -ECONNRESET at once
 *
 * For a server that cannot answer: a request that it only forgets keeps its caller
 * until the time-out.
 *
 * Return: 0, -ENOENT (no such request: it was answered, or its caller has given
 * up).
 */
int lite_rpc_done(struct lite_ctx* ctx, uint64_t token) LITE_NOEXCEPT;

/*
 * lite_rpc_reply_recv - answer a request and take the next one, in one go
 * @ctx: context
 * @request: in: what to answer (token 0: nothing; that its caller has given up is
 *    no error); out: what was taken. Its token is 0 when the answer was given but
 *    nothing was taken
 * @status: a number for the caller
 * @reply: see lite_rpc_reply()
 * @length: likewise
 * @function: see lite_rpc_recv()
 * @buf: may be @reply
 * @size: bytes there
 * @timeout_ms: LITE_FOREVER by default
 *
 * Return: as the two.
 */
int lite_rpc_reply_recv(struct lite_ctx* ctx, struct lite_rpc_request* request, uint32_t status,
                        const void* reply, size_t length, uint32_t function, void* buf, size_t size,
                        int timeout_ms) LITE_NOEXCEPT;

/*
 * lite_rpc_find - the number of a function, and what it takes
 * @ctx: context
 * @node: node id, 0: this one
 * @name: its name
 * @out: filled completely
 *
 * Calls and messages of @ctx to that number are for that registration of it then:
 * -ECONNREFUSED, until it is found anew, if the function has ended and another has
 * its number.
 *
 * Return: 0, -ECONNREFUSED (there is none of that name), -EHOSTDOWN,
 * -EHOSTUNREACH, -ETIMEDOUT, -EMFILE (262144 were found), -EINVAL, -ENAMETOOLONG.
 */
int lite_rpc_find(struct lite_ctx* ctx, uint32_t node, const char* name,
                  struct lite_ioc_rpc_find* out) LITE_NOEXCEPT;

/*
 * lite_rpc_call - call a function
 * @ctx: context
 * @node: node id, 0: this one
 * @function: its number
 * @request: may be NULL if @length is 0
 * @length: bytes of it
 * @reply: the reply goes there
 * @room: bytes there; if it is more than LITE_RPC_BYTES_MAX, and so is the most
 *    that the function may reply with, memory for them is taken meanwhile
 * @reply_length: set to those of the reply, with -EMSGSIZE, too; may be NULL
 * @timeout_ms: for all of it
 * @status: set to what the server said; may be NULL
 *
 * Return: 0, -ECONNREFUSED, -EACCES, -E2BIG, -EMSGSIZE, -ECONNRESET, -EHOSTDOWN,
 * -EHOSTUNREACH, -ETIMEDOUT, -EAGAIN, -ENOBUFS, -ENOMEM, -EFAULT, -EINVAL.
 */
int lite_rpc_call(struct lite_ctx* ctx, uint32_t node, uint32_t function, const void* request,
                  size_t length, void* reply, size_t room, size_t* reply_length, int timeout_ms,
                  uint32_t* status) LITE_NOEXCEPT;

/*
 * lite_rpc_multicall - call functions of several nodes with one request
 * @ctx: context, of which it may have LITE_RPC_ASYNC_MAX calls under way, see
 *    lite_rpc_start(); -EMFILE else
 * @function: its number, for legs that have none
 * @request: may be NULL if @length is 0
 * @length: bytes of it
 * @legs: what to call; no two may have the same bytes for their replies
 * @n_legs: 1..LITE_RPC_LEGS_MAX
 * @quorum: how many to wait for: it returns when that many have succeeded, or
 *    can not; 0: when all have ended, well or not
 * @timeout_ms: for all together, as of lite_rpc_call()
 *
 * Those that are not waited for are cancelled; nothing is written to any reply after
 * the return. @error of each leg is as of lite_rpc_call(), or -ECANCELED: others
 * were enough, or have failed. It may have been served, as with -ETIMEDOUT.
 *
 * Return: how many have succeeded, be they as many as were wanted or not; else
 * nothing is known of the legs: -EINVAL, -E2BIG, -EFAULT, -ENOMEM, -ENODEV.
 */
int lite_rpc_multicall(struct lite_ctx* ctx, uint32_t function, const void* request, size_t length,
                       struct lite_rpc_leg* legs, size_t n_legs, size_t quorum,
                       int timeout_ms) LITE_NOEXCEPT;

/*
 * lite_rpc_send - send a function a message, to which there is no reply
 * @ctx: context
 * @node: node id, 0: this one
 * @function: its number
 * @message: may be NULL if @length is 0
 * @length: bytes of it
 * @timeout_ms: to wait for room in the ring
 *
 * Returns when it is on its way; messages of one thread are taken in their order.
 *
 * Return: 0, or as lite_rpc_call().
 */
int lite_rpc_send(struct lite_ctx* ctx, uint32_t node, uint32_t function, const void* message,
                  size_t length, int timeout_ms) LITE_NOEXCEPT;

/*
 * lite_rpc_start - begin a call whose result lite_rpc_collect() fetches
 * @ctx: context
 * @node: node id, 0: this one
 * @function: its number
 * @request: may be NULL if @length is 0
 * @length: bytes of it
 * @room: most bytes of the reply
 * @timeout_ms: as lite_rpc_call()
 * @cookie: given back with the result
 *
 * Return: 0: there will be a result; else as lite_rpc_call(), and there is none;
 * -EMFILE (LITE_RPC_ASYNC_MAX).
 */
int lite_rpc_start(struct lite_ctx* ctx, uint32_t node, uint32_t function, const void* request,
                   size_t length, size_t room, int timeout_ms, uint64_t cookie) LITE_NOEXCEPT;

/*
 * lite_rpc_collect - wait for the end of any call begun by lite_rpc_start()
 * @ctx: context
 * @reply: the reply goes there
 * @room: bytes there
 * @timeout_ms: LITE_FOREVER by default
 * @result: set
 *
 * poll(2) says that lite_fd() is readable when there is one, or a request to
 * be taken.
 *
 * Return: 0: one has ended, and how is in @result; -ENOENT: none is under way;
 * -EAGAIN, -ETIMEDOUT, -EMSGSIZE (@room is too small; it stays), -EFAULT (it
 * stays), -EINVAL.
 */
int lite_rpc_collect(struct lite_ctx* ctx, void* reply, size_t room, int timeout_ms,
                     struct lite_rpc_result* result) LITE_NOEXCEPT;

/*
 * lite_rpc_strerror - what an errno of the functions here means
 * @err: errno, positive or negative
 *
 * Some have another meaning than lite_strerror() says: E2BIG is a request or a
 * reply that is too long, ENOENT no LMR. As for the rest, like lite_strerror().
 *
 * Return: likewise.
 */
const char* lite_rpc_strerror(int err) LITE_NOEXCEPT;

#pragma GCC visibility pop

#ifdef __cplusplus
}
#endif

#endif /* LITE_RPC_H */
