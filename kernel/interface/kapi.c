// SPDX-License-Identifier: GPL-2.0
/*
 * Symbols for kernel modules; documented in include/lite/kapi.h and kapi_rpc.h. Functions for LMRs
 * and locks, except operations, run the same commands as the ioctls of processes, as root.
 */
#include <linux/export.h>

#include "memory/batch/op.h"
#include "command.h"
#include "compat.h"

const struct lite_cred lite_root = {};

/* Enter a client's node. The client may sleep, as commands do. Return: NULL: the node stopped. */
struct lite_node *lite_kapi_enter(struct lite_ctx *ctx)
{
	struct lite_node *node = ctx->mem->priv;

	might_sleep();
	return lite_node_enter(node) ? node : NULL;
}

/* Carry out a command. Return: as its ioctl. */
static int lite_kapi(struct lite_ctx *ctx, unsigned int nr, void *arg)
{
	struct lite_command cmd = { .node = lite_kapi_enter(ctx), .ctx = ctx };
	int err;

	if (!cmd.node)
		return -ENODEV;
	err = lite_cmd_run(&cmd, lite_ioc_find(nr), arg);
	lite_node_exit(cmd.node);
	return err;
}

/* Copy a name to a structure; the command checks what it contains. */
static int lite_kapi_name(char *to, const char *name, size_t size)
{
	if (!name || !*name)
		return -EINVAL;
	return strscpy(to, name, size) < 0 ? -ENAMETOOLONG : 0;
}

struct lite_ctx *lite_ctx_open(unsigned int index)
{
	struct lite_node *node = lite_node_find(index);
	struct lite_ctx *ctx = ERR_PTR(-ENODEV);

	if (!node)
		return ctx;
	if (lite_node_enter(node)) {
		ctx = lite_ctx_new(&node->memory);
		/* No ceiling of the calling thread's tenant applies. */
		if (ctx)
			lite_ctx_set_prio(ctx, LITE_PRIORITY_DEFAULT, true);
		else
			ctx = ERR_PTR(-ENOMEM);
		lite_node_exit(node);
	}
	if (IS_ERR(ctx))
		lite_node_put(node);
	return ctx;
}
EXPORT_SYMBOL_GPL(lite_ctx_open);

void lite_ctx_close(struct lite_ctx *ctx)
{
	struct lite_node *node = ctx->mem->priv;

	if (lite_node_enter(node)) {
		lite_locks_ctx_gone(&node->locks, ctx);
		lite_ctx_shut(ctx);
		lite_node_exit(node);
	}
	lite_ctx_put(ctx);
	lite_node_put(node);
}
EXPORT_SYMBOL_GPL(lite_ctx_close);

u32 lite_ctx_node_id(struct lite_ctx *ctx)
{
	struct lite_node *node = ctx->mem->priv;
	u32 id = 0;

	if (lite_node_enter(node)) {
		id = lite_cluster_id(&node->cluster);
		lite_node_exit(node);
	}
	return id;
}
EXPORT_SYMBOL_GPL(lite_ctx_node_id);

int lite_ctx_set_priority(struct lite_ctx *ctx, u32 priority)
{
	return lite_kapi(ctx, LITE_IOC_PRIORITY,
			 &(struct lite_ioc_priority){ .priority = priority });
}
EXPORT_SYMBOL_GPL(lite_ctx_set_priority);

int lite_lmr_alloc(struct lite_ctx *ctx, const struct lite_lmr_params *p, u64 *lh)
{
	struct lite_ioc_alloc a = {
		.flags = p->flags, .length = p->length, .mode = p->mode,
		.nodes = (uintptr_t)p->nodes, .n_nodes = p->n_nodes,
	};
	int err = p->name ? lite_kapi_name(a.name, p->name, sizeof(a.name)) : 0;

	err = err ?: lite_kapi(ctx, LITE_IOC_ALLOC, &a);
	if (!err && !(p->flags & LITE_ALLOC_NO_HANDLE))
		*lh = a.lh;
	return err;
}
EXPORT_SYMBOL_GPL(lite_lmr_alloc);

