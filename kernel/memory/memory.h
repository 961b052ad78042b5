/* SPDX-License-Identifier: GPL-2.0 */
/*
 * LMRs: their memory, their homes, their names, the handles on them, and the
 * one-sided operations.
 *
 * Three roles, which one node may play at once for one LMR:
 *
 *   store    gives memory (struct lite_alloc) to a home. store.c
 *   home     keeps an LMR's metadata: who owns it, where its parts are, which
 *            nodes have it mapped (struct lite_lmr). lmr.c, place.c, mappers.c,
 *            free.c, change.c, resize.c, and for names claim.c, directory.c,
 *            names.c
 *   mapper   has handles on it (struct lite_mapping, shared by all handles of
 *            the node) and operates on its memory. mapping.c, ctx.c,
 *            transfer.c, buf.c, look.c
 *
 * Why nobody touches memory that was freed
 *
 *   A home frees memory only when every mapper has acknowledged REVOKE, that
 *   is, has no operation in flight and will start none; or is fenced: its
 *   session with the home is over, and so is, before they free, its session
 *   with every store of the LMR.
 *
 *   A mapping is bound to sessions: that with the home in which it was made,
 *   and those with the stores, which were noted before the home confirmed
 *   (LMR_EXTENTS) that this node is still a mapper. An operation uses these
 *   sessions or none: when one of them is over, the mapping is retired and the
 *   home is asked again. So a mapper that was fenced while it slept cannot
 *   come back with what it knew.
 *
 * Why nobody uses what has changed
 *
 *   A change of an LMR (where its bytes are, how many, who may use them) first
 *   closes it: the home grants no MAP, and every mapper answers RECALL, as
 *   REVOKE, when it has no operation in flight; or is fenced, from all stores.
 *   Only then is anything changed, and the LMR opened again. Handles stay: they
 *   map anew, and their rights are checked anew, with their next operation.
 *
 * Locking, outermost first: lite_ctx.lock, lite_lmr.lock, map_lock,
 * names locks, limit_lock. No call is made with any of them held but
 * lite_ctx.lock.
 */
#ifndef _LITE_MEMORY_H
#define _LITE_MEMORY_H

#include <linux/maple_tree.h>

#include "../cluster/cluster.h"
#include "../core/bounds.h"
#include "../core/extent.h"
#include "../core/handle.h"
#include "../core/spread.h"

#include <lite/kapi.h>

struct lite_memory;

/* ---- store --------------------------------------------------------------- */

struct lite_piece {
	struct page *page;
	u64 dma;
	u32 order;
};

/**
 * struct lite_alloc - memory given to a home
 * @ref: the table's, or whose it is after that; and of copies under way
 * @mem: node's
 * @id: of this node's own
 * @home: to whom
 * @home_incarnation: in which life
 * @session: in which it was asked for; 0: by ourselves
 * @confirmed: the home has read where it is, and knows that it has it
 * @uid: charged to
 * @bytes: whole pages
 * @n_pieces: entries in @pieces
 * @pieces: the pages
 * @n_extents: entries in @extents
 * @extents: the same merged, as published; share is 0
 */
struct lite_alloc {
	struct kref ref;
	struct lite_memory *mem;
	u64 id;
	u32 home;
	u64 home_incarnation;
	u64 session;
	bool confirmed;
	u32 uid;
	u64 bytes;
	u32 n_pieces;
	struct lite_piece *pieces;
	u32 n_extents;
	struct lite_extent *extents;
};

struct lite_alloc *lite_store_alloc(struct lite_memory *mem, u32 home,
				    u64 home_incarnation, u64 session,
				    u64 length, u32 uid);
void lite_store_free(struct lite_memory *mem, struct lite_alloc *alloc);
struct lite_alloc *lite_store_take(struct lite_memory *mem, u64 id, u32 home);
void lite_store_lost(struct lite_memory *mem, u32 home, u64 incarnation);
void lite_store_session_gone(struct lite_memory *mem, u64 session);
void *lite_store_address(struct lite_memory *mem, u64 dma, size_t *n);
void lite_store_exit(struct lite_memory *mem);
void lite_store_handlers(struct lite_memory *mem);
struct lite_alloc *lite_store_get(struct lite_memory *mem, u64 id, u32 home);
int lite_store_copy(struct lite_memory *mem, u32 home,
		    const struct lite_wire_mem_copy *c);
