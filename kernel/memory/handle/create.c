// SPDX-License-Identifier: GPL-2.0
/* Creating LMRs, and opening a handle on them. */
#include <linux/slab.h>

#include "core/name.h"
#include "memory/memory.h"
#include "memory/store/payer.h"
#include "ctx.h"

/* Fill a request to create @p, owned by @cred, from node @self. Any context. */
void lite_create_fill(struct lite_wire_create *req, u32 self,
		      const struct lite_cred *cred,
		      const struct lite_lmr_params *p)
{
	u32 i;

	memset(req, 0, sizeof(*req));
	req->length = cpu_to_le64(p->length);
	req->mode = cpu_to_le32(p->mode);
	lite_wire_cred_put(&req->cred, cred);
	req->n_nodes = cpu_to_le32(max(p->n_nodes, 1U));
	req->nodes[0] = cpu_to_le32(self);
	for (i = 0; i < p->n_nodes; i++)
		req->nodes[i] = cpu_to_le32(p->nodes[i] ?: self);
	if (p->name)
		strscpy(req->name, p->name, sizeof(req->name));
}

static int lite_alloc_check(const struct lite_lmr_params *p)
{
	u32 i, j;
	int len;

	if (p->flags & ~LITE_ALLOC_NO_HANDLE)
		return -EOPNOTSUPP;
	if (!p->length || p->mode & ~LITE_MODE_MASK ||
	    p->n_nodes > LITE_SPREAD_MAX)
		return -EINVAL;
	if (p->length > LITE_LMR_SIZE_MAX)
		return -EFBIG;
	for (i = 0; i < p->n_nodes; i++) {
		if (p->nodes[i] > LITE_NODE_ID_MAX)
			return -EINVAL;
		for (j = 0; j < i; j++) {
			if (p->nodes[i] == p->nodes[j])
				return -EINVAL;
		}
	}
	if (p->name) {
		len = lite_name_check(p->name, LITE_NAME_SIZE);
		if (len < 0)
			return len;
	} else if (p->flags & LITE_ALLOC_NO_HANDLE) {
		return -EINVAL; /* nothing could ever refer to it */
	}
	return 0;
}

/* Create an LMR without mapping it. */
static int lite_create_only(struct lite_memory *mem, u32 home,
			    const struct lite_wire_create *req)
{
	struct lite_wire_map_reply *r;
	struct lite_call_desc d = {
		.call = LITE_CALL_LMR_CREATE,
		.req = req,
		.len = sizeof(*req),
		.reply_max = sizeof(*r),
		.timeout = 120 * HZ,
		.killable = true,
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

/**
 * lite_ctx_create - create an LMR and open it
 * @ctx: context
 * @cred: its owner
 * @p: what to create
 * @h: reserved handle to publish; NULL with LITE_ALLOC_NO_HANDLE
 *
 * Context: may sleep; killable.
 * Return: 0 or a negative errno, see LITE_IOC_ALLOC; then @h is still reserved.
 */
int lite_ctx_create(struct lite_ctx *ctx, const struct lite_cred *cred,
		    const struct lite_lmr_params *p, struct lite_handle *h)
{
	struct lite_memory *mem = ctx->mem;
	struct lite_wire_create *req;
	struct lite_payer payer;
	struct lite_user *user;
	struct lite_mapping *m;
	u32 rights;
	u32 home;
	u64 id;
	int err;

	err = lite_alloc_check(p) ?: lite_cluster_ready(mem->cl);
	if (err)
		return err;
	req = kmalloc(sizeof(*req), GFP_KERNEL);
	if (!req)
		return -ENOMEM;
	lite_create_fill(req, lite_cluster_id(mem->cl), cred, p);
	home = le32_to_cpu(req->nodes[0]);
	lite_payer_begin(mem, &payer, home, 0, cred->uid);
	if (p->flags & LITE_ALLOC_NO_HANDLE) {
		err = lite_create_only(mem, home, req);
		goto out;
	}
	user = lite_user_get(ctx, cred);
	if (!user) {
		err = -ENOMEM;
		goto out;
	}
	m = lite_mapping_create(mem, home, req, &id, &rights);
	/* A named LMR was created, and changed before it was mapped. */
	if (m == ERR_PTR(-EAGAIN))
		m = lite_map_id(mem, home, id, NULL, cred, LITE_RIGHTS_ALL,
				&rights);
	err = PTR_ERR_OR_ZERO(m);
	if (err)
		lite_user_put(user);
	else
		err = lite_handle_publish(ctx, h, user, m, rights);
out:
	lite_payer_end(mem, &payer);
	kfree(req);
	return err;
}