int lite_lmr_map(struct lite_ctx *ctx, const char *name, u32 rights, u64 *lh, u64 *length)
{
	struct lite_ioc_map m = { .rights = rights };
	int err = lite_kapi_name(m.name, name, sizeof(m.name)) ?: lite_kapi(ctx, LITE_IOC_MAP, &m);

	if (err)
		return err;
	*lh = m.lh;
	if (length)
		*length = m.length;
	return 0;
}
EXPORT_SYMBOL_GPL(lite_lmr_map);

int lite_lmr_stat(struct lite_ctx *ctx, u64 lh, struct lite_lmr_info *info, u32 *nodes, u32 *n)
{
	struct lite_ioc_stat s = {
		.lh = lh, .nodes = (uintptr_t)nodes, .n_nodes = nodes ? LITE_SPREAD_MAX : 0,
	};
	int err = lite_kapi(ctx, LITE_IOC_STAT, &s);

	if (err)
		return err;
	*info = s.info;
	if (n)
		*n = s.n_nodes;
	return 0;
}
EXPORT_SYMBOL_GPL(lite_lmr_stat);

int lite_lmr_unmap(struct lite_ctx *ctx, u64 lh)
{
	return lite_kapi(ctx, LITE_IOC_UNMAP, &(struct lite_ioc_unmap){ .lh = lh });
}
EXPORT_SYMBOL_GPL(lite_lmr_unmap);

int lite_lmr_free(struct lite_ctx *ctx, u64 lh)
{
	return lite_kapi(ctx, LITE_IOC_FREE, &(struct lite_ioc_free){ .lh = lh });
}
EXPORT_SYMBOL_GPL(lite_lmr_free);

int lite_lmr_free_name(struct lite_ctx *ctx, const char *name)
{
	struct lite_ioc_free f = {};

	return lite_kapi_name(f.name, name, sizeof(f.name)) ?: lite_kapi(ctx, LITE_IOC_FREE, &f);
}
EXPORT_SYMBOL_GPL(lite_lmr_free_name);

int lite_lmr_grant(struct lite_ctx *ctx, u64 lh, const struct lite_grant *grant)
{
	return lite_kapi(ctx, LITE_IOC_GRANT,
			 &(struct lite_ioc_grant){ .lh = lh, .grant = *grant });
}
EXPORT_SYMBOL_GPL(lite_lmr_grant);

int lite_lmr_grants(struct lite_ctx *ctx, u64 lh, struct lite_grant *grants, u32 *n)
{
	struct lite_ioc_grants g = {
		.lh = lh, .grants = (uintptr_t)grants, .n_grants = LITE_GRANTS_MAX,
		.grant_size = sizeof(*grants),
	};
	int err = lite_kapi(ctx, LITE_IOC_GRANTS, &g);

	if (!err)
		*n = g.n_grants;
	return err;
}
EXPORT_SYMBOL_GPL(lite_lmr_grants);

int lite_lmr_setattr(struct lite_ctx *ctx, u64 lh, u32 uid, u32 gid, u32 mode)
{
	struct lite_ioc_setattr s = { .lh = lh, .uid = uid, .gid = gid, .mode = mode };

	return lite_kapi(ctx, LITE_IOC_SETATTR, &s);
}
EXPORT_SYMBOL_GPL(lite_lmr_setattr);

int lite_lmr_rename(struct lite_ctx *ctx, u64 lh, const char *to)
{
	struct lite_ioc_rename r = { .lh = lh };

	return lite_kapi_name(r.to, to, sizeof(r.to)) ?: lite_kapi(ctx, LITE_IOC_RENAME, &r);
}
EXPORT_SYMBOL_GPL(lite_lmr_rename);

int lite_lmr_resize(struct lite_ctx *ctx, u64 lh, u64 length)
{
	return lite_kapi(ctx, LITE_IOC_RESIZE,
			 &(struct lite_ioc_resize){ .lh = lh, .length = length });
}
EXPORT_SYMBOL_GPL(lite_lmr_resize);

