/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A line of waiters of several kinds (of a group, a uid, an LMR), under the caller's lock. It lists
 * only the first waiter of each kind, with the others of the kind behind that, so that kinds can
 * take turns. A tree finds the first waiter of a kind without a search: a user may have any number.
 */
#ifndef _LITE_LINE_H
#define _LITE_LINE_H

#include <linux/list.h>
#include <linux/rbtree.h>

struct lite_line {
	struct list_head firsts; /* struct lite_line_place, the first of each kind, in turns */
	struct rb_root kinds;    /* the same, by kind */
};

/* A waiter's place; at first zeroed except for @kind. */
struct lite_line_place {
	u64 kind;                /* what it waits for, or its user */
	struct lite_line *line;  /* the line that it is in, or NULL */
	struct list_head firsts; /* in the line, if it is the first of its kind; else empty */
	struct rb_node by_kind;  /* in @line->kinds, if it is the first of its kind */
	struct list_head same;   /* all of its kind, a ring */
};

static inline void lite_line_init(struct lite_line *line)
{
	INIT_LIST_HEAD(&line->firsts);
	line->kinds = RB_ROOT;
}

static inline bool lite_line_empty(const struct lite_line *line)
{
	return list_empty(&line->firsts);
}

/* For trees: which of two keys comes first. */
static inline int lite_order(u64 a, u64 b)
{
	return a < b ? -1 : a > b;
}

/*
 * Define functions for a tree of structures @type by their @field: @name_less() for rb_add(),
 * @name_cmp() for rb_for_each(), @name_find(), and @name_after(): the first one behind a key. Both
 * return NULL if there is none. @order compares the wanted field, at @key, with a node's, at @has.
 */
#define LITE_TREE(name, type, node, field, order)				\
static inline type *name##_of(const struct rb_node *rb)				\
{										\
	return rb ? rb_entry(rb, type, node) : NULL;				\
}										\
										\
static inline const void *name##_field(const struct rb_node *rb)		\
{										\
	return (const void *)name##_of(rb) + offsetof(type, field);		\
}										\
										\
static inline int name##_cmp(const void *key, const struct rb_node *rb)		\
{										\
	const void *has = name##_field(rb);					\
										\
	return order;								\
}										\
										\
static inline bool name##_less(struct rb_node *a, const struct rb_node *b)	\
{										\
	return name##_cmp(name##_field(a), b) < 0;				\
}										\
										\
static inline type *name##_find(const void *key, const struct rb_root *root)	\
{										\
	return name##_of(rb_find(key, root, name##_cmp));			\
}										\
										\
static inline type *name##_after(const void *key, const struct rb_root *root)	\
{										\
	struct rb_node *rb = root->rb_node, *found = NULL;			\
										\
	while (rb) {								\
		bool before = name##_cmp(key, rb) < 0;				\
										\
		found = before ? rb : found;					\
		rb = before ? rb->rb_left : rb->rb_right;			\
	}									\
	return name##_of(found);						\
}

LITE_TREE(lite_line_tree, struct lite_line_place, by_kind, kind,
	  lite_order(*(const u64 *)key, *(const u64 *)has))

static inline struct lite_line_place *lite_line_first(struct lite_line *line, u64 kind)
{
	return lite_line_tree_find(&kind, &line->kinds);
}

/* The first of the kind that has its turn, or NULL. */
static inline struct lite_line_place *lite_line_front(struct lite_line *line)
{
	return list_first_entry_or_null(&line->firsts, struct lite_line_place, firsts);
}

/* Leave the line, if in one. The next waiter of the kind goes behind the other kinds. */
static inline void lite_line_leave(struct lite_line_place *place)
{
	struct lite_line *line = place->line;
	struct lite_line_place *next;

	if (!line)
		return;
	place->line = NULL;
	if (!list_empty(&place->firsts)) {
		list_del(&place->firsts);
		if (list_empty(&place->same)) {
			rb_erase(&place->by_kind, &line->kinds);
			return;
		}
		next = list_next_entry(place, same);
		rb_replace_node(&place->by_kind, &next->by_kind, &line->kinds);
		list_add_tail(&next->firsts, &line->firsts);
	}
	list_del(&place->same);
}

/* Enter as the last of its kind or, if @front, as the first; leave any other line before. */
static inline void lite_line_enter(struct lite_line *line, struct lite_line_place *place,
				   bool front)
{
	struct lite_line_place *first;

	lite_line_leave(place);
	first = lite_line_first(line, place->kind);
	place->line = line;
	INIT_LIST_HEAD(&place->firsts);
	INIT_LIST_HEAD(&place->same);
	if (!first) {
		list_add_tail(&place->firsts, &line->firsts);
		rb_add(&place->by_kind, &line->kinds, lite_line_tree_less);
		return;
	}
	list_add_tail(&place->same, &first->same);
	if (front) {
		list_replace_init(&first->firsts, &place->firsts);
		rb_replace_node(&first->by_kind, &place->by_kind, &line->kinds);
	}
}

#endif /* _LITE_LINE_H */