u64 lite_copy_session(struct lite_memory *mem, u32 node, u64 incarnation);
void lite_copy_handlers(struct lite_memory *mem);

/* ---- names --------------------------------------------------------------- */

/* A name at its home; claim.c says what the states mean. */
enum lite_name_state {
	LITE_NAME_YIELDING,
	LITE_NAME_CLAIMING,
	LITE_NAME_CONFIRMED,
};

/* Which LMR a name is said to be of. */
struct lite_name_at {
	u32 home;
	u64 id;
};

/**
 * struct lite_name_entry - a name in a table
 * @next: of the same hash
 * @home: of the LMR
 * @id: of the LMR at its home
 * @name: name
 * @session: in the directory: in which its home entered it; 0: ourselves
 * @state: the rest is for names of our own LMRs
 * @awaited: another node was told BUSY, and wants to know of changes
 * @published: directory that knows it, 0: none
 * @published_session: in which session with that
 * @tried: the last run of the publisher that looked at it
 */
struct lite_name_entry {
	struct lite_name_entry *next;
	u32 home;
	u64 id;
	char name[LITE_NAME_SIZE];
	u64 session;
	enum lite_name_state state;
	bool awaited;
	u32 published;
	u64 published_session;
	u32 tried;
};

/**
 * struct lite_names - a table of names
 * @lock: protects the table, what is in it, and @publishing
 * @table: lists of entries by hash
 * @wait: the rest is for names of our own LMRs: who waits for an event
 * @events: how many there were
 * @publishing: entry that the publisher is at, and that must stay
 * @runs: of the publisher; only its own
 */
struct lite_names {
	struct mutex lock;
	struct xarray table;
	wait_queue_head_t wait;
	atomic_t events;
	struct lite_name_entry *publishing;
	u32 runs;
};

void lite_names_init(struct lite_names *names);
void lite_names_exit(struct lite_memory *mem, struct lite_names *names);
struct lite_name_entry *lite_names_lookup_locked(struct lite_names *names,
						 const char *name);
int lite_names_insert_locked(struct lite_memory *mem, struct lite_names *names,
			     struct lite_name_entry *new);
void lite_names_remove_locked(struct lite_memory *mem, struct lite_names *names,
			      struct lite_name_entry *entry);
struct lite_name_entry *lite_name_entry_new(const char *name, u32 home, u64 id);
int lite_name_call(struct lite_memory *mem, u32 node, u16 call,
		   const char *name, u64 id, void *reply, u32 reply_max);

void lite_names_event(struct lite_memory *mem);
int lite_name_reserve(struct lite_memory *mem, const char *name, u64 id);
void lite_name_confirm(struct lite_memory *mem, const char *name, u64 id);
int lite_name_claim(struct lite_memory *mem, const char *name, u64 id);
void lite_name_drop(struct lite_memory *mem, const char *name, u64 id);
bool lite_local_find(struct lite_memory *mem, const char *name,
		     struct lite_name_at *at);
void lite_claim_handlers(struct lite_memory *mem);

int lite_name_lookup(struct lite_memory *mem, const char *name, bool ask_all,
		     u32 *home, u64 *id);
u64 lite_directory_session(struct lite_memory *mem, u32 node);
int lite_directory_enter(struct lite_memory *mem, u32 node, const char *name,
			 u64 id, const struct lite_name_at *was,
			 struct lite_name_at *is);
void lite_names_publish_work(struct work_struct *work);
void lite_names_publish(struct lite_memory *mem, const char *name);
void lite_names_drop_home(struct lite_memory *mem, u32 home, u64 but_session);
void lite_directory_handlers(struct lite_memory *mem);

/* ---- home ---------------------------------------------------------------- */

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
 * @length: bytes
 * @n_parts: entries in @part
 * @part: all of it, in order
 * @n_shares: entries in @share
 * @share: nodes that hold it; the first is the home, whether it does or not
 * @n_extents: entries in @extents
 * @extents: what mappers are told
 *
 * Never changes: an LMR is given another one. Parts that both have are owned by
 * the one that the LMR has.
 */
