// SPDX-License-Identifier: GPL-2.0
/*
 * Moving a range of an LMR to another node (`lite move`), and resizing an LMR, at its home: both
 * replace parts. Each MOVE message is one step, which moves the first part of the range that is
 * elsewhere, or what the range has of it; the caller repeats it until all is there
 * (lite_ctx_move()). Between steps the LMR is open and in use. A step, and a RESIZE:
 *
 *   lite_replace_begin()   no other change begins now; a free begins, but waits for the end
 *   lite_parts_make()      take memory for new parts, while the LMR is in use
 *   lite_replace_apply()   close the LMR (change.c); have the source copy what stays (store/copy.c)
 *   lite_replace_switch()  give the LMR the new place, open it, free the old parts
 *   lite_replace_end()     after a failure: open the LMR with the old place, free the new parts
 *
 * What runs concurrently with copying: nothing that reads or writes the bytes. All mappers have
 * answered RECALL, so none has an operation in flight or a page in a page table, or are fenced from
 * all stores; and the home grants no MAP. (What devices write into pages that processes had pinned
 * is lost.) UNMAP, STAT, ends of sessions and the beginning of a free go on; they only read @place,
 * under the lock. Only the thread that has begun the change replaces @place, so it reads it without
 * the lock.
 *
 * A copy that failed or was not answered may go on at the source. So the destination fences the
 * source before it frees the new parts.
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
 * Can a part be copied? Checked before anything is made and users have to wait. -ESTALE: its node
 * has lost it with its incarnation.
 */
static int lite_part_check(struct lite_lmr *lmr, const struct lite_part *part)
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
		LITE_REQUEST(LITE_CALL_MEM_SESSION, req),
		LITE_REPLY(reply),
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

/*
 * Have the node with @from copy @left bytes of it, beginning at @offset, to the beginning of @to.
 * No call is retried: see store/copy.c.
 */
static int lite_part_copy(struct lite_replace *r, const struct lite_part *from, u64 offset,
			  const struct lite_part *to, u64 left)
{
	struct lite_lmr *lmr = r->lmr;
	struct lite_call_desc d = {
		.call = LITE_CALL_MEM_COPY,
		.uid = lmr->acl.uid,
		.life = from->at.incarnation,
		.timeout = LITE_COPY_TIMEOUT,
	};
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
	d.req = req;
	while (left && !err) {
		u64 bytes = 0;
		u32 n = 0;

		while (left && n < LITE_COPY_EXTENTS_MAX && bytes < LITE_COPY_CALL_BYTES) {
			const struct lite_extent *e = &to->extents[x];
			u64 run = min3(left, e->length - in, LITE_COPY_CALL_BYTES - bytes);

			req->extent[n].addr = cpu_to_le64(e->addr + in);
			req->extent[n++].length_share = lite_wire_length_share(run, 0);
			left -= run;
			bytes += run;
			in += run;
			if (in == e->length) {
				in = 0;
				x++;
			}
		}
		req->offset = cpu_to_le64(offset);
		req->count = cpu_to_le32(n);
		d.len = struct_size(req, extent, n);
		d.sent = false;
		err = lite_cluster_call(lmr->mem->cl, from->at.node, &d);
		offset += bytes;
	}
	/* The source may not have heard that the copy was given up. */
	r->fence = err && session && d.sent ? from->at.node : 0;
	kfree(req);
	return err;
}

/* ---- replacing parts ----------------------------------------------------- */

/*
 * Begin to replace parts, as a master requests in @c. Return: 0, for lite_replace_end();
 * -EOPNOTSUPP: an LMR of a process's memory, which it keeps; errnos of lite_change_open().
 */
static int lite_replace_begin(struct lite_replace *r, struct lite_lmr *lmr, struct lite_conn *conn,
			      const struct lite_wire_change *c)
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
static void lite_replace_switch(struct lite_replace *r, struct lite_place *place)
{
	struct lite_lmr *lmr = r->lmr;
	struct lite_place *old = lmr->place;

	spin_lock(&lmr->lock);
	lmr->place = place;
	WRITE_ONCE(lmr->length, place->length);
	spin_unlock(&lmr->lock);
	/* Before a grow can bring these bytes back, zeroed. */
	if (place->length < old->length)
		lmr->mem->ops->lmr_cut(lmr->mem->priv, lmr->id, place->length);
	r->done = true;
	lite_change_end(lmr);
	lite_place_release(lmr, old, r->first, r->gone);
	lite_place_free(lmr, old);
}

/*
 * Copy the first @keep bytes of the part at @first into those new parts that are, or are not, where
 * it is (@here).
 */
static int lite_replace_copy(struct lite_replace *r, u64 keep, bool here)
{
	const struct lite_part *from, *to;
	u64 offset = 0;
	int err = 0;

	list_for_each_entry(to, &r->parts, list) {
		if (err || offset >= keep)
			break;
		from = r->lmr->place->part[r->first];
		if (lite_share_is(&to->at, &from->at) == here)
			err = lite_part_copy(r, from, offset, to, min(to->bytes, keep - offset));
		offset += to->bytes;
	}
	return err;
}

/*
 * Close the LMR, copy the first @keep bytes of the part at @first into the new parts, and switch to
 * a place of @length bytes.
 */
