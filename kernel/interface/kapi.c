// SPDX-License-Identifier: GPL-2.0
/*
 * Symbols for kernel modules; documented in include/lite/kapi.h. All but
 * operations are the commands that processes have, carried out as root.
 */
#include <linux/export.h>
#include <linux/slab.h>

#include "command.h"

const struct lite_cred lite_root = {};

struct lite_node *lite_kapi_enter(struct lite_ctx *ctx)
{
	struct lite_node *node = ctx->owner;

	return lite_node_enter(node) ? node : NULL;
}

/* Carry out a command. Return: as its ioctl. */
static int lite_kapi(struct lite_ctx *ctx, unsigned int nr, void *arg)
{
	struct lite_command cmd = {
		.node = lite_kapi_enter(ctx),
		.ctx = ctx,
	};
	int err;

	if (!cmd.node)
		return -ENODEV;
	err = lite_cmd_run(&cmd, lite_ioc_find(nr), arg);
	lite_node_exit(cmd.node);
	return err;
}

/* Copy a name to a structure; what it contains is checked there. */
static int lite_kapi_name(char *to, const char *name)
{
	if (!name || !*name)
		return -EINVAL;
	return strscpy(to, name, LITE_NAME_SIZE) < 0 ? -ENAMETOOLONG : 0;
}

struct lite_ctx *lite_ctx_open(unsigned int index)
{
	struct lite_node *node = lite_node_find(index);
	struct lite_ctx *ctx = ERR_PTR(-ENODEV);

	if (!node)
		return ctx;
	if (lite_node_enter(node)) {
		ctx = lite_ctx_new(&node->memory, node) ?: ERR_PTR(-ENOMEM);
		lite_node_exit(node);
	}
	if (IS_ERR(ctx))
		lite_node_put(node);
	return ctx;
}
EXPORT_SYMBOL_GPL(lite_ctx_open);

void lite_ctx_close(struct lite_ctx *ctx)
{
	struct lite_node *node = ctx->owner;

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
	struct lite_node *node = lite_kapi_enter(ctx);
	u32 id = 0;

	if (node) {
		id = lite_cluster_id(&node->cluster);
		lite_node_exit(node);
	}
	return id;
}
EXPORT_SYMBOL_GPL(lite_ctx_node_id);

/* ---- LMRs ---------------------------------------------------------------- */

int lite_lmr_alloc(struct lite_ctx *ctx, const struct lite_lmr_params *p,
		   u64 *lh)
{
	struct lite_ioc_alloc a = {
		.flags = p->flags,
		.length = p->length,
		.nodes = (uintptr_t)p->nodes,
		.n_nodes = p->n_nodes,
		.mode = p->mode,
	};
	int err = p->name ? lite_kapi_name(a.name, p->name) : 0;

	if (!err)
		err = lite_kapi(ctx, LITE_IOC_ALLOC, &a);
	if (!err && !(p->flags & LITE_ALLOC_NO_HANDLE))
		*lh = a.lh;
	return err;
}
EXPORT_SYMBOL_GPL(lite_lmr_alloc);

int lite_lmr_map(struct lite_ctx *ctx, const char *name, u32 rights, u64 *lh,
		 u64 *length)
{
	struct lite_ioc_map m = { .rights = rights };
	int err = lite_kapi_name(m.name, name) ?:
		  lite_kapi(ctx, LITE_IOC_MAP, &m);

	if (err)
		return err;
	*lh = m.lh;
	if (length)
		*length = m.length;
	return 0;
}
EXPORT_SYMBOL_GPL(lite_lmr_map);

int lite_lmr_unmap(struct lite_ctx *ctx, u64 lh)
{
	struct lite_ioc_unmap m = { .lh = lh };

	return lite_kapi(ctx, LITE_IOC_UNMAP, &m);
}
EXPORT_SYMBOL_GPL(lite_lmr_unmap);

int lite_lmr_free(struct lite_ctx *ctx, u64 lh)
{
	struct lite_ioc_free f = { .lh = lh };

	return lite_kapi(ctx, LITE_IOC_FREE, &f);
}
EXPORT_SYMBOL_GPL(lite_lmr_free);

int lite_lmr_free_name(struct lite_ctx *ctx, const char *name)
{
	struct lite_ioc_free f = {};

	return lite_kapi_name(f.name, name) ?:
	       lite_kapi(ctx, LITE_IOC_FREE, &f);
}
EXPORT_SYMBOL_GPL(lite_lmr_free_name);

int lite_lmr_grant(struct lite_ctx *ctx, u64 lh, const struct lite_grant *grant)
{
	struct lite_ioc_grant g = { .lh = lh, .grant = *grant };

	return lite_kapi(ctx, LITE_IOC_GRANT, &g);
}
EXPORT_SYMBOL_GPL(lite_lmr_grant);

