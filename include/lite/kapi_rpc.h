/* SPDX-License-Identifier: GPL-2.0 */
/*
 * LITE for kernel modules: functions, calls, messages. Included by kapi.h, what
 * is said there holds; errno values are those of include/uapi/lite_rpc.h.
 */
#ifndef _LITE_KAPI_RPC_H
#define _LITE_KAPI_RPC_H

#include <linux/types.h>
#include <uapi/lite_rpc.h>

struct lite_ctx;
struct lite_kfunc;

/* Most bytes of a reply of a short handler. */
#define LITE_KFUNC_SHORT_MAX 256

/**
 * struct lite_krequest - what a handler is asked
 * @data: the request, in the ring or not: it is the handler's until it returns
 * @length: bytes there
 * @room: bytes that the caller has room for
 * @node: of the caller
 * @uid: of the caller, effective, in the initial user namespace of its node
 * @gid: likewise
 * @oneway: a message: nobody waits for a reply
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
 * @reply: room for @max_reply bytes, zeroed
 * @status: a number for the caller, 0 unless it is changed
 *
 * Context: a work item, may sleep, and runs side by side with others; a short
 * one: where the request comes in; it must not sleep, nor take long.
 * Return: bytes of the reply, or a negative errno: the caller gets -ECONNRESET.
 */
typedef int (*lite_kfunc_handler)(void *priv, const struct lite_krequest *req,
				  void *reply, u32 *status);

/**
 * struct lite_kfunc_params - a function to serve
 * @name: or NULL
 * @function: number, or 0: any that is free, from 32768 on
 * @mode: who may call, as of a Unix socket of root's: the w bits
 * @max_request: most bytes of a request
 * @max_reply: most bytes of a reply; at most LITE_KFUNC_SHORT_MAX if @is_short.
 *	As many are there for every call: who says more than LITE_RPC_BYTES_MAX
 *	pays for it, callers, too
 * @ring_size: bytes under way per client node, or 0: the default
 * @is_short: the handler does not sleep, nor take long; one whose request is
 *	longer than LITE_RPC_BYTES_MAX runs in a work item all the same
 * @handler: it
 * @priv: for it
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
 * Return: the function, for lite_kfunc_unregister(), or ERR_PTR: -EEXIST (number
 * or name are taken), -EINVAL, -ENAMETOOLONG, -EMFILE, -ENODEV, -ENOMEM.
 */
struct lite_kfunc *lite_kfunc_register(struct lite_ctx *ctx,
				       const struct lite_kfunc_params *p);

/**
 * lite_kfunc_number - the number of a function
 * @kf: from lite_kfunc_register()
 */
u32 lite_kfunc_number(const struct lite_kfunc *kf);

/**
 * lite_kfunc_unregister - serve a function no more
 * @kf: from lite_kfunc_register()
 *
 * When it returns, no handler is running. Not from a handler.
 *
 * Context: may sleep.
 */
void lite_kfunc_unregister(struct lite_kfunc *kf);

/**
 * lite_function_find - the number of a function that has a name
 * @ctx: context
 * @node: node id, 0: this one
 * @name: its name
 * @function: set to its number
 *
 * Context: may sleep; killable.
 * Return: 0 or a negative errno as LITE_IOC_RPC_FIND.
 */
int lite_function_find(struct lite_ctx *ctx, u32 node, const char *name,
		       u32 *function);

/**
 * lite_function_call - call a function
 * @ctx: context
 * @node: node id, 0: this one
 * @function: its number
 * @request: bytes to send; kernel memory of any kind
 * @length: of them
 * @reply: where the reply goes
 * @room: bytes there
 * @reply_length: set to those of the reply, with -EMSGSIZE, too; may be NULL
 * @timeout_ms: 1..LITE_TIMEOUT_MAX, LITE_NOWAIT (for room), LITE_FOREVER,
 *	LITE_TIMEOUT_DEFAULT
 * @status: set to what the server said; may be NULL
 *
 * Context: may sleep; killable.
 * Return: 0 or a negative errno as LITE_IOC_RPC_CALL.
 */
int lite_function_call(struct lite_ctx *ctx, u32 node, u32 function,
		       const void *request, u32 length, void *reply, u32 room,
		       u32 *reply_length, s32 timeout_ms, u32 *status);

/**
 * lite_function_send - send a function a message
 * @ctx: context
 * @node: node id, 0: this one
 * @function: its number
 * @message: bytes to send
 * @length: of them
 * @timeout_ms: to wait for room; as lite_function_call()
 *
 * Context: may sleep; killable.
 * Return: 0 or a negative errno as LITE_IOC_RPC_CALL.
 */
int lite_function_send(struct lite_ctx *ctx, u32 node, u32 function,
		       const void *message, u32 length, s32 timeout_ms);

#endif /* _LITE_KAPI_RPC_H */
