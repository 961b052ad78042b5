/* SPDX-License-Identifier: GPL-2.0 */
/*
 * LITE for kernel modules: functions, calls, messages. Included by kapi.h, with
 * the same conventions; errno values are those of include/uapi/lite_rpc.h.
 */
#ifndef _LITE_KAPI_RPC_H
#define _LITE_KAPI_RPC_H

#include <linux/types.h>
#include <uapi/lite_rpc.h>

struct lite_ctx;
struct lite_kfunc;

/* Longest reply of a short handler, bytes. */
#define LITE_KFUNC_SHORT_MAX 256

/**
 * struct lite_function - a function, for calls
 * @node: node id, 0: this one
 * @number: 1..LITE_FUNCTION_MAX
 * @uid: owner, in the initial user namespace of its node. Set by
 *	lite_function_find(), not used by calls
 * @registration: set by lite_function_find(): when the function has ended, calls
 *	fail with -ECONNREFUSED, even if another one has its number. (One of the
 *	same owner and values may serve calls until this node has learnt of the
 *	end.) 0: calls go to whichever function has the number
 *
 * Any user may serve a name or number that is free. To be sure of the server, a
 * client checks @uid, or calls numbers up to LITE_FUNCTION_ROOT_MAX, which only
 * root may serve.
 */
struct lite_function {
	u32 node;
	u32 number;
	u32 uid;
	u64 registration;
};

/**
 * struct lite_krequest - a request, as its handler sees it
 * @data: the request, in the ring or not; valid until the handler returns
 * @length: bytes at @data
 * @room: bytes that the caller has room for
 * @node: of the caller
 * @uid: of the caller, effective, in the initial user namespace of its node
 * @gid: of the caller, as @uid
 * @oneway: a message: no caller waits for a reply
 */
struct lite_krequest {
	const void *data;
	u32 length;
	u32 room;
	u32 node;
	u32 uid;
	u32 gid;
	bool oneway;
};

/**
 * typedef lite_kfunc_handler - serves one request
 * @priv: of struct lite_kfunc_params
 * @req: the request
 * @reply: room for @max_reply bytes, zeroed; may be NULL if @max_reply is 0
 * @status: a number for the caller, initially 0
 *
 * A handler may run before lite_kfunc_register() returns, and for a caller that
 * has given up meanwhile.
 *
 * Context: a work item, concurrent with others; may sleep and use a context.
 * lite_kfunc_unregister() and the stop of the node wait for it, so it must not
 * wait for what only others can end. At most 256 of a function run at a time, and
 * their replies are memory of the kernel's.
 * A short handler runs where the request is received: in any thread, perhaps
 * with preemption off and under a mutex of LITE, never in an interrupt. It must
 * not sleep, take long, or call LITE.
 * Return: bytes of the reply, at most @max_reply, or a negative errno: the
 * caller gets -ECONNRESET.
 */
typedef int (*lite_kfunc_handler)(void *priv, const struct lite_krequest *req,
				  void *reply, u32 *status);

/**
 * struct lite_kfunc_params - a function to serve
 * @name: of 1..LITE_FUNCTION_NAME_SIZE - 1 bytes, or NULL
 * @function: number, or 0: any free one from 32768 on
 * @mode: permission to call, as of a Unix socket that root owns: the w bits
 * @max_request: longest request, bytes, at most LITE_RPC_BULK_MAX
 * @max_reply: longest reply, bytes, at most LITE_RPC_BULK_MAX, or
 *	LITE_KFUNC_SHORT_MAX if @is_short.
 *	Every call reserves as much; more than LITE_RPC_BYTES_MAX counts against
 *	what the caller may have, at both nodes
 * @ring_size: bytes in flight per client node, LITE_RPC_RING_MIN to
 *	LITE_RPC_RING_MAX, or 0: the default
 * @is_short: the handler does not sleep or take long. For a request longer than
 *	LITE_RPC_BYTES_MAX it runs in a work item all the same
 * @handler: called for each request
 * @priv: for @handler
 */
struct lite_kfunc_params {
	const char *name;
	u32 function;
	u32 mode;
	u32 max_request;
	u32 max_reply;
	u32 ring_size;
	bool is_short;
	lite_kfunc_handler handler;
	void *priv;
};

/**
 * lite_kfunc_register - serve a function
 * @ctx: context; not to be closed before the function is unregistered
 * @p: what to serve
 *
 * Context: may sleep.
 * Return: the function, for lite_kfunc_unregister(), or ERR_PTR: -EEXIST
 * (number or name are taken), -EINVAL, -ENAMETOOLONG, -EMFILE, -ENODEV,
 * -ENOMEM.
 */
struct lite_kfunc *lite_kfunc_register(struct lite_ctx *ctx,
				       const struct lite_kfunc_params *p);

/* The number of a function from lite_kfunc_register(). Does not sleep. */
u32 lite_kfunc_number(const struct lite_kfunc *kf);

/**
 * lite_kfunc_unregister - stop serving a function
 * @kf: from lite_kfunc_register()
 *
 * Waits for handlers that run. Requests that wait for one are refused
 * (-ECONNREFUSED). Not to be called from a handler.
 *
 * Context: may sleep; not killable; not in a work item of a workqueue that has
 * WQ_MEM_RECLAIM.
 */
void lite_kfunc_unregister(struct lite_kfunc *kf);

/**
 * lite_function_find - look up a named function
 * @ctx: context
 * @node: node id, 0: this one
 * @name: its name
 * @found: set; valid for contexts on this node, until this node or the other one
 *	joins a cluster, leaves it, or is restarted
 *
 * Context: may sleep; killable.
 * Return: 0 or a negative errno as LITE_IOC_RPC_FIND.
 */
int lite_function_find(struct lite_ctx *ctx, u32 node, const char *name,
		       struct lite_function *found);

/**
 * lite_function_call - call a function
 * @ctx: context
 * @f: the function, from lite_function_find() or filled in by the caller
 * @request: bytes to send; kernel memory as in lite_lmr_read()
 * @length: of @request, bytes
 * @reply: buffer for the reply
 * @room: of @reply, bytes
 * @reply_length: set to the length of the reply, also with -EMSGSIZE; may be
 *	NULL
 * @timeout_ms: 1..LITE_TIMEOUT_MAX, LITE_NOWAIT (for room), LITE_FOREVER,
 *	LITE_TIMEOUT_DEFAULT
 * @status: set to the server's status; may be NULL
 *
 * Context: may sleep; killable.
 * Return: 0 or a negative errno as LITE_IOC_RPC_CALL. -ECONNRESET: the handler
 * has failed, or did not run, as its node had no memory.
 */
int lite_function_call(struct lite_ctx *ctx, const struct lite_function *f,
		       const void *request, u32 length, void *reply, u32 room,
		       u32 *reply_length, s32 timeout_ms, u32 *status);

/**
 * lite_function_send - send a message to a function
 * @ctx: context
 * @f: the function, as in lite_function_call()
 * @message: bytes to send
 * @length: of @message, bytes
 * @timeout_ms: to wait for room; as lite_function_call()
 *
 * Context: may sleep; killable.
 * Return: 0 or a negative errno as LITE_IOC_RPC_CALL.
 */
int lite_function_send(struct lite_ctx *ctx, const struct lite_function *f,
		       const void *message, u32 length, s32 timeout_ms);

#endif /* _LITE_KAPI_RPC_H */
