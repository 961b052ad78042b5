// SPDX-License-Identifier: GPL-2.0
/*
 * Growing and shrinking an LMR, at its home: parts are added at the end, or
 * replaced there.
 */
#include "memory/memory.h"
#include "home.h"

static int lite_home_grow(struct lite_replace *r, u64 length)
{
	const struct lite_place *old = r->lmr->place;
	u64 more = round_up(length, PAGE_SIZE) -
		   round_up(old->length, PAGE_SIZE);
	struct lite_share at;
	int err = 0;

	r->first = old->n_parts;
	/*
	 * The rest of the last page belongs to the LMR already, and is zero:
	 * view.c wipes what processes put there.
	 */
	if (more)
		err = lite_share_find(r->lmr->mem,
				      old->part[old->n_parts - 1]->at.node,
				      &at) ?:
		      lite_parts_make(r, &at, more, lite_part_max(more));
	return err ?: lite_replace_apply(r, 0, length);
}

static int lite_home_shrink(struct lite_replace *r, u64 length)
{
	const struct lite_place *old = r->lmr->place;
	const struct lite_part *cut;
	u64 start = 0;
	int err = 0;

	while (start + old->part[r->first]->bytes <= length)
		start += old->part[r->first++]->bytes;
	r->gone = old->n_parts - r->first;
	/* Allocations are freed whole: copy what stays of the part. */
	cut = old->part[r->first];
	if (length > start)
		err = lite_part_check(r->lmr, cut) ?:
		      lite_parts_make(r, &cut->at, length - start, cut->bytes);
	return err ?: lite_replace_apply(r, length - start, length);
}

static int lite_serve_resize(struct lite_lmr *lmr, struct lite_conn *conn,
			     const void *req, void *reply, u32 *reply_len)
{
	const struct lite_wire_resize *s = req;
	u64 length = le64_to_cpu(s->length);
	struct lite_replace r;
	int err;

	err = lite_replace_begin(&r, lmr, conn, &s->change);
	if (err)
		return err;
	if (length > lmr->place->length)
		err = lite_home_grow(&r, length);
	else if (length < lmr->place->length)
		err = lite_home_shrink(&r, length);
	return lite_replace_end(&r, err);
}

void lite_resize_handlers(struct lite_memory *mem)
{
	lite_lmr_handle(mem, LITE_CALL_LMR_RESIZE, lite_serve_resize);
}
