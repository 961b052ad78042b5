// SPDX-License-Identifier: GPL-2.0
/* The ioctls of functions and calls (include/uapi/lite_rpc.h). */
#include "memory/handle/ctx.h"
#include "node.h"

/*
 * The RPC state of an open file, created if needed; NULL: no memory. Valid
 * while the file is open. The caller is active on its node. May sleep.
 */
struct lite_rpc_file *lite_file_rpc(struct lite_file *lf)
{
	/* Pairs with the cmpxchg() below. */
	struct lite_rpc_file *rpc = smp_load_acquire(&lf->rpc);
	struct lite_rpc_file *old;

	if (likely(rpc))
		return rpc;
	rpc = lite_rpc_file_new(&lf->node->service);
	if (!rpc)
		return NULL;
	old = cmpxchg(&lf->rpc, NULL, rpc);
	if (!old)
		return rpc;
	lite_rpc_file_shut(rpc);
	lite_rpc_file_put(rpc);
	return old;
}

int lite_ioc_rpc_register(struct lite_file *lf, void *arg,
			  struct lite_gate *gate)
{
	struct lite_rpc_file *rpc = lite_file_rpc(lf);
	struct lite_cred cred;

	if (!rpc)
		return -ENOMEM;
	lite_cred_current(&cred);
	return lite_func_register(rpc, &cred, arg);
}

void lite_ioc_undo_rpc_register(struct lite_file *lf, void *arg)
{
	struct lite_ioc_rpc_register *r = arg;

	lite_func_unregister(lf->rpc, r->function);
}

int lite_ioc_rpc_unregister(struct lite_file *lf, void *arg,
			    struct lite_gate *gate)
{
	struct lite_ioc_rpc_unregister *u = arg;
	struct lite_rpc_file *rpc = lite_file_rpc(lf);

	if (u->flags || u->reserved)
		return -EOPNOTSUPP;
	if (!rpc)
		return -ENOMEM;
	return lite_func_unregister(rpc, u->function);
}

int lite_ioc_rpc_find(struct lite_file *lf, void *arg, struct lite_gate *gate)
{
	struct lite_rpc_file *rpc = lite_file_rpc(lf);

	return rpc ? lite_file_find(rpc, arg) : -ENOMEM;
}

int lite_ioc_rpc_call(struct lite_file *lf, void *arg, struct lite_gate *gate)
{
	struct lite_rpc_file *rpc = lite_file_rpc(lf);
	struct lite_cred cred;

	if (!rpc)
		return -ENOMEM;
	lite_cred_current(&cred);
	return lite_file_call(rpc, arg, &cred, gate);
}

int lite_ioc_rpc_collect(struct lite_file *lf, void *arg,
			 struct lite_gate *gate)
{
	struct lite_rpc_file *rpc = lite_file_rpc(lf);

	return rpc ? lite_file_collect(rpc, arg, gate) : -ENOMEM;
}

int lite_ioc_rpc_recv(struct lite_file *lf, void *arg, struct lite_gate *gate)
{
	struct lite_rpc_file *rpc = lite_file_rpc(lf);

	return rpc ? lite_file_recv(rpc, arg, gate) : -ENOMEM;
}

void lite_ioc_undo_rpc_recv(struct lite_file *lf, void *arg)
{
	struct lite_ioc_rpc_recv *r = arg;

	if (r->token)
		lite_file_untake(lf->rpc, r->token);
}
