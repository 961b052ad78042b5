// SPDX-License-Identifier: GPL-2.0
/*
 * Moving a range of an LMR to another node, at its home: `lite move`.
 *
 * Each MOVE message is one step, which moves the part that comes first of those
 * that are elsewhere, or what the range has of it; the caller repeats it until
 * all is there (lite_ctx_move()). Between steps the LMR is open and in use.
 * replace.c copies the bytes and says why nothing changes them meanwhile.
 */
#include "memory/memory.h"
#include "home.h"

/**
 * struct lite_move - one step of a move
 * @to: destination
 * @begin: offset in the LMR, page-aligned
 * @end: offset, page-aligned
 */
struct lite_move {
	struct lite_share to;
	u64 begin;
	u64 end;
};

/* Make one of up to three parts that a part is replaced by. */
static int lite_move_part(struct lite_replace *r, const struct lite_share *at,
			  u64 length)
{
	return length ? lite_parts_make(r, at, length, length) : 0;
}

/* Move what the range has of the part that begins at @start. */
static int lite_move_step(struct lite_replace *r, const struct lite_move *m,
			  u64 start)
{
	const struct lite_place *place = r->lmr->place;
	const struct lite_part *from = place->part[r->first];
	u64 end = start + from->bytes;
	u64 head = m->begin > start ? m->begin - start : 0;
	u64 tail = end > m->end ? end - m->end : 0;
	int err;

	r->gone = 1;
	err = lite_part_check(r->lmr, from) ?:
	      lite_move_part(r, &from->at, head) ?:
	      lite_move_part(r, &m->to, from->bytes - head - tail) ?:
	      lite_move_part(r, &from->at, tail);
	return err ?: lite_replace_apply(r, min(end, place->length) - start,
					 place->length);
}

/*
 * Find the first part of the range that is not at the destination, and move it.
 * @next: end of what has been moved.
 */
static int lite_home_move(struct lite_replace *r, const struct lite_move *m,
			  u64 *next)
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
	m->end = round_up(length ? min(offset + length, size) : size,
			  PAGE_SIZE);
	return 0;
}

static int lite_serve_move(struct lite_lmr *lmr, struct lite_conn *conn,
			   const void *req, void *reply, u32 *reply_len)
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
	*reply_len = sizeof(*answer);
	return 0;
}

void lite_move_handlers(struct lite_memory *mem)
{
	lite_lmr_handle(mem, LITE_CALL_LMR_MOVE, lite_serve_move);
}