struct lite_place {
	u64 length;
	u32 n_parts;
	struct lite_part *part;
	u32 n_shares;
	struct lite_share share[LITE_SPREAD_MAX];
	u32 n_extents;
	struct lite_extent *extents;
};

/**
 * struct lite_lmr - an LMR at its home
 * @mem: node's
 * @ref: memory
 * @rcu: for that
 * @id: never used twice in this life of the home
 * @name: empty: anonymous; under @lock once it is published
 * @creator: session of the node whose anonymous LMR it is; 0: our own
 * @lock: protects what follows
 * @acl: who may do what
 * @dying: being freed: no more mappers, no more changes
 * @changing: somebody is at it; one at a time
 * @closed: there are no mappers now, and there shall be none
 * @renaming: somebody reserves a name for it
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
	char name[LITE_NAME_SIZE];
	u64 creator;
	struct mutex lock;
	struct lite_acl acl;
	bool dying;
	bool changing;
	bool closed;
	bool renaming;
	wait_queue_head_t changed;
	struct completion freed;
	struct list_head mappers;
	struct lite_place *place;
	struct work_struct reap_work;
};

struct lite_lmr *lite_lmr_get(struct lite_memory *mem, u64 id);
void lite_lmr_put(struct lite_lmr *lmr);
u32 lite_lmr_rights(struct lite_lmr *lmr, struct lite_conn *conn,
		    const struct lite_wire_cred *cred);
void lite_home_handlers(struct lite_memory *mem);

/* place.c */
u64 lite_part_max(u64 length);
int lite_part_make(struct lite_lmr *lmr, struct lite_part *part, u32 node,
		   u64 incarnation, u64 length);
int lite_parts_make(struct lite_lmr *lmr, struct lite_part **parts, u32 *n,
		    u32 node, u64 incarnation, u64 length);
void lite_parts_release(struct lite_lmr *lmr, struct lite_part *parts, u32 n,
			u32 fence);
struct lite_place *lite_place_new(struct lite_lmr *lmr,
				  const struct lite_part *parts, u32 n);
void lite_place_free(struct lite_place *place);
int lite_node_incarnation(struct lite_memory *mem, u32 node, u64 *incarnation);
void lite_zombies_retry(struct lite_memory *mem);
void lite_zombies_lost(struct lite_memory *mem, u32 node, u64 incarnation);

/* mappers.c */
int lite_mapper_add(struct lite_lmr *lmr, struct lite_conn *conn,
		    const struct lite_wire_cred *cred, u32 wanted, bool renew,
		    u32 *granted);
bool lite_mapper_known(struct lite_lmr *lmr, struct lite_conn *conn);
int lite_mapper_recheck(struct lite_lmr *lmr, struct lite_conn *conn);
void lite_mappers_revoke(struct lite_lmr *lmr);
int lite_mappers_recall(struct lite_lmr *lmr);
u32 lite_mappers_lost(struct lite_lmr *lmr, struct lite_wire_fence *fence,
		      u32 max);
bool lite_home_unmap(struct lite_lmr *lmr, u64 session, u32 count,
		     bool unclean);
void lite_home_session_gone(struct lite_memory *mem, u64 session);

/* free.c */
int lite_home_free(struct lite_lmr *lmr);
void lite_home_reap(struct lite_lmr *lmr);
void lite_reap_work(struct work_struct *work);
void lite_home_free_all(struct lite_memory *mem);
void lite_free_handlers(struct lite_memory *mem);
int lite_home_unmap_id(struct lite_memory *mem, u64 id, u64 session, u32 count,
		       bool unclean);

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

/* ---- mapper -------------------------------------------------------------- */

enum lite_mapping_state {
	LITE_MAPPING_ACTIVE,
	LITE_MAPPING_RETIRED, /* its session is over, or it was recalled: map anew */
	LITE_MAPPING_REVOKED, /* the LMR is gone */
};

