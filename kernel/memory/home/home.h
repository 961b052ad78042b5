/* SPDX-License-Identifier: GPL-2.0 */
/* The home of an LMR: its metadata, parts, mappers, changes and end. */
#ifndef _LITE_HOME_H
#define _LITE_HOME_H

#include "core/extent.h"
#include "core/rights.h"
#include "crew.h"
#include "wait.h"
#include "wire/wire.h"

#include <lite/kapi.h>

struct lite_alloc;
struct lite_conn;
struct lite_memory;

/* A node that has an LMR mapped. */
struct lite_mapper {
	struct list_head list;  /* in lite_lmr.mappers */
	u32 node;
	u64 session;            /* of its MAPs; 0: this node, or @lost */
	u64 count;              /* MAPs not given back: a user may map any number of times */
	bool unclean;           /* it reported that a failed operation may still be in flight */
	bool lost;              /* no mapper any more, but other stores must still fence it */
	struct lite_end *end;   /* only for a chunk, as lite_chunk_close() cannot allocate */
};

/* A node, in one incarnation, that holds memory of an LMR. */
struct lite_share {
	u32 node;
	u64 incarnation;
};

static inline bool lite_share_is(const struct lite_share *share, const struct lite_share *other)
{
	return share->node == other->node && share->incarnation == other->incarnation;
}

/* One allocation, for a range of an LMR. Immutable while in a place; owned by the LMR's place. */
struct lite_part {
	struct list_head list;       /* in lite_replace.parts, or a list to be freed */
	struct lite_share at;
	bool local;                  /* @at is this node */
	u64 alloc;                   /* id at that store; 0: no memory yet */
	u64 bytes;                   /* whole pages */
	u32 n_extents;
	struct lite_extent *extents; /* only address and length are set */
};

/* Where the bytes of an LMR are. Immutable: a change gives the LMR a new one. */
struct lite_place {
	u32 uid;                     /* charged user */
	u64 charged;                 /* bytes: the structures of place and parts */
	u64 length;                  /* of the LMR, bytes */
	u32 n_parts;
	struct lite_part **part;     /* in order; dangling once the LMR is freed */
	u32 n_extents;
	struct lite_extent *extents; /* what mappers are told */
	bool home_stores;            /* the home has a part */
	u32 n_shares;
	struct lite_share share[];   /* nodes with parts; first the home, even if it has none */
};

/* A change that gives an LMR new parts in place of old ones. */
struct lite_replace {
	struct lite_lmr *lmr;   /* being made, or a change of it has begun */
	u32 first;              /* index of the first part to go */
	u32 gone;               /* number of parts to go, may be 0 */
	struct list_head parts; /* the new ones */
	u32 n;                  /* their number */
	u32 fence;              /* node that may still be copying into @parts; 0: none */
	bool done;              /* the LMR has the new parts, and the change is over */
};

struct lite_lmr {
	struct lite_memory *mem;
	refcount_t ref;
	struct rcu_head rcu;
	u64 id;                        /* never reused in this incarnation of the home */
	const char *name;              /* empty: anonymous; under @lock once published */
	u32 maker;                     /* node that made it; 0: this node */
	u64 maker_incarnation;
	u64 creator;                   /* session of the request to make it; 0: this node */
	bool confirmed;                /* known to the maker, so outlives @creator; under @lock */
	spinlock_t lock;               /* protects what follows; process context only */
	struct lite_acl acl;           /* owner, mode, grants */
	u32 charged_to;                /* its first owner, for metadata, grants and name */
	u32 grants_room;               /* size of @acl.grants */
	bool dying;                    /* being freed: no more mappers, no more changes */
	bool ending;                   /* freeing has begun, after the last change */
	bool changing;                 /* a change is in progress; one at a time */
	bool closed;                   /* no MAP is granted, mappers are recalled */
	bool renaming;                 /* a name is being reserved for it, or dropped */
	const char *unused;            /* dropped by @reap before it ends @renaming; "": no name */
	bool registered;               /* of a process's memory (create.c), so never moved */
	struct lite_unpinned *unpinned; /* its memory, in chunks instead of parts; or NULL */
	u64 of;                        /* id of the LMR that it is a chunk of; 0: no chunk */
	u64 base;                      /* offset of the chunk in that LMR, bytes */
	u64 generation;                /* number of times it was closed for a change */
	bool freed;                    /* the end is complete; read without @lock */
	struct lite_crowd changed;     /* woken when one of these flags changes */
	struct list_head mappers;      /* struct lite_mapper */
	struct lite_place *place;      /* replaced while closed */
	u64 length;                    /* bytes; also read without @lock */
	struct lite_crew_job reap;     /* ends a rename; frees a dying LMR */
	struct lite_pool_part *tellers; /* its user's share of the workers that tell mappers */
};

