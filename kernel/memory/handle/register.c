// SPDX-License-Identifier: GPL-2.0
/*
 * LITE_IOC_REGISTER: make an LMR of memory that a process has (pinned.c).
 *
 * The memory becomes the only part of an LMR at home here. The LMR is like any
 * other (its pages are released only after all mappers have let go), but never
 * resized or moved (move.c), as that would give it other memory.
 *
 * It ends with the context that made it, named or not, so that a process leaves
 * no locked memory behind. The context lists what it has registered; freeing
 * the memory takes it off the list.
 */
#include <linux/slab.h>

#include "core/name.h"
#include "memory/home/home.h"
#include "memory/memory.h"
#include "memory/store/store.h"
#include "ctx.h"

static int lite_register_check(const struct lite_ioc_register *r)
{
	int len = r->name[0] ? lite_name_check(r->name, sizeof(r->name)) : 0;

	if (len < 0)
		return len;
	if (!r->length || !PAGE_ALIGNED(r->length) || !PAGE_ALIGNED(r->addr) ||
	    r->mode & ~LITE_MODE_MASK)
		return -EINVAL;
	return r->length > LITE_LMR_SIZE_MAX ? -EFBIG : 0;
}

static struct lite_lmr *lite_register_lmr(struct lite_ctx *ctx,
					  const struct lite_cred *cred,
					  const struct lite_ioc_register *r,
					  struct lite_pinned *pin,
					  unsigned long life)
{
	struct lite_memory *mem = ctx->mem;
	struct lite_wire_create *req;
	struct lite_alloc *alloc, *taken;
	struct lite_lmr *lmr;

	alloc = lite_pinned_adopt(mem, pin, cred->uid);
	if (IS_ERR(alloc))
		return ERR_CAST(alloc);
	lmr = ERR_PTR(-ENOMEM);
	req = kmalloc(sizeof(*req), GFP_KERNEL);
	if (req) {
		lite_create_fill(req, alloc->home, cred, r->name, r->length,
				 r->mode);
		lmr = lite_home_create(mem, NULL, req, alloc, life, NULL);
		kfree(req);
	}
	/* Unless that has already released the part. */
	if (IS_ERR(lmr)) {
		taken = lite_store_take(mem, alloc->id, alloc->home);
		if (taken)
			lite_store_free(mem, taken);
	}
	lite_store_free(mem, alloc);
	return lmr;
}

/* Pin the memory; -ENODEV: the node stopped meanwhile. */
static struct lite_pinned *lite_register_pin(struct lite_memory *mem,
					     const struct lite_ioc_register *r,
					     struct lite_gate *gate)
{
	struct lite_pinned *pin;

	lite_gate_leave(gate);
	pin = lite_pinned_new(mem, r->addr, r->length);
	if (lite_gate_enter(gate))
		return pin;
	if (!IS_ERR(pin))
		lite_pinned_release(pin);
	return ERR_PTR(-ENODEV);
}

/**
 * lite_ctx_register - make an LMR of memory of the current process, and open it
 * @ctx: context; the LMR is freed when it is shut
 * @cred: its owner
 * @r: what to register; its @lh is set
 * @gate: of the call
 *
 * Context: may sleep; killable.
 * Return: 0 or a negative errno, see LITE_IOC_REGISTER.
 */
int lite_ctx_register(struct lite_ctx *ctx, const struct lite_cred *cred,
		      struct lite_ioc_register *r, struct lite_gate *gate)
{
	struct lite_memory *mem = ctx->mem;
	struct lite_pinned *pin;
	struct lite_mapping *m;
	struct lite_handle *h;
	struct lite_lmr *lmr;
	unsigned long life;
	u32 rights = 0;
	int err;

	err = lite_register_check(r) ?: lite_cluster_ready(mem->cl);
	if (err)
		return err;
	h = lite_handle_reserve(ctx, cred);
	if (IS_ERR(h))
		return PTR_ERR(h);
	pin = lite_register_pin(mem, r, gate);
	if (IS_ERR(pin)) {
		err = PTR_ERR(pin);
		goto err_cancel;
	}
	/* Pinning may have taken long. */
	life = lite_cluster_life(mem->cl);
	err = lite_cluster_ready(mem->cl);
	if (err) {
		lite_pinned_release(pin);
		goto err_cancel;
	}
	/* Before the LMR can be freed, which takes it off the list. */
	write_lock(&mem->runs_lock);
	list_add(&pin->list, &ctx->pinned);
	write_unlock(&mem->runs_lock);
	lmr = lite_register_lmr(ctx, cred, r, pin, life);
	if (IS_ERR(lmr)) {
		err = PTR_ERR(lmr);
		goto err_cancel;
	}
	m = lite_map_id(mem, lite_cluster_id(mem->cl), lmr->id, NULL, cred,
			LITE_RIGHTS_ALL, &rights);
	err = lite_handle_publish(ctx, h, m, rights, &r->lh);
	if (err)
		lite_home_free(lmr);
	lite_lmr_put(lmr);
	return err;

err_cancel:
	lite_handle_cancel(ctx, h);
	return err;
}

/*
 * Free all that was registered through a context, with nothing more to come.
 * May sleep; waits for all mappers.
 */
void lite_ctx_unregister(struct lite_ctx *ctx)
{
	struct lite_pinned *pin;
	struct lite_lmr *lmr;
	u64 id;

	for (;;) {
		write_lock(&ctx->mem->runs_lock);
		pin = list_first_entry_or_null(&ctx->pinned, struct lite_pinned,
					       list);
		if (pin) {
			list_del_init(&pin->list);
			id = pin->lmr;
		}
		write_unlock(&ctx->mem->runs_lock);
		if (!pin)
			return;
		lmr = lite_lmr_get(ctx->mem, id);
		if (lmr) {
			lite_home_free(lmr);
			lite_lmr_put(lmr);
		}
	}
}
