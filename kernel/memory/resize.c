// SPDX-License-Identifier: GPL-2.0
/*
 * Growing, shrinking and moving an LMR, at its home.
 *
 * All three replace parts. New parts are made first; then the LMR is closed,
 * bytes that stay are copied, and it gets its new place; then old parts are
 * freed. If anything fails it keeps the old place. An LMR of a process's memory
 * is refused.
 */
#include <linux/slab.h>

#include "memory.h"

/* Limit for one call to copy. */
#define LITE_COPY_TIMEOUT (60 * HZ)
/* Bytes copied per call. */
#define LITE_COPY_CALL_BYTES (4ULL << 20)

/**
 * struct lite_replace - parts that replace other parts
 * @lmr: LMR, with a change begun
 * @first: first part to go
 * @gone: number of parts to go
 * @widen: bytes added to the part before @first
 * @parts: new parts
 * @n: entries in @parts
 * @copying: bytes may have been copied into @parts
 */
struct lite_replace {
	struct lite_lmr *lmr;
	u32 first;
	u32 gone;
	u64 widen;
	struct lite_part *parts;
	u32 n;
	bool copying;
};

/* ---- copying ------------------------------------------------------------- */

/*
 * Can a part be copied? Checked before anything is made and users have to wait.
 * Its node may have lost it with its incarnation: -ESTALE.
 */
static int lite_part_check(struct lite_lmr *lmr, const struct lite_part *part)
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
	struct lite_memory *mem = lmr->mem;
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
	if (from->local) {
		*session = lite_copy_session(mem, to->node, to->incarnation);
		return *session ? 0 : -EHOSTDOWN;
	}
	err = lite_cluster_call_patiently(mem->cl, from->node, &d);
	if (!err)
		*session = le64_to_cpu(reply.session);
	return err;
}

/* Have the node with @from copy as @req says. Not retried: see copy.c. */
static int lite_part_copy_call(struct lite_lmr *lmr,
			       const struct lite_part *from,
			       struct lite_wire_mem_copy *req, u64 offset)
{
	struct lite_memory *mem = lmr->mem;
	struct lite_call_desc d = {
		.call = LITE_CALL_MEM_COPY,
		.req = req,
		.len = struct_size(req, extent, le32_to_cpu(req->count)),
		.life = from->incarnation,
		.timeout = LITE_COPY_TIMEOUT,
	};