int lite_lmr_grants(struct lite_ctx *ctx, u64 lh, struct lite_grant *grants,
		    u32 *n)
{
	struct lite_ioc_grants g = {
		.lh = lh,
		.grants = (uintptr_t)grants,
		.n_grants = LITE_GRANTS_MAX,
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
	struct lite_ioc_setattr s = {
		.lh = lh,
		.uid = uid,
		.gid = gid,
		.mode = mode,
	};

	return lite_kapi(ctx, LITE_IOC_SETATTR, &s);
}
EXPORT_SYMBOL_GPL(lite_lmr_setattr);

int lite_lmr_rename(struct lite_ctx *ctx, u64 lh, const char *to)
{
	struct lite_ioc_rename r = { .lh = lh };

	return lite_kapi_name(r.to, to) ?:
	       lite_kapi(ctx, LITE_IOC_RENAME, &r);
}
EXPORT_SYMBOL_GPL(lite_lmr_rename);

int lite_lmr_resize(struct lite_ctx *ctx, u64 lh, u64 length)
{
	struct lite_ioc_resize r = { .lh = lh, .length = length };

	return lite_kapi(ctx, LITE_IOC_RESIZE, &r);
}
EXPORT_SYMBOL_GPL(lite_lmr_resize);

int lite_lmr_move(struct lite_ctx *ctx, u64 lh, u64 offset, u64 length,
		  u32 node_id, u64 *moved)
{
	struct lite_ioc_move m = {
		.lh = lh,
		.offset = offset,
		.length = length,
		.node = node_id,
	};
	int err = lite_kapi(ctx, LITE_IOC_MOVE, &m);

	if (moved)
		*moved = m.moved;
	return err;
}
EXPORT_SYMBOL_GPL(lite_lmr_move);

/* ---- operations ---------------------------------------------------------- */

static int lite_kapi_transfer(struct lite_ctx *ctx, u64 lh, bool write,
			      u64 offset, void *k, size_t length)
{
	const struct lite_access a = {
		.ctx = ctx,
		.lh = lh,
		.right = write ? LITE_RIGHT_WRITE : LITE_RIGHT_READ,
	};
	const struct lite_buf buf = { .k = k };
	struct lite_node *node = lite_kapi_enter(ctx);
	u64 done;
	int err;

	if (!node)
		return -ENODEV;
	err = lite_transfer(&a, write, offset, length, &buf, &done);
	lite_node_exit(node);
	return err;
}

int lite_lmr_read(struct lite_ctx *ctx, u64 lh, u64 offset, void *buf,
		  size_t length)
{
	return lite_kapi_transfer(ctx, lh, false, offset, buf, length);
}
EXPORT_SYMBOL_GPL(lite_lmr_read);

int lite_lmr_write(struct lite_ctx *ctx, u64 lh, u64 offset, const void *buf,
		   size_t length)
{
	return lite_kapi_transfer(ctx, lh, true, offset, (void *)buf, length);
}
EXPORT_SYMBOL_GPL(lite_lmr_write);

static int lite_kapi_op(struct lite_ctx *ctx, struct lite_op *op)
{
	struct lite_node *node = lite_kapi_enter(ctx);
	int err;

	if (!node)
		return -ENODEV;
	err = lite_op_run(ctx, op, NULL);
	lite_node_exit(node);
	return err;
}

static int lite_kapi_atomic(struct lite_ctx *ctx, u64 lh,
			    enum lite_opcode opcode, u64 offset, u64 operand,
			    u64 swap, u64 *old)
{
	struct lite_op op = {
		.opcode = opcode,
		.lh = lh,
		.offset = offset,
		.length = sizeof(u64),
		.operand = operand,
		.swap = swap,
	};
	int err = lite_kapi_op(ctx, &op);

	if (!err && old)
		*old = op.result;
	return err;
}

int lite_lmr_fetch_add(struct lite_ctx *ctx, u64 lh, u64 offset, u64 add,
		       u64 *old)
{
	return lite_kapi_atomic(ctx, lh, LITE_OP_FETCH_ADD, offset, add, 0,
				old);
}
EXPORT_SYMBOL_GPL(lite_lmr_fetch_add);

int lite_lmr_cmp_swap(struct lite_ctx *ctx, u64 lh, u64 offset, u64 expected,
		      u64 desired, u64 *old)
{
	return lite_kapi_atomic(ctx, lh, LITE_OP_CMP_SWAP, offset, expected,
				desired, old);
}
EXPORT_SYMBOL_GPL(lite_lmr_cmp_swap);

int lite_lmr_swap(struct lite_ctx *ctx, u64 lh, u64 offset, u64 desired,
		  u64 *old)
{
	return lite_kapi_atomic(ctx, lh, LITE_OP_SWAP, offset, desired, 0, old);
}
EXPORT_SYMBOL_GPL(lite_lmr_swap);

int lite_lmr_fetch_and(struct lite_ctx *ctx, u64 lh, u64 offset, u64 mask,
		       u64 *old)
{
	return lite_kapi_atomic(ctx, lh, LITE_OP_FETCH_AND, offset, mask, 0,
				old);
}
EXPORT_SYMBOL_GPL(lite_lmr_fetch_and);

int lite_lmr_fetch_or(struct lite_ctx *ctx, u64 lh, u64 offset, u64 bits,
		      u64 *old)
{
	return lite_kapi_atomic(ctx, lh, LITE_OP_FETCH_OR, offset, bits, 0,
				old);
}
EXPORT_SYMBOL_GPL(lite_lmr_fetch_or);

int lite_lmr_fence(struct lite_ctx *ctx, u64 lh)
{
	struct lite_op op = { .opcode = LITE_OP_FENCE, .lh = lh };

	return lite_kapi_op(ctx, &op);
}
EXPORT_SYMBOL_GPL(lite_lmr_fence);

int lite_lmr_set(struct lite_ctx *ctx, u64 lh, u64 offset, u64 length,
		 const void *pattern, size_t pattern_length)
{
	struct lite_op op = {
		.opcode = LITE_OP_SET,
		.lh = lh,
		.offset = offset,
		.length = length,
		.swap = pattern_length,
	};
	__le64 bytes = 0;

	if (!pattern_length || pattern_length > sizeof(bytes))
		return -EINVAL;
	memcpy(&bytes, pattern, pattern_length);
	op.operand = le64_to_cpu(bytes);
	return lite_kapi_op(ctx, &op);
}
EXPORT_SYMBOL_GPL(lite_lmr_set);

int lite_lmr_copy(struct lite_ctx *ctx, u64 to, u64 to_offset, u64 from,
		  u64 from_offset, u64 length)
{
	struct lite_op op = {
		.opcode = LITE_OP_COPY,
		.lh = to,
		.offset = to_offset,
		.length = length,
		.operand = from,
		.swap = from_offset,
	};

	return lite_kapi_op(ctx, &op);
}
EXPORT_SYMBOL_GPL(lite_lmr_copy);

int lite_lmr_compare(struct lite_ctx *ctx, u64 lh, u64 offset, u64 other,
		     u64 other_offset, u64 length, u64 *equal)
{
	struct lite_op op = {
		.opcode = LITE_OP_COMPARE,
		.lh = lh,
		.offset = offset,
		.length = length,
		.operand = other,
		.swap = other_offset,
	};
	int err = lite_kapi_op(ctx, &op);

	if (!err)
		*equal = op.result;
	return err;
}
EXPORT_SYMBOL_GPL(lite_lmr_compare);

int lite_lmr_checksum(struct lite_ctx *ctx, u64 lh, u64 offset, u64 length,
		      u32 seed, u32 *crc)
{
	struct lite_op op = {
		.opcode = LITE_OP_CHECKSUM,
		.lh = lh,
		.offset = offset,
		.length = length,
		.operand = seed,
	};
	int err = lite_kapi_op(ctx, &op);

	if (!err)
		*crc = op.result;
	return err;
}
EXPORT_SYMBOL_GPL(lite_lmr_checksum);

/* ---- locks and barriers -------------------------------------------------- */

int lite_lmr_lock(struct lite_ctx *ctx, u64 lh, u64 offset, u64 owner,
		  u32 flags, s32 timeout_ms)
{
	struct lite_ioc_lock l = {
		.flags = flags,
		.lh = lh,
		.offset = offset,
		.owner = owner,
		.timeout_ms = timeout_ms,
	};

	return lite_kapi(ctx, LITE_IOC_LOCK, &l);
}
EXPORT_SYMBOL_GPL(lite_lmr_lock);

int lite_lmr_unlock(struct lite_ctx *ctx, u64 lh, u64 offset, u64 owner)
{
	struct lite_ioc_unlock u = {
		.lh = lh,
		.offset = offset,
		.owner = owner,
	};

	return lite_kapi(ctx, LITE_IOC_UNLOCK, &u);
}
EXPORT_SYMBOL_GPL(lite_lmr_unlock);

int lite_lmr_lock_consistent(struct lite_ctx *ctx, u64 lh, u64 offset,
			     u64 owner)
{
	struct lite_ioc_unlock u = {
		.lh = lh,
		.offset = offset,
		.owner = owner,
	};

	return lite_kapi(ctx, LITE_IOC_CONSISTENT, &u);
}
EXPORT_SYMBOL_GPL(lite_lmr_lock_consistent);

int lite_lmr_barrier(struct lite_ctx *ctx, u64 lh, u64 offset, u32 n,
		     s32 timeout_ms)
{
	struct lite_ioc_barrier b = {
		.lh = lh,
		.offset = offset,
		.n = n,
		.timeout_ms = timeout_ms,
	};

	return lite_kapi(ctx, LITE_IOC_BARRIER, &b);
}
EXPORT_SYMBOL_GPL(lite_lmr_barrier);
