// SPDX-License-Identifier: GPL-2.0
/*
 * Opening LMRs by name, and making them: of new memory (LITE_IOC_ALLOC), or of a process's memory
 * (LITE_IOC_REGISTER: pinned, part of an arena, or unpinned).
 *
 * Registered memory becomes the only part of an LMR at home here. The LMR is like any other (its
 * pages are released only after all mappings have let go), but is never resized or moved, as that
 * would give it other memory. It ends with the context that made it, named or not, so that a
 * process leaves no locked memory behind. The context lists what it has registered; freeing the
 * memory takes it off the list.
 */
#include <linux/slab.h>

#include "core/name.h"
#include "memory/home/home.h"
#include "memory/memory.h"
#include "memory/store/store.h"
#include "memory/unpinned/unpinned.h"
#include "ctx.h"

/* lite_mapping_by_id(), but waits while the LMR is being changed. */
static struct lite_mapping *lite_map_id(struct lite_memory *mem, u32 home, u64 id, const char *name,
					const struct lite_cred *cred, u32 rights, u32 *granted)
{
	struct lite_mapping *m;
	int err;

	for (;;) {
		m = lite_mapping_by_id(mem, home, id, name, cred, rights, granted);
		if (m != ERR_PTR(-EBUSY))
			return m;
		err = lite_mapping_await(mem, home, id);
		if (err)
			return ERR_PTR(err);
	}
}

/*
 * Map an LMR by name: from the cache of names; or through the directory, which maps it if it is
 * also the home; or by asking all homes.
 */
static struct lite_mapping *lite_map_name(struct lite_memory *mem, const char *name,
					  struct lite_user *user, u32 rights)
{
	struct lite_name_search at = { .name = name, .ask_all = true };
	struct lite_mapping *m;
	int err = lite_cluster_ready(mem->cl);

	if (err)
		return ERR_PTR(err);
	m = lite_name_cache_find(mem, name, user, rights);
	if (m)
		return m;
	m = lite_mapping_open(mem, name, &user->cred, rights, &at.home, &at.id);
	err = PTR_ERR_OR_ZERO(m);
	at.tries = !err || err == -EACCES || err == -EINTR;
	if (!m)
		m = lite_map_id(mem, at.home, at.id, name, &user->cred, rights, NULL);
	at.err = PTR_ERR_OR_ZERO(m);
	while (lite_name_search(mem, &at)) {
		m = lite_map_id(mem, at.home, at.id, name, &user->cred, rights, NULL);
		at.err = PTR_ERR_OR_ZERO(m);
	}
	if (at.err)
		return ERR_PTR(at.err);
	lite_name_cache_add(mem, name, user, rights, m);
	return m;
}

/*
 * Open an LMR by name, which is checked, for a user. @rights: LITE_RIGHT_* wanted, at least one.
 * @lh: set to the handle; @length: to the LMR's bytes. May sleep; killable. Return: 0 or a negative
 * errno, see LITE_IOC_MAP.
 */
int lite_ctx_map(struct lite_ctx *ctx, const struct lite_cred *cred, const char *name, u32 rights,
		 u64 *lh, u64 *length)
{
	struct lite_mapping *m;
	struct lite_handle *h;

	if (!rights)
		return -EINVAL;
	if (rights & ~LITE_RIGHTS_ALL)
		return -EOPNOTSUPP;
	h = lite_handle_reserve(ctx, cred);
	if (IS_ERR(h))
		return PTR_ERR(h);
	m = lite_map_name(ctx->mem, name, h->user, rights);
	if (!IS_ERR(m))
		*length = m->length;
	return lite_handle_publish(ctx, h, m, rights, lh);
}

