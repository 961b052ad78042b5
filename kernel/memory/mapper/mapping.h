/* SPDX-License-Identifier: GPL-2.0 */
/* The mapper's role. map.c, mapping.c, revoke.c, made.c */
#ifndef _LITE_MAPPING_H
#define _LITE_MAPPING_H

#include <linux/percpu-refcount.h>

#include "cluster/cluster.h"
#include "core/extent.h"
#include "wire/wire.h"

struct lite_memory;
struct lite_conn;
struct lite_cred;
struct lite_payer;
struct lite_peer;

enum lite_mapping_state {
	LITE_MAPPING_ACTIVE,
	LITE_MAPPING_RETIRED, /* recalled, or its session is over: map again */
	LITE_MAPPING_REVOKED, /* the LMR is gone */
};

/**
 * struct lite_map_share - a node that stores part of an LMR, or is its home
 * @node: its id
 * @peer: NULL: this node
 * @session: the only one to use with it; 0: it was down when this was noted
 * @local: it is this node in its present incarnation
 * @lost: a new incarnation of it has lost the memory: -ESTALE
 */
struct lite_map_share {
	u32 node;
	struct lite_peer *peer;
	u64 session;
	bool local;
	bool lost;
};

/**
 * struct lite_mapping - what this node knows of an LMR
 * @mem: node's
 * @ref: handles and others that use it
 * @rcu: freed after a grace period, because operations look it up under RCU
 * @ops: operations in flight; killed when it is retired, revoked or unused
 * @drained: completed when @ops is gone
 * @watchers: threads that wait for @drained without a reference
 * @zap: held while its pages are removed from page tables
 * @views: user mappings with pages of it, under views_lock (view.c)
 * @tail: the rest of the last page, beyond the end, may have been written to
 * @state: enum lite_mapping_state; leaves ACTIVE once, under map_lock
 * @home: the LMR's home
 * @home_incarnation: incarnation of the home
 * @id: the LMR's id there
 * @generation: of the LMR when it was mapped
 * @length: bytes
 * @anonymous: it has no name
 * @made: set if a handle of the creator of an anonymous LMR has or had this
 *	mapping; under map_lock
 * @unclean: an operation failed and may still be executed
 * @left: in mem->unclean, from when it leaves the table until the home knows of
 *	@unclean; else cleared
 * @careful: jiffies at which a small piece succeeded after a large one had
 *	failed
 * @pack_after: jiffies; until then its operations do not go in messages
 * @grants: MAPs of this node that the home counts; under map_lock
 * @lent: kept for memory operations of peers: in mem->lent, which has a
 *	reference; under map_lock
 * @lent_list: in mem->lent
 * @lent_used: jiffies at which a memory operation of a peer last used it
 * @conn: session with the home in which it was mapped, with a reference; NULL:
 *	the home is this node
 * @n_shares: entries in @share
 * @share: nodes that hold its memory; the first is the home
 * @n_extents: entries in @extents
 * @extents: where its bytes are
 * @local: kernel address of each local extent that is contiguous, else NULL;
 *	the table is NULL if no extent is local or there was no memory for it
 */
struct lite_mapping {
	struct lite_memory *mem;
	struct kref ref;
	struct rcu_work rcu;
	struct percpu_ref ops;
	struct completion drained;
	atomic_t watchers;
	struct mutex zap;
	struct list_head views;
	bool tail;
	enum lite_mapping_state state;
	u32 home;
	u64 home_incarnation;
	u64 id;
	u64 generation;
	u64 length;
	bool anonymous;
	struct lite_made *made;
	bool unclean;
	struct rb_node left;
	unsigned long careful;
	unsigned long pack_after;
	u32 grants;
	bool lent;
	struct list_head lent_list;
	unsigned long lent_used;
	struct lite_conn *conn;
	u32 n_shares;
	struct lite_map_share *share;
	u32 n_extents;
	struct lite_extent *extents;
	void **local;
};

/*
 * Where packets overtake each other, a go-back-N transport may never get a
 * large piece through. After two have failed and a small one has succeeded
 * (transfer.c), pieces stay small for LITE_CAREFUL_TIME.
 */