/* What an LMR is made of if not of new memory: @alloc or @unpinned. */
struct lite_origin {
	struct lite_alloc *alloc;       /* registered memory, in the store's table */
	struct lite_unpinned *unpinned; /* mapped in chunks; taken over, even on failure */
	u64 of;                         /* with @alloc: id of the LMR that it is a chunk of */
	u64 base;                       /* ... and its offset there, bytes */
};

struct lite_lmr *lite_lmr_get(struct lite_memory *mem, u64 id);
struct lite_lmr *lite_lmr_next(struct lite_memory *mem, unsigned long *id);
void lite_lmr_put(struct lite_lmr *lmr);
const char *lite_lmr_name_new(struct lite_lmr *lmr, const char *name);
void lite_lmr_name_free(struct lite_lmr *lmr, const char *name);
int lite_lmr_grow_grants(struct lite_lmr *lmr);
u32 lite_lmr_rights(struct lite_lmr *lmr, struct lite_conn *conn,
		    const struct lite_wire_cred *cred);
struct lite_lmr *lite_home_create(struct lite_memory *mem, struct lite_conn *conn,
				  const struct lite_wire_create *c, const struct lite_origin *from,
				  unsigned long life, u32 *rights);
int lite_map_answer(struct lite_lmr *lmr, struct lite_conn *conn, u32 rights,
		    struct lite_wire_map_reply *r);

/* place.c */
u64 lite_part_max(u64 length);
struct lite_part *lite_part_add(struct lite_replace *r, const struct lite_share *at, u64 length);
int lite_part_fill(struct lite_part *part, const struct lite_alloc *a);
int lite_parts_check(const struct lite_replace *r);
int lite_parts_make(struct lite_replace *r, const struct lite_share *at, u64 length, u64 max);
struct lite_place *lite_place_new(const struct lite_replace *r, u64 length);
void lite_place_free(struct lite_lmr *lmr, struct lite_place *place);
int lite_share_find(struct lite_memory *mem, u32 node, struct lite_share *at);

/* release.c */
void lite_parts_release(struct lite_memory *mem, struct lite_lmr *lmr, struct list_head *parts,
			u32 fence);
void lite_place_release(struct lite_lmr *lmr, const struct lite_place *place, u32 first, u32 n);
void lite_part_release(struct lite_memory *mem, struct lite_part *part);
void lite_zombies_work(struct work_struct *work);
void lite_zombies_lost(struct lite_memory *mem, const struct lite_share *at);

/* mappers.c */
int lite_mapper_add(struct lite_lmr *lmr, struct lite_conn *conn,
		    const struct lite_wire_map *map, u32 *granted);
bool lite_mapper_known(struct lite_lmr *lmr, struct lite_conn *conn);
int lite_mapper_recheck(struct lite_lmr *lmr, struct lite_conn *conn);
void lite_mappers_drop(struct lite_lmr *lmr, bool lost);
int lite_mappers_tell(struct lite_lmr *lmr, u16 call);
void lite_chunk_close(struct lite_lmr *lmr, struct list_head *ends);
bool lite_chunk_close_unused(struct lite_lmr *lmr);
void lite_ends_tell(struct lite_memory *mem, struct list_head *ends);
int lite_mappers_recall(struct lite_lmr *lmr);
bool lite_mappers_lost(struct lite_lmr *lmr, struct lite_wire_mem_free *req, bool unclean);
bool lite_home_unmap(struct lite_lmr *lmr, const struct lite_conn *conn, u32 count, u32 flags);
void lite_home_session_gone(struct lite_memory *mem, u64 session);

/* free.c */
void lite_home_free(struct lite_lmr *lmr);
void lite_home_reap(struct lite_lmr *lmr);
void lite_home_finish(struct lite_lmr *lmr);
void lite_reap_job(struct work_struct *work);
void lite_orphans_work(struct work_struct *work);
void lite_home_free_all(struct lite_memory *mem);
void lite_home_unmap_own(struct lite_memory *mem, const struct lite_wire_unmap *u);

/* change.c, move.c */
int lite_change_close(struct lite_lmr *lmr);
void lite_change_end(struct lite_lmr *lmr);
void lite_rename_end(struct lite_lmr *lmr);
int lite_change_check_locked(struct lite_lmr *lmr, struct lite_conn *conn,
			     const struct lite_wire_change *c);
int lite_change_open(struct lite_lmr *lmr, struct lite_conn *conn,
		     const struct lite_wire_change *c);

#endif /* _LITE_HOME_H */