int lite_lmr_move(struct lite_ctx *ctx, u64 lh, u64 offset, u64 length, u32 node_id, u64 *moved)
{
	struct lite_ioc_move m = { .lh = lh, .offset = offset, .length = length, .node = node_id };
	int err = lite_kapi(ctx, LITE_IOC_MOVE, &m);

	if (moved)
		*moved = m.moved;
	return err;
}
EXPORT_SYMBOL_GPL(lite_lmr_move);

/* Carry out an operation; @k: buffer of reads and writes. Return: as LITE_IOC_OP. */
static __always_inline int lite_kapi_run(struct lite_ctx *ctx, struct lite_op *op, void *k)
{
	const struct lite_buf buf = { .k = k };
	struct lite_node *node = lite_kapi_enter(ctx);
	int err;

	if (!node)
		return -ENODEV;
	err = lite_op_run(ctx, op, &buf);
	lite_node_exit(node);
	return err;
}

static __always_inline int lite_kapi_transfer(struct lite_ctx *ctx, enum lite_opcode opcode, u64 lh,
					      u64 offset, void *k, size_t length)
{
	struct lite_op op LITE_UNINIT;

	op.opcode = opcode;
	op.priority = LITE_PRIORITY_DEFAULT;
	op.lh = lh;
	op.offset = offset;
	op.length = length;
	return lite_kapi_run(ctx, &op, k);
}

int lite_lmr_read(struct lite_ctx *ctx, u64 lh, u64 offset, void *buf, size_t length)
{
	return lite_kapi_transfer(ctx, LITE_OP_READ, lh, offset, buf, length);
}
EXPORT_SYMBOL_GPL(lite_lmr_read);

int lite_lmr_write(struct lite_ctx *ctx, u64 lh, u64 offset, const void *buf, size_t length)
{
	return lite_kapi_transfer(ctx, LITE_OP_WRITE, lh, offset, (void *)buf, length);
}
EXPORT_SYMBOL_GPL(lite_lmr_write);

/* @result: set on success; may be NULL */
static int lite_kapi_op(struct lite_ctx *ctx, enum lite_opcode opcode, u64 lh, u64 offset,
			u64 length, u64 operand, u64 swap, u64 *result)
{
	struct lite_op op = {
		.opcode = opcode, .lh = lh, .offset = offset, .length = length,
		.operand = operand, .swap = swap,
	};
	int err = lite_kapi_run(ctx, &op, NULL);

	if (!err && result)
		*result = op.result;
	return err;
}

int lite_lmr_fetch_add(struct lite_ctx *ctx, u64 lh, u64 offset, u64 add, u64 *old)
{
	return lite_kapi_op(ctx, LITE_OP_FETCH_ADD, lh, offset, sizeof(u64), add, 0, old);
}
EXPORT_SYMBOL_GPL(lite_lmr_fetch_add);

int lite_lmr_cmp_swap(struct lite_ctx *ctx, u64 lh, u64 offset, u64 expected, u64 desired, u64 *old)
{
	return lite_kapi_op(ctx, LITE_OP_CMP_SWAP, lh, offset, sizeof(u64), expected, desired, old);
}
EXPORT_SYMBOL_GPL(lite_lmr_cmp_swap);

int lite_lmr_swap(struct lite_ctx *ctx, u64 lh, u64 offset, u64 desired, u64 *old)
{
	return lite_kapi_op(ctx, LITE_OP_SWAP, lh, offset, sizeof(u64), desired, 0, old);
}
EXPORT_SYMBOL_GPL(lite_lmr_swap);

int lite_lmr_fetch_and(struct lite_ctx *ctx, u64 lh, u64 offset, u64 mask, u64 *old)
{
	return lite_kapi_op(ctx, LITE_OP_FETCH_AND, lh, offset, sizeof(u64), mask, 0, old);
}
EXPORT_SYMBOL_GPL(lite_lmr_fetch_and);

