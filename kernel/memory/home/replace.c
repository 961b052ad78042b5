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

#include "memory/memory.h"
#include "home.h"

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
	struct lite_share now;
	int err = lite_share_find(lmr->mem, part->at.node, &now);

	if (err)
		return err;
	return lite_share_is(&now, &part->at) ? 0 : -ESTALE;
}

/* Session to copy @from to @to in; 0: both are on one node. */
static int lite_part_session(struct lite_lmr *lmr, const struct lite_part *from,
			     const struct lite_part *to, u64 *session)
{
	struct lite_wire_mem_session req = {
		.node = cpu_to_le32(to->at.node),
		.incarnation = cpu_to_le64(to->at.incarnation),
	};
	struct lite_wire_mem_session_reply reply;
	struct lite_call_desc d = {
		.call = LITE_CALL_MEM_SESSION,
		.req = &req,
		.len = sizeof(req),
		.reply = &reply,
		.reply_max = sizeof(reply),
		.life = from->at.incarnation,
	};
	int err;

	*session = 0;
	if (from->at.node == to->at.node)
		return 0;
	err = lite_cluster_call_patiently(lmr->mem->cl, from->at.node, &d);
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
		.uid = lmr->acl.uid,
		.life = from->at.incarnation,
		.timeout = LITE_COPY_TIMEOUT,
	};

	req->offset = cpu_to_le64(offset);
	return lite_cluster_call(lmr->mem->cl, from->at.node, &d);
}

/* Copy @left bytes of @from, beginning at @offset, to the beginning of @to. */
static int lite_part_copy(struct lite_lmr *lmr, const struct lite_part *from,
			  u64 offset, const struct lite_part *to, u64 left)
{
	struct lite_wire_mem_copy *req;
	u64 in = 0;
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
	req->node = cpu_to_le32(to->at.node);
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

/**
 * lite_replace_begin - begin to replace parts, as a master requests
 * @r: to fill
 * @lmr: LMR
 * @conn: session with the requester; NULL: this node
 * @c: head of the request
 *
 * Context: may sleep; killable.
 * Return: 0, for lite_replace_end(); -EOPNOTSUPP: an LMR of a process's memory,
 * which it keeps; errnos of lite_change_open().
 */
int lite_replace_begin(struct lite_replace *r, struct lite_lmr *lmr,
		       struct lite_conn *conn, const struct lite_wire_change *c)
{
	int err = lite_change_open(lmr, conn, c);

	*r = (struct lite_replace){ .lmr = lmr };
	INIT_LIST_HEAD(&r->parts);
	if (err || !lmr->registered)
		return err;
	lite_change_end(lmr);
	return -EOPNOTSUPP;
}

/* Switch to the new place, open the LMR, free the old parts. */
static void lite_replace_switch(struct lite_replace *r,
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
	r->done = true;
	lite_change_end(lmr);
	lite_place_release(lmr, old, r->first, r->gone);
	lite_place_free(lmr, old);
}

/*
 * Close the LMR, copy the first @keep bytes of the part at @first into the new
 * parts, and switch to a place of @length bytes.
 */
int lite_replace_apply(struct lite_replace *r, u64 keep, u64 length)
{
	struct lite_lmr *lmr = r->lmr;
	const struct lite_part *from, *to;
	struct lite_place *place;
	u64 offset = 0;
	int err;

	place = lite_place_new(r, length);
	if (IS_ERR(place))
		return PTR_ERR(place);
	err = lite_change_close(lmr);
	list_for_each_entry(to, &r->parts, list) {
		if (err || offset >= keep)
			break;
		r->copying = true;
		from = lmr->place->part[r->first];
		err = lite_part_copy(lmr, from, offset, to,
				     min(to->bytes, keep - offset));
		offset += to->bytes;
	}
	if (err)
		lite_place_free(lmr, place);
	else
		lite_replace_switch(r, place);
	return err;
}

/**
 * lite_replace_end - end what lite_replace_begin() began
 * @r: if it is not done, its new parts are released
 * @err: result so far
 *
 * Context: may sleep; makes leaf calls.
 * Return: @err for the caller, which would take a store's error for one of the
 * home or the LMR. -ENOENT remains for an LMR that is being freed.
 */
int lite_replace_end(struct lite_replace *r, int err)
{
	struct lite_lmr *lmr = r->lmr;
	u32 source = 0;

	if (!r->done) {
		/* It may not have heard that the copy was given up. */
		if (r->copying)
			source = lmr->place->part[r->first]->at.node;
		lite_change_end(lmr);
		lite_parts_release(lmr, &r->parts, source);
	}
	if (err && READ_ONCE(lmr->dying))
		return -ENOENT;
	return err == -EHOSTUNREACH || err == -ENOENT ? -EHOSTDOWN : err;
}