/**
 * struct lite_map_share - a node of an LMR, as its mapper knows it
 * @node: its id
 * @peer: NULL: this node
 * @session: the one to use with it; 0: none, it was down
 * @lost: it lives anew, and our memory there is no more
 */
struct lite_map_share {
	u32 node;
	struct lite_peer *peer;
	u64 session;
	bool lost;
};

/**
 * struct lite_mapping - what this node knows of an LMR
 * @mem: node's
 * @ref: handles that have it
 * @rcu: freed after a grace period, for operations look at it under RCU
 * @ops: operations in flight; killed when it is retired, revoked or unused
 * @drained: completed when @ops is gone
 * @watchers: those who wait for that without a reference
 * @state: enum lite_mapping_state; leaves ACTIVE once, under map_lock
 * @home: the LMR's home
 * @home_incarnation: in which life
 * @id: the LMR's id there
 * @length: bytes
 * @anonymous: it has no name
 * @unclean: an operation failed, so that it may still be under way
 * @left: in mem->unclean, from when it is out of the table until the home knows
 * @careful: jiffies at which a small piece got through that a large had not
 * @grants: MAPs of ours that the home counts; under map_lock
 * @conn: session with the home in which that is, with a reference; NULL: the
 *	home is this node
 * @n_shares: entries in @share
 * @share: nodes that hold its memory; the first is the home
 * @n_extents: entries in @extents
 * @extents: where its bytes are
 */
struct lite_mapping {
	struct lite_memory *mem;
	struct kref ref;
	struct rcu_work rcu;
	struct percpu_ref ops;
	struct completion drained;
	atomic_t watchers;
	enum lite_mapping_state state;
	u32 home;
	u64 home_incarnation;
	u64 id;
	u64 length;
	bool anonymous;
	bool unclean;
	struct list_head left;
	unsigned long careful;
	u32 grants;
	struct lite_conn *conn;
	u32 n_shares;
	struct lite_map_share *share;
	u32 n_extents;
	struct lite_extent *extents;
};

/* REVOKEs that may overtake one MAP; more count as one of its LMR. */
#define LITE_TRY_REVOKED 16

/**
 * struct lite_map_try - a MAP under way
 * @list: in the node's list, under map_lock
 * @home: asked
 * @n_revoked: REVOKEs and RECALLs of that home that came meanwhile
 * @revoked: their LMRs, the first of them
 */
struct lite_map_try {
	struct list_head list;
	u32 home;
	u32 n_revoked;
	u64 revoked[LITE_TRY_REVOKED];
};

static inline unsigned long lite_mapping_key(u32 home, u64 id)
{
	return (unsigned long)home << 48 | (id & GENMASK_ULL(47, 0));
}

struct lite_mapping *lite_mapping_by_id(struct lite_memory *mem, u32 home,
					u64 id, const struct lite_cred *cred,
					u32 rights, bool renew, u32 *granted);
int lite_mapping_await(struct lite_memory *mem, u32 home, u64 id);
struct lite_mapping *lite_mapping_create(struct lite_memory *mem, u32 home,
					 struct lite_wire_create *req, u64 *id,
					 u32 *granted);
void lite_mapping_retire(struct lite_mapping *m);
void lite_mapping_retire_home(struct lite_memory *mem, u32 home);
bool lite_mapping_end(struct lite_mapping *m, enum lite_mapping_state state);
void lite_mapping_watch(struct lite_mapping *m);
void lite_try_begin(struct lite_memory *mem, struct lite_map_try *try,
		    u32 home);
void lite_try_end(struct lite_memory *mem, struct lite_map_try *try);
bool lite_try_overtaken(struct lite_memory *mem,
			const struct lite_map_try *try, u64 id);
int lite_mapping_revoke(struct lite_memory *mem, u32 home, u64 id,
			enum lite_mapping_state state);
void lite_mapping_put(struct lite_mapping *m);
void lite_mapping_handlers(struct lite_memory *mem);

struct lite_access;

/* ---- contexts and handles ------------------------------------------------ */

/* Who opened handles; shared by those that one user opened in a row. */
struct lite_user {
	struct kref ref;
	struct rcu_head rcu;
	struct lite_cred cred;
};

