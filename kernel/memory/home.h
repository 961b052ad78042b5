/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The home's role: what an LMR is, where its parts are, who has it mapped, and
 * how it changes and ends. lmr.c, place.c, release.c, mappers.c, free.c,
 * change.c, resize.c
 */
#ifndef _LITE_HOME_H
#define _LITE_HOME_H

#include "../core/extent.h"
#include "../core/rights.h"
#include "../core/wire.h"

#include <lite/kapi.h>

struct lite_limit;
struct lite_memory;
struct lite_conn;

/**
 * struct lite_mapper - a node that has an LMR mapped
 * @list: in the LMR
 * @node: its id
 * @incarnation: of its life
 * @session: in which it mapped; 0: this node itself, or @lost
 * @count: MAPs that it has not given back
 * @unclean: it said that an operation of its may be under way yet
 * @fencing: for that it is being fenced now, from all stores
 * @lost: that session ended without an acknowledgement: the node is fenced
 *	from this one, but maybe not from the LMR's other stores
 */
struct lite_mapper {
	struct list_head list;
	u32 node;
	u64 incarnation;
	u64 session;
	u32 count;
	bool unclean;
	bool fencing;
	bool lost;
};

/* A node that holds memory of an LMR, in one of its lives. */
struct lite_share {
	u32 node;
	u64 incarnation;
};

/**
 * struct lite_part - a run of an LMR's bytes that is one allocation
 * @node: where
 * @incarnation: in which life
 * @alloc: id at that node; 0: none
 * @local: whether it is memory of this node
 * @length: bytes of the LMR; the memory is whole pages
 * @n_extents: entries in @extents
 * @extents: of its whole pages; only address and length mean anything
 */
struct lite_part {
	u32 node;
	u64 incarnation;
	u64 alloc;
	bool local;
	u64 length;
	u32 n_extents;
	struct lite_extent *extents;
};

/**
 * struct lite_place - where the bytes of an LMR are
 * @limit: that it is counted in
 * @charged: bytes: these tables, and the extents of the parts
 * @uid: charged to
 * @length: bytes
 * @n_parts: entries in @part
 * @part: all of it, in order
 * @n_extents: entries in @extents
 * @extents: what mappers are told
 * @n_shares: entries in @share
 * @share: nodes that hold it; the first is the home, whether it does or not
 *
 * Never changes: an LMR is given another one. Parts that both have are owned by
 * the one that the LMR has.
 */
struct lite_place {
	struct lite_limit *limit;
	u64 charged;
	u32 uid;
	u32 n_parts;
	u64 length;
	struct lite_part *part;
	struct lite_extent *extents;
	u32 n_extents;
	u32 n_shares;
	struct lite_share share[];
};

/**
 * struct lite_lmr - an LMR at its home
 * @mem: node's
 * @ref: memory
 * @rcu: for that
 * @id: never used twice in this life of the home
 * @name: empty: anonymous; under @lock once it is published
 * @maker: node whose anonymous LMR it is; 0: this one
 * @maker_incarnation: in which of its lives
 * @creator: session in which it was made
 * @confirmed: the maker has learned of it: it does not end with that session;
 *	under @lock
 * @lock: protects what follows
 * @acl: who may do what
 * @charged_to: uid that made it, which is charged for what is of a fixed size
 * @grants_room: entries that there are in @acl.grants
 * @dying: being freed: no more mappers, no more changes
 * @ending: that is being done, when what was changing it has ended
 * @changing: somebody is at it; one at a time
 * @closed: there are no mappers now, and there shall be none
 * @renaming: somebody reserves a name for it
 * @registered: it is made of a process's memory (register.c), and stays so
 * @generation: how often it was closed for a change
 * @changed: woken when one of these is
 * @freed: completed when it is
 * @mappers: list of struct lite_mapper
 * @place: where its bytes are; replaced by a change, while closed
 * @reap_work: frees it when nobody waits for that
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

struct lite_lmr *lite_lmr_get(struct lite_memory *mem, u64 id);
void lite_lmr_put(struct lite_lmr *lmr);
const char *lite_lmr_name_new(struct lite_lmr *lmr, const char *name);
void lite_lmr_name_free(struct lite_lmr *lmr, const char *name);
int lite_lmr_grow_grants(struct lite_lmr *lmr);
u32 lite_lmr_rights(struct lite_lmr *lmr, struct lite_conn *conn,
		    const struct lite_wire_cred *cred);
struct lite_lmr *lite_home_adopt(struct lite_memory *mem,
				 const struct lite_wire_create *c,
				 struct lite_alloc *alloc, unsigned long life);
void lite_home_handlers(struct lite_memory *mem);

/* place.c */
u64 lite_part_max(u64 length);
int lite_part_fill(struct lite_part *part, const struct lite_alloc *a);
int lite_part_make(struct lite_lmr *lmr, struct lite_part *part, u32 node,
		   u64 incarnation, u64 length);
int lite_parts_make(struct lite_lmr *lmr, struct lite_part **parts, u32 *n,
		    u32 node, u64 incarnation, u64 length);
struct lite_place *lite_place_new(struct lite_lmr *lmr,
				  const struct lite_part *parts, u32 n);
void lite_place_free(struct lite_place *place);
int lite_node_incarnation(struct lite_memory *mem, u32 node, u64 *incarnation);

/* release.c */
void lite_parts_release(struct lite_lmr *lmr, struct lite_part *parts, u32 n,
			u32 fence);
void lite_part_release(struct lite_memory *mem, const struct lite_part *part);
void lite_zombies_retry(struct lite_memory *mem);
void lite_zombies_lost(struct lite_memory *mem, u32 node, u64 incarnation);

/* mappers.c */
int lite_mapper_add(struct lite_lmr *lmr, struct lite_conn *conn,
		    const struct lite_wire_map *map, u32 *granted);
bool lite_mapper_known(struct lite_lmr *lmr, struct lite_conn *conn);
int lite_mapper_recheck(struct lite_lmr *lmr, struct lite_conn *conn);
void lite_mappers_revoke(struct lite_lmr *lmr);
int lite_mappers_recall(struct lite_lmr *lmr);
u32 lite_mappers_lost(struct lite_lmr *lmr, struct lite_wire_fence *fence,
		      u32 max);
bool lite_home_unmap(struct lite_lmr *lmr, u64 session, u32 count,
		     bool unclean);
void lite_home_session_gone(struct lite_memory *mem, u64 session);

/* orphan.c */
void lite_orphans_work(struct work_struct *work);
void lite_orphans_look(struct lite_memory *mem);

/* free.c */
int lite_home_free(struct lite_lmr *lmr);
void lite_home_reap(struct lite_lmr *lmr);
void lite_reap_work(struct work_struct *work);
void lite_home_free_all(struct lite_memory *mem);
void lite_free_handlers(struct lite_memory *mem);
void lite_home_unmap_own(struct lite_memory *mem, u64 id, u32 count, u32 flags);

/* change.c, resize.c */
int lite_change_begin(struct lite_lmr *lmr);
int lite_change_close(struct lite_lmr *lmr);
void lite_change_end(struct lite_lmr *lmr);
struct lite_lmr *lite_change_lmr(struct lite_memory *mem,
				 struct lite_conn *conn,
				 const struct lite_wire_change *c);
struct lite_lmr *lite_change_open(struct lite_memory *mem,
				  struct lite_conn *conn,
				  const struct lite_wire_change *c);
void lite_change_handlers(struct lite_memory *mem);
void lite_resize_handlers(struct lite_memory *mem);

#endif /* _LITE_HOME_H */
