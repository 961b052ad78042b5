// SPDX-License-Identifier: GPL-2.0
/* Creating LMRs, and opening a handle on them. */
#include <linux/slab.h>

#include "core/name.h"
#include "memory/memory.h"
#include "memory/store/payer.h"
#include "ctx.h"

/*
 * Fill a request to create an LMR on node @self, owned by @cred. @name: checked;
 * empty: anonymous. Any context.
 */
void lite_create_fill(struct lite_wire_create *req, u32 self,
		      const struct lite_cred *cred, const char *name,
		      u64 length, u32 mode)
{
	memset(req, 0, sizeof(*req));
	req->length = cpu_to_le64(length);
	req->mode = cpu_to_le32(mode);
	lite_wire_cred_put(&req->cred, cred);
	req->n_nodes = cpu_to_le32(1);
	req->nodes[0] = cpu_to_le32(self);
	strscpy(req->name, name, sizeof(req->name));
}

static int lite_alloc_check(const struct lite_ioc_alloc *a, const u32 *nodes)
{
	u32 i, j;
	int len;

	if (!a->length || a->mode & ~LITE_MODE_MASK)
		return -EINVAL;
	if (a->length > LITE_LMR_SIZE_MAX)
		return -EFBIG;
	for (i = 0; i < a->n_nodes; i++) {
		if (nodes[i] > LITE_NODE_ID_MAX)
			return -EINVAL;
		for (j = 0; j < i; j++) {
			if (nodes[i] == nodes[j])
				return -EINVAL;
		}
	}
	/* Without name and handle nothing could ever refer to it. */
	if (!a->name[0])
		return a->flags & LITE_ALLOC_NO_HANDLE ? -EINVAL : 0;
	len = lite_name_check(a->name, LITE_NAME_SIZE);
	return len < 0 ? len : 0;
}

/* Create an LMR without mapping it. */
static int lite_create_only(struct lite_memory *mem, u32 home,
			    const struct lite_wire_create *req,
			    struct lite_payer *payer)
{
	struct lite_wire_map_reply *r;
	struct lite_call_desc d = {
		.call = LITE_CALL_LMR_CREATE,
		.req = req,
		.len = sizeof(*req),
		.reply_max = sizeof(*r),
		.timeout = 120 * HZ,
		.killable = true,
		.held = &payer->ref,
		.release = lite_payer_release,
	};
	int err;

	r = kmalloc(sizeof(*r), GFP_KERNEL);
	if (!r)
		return -ENOMEM;
	d.reply = r;
	err = lite_cluster_call_once(mem->cl, home, &d);
	kfree(r);
	return lite_home_error(mem, home, err);
}

static int lite_create_open(struct lite_ctx *ctx, u32 home,
			    struct lite_wire_create *req,
			    const struct lite_cred *cred,
			    struct lite_payer *payer, u64 *lh)
{
	struct lite_handle *h = lite_handle_reserve(ctx, cred);
	struct lite_mapping *m;
	u32 rights = 0;
	u64 id;

	if (IS_ERR(h))
		return PTR_ERR(h);
	m = lite_mapping_create(ctx->mem, home, req, payer, &id, &rights);
	/* A named LMR was created, and changed before it was mapped. */
	if (m == ERR_PTR(-EAGAIN))
		m = lite_map_id(ctx->mem, home, id, NULL, cred,
				LITE_RIGHTS_ALL, &rights);
	return lite_handle_publish(ctx, h, m, rights, lh);
}

/**
 * lite_ctx_create - create an LMR and open it
 * @ctx: context
 * @cred: its owner
 * @a: what to create; its @lh is set, unless LITE_ALLOC_NO_HANDLE is
 * @nodes: node ids in place of @a->nodes, LITE_SPREAD_MAX at most
 *
 * Context: may sleep; killable.
 * Return: 0 or a negative errno, see LITE_IOC_ALLOC.
 */
int lite_ctx_create(struct lite_ctx *ctx, const struct lite_cred *cred,
		    struct lite_ioc_alloc *a, const u32 *nodes)
{
	struct lite_memory *mem = ctx->mem;
	struct lite_wire_create *req;
	struct lite_payer *payer;
	u32 self, home;
	int err;
	u32 i;

	err = lite_alloc_check(a, nodes) ?: lite_cluster_ready(mem->cl);
	if (err)
		return err;
	req = kmalloc(sizeof(*req), GFP_KERNEL);
	if (!req)
		return -ENOMEM;
	self = lite_cluster_id(mem->cl);
	lite_create_fill(req, self, cred, a->name, a->length, a->mode);
	for (i = 0; i < a->n_nodes; i++)
		req->nodes[i] = cpu_to_le32(nodes[i] ?: self);
	req->n_nodes = cpu_to_le32(max(a->n_nodes, 1U));
	home = le32_to_cpu(req->nodes[0]);
	payer = lite_payer_begin(mem, home, cred->uid);
	err = a->flags & LITE_ALLOC_NO_HANDLE ?
		      lite_create_only(mem, home, req, payer) :
		      lite_create_open(ctx, home, req, cred, payer, &a->lh);
	lite_payer_end(payer);
	kfree(req);
	return err;
}
