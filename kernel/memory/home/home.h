/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The home of an LMR: its metadata, its parts, its mappers, its changes and its
 * end. lmr.c, place.c, replace.c, release.c, mappers.c, free.c, change.c,
 * resize.c, move.c, orphan.c
 */
#ifndef _LITE_HOME_H
#define _LITE_HOME_H

#include "core/extent.h"
#include "core/rights.h"
#include "wire/wire.h"

#include <lite/kapi.h>

struct lite_alloc;
struct lite_pinned;

struct lite_memory;
struct lite_conn;

/**
 * struct lite_mapper - a node that has an LMR mapped
 * @list: in the LMR
 * @node: its id
 * @incarnation: its incarnation
 * @session: in which it mapped; 0: this node, or @lost
 * @count: MAPs not given back
 * @unclean: it reported that a failed operation may still be in flight
 * @lost: its session ended without an acknowledgement: it is fenced from this
 *	node, but maybe not from other stores
 */
struct lite_mapper {
	struct list_head list;
	u32 node;
	u64 incarnation;
	u64 session;
	u32 count;
	bool unclean;
	bool lost;
};

/* A node, in one incarnation, that holds memory of an LMR. */
struct lite_share {
	u32 node;
	u64 incarnation;
};

static inline bool lite_share_is(const struct lite_share *share,
				 const struct lite_share *other)
{
	return share->node == other->node &&
	       share->incarnation == other->incarnation;
}

/**
 * struct lite_part - a range of an LMR that is one allocation
 * @list: of new parts, or of those to be freed
 * @at: where it is
 * @local: that is this node
 * @alloc: id there; 0: none
 * @bytes: whole pages
 * @n_extents: entries in @extents
 * @extents: only address and length are set
 *
 * Immutable while a place has it. The place that the LMR has owns its parts.
 */
struct lite_part {
	struct list_head list;
	struct lite_share at;
	bool local;
	u64 alloc;
	u64 bytes;
	u32 n_extents;
	struct lite_extent *extents;
};

/**
 * struct lite_place - where the bytes of an LMR are
 * @uid: charged user
 * @charged: bytes: these tables, and the parts
 * @length: bytes of the LMR
 * @n_parts: entries in @part
 * @part: the parts, in order; gone once the LMR is freed
 * @n_extents: entries in @extents
 * @extents: what mappers are told
 * @home_stores: the home has a part
 * @n_shares: entries in @share
 * @share: nodes with parts; the first is the home, even if it has none
 *
 * Immutable: a change gives the LMR a new one.
 */
struct lite_place {
	u32 uid;
	u64 charged;
	u64 length;
	u32 n_parts;
	struct lite_part **part;
	u32 n_extents;
	struct lite_extent *extents;
	bool home_stores;
	u32 n_shares;
	struct lite_share share[];
};

/**
 * struct lite_replace - new parts of an LMR, instead of old ones
 * @lmr: LMR: being made, or with a change begun
 * @first: first part to go
 * @gone: number of parts to go
 * @parts: list of new parts
 * @n: their number
 * @copying: bytes may have been copied into @parts
 * @done: the LMR has the new parts, and the change is over
 */
struct lite_replace {
	struct lite_lmr *lmr;
	u32 first;
	u32 gone;
	struct list_head parts;
	u32 n;
	bool copying;
	bool done;
};

/**
 * struct lite_lmr - an LMR at its home
 * @mem: memory layer
 * @ref: references
 * @rcu: to free it
 * @id: never reused in this incarnation of the home
 * @name: empty: anonymous; under @lock once published
 * @maker: node that made it; 0: this node
 * @maker_incarnation: incarnation of @maker
 * @creator: session in which it was made
 * @confirmed: the maker knows of it, so it outlives @creator; under @lock
 * @lock: protects what follows
 * @acl: owner, mode, grants
 * @charged_to: uid that made it, charged for metadata, grants and name
 * @grants_room: size of @acl.grants
 * @dying: being freed: no more mappers, no more changes
 * @ending: the part of freeing that waits for the last change has begun
 * @changing: a change is in progress; one at a time
 * @closed: no MAP is granted, mappers are recalled
 * @renaming: a name is being reserved for it
 * @registered: made of a process's memory (register.c), which it keeps
 * @generation: number of times it was closed for a change
 * @changed: woken when one of these flags changes
 * @freed: completed at the end
 * @mappers: list of struct lite_mapper
 * @place: where its bytes are; replaced while closed
 * @reap_work: frees it in the background
 */
struct lite_lmr {
	struct lite_memory *mem;
	struct kref ref;
	struct rcu_head rcu;
	u64 id;
	const char *name;
	u32 maker;
	u64 maker_incarnation;
	u64 creator;
	bool confirmed;
	struct mutex lock;
	struct lite_acl acl;
	u32 charged_to;
	u32 grants_room;
	bool dying;
	bool ending;
	bool changing;
	bool closed;
	bool renaming;
	bool registered;
	u64 generation;
	wait_queue_head_t changed;
	struct completion freed;
	struct list_head mappers;
	struct lite_place *place;
	struct work_struct reap_work;
};