/* A request to create an LMR on node @self, owned by @cred, or NULL. @name: empty if anonymous. */
static struct lite_wire_create *lite_create_new(u32 self, const struct lite_cred *cred,
						const char *name, u64 length, u32 mode)
{
	struct lite_wire_create *req = kzalloc(sizeof(*req), GFP_KERNEL);

	if (!req)
		return NULL;
	req->length = cpu_to_le64(length);
	req->mode = cpu_to_le32(mode);
	lite_wire_cred_put(&req->cred, cred);
	req->n_nodes = cpu_to_le32(1);
	req->nodes[0] = cpu_to_le32(self);
	strscpy(req->name, name, sizeof(req->name));
	return req;
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

static int lite_create_open(struct lite_ctx *ctx, u32 home, struct lite_wire_create *req,
			    const struct lite_cred *cred, struct lite_payer *payer, u64 *lh)
{
	struct lite_handle *h = lite_handle_reserve(ctx, cred);
	struct lite_mapping *m;
	u32 rights = 0;
	u64 id;

	if (IS_ERR(h))
		return PTR_ERR(h);
	m = lite_mapping_create(ctx->mem, home, req, payer, &id, &rights);
	if (!m)
		m = lite_map_id(ctx->mem, home, id, NULL, cred, LITE_RIGHTS_ALL, &rights);
	return lite_handle_publish(ctx, h, m, rights, lh);
}

/*
 * Create an LMR that @cred owns and, unless LITE_ALLOC_NO_HANDLE is set, open it, which sets
 * @a->lh. @nodes: node ids in place of @a->nodes, LITE_SPREAD_MAX at most. May sleep; killable.
 * Return: 0 or a negative errno, see LITE_IOC_ALLOC.
 */
int lite_ctx_create(struct lite_ctx *ctx, const struct lite_cred *cred, struct lite_ioc_alloc *a,
		    const u32 *nodes)
{
	struct lite_memory *mem = ctx->mem;
	struct lite_wire_create *req;
	struct lite_payer *payer;
	u32 self, home, i, rights;
	int err;
	u64 id;

	err = lite_alloc_check(a, nodes) ?: lite_cluster_ready(mem->cl);
	if (err)
		return err;
	self = lite_cluster_id(mem->cl);
	req = lite_create_new(self, cred, a->name, a->length, a->mode);
	if (!req)
		return -ENOMEM;
	for (i = 0; i < a->n_nodes; i++)
		req->nodes[i] = cpu_to_le32(nodes[i] ?: self);
	req->n_nodes = cpu_to_le32(max(a->n_nodes, 1U));
	home = le32_to_cpu(req->nodes[0]);
	req->map = cpu_to_le32(!(a->flags & LITE_ALLOC_NO_HANDLE));
	payer = lite_payer_begin(mem, home, cred->uid);
	err = req->map ? lite_create_open(ctx, home, req, cred, payer, &a->lh) :
			 PTR_ERR_OR_ZERO(lite_mapping_create(mem, home, req, payer, &id, &rights));
	lite_payer_end(payer);
	kfree(req);
	return err;
}

static int lite_register_check(const struct lite_memory *mem, const struct lite_ioc_register *r)
{
	int len = r->name[0] ? lite_name_check(r->name, sizeof(r->name)) : 0;

	if (len < 0)
		return len;
	if (!r->length || !PAGE_ALIGNED(r->length) || !PAGE_ALIGNED(r->addr) ||
	    r->mode & ~LITE_MODE_MASK)
		return -EINVAL;
	if (r->flags && !mem->may_unpin)
		return -EOPNOTSUPP;
	if (r->flags == LITE_REGISTER_LEASED)
		return -EINVAL;
	if (r->flags && r->length > LITE_UNPINNED_MAX)
		return -EFBIG;
	return r->length > LITE_LMR_SIZE_MAX ? -EFBIG : 0;
}

/* Memory of a process: unpinned, pinned, or part of an arena. */
struct lite_register_from {
	struct lite_unpinned *unpinned; /* or NULL */
	struct lite_pinned *pin;        /* or NULL */
	struct lite_arena_range range;
};

static void lite_register_drop(struct lite_register_from *from)
{
	if (from->unpinned)
		lite_unpinned_drop(from->unpinned);
	if (from->pin)
		lite_pinned_release(from->pin);
	lite_arena_range_put(&from->range);
}

/* Find, pin or note the memory. Return: 0; -ENODEV: the node stopped meanwhile; another errno. */
static int lite_register_take(struct lite_memory *mem, const struct lite_ioc_register *r,
			      struct lite_gate *gate, struct lite_register_from *from)
{
	int err;

	/* This may wait for locks of the process's memory, and does not touch the node. */
	lite_gate_leave(gate);
	*from = (struct lite_register_from){};
	if (r->flags & LITE_REGISTER_UNPINNED) {
		from->unpinned = lite_unpinned_new(mem, r->addr, r->length,
						   r->flags & LITE_REGISTER_LEASED);
		err = PTR_ERR_OR_ZERO(from->unpinned);
	} else {
		err = lite_arena_find(mem, r->addr, r->length, &from->range);
		if (!err && !from->range.file) {
			from->pin = lite_pinned_new(mem, r->addr, r->length);
			err = PTR_ERR_OR_ZERO(from->pin);
		}
	}
	if (lite_gate_enter(gate))
		return err;
	if (!err)
		lite_register_drop(from);
	return -ENODEV;
}

/* Enter the memory in the lists of the node; drop it on failure. */
static int lite_register_enter(struct lite_ctx *ctx, u32 uid, struct lite_register_from *from,
			       struct lite_origin *origin)
{
	struct lite_memory *mem = ctx->mem;
	struct lite_alloc *alloc;
	int err;

	if (from->unpinned) {
		origin->unpinned = from->unpinned;
		err = lite_unpinned_enter(from->unpinned, uid, &ctx->registered);
		if (err)
			lite_unpinned_drop(from->unpinned);
		return err;
	}
	alloc = from->pin ? lite_pinned_adopt(mem, from->pin, uid) :
			    lite_arena_adopt(mem, &from->range, uid);
	lite_arena_range_put(&from->range);
	if (IS_ERR(alloc))
		return PTR_ERR(alloc);
	origin->alloc = alloc;
	/* This thread's reference keeps it until it is listed. */
	write_lock(&mem->runs_lock);
	list_add(&alloc->reg.list, &ctx->registered);
	write_unlock(&mem->runs_lock);
	return 0;
}

static struct lite_lmr *lite_register_lmr(struct lite_ctx *ctx, const struct lite_cred *cred,
					  const struct lite_ioc_register *r, struct lite_gate *gate)
{
	struct lite_memory *mem = ctx->mem;
	struct lite_origin origin = {};
	struct lite_register_from from;
	struct lite_wire_create *req;
	struct lite_lmr *lmr;
	unsigned long life;
	int err;

	err = lite_register_take(mem, r, gate, &from);
	if (err)
		return ERR_PTR(err);
	/* Read only now, as pinning may have taken long. */
	life = lite_cluster_life(mem->cl);
	req = lite_create_new(lite_cluster_id(mem->cl), cred, r->name, r->length, r->mode);
	err = req ? lite_cluster_ready(mem->cl) : -ENOMEM;
	if (err)
		lite_register_drop(&from);
	else
		err = lite_register_enter(ctx, cred->uid, &from, &origin);
	lmr = err ? ERR_PTR(err) : lite_home_create(mem, NULL, req, &origin, life, NULL);
	kfree(req);
	lite_store_free(origin.alloc);
	return lmr;
}

/*
 * Make an LMR, owned by @cred, of memory of the current process, and open it, which sets @r->lh.
 * Shutting @ctx frees it. @gate: of the call. May sleep; killable. Return: 0 or a negative errno,
 * see LITE_IOC_REGISTER.
 */
int lite_ctx_register(struct lite_ctx *ctx, const struct lite_cred *cred,
		      struct lite_ioc_register *r, struct lite_gate *gate)
{
	struct lite_memory *mem = ctx->mem;
	struct lite_mapping *m;
	struct lite_handle *h;
	struct lite_lmr *lmr;
	u32 rights = 0;
	int err;

	err = lite_register_check(mem, r) ?: lite_cluster_ready(mem->cl);
	if (err)
		return err;
	h = lite_handle_reserve(ctx, cred);
	if (IS_ERR(h))
		return PTR_ERR(h);
	lmr = lite_register_lmr(ctx, cred, r, gate);
	if (IS_ERR(lmr))
		return lite_handle_publish(ctx, h, ERR_CAST(lmr), 0, &r->lh);
	m = lite_map_id(mem, lite_cluster_id(mem->cl), lmr->id, NULL, cred, LITE_RIGHTS_ALL,
			&rights);
	err = lite_handle_publish(ctx, h, m, rights, &r->lh);
	if (err)
		lite_home_free(lmr);
	lite_lmr_put(lmr);
	return err;
}

/* Free all that was registered through a context that is shut. May sleep; waits for all mappers. */
void lite_ctx_unregister(struct lite_ctx *ctx)
{
	struct lite_registered *reg;
	struct lite_lmr *lmr;
	u64 id;

	for (;;) {
		write_lock(&ctx->mem->runs_lock);
		reg = list_first_entry_or_null(&ctx->registered, struct lite_registered, list);
		if (reg) {
			list_del_init(&reg->list);
			id = reg->lmr;
		}
		write_unlock(&ctx->mem->runs_lock);
		if (!reg)
			return;
		lmr = lite_lmr_get(ctx->mem, id);
		if (lmr) {
			lite_home_free(lmr);
			lite_lmr_put(lmr);
		}
	}
}