int lite_lmr_fetch_or(struct lite_ctx *ctx, u64 lh, u64 offset, u64 bits, u64 *old)
{
	return lite_kapi_op(ctx, LITE_OP_FETCH_OR, lh, offset, sizeof(u64), bits, 0, old);
}
EXPORT_SYMBOL_GPL(lite_lmr_fetch_or);

int lite_lmr_fence(struct lite_ctx *ctx, u64 lh)
{
	return lite_kapi_op(ctx, LITE_OP_FENCE, lh, 0, 0, 0, 0, NULL);
}
EXPORT_SYMBOL_GPL(lite_lmr_fence);

int lite_lmr_set(struct lite_ctx *ctx, u64 lh, u64 offset, u64 length, const void *pattern,
		 size_t pattern_length)
{
	__le64 bytes = 0;

	if (!pattern_length || pattern_length > sizeof(bytes))
		return -EINVAL;
	memcpy(&bytes, pattern, pattern_length);
	return lite_kapi_op(ctx, LITE_OP_SET, lh, offset, length, le64_to_cpu(bytes),
			    pattern_length, NULL);
}
EXPORT_SYMBOL_GPL(lite_lmr_set);

int lite_lmr_copy(struct lite_ctx *ctx, u64 to, u64 to_offset, u64 from,
		  u64 from_offset, u64 length)
{
	return lite_kapi_op(ctx, LITE_OP_COPY, to, to_offset, length, from, from_offset, NULL);
}
EXPORT_SYMBOL_GPL(lite_lmr_copy);

int lite_lmr_compare(struct lite_ctx *ctx, u64 lh, u64 offset, u64 other,
		     u64 other_offset, u64 length, u64 *equal)
{
	return lite_kapi_op(ctx, LITE_OP_COMPARE, lh, offset, length, other, other_offset, equal);
}
EXPORT_SYMBOL_GPL(lite_lmr_compare);

int lite_lmr_checksum(struct lite_ctx *ctx, u64 lh, u64 offset, u64 length, u32 seed, u32 *crc)
{
	u64 value;
	int err = lite_kapi_op(ctx, LITE_OP_CHECKSUM, lh, offset, length, seed, 0, &value);

	if (!err)
		*crc = value;
	return err;
}
EXPORT_SYMBOL_GPL(lite_lmr_checksum);

int lite_lmr_lock(struct lite_ctx *ctx, u64 lh, u64 offset, u64 owner, u32 flags, s32 timeout_ms)
{
	struct lite_ioc_lock l = {
		.flags = flags, .lh = lh, .offset = offset, .owner = owner,
		.timeout_ms = timeout_ms,
	};

	return lite_kapi(ctx, LITE_IOC_LOCK, &l);
}
EXPORT_SYMBOL_GPL(lite_lmr_lock);

int lite_lmr_unlock(struct lite_ctx *ctx, u64 lh, u64 offset, u64 owner)
{
	return lite_kapi(ctx, LITE_IOC_UNLOCK,
			 &(struct lite_ioc_unlock){ .lh = lh, .offset = offset, .owner = owner });
}
EXPORT_SYMBOL_GPL(lite_lmr_unlock);

int lite_lmr_lock_consistent(struct lite_ctx *ctx, u64 lh, u64 offset, u64 owner)
{
	return lite_kapi(ctx, LITE_IOC_CONSISTENT,
			 &(struct lite_ioc_unlock){ .lh = lh, .offset = offset, .owner = owner });
}
EXPORT_SYMBOL_GPL(lite_lmr_lock_consistent);

int lite_lmr_barrier(struct lite_ctx *ctx, u64 lh, u64 offset, u32 n, s32 timeout_ms)
{
	struct lite_ioc_barrier b = {
		.lh = lh, .offset = offset, .n = n, .timeout_ms = timeout_ms,
	};

	return lite_kapi(ctx, LITE_IOC_BARRIER, &b);
}
EXPORT_SYMBOL_GPL(lite_lmr_barrier);

struct lite_kfunc *lite_kfunc_register(struct lite_ctx *ctx, const struct lite_kfunc_params *p)
{
	struct lite_node *node = lite_kapi_enter(ctx);
	struct lite_kfunc *kf;

