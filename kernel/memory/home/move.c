// SPDX-License-Identifier: GPL-2.0
/*
 * Moving a range of an LMR to another node, at its home: `lite move`.
 *
 * Each MOVE message is one step, which moves the part that comes first of those
 * that are elsewhere, or what the range has of it; the caller repeats it until
 * all is there (lite_ctx_move()). Between steps the LMR is open and in use.
 * replace.c copies the bytes and says why nothing changes them meanwhile. An LMR
 * of a process's memory is refused.
 */
#include <linux/slab.h>

#include "home.h"
#include "replace.h"

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
	return err ?: lite_replace_apply(r, from->length);
}

/*
 * Find the first part of the range that is not at the destination, and move it.
 * @next: end of what has been moved. Return: 1: moved a part; 0: all there.
 */
static int lite_home_move(struct lite_replace *r, struct lite_move *m,
			  u64 *next)
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

void lite_move_handlers(struct lite_memory *mem)
{
	lite_kcall_handle(mem->cl->rpc, LITE_CALL_LMR_MOVE, lite_serve_move,
			  mem);
}