static int lite_replace_apply(struct lite_replace *r, u64 keep, u64 length)
{
	struct lite_lmr *lmr = r->lmr;
	struct lite_place *place;
	int err;

	place = lite_place_new(r, length);
	if (IS_ERR(place))
		return PTR_ERR(place);
	/* What goes to another node is copied last: it is lost if that one restarts after that. */
	err = lite_change_close(lmr) ?:
	      lite_replace_copy(r, keep, true) ?:
	      lite_replace_copy(r, keep, false) ?:
	      lite_parts_check(r);
	if (err)
		lite_place_free(lmr, place);
	else
		lite_replace_switch(r, place);
	return err;
}

/*
 * End what lite_replace_begin() began; if it is not done, the new parts are released. Return: @err,
 * the result so far, for the caller, which would take a store's error for one of the home or the
 * LMR. -ENOENT remains for an LMR that is being freed.
 */
static int lite_replace_end(struct lite_replace *r, int err)
{
	struct lite_lmr *lmr = r->lmr;

	if (!r->done) {
		lite_change_end(lmr);
		lite_parts_release(lmr->mem, NULL, &r->parts, r->fence);
	}
	if (err && READ_ONCE(lmr->dying))
		return -ENOENT;
	return err == -EHOSTUNREACH || err == -ENOENT ? -EHOSTDOWN : err;
}

/* ---- moving -------------------------------------------------------------- */

/* One step of a move. */
struct lite_move {
	struct lite_share to;
	u64 begin; /* offset in the LMR, page-aligned */
	u64 end;
};

/* Move what the range has of the part that begins at @start. */
static int lite_move_step(struct lite_replace *r, const struct lite_move *m, u64 start)
{
	const struct lite_place *place = r->lmr->place;
	const struct lite_part *from = place->part[r->first];
	u64 end = start + from->bytes;
	u64 head = m->begin > start ? m->begin - start : 0;
	u64 tail = end > m->end ? end - m->end : 0;
	u64 moved = from->bytes - head - tail;
	int err;

	r->gone = 1;
	err = lite_part_check(r->lmr, from) ?:
	      lite_parts_make(r, &from->at, head, head) ?:
	      lite_parts_make(r, &m->to, moved, moved) ?:
	      lite_parts_make(r, &from->at, tail, tail);
	return err ?: lite_replace_apply(r, min(end, place->length) - start, place->length);
}

/*
 * Find the first part of the range that is not at the destination, and move it. @next: end of what
 * has been moved.
 */
static int lite_home_move(struct lite_replace *r, const struct lite_move *m, u64 *next)
{
	const struct lite_place *place = r->lmr->place;
	u64 start = 0;

	*next = m->end;
	for (; r->first < place->n_parts && start < m->end; r->first++) {
		const struct lite_part *part = place->part[r->first];
		u64 end = start + part->bytes;

		if (end > m->begin && !lite_share_is(&part->at, &m->to)) {
			*next = min(end, m->end);
			return lite_move_step(r, m, start);
		}
		start = end;
	}
	return 0;
}

/*
 * Whole pages, which must all exist when a move begins. What is cut off between two steps is
 * skipped.
 */
static int lite_move_range(const struct lite_wire_move *w, u64 size, struct lite_move *m)
{
	u64 offset = le64_to_cpu(w->offset);
	u64 length = le64_to_cpu(w->length);

	if (!w->later && (offset >= size || length > size - offset))
		return -ERANGE;
	m->begin = round_down(offset, PAGE_SIZE);
	m->end = round_up(length ? min(offset + length, size) : size, PAGE_SIZE);
	return 0;
}

int lite_serve_move(struct lite_lmr *lmr, struct lite_conn *conn, const void *req, void *reply)
{
	const struct lite_wire_move *w = req;
	struct lite_wire_move_reply *answer = reply;
	struct lite_replace r;
	struct lite_move m;
	u64 length, next;
	int err;

	err = lite_share_find(lmr->mem, le32_to_cpu(w->node), &m.to);
	if (err)
		return err == -EHOSTUNREACH ? -EHOSTDOWN : err;
	err = lite_replace_begin(&r, lmr, conn, &w->change);
	if (err)
		return err;
	length = lmr->place->length;
	err = lite_move_range(w, length, &m) ?: lite_home_move(&r, &m, &next);
	err = lite_replace_end(&r, err);
	if (err)
		return err;
	answer->next = cpu_to_le64(min(next, length));
	answer->length = cpu_to_le64(length);
	return sizeof(*answer);
}

/* ---- resizing ------------------------------------------------------------ */

static int lite_home_grow(struct lite_replace *r, u64 length)
{
	const struct lite_place *old = r->lmr->place;
	u64 more = round_up(length, PAGE_SIZE) - round_up(old->length, PAGE_SIZE);
	struct lite_share at;
	int err = 0;

	r->first = old->n_parts;
	/* The rest of the last page is there, and zero: view.c wipes what processes put there. */
	if (more)
		err = lite_share_find(r->lmr->mem, old->part[old->n_parts - 1]->at.node, &at) ?:
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

int lite_serve_resize(struct lite_lmr *lmr, struct lite_conn *conn, const void *req, void *reply)
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