/**
 * struct lite_handle - an open LMR
 * @lh: its number
 * @rights: LITE_RIGHT_* it was opened with, but those that were lost since; set
 *	before @mapping is
 * @user: who opened it
 * @mapping: under RCU; replaced, under ctx->lock, when it is retired
 * @rcu: freed after a grace period
 */
struct lite_handle {
	u64 lh;
	u32 rights;
	struct lite_user *user;
	struct lite_mapping __rcu *mapping;
	struct rcu_head rcu;
};

/**
 * struct lite_ctx - the handles of an open file or of a kernel client
 * @mem: node's
 * @ref: the owner's, and the list's until it is shut
 * @list: in mem->ctxs
 * @lock: serialises changes of handles
 * @closed: takes no new handles
 * @user: who opened the last one
 * @handles: by index
 * @tags: of handles
 * @owner: of the layer above
 */
struct lite_ctx {
	struct lite_memory *mem;
	struct kref ref;
	struct list_head list;
	struct mutex lock;
	bool closed;
	struct lite_user *user;
	struct xarray handles;
	atomic_t tags;
	void *owner;
};

/**
 * struct lite_gate - lets go of the node while user space is waited for
 * @users: of the node; a page fault can take for ever (userfaultfd, FUSE), and
 *	must not keep the node from being stopped
 * @in: we are counted there
 */
struct lite_gate {
	struct percpu_ref *users;
	bool in;
};

static inline void lite_gate_leave(struct lite_gate *gate)
{
	if (!gate)
		return;
	percpu_ref_put(gate->users);
	gate->in = false;
}

/* False: the node is stopping; touch nothing of it but counters. */
static inline bool lite_gate_enter(struct lite_gate *gate)
{
	if (!gate)
		return true;
	gate->in = percpu_ref_tryget_live(gate->users);
	return gate->in;
}

/**
 * struct lite_buf - memory of the caller of an operation
 * @gate: for user memory
 * @user: whether it is a user address
 * @u: user address
 * @k: kernel address
 */
struct lite_buf {
	struct lite_gate *gate;
	bool user;
	union {
		unsigned long u;
		void *k;
	};
};

struct lite_ctx *lite_ctx_new(struct lite_memory *mem, void *owner);
void lite_ctx_put(struct lite_ctx *ctx);
void lite_ctx_shut(struct lite_ctx *ctx);
struct lite_handle *lite_handle_reserve(struct lite_ctx *ctx);
void lite_handle_cancel(struct lite_ctx *ctx, struct lite_handle *h);
int lite_ctx_create(struct lite_ctx *ctx, const struct lite_cred *cred,
		    const struct lite_alloc_params *p, struct lite_handle *h);
int lite_ctx_map(struct lite_ctx *ctx, const struct lite_cred *cred,
		 const char *name, u32 rights, struct lite_handle *h,
		 u64 *length);
int lite_access_renew(const struct lite_access *a,
		      const struct lite_mapping *stale);
int lite_ctx_unmap(struct lite_ctx *ctx, u64 lh);

/* ask.c */
int lite_ctx_free(struct lite_ctx *ctx, const struct lite_cred *cred, u64 lh,
		  const char *name);
int lite_ctx_grant(struct lite_ctx *ctx, const struct lite_cred *cred, u64 lh,
		   const char *name, const struct lite_grant *grant);
int lite_ctx_grants(struct lite_ctx *ctx, u64 lh, const char *name,
		    struct lite_grant *grants, u32 *n);
int lite_ctx_setattr(struct lite_ctx *ctx, const struct lite_cred *cred, u64 lh,
		     const char *name, u32 uid, u32 gid, u32 mode);
int lite_ctx_rename(struct lite_ctx *ctx, const struct lite_cred *cred, u64 lh,
		    const char *name, const char *to);
int lite_ctx_resize(struct lite_ctx *ctx, const struct lite_cred *cred, u64 lh,
		    const char *name, u64 length);
int lite_ctx_move(struct lite_ctx *ctx, const struct lite_cred *cred, u64 lh,
		  const char *name, u32 node, u64 offset, u64 length,
		  u64 *moved);
