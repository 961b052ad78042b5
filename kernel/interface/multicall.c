// SPDX-License-Identifier: GPL-2.0
/*
 * One call to several nodes: its ioctl (include/uapi/lite_rpc.h) and its symbol
 * (include/lite/kapi_rpc.h).
 *
 * What the user has is copied before the calls are begun, and what they have
 * come to is given after they have ended: nothing is under way while the node is
 * let go.
 */
#include <linux/export.h>
#include <linux/mm.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

#include "../service/multi.h"
#include "node.h"

static int lite_multi_check(const struct lite_multi *m, s32 timeout_ms)
{
	if (m->flags & ~LITE_RPC_NOWAIT)
		return -EOPNOTSUPP;
	if (!m->n || m->n > LITE_RPC_LEGS_MAX || m->quorum > m->n ||
	    !lite_timeout_ok(timeout_ms))
		return -EINVAL;
	return m->length > LITE_RPC_BULK_MAX ? -E2BIG : 0;
}

static int lite_multi_alloc(struct lite_multi *m)
{
	m->leg = kvcalloc(m->n, sizeof(*m->leg), GFP_KERNEL_ACCOUNT);
	return m->leg ? 0 : -ENOMEM;
}

static int lite_leg_set(struct lite_leg *leg, u32 node, u32 function, u32 room)
{
	if (!function || function > LITE_FUNCTION_MAX ||
	    node > LITE_NODE_ID_MAX)
		return -EINVAL;
	leg->call.node = node;
	leg->call.function = function;
	leg->call.registration = LITE_ANY_REGISTRATION;
	leg->call.room = min_t(u32, room, LITE_RPC_BULK_MAX);
	return 0;
}

/* A request that is too long for rings, for all legs together. */
static int lite_multi_bulk(struct lite_multi *m, const struct lite_buf *from)
{
	struct lite_bulk *bulk =
		lite_bulk_make(m->svc, m->cred->uid, m->length);

	if (IS_ERR(bulk))
		return PTR_ERR(bulk);
	m->bulk = bulk;
	return lite_bulk_copy(bulk, from, 0, m->length, true);
}

/* Bytes of the reply, as LITE_IOC_RPC_CALL tells them. */
static u32 lite_leg_length(const struct lite_leg *leg)
{
	return !leg->err || leg->err == -EMSGSIZE ? leg->call.reply_len : 0;
}

/* ---- the ioctl ----------------------------------------------------------- */

static int lite_legs_read(struct lite_multi *m,
			  const struct lite_ioc_rpc_multicall *c,
			  struct lite_gate *gate)
{
	struct lite_ioc_rpc_leg l;
	u32 i;
	int err;

	for (i = 0; i < m->n; i++) {
		void __user *user =
			u64_to_user_ptr(c->legs) + (size_t)i * c->leg_size;

		err = copy_struct_from_user(&l, sizeof(l), user, c->leg_size);
		if (!err)
			err = lite_leg_set(&m->leg[i], l.node,
					   l.function ?: c->function,
					   l.reply_room);
		if (err)
			return err;
		m->leg[i].reply = (struct lite_buf){
			.gate = gate,
			.user = true,
			.u = l.reply,
		};
	}
	return 0;
}

/* As CALL does: what this file has found by name is what it calls. */
static void lite_legs_pin(struct lite_file *lf, struct lite_multi *m)
{
	/* With lite_file_rpc(). */
	struct lite_rpc_file *rpc = smp_load_acquire(&lf->rpc);
	u32 i;

	for (i = 0; rpc && i < m->n; i++) {
		struct lite_rcall *call = &m->leg[i].call;

		call->registration =
			lite_file_found(rpc, call->node, call->function);
	}
}

static int lite_legs_write(const struct lite_multi *m,
			   const struct lite_ioc_rpc_multicall *c)
{
	u32 i;

	for (i = 0; i < m->n; i++) {
		const struct lite_leg *leg = &m->leg[i];
		struct lite_ioc_rpc_leg __user *user =
			u64_to_user_ptr(c->legs) + (size_t)i * c->leg_size;

		if (put_user(lite_leg_length(leg), &user->reply_len) ||
		    put_user(leg->err ? 0 : leg->call.user, &user->status) ||
		    put_user(leg->err, &user->error))
			return -EFAULT;
	}
	return 0;
}

