// SPDX-License-Identifier: GPL-2.0
/*
 * Moving a range of an LMR to another node (`lite move`), and resizing an LMR, at its home: both
 * replace parts. A MOVE message is one step: it moves the first part of the range that is
 * elsewhere, or what the range has of that part. The caller (handle/move_steps.c) repeats it until
 * all is there. Between steps the LMR is open and in use. A step, and a RESIZE:
 *
 *   lite_replace_begin()   no other change begins now; a free begins, but waits for the end
 *   lite_parts_make()      take memory for new parts, while the LMR is in use
 *   lite_replace_apply()   close the LMR (change.c); have the source copy what stays (store/copy.c)
 *   lite_replace_switch()  give the LMR the new place, open it, free the old parts
 *   lite_replace_end()     after a failure: open the LMR with the old place, free the new parts
 *
 * Nothing reads or writes the bytes while they are copied. Each mapper has answered RECALL, so it
 * has no operation in flight and no page in a page table, or is fenced from all stores; and the
 * home grants no MAP. (What devices write into pages that processes had pinned is lost.) UNMAP,
 * STAT, ends of sessions and the beginning of a free go on; they only read @place, under the lock.
 * The thread that has begun the change reads @place without the lock, as no other replaces it.
 *
 * A source may go on copying after the call has failed or timed out. So the destination fences it
 * before it frees the new parts.
 */
#include <linux/slab.h>

#include "memory/memory.h"
#include "home.h"

/* One call to copy: its time-out, and the most bytes that it copies. */
#define LITE_COPY_TIMEOUT (60 * HZ)
#define LITE_COPY_CALL_BYTES (4ULL << 20)

/* Can a part be copied? Asked before users have to wait. Return: 0; -ESTALE: it is lost; others. */
static int lite_part_check(struct lite_lmr *lmr, const struct lite_part *part)
{
	struct lite_share now;
	int err = lite_share_find(lmr->mem, part->at.node, &now);

	if (err)
		return err;
	return lite_share_is(&now, &part->at) ? 0 : -ESTALE;
}

/* Ask the store of @from for its session with that of @to. @session: set; 0: one node has both. */
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

/* Copy @left bytes at @offset in @from to the beginning of @to. No retries: see store/copy.c. */
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
	/* The source may not know that the home has given the copy up, and may go on. */
	r->fence = err && session && d.sent ? from->at.node : 0;
	kfree(req);
	return err;
}

/*
 * Begin to replace parts, as a master requests in @c. Return: 0: lite_replace_end() must follow;
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

static void lite_replace_switch(struct lite_replace *r, struct lite_place *place)
{
	struct lite_lmr *lmr = r->lmr;
	struct lite_place *old = lmr->place;

	spin_lock(&lmr->lock);
	lmr->place = place;
	WRITE_ONCE(lmr->length, place->length);
	spin_unlock(&lmr->lock);
	/* End locks on these bytes before a grow can bring them back, zeroed. */
	if (place->length < old->length)
		lmr->mem->ops->lmr_cut(lmr->mem->priv, lmr->id, place->length);
	r->done = true;
	lite_change_end(lmr);
	lite_place_release(lmr, old, r->first, r->gone);
	lite_place_free(lmr, old);
}

/*
 * Of the first @keep bytes of the part at @first, copy into the new parts those that stay on its
 * node (@here), or those that leave it (!@here).
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

/* @keep: bytes to copy of the part at @first; @length: bytes of the LMR afterwards. */
static int lite_replace_apply(struct lite_replace *r, u64 keep, u64 length)
{
	struct lite_lmr *lmr = r->lmr;
	struct lite_place *place;
	int err;

	place = lite_place_new(r, length);
	if (IS_ERR(place))
		return PTR_ERR(place);
	/* Bytes for another node are copied last, as they are lost if it restarts after that. */
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
 * End what lite_replace_begin() began; if it is not done, release the new parts. @err: the result
 * so far. Return: @err; a store's -EHOSTUNREACH or -ENOENT becomes -EHOSTDOWN, as the caller would
 * take it for one of the home or the LMR. -ENOENT: the LMR is being freed.
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

struct lite_move {
	struct lite_share to;
	u64 begin; /* offset in the LMR, page-aligned */
	u64 end;
};

/* Move the part that begins at @start, as far as the range has it. */
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

/* Move the first part of the range that is not at the destination. @next: set to its end. */
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

/* The range in whole pages. All must exist at the first step; later ones skip what was cut off. */
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

static int lite_home_grow(struct lite_replace *r, u64 length)
{
	const struct lite_place *old = r->lmr->place;
	u64 more = round_up(length, PAGE_SIZE) - round_up(old->length, PAGE_SIZE);
	struct lite_share at;
	int err = 0;

	r->first = old->n_parts;
	/* The rest of the last page exists and is zero: view.c wipes what processes store. */
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
	/* An allocation is freed as a whole, so copy what stays of the part. */
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