	if (!node)
		return ERR_PTR(-ENODEV);
	kf = lite_kfunc_new(&node->service, p);
	if (!IS_ERR(kf))
		refcount_inc(&node->ref);
	lite_node_exit(node);
	return kf;
}
EXPORT_SYMBOL_GPL(lite_kfunc_register);

void lite_kfunc_unregister(struct lite_kfunc *kf)
{
	struct lite_node *node = container_of(kf->func->svc, struct lite_node, service);

	might_sleep();
	lite_kfunc_end(kf);
	lite_node_put(node);
}
EXPORT_SYMBOL_GPL(lite_kfunc_unregister);

u32 lite_kfunc_number(const struct lite_kfunc *kf)
{
	return kf->func->number;
}
EXPORT_SYMBOL_GPL(lite_kfunc_number);

int lite_function_find(struct lite_ctx *ctx, u32 node_id, const char *name,
		       struct lite_function *found)
{
	struct lite_ioc_rpc_find f = { .node = node_id };
	struct lite_node *node;
	bool here = false;
	u64 cookie;
	int err = lite_kapi_name(f.name, name, sizeof(f.name));

	if (err)
		return err;
	node = lite_kapi_enter(ctx);
	if (!node)
		return -ENODEV;
	err = lite_service_find(&node->service, &f, &cookie, &here);
	lite_node_exit(node);
	if (!err)
		*found = (struct lite_function){
			/* A join gives this node another id. */
			.node = here ? 0 : node_id, .number = f.function, .uid = f.uid,
			.registration = cookie & LITE_FOUND_COOKIE,
		};
	return err;
}
EXPORT_SYMBOL_GPL(lite_function_find);

static int lite_kapi_call(struct lite_ctx *ctx, const struct lite_function *f,
			  struct lite_rcall *call, const void *request,
			  const struct lite_buf *reply, s32 timeout_ms)
{
	struct lite_node *node;
	int err;

	if (!f->number || f->number > LITE_FUNCTION_MAX || f->node > LITE_NODE_ID_MAX ||
	    !lite_timeout_ok(timeout_ms))
		return -EINVAL;
	if (call->length > LITE_RPC_BULK_MAX)
		return -E2BIG;
	node = lite_kapi_enter(ctx);
	if (!node)
		return -ENODEV;
	call->svc = &node->service;
	call->cred = &lite_root;
	call->prio = READ_ONCE(ctx->prio);
	call->node = f->node;
	call->function = f->number;
	call->registration = f->registration ?: LITE_ANY_REGISTRATION;
	call->request.k = (void *)request;
	call->deadline = lite_call_deadline(timeout_ms, &call->flags);
	err = lite_service_call(call, reply);
	lite_node_exit(node);
	return err;
}

int lite_function_call(struct lite_ctx *ctx, const struct lite_function *f, const void *request,
		       u32 length, void *reply, u32 room, u32 *reply_length, s32 timeout_ms,
		       u32 *status)
{
	struct lite_buf to = { .k = reply };
	struct lite_rcall call = {
		.length = length, .room = min_t(u32, room, LITE_RPC_BULK_MAX), .slot = LITE_NO_SLOT,
	};
	int err = lite_kapi_call(ctx, f, &call, request, &to, timeout_ms);

	if (reply_length && (!err || err == -EMSGSIZE))
		*reply_length = call.reply_len;
	if (status && !err)
		*status = call.user;
	return err;
}
EXPORT_SYMBOL_GPL(lite_function_call);

int lite_function_send(struct lite_ctx *ctx, const struct lite_function *f, const void *message,
		       u32 length, s32 timeout_ms)
{
	struct lite_rcall call = {
		.length = length, .flags = LITE_RPC_ONEWAY, .slot = LITE_NO_SLOT,
	};

	return lite_kapi_call(ctx, f, &call, message, NULL, timeout_ms);
}
EXPORT_SYMBOL_GPL(lite_function_send);
