// SPDX-License-Identifier: GPL-2.0
/*
 * Growing and shrinking an LMR, at its home: parts are added at the end, or
 * replaced there. An LMR of a process's memory is refused.
 */
#include <linux/slab.h>

#include "home.h"
#include "replace.h"

static int lite_home_grow(struct lite_replace *r, u64 length)
{
	const struct lite_place *old = r->lmr->place;
	const struct lite_part *last = &old->part[old->n_parts - 1];
	u64 more = length - old->length;
	u64 room = round_up(last->length, PAGE_SIZE) - last->length;
	u64 incarnation;
	int err;

	r->first = old->n_parts;
	/*
	 * The rest of the last page belongs to the LMR already, and is zero:
	 * view.c wipes what processes put there.
	 */
	r->widen = min(room, more);
	if (more > room) {
		err = lite_node_incarnation(r->lmr->mem, last->node,
					    &incarnation);
		if (!err)
			err = lite_parts_make(r->lmr, &r->parts, &r->n,
					      last->node, incarnation,
					      more - room);
		if (err)
			return err;
	}
	return lite_replace_apply(r, 0);
}

static int lite_home_shrink(struct lite_replace *r, u64 length)
{
	const struct lite_place *old = r->lmr->place;
	const struct lite_part *cut;
	u64 start = 0;
	u64 keep;
	int err;

	while (start + old->part[r->first].length <= length)
		start += old->part[r->first++].length;
	r->gone = old->n_parts - r->first;
	keep = length - start;
	if (!keep)
		return lite_replace_apply(r, 0);
	/* Allocations are freed whole: copy what stays of the part. */
	cut = &old->part[r->first];
	err = lite_part_check(r->lmr, cut);
	if (err)
		return err;
	r->parts = kvcalloc(1, sizeof(*r->parts), GFP_KERNEL);
	if (!r->parts)
		return -ENOMEM;
	r->n = 1;
	err = lite_part_make(r->lmr, r->parts, cut->node, cut->incarnation,
			     keep);
	return err ?: lite_replace_apply(r, keep);
}

static int lite_serve_resize(void *priv, struct lite_conn *conn,
			     const void *req, u32 len, void *reply,
			     u32 *reply_len)
{
	const struct lite_wire_resize *s = req;
	struct lite_replace r = {};
	u64 length = le64_to_cpu(s->length);
	int err = 0;

	r.lmr = lite_change_open(priv, conn, &s->change);
	if (IS_ERR(r.lmr))
		return PTR_ERR(r.lmr);
	if (r.lmr->registered || length == r.lmr->place->length) {
		err = r.lmr->registered ? -EOPNOTSUPP : 0;
		lite_change_end(r.lmr);
		goto out;
	}
	err = length > r.lmr->place->length ? lite_home_grow(&r, length) :
					      lite_home_shrink(&r, length);
	if (err)
		lite_replace_fail(&r);
	err = lite_change_error(r.lmr, err);
	kvfree(r.parts);
out:
	lite_lmr_put(r.lmr);
	return err;
}

void lite_resize_handlers(struct lite_memory *mem)
{
	lite_kcall_handle(mem->cl->rpc, LITE_CALL_LMR_RESIZE, lite_serve_resize,
			  mem);
}
