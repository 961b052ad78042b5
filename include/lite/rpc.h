/* SPDX-License-Identifier: MIT */
/*
 * liblite: calls of functions on other nodes, and messages. Included by lite.h, with the same
 * conventions. <uapi/lite_rpc.h> describes the errno values, and lite_rpc_strerror() returns a text
 * for each.
 *
 *    server:                                 client:
 *      lite_rpc_register(ctx, &params, &fn);   lite_rpc_call(ctx, node, fn, "hi", 2,
 *      lite_rpc_recv(ctx, 0, buf, n,               reply, sizeof(reply), &length,
 *          LITE_FOREVER, &req);                    1000, NULL);
 *      for (;;)
 *          lite_rpc_reply_recv(ctx, &req, 0, buf, req.length, 0, buf, n,
 *                              LITE_FOREVER);
 *
 * Time-outs are those of <lite/lite.h>. With LITE_NOWAIT a call or message does not wait for room
 * in the ring (-EAGAIN). It still waits for all else, the default time (5 s) at most: for the ring,
 * which the first call to a function has the other node make; for a node that does not answer,
 * until that counts as down; for its turn, where the node schedules; and lite_rpc_call() for the
 * reply. So lite_rpc_start() and lite_rpc_send() may wait as well. With any other time-out they
 * wait until the request is sent.
 *
 * Any signal that has a handler or stops the process interrupts lite_rpc_recv() and
 * lite_rpc_collect() (-EINTR), so that a server can end in order.
 *
 * A server that gets -ENOMEM should try again after a while, with the same request and reply: the
 * limit for long requests and replies is shared with other programs.
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
 * @flags: LITE_RPC_SHARED: serve it together with other contexts of the same user, all with the
 *    same values
 * @name: 1..LITE_FUNCTION_NAME_MAX bytes, or NULL or "": none
 * @function: its number; 0: any free one from 32768 on or, with LITE_RPC_SHARED, the one that has
 *    the name. Only root may use numbers up to LITE_FUNCTION_ROOT_MAX
 * @mode: permission to call: the w bits, as of a Unix socket
 * @max_request: longest request in bytes, up to LITE_RPC_BULK_MAX
 * @max_reply: longest reply in bytes, up to LITE_RPC_BULK_MAX. Requests and replies of more than
 *    LITE_RPC_BYTES_MAX take memory of both nodes during the call
 * @ring_size: bytes for requests and replies in flight, per client node: LITE_RPC_RING_MIN to
 *    LITE_RPC_RING_MAX; 0: the default
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
    uint32_t node;   /* the caller's */
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
    uint32_t status; /* the server's number */
    uint32_t length; /* of the reply */
    uint32_t node;
    uint32_t function;
    uint32_t reserved;
};

/* One of the calls of lite_rpc_multicall(). */
struct lite_rpc_leg {
    uint32_t node;     /* 0: this one */
    uint32_t function; /* 0: the one given to lite_rpc_multicall() */
    void* reply;       /* the reply goes there */
    size_t room;       /* bytes there */
    size_t length;     /* set to the length of the reply, also with -EMSGSIZE */
    uint32_t status;   /* set to the server's number */
    int32_t error;     /* set to 0 or a negative errno */
};

/*
 * lite_rpc_register - serve a function
 * @params: what to serve
 * @function: set to its number; may be NULL
 *
 * Return: 0, -EEXIST (number or name are taken), -EPERM (the number is root's), -EINVAL,
 * -ENAMETOOLONG, -E2BIG (a longer @params than this library knows), -EMFILE
 * (LITE_RPC_FUNCTIONS_MAX, the limit of the user or of the node, or 256 contexts share the
 * function).
 */
int lite_rpc_register(struct lite_ctx* ctx, const struct lite_rpc_params* params,
                      uint32_t* function) LITE_NOEXCEPT;

/*
 * lite_rpc_unregister - stop serving a function
 * @function: registered by @ctx
 *
 * Return: 0, -ENOENT.
 */
int lite_rpc_unregister(struct lite_ctx* ctx, uint32_t function) LITE_NOEXCEPT;