#define LITE_CAREFUL_BYTES 1024
#define LITE_CAREFUL_TIME (60 * HZ)

static inline bool lite_mapping_is_careful(const struct lite_mapping *m)
{
	return time_before(jiffies, READ_ONCE(m->careful) + LITE_CAREFUL_TIME);
}

static inline const struct lite_extent *
lite_extent_at(const struct lite_mapping *m, u64 offset)
{
	/* The first one mostly has it. */
	if (likely(offset < m->extents->length))
		return m->extents;
	return &m->extents[lite_extent_find(m->extents, m->n_extents, offset)];
}

/*
 * A failed operation may still be executed at the store, by a late packet. Mark
 * the mapping, so that the home has this node fenced before it frees the
 * memory.
 */
static inline int lite_io_result(struct lite_mapping *m, int err)
{
	if (err)
		WRITE_ONCE(m->unclean, true);
	return err;
}

#define LITE_REVOKED_BITS 10

/**
 * struct lite_revoked - REVOKEs and RECALLs that have come
 * @salt: of the hash of an LMR's key, so that users cannot choose collisions
 * @count: how many so far
 * @last: number of the last one, by hash of the LMR. If greater than the count
 *	at which a MAP was begun, it has overtaken the MAP, or is a collision,
 *	which costs one more MAP
 */
struct lite_revoked {
	u64 salt;
	u64 count;
	u64 last[1 << LITE_REVOKED_BITS];
};

/* Is the session with the home alive? */
static inline bool lite_mapping_current(const struct lite_mapping *m)
{
	return !m->conn || !lite_conn_is_dead(m->conn);
}

static inline unsigned long lite_mapping_key(u32 home, u64 id)
{
	return (unsigned long)home << 48 | (id & GENMASK_ULL(47, 0));
}

struct lite_mapping *lite_mapping_by_id(struct lite_memory *mem, u32 home,
					u64 id, const char *name,
					const struct lite_cred *cred,
					u32 rights, u32 *granted);
int lite_mapping_await(struct lite_memory *mem, u32 home, u64 id);
struct lite_mapping *lite_mapping_create(struct lite_memory *mem, u32 home,
					 struct lite_wire_create *req,
					 struct lite_payer *payer, u64 *id,
					 u32 *granted);
void lite_mapping_retire(struct lite_mapping *m);
void lite_mapping_retire_home(struct lite_memory *mem, u32 home);
void lite_mappings_retire_work(struct work_struct *work);
void lite_mapping_end(struct lite_mapping *m, enum lite_mapping_state state);
bool lite_mapping_watch(struct lite_mapping *m);
int lite_home_error(struct lite_memory *mem, u32 home, int err);
u64 lite_revoked_count(struct lite_memory *mem);
bool lite_revoked_since(const struct lite_memory *mem, u32 home, u64 id,
			u64 count);
bool lite_mapping_was_unclean(const struct lite_memory *mem, u32 home, u64 id);
int lite_mapping_revoke(struct lite_memory *mem, u32 home, u64 id,
			enum lite_mapping_state state);
void lite_mapping_put(struct lite_mapping *m);
void *lite_mapping_address(const struct lite_mapping *m,
			   const struct lite_extent *e, u64 in, size_t *n);
bool lite_mapping_give_back(struct lite_memory *mem, struct lite_conn *conn,
			    u64 id, u32 count, u32 flags);
struct lite_mapping *lite_mapping_new(struct lite_memory *mem, u32 home,
				      struct lite_conn *conn,
				      const struct lite_wire_map_reply *r);
void lite_mapping_handlers(struct lite_memory *mem);

/* made.c */
struct lite_made *lite_made_new(u32 home, const struct lite_wire_map_reply *r);
void lite_made_use(struct lite_mapping *m, struct lite_made **made);
struct lite_made *lite_made_detach(struct lite_mapping *m);
void lite_made_over(struct lite_memory *mem, struct lite_made *made, bool told);
void lite_made_work(struct work_struct *work);
void lite_made_drop(struct lite_memory *mem);

#endif /* _LITE_MAPPING_H */
