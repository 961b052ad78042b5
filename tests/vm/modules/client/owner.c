// SPDX-License-Identifier: GPL-2.0
/*
 * What the owner of an LMR does with it: names, rights, a move; and locks and barriers in it.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/slab.h>
#include <linux/string.h>
#include <linux/workqueue.h>

#include "client.h"

#define BYTES (2 * PAGE_SIZE)
#define NAME "client-owned"
#define RIGHTS (LITE_RIGHT_READ | LITE_RIGHT_WRITE | LITE_RIGHT_ATOMIC)
#define WORD 64 /* offset of a lock */
#define GATE 72 /* offset of a barrier */
#define WAIT_MS 60000

/* An anonymous LMR at @node. Returns its handle or 0. */
static u64 make(struct lite_ctx *ctx, u32 node)
{
	struct lite_lmr_params params = {
		.length = BYTES, .nodes = &node, .n_nodes = 1, .mode = 0600,
	};
	u64 lh = 0;

	if (FAILS(!lite_lmr_alloc(ctx, &params, &lh)))
		return 0;
	return lh;
}

static int named(struct lite_ctx *ctx, u64 lh, struct lite_ctx *other)
{
	struct lite_lmr_params taken = { .name = "client-taken", .length = 1, .mode = 0600 };
	u64 second, there;

	if (FAILS(!lite_lmr_alloc(ctx, &taken, &second)) ||
	    FAILS(lite_lmr_rename(ctx, lh, "client-taken") == -EEXIST) ||
	    FAILS(lite_lmr_rename(ctx, lh, "") == -EINVAL) ||
	    FAILS(!lite_lmr_free_name(ctx, "client-taken")) ||
	    FAILS(lite_lmr_free_name(ctx, "client-taken") == -ENOENT) ||
	    FAILS(!lite_lmr_unmap(ctx, second)) ||
	    FAILS(!lite_lmr_rename(ctx, lh, NAME)) ||
	    FAILS(!lite_lmr_map(other, NAME, RIGHTS, &there, NULL)) ||
	    FAILS(!lite_lmr_write(other, there, 0, "by name", 8)) ||
	    FAILS(!lite_lmr_unmap(other, there)))
		return -EIO;
	return 0;
}

static int shared(struct lite_ctx *ctx, u64 lh)
{
	struct lite_grant *grants = kcalloc(LITE_GRANTS_MAX, sizeof(*grants), GFP_KERNEL);
	struct lite_grant reader = { .uid = 1001, .rights = LITE_RIGHT_READ };
	struct lite_grant wrong = { .uid = 1001, .rights = 1U << 31 };
	struct lite_lmr_info info;
	u32 n = LITE_GRANTS_MAX;
	int err = -EIO;

	if (FAILS(grants) ||
	    FAILS(!lite_lmr_setattr(ctx, lh, 1000, LITE_KEEP, 0640)) ||
	    FAILS(!lite_lmr_stat(ctx, lh, &info, NULL, NULL)) ||
	    FAILS(info.uid == 1000 && !info.gid && info.mode == 0640) ||
	    FAILS(lite_lmr_setattr(ctx, lh, LITE_KEEP, LITE_KEEP, 01777) == -EINVAL) ||
	    FAILS(lite_lmr_grant(ctx, lh, &wrong) == -EOPNOTSUPP) ||
	    FAILS(!lite_lmr_grants(ctx, lh, grants, &n) && !n) ||
	    FAILS(!lite_lmr_grant(ctx, lh, &reader)))
		goto out;
	n = LITE_GRANTS_MAX;
	if (FAILS(!lite_lmr_grants(ctx, lh, grants, &n)) ||
	    FAILS(n == 1 && !memcmp(grants, &reader, sizeof(reader))))
		goto out;
	reader.rights = 0;
	n = LITE_GRANTS_MAX;
	if (FAILS(!lite_lmr_grant(ctx, lh, &reader)) ||
	    FAILS(!lite_lmr_grants(ctx, lh, grants, &n) && !n))
		goto out;
	err = 0;
out:
	kfree(grants);
	return err;
}

/* To this node and back, with what it has in it. */
static int moved(struct lite_ctx *ctx, u64 lh, u32 node)
{
	u32 nodes[LITE_SPREAD_MAX], n = 0;
	struct lite_lmr_info info;
	u64 bytes = 0;
	char text[8];

	if (FAILS(!lite_lmr_move(ctx, lh, 0, 0, 0, &bytes) && bytes == BYTES) ||
	    FAILS(!lite_lmr_stat(ctx, lh, &info, nodes, &n)) ||
	    FAILS(info.home == node && n == 1 && nodes[0] == lite_ctx_node_id(ctx)) ||
	    FAILS(!lite_lmr_read(ctx, lh, 0, text, 8) && !memcmp(text, "by name", 8)) ||
	    FAILS(lite_lmr_move(ctx, lh, BYTES, 1, node, NULL) == -ERANGE) ||
	    FAILS(!lite_lmr_move(ctx, lh, 0, BYTES, node, NULL)) ||
	    FAILS(!lite_lmr_read(ctx, lh, 0, text, 8) && !memcmp(text, "by name", 8)))
		return -EIO;
	return 0;
}