/*
 * lite_rpc_recv - take a request
 * @function: registered by @ctx; 0: any of those
 * @buf: the request goes there
 * @size: bytes there
 * @timeout_ms: LITE_FOREVER by default
 * @request: set to the request, on -EMSGSIZE too
 *
 * Return: 0, -EAGAIN, -ETIMEDOUT, -EMSGSIZE (@size is too small: the request can still be taken,
 * and @request->length is its length), -ENOMEM (it can still be taken), -ENOENT (@ctx does not
 * serve the function), -EFAULT, -EINTR, -EINVAL.
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
 * Return: 0, -ENOENT (no such request: it was answered, or its caller has given up), -E2BIG (more
 * than the function's max_reply), -EFAULT, -ENOMEM. After errors other than -ENOENT, answer again
 * or call lite_rpc_done().
 */
int lite_rpc_reply(struct lite_ctx* ctx, uint64_t token, uint32_t status, const void* reply,
                   size_t length) LITE_NOEXCEPT;

/*
 * lite_rpc_done - give a request back unanswered
 * @ctx: context that has taken it
 * @token: of the request
 *
 * For a server that cannot answer. The caller gets -ECONNRESET at once; otherwise it would wait
 * until its time-out.
 *
 * Return: 0, -ENOENT (no such request: it was answered, or its caller has given up).
 */
int lite_rpc_done(struct lite_ctx* ctx, uint64_t token) LITE_NOEXCEPT;

/*
 * lite_rpc_reply_recv - answer a request and take the next one, in one system call
 * @request: in: the request to answer (token 0: none; it is no error if its caller has given up);
 *    out: the request that was taken. On failure its token is 0 if the answer was given but nothing
 *    was taken
 * @status: a number for the caller
 * @reply: see lite_rpc_reply()
 * @length: bytes of it
 * @function: see lite_rpc_recv()
 * @buf: may be @reply
 * @size: bytes there
 * @timeout_ms: LITE_FOREVER by default
 *
 * Return: as lite_rpc_reply() and lite_rpc_recv().
 */
int lite_rpc_reply_recv(struct lite_ctx* ctx, struct lite_rpc_request* request, uint32_t status,
                        const void* reply, size_t length, uint32_t function, void* buf, size_t size,
                        int timeout_ms) LITE_NOEXCEPT;

/*
 * lite_rpc_find - the number of a function, and what it takes
 * @node: node id, 0: this one
 * @name: its name
 * @out: filled completely
 *
 * Afterwards calls and messages of @ctx to that number are for this registration only: if the
 * function has ended and another one has its number, they fail with -ECONNREFUSED until the name is
 * found again.
 *
 * Return: 0, -ECONNREFUSED (no function has that name), -EHOSTDOWN, -EHOSTUNREACH, -ETIMEDOUT,
 * -EMFILE (@ctx has found 262144 already), -EINVAL, -ENAMETOOLONG.
 */
int lite_rpc_find(struct lite_ctx* ctx, uint32_t node, const char* name,
                  struct lite_ioc_rpc_find* out) LITE_NOEXCEPT;

/*
 * lite_rpc_call - call a function
 * @node: node id, 0: this one
 * @function: its number
 * @request: may be NULL if @length is 0
 * @length: bytes of it
 * @reply: the reply goes there
 * @room: bytes there; if both it and the function's max_reply are more than LITE_RPC_BYTES_MAX, the
 *    call takes memory for the smaller of the two
 * @reply_length: set to the length of the reply, also with -EMSGSIZE; may be NULL
 * @timeout_ms: for the whole call
 * @status: set to the server's number; may be NULL
 *
 * Return: 0, -ECONNREFUSED, -EACCES, -E2BIG, -EMSGSIZE, -ECONNRESET, -EHOSTDOWN, -EHOSTUNREACH,
 * -ETIMEDOUT, -EAGAIN, -ENOBUFS, -ENOMEM, -EFAULT, -EINVAL.
 */
int lite_rpc_call(struct lite_ctx* ctx, uint32_t node, uint32_t function, const void* request,
                  size_t length, void* reply, size_t room, size_t* reply_length, int timeout_ms,
                  uint32_t* status) LITE_NOEXCEPT;

