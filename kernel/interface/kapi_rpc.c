// SPDX-License-Identifier: GPL-2.0
/* The symbols for kernel modules; include/lite/kapi_rpc.h documents them. */
#include <linux/export.h>
#include <linux/slab.h>

#include "memory/handle/ctx.h"
#include "node.h"

struct lite_kfunc *lite_kfunc_register(struct lite_ctx *ctx,
				       const struct lite_kfunc_params *p)
{
	struct lite_node *node = lite_kapi_enter(ctx);
	struct lite_kfunc *kf;

	if (!node)
		return ERR_PTR(-ENODEV);
	kf = lite_kfunc_new(&node->service, p);
	lite_node_exit(node);
	return kf;
}
EXPORT_SYMBOL_GPL(lite_kfunc_register);

u32 lite_kfunc_number(const struct lite_kfunc *kf)
{
	return kf->func->number;
}
EXPORT_SYMBOL_GPL(lite_kfunc_number);

void lite_kfunc_unregister(struct lite_kfunc *kf)
{
	/* The node may have been stopped: its context keeps the object. */
	lite_kfunc_end(kf);
}
EXPORT_SYMBOL_GPL(lite_kfunc_unregister);

int lite_function_find(struct lite_ctx *ctx, u32 node_id, const char *name,
		       u32 *function)
{
	struct lite_ioc_rpc_find f = { .node = node_id };
	struct lite_node *node;
	u64 cookie;
	int err;

	if (!name || !*name)
		return -EINVAL;
	if (strscpy(f.name, name, sizeof(f.name)) < 0)
		return -ENAMETOOLONG;
	node = lite_kapi_enter(ctx);
	if (!node)
		return -ENODEV;
	err = lite_service_find(&node->service, &f, &cookie);
	lite_node_exit(node);
	if (!err)
		*function = f.function;
	return err;
}
EXPORT_SYMBOL_GPL(lite_function_find);

static int lite_kapi_call(struct lite_ctx *ctx, struct lite_rcall *call,
			  const void *request, const struct lite_buf *reply,
			  s32 timeout_ms)
{
	struct lite_node *node;
	int err;

	if (!call->function || call->function > LITE_FUNCTION_MAX ||
	    call->node > LITE_NODE_ID_MAX || !lite_timeout_ok(timeout_ms))
		return -EINVAL;
	if (call->length > LITE_RPC_BULK_MAX)
		return -E2BIG;
	node = lite_kapi_enter(ctx);
	if (!node)
		return -ENODEV;
	call->cred = &lite_root;
	call->registration = LITE_ANY_REGISTRATION;
	call->request.k = (void *)request;
	call->deadline = lite_call_deadline(timeout_ms, &call->flags);
	err = lite_service_call(&node->service, call, reply);
	lite_node_exit(node);
	return err;
}

int lite_function_call(struct lite_ctx *ctx, u32 node, u32 function,
		       const void *request, u32 length, void *reply, u32 room,
		       u32 *reply_length, s32 timeout_ms, u32 *status)
{
	struct lite_buf to = { .k = reply };
	struct lite_rcall call = {
		.node = node,
		.function = function,
		.length = length,
		.room = min_t(u32, room, LITE_RPC_BULK_MAX),
	};
	int err = lite_kapi_call(ctx, &call, request, &to, timeout_ms);

	if (reply_length && (!err || err == -EMSGSIZE))
		*reply_length = call.reply_len;
	if (status && !err)
		*status = call.user;
	return err;
}
EXPORT_SYMBOL_GPL(lite_function_call);

int lite_function_send(struct lite_ctx *ctx, u32 node, u32 function,
		       const void *message, u32 length, s32 timeout_ms)
{
	struct lite_rcall call = {
		.node = node,
		.function = function,
		.length = length,
		.flags = LITE_RPC_ONEWAY,
	};

	return lite_kapi_call(ctx, &call, message, NULL, timeout_ms);
}
EXPORT_SYMBOL_GPL(lite_function_send);