/* An LMR at @node with a name, rights and a move; @other is a context on another node. */
int client_owns(struct lite_ctx *ctx, u32 node, struct lite_ctx *other)
{
	u64 lh = make(ctx, node), there;

	if (!lh || named(ctx, lh, other) || shared(ctx, lh) || moved(ctx, lh, node) ||
	    FAILS(!lite_lmr_free_name(ctx, NAME)) ||
	    FAILS(lite_lmr_map(other, NAME, RIGHTS, &there, NULL) == -ENOENT) ||
	    FAILS(lite_lmr_read(ctx, lh, 0, &there, 8) == -EIDRM) ||
	    FAILS(!lite_lmr_unmap(ctx, lh)))
		return -EIO;
	return 0;
}

/* A thread that passes a barrier on another node. */
struct passer {
	struct work_struct work;
	struct lite_ctx *ctx;
	u64 lh;
	int err;
};

static void pass(struct work_struct *work)
{
	struct passer *p = container_of(work, struct passer, work);

	p->err = lite_lmr_barrier(p->ctx, p->lh, GATE, 2, WAIT_MS);
}

static int passed(struct lite_ctx *ctx, u64 lh, struct lite_ctx *other, u64 there)
{
	struct passer p = { .ctx = other, .lh = there };
	int err;

	if (FAILS(lite_lmr_barrier(ctx, lh, GATE, 0, WAIT_MS) == -EINVAL) ||
	    FAILS(lite_lmr_barrier(ctx, lh, GATE, 2, LITE_NOWAIT) == -EAGAIN))
		return -EIO;
	INIT_WORK_ONSTACK(&p.work, pass);
	schedule_work(&p.work);
	err = lite_lmr_barrier(ctx, lh, GATE, 2, WAIT_MS);
	flush_work(&p.work);
	destroy_work_on_stack(&p.work);
	return FAILS(!err) || FAILS(!p.err) ? -EIO : 0;
}

/* Two owners in one context, and two contexts; @ctx gets the lock when @other is closed. */
static int locked(struct lite_ctx *ctx, u64 lh, struct lite_ctx *other, u64 there)
{
	if (FAILS(!lite_lmr_lock(ctx, lh, WORD, 1, 0, WAIT_MS)) ||
	    FAILS(lite_lmr_lock(ctx, lh, WORD, 2, LITE_LOCK_TRY, WAIT_MS) == -EBUSY) ||
	    FAILS(lite_lmr_lock(other, there, WORD, 1, LITE_LOCK_SHARED, 1) == -ETIMEDOUT) ||
	    FAILS(lite_lmr_unlock(other, there, WORD, 1) == -EPERM) ||
	    FAILS(lite_lmr_lock_consistent(ctx, lh, WORD, 1) == -EINVAL) ||
	    FAILS(!lite_lmr_unlock(ctx, lh, WORD, 1)) ||
	    FAILS(lite_lmr_unlock(ctx, lh, WORD, 1) == -EPERM) ||
	    FAILS(lite_lmr_lock(ctx, lh, WORD + 1, 1, 0, WAIT_MS) == -EINVAL) ||
	    FAILS(!lite_lmr_lock(other, there, WORD, 1, 0, WAIT_MS)))
		return -EIO;
	return 0;
}

/* Locks and a barrier in an LMR at @node, also from the node of /dev/lite@other. */
int client_locks(struct lite_ctx *ctx, u32 node, unsigned int other)
{
	struct lite_ctx *second = lite_ctx_open(other);
	u64 lh = make(ctx, node), there;
	int err;

	if (FAILS(!IS_ERR(second)))
		return PTR_ERR(second);
	if (!lh || FAILS(!lite_lmr_rename(ctx, lh, NAME)) ||
	    FAILS(!lite_lmr_map(second, NAME, RIGHTS, &there, NULL)))
		return -EIO;
	err = passed(ctx, lh, second, there) ?: locked(ctx, lh, second, there);
	lite_ctx_close(second);
	if (err ||
	    FAILS(lite_lmr_lock(ctx, lh, WORD, 1, 0, WAIT_MS) == -EOWNERDEAD) ||
	    FAILS(!lite_lmr_lock_consistent(ctx, lh, WORD, 1)) ||
	    FAILS(!lite_lmr_unlock(ctx, lh, WORD, 1)) ||
	    FAILS(!lite_lmr_lock(ctx, lh, WORD, 2, LITE_LOCK_SHARED, LITE_NOWAIT)) ||
	    FAILS(!lite_lmr_unlock(ctx, lh, WORD, 2)) ||
	    FAILS(!lite_lmr_free(ctx, lh)))
		return -EIO;
	return 0;
}