/*
 * lite_rpc_multicall - call functions of several nodes with one request
 * @ctx: context; its calls in flight are limited, see lite_rpc_start()
 * @function: its number, for legs without one
 * @request: may be NULL if @length is 0
 * @length: bytes of it
 * @legs: the calls; their replies must not overlap
 * @n_legs: 1..LITE_RPC_LEGS_MAX
 * @quorum: return as soon as this many legs have succeeded, or no longer can; 0: when all have
 *    ended
 * @timeout_ms: for all together, as of lite_rpc_call()
 *
 * Legs that are still in flight then are cancelled; nothing is written to any reply after the
 * return. @error of each leg is as of lite_rpc_call(); or -EMFILE (no more calls may be in flight);
 * or -ECANCELED (the quorum was reached, or missed, without this leg: like a call that timed out,
 * it may have been served).
 *
 * Return: the number of legs that have succeeded; or, with the outcome of the legs unknown, a
 * negative errno: -EINVAL, -E2BIG, -EFAULT, -EACCES and -EOPNOTSUPP as of lite_rpc_start(),
 * -ENODEV.
 */
int lite_rpc_multicall(struct lite_ctx* ctx, uint32_t function, const void* request, size_t length,
                       struct lite_rpc_leg* legs, size_t n_legs, size_t quorum,
                       int timeout_ms) LITE_NOEXCEPT;

/*
 * lite_rpc_send - send a message to a function; there is no reply
 * @node: node id, 0: this one
 * @function: its number
 * @message: may be NULL if @length is 0
 * @length: bytes of it
 * @timeout_ms: until it is sent; with LITE_NOWAIT it may still wait, see above
 *
 * Returns when the message is sent. Messages of one thread arrive in order.
 *
 * Return: 0, or as lite_rpc_call().
 */
int lite_rpc_send(struct lite_ctx* ctx, uint32_t node, uint32_t function, const void* message,
                  size_t length, int timeout_ms) LITE_NOEXCEPT;

/*
 * lite_rpc_start - begin a call; lite_rpc_collect() returns its result
 * @node: node id, 0: this one
 * @function: its number
 * @request: may be NULL if @length is 0
 * @length: bytes of it
 * @room: most bytes of the reply
 * @timeout_ms: as lite_rpc_call()
 * @cookie: returned with the result
 *
 * Returns when the request is sent; also with LITE_NOWAIT it may wait, see above.
 *
 * Return: 0: there will be a result. Otherwise there will be none: -EMFILE (LITE_RPC_ASYNC_MAX
 * calls of @ctx are in flight or not collected), or as lite_rpc_call().
 */
int lite_rpc_start(struct lite_ctx* ctx, uint32_t node, uint32_t function, const void* request,
                   size_t length, size_t room, int timeout_ms, uint64_t cookie) LITE_NOEXCEPT;

/*
 * lite_rpc_collect - wait for the end of any call begun by lite_rpc_start()
 * @reply: the reply goes there
 * @room: bytes there
 * @timeout_ms: LITE_FOREVER by default
 * @result: set to the outcome of the call, on -EMSGSIZE too
 *
 * lite_fd() is readable (poll(2)) while there is a result to collect or a request to take.
 *
 * Return: 0: @result tells how the call ended; -ENOENT: no call is in flight; -EAGAIN, -ETIMEDOUT,
 * -EINTR, -EINVAL; -EMSGSIZE (@room is too small), -EFAULT: the call can still be collected.
 */
int lite_rpc_collect(struct lite_ctx* ctx, void* reply, size_t room, int timeout_ms,
                     struct lite_rpc_result* result) LITE_NOEXCEPT;

/*
 * lite_rpc_strerror - what an errno of the functions here means
 * @err: errno, positive or negative
 *
 * Some errno values have another meaning than in lite_strerror(): E2BIG is about the length of a
 * request or reply, ENOENT is not about an LMR.
 *
 * Return: as lite_strerror().
 */
const char* lite_rpc_strerror(int err) LITE_NOEXCEPT;

#pragma GCC visibility pop

#ifdef __cplusplus
}
#endif

#endif /* LITE_RPC_H */
