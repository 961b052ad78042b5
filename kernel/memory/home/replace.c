// SPDX-License-Identifier: GPL-2.0
/*
 * Replacing parts of an LMR, at its home.
 *
 * New parts are made first, by the caller; then the LMR is closed, bytes that
 * stay are copied, and it gets its new place; then old parts are freed. If
 * anything fails it keeps the old place. While an LMR is closed no mapper has an
 * operation in flight on it and the home grants no MAP (change.c), so nothing
 * reads or writes what is copied.
 */
#include <linux/slab.h>

#include "home.h"
#include "replace.h"

/* Limit for one call to copy. */
#define LITE_COPY_TIMEOUT (60 * HZ)
/* Bytes copied per call. */
#define LITE_COPY_CALL_BYTES (4ULL << 20)

/* ---- copying ------------------------------------------------------------- */

/*
 * Can a part be copied? Checked before anything is made and users have to wait.
 * Its node may have lost it with its incarnation: -ESTALE.
 */
int lite_part_check(struct lite_lmr *lmr, const struct lite_part *part)
{
	u64 incarnation;
	int err = lite_node_incarnation(lmr->mem, part->node, &incarnation);

	if (err)
		return err;
	return incarnation == part->incarnation ? 0 : -ESTALE;
}

/* Session to copy @from to @to in; 0: both are on one node. */
static int lite_part_session(struct lite_lmr *lmr, const struct lite_part *from,
			     const struct lite_part *to, u64 *session)
{
	struct lite_wire_mem_session req = {
		.node = cpu_to_le32(to->node),
		.incarnation = cpu_to_le64(to->incarnation),
	};
	struct lite_wire_mem_session_reply reply;
	struct lite_call_desc d = {
		.call = LITE_CALL_MEM_SESSION,
		.req = &req,
		.len = sizeof(req),
		.reply = &reply,
		.reply_max = sizeof(reply),
		.life = from->incarnation,
	};
	int err;

	*session = 0;
	if (from->node == to->node)
		return 0;
	err = lite_cluster_call_patiently(lmr->mem->cl, from->node, &d);
	if (!err)
		*session = le64_to_cpu(reply.session);
	return err;
}

/* Have the node with @from copy as @req says. Not retried: see copy.c. */
static int lite_part_copy_call(struct lite_lmr *lmr,
			       const struct lite_part *from,
			       struct lite_wire_mem_copy *req, u64 offset)
{
	struct lite_call_desc d = {
		.call = LITE_CALL_MEM_COPY,
		.req = req,
		.len = struct_size(req, extent, le32_to_cpu(req->count)),
		.life = from->incarnation,
		.timeout = LITE_COPY_TIMEOUT,
	};

	req->offset = cpu_to_le64(offset);
	return lite_cluster_call(lmr->mem->cl, from->node, &d);
}

/* Fill @to from @from, beginning at @offset in @from. */
static int lite_part_copy(struct lite_lmr *lmr, const struct lite_part *from,
			  u64 offset, const struct lite_part *to)
{
	struct lite_wire_mem_copy *req;
	u64 left = to->length, in = 0;
	u64 session;
	u32 x = 0;
	int err;

	err = lite_part_session(lmr, from, to, &session);
	if (err)
		return err;
	req = kzalloc(LITE_PAYLOAD_MAX, GFP_KERNEL);
	if (!req)
		return -ENOMEM;
	req->id = cpu_to_le64(from->alloc);
	req->node = cpu_to_le32(to->node);
	req->session = cpu_to_le64(session);
	req->to = cpu_to_le64(to->alloc);
	while (left && !err) {
		u64 bytes = 0;
		u32 n = 0;

		while (left && n < LITE_COPY_EXTENTS_MAX &&
		       bytes < LITE_COPY_CALL_BYTES) {
			const struct lite_extent *e = &to->extents[x];
			u64 run = min3(left, e->length - in,
				       LITE_COPY_CALL_BYTES - bytes);

			req->extent[n].addr = cpu_to_le64(e->addr + in);
			req->extent[n++].length_share =
				lite_wire_length_share(run, 0);
			left -= run;
			bytes += run;
			in += run;
			if (in == e->length) {
				in = 0;
				x++;
			}
		}
		req->count = cpu_to_le32(n);
		err = lite_part_copy_call(lmr, from, req, offset);
		offset += bytes;
	}
	kfree(req);
	return err;
}

/* ---- replacing ----------------------------------------------------------- */

/* The place that the LMR would have. */
static struct lite_place *lite_replace_place(const struct lite_replace *r)
{
	const struct lite_place *old = r->lmr->place;
	u32 after = old->n_parts - r->first - r->gone;
	u32 n = r->first + r->n + after;
	struct lite_place *place;
	struct lite_part *all;

	all = kvcalloc(n, sizeof(*all), GFP_KERNEL);
	if (!all)
		return ERR_PTR(-ENOMEM);
	memcpy(all, old->part, r->first * sizeof(*all));
	if (r->widen)
		all[r->first - 1].length += r->widen;
	if (r->n)
		memcpy(all + r->first, r->parts, r->n * sizeof(*all));
	memcpy(all + r->first + r->n, old->part + r->first + r->gone,
	       after * sizeof(*all));
	place = lite_place_new(r->lmr, all, n);
	kvfree(all);
	return place;
}

/* Switch to the new place, open the LMR, free the old parts. */
static void lite_replace_done(const struct lite_replace *r,
			      struct lite_place *place)
{
	struct lite_lmr *lmr = r->lmr;
	struct lite_place *old = lmr->place;

	mutex_lock(&lmr->lock);
	lmr->place = place;
	mutex_unlock(&lmr->lock);
	/* Before a grow can bring these bytes back, zeroed. */
	if (place->length < old->length)
		lmr->mem->ops->lmr_cut(lmr->mem->priv, lmr->id, place->length);
	lite_change_end(lmr);
	lite_parts_release(lmr, old->part + r->first, r->gone, 0);
	lite_place_free(old);
}

/*
 * Close the LMR, copy the first @keep bytes of the part at @first into the new
 * parts, and switch.
 */
int lite_replace_apply(struct lite_replace *r, u64 keep)
{
	struct lite_lmr *lmr = r->lmr;
	const struct lite_part *from = &lmr->place->part[r->first];
	struct lite_place *place;
	u64 offset = 0; /* in @from, which may not exist if @keep is 0 */
	u32 i;
	int err;

	place = lite_replace_place(r);
	if (IS_ERR(place))
		return PTR_ERR(place);
	err = lite_change_close(lmr);
	for (i = 0; i < r->n && offset < keep && !err; i++) {
		r->copying = true;
		err = lite_part_copy(lmr, from, offset, &r->parts[i]);
		offset += r->parts[i].length;
	}
	if (!err) {
		lite_replace_done(r, place);
		return 0;
	}
	lite_place_free(place);
	return err;
}

/* Give up: release the new parts. */
void lite_replace_fail(struct lite_replace *r)
{
	const struct lite_place *old = r->lmr->place;
	/* The source may not have heard that the copy was given up. */
	u32 source = r->copying ? old->part[r->first].node : 0;

	lite_change_end(r->lmr);
	lite_parts_release(r->lmr, r->parts, r->n, source);
}

/*
 * The caller would take a store's error for one of the home or the LMR. -ENOENT
 * remains for an LMR that is being freed.
 */
int lite_change_error(const struct lite_lmr *lmr, int err)
{
	if (err && READ_ONCE(lmr->dying))
		return -ENOENT;
	return err == -EHOSTUNREACH || err == -ENOENT ? -EHOSTDOWN : err;
}
