/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A line of waiters of several kinds (a group, a uid), under the caller's lock. It lists only the
 * first of each kind; those behind it hang on it. So the first of a kind is found without looking
 * at all that wait, of which a user may have any number, and the kinds can take turns.
 */
#ifndef _LITE_LINE_H
#define _LITE_LINE_H

#include <linux/list.h>

/* A waiter's place. */
struct lite_line_place {
	u32 kind; /* what it waits for, or for which user */
	struct list_head firsts; /* in the line, if it is the first of its kind; else empty */
	struct list_head same; /* all of its kind, a ring */
};

/* The first of a kind, or NULL. */
static inline struct lite_line_place *lite_line_first(struct list_head *line, u32 kind)
{
	struct lite_line_place *p;

	list_for_each_entry(p, line, firsts) {
		if (p->kind == kind)
			return p;
	}
	return NULL;
}

/* The kind that is first; the line is not empty. */
static inline u32 lite_line_kind(const struct list_head *line)
{
	return list_first_entry(line, struct lite_line_place, firsts)->kind;
}

/* Enter; @kind is set. @front: as the first of its kind, else as its last. */
static inline void lite_line_enter(struct list_head *line,
				   struct lite_line_place *place, bool front)
{
	struct lite_line_place *first = lite_line_first(line, place->kind);

	INIT_LIST_HEAD(&place->firsts);
	INIT_LIST_HEAD(&place->same);
	if (!first) {
		list_add_tail(&place->firsts, line);
		return;
	}
	list_add_tail(&place->same, &first->same);
	if (front)
		list_replace_init(&first->firsts, &place->firsts);
}

/*
 * Leave, if it is in the line. If it was the first of its kind, the next one
 * is, behind all other kinds.
 */
static inline void lite_line_leave(struct list_head *line, struct lite_line_place *place)
{
	if (!list_empty(&place->firsts)) {
		list_del_init(&place->firsts);
		if (!list_empty(&place->same))
			list_add_tail(&list_next_entry(place, same)->firsts, line);
	}
	list_del_init(&place->same);
}

#endif /* _LITE_LINE_H */