	req->offset = cpu_to_le64(offset);
	if (from->local)
		return lite_store_copy(mem, from->node, req);
	return lite_cluster_call(mem->cl, from->node, &d);
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
static int lite_replace_go(struct lite_replace *r, u64 keep)
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
static void lite_replace_fail(struct lite_replace *r)
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
static int lite_change_error(const struct lite_lmr *lmr, int err)
{
	if (err && READ_ONCE(lmr->dying))
		return -ENOENT;
	return err == -EHOSTUNREACH || err == -ENOENT ? -EHOSTDOWN : err;
}

/* ---- resize -------------------------------------------------------------- */

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
	return lite_replace_go(r, 0);
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
		return lite_replace_go(r, 0);
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
	return err ?: lite_replace_go(r, keep);
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

/* ---- move ---------------------------------------------------------------- */

/**
 * struct lite_move - one step of a move
 * @node: destination
 * @incarnation: of @node
 * @begin: offset in the LMR, page-aligned
 * @end: offset; page-aligned, or the end of the LMR
 */
struct lite_move {
	u32 node;
	u64 incarnation;
	u64 begin;
	u64 end;
};

/* One of up to three parts that a part is replaced by. */
static int lite_move_part(struct lite_replace *r, u32 node, u64 incarnation,
			  u64 length)
{
	if (!length)
		return 0;
	return lite_part_make(r->lmr, &r->parts[r->n++], node, incarnation,
			      length);
}

/* Move what the range has of the part that begins at @start. */
static int lite_move_step(struct lite_replace *r, const struct lite_move *m,
			  u64 start)
{
	const struct lite_part *from = &r->lmr->place->part[r->first];
	u64 head = m->begin > start ? m->begin - start : 0;
	u64 tail = start + from->length > m->end ?
			   start + from->length - m->end : 0;
	int err;

	err = lite_part_check(r->lmr, from);
	if (err)
		return err;
	r->gone = 1;
	r->parts = kvcalloc(3, sizeof(*r->parts), GFP_KERNEL);
	if (!r->parts)
		return -ENOMEM;
	err = lite_move_part(r, from->node, from->incarnation, head) ?:
	      lite_move_part(r, m->node, m->incarnation,
			     from->length - head - tail) ?:
	      lite_move_part(r, from->node, from->incarnation, tail);
	return err ?: lite_replace_go(r, from->length);
}

/*
 * Find the first part of the range that is not at the destination, and move it.
 * @next: end of what has been moved. Return: 1: moved a part; 0: all there.
 */
static int lite_home_move(struct lite_replace *r, struct lite_move *m, u64 *next)
{
	const struct lite_place *place = r->lmr->place;
	u64 start = 0;
	int err;

	for (; r->first < place->n_parts; r->first++) {
		const struct lite_part *part = &place->part[r->first];
		u64 end = start + part->length;

		if (start >= m->end)
			break;
		if (end > m->begin &&
		    (part->node != m->node ||
		     part->incarnation != m->incarnation)) {
			*next = min(end, m->end);
			err = lite_move_step(r, m, start);
			return err ?: 1;
		}
		start = end;
	}
	*next = m->end;
	return 0;
}

/*
 * Whole pages, which must all exist when a move begins. What is cut off between
 * two steps is skipped.
 */
static int lite_move_range(const struct lite_wire_move *w, u64 size,
			   struct lite_move *m)
{
	u64 offset = le64_to_cpu(w->offset);
	u64 length = le64_to_cpu(w->length);

	if (!w->later && (offset >= size || length > size - offset))
		return -ERANGE;
	m->begin = round_down(offset, PAGE_SIZE);
	m->end = length ? min(round_up(offset + length, PAGE_SIZE), size) :
			  size;
	return 0;
}

static int lite_serve_move(void *priv, struct lite_conn *conn, const void *req,
			   u32 len, void *reply, u32 *reply_len)
{
	struct lite_memory *mem = priv;
	const struct lite_wire_move *w = req;
	struct lite_wire_move_reply *answer = reply;
	struct lite_move m = { .node = le32_to_cpu(w->node) };
	struct lite_replace r = {};
	u64 length, next = 0;
	int ret;

	ret = lite_node_incarnation(mem, m.node, &m.incarnation);
	if (ret)
		return ret == -EHOSTUNREACH ? -EHOSTDOWN : ret;
	r.lmr = lite_change_open(mem, conn, &w->change);
	if (IS_ERR(r.lmr))
		return PTR_ERR(r.lmr);
	length = r.lmr->place->length;
	ret = r.lmr->registered ? -EOPNOTSUPP : lite_move_range(w, length, &m);
	if (!ret)
		ret = lite_home_move(&r, &m, &next);
	if (ret < 0)
		lite_replace_fail(&r);
	else if (!ret)
		lite_change_end(r.lmr);
	kvfree(r.parts);
	if (ret >= 0) {
		answer->next = cpu_to_le64(next);
		answer->length = cpu_to_le64(length);
		*reply_len = sizeof(*answer);
		ret = 0;
	}
	ret = lite_change_error(r.lmr, ret);
	lite_lmr_put(r.lmr);
	return ret;
}

void lite_resize_handlers(struct lite_memory *mem)
{
	lite_rpc_handle(mem->cl->rpc, LITE_CALL_LMR_RESIZE, lite_serve_resize,
			mem);
	lite_rpc_handle(mem->cl->rpc, LITE_CALL_LMR_MOVE, lite_serve_move, mem);
}