/* One that is not, in memory of its own. */
static int lite_multi_request(struct lite_multi *m, const struct lite_buf *from,
			      void **request)
{
	size_t done = 0, n = m->length;
	int err = 0;

	if (!n)
		return 0;
	*request = kvmalloc(n, GFP_KERNEL_ACCOUNT);
	if (!*request)
		return -ENOMEM;
	m->request = *request;
	while (done < n && !err) {
		done += lite_buf_copy_nofault(from, done, *request + done,
					      n - done, true);
		if (done < n)
			err = lite_user_fault_in(from, done, n, true);
	}
	return err;
}

/* What is needed of the user's memory, with the node let go meanwhile. */
static int lite_multi_read(struct lite_multi *m, void **request,
			   const struct lite_ioc_rpc_multicall *c,
			   struct lite_gate *gate)
{
	struct lite_buf from = { .gate = gate, .user = true, .u = c->request };
	int err;

	lite_gate_leave(gate);
	err = lite_legs_read(m, c, gate);
	if (!lite_gate_enter(gate))
		return -ENODEV;
	if (err)
		return err;
	return m->length > LITE_RPC_BYTES_MAX ?
		       lite_multi_bulk(m, &from) :
		       lite_multi_request(m, &from, request);
}

static int lite_multi_write(struct lite_multi *m,
			    const struct lite_ioc_rpc_multicall *c,
			    struct lite_gate *gate)
{
	u32 i;
	int err;

	for (i = 0; i < m->n; i++) {
		err = lite_leg_store(&m->leg[i]);
		if (err)
			return err;
	}
	lite_gate_leave(gate);
	err = lite_legs_write(m, c);
	if (!lite_gate_enter(gate))
		return -ENODEV;
	return err;
}

int lite_ioc_rpc_multicall(struct lite_file *lf, void *arg,
			   struct lite_gate *gate)
{
	struct lite_ioc_rpc_multicall *c = arg;
	struct lite_cred cred;
	struct lite_multi m = {
		.svc = &lf->node->service,
		.cred = &cred,
		.length = c->request_len,
		.flags = c->flags,
		.quorum = c->quorum,
		.n = c->n_legs,
	};
	void *request = NULL;
	int err;

	c->n_ok = 0;
	err = c->reserved ? -EOPNOTSUPP : lite_multi_check(&m, c->timeout_ms);
	if (err)
		return err;
	if (c->leg_size < offsetofend(struct lite_ioc_rpc_leg, error))
		return -EINVAL;
	if (c->leg_size > PAGE_SIZE)
		return -E2BIG;
	lite_cred_current(&cred);
	err = lite_multi_alloc(&m) ?: lite_multi_read(&m, &request, c, gate);
	if (!err) {
		m.deadline = lite_call_deadline(c->timeout_ms, &m.flags);
		lite_legs_pin(lf, &m);
		err = lite_multi_call(&m);
	}
	if (!err)
		err = lite_multi_write(&m, c, gate);
	c->n_ok = m.n_ok;
	lite_multi_free(&m);
	kvfree(request);
	return err;
}

/* ---- the symbol ---------------------------------------------------------- */

int lite_function_multicall(struct lite_ctx *ctx, u32 function,
			    const void *request, u32 length,
			    struct lite_call_leg *legs, u32 n_legs, u32 quorum,
			    s32 timeout_ms)
{
	struct lite_multi m = {
		.cred = &lite_root,
		.request = request,
		.length = length,
		.quorum = quorum,
		.n = n_legs,
	};
	struct lite_buf from = { .k = (void *)request };
	struct lite_node *node;
	u32 i;
	int err;

	err = lite_multi_check(&m, timeout_ms) ?: lite_multi_alloc(&m);
	for (i = 0; !err && i < n_legs; i++) {
		err = lite_leg_set(&m.leg[i], legs[i].node,
				   legs[i].function ?: function, legs[i].room);
		m.leg[i].reply.k = legs[i].reply;
	}
	node = err ? NULL : lite_kapi_enter(ctx);
	if (!err && !node)
		err = -ENODEV;
	if (!err) {
		m.svc = &node->service;
		m.deadline = lite_call_deadline(timeout_ms, &m.flags);
		if (length > LITE_RPC_BYTES_MAX)
			err = lite_multi_bulk(&m, &from);
		if (!err)
			err = lite_multi_call(&m);
		lite_node_exit(node);
	}
	for (i = 0; !err && i < n_legs; i++) {
		legs[i].reply_length = lite_leg_length(&m.leg[i]);
		legs[i].status = m.leg[i].err ? 0 : m.leg[i].call.user;
		legs[i].error = m.leg[i].err;
	}
	lite_multi_free(&m);
	return err ?: m.n_ok;
}
EXPORT_SYMBOL_GPL(lite_function_multicall);
