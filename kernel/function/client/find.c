// SPDX-License-Identifier: GPL-2.0
/* Asking nodes for functions: by name or number, and whether they still serve a registration. */
#include "function/service.h"

/* Ask a node for a function. If @timeout is 0, wait while the node is suspect. */
static int lite_find(struct lite_cluster *cl, u32 node, const struct lite_wire_rpc_find *req,
		     struct lite_wire_rpc_func *out, unsigned long timeout)
{
	struct lite_call_desc d = {
		LITE_REQUEST(LITE_CALL_RPC_FIND, *req),
		LITE_REPLY(*out),
		.timeout = timeout,
		.killable = true,
	};

	return timeout ? lite_cluster_call(cl, node, &d) :
			 lite_cluster_call_patiently(cl, node, &d);
}

/*
 * Before a call is refused because of what its ring says of the function: ask whether the function
 * has been registered anew. Waits no longer than the call may. May sleep; killable. Return: 0: the
 * node still serves the same registration; -ESTALE: not any more; other errnos: not known.
 */
int lite_client_ring_ask(struct lite_rcall *call)
{
	struct lite_wire_rpc_find req = { .function = cpu_to_le32(call->function) };
	struct lite_cluster *cl = call->svc->cl;
	struct lite_wire_rpc_func out;
	unsigned long left;
	int err;

	/* Does not wait for a suspect node; the caller's retry does. */
	do {
		left = lite_jiffies_left(call->deadline) ?: 1;
		err = lite_find(cl, call->here ? lite_cluster_id(cl) : call->node, &req, &out,
				min(left, cl->kcalls->timeout));
	} while (err == -ETIMEDOUT && lite_jiffies_left(call->deadline));
	if (!err)
		return le64_to_cpu(out.cookie) == call->ring->cookie ? 0 : -ESTALE;
	return err == -ECONNREFUSED ? -ESTALE : err;
}

/*
 * Ask a node for a function by name or number, and set the rest of @f, the cookie of the
 * registration, and whether the node is this one. May sleep; killable. Return: 0 or a negative
 * errno, see LITE_IOC_RPC_FIND.
 */
int lite_service_find(struct lite_service *svc, struct lite_ioc_rpc_find *f, u64 *cookie,
		      bool *here)
{
	struct lite_wire_rpc_find req = {};
	struct lite_wire_rpc_func out;
	unsigned long life = lite_cluster_life(svc->cl);
	int err = lite_cluster_ready(svc->cl);
	u32 self = lite_cluster_id(svc->cl);

	*here = !f->node || f->node == self;
	if (err)
		return err;
	if (f->flags || f->reserved)
		return -EOPNOTSUPP;
	if (f->name[0]) {
		err = lite_function_name_check(f->name);
		if (err < 0)
			return err;
		strscpy(req.name, f->name, sizeof(req.name));
	} else {
		if (!f->function || f->function > LITE_FUNCTION_MAX)
			return -EINVAL;
		req.function = cpu_to_le32(f->function);
	}
	err = lite_find(svc->cl, f->node ?: self, &req, &out, 0);
	/* If this node has joined a cluster meanwhile, another node may have been asked. */
	if (!err && *here)
		err = lite_cluster_recheck(svc->cl, life);
	if (err)
		return err;
	f->function = le32_to_cpu(out.function);
	f->uid = le32_to_cpu(out.uid);
	f->gid = le32_to_cpu(out.gid);
	f->mode = le32_to_cpu(out.mode);
	f->max_request = le32_to_cpu(out.max_request);
	f->max_reply = le32_to_cpu(out.max_reply);
	*cookie = le64_to_cpu(out.cookie);
	return 0;
}
