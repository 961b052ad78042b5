// SPDX-License-Identifier: GPL-2.0
/* Symbols for kernel modules; documented in include/lite/kapi.h. */
#include <linux/export.h>
#include <linux/slab.h>

#include "core/name.h"
#include "memory/handle/ctx.h"
#include "node.h"

const struct lite_cred lite_root = {};

struct lite_node *lite_kapi_enter(struct lite_ctx *ctx)
{
	struct lite_node *node = ctx->owner;

	return lite_node_enter(node) ? node : NULL;
}

/* Copy a name, checked, to a buffer of LITE_NAME_SIZE bytes. */
char *lite_kapi_name(const char *name)
{
	char *copy;
	int err;

	if (!name)
		return ERR_PTR(-EINVAL);
	if (strnlen(name, LITE_NAME_SIZE) == LITE_NAME_SIZE)
		return ERR_PTR(-ENAMETOOLONG);
	copy = kzalloc(LITE_NAME_SIZE, GFP_KERNEL);
	if (!copy)
		return ERR_PTR(-ENOMEM);
	strscpy(copy, name, LITE_NAME_SIZE);
	err = lite_name_check(copy, LITE_NAME_SIZE);
	if (err < 0) {
		kfree(copy);
		return ERR_PTR(err);
	}
	return copy;
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

int lite_lmr_alloc(struct lite_ctx *ctx, const struct lite_lmr_params *p,
		   u64 *lh)
{
	struct lite_lmr_params params = *p;
	struct lite_handle *h = NULL;
	struct lite_node *node;
	char *name = NULL;
	u64 number = 0;
	int err = 0;

	if (p->name) {
		name = lite_kapi_name(p->name);
		if (IS_ERR(name))
			return PTR_ERR(name);
		params.name = name;
	}
	node = lite_kapi_enter(ctx);
	if (!node) {
		err = -ENODEV;
		goto out;
	}
	if (!(p->flags & LITE_ALLOC_NO_HANDLE)) {
		h = lite_handle_reserve(ctx);
		err = PTR_ERR_OR_ZERO(h);
	}
	if (!err) {
		number = h ? h->lh : 0;
		err = lite_ctx_create(ctx, &lite_root, &params, h);
		if (err && h)
			lite_handle_cancel(ctx, h);
		else if (!err && h)
			*lh = number;
	}
	lite_node_exit(node);
out:
	kfree(name);
	return err;
}
EXPORT_SYMBOL_GPL(lite_lmr_alloc);

int lite_lmr_map(struct lite_ctx *ctx, const char *name, u32 rights, u64 *lh,
		 u64 *length)
{
	char *copy = lite_kapi_name(name);
	struct lite_handle *h;
	struct lite_node *node;
	u64 number, bytes;
	int err;

	if (IS_ERR(copy))
		return PTR_ERR(copy);
	node = lite_kapi_enter(ctx);
	if (!node) {
		kfree(copy);
		return -ENODEV;
	}
	h = lite_handle_reserve(ctx);
	err = PTR_ERR_OR_ZERO(h);
	if (!err) {
		number = h->lh;
		err = lite_ctx_map(ctx, &lite_root, copy, rights, h, &bytes);
		if (err) {
			lite_handle_cancel(ctx, h);
		} else {
			*lh = number;
			if (length)
				*length = bytes;
		}
	}
	lite_node_exit(node);
	kfree(copy);
	return err;
}
EXPORT_SYMBOL_GPL(lite_lmr_map);

int lite_lmr_unmap(struct lite_ctx *ctx, u64 lh)
{
	struct lite_node *node = lite_kapi_enter(ctx);
	int err;

	if (!node)
		return -ENODEV;
	err = lite_ctx_unmap(ctx, lh);
	lite_node_exit(node);
	return err;
}
EXPORT_SYMBOL_GPL(lite_lmr_unmap);

int lite_lmr_free(struct lite_ctx *ctx, u64 lh)
{
	const struct lite_target target = { .cred = &lite_root, .lh = lh };
	struct lite_node *node = lite_kapi_enter(ctx);
	int err;

	if (!node)
		return -ENODEV;
	err = lh ? lite_ctx_free(ctx, &target) : -EBADF;
	lite_node_exit(node);
	return err;
}
EXPORT_SYMBOL_GPL(lite_lmr_free);

int lite_lmr_free_name(struct lite_ctx *ctx, const char *name)
{
	struct lite_target target = { .cred = &lite_root };
	char *copy = lite_kapi_name(name);
	struct lite_node *node;
	int err = -ENODEV;

	if (IS_ERR(copy))
		return PTR_ERR(copy);
	node = lite_kapi_enter(ctx);
	if (node) {
		target.name = copy;
		err = lite_ctx_free(ctx, &target);
		lite_node_exit(node);
	}
	kfree(copy);
	return err;
}
EXPORT_SYMBOL_GPL(lite_lmr_free_name);

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

static int lite_kapi_atomic(struct lite_ctx *ctx, u64 lh,
			    enum lite_opcode opcode, u64 offset, u64 operand,
			    u64 swap, u64 *old)
{
	const struct lite_access a = {
		.ctx = ctx,
		.lh = lh,
		.right = LITE_RIGHT_ATOMIC,
	};
	struct lite_node *node = lite_kapi_enter(ctx);
	u64 value;
	int err;

	if (!node)
		return -ENODEV;
	err = lite_atomic(&a, opcode, offset, sizeof(u64), operand, swap,
			  &value);
	lite_node_exit(node);
	if (!err && old)
		*old = value;
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
	struct lite_node *node = lite_kapi_enter(ctx);
	int err;

	if (!node)
		return -ENODEV;
	err = lite_fence(ctx, lh);
	lite_node_exit(node);
	return err;
}
EXPORT_SYMBOL_GPL(lite_lmr_fence);

static int lite_kapi_memop(struct lite_ctx *ctx, enum lite_opcode opcode,
			   u64 lh, u64 offset, u64 length, u64 operand, u64 arg,
			   u64 *result)
{
	struct lite_node *node = lite_kapi_enter(ctx);
	int err;

	if (!node)
		return -ENODEV;
	err = lite_memop(ctx, opcode, lh, offset, length, operand, arg, result);
	lite_node_exit(node);
	return err;
}

int lite_lmr_set(struct lite_ctx *ctx, u64 lh, u64 offset, u64 length,
		 const void *pattern, size_t pattern_length)
{
	__le64 bytes = 0;
	u64 done;

	if (!pattern_length || pattern_length > sizeof(bytes))
		return -EINVAL;
	memcpy(&bytes, pattern, pattern_length);
	return lite_kapi_memop(ctx, LITE_OP_SET, lh, offset, length,
			       le64_to_cpu(bytes), pattern_length, &done);
}
EXPORT_SYMBOL_GPL(lite_lmr_set);

int lite_lmr_copy(struct lite_ctx *ctx, u64 to, u64 to_offset, u64 from,
		  u64 from_offset, u64 length)
{
	u64 done;

	return lite_kapi_memop(ctx, LITE_OP_COPY, to, to_offset, length, from,
			       from_offset, &done);
}
EXPORT_SYMBOL_GPL(lite_lmr_copy);

int lite_lmr_compare(struct lite_ctx *ctx, u64 lh, u64 offset, u64 other,
		     u64 other_offset, u64 length, u64 *equal)
{
	u64 same;
	int err;

	err = lite_kapi_memop(ctx, LITE_OP_COMPARE, lh, offset, length, other,
			      other_offset, &same);
	if (!err)
		*equal = same;
	return err;
}
EXPORT_SYMBOL_GPL(lite_lmr_compare);

int lite_lmr_checksum(struct lite_ctx *ctx, u64 lh, u64 offset, u64 length,
		      u32 seed, u32 *crc)
{
	u64 value;
	int err;

	err = lite_kapi_memop(ctx, LITE_OP_CHECKSUM, lh, offset, length, seed,
			      0, &value);
	if (!err)
		*crc = value;
	return err;
}
EXPORT_SYMBOL_GPL(lite_lmr_checksum);