/**
 * typedef lite_lmr_handler - serves a call about an LMR
 * @lmr: the one that the request begins with the id of
 * @conn: session with the caller; NULL: this node
 * @req: payload
 * @reply: room for the reply, zeroed
 * @reply_len: set to the bytes of the reply
 *
 * Context: may sleep.
 * Return: see lite_handler.
 */
typedef int (*lite_lmr_handler)(struct lite_lmr *lmr, struct lite_conn *conn,
				const void *req, void *reply, u32 *reply_len);

struct lite_lmr *lite_lmr_get(struct lite_memory *mem, u64 id);
void lite_lmr_put(struct lite_lmr *lmr);
const char *lite_lmr_name_new(struct lite_lmr *lmr, const char *name);
void lite_lmr_name_free(struct lite_lmr *lmr, const char *name);
int lite_lmr_grow_grants(struct lite_lmr *lmr);
u32 lite_lmr_rights(struct lite_lmr *lmr, struct lite_conn *conn,
		    const struct lite_wire_cred *cred);
struct lite_lmr *lite_home_create(struct lite_memory *mem,
				  struct lite_conn *conn,
				  const struct lite_wire_create *c,
				  const struct lite_alloc *alloc,
				  unsigned long life, u32 *rights);
void lite_lmr_handle(struct lite_memory *mem, enum lite_call call,
		     lite_lmr_handler fn);
void lite_home_handlers(struct lite_memory *mem);

/* place.c */
u64 lite_part_max(u64 length);
struct lite_part *lite_part_add(struct lite_replace *r,
				const struct lite_share *at, u64 length);
int lite_part_fill(struct lite_part *part, const struct lite_alloc *a);
int lite_parts_make(struct lite_replace *r, const struct lite_share *at,
		    u64 length, u64 max);
struct lite_place *lite_place_new(const struct lite_replace *r, u64 length);
void lite_place_free(struct lite_lmr *lmr, struct lite_place *place);
int lite_share_find(struct lite_memory *mem, u32 node, struct lite_share *at);

/* replace.c */
int lite_part_check(struct lite_lmr *lmr, const struct lite_part *part);
int lite_replace_begin(struct lite_replace *r, struct lite_lmr *lmr,
		       struct lite_conn *conn,
		       const struct lite_wire_change *c);
int lite_replace_apply(struct lite_replace *r, u64 keep, u64 length);
int lite_replace_end(struct lite_replace *r, int err);

/* release.c */
void lite_parts_release(struct lite_lmr *lmr, struct list_head *parts,
			u32 fence);
void lite_place_release(struct lite_lmr *lmr, const struct lite_place *place,
			u32 first, u32 n);
void lite_part_release(struct lite_memory *mem, struct lite_part *part);
void lite_zombies_retry(struct lite_memory *mem);
void lite_zombies_lost(struct lite_memory *mem, const struct lite_share *at);

/* mappers.c */
int lite_mapper_add(struct lite_lmr *lmr, struct lite_conn *conn,
		    const struct lite_wire_map *map, u32 *granted);
bool lite_mapper_known(struct lite_lmr *lmr, struct lite_conn *conn);
int lite_mapper_recheck(struct lite_lmr *lmr, struct lite_conn *conn);
void lite_mappers_drop(struct lite_lmr *lmr, bool lost);
int lite_mappers_tell(struct lite_lmr *lmr, u16 call);
int lite_mappers_recall(struct lite_lmr *lmr);
u32 lite_mappers_lost(struct lite_lmr *lmr, struct lite_wire_fence *fence,
		      u32 max, bool unclean);
bool lite_home_unmap(struct lite_lmr *lmr, u64 session, u32 count,
		     bool unclean);
void lite_home_session_gone(struct lite_memory *mem, u64 session);

/* orphan.c */
void lite_orphans_work(struct work_struct *work);

/* free.c */
int lite_home_free(struct lite_lmr *lmr);
void lite_home_reap(struct lite_lmr *lmr);
void lite_reap_work(struct work_struct *work);
void lite_home_free_all(struct lite_memory *mem);
void lite_free_handlers(struct lite_memory *mem);
void lite_home_unmap_own(struct lite_memory *mem, u64 id, u32 count, u32 flags);

/* change.c, resize.c, move.c */
int lite_change_close(struct lite_lmr *lmr);
void lite_change_end(struct lite_lmr *lmr);
int lite_change_check(struct lite_lmr *lmr, struct lite_conn *conn,
		      const struct lite_wire_change *c);
int lite_change_open(struct lite_lmr *lmr, struct lite_conn *conn,
		     const struct lite_wire_change *c);
void lite_change_handlers(struct lite_memory *mem);
void lite_resize_handlers(struct lite_memory *mem);
void lite_move_handlers(struct lite_memory *mem);

#endif /* _LITE_HOME_H */