int lite_ctx_stat(struct lite_ctx *ctx, u64 lh, const char *name,
		  struct lite_lmr_info *info, u32 *nodes);
int lite_memory_list(struct lite_memory *mem, u64 *cursor,
		     struct lite_lmr_info *info);

/* ---- operations ---------------------------------------------------------- */

/**
 * struct lite_access - what an operation may touch
 * @ctx: whose handle
 * @lh: handle
 * @right: LITE_RIGHT_* it needs
 */
struct lite_access {
	struct lite_ctx *ctx;
	u64 lh;
	u32 right;
};

struct lite_mapping *lite_access_enter(const struct lite_access *a);
struct lite_mapping *lite_access_tryenter(const struct lite_access *a,
					  const struct lite_mapping **stale);
int lite_access_await(const struct lite_access *a);
struct lite_conn *lite_access_conn(struct lite_mapping *m, u32 share);

static inline void lite_access_exit(struct lite_mapping *m)
{
	percpu_ref_put(&m->ops);
}

int lite_transfer(const struct lite_access *a, bool write, u64 offset,
		  u64 length, const struct lite_buf *buf, u64 *done);
int lite_atomic(const struct lite_access *a, enum lite_opcode opcode,
		u64 offset, u64 length, u64 operand, u64 swap, u64 *old);

size_t lite_buf_copy_nofault(const struct lite_buf *buf, u64 at, void *mem,
			     size_t n, bool write);
int lite_buf_fault_in(const struct lite_buf *buf, u64 at, size_t n, bool write);
int lite_buf_pin(const struct lite_buf *buf, u64 at, size_t n, bool write,
		 struct page **pages, int max, size_t *offset, size_t *got);
void lite_buf_unpin(const struct lite_buf *buf, struct page **pages, int n,
		    bool dirty);

/* ---- all of it ----------------------------------------------------------- */

struct lite_memory_params {
	u64 mem_limit;
	u64 uid_limit;
	u32 handle_limit;
	bool root_squash;
};

struct lite_memory {
	struct lite_cluster *cl;
	struct lite_fabric *fab;
	struct lite_stats __percpu *stats;
	u64 mem_limit;
	u64 uid_limit;
	u32 handle_limit;
	bool root_squash;          /* root of other nodes is nobody here */

	struct mutex limit_lock;   /* protects used and the table of uids */
	u64 used;
	struct xarray uids;

	atomic64_t ids;            /* of LMRs and allocs */
	struct xarray allocs;
	struct maple_tree by_dma;  /* kernel addresses of pieces */
	struct xarray lmrs;
	struct lite_names local;   /* names of LMRs homed here */
	struct lite_names directory;
	struct work_struct publish_work;
	atomic_t changes;          /* of members */

	spinlock_t map_lock;       /* protects the next three */
	struct xarray mappings;    /* by home and id; ACTIVE ones */
	struct list_head unclean;  /* mappings that left it so */
	struct list_head tries;    /* MAPs under way */

	spinlock_t zombies_lock;
	struct list_head zombies;  /* memory at nodes that did not answer */
	struct work_struct zombie_work;

	spinlock_t ctxs_lock;
	struct list_head ctxs;
	struct workqueue_struct *wq;
	struct workqueue_struct *revoke_wq; /* waited for by items of wq */
};

int lite_memory_init(struct lite_memory *mem, struct lite_cluster *cl,
		     struct lite_rpc *rpc, struct lite_stats __percpu *stats,
		     const struct lite_memory_params *params);
void lite_memory_give_up(struct lite_memory *mem);
void lite_memory_forget(struct lite_memory *mem);
void lite_memory_shut(struct lite_memory *mem);
void lite_memory_exit(struct lite_memory *mem);
bool lite_memory_idle(struct lite_memory *mem);

/* For the cluster (struct lite_cluster_ops). */
void lite_memory_members_changed(struct lite_memory *mem);
void lite_memory_peer_gone(struct lite_memory *mem, u64 session);
void lite_memory_peer_lost(struct lite_memory *mem, u32 id, u64 incarnation);

#endif /* _LITE_MEMORY_H */
